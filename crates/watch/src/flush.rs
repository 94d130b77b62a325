//! The two ends of a flush: the caller waits on [`Flush`], the sink answers with [`Acknowledge`].

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::WatchError;

/// The answer to [`Tracker::flush`](crate::Tracker::flush): a future of any runtime, or [`Flush::wait`].
#[derive(Debug)]
#[must_use = "a flush is only known to be over when it is awaited"]
pub struct Flush(Arc<FlushShared>);

/// Ends a flush. The sink keeps it behind the work of the earlier events and calls [`Acknowledge::done`], or
/// drops it, when that work is finished.
#[derive(Debug)]
pub struct Acknowledge(Arc<FlushShared>);

impl Flush {
    /// Blocks the calling thread until the flush is over.
    ///
    /// # Errors
    /// [`WatchError::Closed`] if the tracker was closed before.
    pub fn wait(self) -> Result<(), WatchError> {
        let mut state = self.0.lock();
        loop {
            if let Some(outcome) = state.outcome.clone() {
                return outcome;
            }
            state = self.0.over.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// As [`Flush::wait`], for `limit` at most: `None` if it is not over then, and it may be waited for again.
    ///
    /// # Errors
    /// Within `Some`: [`WatchError::Closed`] if the tracker was closed before.
    pub fn wait_timeout(&self, limit: Duration) -> Option<Result<(), WatchError>> {
        let end = Instant::now() + limit;
        let mut state = self.0.lock();
        loop {
            if let Some(outcome) = state.outcome.clone() {
                return Some(outcome);
            }
            let left = end.checked_duration_since(Instant::now())?;
            state = self.0.over.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Future for Flush {
    type Output = Result<(), WatchError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock();
        if let Some(outcome) = state.outcome.clone() {
            return Poll::Ready(outcome);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Acknowledge {
    /// The events before this flush are processed.
    pub fn done(self) {
        self.0.finish(Ok(()));
    }

    /// The two ends of a new flush, for trackers of one's own.
    pub fn pair() -> (Flush, Self) {
        Self::pair_for(0)
    }

    /// The same, for a member of a shared tracker.
    pub(crate) fn pair_for(member: u64) -> (Flush, Self) {
        let shared = Arc::new(FlushShared { member, ..FlushShared::default() });
        (Flush(Arc::clone(&shared)), Self(shared))
    }

    /// The member of a shared tracker that waits.
    pub(crate) fn member(&self) -> u64 {
        self.0.member
    }

    pub(crate) fn fail(self, error: WatchError) {
        self.0.finish(Err(error));
    }
}

impl Drop for Acknowledge {
    fn drop(&mut self) {
        self.0.finish(Ok(()));
    }
}

#[derive(Debug, Default)]
struct FlushShared {
    member: u64,
    state: Mutex<FlushState>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct FlushState {
    outcome: Option<Result<(), WatchError>>,
    waker: Option<Waker>,
}

impl FlushShared {
    fn lock(&self) -> MutexGuard<'_, FlushState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first outcome counts: `done` is followed by a drop.
    fn finish(&self, outcome: Result<(), WatchError>) {
        let mut state = self.lock();
        if state.outcome.is_some() {
            return;
        }
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        drop(state);
        self.over.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_flush_is_over_when_acknowledged_dropped_or_closed() {
        let (flush, ack) = Acknowledge::pair();
        assert_eq!(flush.wait_timeout(Duration::ZERO), None);
        ack.done();
        assert_eq!(flush.wait(), Ok(()));

        let (flush, ack) = Acknowledge::pair();
        drop(ack);
        assert_eq!(flush.wait(), Ok(()));

        let (flush, ack) = Acknowledge::pair();
        ack.fail(WatchError::Closed);
        assert_eq!(flush.wait(), Err(WatchError::Closed));
    }

    #[test]
    fn a_flush_wakes_a_waiting_thread_and_a_waiting_task() {
        let (flush, ack) = Acknowledge::pair();
        let waiting = thread::spawn(move || flush.wait());
        ack.done();
        assert_eq!(waiting.join().unwrap(), Ok(()));

        struct Unpark(thread::Thread);
        impl std::task::Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let (mut flush, ack) = Acknowledge::pair();
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut flush).poll(&mut context).is_pending());
        let answering = thread::spawn(move || ack.done());
        while Pin::new(&mut flush).poll(&mut context).is_pending() {
            thread::park();
        }
        answering.join().unwrap();
    }
}
