//! Lets the writer restart the log while reads never pause.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Holds back new reads for a moment. SQLite has four marks for the states that are being read: reads that overlap without end
/// keep all of them in use, and the log can't be restarted.
#[derive(Default)]
pub(super) struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// How long a read waits at most.
    const PATIENCE: Duration = Duration::from_millis(200);

    /// Waits until the gate is open.
    pub fn pass(&self) {
        let is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_closed {
            // A read that has waited in vain goes on; only the log stays longer.
            drop(self.opened.wait_timeout_while(is_closed, Self::PATIENCE, |is_closed| *is_closed));
        }
    }

    /// Runs this while new reads wait.
    pub fn while_closed<T>(&self, work: impl FnOnce() -> T) -> T {
        self.set(true);
        let value = work();
        self.set(false);
        value
    }

    fn set(&self, closed: bool) {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = closed;
        self.opened.notify_all();
    }
}
