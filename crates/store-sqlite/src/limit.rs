//! When a read must end: at its time limit, or when the store is closed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use context_store::{Result, StoreError};

/// How many of SQLite's steps pass between two checks of the limit: some ten microseconds.
const STEPS: i32 = 1_000;

/// No time limit.
const NEVER: u64 = u64::MAX;

/// The limit of one connection's reads, which run one after the other.
#[derive(Clone)]
pub(super) struct Limit {
    is_closed: Arc<AtomicBool>,
    /// In milliseconds since [`start`].
    until: Arc<AtomicU64>,
    /// The time that the read was given, in milliseconds.
    given: Arc<AtomicU64>,
}

impl Limit {
    /// No limit, until this becomes true.
    pub fn new(is_closed: Arc<AtomicBool>) -> Self {
        Self { is_closed, until: Arc::new(AtomicU64::new(NEVER)), given: Arc::default() }
    }

    /// Makes this connection's statements end with the limit.
    pub fn govern(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let limit = self.clone();
        connection.progress_handler(STEPS, Some(move || limit.is_over()))
    }

    /// Starts the next read, which has this much time.
    pub fn begin(&self, time: Option<Duration>) {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(NEVER);
        self.given.store(time.map_or(0, millis), Ordering::Relaxed);
        let until = time.map_or(NEVER, |time| millis(start().elapsed() + time));
        self.until.store(until, Ordering::Relaxed);
    }

    /// Fails once the read must end. Between statements, a read checks this itself.
    pub fn check(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(StoreError::Closed);
        }
        if !self.is_over() {
            return Ok(());
        }
        let seconds = self.given.load(Ordering::Relaxed).div_ceil(1_000);
        let what = format!("the search took longer than {seconds} s; look for fewer or rarer words");
        Err(StoreError::Unavailable(what))
    }

    fn is_over(&self) -> bool {
        if self.is_closed.load(Ordering::Relaxed) {
            return true;
        }
        let until = self.until.load(Ordering::Relaxed);
        until != NEVER && start().elapsed().as_millis() >= u128::from(until)
    }
}

/// A moment to count from.
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}
