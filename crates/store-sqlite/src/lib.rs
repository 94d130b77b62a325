//! The store in one SQLite file: the embedded default.
//!
//! Architecture invariants:
//! - Several processes share the file; another process's lock never reaches a caller as an error.
//! - One connection writes, on the caller's thread if nobody is waiting. Waiting transactions are committed together
//!   next time.
//! - No row of the history is updated or deleted; triggers refuse it.
//! - Nothing is returned that does not have the hash it was stored with.
//! - Reads never wait for a write or for a writer's lock.
//! - A missing file is never written to: a store that was moved, deleted or replaced is `STORE_UNAVAILABLE`.
//! - The file is opened only through SQLite: closing it elsewhere in the process would drop its locks.

use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;

use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use context_store::clock::{self, Clock};
use context_store::sessions::Limits;
use context_store::{Erased, Receipt, Result, StoreError, Transaction, Version};

use self::checkpointer::CheckpointGate;
use self::negative_cache::NegativeCache;
use self::pool::Pool;
use self::prepare::Prepared;
pub use self::settle::Durability;
use self::settle::Settled;
use self::store_file::StoreFile;
pub use self::verify::Size;
use self::writer::Writer;
use self::writer_queue::{WriterJob, WriterQueue};

mod apply;
mod checkpointer;
mod connect;
mod erase;
mod error;
mod forgotten;
mod form;
mod index;
mod migrate;
mod negative_cache;
mod pack;
mod page;
mod pool;
mod prepare;
mod prune;
mod ranked;
mod read;
mod rewrite;
mod row;
mod search;
mod settle;
mod store;
mod store_file;
mod verify;
mod writer;
mod writer_queue;

/// How the names of notes in the `local` table begin.
const NOTE: &str = "note:";

/// About how many bytes a part of a history has at most.
const PAGE_BYTES: usize = 8 << 20;

/// Up to this many objects are looked up on the caller's own thread.
const FEW: usize = 8;

/// A store in a file.
pub struct SqliteStore {
    jobs: RwLock<Option<Sender<WriterJob>>>,
    queue: Arc<WriterQueue>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pool: Pool,
    /// Separate from the others, so that a long search delays no other read.
    searches: Pool,
    /// `None` if nothing is synced anyway.
    settled: Option<Settled>,
    place: Arc<StoreFile>,
    clock: Clock,
    negative: Arc<NegativeCache>,
}

impl SqliteStore {
    /// Opens the store at this path; creates the file (mode 0600) and its directory (0700) if they do not exist.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` for a path that can't be used or a file that is not a store, `STORE_NEWER`,
    /// `STORE_CORRUPT`, `STORE_FULL`. Whatever was at the path is not changed then.
    pub fn open(path: impl AsRef<Path>, durability: Durability) -> Result<Arc<Self>> {
        Self::open_with(path, durability, clock::system())
    }

    /// As [`SqliteStore::open`], with the given clock.
    pub fn open_with(path: impl AsRef<Path>, durability: Durability, clock: Clock) -> Result<Arc<Self>> {
        let path = std::path::absolute(path)
            .map_err(|e| StoreError::Unavailable(format!("the store's path can't be used: {e}")))?;
        let connection = connect::writer(&path, durability)?;
        let place = Arc::new(StoreFile::new(&path));
        let gate = Arc::new(CheckpointGate::default());
        let pool = Pool::new(Arc::clone(&place), Arc::clone(&gate), "store-read")?;
        let searches = Pool::new(Arc::clone(&place), Arc::clone(&gate), "store-search")?;
        let (sender, jobs) = mpsc::channel();
        let writer = Writer::new(connection, Arc::clone(&place), gate, Arc::clone(&clock), durability)?;
        let queue = Arc::new(WriterQueue::new(writer));
        let working = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("store-write".into())
            .spawn(move || working.work(&jobs))
            .map_err(|e| StoreError::Unavailable(format!("no thread could be started: {e}")))?;
        let (jobs, thread) = (RwLock::new(Some(sender)), Mutex::new(Some(thread)));
        let settled = (durability == Durability::Power).then(|| Settled::new(connect::log(&path)));
        let negative = Arc::default();
        Ok(Arc::new(Self { jobs, queue, thread, pool, searches, settled, place, clock, negative }))
    }

    /// Returns what the file contains, and what takes up its space.
    pub async fn size(&self) -> Result<Size> {
        self.pool.away(verify::size).await
    }

    /// Writes a copy of the whole store, as of one moment, to a new file with mode 0600.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if the file already exists or can't be created, `STORE_FULL`, `CLOSED`.
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<()> {
        let to = to.as_ref().to_owned();
        let place = Arc::clone(&self.place);
        self.pool
            .away(move |_| {
                place.check()?;
                connect::copy(place.path(), &to)
            })
            .await
    }

    /// The limits that were set.
    pub async fn limits(&self) -> Result<Limits> {
        self.pool.away(prune::limits).await
    }

    /// Sets the limits.
    pub async fn set_limits(&self, limits: Limits) -> Result<()> {
        let json = serde_json::to_string(&limits)
            .map_err(|_| StoreError::Invalid("these limits can't be written".into()))?;
        self.call(move |writer| writer.set_local(prune::LIMITS, &json)).await
    }

    /// When the first transaction after this one was made. Reads one row on the caller's thread.
    pub fn time_after(&self, tx: TxId) -> Result<Option<Timestamp>> {
        self.here(|connection| page::time_after(connection, tx))
    }

    /// The objects that the transactions after this one wrote: at most this many writes, of whole transactions.
    pub async fn written_after(&self, tx: TxId, most: usize) -> Result<Vec<(TxId, ObjectId)>> {
        self.pool.away(move |connection| page::written_after(connection, tx, most)).await
    }

    /// As [`Store::transact`](context_store::Store::transact), with the mark of each whole version that its owner has
    /// erased elsewhere.
    pub async fn transact_marked(
        &self,
        transaction: Transaction,
        marks: &[Option<Erased>],
    ) -> Result<Receipt> {
        let mut prepared = Prepared::new(transaction)?;
        prepared.mark(marks)?;
        self.write(prepared).await
    }

    /// How many versions of an object, up to this transaction, have the same valid time and content as this one.
    pub async fn count_like(&self, version: &Version, until: TxId) -> Result<usize> {
        let (id, valid_time) = (version.document.id().clone(), version.valid_time);
        let mark = (version.document.content_hash(), version.document.source_hash());
        self.pool.away(move |connection| page::count_at(connection, &id, valid_time, mark, until)).await
    }
}
