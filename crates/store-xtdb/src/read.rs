//! Versions at a point of the two times, for one object or many.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::cache::Head;
use super::edn::{Edn, quote};
use super::http::{Format, NodeAnswer, NodeRequest};
use super::inner::XtdbClient;
use super::mark::Mark;
use super::parallel::in_parallel;
use super::plan::is_equal;
use super::wire::{Coordinates, FOREVER, is_of, no_entity_tx, xtdb_number};
use context_store::{AsOf, KnownAt, Result, Version};

/// Documents that one query asks for.
pub(super) const IDS_A_QUERY: usize = 64;

impl XtdbClient {
    /// The version of an object. Takes two requests, one if this client knows the document, and one more if the version is
    /// stored as a change.
    pub(super) async fn get(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        if id.as_str().is_empty() {
            return Ok(None);
        }
        Ok(self.find(id, at).await?.map(|head| (*head.version).clone()))
    }

    /// The version that a transaction wrote; the latest of them, if it wrote several.
    pub(super) async fn version(&self, id: &ObjectId, tx: TxId) -> Result<Option<Version>> {
        if id.as_str().is_empty() || self.latest().await?.is_none_or(|latest| latest.id < tx) {
            return Ok(None);
        }
        let places = self.history_places(id, tx).await?.into_iter();
        let place = places.filter(|place| place.tx.id == tx).max_by_key(|place| place.valid_time);
        let Some(place) = place else { return Ok(None) };
        Ok(self.at(id, place).await?.map(|head| (*head.version).clone()))
    }

    /// As [`XtdbClient::get`], with the form in which XTDB has it.
    pub(super) async fn find(&self, id: &ObjectId, at: AsOf) -> Result<Option<Head>> {
        let Some(place) = self.place(id, at).await? else { return Ok(None) };
        if let Some(head) = self.cache(|cache| cache.at(id, place)) {
            return Ok(Some(head));
        }
        let head = self.at(id, place).await?;
        if at == AsOf::default()
            && let Some(head) = &head
        {
            self.cache(|cache| cache.keep(head.clone()));
        }
        Ok(head)
    }

    /// The coordinates of an object's version at a point of the two times.
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
            && !self.cache(|cache| cache.is_hash_of(hash, id))
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
        for (id, place) in &places {
            match self.cache(|cache| cache.at(id, *place)) {
                Some(head) => {
                    found.insert(id.clone(), (*head.version).clone());
                }
                None => missing.push(id.clone()),
            }
        }
        for part in missing.chunks(IDS_A_QUERY) {
            let pulled = self.pull(part, "[*]", at).await?.into_iter();
            let placed = pulled.filter_map(|(id, value)| places.get(&id).map(|place| (id, *place, value)));
            found.extend(self.resolved_all(placed.collect()).await?);
        }
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    /// The coordinates of all versions, in XTDB's order: by valid time, then by transaction.
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
        let request = self.read("entity", Format::Json).with("eid", id);
        let answer = self.nodes.send(&at_place(request, Some(place.valid_time), place.tx.id)).await?;
        if answer.is_missing() {
            return Err(answer.strange("no document where it lists one"));
        }
        let value = answer.json()?;
        if !is_of(&value, id.as_str()) {
            return Err(answer.strange("a document of something else"));
        }
        let (document, form) = self.resolved(id, place, value).await?;
        let version = Arc::new(version(document, place, form.mark()));
        Ok(Some(Head { version, form, bytes: 0 }))
    }

    /// The versions of an object that hold from this moment on, in the order of their transactions.
    pub(super) async fn versions_at(&self, id: &ObjectId, valid_time: Timestamp) -> Result<Vec<Version>> {
        let at = AsOf { valid_time: Some(valid_time), ..self.as_known() };
        let Some(last) = self.place(id, at).await?.filter(|place| place.valid_time == valid_time) else {
            return Ok(Vec::new());
        };
        let places = self.history_places(id, last.tx.id).await?;
        // The rows of a history do not say what it is the history of.
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

    /// The coordinates of these objects' versions, with many requests at the same time.
    pub(super) async fn places(
        self: &Arc<Self>,
        ids: &[ObjectId],
        at: AsOf,
    ) -> Result<HashMap<ObjectId, Coordinates>> {
        if at.known == Some(KnownAt::Tx(TxId(0))) {
            return Ok(HashMap::new());
        }
        let inner = Arc::clone(self);
        let found = in_parallel(ids.to_vec(), move |id| {
            let inner = Arc::clone(&inner);
            async move { inner.place(&id, at).await.map(|place| (id, place)) }
        })
        .await?;
        Ok(found.into_iter().filter_map(|(id, place)| Some((id, place?))).collect())
    }

    /// Fields of documents that there are, by one Datalog query. `pattern` is a pull pattern with `:xt/id`.
    pub(super) async fn pull(
        &self,
        ids: &[ObjectId],
        pattern: &str,
        at: AsOf,
    ) -> Result<Vec<(ObjectId, Value)>> {
        let find = format!("e (pull e {pattern})");
        let (answer, rows) =
            self.datalog((&find, "e", "[e :xt/id]"), ids.iter().map(ObjectId::as_str), at).await?;
        let mut found = Vec::with_capacity(rows.len());
        let mut asked: HashSet<&ObjectId> = ids.iter().collect();
        for row in rows {
            match row {
                Value::Array(mut row) if row.len() == 2 => {
                    let value = row[1].take();
                    let id = row[0].as_str().map(ObjectId::new);
                    let Some(id) = id.filter(|id| asked.remove(id) && is_of(&value, id.as_str())) else {
                        return Err(answer.strange("a document of something else"));
                    };
                    found.push((id, value));
                }
                _ => return Err(answer.strange("a row of another length")),
            }
        }
        // Each of them has a version at that point.
        if asked.is_empty() { Ok(found) } else { Err(answer.strange("no document where it lists one")) }
    }

    /// The content hashes of the latest versions of those objects that the database has.
    pub(super) async fn content_hashes(&self, ids: &[ObjectId]) -> Result<HashMap<ObjectId, Value>> {
        let query = ("e h", "e", "[e :content_hash h]");
        let (answer, rows) = self.datalog(query, ids.iter().map(ObjectId::as_str), AsOf::default()).await?;
        let asked: HashSet<&str> = ids.iter().map(ObjectId::as_str).collect();
        let pair = |mut row: Value| {
            let id = row.get(0).and_then(Value::as_str).filter(|id| asked.contains(id)).map(ObjectId::new);
            id.map(|id| (id, row[1].take())).ok_or_else(|| answer.strange("a row about something else"))
        };
        rows.into_iter().map(pair).collect()
    }

    /// The rows that a query finds, given what it looks for, a variable that is one of these texts, and its clauses. Each row
    /// repeats a random name of the question: a program in between may give the answer of a moment before, which was about the
    /// same objects.
    pub(super) async fn datalog(
        &self,
        (find, variable, clauses): (&str, &str, &str),
        texts: impl Iterator<Item = &str>,
        at: AsOf,
    ) -> Result<(NodeAnswer, Vec<Value>)> {
        let args: Vec<String> = texts.map(quote).collect();
        let question = format!("question:{:016x}", getrandom::u64().unwrap_or_default());
        let query = format!("{{:find [{find} q] :in [[{variable} ...] q] :where [{clauses}]}}");
        let body = format!("{{:query {query} :in-args [[{}] {}]}}", args.join(" "), quote(&question));
        let request = self.after_known(NodeRequest::post("query", Format::Json, Format::Edn, body));
        let answer = self.nodes.send(&known(valid_at(request, at.valid_time), at.known)).await?;
        match answer.json()? {
            Value::Array(mut rows) => {
                let mut is_answered = |row: &mut Value| {
                    row.as_array_mut().and_then(Vec::pop).is_some_and(|name| name == *question)
                };
                match rows.iter_mut().all(&mut is_answered) {
                    true => Ok((answer, rows)),
                    false => Err(answer.strange("the answer to another question")),
                }
            }
            _ => Err(answer.strange("no list of rows")),
        }
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
fn valid_at(request: NodeRequest, time: Option<Timestamp>) -> NodeRequest {
    match time {
        Some(time) => request.with("valid-time", time),
        None => request.with("valid-time", FOREVER),
    }
}

fn known(request: NodeRequest, known: Option<KnownAt>) -> NodeRequest {
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
