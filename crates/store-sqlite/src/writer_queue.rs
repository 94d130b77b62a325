//! The users of the writer: its own thread, and callers that find it idle.

use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connect;
use super::error::{self, Trouble, stopped};
use super::pool::Limit;
use super::prepare::Prepared;
use super::writer::Writer;
use context_store::{Receipt, Result, StoreError};

/// A job for the writer.
pub(super) enum WriterJob {
    /// A transaction, answered after its commit.
    Transact(Prepared, ReplySender<Receipt>),
    /// Anything else that needs the writing connection.
    Call(Box<dyn FnOnce(&mut Writer) + Send>),
}

pub(super) type ReplySender<T> = oneshot::Sender<Result<T>>;

/// The most transactions that one commit contains.
const GROUP: usize = 256;

/// After this long without work, the search index is advanced. It is longer than the pauses within a turn, because
/// work that arrives meanwhile waits for the portion being indexed.
const IDLE: Duration = Duration::from_millis(250);

/// Time that a search waits for the index to be completed, while that makes progress.
pub(super) const INDEX_TIME: Duration = Duration::from_secs(30);

/// Time that it waits for the writer, which may be waiting for another process.
const WRITER_TIME: Duration = Duration::from_millis(500);

/// The writer, as shared by its own thread and by callers that find it idle.
pub(super) struct WriterQueue {
    /// `None` after the end of the thread.
    writer: Mutex<Option<Writer>>,
    /// Number of jobs that were sent and have not been started.
    waiting: AtomicUsize,
}

impl WriterQueue {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer: Mutex::new(Some(writer)), waiting: AtomicUsize::new(0) }
    }

    /// True once a transaction has panicked: nothing is written any more.
    pub(crate) fn has_stopped(&self) -> bool {
        self.writer.is_poisoned()
    }

    /// Leaves a job for the thread. False after the end of the thread.
    pub(crate) fn send(&self, jobs: &Sender<WriterJob>, job: WriterJob) -> bool {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        jobs.send(job).is_ok()
    }

    /// Runs a transaction on this thread, unless the writer is busy or other work comes first.
    pub(crate) fn try_transact(&self, jobs: &Sender<WriterJob>, work: &Prepared) -> Option<Result<Receipt>> {
        if self.waiting.load(Ordering::Acquire) > 0 {
            return None;
        }
        let mut held = match self.writer.try_lock() {
            Ok(held) => held,
            Err(TryLockError::WouldBlock) => return None,
            Err(TryLockError::Poisoned(_)) => return Some(Err(stopped())),
        };
        let Some(writer) = held.as_mut() else { return Some(Err(stopped())) };
        let slept = !writer.unindexed;
        // This thread's other tasks continue on another thread.
        let result = tokio::task::block_in_place(|| writer.commit(slice::from_ref(work)).pop());
        drop(held);
        if slept {
            // The thread has to wake once the store is idle.
            self.send(jobs, WriterJob::Call(Box::new(|_| {})));
        }
        result
    }

    /// A short read through the writing connection, unless that is in use. Also `None` if it fails: one of the
    /// reading connections then reports why.
    pub(crate) fn try_read<T>(&self, read: impl Fn(&Connection) -> error::Result<T>) -> Option<T> {
        let held = self.writer.try_lock().ok()?;
        read(&held.as_ref()?.connection).ok()
    }

    /// Brings the search index up to date on this thread; otherwise says why it may lack something.
    pub(crate) fn complete_index(&self, limit: &Limit) -> error::Result<Option<StoreError>> {
        let unavailable = |what: &str| Ok(Some(StoreError::Unavailable(what.into())));
        let begin = Instant::now();
        let mut free = begin;
        loop {
            limit.check()?;
            let step = match self.writer.try_lock() {
                Ok(mut held) => {
                    let writer = held.as_mut().ok_or(StoreError::Closed)?;
                    Some(writer.index_more().map_err(Trouble::into_store))
                }
                Err(TryLockError::WouldBlock) => None,
                Err(TryLockError::Poisoned(_)) => return Err(stopped().into()),
            };
            match step {
                Some(Ok(false)) => return Ok(None),
                Some(Ok(true)) if begin.elapsed() < INDEX_TIME => free = Instant::now(),
                Some(Ok(true)) => {
                    return unavailable(
                        "the search index is still being completed; search again in a moment",
                    );
                }
                Some(Err(error @ (StoreError::Full(_) | StoreError::Unavailable(_)))) => {
                    return Ok(Some(error));
                }
                Some(Err(error)) => return Err(error.into()),
                None if free.elapsed() < WRITER_TIME => std::thread::sleep(Duration::from_millis(1)),
                None => return unavailable("a write has held the store for too long; end it or try again"),
            }
        }
    }

    /// The thread's main loop. Ends when every sender is gone and everything that was sent is done.
    pub(crate) fn work(&self, jobs: &Receiver<WriterJob>) {
        let mut pause = None;
        loop {
            let job = match pause {
                Some(pause) => jobs.recv_timeout(pause),
                None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            // A poisoned lock means that a transaction panicked on its caller's thread.
            let Ok(mut held) = self.writer.lock() else { return };
            let Some(writer) = held.as_mut() else { return };
            match job {
                Ok(job) => self.perform(writer, job, jobs),
                Err(RecvTimeoutError::Timeout) if writer.worked.elapsed() >= IDLE && writer.unindexed => {
                    writer.index_some();
                    writer.is_within = false;
                }
                Err(RecvTimeoutError::Timeout) if writer.worked.elapsed() >= IDLE => writer.keep_limits(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let _alone = connect::one_by_one();
                    *held = None;
                    return;
                }
            }
            let has_work = writer.unindexed || !writer.is_within;
            pause = has_work.then(|| IDLE.saturating_sub(writer.worked.elapsed()));
        }
    }

    fn perform(&self, writer: &mut Writer, job: WriterJob, jobs: &Receiver<WriterJob>) {
        let mut next = Some(job);
        while let Some(job) = next.take() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            match job {
                WriterJob::Call(call) => call(writer),
                WriterJob::Transact(work, reply) => {
                    let (mut group, mut replies) = (vec![work], vec![reply]);
                    while group.len() < GROUP && next.is_none() {
                        match jobs.try_recv() {
                            Ok(WriterJob::Transact(work, reply)) => {
                                self.waiting.fetch_sub(1, Ordering::AcqRel);
                                group.push(work);
                                replies.push(reply);
                            }
                            Ok(call) => next = Some(call),
                            Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                        }
                    }
                    for (reply, result) in replies.into_iter().zip(writer.commit(&group)) {
                        // A caller that has gone away needs no answer.
                        let _ = reply.send(result);
                    }
                }
            }
        }
    }
}
