//! The calls of the store and of its owner: short ones on the caller's thread, long ones away from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use context_platform::shared::Shareable as _;
use context_store::sessions::{self, Prune, Pruned};
use context_store::{
    AsOf, Damage, Entry, Erase, Erased, ErasedCount, Filter, Hit, Outline, OwnedStore, Receipt, Result,
    Search, Store, StoreError, Transaction, Version,
};
use rusqlite::Connection;

use super::core::Core;
use super::error;
use super::local::NOTE;
use super::pool::{Limit, Pool};
use super::prepare::Prepared;
use super::reads::Reads;
use super::search::Behind;
use super::snapshot::SqliteSnapshot;
use super::store_file::StoreFile;
use super::writer::Writer;
use super::writer_queue::INDEX_TIME;
use super::{SqliteStore, page, prune, search, verify};

#[async_trait]
impl Store for SqliteStore {
    async fn transact_marked(&self, transaction: Transaction, marks: Vec<Option<Erased>>) -> Result<Receipt> {
        let mut prepared = Prepared::new(transaction)?;
        prepared.mark(&marks)?;
        self.write(prepared).await
    }

    async fn transact_deferred(&self, transaction: Transaction) -> Result<Receipt> {
        let Some(settled) = &self.core.settled else { return self.transact(transaction).await };
        let receipt = self.write(Prepared { is_deferred: true, ..Prepared::new(transaction)? }).await?;
        settled.owe();
        Ok(receipt)
    }

    async fn settle(&self) -> Result<()> {
        match &self.core.settled {
            Some(settled) => match self.in_place() {
                Ok(()) | Err(StoreError::Closed) => settled.settle().await,
                gone => gone,
            },
            None => Ok(()),
        }
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
        self.in_place()?;
        self.here(page::latest_tx)
    }

    async fn changes_since(&self, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>> {
        self.reads()?.changes_since(tx).await
    }

    async fn search(&self, query: &Search) -> Result<Vec<Hit>> {
        self.in_place()?;
        let queue = Arc::clone(&self.core.queue);
        let behind =
            self.searches()?.within(INDEX_TIME * 2, move |_, limit| queue.complete_index(limit)).await?;
        let behind = behind.map(|reason| Behind { reason, most: search::MOST_REST });
        let query = query.clone();
        let search = move |connection: &Connection, limit: &Limit| {
            search::search(connection, &query, behind.as_ref(), limit)
        };
        self.searches()?.within(search::SEARCH_TIME, search).await
    }

    async fn local_value(&self, name: &str, default: &str) -> Result<String> {
        let (name, default) = (name.to_owned(), default.to_owned());
        self.call(move |writer| writer.local_value(&name, &default)).await
    }

    async fn note(&self, name: &str) -> Result<Option<String>> {
        self.reads()?.note(name).await
    }

    async fn set_note(&self, name: &str, text: &str) -> Result<()> {
        let (name, text) = (format!("{NOTE}{name}"), text.to_owned());
        self.call(move |writer| writer.set_local(&name, &text)).await
    }

    fn read_only(self: Arc<Self>) -> Result<Arc<dyn Store>> {
        self.in_place()?;
        Ok(SqliteSnapshot::open(self.path())?)
    }

    fn files(&self) -> Vec<PathBuf> {
        super::files_of(self.path())
    }

    async fn verify(&self) -> Result<Vec<Damage>> {
        let index = self.call(Writer::check_index).await;
        let mut damages = self.pool()?.away(verify::verify).await?;
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
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        if self.core.leave() {
            return self.core.close();
        }
        // Others use the store: the writer has done all earlier requests once it reaches this one.
        match self.core.call(|_| Ok(())).await {
            Err(StoreError::Closed) => Ok(()),
            done => done,
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        if self.core.leave() {
            self.core.end();
        }
    }
}

#[async_trait]
impl OwnedStore for SqliteStore {
    /// The texts are also erased from the log and the free pages. The whole file is rewritten, which takes time in
    /// proportion to its size, and free space of three times its length.
    async fn erase(&self, wanted: Vec<Erase>, why: &str) -> Result<ErasedCount> {
        let mark = Erased { at: (self.core.clock)(), why: why.to_owned() };
        self.call(move |writer| writer.erase(&wanted, &mark)).await
    }

    async fn prune(&self, wanted: Prune) -> Result<Pruned> {
        wanted.check()?;
        let summaries = sessions::summaries(self).await?;
        let among = wanted.among(&summaries).map(|summary| summary.id.clone()).collect();
        let Prune { before, max_bytes, is_dry_run, .. } = wanted;
        let before =
            if max_bytes.is_none() { before.or(Some(Timestamp::from_millis(i64::MAX))) } else { before };
        let which = prune::Which { among: Some(among), before, max_bytes };
        let left = self.call(move |writer| writer.prune(&which, is_dry_run, true)).await?;
        let named = |id: &_| summaries.iter().find(|summary| summary.id == *id).cloned();
        Ok(Pruned { sessions: left.sessions.iter().filter_map(named).collect(), ..left.pruned })
    }
}

impl SqliteStore {
    /// True if a store that is opened now could use what this one has open: not after it was closed, after a failed sync, or after
    /// an exchange of the file.
    pub fn is_sound(&self) -> bool {
        self.in_place().is_ok() && self.core.is_sound()
    }

    /// True if both use the same connections and threads.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.core.is_beside(&other.core)
    }

    /// Fails if the store is closed or its files are missing.
    fn in_place(&self) -> Result<()> {
        self.check_open()?;
        if self.core.is_closed() {
            return Err(StoreError::Closed);
        }
        self.check_path()?;
        self.core.place.check()
    }

    /// Fails once this store was closed, even while other stores use the file.
    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Fails if the path that this store was opened by leads to another file now.
    fn check_path(&self) -> Result<()> {
        self.own_place.as_ref().map_or(Ok(()), StoreFile::check)
    }

    /// The path that this store was opened by.
    fn path(&self) -> &Path {
        self.own_place.as_ref().unwrap_or(&self.core.place).path()
    }

    pub(super) fn pool(&self) -> Result<&Pool> {
        self.check_open()?;
        Ok(&self.core.pool)
    }

    fn reads(&self) -> Result<Reads<'_>> {
        let Core { queue, negative, .. } = &*self.core;
        Ok(Reads { pool: self.pool()?, negative, queue: Some(queue) })
    }

    fn searches(&self) -> Result<&Pool> {
        self.check_open()?;
        Ok(&self.core.searches)
    }

    #[tracing::instrument(name = "store_write", level = "debug", skip_all)]
    pub(super) async fn write(&self, work: Prepared) -> Result<Receipt> {
        self.check_open()?;
        self.check_path()?;
        self.core.write(work).await
    }

    /// A short read on the caller's own thread.
    pub(super) fn here<T>(&self, read: impl Fn(&Connection) -> error::Result<T>) -> Result<T> {
        self.reads()?.here(read)
    }

    #[tracing::instrument(name = "store_call", level = "debug", skip_all)]
    pub(super) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.check_open()?;
        self.check_path()?;
        self.core.call(work).await
    }
}
