//! Calls that share a write: what arrives while one write becomes durable goes into the next write together. So
//! twenty results of one answer wait for two disk syncs, not twenty.

use std::sync::{Mutex, MutexGuard, PoisonError};

use context_store::StoreError;
use tokio::sync::oneshot;

use crate::client::Durability;
use crate::error::{EngineError, Result};

/// The most jobs in one write.
const GROUP: usize = 256;

/// No job is added once a write has this many bytes of text, because a whole transaction is held in memory.
const BYTES: usize = 8 << 20;

/// What a write records.
pub trait Job {
    /// The length of its texts.
    fn bytes(&self) -> usize;
}

/// The outcome of a job, of the type that its caller waits for.
pub struct Reply<T> {
    /// What came of it; `None` until it was decided.
    pub outcome: Option<T>,
    /// `None` if nobody waits.
    caller: Option<oneshot::Sender<Result<T>>>,
}

impl<T> Default for Reply<T> {
    fn default() -> Self {
        Self { outcome: None, caller: None }
    }
}

impl<T> Reply<T> {
    /// A reply, and where its caller gets it.
    pub fn new() -> (Self, oneshot::Receiver<Result<T>>) {
        let (caller, answer) = oneshot::channel();
        (Self { outcome: None, caller: Some(caller) }, answer)
    }

    /// Gives the caller the outcome, or why there is none. A caller that has gone away needs no answer.
    pub fn send(self, done: Result<()>) {
        let Some(caller) = self.caller else { return };
        let _ = match (done, self.outcome) {
            (Err(error), _) => caller.send(Err(error)),
            (Ok(()), Some(outcome)) => caller.send(Ok(outcome)),
            (Ok(()), None) => caller.send(Err(abandoned())),
        };
    }
}

/// A job whose turn has not come.
pub struct Waiting<J> {
    /// What to record.
    pub job: J,
    /// When it is to survive a power loss.
    pub durability: Durability,
}

/// The waiting jobs, in order of arrival.
pub struct Queue<J>(Mutex<Vec<Waiting<J>>>);

impl<J> Default for Queue<J> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<J: Job> Queue<J> {
    /// Adds a job. Its answer comes once somebody has carried it out.
    pub fn push(&self, job: J, durability: Durability) {
        self.waiting().push(Waiting { job, durability });
    }

    /// Takes the oldest jobs, as many as one transaction may hold, and at least one.
    pub fn take(&self) -> Vec<Waiting<J>> {
        let mut waiting = self.waiting();
        let mut bytes = 0;
        let fits = |one: &&Waiting<J>| {
            bytes += one.job.bytes();
            bytes <= BYTES
        };
        let count = waiting.iter().take(GROUP).take_while(fits).count();
        let some = waiting.len().min(count.max(1));
        waiting.drain(..some).collect()
    }

    /// Abandons all jobs: their callers learn that the instance is closed.
    pub fn clear(&self) {
        self.waiting().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting<J>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job's answer so far; `None` while there is none.
///
/// # Errors
/// The job's own; `STORE_UNAVAILABLE` if the call that carried it out was abandoned.
pub fn answered<D>(answer: &mut oneshot::Receiver<Result<D>>) -> Option<Result<D>> {
    match answer.try_recv() {
        Ok(result) => Some(result),
        Err(oneshot::error::TryRecvError::Empty) => None,
        Err(oneshot::error::TryRecvError::Closed) => Some(Err(abandoned())),
    }
}

/// The error of a job that nobody has carried out to its end.
pub fn abandoned() -> EngineError {
    StoreError::Unavailable("the call that recorded this one too was abandoned; repeat it".into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Text {
        bytes: usize,
        _reply: Reply<()>,
    }

    impl Job for Text {
        fn bytes(&self) -> usize {
            self.bytes
        }
    }

    fn taken(queue: &Queue<Text>) -> Vec<usize> {
        queue.take().into_iter().map(|waiting| waiting.job.bytes).collect()
    }

    #[test]
    fn a_write_has_as_many_jobs_as_a_transaction_may_hold() {
        let queue: Queue<Text> = Queue::default();
        let push = |all: &[usize]| {
            all.iter().for_each(|bytes| {
                queue.push(Text { bytes: *bytes, _reply: Reply::default() }, Durability::Now)
            })
        };
        push(&[BYTES - 1, 1, 1]);
        assert_eq!([taken(&queue), taken(&queue), taken(&queue)], [vec![BYTES - 1, 1], vec![1], vec![]]);
        push(&[BYTES + 1, 2]);
        assert_eq!([taken(&queue), taken(&queue)], [vec![BYTES + 1], vec![2]], "at least one");
        push(&[0; GROUP + 1]);
        assert_eq!([taken(&queue).len(), taken(&queue).len()], [GROUP, 1]);
    }

    #[test]
    fn the_callers_of_jobs_that_were_abandoned_learn_of_it() {
        let queue: Queue<Text> = Queue::default();
        let (reply, mut answer) = Reply::new();
        queue.push(Text { bytes: 1, _reply: reply }, Durability::Now);
        assert!(answered(&mut answer).is_none());
        queue.clear();
        assert!(matches!(answered(&mut answer), Some(Err(_))));
        assert!(taken(&queue).is_empty());
    }
}
