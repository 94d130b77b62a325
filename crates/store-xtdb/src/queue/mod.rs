//! XTDB behind a local journal: writes are acknowledged once they are on this machine's disk, and sent in the background.
//!
//! The journal is a SQLite store. It has everything that this machine wrote, and others' versions that it has encountered.
//! It answers every read, and callers see its transaction numbers. A version keeps the valid time that the journal gave
//! it, so its place among the versions of other machines is the same everywhere, in whatever order they arrive. The clocks
//! of machines that share objects should agree, for instance through NTP.
//!
//! Architecture invariants:
//! - A write returns once the journal has it. No write waits for the network.
//! - Versions are sent in the order of the journal's transactions, several in one transaction of XTDB. The progress is in
//!   the writer's mark, which the same transaction writes to XTDB. So neither a crash nor a lost answer loses anything or
//!   sends it twice.
//! - One process at a time sends for a journal: the one that holds a lock, which is released when it ends.
//! - The stores of a process on one journal share a lock, a sender and a bounded number of connections (see `seats`).
//! - An unreachable node delays a reader once, by one time limit, and not at each read.
//! - What another machine wrote before is fetched when a read needs it. If it can't be, the read fails with
//!   `STORE_UNAVAILABLE` instead of giving a part as the whole.
//! - Versions are identified by object, valid time and content, regardless of the writer and even if several share a
//!   millisecond. So nothing is stored twice.
//! - No turn waits for others' changes for longer than a moment. They are fetched in the background, in batches, and the
//!   progress is saved after each.
//! - XTDB is asked for others' changes by [`Store::pull`], once a turn, in the areas that this process works in, and
//!   otherwise only for objects that the journal lacks, and for an area when the process enters it. A list of XTDB's IDs says which objects exist, so that tool calls need no request.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};

use super::areas::Area;
use super::connection::shown_url;
use super::plan::{area_of, id_of};
use super::wire::check;
use context_platform::shared::Seat;
use context_store::clock::Clock;
use context_store::{
    AsOf, Damage, Entry, Erased, Filter, Hit, Outline, Receipt, Result, Search, Store, StoreError,
    Transaction, Version, Write,
};
use context_store_sqlite::SqliteStore;

mod catch_up;
mod contact;
mod core;
mod forward;
mod journal_writer;
mod options;
mod owner;
mod past;
mod pending;
mod progress;
mod reads;
mod remote;
mod seats;
mod shared;
mod standing;
mod status;
mod ties;
mod work_areas;

pub use options::QueueOptions;
pub use status::QueueState;

use self::core::QueueCore;
use seats::Joined;
use shared::{Shared, WaitingCaller};
use status::JournalWrite;
use work_areas::WorkAreas;

/// A store on XTDB that keeps working while no node can be reached; see the module's documentation.
///
/// [`Store::search`] and [`Store::changes_since`] cover the journal: everything that this machine wrote or read, without
/// others' writes that no client here has used.
pub struct QueuedStore {
    shared: Arc<Shared>,
    core: Seat<QueueCore>,
    /// The journal by the path that this store was opened by. It is closed with this store, the core's with the last one.
    journal: Arc<SqliteStore>,
    work: WorkAreas,
    close_timeout: Duration,
    is_closed: AtomicBool,
}

impl QueuedStore {
    /// Opens the journal and starts to send the queue. Needs a tokio runtime.
    ///
    /// A journal that has reached its database before opens without it.
    ///
    /// # Errors
    /// Those of the journal. `INVALID_ARGUMENT` for malformed URLs. `STORE_UNAVAILABLE` if the journal has
    /// never reached its database and can't reach it now, because the URL may be wrong.
    pub async fn open(options: QueueOptions) -> Result<Arc<Self>> {
        let (journal, durability) = (options.journal.clone(), options.durability);
        Self::open_alone(options, || SqliteStore::open_shared(journal, durability)).await
    }

    /// As [`QueuedStore::open`], with the given clock. The journal is not shared with other stores of this process.
    pub async fn open_with(options: QueueOptions, clock: Clock) -> Result<Arc<Self>> {
        let (journal, durability) = (options.journal.clone(), options.durability);
        Self::open_alone(options, || SqliteStore::open_with(journal, durability, clock)).await
    }

    /// As [`QueuedStore::open`]; stores that this process opens so on one journal, with the same options, share its lock, its
    /// sender and its connections to the nodes. Each is closed for itself, and the last one ends these.
    pub async fn open_shared(options: QueueOptions) -> Result<Arc<Self>> {
        let close_timeout = Duration::from_millis(options.close_timeout_ms);
        let Joined { core, journal, was_open } = seats::join(options).await?;
        let store = Self::seated(core, journal, close_timeout);
        if was_open {
            store.core.look().await;
        }
        if store.work.number > 0 {
            // Others may have written since the first one, where no store of this process works.
            store.shared.status().absent.clear();
            store.shared.list.notify_one();
        }
        Ok(store)
    }

    async fn open_alone(
        options: QueueOptions,
        journal: impl FnOnce() -> Result<Arc<SqliteStore>>,
    ) -> Result<Arc<Self>> {
        let close_timeout = Duration::from_millis(options.close_timeout_ms);
        let core = Seat::alone(QueueCore::open(options, journal).await?);
        let journal = Arc::clone(&core.shared.journal);
        Ok(Self::seated(core, journal, close_timeout))
    }

    fn seated(core: Seat<QueueCore>, journal: Arc<SqliteStore>, close_timeout: Duration) -> Arc<Self> {
        let shared = Arc::clone(&core.shared);
        let work = shared.areas().begin();
        let is_closed = AtomicBool::new(false);
        Arc::new(Self { shared, core, journal, work, close_timeout, is_closed })
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            Err(StoreError::Closed)
        } else {
            self.shared.check_open()
        }
    }

    /// The state of the queue. Reads at most one row of the journal.
    pub fn state(&self) -> QueueState {
        let sent = *self.shared.sent.borrow();
        let (is_connected, queued, is_sender) = {
            let status = self.shared.status();
            (status.is_connected, status.latest.0.saturating_sub(sent.0), status.is_sender)
        };
        // A closed journal can no longer be asked.
        let since = if queued > 0 { self.journal.time_after(sent).unwrap_or(None) } else { None };
        let status = self.shared.status();
        QueueState {
            is_connected,
            url: match (&status.remote, &status.last_url) {
                (Some(remote), _) => remote.current_url().to_owned(),
                (None, Some(url)) => url.clone(),
                (None, None) => {
                    self.shared.options.urls.first().map(|url| shown_url(url)).unwrap_or_default()
                }
            },
            queued,
            waiting_since: since,
            is_sender,
            behind: status.behind,
            last_error: status.last_error.clone(),
            notice: status.notice.clone(),
        }
    }

    async fn wait_until_sent(&self, limit: Duration) -> Result<()> {
        let wanted = self.journal.latest_tx().await?;
        let _waiting = WaitingCaller::new(&self.shared);
        let mut sent = self.shared.sent.subscribe();
        let mut compared = self.shared.is_compared.subscribe();
        let is_connected = self.shared.status().is_connected;
        let all = async {
            // The notes may be about a database that has been replaced since.
            let is_known = !is_connected || compared.wait_for(|is| *is).await.is_ok();
            is_known && sent.wait_for(|tx| *tx >= wanted).await.is_ok()
        };
        if tokio::time::timeout(limit, all).await == Ok(true) {
            return Ok(());
        }
        let QueueState { queued, last_error, .. } = self.state();
        Err(StoreError::Unavailable(format!(
            "{queued} transactions wait for XTDB ({}); they stay in the journal and are sent once it answers",
            last_error.as_deref().unwrap_or("it is slow")
        )))
    }
}

#[async_trait]
impl Store for QueuedStore {
    async fn transact_marked(&self, transaction: Transaction, marks: Vec<Option<Erased>>) -> Result<Receipt> {
        self.check_open()?;
        for write in &transaction.writes {
            if let Write::Put { document, .. } = write {
                check(document)?;
            }
        }
        let ids: Vec<ObjectId> = transaction.writes.iter().map(|write| id_of(write).clone()).collect();
        let areas: Vec<Area> = transaction.writes.iter().filter_map(area_of).collect();
        // XTDB keeps two versions of an object in one transaction only if their valid times differ, and a machine with a
        // slow clock must be able to replace the version of a faster one.
        let receipt = self.journal.transact_after_latest(transaction, &marks).await?;
        // The next turn fetches others' writes there.
        for area in areas {
            self.work.enter(area);
        }
        let mut status = self.shared.status();
        status.latest = status.latest.max(receipt.tx_id);
        if receipt.written.contains(&true) {
            let written = JournalWrite::of(ids, &receipt.written);
            status.written.insert(receipt.tx_id, written);
            drop(status);
            self.shared.work.notify_one();
        }
        Ok(receipt)
    }

    async fn get(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        self.check_open()?;
        self.shared.get(&self.work, id, at).await
    }

    async fn get_many(&self, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>> {
        self.check_open()?;
        self.shared.get_many(&self.work, ids, at).await
    }

    async fn outlines(&self, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>> {
        self.check_open()?;
        self.shared.outlines(&self.work, ids).await
    }

    async fn version(&self, id: &ObjectId, tx: TxId) -> Result<Option<Version>> {
        self.check_open()?;
        self.journal.version(id, tx).await
    }

    async fn history(&self, id: &ObjectId) -> Result<Vec<Version>> {
        self.check_open()?;
        self.shared.know_past(id).await?;
        self.journal.history(id).await
    }

    async fn history_page(&self, id: &ObjectId, after: TxId, most: usize) -> Result<Vec<Version>> {
        self.check_open()?;
        if after == TxId(0) {
            self.shared.bring_history(id).await?;
        }
        self.journal.history_page(id, after, most).await
    }

    async fn history_part(
        &self,
        id: &ObjectId,
        after: Option<(Timestamp, TxId)>,
        most: usize,
    ) -> Result<Vec<Version>> {
        self.check_open()?;
        if after.is_none() {
            self.shared.know_past(id).await?;
        }
        self.journal.history_part(id, after, most).await
    }

    async fn journal(&self, id: &ObjectId) -> Result<Vec<Entry>> {
        self.check_open()?;
        self.shared.know_past(id).await?;
        self.journal.journal(id).await
    }

    async fn query(&self, filter: &Filter) -> Result<Vec<ObjectId>> {
        self.check_open()?;
        self.shared.query(filter).await
    }

    async fn latest_tx(&self) -> Result<TxId> {
        self.check_open()?;
        let latest = self.journal.latest_tx().await?;
        let mut status = self.shared.status();
        status.latest = status.latest.max(latest);
        Ok(latest)
    }

    async fn pull(&self) -> Result<()> {
        self.check_open()?;
        let pulled = self.shared.pull(&self.work).await;
        self.shared.turn.send_modify(|n| *n += 1);
        pulled
    }

    async fn changes_since(&self, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>> {
        self.check_open()?;
        self.journal.changes_since(tx).await
    }

    async fn search(&self, query: &Search) -> Result<Vec<Hit>> {
        self.check_open()?;
        self.journal.search(query).await
    }

    async fn local_value(&self, name: &str, default: &str) -> Result<String> {
        self.check_open()?;
        self.journal.local_value(name, default).await
    }

    fn read_only(self: Arc<Self>) -> Result<Arc<dyn Store>> {
        self.check_open()?;
        Arc::clone(&self.journal).read_only()
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = self.journal.files();
        files.push(self.shared.lock_file.clone());
        files.push(self.shared.progress.path().to_owned());
        files
    }

    async fn verify(&self) -> Result<Vec<Damage>> {
        self.check_open()?;
        self.journal.verify().await
    }

    async fn flush(&self) -> Result<()> {
        self.check_open()?;
        self.journal.flush().await?;
        self.wait_until_sent(self.close_timeout).await
    }

    /// Waits for the queue within the time limit (if the node was already unreachable, only as long as a read does) and
    /// closes the journal. It keeps what is left, and the next open sends it. [`QueuedStore::state`] says how much that
    /// is. Other stores of this process that share the queue continue.
    async fn close(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let is_connected = self.shared.status().is_connected;
        let patience = if is_connected { self.close_timeout } else { self.shared.read_timeout };
        if let Err(error) = self.wait_until_sent(patience.min(self.close_timeout)).await {
            tracing::warn!(%error, "closing before everything was sent to XTDB");
        }
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let ended = if self.core.leave() { self.core.close().await } else { Ok(()) };
        self.journal.close().await.and(ended)
    }
}

impl Drop for QueuedStore {
    fn drop(&mut self) {
        if self.core.leave() {
            self.core.end();
        }
    }
}
