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

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use rusqlite::Connection;
use tokio::sync::oneshot;

use self::absent::Absent;
use self::copier::Copier;
pub use self::durability::Durability;
use self::error::stopped;
use self::limit::Limit;
use self::place::Place;
use self::pool::Pool;
use self::prepare::Prepared;
use self::read::Quick;
use self::runtime::may_wait;
use self::settle::Settled;
pub use self::size::Size;
use self::writer::{Desk, INDEX_TIME, Job, Writer};
use crate::clock::{self, Clock};
use crate::sessions::{self, Limits, Prune, Pruned, SessionSummary};
use crate::{
    AsOf, Damage, Entry, Erase, Erased, ErasedCount, Filter, Hit, Outline, Receipt, Result, Search, Store,
    StoreError, Transaction, Version,
};

mod absent;
mod apply;
mod column;
mod connect;
mod copier;
mod durability;
mod erase;
mod error;
mod form;
mod index;
mod limit;
mod migrate;
mod pack;
mod page;
mod place;
mod pool;
mod prepare;
mod prune;
mod read;
mod rewrite;
mod row;
mod runtime;
mod search;
mod settle;
mod size;
mod useful;
mod verify;
mod writer;

/// How the names of notes in the `local` table begin.
const NOTE: &str = "note:";

/// About how many bytes a part of a history has at most.
const PAGE_BYTES: usize = 8 << 20;

/// Up to this many objects are looked up on the caller's own thread.
const FEW: usize = 8;

/// A store in a file.
pub struct SqliteStore {
    jobs: RwLock<Option<Sender<Job>>>,
    desk: Arc<Desk>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pool: Pool,
    /// Separate from the others, so that a long search delays no other read.
    searches: Pool,
    /// `None` if nothing is synced anyway.
    settled: Option<Settled>,
    place: Arc<Place>,
    clock: Clock,
    absent: Arc<Absent>,
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
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn open_with(path: impl AsRef<Path>, durability: Durability, clock: Clock) -> Result<Arc<Self>> {
        let path = std::path::absolute(path)
            .map_err(|e| StoreError::Unavailable(format!("the store's path can't be used: {e}")))?;
        let connection = connect::writer(&path, durability)?;
        let place = Arc::new(Place::new(&path));
        let pool = Pool::new(Arc::clone(&place), "store-read", |_| Ok(()))?;
        let searches = Pool::new(Arc::clone(&place), "store-search", search::prepare)?;
        let (sender, jobs) = mpsc::channel();
        let copier = Copier::new(Arc::clone(&place));
        let writer = Writer::new(connection, Arc::clone(&place), Arc::clone(&clock), copier, durability)?;
        let desk = Arc::new(Desk::new(writer));
        let working = Arc::clone(&desk);
        let thread = std::thread::Builder::new()
            .name("store-write".into())
            .spawn(move || working.work(&jobs))
            .map_err(|e| StoreError::Unavailable(format!("no thread could be started: {e}")))?;
        let (jobs, thread) = (RwLock::new(Some(sender)), Mutex::new(Some(thread)));
        let settled = (durability == Durability::Power).then(|| Settled::new(connect::log(&path)));
        let absent = Arc::default();
        Ok(Arc::new(Self { jobs, desk, thread, pool, searches, settled, place, clock, absent }))
    }

    /// What the file contains, and what takes up its space.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `STORE_CORRUPT`, `CLOSED`.
    pub async fn size(&self) -> Result<Size> {
        self.pool.away(size::size).await
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

    /// Erases what the owner of the store wants to forget: from the texts, the payloads, the search index, the
    /// log and the free pages. Envelopes, hashes and times stay, and the versions say when and why; none of these
    /// texts is stored again. The whole file is rewritten, which takes time in proportion to its size, and free space
    /// of twice its length.
    ///
    /// If the process ends midway, either everything or nothing is erased; repeating the call completes it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an unknown object, path or session and for a text that is too short, `STORE_FULL` without
    /// enough free space. Nothing is erased then. `STORE_UNAVAILABLE`, `STORE_CORRUPT`, `CLOSED`.
    pub async fn erase(&self, wanted: Vec<Erase>, why: &str) -> Result<ErasedCount> {
        let mark = Erased { at: (self.clock)(), why: why.to_owned() };
        self.call(move |writer| writer.erase(&wanted, &mark)).await
    }

    /// Removes sessions from the store, together with what only they have encountered. They may be imported again.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if neither an age, a size nor a project is given. `STORE_FULL`, `STORE_UNAVAILABLE`,
    /// `STORE_CORRUPT`, `CLOSED`.
    pub async fn prune(&self, wanted: Prune) -> Result<Pruned> {
        let Prune { before, max_bytes, project, is_dry_run } = wanted;
        if before.is_none() && max_bytes.is_none() && project.is_none() {
            return Err(StoreError::Invalid(
                "say which sessions to remove: by age, by size or by project".into(),
            ));
        }
        let summaries = sessions::summaries(self).await?;
        let is_in = |summary: &&SessionSummary| {
            let Some(project) = project.as_deref().map(|project| project.trim_end_matches('/')) else {
                return true;
            };
            let below = summary.folder.as_deref().and_then(|folder| folder.strip_prefix(project));
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let of_project = summaries.iter().filter(is_in).map(|summary| summary.id.clone()).collect();
        let before =
            if max_bytes.is_none() { before.or(Some(Timestamp::from_millis(i64::MAX))) } else { before };
        let which = prune::Which { among: Some(of_project), before, max_bytes };
        let left = self.call(move |writer| writer.prune(&which, is_dry_run, true)).await?;
        let named = |id: &_| summaries.iter().find(|summary| summary.id == *id).cloned();
        Ok(Pruned { sessions: left.sessions.iter().filter_map(named).collect(), ..left.pruned })
    }

    /// The limits that were set.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `CLOSED`.
    pub async fn limits(&self) -> Result<Limits> {
        self.pool.away(prune::limits).await
    }

    /// Sets the limits.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `STORE_FULL`, `CLOSED`.
    pub async fn set_limits(&self, limits: Limits) -> Result<()> {
        let json = serde_json::to_string(&limits)
            .map_err(|_| StoreError::Invalid("these limits can't be written".into()))?;
        self.call(move |writer| writer.set_local(prune::LIMITS, &json)).await
    }

    /// When the first transaction after this one was made. A read of one row on the caller's thread.
    #[cfg(feature = "xtdb")]
    pub(crate) fn time_after(&self, tx: TxId) -> Result<Option<context_model::time::Timestamp>> {
        self.here(|connection| read::time_after(connection, tx))
    }

    /// Which objects the transactions after this one wrote: at most this many writes, of whole transactions.
    #[cfg(feature = "xtdb")]
    pub(crate) async fn written_after(&self, tx: TxId, most: usize) -> Result<Vec<(TxId, ObjectId)>> {
        self.pool.away(move |connection| page::written_after(connection, tx, most)).await
    }

    /// How many versions of an object, up to this transaction, have the same valid time and content as this one.
    #[cfg(feature = "xtdb")]
    pub(crate) async fn count_like(&self, version: &Version, until: TxId) -> Result<usize> {
        let (id, valid_time) = (version.document.id().clone(), version.valid_time);
        let mark = (version.document.content_hash(), version.document.source_hash());
        self.pool.away(move |connection| page::count_at(connection, &id, valid_time, mark, until)).await
    }

    /// Fails if the store is closed or its files are missing.
    fn in_place(&self) -> Result<()> {
        if self.jobs.read().unwrap_or_else(PoisonError::into_inner).is_none() {
            return Err(StoreError::Closed);
        }
        self.place.check()
    }

    fn send(&self, job: Job) -> Result<()> {
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        let jobs = jobs.as_ref().ok_or(StoreError::Closed)?;
        if self.desk.send(jobs, job) { Ok(()) } else { Err(stopped()) }
    }

    async fn write(&self, work: Prepared) -> Result<Receipt> {
        self.settled.as_ref().map_or(Ok(()), Settled::check)?;
        if let Some(result) = self.write_here(&work) {
            return result;
        }
        let (reply, answer) = oneshot::channel();
        self.send(Job::Transact(work, reply))?;
        answer.await.map_err(|_| stopped())?
    }

    /// Writes on this thread, if that can be done at once.
    fn write_here(&self, work: &Prepared) -> Option<Result<Receipt>> {
        if !may_wait() {
            return None;
        }
        // Held until the transaction is done, so that closing waits for it.
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        jobs.as_ref().map_or(Some(Err(StoreError::Closed)), |jobs| self.desk.try_transact(jobs, work))
    }

    /// A short read on the caller's own thread. The writing connection is tried first: it still has the pages that it
    /// wrote, while each commit invalidates the page caches of the others.
    fn here<T>(&self, read: impl Fn(&Connection) -> Result<T>) -> Result<T> {
        self.desk.try_read(&read).map_or_else(|| self.pool.here(&read), Ok)
    }

    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Call(Box::new(move |writer| {
            let _ = reply.send(work(writer));
        })))?;
        answer.await.map_err(|_| stopped())?
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn transact(&self, transaction: Transaction) -> Result<Receipt> {
        self.write(Prepared::new(transaction)?).await
    }

    async fn transact_soon(&self, transaction: Transaction) -> Result<Receipt> {
        let Some(settled) = &self.settled else { return self.transact(transaction).await };
        let receipt = self.write(Prepared { soon: true, ..Prepared::new(transaction)? }).await?;
        settled.owe();
        Ok(receipt)
    }

    async fn settle(&self) -> Result<()> {
        match &self.settled {
            Some(settled) => match self.in_place() {
                Ok(()) | Err(StoreError::Closed) => settled.settle().await,
                gone => gone,
            },
            None => Ok(()),
        }
    }

    async fn get(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        match self.here(|connection| read::get_quick(connection, id, at))? {
            Quick::Done(Some(version)) => Ok(Some(*version)),
            Quick::Done(None) => {
                let (id, absent) = (id.clone(), Arc::clone(&self.absent));
                let look = move |connection: &Connection| {
                    // It may have been written in the meantime, so both queries run on the same state.
                    let moment = connection.unchecked_transaction()?;
                    let found = read::get(&moment, &id, at)?;
                    if found.is_none() {
                        absent.check(&moment, &id, at)?;
                    }
                    Ok(found)
                };
                self.pool.away(look).await
            }
            Quick::Long => {
                let id = id.clone();
                self.pool.away(move |connection| read::get(connection, &id, at)).await
            }
        }
    }

    async fn get_many(&self, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>> {
        let ids = ids.to_vec();
        self.pool
            .away(move |connection| {
                let moment = connection.unchecked_transaction()?;
                ids.iter().map(|id| read::get(&moment, id, at)).collect()
            })
            .await
    }

    async fn outlines(&self, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>> {
        if ids.len() <= FEW {
            return self.here(|connection| read::outlines(connection, ids));
        }
        let ids = ids.to_vec();
        self.pool.away(move |connection| read::outlines(connection, &ids)).await
    }

    async fn history(&self, id: &ObjectId) -> Result<Vec<Version>> {
        let (id, absent) = (id.clone(), Arc::clone(&self.absent));
        self.pool
            .away(move |connection| {
                let moment = connection.unchecked_transaction()?;
                let history = read::history(&moment, &id)?;
                if history.is_empty() {
                    absent.check(&moment, &id, AsOf::default())?;
                }
                Ok(history)
            })
            .await
    }

    async fn history_page(&self, id: &ObjectId, after: TxId, most: usize) -> Result<Vec<Version>> {
        let (id, absent) = (id.clone(), Arc::clone(&self.absent));
        self.pool
            .away(move |connection| {
                let moment = connection.unchecked_transaction()?;
                let page = page::page(&moment, &id, after, most, PAGE_BYTES)?;
                if page.is_empty() && after == TxId(0) {
                    absent.check(&moment, &id, AsOf::default())?;
                }
                Ok(page)
            })
            .await
    }

    async fn journal(&self, id: &ObjectId) -> Result<Vec<Entry>> {
        let id = id.clone();
        self.pool.away(move |connection| read::journal(connection, &id)).await
    }

    async fn query(&self, filter: &Filter) -> Result<Vec<ObjectId>> {
        let filter = filter.clone();
        self.pool.away(move |connection| read::query(connection, &filter)).await
    }

    async fn latest_tx(&self) -> Result<TxId> {
        self.in_place()?;
        self.here(read::latest_tx)
    }

    async fn changes_since(&self, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>> {
        self.pool.away(move |connection| read::changes_since(connection, tx)).await
    }

    async fn search(&self, query: &Search) -> Result<Vec<Hit>> {
        self.in_place()?;
        let desk = Arc::clone(&self.desk);
        let behind = self.searches.within(INDEX_TIME * 2, move |_, limit| desk.complete_index(limit)).await?;
        let query = query.clone();
        let search = move |connection: &Connection, limit: &Limit| {
            search::search(connection, &query, behind.as_ref(), limit)
        };
        self.searches.within(search::SEARCH_TIME, search).await
    }

    async fn local_value(&self, name: &str, default: &str) -> Result<String> {
        let (name, default) = (name.to_owned(), default.to_owned());
        self.call(move |writer| writer.local_value(&name, &default)).await
    }

    async fn note(&self, name: &str) -> Result<Option<String>> {
        let name = format!("{NOTE}{name}");
        self.pool.away(move |connection| read::local(connection, &name)).await
    }

    async fn set_note(&self, name: &str, text: &str) -> Result<()> {
        let (name, text) = (format!("{NOTE}{name}"), text.to_owned());
        self.call(move |writer| writer.set_local(&name, &text)).await
    }

    fn files(&self) -> Vec<PathBuf> {
        let beside = ["", "-wal", "-shm", "-journal"].into_iter();
        beside.map(|end| PathBuf::from(format!("{}{end}", self.place.path().display()))).collect()
    }

    async fn verify(&self) -> Result<Vec<Damage>> {
        let index = self.call(Writer::check_index).await;
        let mut damages = self.pool.away(verify::verify).await?;
        match index {
            Err(StoreError::Corrupt(what)) => {
                damages.push(Damage { id: None, tx_id: None, what: format!("the search index: {what}") });
            }
            other => other?,
        }
        Ok(damages)
    }

    async fn flush(&self) -> Result<()> {
        self.call(Writer::flush).await
    }

    async fn close(&self) -> Result<()> {
        drop(self.jobs.write().unwrap_or_else(PoisonError::into_inner).take());
        self.searches.close();
        self.pool.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread.map(JoinHandle::join) {
            Some(Err(_)) => Err(stopped()),
            _ => Ok(()),
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer finishes what was sent and ends by itself; so do the readers.
        drop(self.jobs.write().unwrap_or_else(PoisonError::into_inner).take());
    }
}
