//! The durability of an acknowledged write, and syncing the log for transactions that are already acknowledged.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex as Plain, PoisonError};

use context_store::{Result, StoreError};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Mutex;

/// The state of syncing the log. Opening the log outside of SQLite is harmless: unlike the database, it has
/// no locks.
pub(super) struct Settled {
    log: PathBuf,
    /// Number of transactions acknowledged without a sync, and the number of them that have been synced since.
    acknowledged: AtomicU64,
    synced: AtomicU64,
    /// Held by the thread that is syncing.
    file: Mutex<Option<File>>,
    failed: Plain<Option<StoreError>>,
}

impl Settled {
    pub(crate) fn new(log: PathBuf) -> Self {
        let (acknowledged, synced) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { log, acknowledged, synced, file: Mutex::default(), failed: Plain::default() }
    }

    /// A transaction was committed without a sync.
    pub(crate) fn owe(&self) {
        self.acknowledged.fetch_add(1, Ordering::AcqRel);
    }

    /// Fails after a failed sync: the loss of the log is unknown, so nothing may be built on it.
    pub(crate) fn check(&self) -> Result<()> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
    }

    /// Syncs the unsynced transactions, unless another caller is doing so.
    pub(crate) async fn settle(&self) -> Result<()> {
        let wanted = self.acknowledged.load(Ordering::Acquire);
        if self.synced.load(Ordering::Acquire) >= wanted {
            return self.check();
        }
        let mut file = self.file.lock().await;
        self.check()?;
        let covered = self.acknowledged.load(Ordering::Acquire);
        if self.synced.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        let mut sync = || {
            let log = match file.take() {
                Some(log) => log,
                // Windows syncs only files that are open for writing.
                None => File::options().read(true).write(cfg!(windows)).open(&self.log)?,
            };
            log.sync_data()?;
            *file = Some(log);
            Ok(())
        };
        // If possible, this thread's other tasks continue on another thread.
        let result: std::io::Result<()> = if may_wait() { tokio::task::block_in_place(sync) } else { sync() };
        if let Err(error) = result {
            let what = format!(
                "the store's log can't be synced to the disk ({error}); check the disk, and open the store again"
            );
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(StoreError::Unavailable(what));
            return self.check();
        }
        self.synced.store(covered, Ordering::Release);
        Ok(())
    }
}

/// True if this thread may be blocked for a while: on a single-threaded runtime, other tasks could not continue meanwhile.
pub(super) fn may_wait() -> bool {
    let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    runtime.map_or(true, |flavor| flavor == RuntimeFlavor::MultiThread)
}

/// The failures that an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Even a power loss: each commit is synced to the disk before it is acknowledged.
    #[default]
    Power,
    /// The end of the process, but not a power loss. That may lose the newest commits, without leaving gaps.
    Process,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reports_a_failed_sync_from_then_on() {
        let place = tempfile::tempdir().unwrap();
        let settled = Settled::new(place.path().join("none"));
        assert_eq!(settled.settle().await, Ok(()), "nothing is owed");
        settled.owe();
        let failed = settled.settle().await.unwrap_err();
        assert!(matches!(failed, StoreError::Unavailable(_)));
        File::create(place.path().join("none")).unwrap();
        assert_eq!(settled.settle().await, Err(failed.clone()), "what was lost stays lost");
        assert_eq!(settled.check(), Err(failed));
    }

    #[tokio::test]
    async fn syncs_deferred_transactions_once() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        File::create(&log).unwrap();
        let settled = Settled::new(log);
        settled.owe();
        settled.owe();
        settled.settle().await.unwrap();
        assert_eq!(settled.synced.load(Ordering::Acquire), 2);
    }
}
