//! The state that the parts of a queued store share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use context_model::time::TxId;
use tokio::sync::{Notify, watch};

use super::journal_writer::JournalWriter;
use super::progress::Progress;
use super::status::{QueueStatus, RemoteIds};
use super::work_areas::AllWorkAreas;
use crate::connection::shown_url;
use crate::{XtdbOptions, XtdbStore};
use context_store::{Result, Store, StoreError};
use context_store_sqlite::SqliteStore;

/// The longest pause between two looks at a node that lacks something.
const LAG_PAUSE: Duration = Duration::from_millis(100);

/// Notice for users about a database that has fewer transactions than before.
const OLDER: &str = "it lacks transactions that it once had; what this machine wrote is sent again";

/// The state that the stores of this process on one journal, the sender and the contact to other clients share.
pub(super) struct Shared {
    pub(super) journal: Arc<SqliteStore>,
    pub(super) options: XtdbOptions,
    pub(super) read_timeout: Duration,
    pub(super) pull_wait: Duration,
    /// Time for which a node that lacks something may read the log without progress, before its database counts as another one.
    pub(super) lag: Duration,
    pub(super) lock_file: PathBuf,
    pub(super) progress: Progress,
    pub(super) status: Mutex<QueueStatus>,
    /// The areas that the stores of this process work in.
    pub(super) areas: Mutex<AllWorkAreas>,
    pub(super) writer: Mutex<JournalWriter>,
    /// Wakes the reader of the list of objects.
    pub(super) list: Notify,
    /// Wakes the sender.
    pub(super) work: Notify,
    /// Counts the requests to send everything immediately.
    pub(super) turn: watch::Sender<u64>,
    /// Number of callers that wait for everything to be sent.
    pub(super) waiting: AtomicUsize,
    /// The newest transaction of the journal that XTDB has, for callers that wait for one.
    pub(super) sent: watch::Sender<TxId>,
    /// True once the sending process has compared the database with the notes about it.
    pub(super) is_compared: watch::Sender<bool>,
    pub(super) is_closing: AtomicBool,
    /// Requests for a check for others' writes: how many were made, and how many of them were answered.
    pub(super) look: Notify,
    pub(super) asked: AtomicU64,
    pub(super) looked: watch::Sender<u64>,
    /// Held while versions of others are written to the journal.
    pub(super) contact: tokio::sync::Mutex<()>,
    /// Held while the database is reached for the first time, so that there is one connection.
    pub(super) connecting: tokio::sync::Mutex<()>,
}

impl Shared {
    pub(super) fn status(&self) -> MutexGuard<'_, QueueStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn areas(&self) -> MutexGuard<'_, AllWorkAreas> {
        self.areas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes' URLs, for messages.
    pub(super) fn urls(&self) -> String {
        urls(&self.options)
    }

    pub(super) fn check_open(&self) -> Result<()> {
        if self.is_closing.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Reaches the database, if that has not happened yet.
    pub(super) async fn connect(&self) -> Result<Arc<XtdbStore>> {
        if let Some(remote) = self.status().remote.clone() {
            return Ok(remote);
        }
        let _one = self.connecting.lock().await;
        if let Some(remote) = self.status().remote.clone() {
            return Ok(remote);
        }
        let writer = Some(self.writer().name);
        let remote = XtdbStore::connect(XtdbOptions { writer, ..self.options.clone() }).await?;
        if !self.progress.was_connected() {
            // A journal that is not new has lost its hint file, and may know objects that others changed since.
            let is_new = self.journal.latest_tx().await? == TxId(0);
            self.progress.connected(if is_new { remote.latest_tx().await? } else { TxId(0) })?;
        }
        if self.is_older(&remote, self.progress.newest()).await? {
            self.forget(&remote, OLDER)?;
        }
        let mut status = self.status();
        status.remote = Some(Arc::clone(&remote));
        status.is_connected = true;
        status.last_error = None;
        Ok(remote)
    }

    /// Probes the node, unless it is known to answer.
    pub(super) async fn probe(&self) -> Result<Arc<XtdbStore>> {
        let remote = self.connect().await?;
        if self.status().is_connected {
            return Ok(remote);
        }
        if self.is_older(&remote, remote.known_tx()).await? {
            self.forget(&remote, OLDER)?;
            return Box::pin(self.connect()).await;
        }
        self.went_well();
        Ok(remote)
    }

    /// True if the database lacks a transaction that it once had: it was restored, emptied or replaced. If a node has not
    /// read all of the log yet, this waits for it, as long as it reads.
    pub(super) async fn is_older(&self, remote: &XtdbStore, wanted: TxId) -> Result<bool> {
        let mut newest = remote.newest_tx().await?;
        let mut since = Instant::now();
        while newest < wanted {
            if since.elapsed() >= self.lag {
                return Ok(true);
            }
            tokio::time::sleep(LAG_PAUSE.min(self.lag)).await;
            let now = remote.newest_tx().await?;
            if now > newest {
                (newest, since) = (now, Instant::now());
            }
        }
        Ok(false)
    }

    /// Forgets the notes about a database that has changed: it was restored, emptied or replaced. The versions that it
    /// lacks are sent again.
    pub(super) fn forget(&self, remote: &Arc<XtdbStore>, why: &str) -> Result<()> {
        tracing::warn!(why, "the database was restored, emptied or replaced");
        self.progress.forget_positions()?;
        let mut status = self.status();
        // Behind a connection that was given up since, the sender has looked at the database once more.
        if is_current(&status, remote) {
            status.remote = None;
            self.is_compared.send_replace(false);
        }
        status.names = RemoteIds::default();
        status.absent.clear();
        status.checked.clear();
        self.areas().ask_again();
        status.notice = Some(format!(
            "the database at {} was restored, emptied or replaced: {why}",
            remote.current_url()
        ));
        drop(status);
        self.list.notify_one();
        self.work.notify_one();
        Ok(())
    }

    /// Notes that the sender has compared the database behind this connection with what was noted about it.
    pub(super) fn compared(&self, remote: &Arc<XtdbStore>) {
        let status = self.status();
        if is_current(&status, remote) {
            self.is_compared.send_replace(true);
        }
    }

    /// The writer that this journal sends as.
    pub(super) fn writer(&self) -> JournalWriter {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn become_writer(&self, writer: JournalWriter) {
        let before = std::mem::replace(
            &mut *self.writer.lock().unwrap_or_else(PoisonError::into_inner),
            writer.clone(),
        );
        if before.name != writer.name {
            self.status().remote = None;
        }
    }

    pub(super) fn went_well(&self) {
        let mut status = self.status();
        status.is_connected = true;
        status.last_error = None;
    }

    pub(super) fn failed(&self, error: &StoreError) {
        tracing::debug!(%error, "XTDB could not be used");
        let mut status = self.status();
        if matches!(error, StoreError::Unavailable(_)) {
            status.is_connected = false;
            status.checked.clear();
        }
        status.last_error = Some(error.to_string());
    }
}

/// True if this is the present connection.
fn is_current(status: &QueueStatus, remote: &Arc<XtdbStore>) -> bool {
    status.remote.as_ref().is_some_and(|current| Arc::ptr_eq(current, remote))
}

/// The nodes' URLs, for messages.
pub(super) fn urls(options: &XtdbOptions) -> String {
    options.urls.iter().map(|url| shown_url(url)).collect::<Vec<_>>().join(", ")
}

pub(super) fn silent(options: &XtdbOptions) -> StoreError {
    StoreError::Unavailable(format!("no XTDB node answers in time at {}", urls(options)))
}

/// A caller that waits for everything to be sent, until this is dropped.
pub(super) struct WaitingCaller<'a>(&'a Shared);

impl<'a> WaitingCaller<'a> {
    pub(super) fn new(shared: &'a Shared) -> Self {
        shared.waiting.fetch_add(1, Ordering::AcqRel);
        shared.turn.send_modify(|n| *n += 1);
        shared.work.notify_one();
        Self(shared)
    }
}

impl Drop for WaitingCaller<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
