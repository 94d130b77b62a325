//! The reads of a store, the same for one that writes and for one that is only read: short ones on the caller's thread, long
//! ones away from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use context_store::{AsOf, Entry, Filter, Outline, Result, Version};
use rusqlite::Connection;

use super::error;
use super::local::NOTE;
use super::negative_cache::NegativeCache;
use super::pool::Pool;
use super::read::Quick;
use super::writer_queue::WriterQueue;
use super::{FEW, PAGE_BYTES, page, read};

/// The connections that an open store reads with.
pub(super) struct Reads<'s> {
    pub pool: &'s Pool,
    pub negative: &'s Arc<NegativeCache>,
    /// The connection that writes, if this store has one: it still has the pages that it wrote, while each commit
    /// invalidates the page caches of the others.
    pub queue: Option<&'s WriterQueue>,
}

impl Reads<'_> {
    /// A short read on the caller's own thread.
    #[tracing::instrument(name = "store_read", level = "debug", skip_all)]
    pub(crate) fn here<T>(&self, read: impl Fn(&Connection) -> error::Result<T>) -> Result<T> {
        let quick = self.queue.and_then(|queue| queue.try_read(&read));
        quick.map_or_else(|| self.pool.here(&read), Ok)
    }

    pub(crate) async fn get(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        match self.here(|connection| read::get_quick(connection, id, at))? {
            Quick::Done(Some(version)) => Ok(Some(*version)),
            Quick::Done(None) => {
                let (id, negative) = (id.clone(), Arc::clone(self.negative));
                let look = move |connection: &Connection| {
                    // It may have been written in the meantime, so both queries run on the same state.
                    let moment = connection.unchecked_transaction()?;
                    let found = read::get(&moment, &id, at)?;
                    if found.is_none() {
                        negative.check(&moment, &id, at)?;
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

    pub(crate) async fn get_many(&self, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>> {
        let ids = ids.to_vec();
        self.of_one_moment(move |moment| ids.iter().map(|id| read::get(moment, id, at)).collect()).await
    }

    pub(crate) async fn outlines(&self, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>> {
        if ids.len() <= FEW {
            return self.here(|connection| read::outlines(connection, ids));
        }
        let ids = ids.to_vec();
        self.pool.away(move |connection| read::outlines(connection, &ids)).await
    }

    pub(crate) async fn history(&self, id: &ObjectId) -> Result<Vec<Version>> {
        let (id, negative) = (id.clone(), Arc::clone(self.negative));
        self.of_one_moment(move |moment| {
            let history = read::history(moment, &id)?;
            if history.is_empty() {
                negative.check(moment, &id, AsOf::default())?;
            }
            Ok(history)
        })
        .await
    }

    pub(crate) async fn history_page(&self, id: &ObjectId, after: TxId, most: usize) -> Result<Vec<Version>> {
        let (id, negative) = (id.clone(), Arc::clone(self.negative));
        self.of_one_moment(move |moment| {
            let page = page::page(moment, &id, after, most, PAGE_BYTES)?;
            if page.is_empty() && after == TxId(0) {
                negative.check(moment, &id, AsOf::default())?;
            }
            Ok(page)
        })
        .await
    }

    pub(crate) async fn history_part(
        &self,
        id: &ObjectId,
        after: Option<(Timestamp, TxId)>,
        most: usize,
    ) -> Result<Vec<Version>> {
        let id = id.clone();
        self.of_one_moment(move |moment| page::part(moment, &id, after, (most, PAGE_BYTES))).await
    }

    pub(crate) async fn history_as_changes(&self, id: &ObjectId) -> Result<Option<Vec<Entry>>> {
        let id = id.clone();
        self.of_one_moment(move |moment| {
            let is_growing = read::is_growing(moment, &id)?;
            is_growing.then(|| read::journal(moment, &id)).transpose()
        })
        .await
    }

    pub(crate) async fn journal(&self, id: &ObjectId) -> Result<Vec<Entry>> {
        let id = id.clone();
        self.pool.away(move |connection| read::journal(connection, &id)).await
    }

    pub(crate) async fn query(&self, filter: &Filter) -> Result<Vec<ObjectId>> {
        let filter = filter.clone();
        self.pool.away(move |connection| read::query(connection, &filter)).await
    }

    pub(crate) async fn changes_since(&self, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>> {
        self.pool.away(move |connection| page::changes_since(connection, tx)).await
    }

    pub(crate) async fn note(&self, name: &str) -> Result<Option<String>> {
        let name = format!("{NOTE}{name}");
        self.pool.away(move |connection| read::local(connection, &name)).await
    }

    /// A long read of which all statements see the same state.
    async fn of_one_moment<T: Send + 'static>(
        &self,
        read: impl Fn(&Connection) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let look = move |connection: &Connection| {
            let moment = connection.unchecked_transaction()?;
            read(&moment)
        };
        self.pool.away(look).await
    }
}
