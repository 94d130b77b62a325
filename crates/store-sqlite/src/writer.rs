//! The one connection that writes. If it is free, a transaction runs on its caller's thread, because a commit takes no
//! longer than waking another thread and being woken by it. Transactions that arrive meanwhile wait for the writer's own
//! thread, which runs them together with one durable commit.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::hooks::Wal;
use rusqlite::{Connection, TransactionBehavior};

mod upkeep;

use super::apply::{self, Newest};
use super::checkpointer::{CheckpointGate, Checkpointer, LONG};
use super::connect::{self, PATIENCE, patiently_for};
use super::error::Result;
use super::forgotten::Forgotten;
use super::index;
use super::local::set_local;
use super::prepare::Prepared;
use super::settle::Durability;
use super::store_file::StoreFile;
use context_store::backend::Heads;
use context_store::clock::Clock;
use context_store::{Receipt, StoreError};

/// Interval between checks of the store's limits.
const LIMIT_TIME: Duration = Duration::from_secs(600);

/// After this many further pages of a long log, copying it back is requested again.
const STEP: i64 = 64;

/// So many pages of the log are copied back between two transactions: a few milliseconds.
const LITTLE: i64 = 128;

/// From this many pages on, the log is restarted even if some are left: 16 MB.
const LONGEST: i64 = 2_048;

/// The longest wait of the search index for a lock of another process: a search can do without.
const INDEX_PATIENCE: Duration = Duration::from_millis(100);

pub(super) struct Writer {
    pub connection: Connection,
    place: Arc<StoreFile>,
    clock: Clock,
    heads: RefCell<Heads>,
    forgotten: RefCell<Forgotten>,
    checkpointer: Checkpointer,
    gate: Arc<CheckpointGate>,
    /// The length of the log in pages after this connection's last commit.
    log: Arc<AtomicI64>,
    /// Length of the log when copying it back was last requested.
    asked: i64,
    /// From which length on it is to be restarted.
    restarted_from: i64,
    /// True if versions may wait for the search index.
    pub unindexed: bool,
    /// True if nothing was written since the limits were last checked.
    pub is_within: bool,
    /// When the limits were last checked.
    looked: Option<Instant>,
    /// When the last work ended.
    pub worked: Instant,
    /// True if commits are synced now; `None` if they never are.
    synced: Option<Cell<bool>>,
    /// True to wait only briefly for locks of other processes.
    is_hurried: Arc<AtomicBool>,
}

impl Writer {
    /// Takes over the connection that writes.
    pub(crate) fn new(
        mut connection: Connection,
        place: Arc<StoreFile>,
        gate: Arc<CheckpointGate>,
        clock: Clock,
        durability: Durability,
    ) -> Result<Self> {
        let log = Arc::new(AtomicI64::new(0));
        let length = Arc::clone(&log);
        connection.wal_hook(Some(move |_: &mut Wal, pages: c_int| {
            length.store(pages.into(), Ordering::Relaxed);
            Ok(())
        }))?;
        let is_hurried = Arc::new(AtomicBool::new(false));
        let hurried = Arc::clone(&is_hurried);
        connect::wait_for_locks(&mut connection, move || patience(hurried.load(Ordering::Relaxed)))?;
        let synced = (durability == Durability::Power).then(|| Cell::new(true));
        let (heads, worked) = (RefCell::default(), Instant::now());
        let (asked, unindexed) = (0, false);
        let checkpointer = Checkpointer::new(Arc::clone(&place));
        Ok(Self {
            connection,
            place,
            clock,
            heads,
            forgotten: RefCell::default(),
            checkpointer,
            gate,
            log,
            asked,
            restarted_from: 0,
            unindexed,
            is_within: true,
            looked: None,
            worked,
            synced,
            is_hurried,
        })
    }

    /// Runs a separate write transaction.
    pub(crate) fn write<T>(&self, mut work: impl FnMut(&Connection) -> Result<T>) -> Result<T> {
        self.sync_commits(true)?;
        patiently_for(patience(self.is_hurried.load(Ordering::Relaxed)), || {
            let begin = TransactionBehavior::Immediate;
            let transaction = rusqlite::Transaction::new_unchecked(&self.connection, begin)?;
            let value = work(&transaction)?;
            self.place.check()?;
            transaction.commit()?;
            Ok(value)
        })
    }

    /// The same, but only if no lock has to be waited for.
    fn write_hurriedly<T>(&self, work: impl FnMut(&Connection) -> Result<T>) -> Result<T> {
        self.is_hurried.store(true, Ordering::Relaxed);
        let result = self.write(work);
        self.is_hurried.store(false, Ordering::Relaxed);
        result
    }

    /// Runs transactions, together if possible. Returns one result for each.
    #[tracing::instrument(name = "store_commit", level = "debug", skip_all)]
    pub(crate) fn commit(&mut self, group: &[Prepared]) -> Vec<context_store::Result<Receipt>> {
        self.unindexed = true;
        let results = match self.attempt(group) {
            Ok(results) => results,
            Err(error) if group.len() == 1 => vec![Err(error.into())],
            // One of them may have been too large for the disk; the others must not fail because of it.
            Err(_) => group.chunks(1).map(|one| self.attempt(one)?.remove(0)).collect(),
        };
        self.checkpoint();
        self.worked = Instant::now();
        results
    }

    #[tracing::instrument(name = "store_sync", level = "debug", skip_all)]
    fn sync_commits(&self, wanted: bool) -> Result<()> {
        if let Some(synced) = self.synced.as_ref().filter(|synced| synced.get() != wanted) {
            self.connection.pragma_update(None, "synchronous", if wanted { "full" } else { "normal" })?;
            synced.set(wanted);
        }
        Ok(())
    }

    fn attempt(&self, group: &[Prepared]) -> Result<Vec<context_store::Result<Receipt>>> {
        self.sync_commits(!group.iter().all(|work| work.is_deferred))?;
        let results = patiently_for(PATIENCE, || {
            let begin = TransactionBehavior::Immediate;
            let transaction = rusqlite::Transaction::new_unchecked(&self.connection, begin)?;
            let mut newest = Newest::read(&transaction)?;
            let mut results = Vec::with_capacity(group.len());
            for work in group {
                results.push(self.one(&transaction, &mut newest, work, group.len() > 1)?);
            }
            // A commit to a file that no longer exists would be lost.
            self.place.check()?;
            transaction.commit()?;
            Ok(results)
        });
        if results.is_err() {
            self.heads.borrow_mut().clear();
        }
        results
    }

    /// One transaction of a group. A refused one leaves no trace; a disk failure ends the whole group.
    fn one(
        &self,
        connection: &Connection,
        newest: &mut Newest,
        work: &Prepared,
        grouped: bool,
    ) -> Result<context_store::Result<Receipt>> {
        if !grouped {
            return Ok(Ok(self.applied(connection, newest, work)?));
        }
        let before = *newest;
        connection.prepare_cached("SAVEPOINT one")?.execute([])?;
        match self.applied(connection, newest, work) {
            Ok(receipt) => {
                connection.prepare_cached("RELEASE one")?.execute([])?;
                Ok(Ok(receipt))
            }
            Err(error @ (StoreError::Conflict(_) | StoreError::Invalid(_) | StoreError::Corrupt(_))) => {
                *newest = before;
                self.heads.borrow_mut().clear();
                connection.execute_batch("ROLLBACK TO one; RELEASE one")?;
                Ok(Err(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn applied(
        &self,
        connection: &Connection,
        newest: &mut Newest,
        work: &Prepared,
    ) -> context_store::Result<Receipt> {
        let mut forgotten = self.forgotten.borrow_mut();
        let gone = forgotten.newest(connection)?;
        Ok(apply::apply(connection, &self.clock, newest, &mut self.heads.borrow_mut(), work, gone)?)
    }

    /// Advances the search index by one portion. If that fails, it is tried again before the next search.
    pub(crate) fn index_some(&mut self) {
        match self.write_hurriedly(index::portion) {
            Ok(more) => self.unindexed = more,
            Err(error) => {
                tracing::warn!(code = %error.into_store().code(), "the search index could not be advanced");
                self.unindexed = false;
            }
        }
        self.checkpoint();
        self.worked = Instant::now();
    }

    /// Advances the search index by one portion, unless another process holds the lock. True if more may be waiting.
    pub(crate) fn index_more(&mut self) -> Result<bool> {
        self.unindexed = self.write_hurriedly(index::portion)?;
        Ok(self.unindexed)
    }

    /// Indexes all versions written so far. Another process may continue to write, so that there is always more.
    pub(crate) fn index_all(&mut self) -> Result<()> {
        let newest = "SELECT coalesce(max(seq), 0) FROM versions";
        let newest: i64 = self.connection.query_row(newest, [], |row| row.get(0))?;
        let indexed = "SELECT seq FROM indexed";
        loop {
            self.unindexed = self.write(index::portion)?;
            let indexed: i64 = self.connection.query_row(indexed, [], |row| row.get(0))?;
            if !self.unindexed || indexed >= newest {
                return Ok(());
            }
        }
    }

    /// Brings the search index up to date and checks that it is intact.
    pub(crate) fn check_index(&mut self) -> Result<()> {
        self.index_all()?;
        self.write(|connection| {
            let check = "INSERT INTO contents_fts (contents_fts) VALUES ('integrity-check')";
            connection.execute(check, [])?;
            Ok(())
        })
    }

    /// Keeps the log short. The other thread copies it back while this one writes, but some new pages are always left:
    /// under steady writing the log would never start over. So once little is left, this thread copies the rest between two
    /// of its transactions.
    #[tracing::instrument(name = "store_checkpoint", level = "debug", skip_all)]
    fn checkpoint(&mut self) {
        let pages = self.log.load(Ordering::Relaxed);
        if pages < self.asked {
            // The log was restarted.
            self.asked = 0;
            self.restarted_from = 0;
        }
        if pages >= LONG && pages - self.asked >= STEP {
            self.checkpointer.nudge();
            self.asked = pages;
        }
        let is_due = pages >= 2 * LONG && self.checkpointer.left() <= LITTLE || pages >= LONGEST;
        if is_due && pages >= self.restarted_from {
            let start = Instant::now();
            let restarted = match pages {
                LONGEST.. => self.gate.while_closed(|| self.restart_log()),
                _ => self.restart_log(),
            };
            match restarted {
                Ok(true) => {}
                // The other thread is copying, and ends soon.
                Ok(false) if start.elapsed() < INDEX_PATIENCE => self.restarted_from = pages + STEP,
                // A connection reads an older state for longer than a write should wait.
                Ok(false) => self.restarted_from = pages + LONG,
                Err(error) => {
                    self.restarted_from = pages + LONG;
                    tracing::warn!(code = %error.into_store().code(), "the log could not be restarted");
                }
            }
        }
    }

    /// Copies the rest of the log and empties it, unless another connection copies it or reads an older state for longer
    /// than a moment. True if the log is empty.
    fn restart_log(&self) -> Result<bool> {
        self.is_hurried.store(true, Ordering::Relaxed);
        let is_held = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        self.is_hurried.store(false, Ordering::Relaxed);
        let is_held: bool = is_held?;
        if !is_held {
            self.log.store(0, Ordering::Relaxed);
        }
        Ok(!is_held)
    }

    /// Copies everything back into the database, durably even if commits are not synced.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.index_all()?;
        self.checkpointer.copy()
    }

    /// A value of the `local` table; the first default is kept.
    pub(crate) fn local_value(&self, name: &str, default: &str) -> Result<String> {
        self.write(|connection| {
            connection.execute("INSERT OR IGNORE INTO local (name, value) VALUES (?, ?)", [name, default])?;
            Ok(connection.query_row("SELECT value FROM local WHERE name = ?", [name], |row| row.get(0))?)
        })
    }

    /// Sets a value of the `local` table.
    pub(crate) fn set_local(&self, name: &str, value: &str) -> Result<()> {
        self.write(|connection| set_local(connection, name, value))
    }

    /// Sets many values of the `local` table to the same.
    pub(crate) fn set_locals(&self, names: &[String], value: &str) -> Result<()> {
        self.write(|connection| names.iter().try_for_each(|name| set_local(connection, name, value)))
    }
}

fn patience(is_hurried: bool) -> Duration {
    if is_hurried { INDEX_PATIENCE } else { PATIENCE }
}
