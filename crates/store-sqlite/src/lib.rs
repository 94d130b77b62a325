//! The store in one SQLite file: the embedded default.
//!
//! Architecture invariants:
//! - Several processes share the file; another process's lock never reaches a caller as an error.
//! - One connection writes, on the caller's thread if no other transaction waits. Waiting transactions are committed
//!   together next time.
//! - No row of the history is updated or deleted; triggers refuse it.
//! - Nothing is returned that does not have the hash it was stored with.
//! - Reads never wait for a write or for a writer's lock.
//! - A missing file is never written to: a store that was moved, deleted or replaced is `STORE_UNAVAILABLE`.
//! - The file is opened only through SQLite: closing it elsewhere in the process would drop its locks.
#![warn(unreachable_pub)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use context_platform::shared::Seat;
use context_store::clock::{self, Clock};
use context_store::sessions::Limits;
use context_store::{Erase, Erased, ErasedCount, Result, StoreError};

use self::core::Core;
pub use self::page::VersionAt;
pub use self::settle::Durability;
pub use self::snapshot::SqliteSnapshot;
use self::store_file::StoreFile;
pub use self::verify::Size;

mod apply;
mod brought;
mod checkpointer;
mod columns;
mod connect;
mod core;
mod erase;
mod error;
mod forgotten;
mod form;
mod index;
mod local;
mod migrate;
mod mirror;
mod negative_cache;
mod pack;
mod page;
mod past;
mod pool;
mod prepare;
mod prune;
mod ranked;
mod read;
mod reads;
mod rewrite;
mod row;
mod search;
mod settle;
mod shared;
mod snapshot;
mod store;
mod store_file;
mod verify;
mod viewed_file;
mod writer;
mod writer_queue;

/// About how many bytes a part of a history has at most.
const PAGE_BYTES: usize = 8 << 20;

/// Up to this many objects are looked up on the caller's own thread.
const FEW: usize = 8;

/// A store in a file.
pub struct SqliteStore {
    core: Seat<Core>,
    /// The path that this store was opened by, if it is another one than the core's.
    own_place: Option<StoreFile>,
    is_closed: AtomicBool,
}

impl SqliteStore {
    /// Opens the store at this path; creates the file (mode 0600) and its directory (0700) if they do not exist.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` for a path that can't be used or a file that is not a store, `STORE_NEWER`, `STORE_CORRUPT`,
    /// `STORE_FULL`. The file at the path is not changed then.
    pub fn open(path: impl AsRef<Path>, durability: Durability) -> Result<Arc<Self>> {
        Self::open_with(path, durability, clock::system())
    }

    /// As [`SqliteStore::open`], with the given clock.
    pub fn open_with(path: impl AsRef<Path>, durability: Durability, clock: Clock) -> Result<Arc<Self>> {
        let core = Seat::alone(Core::open(&absolute(path.as_ref())?, durability, clock)?);
        Ok(Arc::new(Self { core, own_place: None, is_closed: AtomicBool::new(false) }))
    }

    /// As [`SqliteStore::open`]; stores that this process opens so on one file, with the same durability, share its
    /// connections and threads. Each is closed for itself, and the last one closes the file.
    pub fn open_shared(path: impl AsRef<Path>, durability: Durability) -> Result<Arc<Self>> {
        let path = absolute(path.as_ref())?;
        let core = shared::join(&path, durability)?;
        let own_place = (core.place.path() != path).then(|| StoreFile::new(&path));
        Ok(Arc::new(Self { core, own_place, is_closed: AtomicBool::new(false) }))
    }

    /// Returns the file's contents and their sizes.
    pub async fn size(&self) -> Result<Size> {
        self.pool()?.away(verify::size).await
    }

    /// Writes a copy of the whole store, as of one moment, to a new file with mode 0600.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if the file already exists or can't be created, `STORE_FULL`, `CLOSED`.
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<()> {
        let to = to.as_ref().to_owned();
        let place = Arc::clone(&self.core.place);
        self.pool()?
            .away(move |_| {
                place.check()?;
                connect::copy(place.path(), &to)
            })
            .await
    }

    /// Counts what [`OwnedStore::erase`](context_store::OwnedStore::erase) would take out. Changes nothing, and makes writers wait
    /// meanwhile.
    ///
    /// # Errors
    /// As of erasing.
    pub async fn would_erase(&self, wanted: Vec<Erase>) -> Result<ErasedCount> {
        let mark = Erased { at: (self.core.clock)(), why: String::new() };
        self.call(move |writer| writer.would_erase(&wanted, &mark)).await
    }

    /// The limits that were set.
    pub async fn limits(&self) -> Result<Limits> {
        self.pool()?.away(prune::limits).await
    }

    /// Sets the limits.
    pub async fn set_limits(&self, limits: Limits) -> Result<()> {
        let json = serde_json::to_string(&limits)
            .map_err(|_| StoreError::Invalid("these limits can't be written".into()))?;
        self.call(move |writer| writer.set_local(prune::LIMITS, &json)).await
    }
}

/// The database, and the files that SQLite keeps beside it.
fn files_of(path: &Path) -> Vec<PathBuf> {
    let ends = ["", "-wal", "-shm", "-journal"].into_iter();
    ends.map(|end| PathBuf::from(format!("{}{end}", path.display()))).collect()
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        StoreError::Unavailable(format!(
            "the store's path can't be used: {}",
            context_platform::reason(&error)
        ))
    })
}
