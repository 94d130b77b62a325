//! Calls that share a write: what arrives while one write becomes durable goes into the next write together. So
//! twenty results of one answer wait for two disk syncs, not twenty.

use std::sync::{Mutex, MutexGuard, PoisonError};

use context_store::StoreError;
use tokio::sync::oneshot;

use crate::ground::error::Result;

/// The most jobs in one write.
const GROUP: usize = 256;

/// No job is added once a write has this many bytes of text, because a whole transaction is held in memory.
const BYTES: usize = 8 << 20;

/// A job of the queue.
pub(crate) trait Job {
    /// The length of its texts.
    fn bytes(&self) -> usize;
}

/// A job whose caller waits.
pub(crate) struct Waiting<J, D> {
    pub job: J,
    /// True if its caller leaves fsync to `settle`.
    pub soon: bool,
    pub reply: oneshot::Sender<Result<D>>,
}

/// The waiting jobs, in order of arrival.
pub(crate) struct Queue<J, D>(Mutex<Vec<Waiting<J, D>>>);

impl<J, D> Default for Queue<J, D> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<J: Job, D> Queue<J, D> {
    /// Adds a job. Its answer comes once somebody has carried it out.
    pub fn push(&self, job: J, soon: bool) -> oneshot::Receiver<Result<D>> {
        let (reply, answer) = oneshot::channel();
        self.waiting().push(Waiting { job, soon, reply });
        answer
    }

    /// Takes the oldest jobs, as many as one transaction may hold, and at least one.
    pub fn take(&self) -> Vec<Waiting<J, D>> {
        let mut waiting = self.waiting();
        let mut bytes = 0;
        let fits = |one: &&Waiting<J, D>| {
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

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting<J, D>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job's answer so far; `None` while there is none.
///
/// # Errors
/// The job's own; `STORE_UNAVAILABLE` if the call that carried it out was abandoned.
pub(crate) fn answered<D>(answer: &mut oneshot::Receiver<Result<D>>) -> Option<Result<D>> {
    match answer.try_recv() {
        Ok(result) => Some(result),
        Err(oneshot::error::TryRecvError::Empty) => None,
        Err(oneshot::error::TryRecvError::Closed) => {
            let what = "the call that recorded this one too was abandoned; repeat it";
            Some(Err(StoreError::Unavailable(what.into()).into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Text(usize);

    impl Job for Text {
        fn bytes(&self) -> usize {
            self.0
        }
    }

    fn taken(queue: &Queue<Text, ()>) -> Vec<usize> {
        queue.take().into_iter().map(|waiting| waiting.job.0).collect()
    }

    #[test]
    fn a_write_has_as_many_jobs_as_a_transaction_may_hold() {
        let queue: Queue<Text, ()> = Queue::default();
        let push = |all: &[usize]| all.iter().for_each(|bytes| drop(queue.push(Text(*bytes), false)));
        push(&[BYTES - 1, 1, 1]);
        assert_eq!([taken(&queue), taken(&queue), taken(&queue)], [vec![BYTES - 1, 1], vec![1], vec![]]);
        push(&[BYTES + 1, 2]);
        assert_eq!([taken(&queue), taken(&queue)], [vec![BYTES + 1], vec![2]], "at least one");
        push(&[0; GROUP + 1]);
        assert_eq!([taken(&queue).len(), taken(&queue).len()], [GROUP, 1]);
    }

    #[test]
    fn the_callers_of_jobs_that_were_abandoned_learn_of_it() {
        let queue: Queue<Text, ()> = Queue::default();
        let mut answer = queue.push(Text(1), false);
        assert!(answered(&mut answer).is_none());
        queue.clear();
        assert!(matches!(answered(&mut answer), Some(Err(_))));
        assert!(taken(&queue).is_empty());
    }
}
