//! What is open for a journal: the journal, the way to the nodes, and the tasks that send and fetch. Several stores of a process
//! may use the same.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use context_model::time::TxId;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::QueueOptions;
use super::journal_writer::JournalWriter;
use super::progress::Progress;
use super::shared::{Shared, silent};
use super::status::QueueStatus;
use super::work_areas::AllWorkAreas;
use super::{contact, forward};
use crate::XtdbStore;
use context_platform::shared::Shareable;
use context_store::{Result, Store, StoreError};
use context_store_sqlite::SqliteStore;

/// The journal, what its parts share, and the tasks. They end with this value.
pub(super) struct QueueCore {
    pub shared: Arc<Shared>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Shareable for QueueCore {
    /// With the journal's path without links to its folder.
    type Key = QueueOptions;
    /// The last failure, and when that was.
    type Opening = tokio::sync::Mutex<Option<(Instant, StoreError)>>;

    /// Not after the end of a task, or an exchange of the journal.
    fn is_sound(&self) -> bool {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().all(|task| !task.is_finished())
            && self.shared.check_open().is_ok()
            && self.shared.journal.is_sound()
    }
}

impl QueueCore {
    /// Opens the journal, reaches the database if it can be reached, and starts the tasks.
    ///
    /// # Errors
    /// As [`super::QueuedStore::open`].
    pub(super) async fn open(
        options: QueueOptions,
        journal: impl FnOnce() -> Result<Arc<SqliteStore>>,
    ) -> Result<Self> {
        let read_timeout = Duration::from_millis(options.read_timeout_ms.max(1));
        let progress = Progress::open(beside(&options.journal, "progress"))?;
        if !progress.was_connected() && !options.journal.exists() {
            // If the first open can't reach the database, it leaves nothing behind.
            let reached =
                tokio::time::timeout(read_timeout * 2, XtdbStore::connect(options.xtdb.clone())).await;
            reached.unwrap_or_else(|_| Err(silent(&options.xtdb)))?;
        }
        let journal = journal()?;
        let xtdb = options.xtdb;
        let writer = JournalWriter::of(&journal).await?;
        let latest = journal.latest_tx().await?;
        let (sent, _) = watch::channel(TxId(progress.sent().place.tx));
        let shared = Arc::new(Shared {
            journal,
            options: xtdb,
            read_timeout,
            pull_wait: Duration::from_millis(options.pull_wait_ms),
            lag: Duration::from_millis(options.lag_ms),
            lock_file: beside(&options.journal, "lock"),
            progress,
            writer: Mutex::new(writer),
            list: Notify::new(),
            status: Mutex::new(QueueStatus { latest, ..QueueStatus::default() }),
            areas: Mutex::new(AllWorkAreas::default()),
            work: Notify::new(),
            turn: watch::Sender::new(0),
            waiting: AtomicUsize::new(0),
            sent,
            is_compared: watch::Sender::new(false),
            is_closing: AtomicBool::new(false),
            look: Notify::new(),
            asked: AtomicU64::new(0),
            looked: watch::Sender::new(0),
            contact: tokio::sync::Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        });
        if let Some(place) = shared.progress.journal()
            && !shared.fits(place)?
        {
            // The journal is older than the hint file, and may lack versions read since.
            shared.progress.forget_positions()?;
        }
        let first = tokio::time::timeout(shared.read_timeout * 2, shared.connect()).await;
        let first = first.unwrap_or_else(|_| Err(silent(&shared.options)));
        if let Err(error) = first {
            shared.failed(&error);
            if matches!(error, StoreError::Invalid(_)) || !shared.progress.was_connected() {
                let _ = shared.journal.close().await;
                return Err(error);
            }
        }
        let tasks = [
            tokio::spawn(forward::run(Arc::clone(&shared))),
            tokio::spawn(contact::list(Arc::clone(&shared))),
            tokio::spawn(contact::follow(Arc::clone(&shared))),
        ];
        Ok(Self { shared, tasks: Mutex::new(tasks.into()) })
    }

    /// Looks whether a database that could not be reached can be reached now, for as long as an open waits for one.
    pub(super) async fn look(&self) {
        let shared = &self.shared;
        if shared.status().is_connected {
            return;
        }
        let probed = tokio::time::timeout(shared.read_timeout * 2, shared.probe()).await;
        if let Err(error) = probed.unwrap_or_else(|_| Err(silent(&shared.options))) {
            shared.failed(&error);
        }
    }

    /// Ends the tasks without waiting.
    pub(super) fn end(&self) {
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }

    /// Ends everything, and waits for it.
    pub(super) async fn close(&self) -> Result<()> {
        self.shared.is_closing.store(true, Ordering::Release);
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            task.abort();
            let _ = task.await;
        }
        {
            // Its connections end with it, also while a closed store is still held.
            let mut status = self.shared.status();
            status.last_url = status.remote.take().map(|remote| remote.current_url().to_owned());
        }
        self.shared.journal.close().await
    }
}

impl Drop for QueueCore {
    fn drop(&mut self) {
        self.end();
    }
}

fn beside(journal: &Path, extension: &str) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}
