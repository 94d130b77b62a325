//! What the parts of a queued store share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use tokio::sync::{Notify, watch};

use super::progress::Progress;
use super::status::QueueStatus;
use crate::connection::shown_url;
use crate::plan::id_of;
use crate::{XtdbOptions, XtdbStore};
use context_store::{Result, Store, StoreError, Transaction, Write, clock};
use context_store_sqlite::SqliteStore;

/// The state that the store, the sender and the contact to other clients share.
pub(super) struct Shared {
    pub(super) journal: Arc<SqliteStore>,
    pub(super) options: XtdbOptions,
    pub(super) read_timeout: Duration,
    pub(super) pull_wait: Duration,
    pub(super) lock_file: PathBuf,
    pub(super) progress: Progress,
    pub(super) status: Mutex<QueueStatus>,
    /// Wakes the sender.
    pub(super) work: Notify,
    /// Counts the requests to send everything immediately.
    pub(super) turn: watch::Sender<u64>,
    /// How many callers wait for everything to be sent.
    pub(super) waiting: AtomicUsize,
    /// The newest transaction of the journal that XTDB has, for callers that wait for one.
    pub(super) sent: watch::Sender<TxId>,
    pub(super) is_closing: AtomicBool,
    /// Requests for a check for others' writes: how many were made, and how many of them were answered.
    pub(super) look: Notify,
    pub(super) asked: AtomicU64,
    pub(super) looked: watch::Sender<u64>,
    /// Held while versions of others are written to the journal.
    pub(super) contact: tokio::sync::Mutex<()>,
}

impl Shared {
    pub(super) fn status(&self) -> MutexGuard<'_, QueueStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
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
        let remote = XtdbStore::connect(self.options.clone()).await?;
        if !self.progress.was_connected() {
            self.progress.connected(remote.latest_tx().await?)?;
        }
        let mut status = self.status();
        status.remote = Some(Arc::clone(&remote));
        status.is_connected = true;
        status.last_error = None;
        Ok(remote)
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
        }
        status.last_error = Some(error.to_string());
    }

    /// Dates a write of an object after its latest version, if that is not over yet: XTDB keeps two versions of an object in
    /// one transaction only if their valid times differ, and a machine with a slow clock could not replace what a faster one
    /// wrote. Returns the transaction without that if it dates a patch, which the journal may refuse.
    pub(super) fn date(&self, transaction: &mut Transaction) -> Option<Transaction> {
        let status = self.status();
        let now = clock::system()();
        let after = |id: &ObjectId| {
            let time = status.newest.get(id).filter(|time| **time >= now)?;
            Some(Timestamp::from_millis(time.millis() + 1))
        };
        let is_dated_patch =
            |write: &Write| matches!(write, Write::Patch { id, valid_time: None, .. } if after(id).is_some());
        let undated = transaction.writes.iter().any(is_dated_patch).then(|| transaction.clone());
        for write in &mut transaction.writes {
            let time = after(id_of(write));
            let (Write::Put { valid_time, .. } | Write::Patch { valid_time, .. }) = write;
            *valid_time = valid_time.or(time);
        }
        undated
    }
}

/// The nodes' URLs, for messages.
pub(super) fn urls(options: &XtdbOptions) -> String {
    options.urls.iter().map(|url| shown_url(url)).collect::<Vec<_>>().join(", ")
}

/// A caller that waits for everything to be sent, until this is dropped.
pub(super) struct WaitingCaller<'a>(&'a Shared);

impl<'a> WaitingCaller<'a> {
    pub fn new(shared: &'a Shared) -> Self {
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
