//! A store's file that is only read: the whole history as it is at each call, and no way to change it.
//!
//! Architecture invariants:
//! - Nothing is written: neither the file nor its log, and beside them at most SQLite's own index of the log.
//! - No writer waits for a read, and no read for a writer.
//! - Each call sees one moment, the newest one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use context_store::sessions::Limits;
use context_store::{
    AsOf, Damage, Entry, Erased, Filter, Hit, Outline, Receipt, Result, Search, Store, StoreError,
    Transaction, Version,
};

use super::negative_cache::NegativeCache;
use super::pool::{Limit, Pool, Readable};
use super::reads::Reads;
use super::search::Behind;
use super::viewed_file::ViewedFile;
use super::{absolute, page, prune, read, search, verify};

/// A view of a store in a file. Every write is refused.
pub struct SqliteSnapshot {
    file: Arc<ViewedFile>,
    pool: Pool,
    searches: Pool,
    negative: Arc<NegativeCache>,
    is_closed: AtomicBool,
}

impl SqliteSnapshot {
    /// Opens the store at this path for reading. Sessions may be open in it, here and in other processes.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if the store is missing or of an older schema; `STORE_NEWER`, `STORE_CORRUPT`.
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<Self>> {
        let file = Arc::new(ViewedFile::new(&absolute(path.as_ref())?));
        let pool = Pool::new(Readable::View(Arc::clone(&file)), "store-read")?;
        let searches = Pool::new(Readable::View(Arc::clone(&file)), "store-search")?;
        pool.here(page::latest_tx)?;
        Ok(Arc::new(Self {
            file,
            pool,
            searches,
            negative: Arc::default(),
            is_closed: AtomicBool::default(),
        }))
    }

    /// The limits that were set.
    pub async fn limits(&self) -> Result<Limits> {
        self.reads()?.pool.away(prune::limits).await
    }

    fn reads(&self) -> Result<Reads<'_>> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        Ok(Reads { pool: &self.pool, negative: &self.negative, queue: None })
    }
}

#[async_trait]
impl Store for SqliteSnapshot {
    async fn transact_marked(&self, _: Transaction, _: Vec<Option<Erased>>) -> Result<Receipt> {
        self.reads()?;
        Err(StoreError::read_only())
    }

    async fn get(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        self.reads()?.get(id, at).await
    }

    async fn get_many(&self, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>> {
        self.reads()?.get_many(ids, at).await
    }

    async fn outlines(&self, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>> {
        self.reads()?.outlines(ids).await
    }

    async fn history(&self, id: &ObjectId) -> Result<Vec<Version>> {
        self.reads()?.history(id).await
    }

    async fn history_page(&self, id: &ObjectId, after: TxId, most: usize) -> Result<Vec<Version>> {
        self.reads()?.history_page(id, after, most).await
    }

    async fn history_part(
        &self,
        id: &ObjectId,
        after: Option<(Timestamp, TxId)>,
        most: usize,
    ) -> Result<Vec<Version>> {
        self.reads()?.history_part(id, after, most).await
    }

    async fn history_as_changes(&self, id: &ObjectId) -> Result<Option<Vec<Entry>>> {
        self.reads()?.history_as_changes(id).await
    }

    async fn journal(&self, id: &ObjectId) -> Result<Vec<Entry>> {
        self.reads()?.journal(id).await
    }

    async fn query(&self, filter: &Filter) -> Result<Vec<ObjectId>> {
        self.reads()?.query(filter).await
    }

    async fn latest_tx(&self) -> Result<TxId> {
        self.reads()?.here(page::latest_tx)
    }

    async fn changes_since(&self, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>> {
        self.reads()?.changes_since(tx).await
    }

    /// Texts that the index lacks are indexed in memory for this search, as far as they fit there.
    async fn search(&self, query: &Search) -> Result<Vec<Hit>> {
        self.reads()?;
        let query = query.clone();
        let search = move |connection: &rusqlite::Connection, limit: &Limit| {
            let what = "the search index lacks too many texts; the next session that writes completes it";
            let behind = Behind { reason: StoreError::Unavailable(what.into()), most: search::MOST_VIEWED };
            search::search(connection, &query, Some(&behind), limit)
        };
        self.searches.within(search::SEARCH_TIME, search).await
    }

    /// The value that a client has left; refused if none has.
    async fn local_value(&self, name: &str, _default: &str) -> Result<String> {
        let name = name.to_owned();
        let kept = self.reads()?.pool.away(move |connection| read::local(connection, &name)).await?;
        kept.ok_or_else(StoreError::read_only)
    }

    async fn note(&self, name: &str) -> Result<Option<String>> {
        self.reads()?.note(name).await
    }

    async fn set_note(&self, _name: &str, _text: &str) -> Result<()> {
        self.reads()?;
        Err(StoreError::read_only())
    }

    fn read_only(self: Arc<Self>) -> Result<Arc<dyn Store>> {
        self.reads()?;
        Ok(Self::open(self.file.path())?)
    }

    fn files(&self) -> Vec<PathBuf> {
        super::files_of(self.file.path())
    }

    async fn verify(&self) -> Result<Vec<Damage>> {
        self.reads()?.pool.away(verify::verify).await
    }

    async fn flush(&self) -> Result<()> {
        self.reads().map(|_| ())
    }

    async fn close(&self) -> Result<()> {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.searches.close();
            self.pool.close();
        }
        Ok(())
    }
}
