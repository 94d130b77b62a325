//! Histories, and versions that are stored as changes and resolved with the versions before them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::form::{Given, StoredForm, resolve};
use super::http::{Format, NodeRequest};
use super::inner::XtdbClient;
use super::mark::Mark;
use super::parallel::in_parallel;
use super::read::{at_place, version};
use super::wire::{Coordinates, is_of};
use context_store::{Result, Version};

/// Number of versions of a history that are kept whole, for those that are changes of them.
const KEPT_WHOLE: usize = 8;

impl XtdbClient {
    /// All versions, oldest first. Times are requested in EDN, because XTDB's JSON truncates them to
    /// seconds, and documents in JSON, because EDN does not tell keys from strings.
    pub(super) async fn history(&self, id: &ObjectId) -> Result<Vec<Version>> {
        Ok(self.marked_history(id).await?.into_iter().map(|(version, _)| version).collect())
    }

    /// The same with the marks of erased versions.
    pub(super) async fn marked_history(&self, id: &ObjectId) -> Result<Vec<(Version, Option<Mark>)>> {
        let mut past = self.past(id).await?;
        let mut versions = Vec::new();
        while let Some(version) = past.next().map_err(|error| self.nodes.told(error))? {
            versions.push(version);
        }
        Ok(versions)
    }

    /// All versions, one after the other.
    pub(super) async fn past(&self, id: &ObjectId) -> Result<Past> {
        let places = self.places_of(id).await?;
        let Some(at) = places.iter().map(|place| place.tx.id).max() else { return Ok(Past::new(Vec::new())) };
        let request = self.history_request(id, at, Format::Json).with("with-docs", true);
        let answer = self.nodes.send(&request).await?;
        let Value::Array(rows) = answer.json()? else { return Err(answer.strange("no list of versions")) };
        if rows.len() != places.len() {
            return Err(answer.strange("a history of another length"));
        }
        for (row, place) in rows.iter().zip(&places) {
            let document = row.get("doc").filter(|document| !document.is_null());
            if document.is_some_and(|document| !is_of(document, id.as_str()) || !place.is_of_row(row)) {
                return Err(answer.strange("a version of something else"));
            }
        }
        Ok(Past::new(rows.into_iter().zip(places).collect()))
    }

    /// The coordinates of all versions that this client could read now.
    pub(super) async fn places_of(&self, id: &ObjectId) -> Result<Vec<Coordinates>> {
        match self.latest().await? {
            Some(at) if !id.as_str().is_empty() => self.sure_history(id, at.id).await,
            _ => Ok(Vec::new()),
        }
    }

    /// The version at these coordinates, given its document. A whole document, or the change of a version that this client
    /// knows, takes no request. Otherwise one request fetches everything since such a version or the last whole one.
    pub(super) async fn resolved(
        &self,
        id: &ObjectId,
        place: Coordinates,
        value: Value,
    ) -> Result<(Document, StoredForm)> {
        self.resolve_one(id, place, value).await.map_err(|error| self.nodes.told(error))
    }

    async fn resolve_one(
        &self,
        id: &ObjectId,
        place: Coordinates,
        value: Value,
    ) -> Result<(Document, StoredForm)> {
        let wanted = match Given::read(value.clone())? {
            Given::Whole(document) => {
                let form = StoredForm::whole(&document);
                let mut own = value.clone();
                let mark = Mark::take(&mut own);
                let is_own =
                    own.as_object().map(serde_json::Map::len) == value.as_object().map(serde_json::Map::len);
                return Ok((document, if is_own { form } else { form.stored_as(value, mark) }));
            }
            Given::Changed(wanted) => wanted,
        };
        let known = self.cache(|cache| cache.grown(id));
        if let Some(known) = known.as_ref().filter(|known| known.document.content_hash() == wanted.of()) {
            return wanted.resolve(known.document.clone());
        }
        let nearer = known.filter(|known| (wanted.since()..=place.valid_time).contains(&known.valid_time));
        // If several clients wrote, the version that it is based on may belong to a chain that begins earlier. And XTDB may
        // have no answer to a question with a start (see `areas`).
        for (since, known) in
            [(nearer.as_ref().map(|known| known.valid_time), nearer.as_ref()), (Some(wanted.since()), None)]
        {
            let Some(since) = since else { continue };
            let mut before = Vec::new();
            before.extend(known.map(|known| Given::Whole(known.document.clone())));
            before.extend(self.given_between(id, since, place).await?.0);
            if let Some(resolved) = resolve(wanted.clone(), before)? {
                return Ok(resolved);
            }
        }
        let (all, count) = self.given_between(id, Timestamp::from_millis(i64::MIN), place).await?;
        if let Some(resolved) = resolve(wanted.clone(), all)? {
            return Ok(resolved);
        }
        // It counts as lost only where the answer was the whole history until then.
        let mut places = self.sure_history(id, place.tx.id).await?;
        places.retain(|one| !one.is_deletion && one.valid_time <= place.valid_time);
        if places.len() == count { Err(wanted.lost()) } else { Err(self.nodes.foreign(id.as_str())) }
    }

    /// The same for many, with several requests at the same time.
    pub(super) async fn resolved_all(
        self: &Arc<Self>,
        values: Vec<(ObjectId, Coordinates, Value)>,
    ) -> Result<Vec<(ObjectId, Version)>> {
        let inner = Arc::clone(self);
        in_parallel(values, move |(id, place, value)| {
            let inner = Arc::clone(&inner);
            async move {
                let (document, form) = inner.resolved(&id, place, value).await?;
                let version = version(document, place, form.mark());
                // The next versions are based on it.
                if !version.document.object_type().is_content() {
                    inner.cache(|cache| cache.grow(Arc::new(version.clone())));
                }
                Ok((id, version))
            }
        })
        .await
    }

    /// An object's versions in XTDB from a valid time up to these coordinates, by valid time and transaction. The second part
    /// is the number of the documents, also those of another shape.
    async fn given_between(
        &self,
        id: &ObjectId,
        since: Timestamp,
        place: Coordinates,
    ) -> Result<(Vec<Given>, usize)> {
        let mut request = self.history_request(id, place.tx.id, Format::Json).with("with-docs", true);
        if since > Timestamp::from_millis(i64::MIN) {
            request = request.with("start-valid-time", since);
        }
        let end = Timestamp::from_millis(place.valid_time.millis().saturating_add(1));
        let answer = self.nodes.send(&request.with("end-valid-time", end)).await?;
        let Value::Array(rows) = answer.json()? else { return Err(answer.strange("no list of versions")) };
        // Another client's deletion has no document, and its writes may have any shape.
        let documents = rows.into_iter().filter_map(|mut row| row.get_mut("doc").map(Value::take));
        let documents: Vec<Value> = documents.filter(|value| !value.is_null()).collect();
        if !documents.iter().all(|value| is_of(value, id.as_str())) {
            return Err(answer.strange("a version of something else"));
        }
        let count = documents.len();
        Ok((documents.into_iter().filter_map(|value| Given::read(value).ok()).collect(), count))
    }

    pub(super) fn history_request(&self, id: &ObjectId, at: TxId, accept: Format) -> NodeRequest {
        let request = self.read("entity", accept).with("eid", id).with("history", true);
        let request = request.with("sort-order", "asc").with("with-corrections", true);
        at_place(request, None, at)
    }
}

type Hashes = (Digest, Option<Digest>, Option<Digest>);

/// The versions of an object, oldest first; only the last few are in memory as whole documents.
pub(crate) struct Past {
    rows: std::vec::IntoIter<(Value, Coordinates)>,
    /// The last versions, newest last.
    documents: VecDeque<Document>,
    /// All versions so far as XTDB has them.
    seen: Vec<Given>,
    /// The hashes of the last version so far of each transaction: of its content and its source, and of the content before it
    /// was erased. What was put back of an erased object has one content, in one transaction.
    written: HashMap<TxId, Hashes>,
}

impl Past {
    /// The history with these rows of XTDB, by valid time and transaction.
    pub(crate) fn new(rows: Vec<(Value, Coordinates)>) -> Self {
        let (documents, seen, written) = (VecDeque::new(), Vec::new(), HashMap::new());
        Self { rows: rows.into_iter(), documents, seen, written }
    }

    /// The next version and its mark.
    ///
    /// # Errors
    /// `STORE_CORRUPT` for a version that can't be built.
    pub(crate) fn next(&mut self) -> Result<Option<(Version, Option<Mark>)>> {
        for (mut row, place) in self.rows.by_ref() {
            // Another client's deletion has no document; a version of ours always has one.
            let Some(value) = row.get_mut("doc").map(Value::take).filter(|value| !value.is_null()) else {
                continue;
            };
            let mark = Mark::take(&mut value.clone());
            let given = Given::read(value)?;
            let document = match &given {
                Given::Whole(document) => document.clone(),
                Given::Changed(changed) => {
                    let before = self.documents.iter().rev().find(|one| one.content_hash() == changed.of());
                    match before {
                        Some(before) => changed.clone().resolve(before.clone())?.0,
                        // Several clients wrote at the same time, and their versions lie between each other.
                        None => resolve(changed.clone(), self.seen.clone())?.ok_or_else(|| changed.lost())?.0,
                    }
                }
            };
            self.seen.push(given);
            let hashes =
                (document.content_hash(), document.source_hash(), mark.as_ref().and_then(|mark| mark.hash));
            if self.documents.len() == KEPT_WHOLE {
                self.documents.pop_front();
            }
            self.documents.push_back(document.clone());
            // Another client's put with an end time repeats the version that it interrupts.
            if self.written.insert(place.tx.id, hashes) == Some(hashes) {
                continue;
            }
            return Ok(Some((version(document, place, mark.as_ref()), mark)));
        }
        Ok(None)
    }
}
