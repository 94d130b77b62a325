//! Versions at a point of the two times, for one object or many.

use std::collections::HashMap;
use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::cache::Head;
use super::edn::Edn;
use super::http::{Format, NodeRequest};
use super::inner::XtdbClient;
use super::mark::Mark;
use super::parallel::in_parallel;
use super::plan::is_equal;
use super::wire::{Coordinates, FOREVER, KEPT, Tx, id_hash, is_of, no_entity_tx, xtdb_number};
use context_store::{AsOf, KnownAt, Result, Version};

/// Number of attempts to read a version that other clients replace meanwhile.
const MOST_READS: usize = 4;

/// Documents that one query asks for.
pub(super) const IDS_A_QUERY: usize = 64;

impl XtdbClient {
    /// The version of an object. Takes two requests, one if this client knows the document, and one more if the version is
    /// stored as a change.
    pub(super) async fn get(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        if id.as_str().is_empty() {
            return Ok(None);
        }
        if at == AsOf::default()
            && let Some(head) = self.cache(|cache| cache.head(id))
            && self.is_latest(&head).await?
        {
            return Ok(Some((*head.version).clone()));
        }
        match self.find(id, at).await? {
            Some(head) => Ok(Some((*head.version).clone())),
            // Also an old answer says so.
            None if self.held(std::slice::from_ref(id), at).await?.is_empty() => Ok(None),
            None => Err(self.nodes.foreign(id.as_str())),
        }
    }

    /// The version that a transaction wrote; the latest of them, if it wrote several.
    pub(super) async fn version(&self, id: &ObjectId, tx: TxId) -> Result<Option<Version>> {
        let is_none = id.as_str().is_empty() || tx == TxId(0);
        if is_none || self.latest().await?.is_none_or(|latest| latest.id < tx) {
            return Ok(None);
        }
        let places = self.sure_history(id, tx).await?.into_iter();
        let place = places.filter(|place| place.tx.id == tx).max_by_key(|place| place.valid_time);
        let Some(place) = place else { return Ok(None) };
        Ok(self.at(id, place).await?.map(|head| (*head.version).clone()))
    }

    /// As [`XtdbClient::get`], with the form in which XTDB has it. That there is none is unconfirmed, for a transaction that
    /// is refused if there is one.
    pub(super) async fn find(&self, id: &ObjectId, at: AsOf) -> Result<Option<Head>> {
        // It may be replaced between the two questions, and again.
        for _ in 0..MOST_READS {
            let Some(place) = self.place(id, at).await? else { return Ok(None) };
            let placed = [(id.clone(), place)];
            let Some(value) = self.pull_some(&placed, "[*]", at).await?.remove(id) else { continue };
            let (document, form) = self.resolved(id, place, value).await?;
            let version = Arc::new(version(document, place, form.mark()));
            let head = Head { version, form, bytes: 0 };
            if at == AsOf::default() {
                self.cache(|cache| cache.keep(head.clone()));
            }
            return Ok(Some(head));
        }
        Err(self.nodes.foreign(id.as_str()))
    }

    /// True if a version that this client remembers is still the latest.
    async fn is_latest(&self, head: &Head) -> Result<bool> {
        let (id, Version { tx_id, tx_time, valid_time, .. }) = (head.version.document.id(), &*head.version);
        let tx = Tx { id: *tx_id, time: *tx_time };
        let place = Coordinates { tx, valid_time: *valid_time, is_deletion: false, document: None };
        let pattern = format!("[:xt/id :content_hash :{KEPT}]");
        let found = self.pull_some(&[(id.clone(), place)], &pattern, AsOf::default()).await?;
        let hash = head.version.document.content_hash().to_string();
        Ok(found
            .get(id)
            .is_some_and(|value| value["content_hash"] == *hash && value.get(KEPT) == head.form.kept()))
    }

    /// The coordinates of an object's version at a point of the two times: unconfirmed, because an old answer looks the same.
    pub(super) async fn place(&self, id: &ObjectId, at: AsOf) -> Result<Option<Coordinates>> {
        if id.as_str().is_empty() || at.known == Some(KnownAt::Tx(TxId(0))) {
            return Ok(None);
        }
        let bare = || valid_at(self.read("entity-tx", Format::Edn).with("eid", id), at.valid_time);
        let mut answer = self.nodes.send(&known(bare(), at.known)).await?;
        if answer.is_out_of_sync() {
            // The bound is later than the newest transaction, so it doesn't limit anything.
            answer = self.nodes.send(&bare()).await?;
        }
        if answer.says(&no_entity_tx(id.as_str()))? {
            return Ok(None);
        }
        let edn = answer.edn()?;
        let place = Coordinates::from_edn(&edn).ok_or_else(|| answer.strange("no transaction in it"))?;
        if let Some(Edn::Tagged(_, hash)) = edn.get("xt/id")
            && let Edn::Text(hash) = &**hash
            && *hash != id_hash(id.as_str())
        {
            return Err(answer.strange("the version of something else"));
        }
        // The answer names the object and not the point: it may be one to a later question about the same object.
        let is_known = match at.known {
            None => true,
            Some(KnownAt::Tx(tx)) => place.tx.id <= tx,
            Some(KnownAt::Time(time)) => place.tx.time <= time,
        };
        if !is_known || at.valid_time.is_some_and(|time| place.valid_time > time) {
            return Err(answer.strange("a version from after the point that was asked for"));
        }
        Ok((!place.is_deletion).then_some(place))
    }

    /// The versions of many objects as they stood at one transaction: the documents come in one query.
    pub(super) async fn get_many(
        self: &Arc<Self>,
        ids: &[ObjectId],
        at: AsOf,
    ) -> Result<Vec<Option<Version>>> {
        let at = self.pinned(at).await?;
        let places = self.places(ids, at).await?;
        let mut found: HashMap<ObjectId, Version> = HashMap::new();
        let mut missing = Vec::new();
        for (id, place) in places {
            match self.cache(|cache| cache.at(&id, place)) {
                Some(head) => {
                    found.insert(id, (*head.version).clone());
                }
                None => missing.push((id, place)),
            }
        }
        for part in missing.chunks(IDS_A_QUERY) {
            let mut pulled: HashMap<ObjectId, Value> =
                self.pull(part, "[*]", at).await?.into_iter().collect();
            let placed = part.iter().filter_map(|(id, place)| Some((id.clone(), *place, pulled.remove(id)?)));
            found.extend(self.resolved_all(placed.collect()).await?);
        }
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    /// The coordinates of all versions up to a transaction, sure to be those of this object; in XTDB's order.
    pub(super) async fn sure_history(&self, id: &ObjectId, at: TxId) -> Result<Vec<Coordinates>> {
        let then = AsOf { valid_time: None, known: Some(KnownAt::Tx(at)) };
        let (places, last, held) = tokio::try_join!(
            self.history_places(id, at),
            self.place(id, then),
            self.held(std::slice::from_ref(id), then)
        )?;
        let listed = places.last().copied().filter(|place| !place.is_deletion);
        if listed != last || !holds(last, held.get(id)) {
            return Err(self.nodes.foreign(id.as_str()));
        }
        Ok(places)
    }

    /// The coordinates of all versions, in XTDB's order: by valid time, then by transaction. Unconfirmed: the answer does not
    /// even name the object.
    pub(super) async fn history_places(&self, id: &ObjectId, at: TxId) -> Result<Vec<Coordinates>> {
        let answer = self.nodes.send(&self.history_request(id, at, Format::Edn)).await?;
        let rows = answer.edn()?;
        let rows = rows.items().ok_or_else(|| answer.strange("no list of versions"))?;
        let places: Option<Vec<Coordinates>> = rows.iter().map(Coordinates::from_edn).collect();
        places.ok_or_else(|| answer.strange("a version without times"))
    }

    /// The version at these coordinates, if it has a document.
    pub(super) async fn at(&self, id: &ObjectId, place: Coordinates) -> Result<Option<Head>> {
        if place.is_deletion {
            return Ok(None);
        }
        // The document alone would not tell which version it is.
        let before = Timestamp::from_millis(place.valid_time.millis().saturating_sub(1));
        let request = self.read("entity", Format::Json).with("eid", id).with("history", true);
        let request =
            request.with("sort-order", "desc").with("with-corrections", true).with("with-docs", true);
        let request = at_place(request, Some(place.valid_time), place.tx.id).with("end-valid-time", before);
        let answer = self.nodes.send(&request).await?;
        let Value::Array(rows) = answer.json()? else { return Err(answer.strange("no list of versions")) };
        let row = rows.into_iter().find(|row| place.is_of_row(row));
        let value = row.and_then(|mut row| row.get_mut("doc").map(Value::take));
        let Some(value) = value.filter(|value| is_of(value, id.as_str())) else {
            return Err(answer.strange("a document of something else"));
        };
        let (document, form) = self.resolved(id, place, value).await?;
        let version = Arc::new(version(document, place, form.mark()));
        Ok(Some(Head { version, form, bytes: 0 }))
    }

    /// The versions of an object that hold from this moment on, in the order of their transactions.
    pub(super) async fn versions_at(&self, id: &ObjectId, valid_time: Timestamp) -> Result<Vec<Version>> {
        let at = AsOf { valid_time: Some(valid_time), ..self.as_known() };
        let one = std::slice::from_ref(id);
        let (last, held) = tokio::try_join!(self.place(id, at), self.held(one, at))?;
        if !holds(last, held.get(id)) {
            return Err(self.nodes.foreign(id.as_str()));
        }
        let Some(last) = last.filter(|place| place.valid_time == valid_time) else { return Ok(Vec::new()) };
        let places = self.history_places(id, last.tx.id).await?;
        if !places.contains(&last) {
            return Err(self.nodes.foreign(id.as_str()));
        }
        let mut versions = Vec::new();
        for place in places.into_iter().filter(|place| place.valid_time == valid_time) {
            versions.extend(self.at(id, place).await?.map(|head| (*head.version).clone()));
        }
        Ok(versions)
    }

    /// Number of versions of an object that have the same valid time and content as this one. The second part says whether
    /// it was erased.
    pub(super) async fn count_like(
        &self,
        id: &ObjectId,
        valid_time: Timestamp,
        like: (&Document, bool),
    ) -> Result<usize> {
        // Both sides may have erased it, and differ in how much of it they have left.
        let is_like =
            |version: &&Version| (version.erased.is_some() && like.1) || is_equal(&version.document, like.0);
        Ok(self.versions_at(id, valid_time).await?.iter().filter(is_like).count())
    }

    /// The same point of the two times, limited to the newest transaction if it was unlimited, so that all requests of one
    /// call see the same state.
    pub(super) async fn pinned(&self, at: AsOf) -> Result<AsOf> {
        let latest = self.latest().await?;
        let known = match (at.known, latest) {
            (_, None) => KnownAt::Tx(TxId(0)),
            (None, Some(latest)) => KnownAt::Tx(latest.id),
            (Some(KnownAt::Tx(tx)), Some(latest)) => KnownAt::Tx(tx.min(latest.id)),
            (Some(KnownAt::Time(time)), Some(latest)) if time >= latest.time => KnownAt::Tx(latest.id),
            (Some(known), Some(_)) => known,
        };
        Ok(AsOf { known: Some(known), ..at })
    }

    /// The coordinates of these objects' versions at a point that is limited to a transaction, with many requests at the same
    /// time.
    pub(super) async fn places(
        self: &Arc<Self>,
        ids: &[ObjectId],
        at: AsOf,
    ) -> Result<HashMap<ObjectId, Coordinates>> {
        if at.known == Some(KnownAt::Tx(TxId(0))) {
            return Ok(HashMap::new());
        }
        let named: Vec<ObjectId> = ids.iter().filter(|id| !id.as_str().is_empty()).cloned().collect();
        let held = self.held(&named, at).await?.into_iter().collect();
        let inner = Arc::clone(self);
        let found = in_parallel(held, move |(id, since)| {
            let inner = Arc::clone(&inner);
            async move {
                match inner.place(&id, at).await? {
                    Some(place) if place.valid_time >= since => Ok((id, place)),
                    _ => Err(inner.nodes.foreign(id.as_str())),
                }
            }
        })
        .await?;
        Ok(found.into_iter().collect())
    }
}

/// True if a version can be the one whose document holds from this moment on.
fn holds(place: Option<Coordinates>, since: Option<&Timestamp>) -> bool {
    match (place, since) {
        (Some(place), Some(since)) => place.valid_time >= *since,
        (None, None) => true,
        _ => false,
    }
}

pub(super) fn version(document: Document, place: Coordinates, mark: Option<&Mark>) -> Version {
    Version {
        document,
        tx_id: place.tx.id,
        tx_time: place.tx.time,
        valid_time: place.valid_time,
        erased: mark.map(|mark| mark.erased.clone()),
    }
}

/// The valid time of a read. XTDB's own default is its clock; here it is the end of time.
pub(super) fn valid_at(request: NodeRequest, time: Option<Timestamp>) -> NodeRequest {
    match time {
        Some(time) => request.with("valid-time", time),
        None => request.with("valid-time", FOREVER),
    }
}

pub(super) fn known(request: NodeRequest, known: Option<KnownAt>) -> NodeRequest {
    match known {
        None => request,
        Some(KnownAt::Tx(tx)) => match xtdb_number(tx) {
            Some(number) => request.with("tx-id", number),
            None => request,
        },
        Some(KnownAt::Time(time)) => request.with("tx-time", time),
    }
}

pub(super) fn at_place(request: NodeRequest, valid: Option<Timestamp>, tx: TxId) -> NodeRequest {
    known(valid_at(request, valid), Some(KnownAt::Tx(tx)))
}
