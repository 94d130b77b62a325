//! The connections and threads that are open for a file. Several stores of a process may use the same ones.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use context_platform::shared::Shareable;
use context_store::clock::Clock;
use context_store::{Receipt, Result, StoreError};
use tokio::sync::oneshot;

use super::checkpointer::CheckpointGate;
use super::connect;
use super::error::{self, no_thread, stopped};
use super::negative_cache::NegativeCache;
use super::pool::{Pool, Readable};
use super::prepare::Prepared;
use super::settle::{Durability, Settled, may_wait};
use super::store_file::StoreFile;
use super::writer::Writer;
use super::writer_queue::{WriterJob, WriterQueue};

/// The connections and threads of one file.
pub(super) struct Core {
    jobs: RwLock<Option<Sender<WriterJob>>>,
    pub queue: Arc<WriterQueue>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pub pool: Pool,
    /// Separate from the others, so that a long search delays no other read.
    pub searches: Pool,
    /// `None` if nothing is synced anyway.
    pub settled: Option<Settled>,
    pub place: Arc<StoreFile>,
    pub clock: Clock,
    pub negative: Arc<NegativeCache>,
}

impl Shareable for Core {
    /// The file without links on the way to it, and what its writes survive.
    type Key = (PathBuf, Durability);
    type Opening = Mutex<()>;

    /// Not after a failed sync, the end of the writer, or an exchange of the file.
    fn is_sound(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let is_writing = thread.as_ref().is_some_and(|thread| !thread.is_finished());
        is_writing
            && !self.queue.has_stopped()
            && self.settled.as_ref().is_none_or(|settled| settled.check().is_ok())
            && self.place.check().is_ok()
    }
}

impl Core {
    /// Opens the connection that writes and starts the threads.
    pub(crate) fn open(path: &Path, durability: Durability, clock: Clock) -> Result<Self> {
        let connection = connect::writer(path, durability)?;
        let place = Arc::new(StoreFile::new(path));
        let gate = Arc::new(CheckpointGate::default());
        let readable = || Readable::Store { place: Arc::clone(&place), gate: Arc::clone(&gate) };
        let (pool, searches) = (Pool::new(readable(), "store-read")?, Pool::new(readable(), "store-search")?);
        let (sender, jobs) = mpsc::channel();
        let writer = Writer::new(connection, Arc::clone(&place), gate, Arc::clone(&clock), durability)?;
        let queue = Arc::new(WriterQueue::new(writer));
        let working = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("store-write".into())
            .spawn(move || working.work(&jobs))
            .map_err(|error| no_thread(&error))?;
        let (jobs, thread) = (RwLock::new(Some(sender)), Mutex::new(Some(thread)));
        let settled = (durability == Durability::Power).then(|| Settled::new(connect::log(path)));
        Ok(Self { jobs, queue, thread, pool, searches, settled, place, clock, negative: Arc::default() })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.jobs.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Ends the writer and the readers without waiting: they finish the jobs sent before, and end by themselves.
    pub(crate) fn end(&self) {
        drop(self.jobs.write().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Ends everything, and waits for it.
    pub(crate) fn close(&self) -> Result<()> {
        self.end();
        self.searches.close();
        self.pool.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread.map(JoinHandle::join) {
            Some(Err(_)) => Err(stopped()),
            _ => Ok(()),
        }
    }

    fn send(&self, job: WriterJob) -> Result<()> {
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        let jobs = jobs.as_ref().ok_or(StoreError::Closed)?;
        if self.queue.send(jobs, job) { Ok(()) } else { Err(stopped()) }
    }

    /// Writes, on this thread if that can be done at once.
    pub(crate) async fn write(&self, work: Prepared) -> Result<Receipt> {
        self.settled.as_ref().map_or(Ok(()), Settled::check)?;
        if let Some(result) = self.write_here(&work) {
            return result;
        }
        let (reply, answer) = oneshot::channel();
        self.send(WriterJob::Transact(work, reply))?;
        answer.await.map_err(|_| stopped())?
    }

    fn write_here(&self, work: &Prepared) -> Option<Result<Receipt>> {
        if !may_wait() {
            return None;
        }
        // Held until the transaction is done, so that closing waits for it.
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        jobs.as_ref().map_or(Some(Err(StoreError::Closed)), |jobs| self.queue.try_transact(jobs, work))
    }

    /// Runs this on the writer's thread.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.send(WriterJob::Call(Box::new(move |writer| {
            let _ = reply.send(work(writer).map_err(StoreError::from));
        })))?;
        answer.await.map_err(|_| stopped())?
    }
}
