//! The queue's requests to the database.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::status::short;
use crate::XtdbStore;
use crate::areas::{Area, AreaChanges, AreaPosition};
use crate::changed::ChangedPlace;
use crate::form::growth;
use crate::parallel::in_parallel;
use crate::resolve::Past;
use crate::wire::document_length;
use crate::write::{Coming, Late};
use context_store::{Result, StoreError, Transaction, Version, Write};

impl XtdbStore {
    /// The hashes of the IDs of all objects. `None` if there are more than `most`.
    pub(super) async fn names(&self, most: usize) -> Result<Option<HashSet<u64>>> {
        let mut names = HashSet::new();
        self.open()?
            .each_id(|id| {
                names.insert(short(&id));
                names.len() <= most
            })
            .await?;
        Ok((names.len() <= most).then_some(names))
    }

    /// Returns others' writes in an area; see [`XtdbClient::changes_in`](crate::inner::XtdbClient).
    pub(super) async fn changes_in(
        &self,
        area: &Area,
        since: &AreaPosition,
        own: (&str, Option<&str>),
        is_first: bool,
    ) -> Result<AreaChanges> {
        self.open()?.changes_in(area, since, own, is_first).await
    }

    /// The node's newest transaction, without waiting for the transactions that this client has seen; 0 for an empty
    /// database.
    pub(super) async fn newest_tx(&self) -> Result<TxId> {
        Ok(self.open()?.newest_tx().await?.map_or(TxId(0), |tx| tx.id))
    }

    /// The newest transaction that this client wrote or saw.
    pub(super) fn known_tx(&self) -> TxId {
        TxId(self.inner.known.load(Ordering::Acquire))
    }

    /// The content hashes of the latest versions of those objects that XTDB has.
    pub(super) async fn content_hashes(&self, ids: &[ObjectId]) -> Result<HashMap<ObjectId, Value>> {
        self.open()?.content_hashes(ids).await
    }

    /// Versions of many objects that were written after a transaction, one list for each object.
    pub(super) async fn versions_after(
        &self,
        ids: Vec<ChangedPlace>,
        since: TxId,
    ) -> Result<Vec<Vec<Version>>> {
        self.open()?.versions_after(ids, since).await
    }

    /// The time from which each version of an object holds, oldest first.
    pub(super) async fn valid_times(&self, id: &ObjectId) -> Result<Vec<Timestamp>> {
        let places = self.open()?.places_of(id).await?;
        Ok(places.into_iter().map(|place| place.valid_time).collect())
    }

    /// The versions of an object that hold from this moment on, in the order of their transactions.
    pub(super) async fn versions_at(&self, id: &ObjectId, valid_time: Timestamp) -> Result<Vec<Version>> {
        self.open()?.versions_at(id, valid_time).await
    }

    /// All versions of an object, oldest first.
    pub(super) async fn past(&self, id: &ObjectId) -> Result<Past> {
        self.open()?.past(id).await
    }

    /// The same error; it names the node if it is about damage.
    pub(super) fn told(&self, error: StoreError) -> StoreError {
        self.inner.nodes.told(error)
    }

    /// This writer's mark, as XTDB has it now.
    pub(super) async fn mark(&self) -> Result<Option<Value>> {
        let mut writer = self.writer.lock().await;
        self.open()?.mark(&mut writer).await
    }

    /// The transaction that wrote this writer's mark, as XTDB has it now.
    pub(super) async fn mark_tx(&self) -> Result<Option<TxId>> {
        let writer = self.writer.lock().await;
        self.open()?.mark_tx(&writer).await
    }

    /// The mark of a writer after a transaction.
    pub(super) async fn mark_at(&self, name: &str, tx: TxId) -> Result<Option<Value>> {
        self.open()?.mark_at(name, tx).await
    }

    /// Has the next transactions carry the name of the sender's run.
    pub(super) async fn sends_as(&self, run: Option<&str>) {
        self.writer.lock().await.set_run(run.map(str::to_owned));
    }

    /// Writes this note, and nothing else. Returns the number of the mark, and the transaction.
    pub(super) async fn note(&self, note: Value) -> Result<(u64, TxId)> {
        let mut writer = self.writer.lock().await;
        self.open()?.write_note(&mut writer, &note).await
    }

    /// About how many bytes are sent for the next version after this one, or after the one that XTDB is known to have.
    pub(super) fn growth(&self, before: Option<&Version>, document: &Document) -> usize {
        match before {
            Some(before) => growth(&before.document, document),
            None => match self.inner.cache(|cache| cache.head(document.id())) {
                Some(head) => growth(&head.version.document, document),
                None => document_length(document),
            },
        }
    }

    /// Number of versions in XTDB that have the same valid time and content as each of these, by position.
    pub(super) async fn count_like(&self, asked: Vec<(usize, Version)>) -> Result<Vec<(usize, usize)>> {
        let inner = Arc::clone(self.open()?);
        in_parallel(asked, move |(place, version)| {
            let inner = Arc::clone(&inner);
            async move {
                let Version { document, valid_time, erased, .. } = version;
                let like = (&document, erased.is_some());
                Ok((place, inner.count_like(document.id(), valid_time, like).await?))
            }
        })
        .await
    }

    /// Writes versions with their valid times and marks, and the note with them. Versions that XTDB already has are skipped; if that
    /// leaves none, the note is not written either. Returns the number of the mark that has the note, and the transaction.
    ///
    /// # Errors
    /// `CONFLICT` with the ID of the mark if another client has changed it.
    pub(super) async fn forward(&self, writes: Vec<Write>, late: &Late) -> Result<Option<(u64, TxId)>> {
        let mut writer = self.writer.lock().await;
        let transaction = Transaction { writes, expected: Vec::new() };
        let receipt = self.open()?.transact(&mut writer, transaction, Coming::Late(late)).await?;
        let is_written = receipt.written.contains(&true);
        Ok(writer.number().filter(|_| is_written).map(|number| (number, receipt.tx_id)))
    }
}
