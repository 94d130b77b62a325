//! What the transaction log shows: which objects changed, and everything that was ever written.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::form::Given;
use super::http::{Format, Request};
use super::inner::{Inner, WRITERS};
use super::mark::Mark;
use super::wire::{FOREVER, PATCH, document, number, xtdb_number};
use context_store::backend::words;
use context_store::{Damage, Hit, Result, Search, StoreError, Version};

/// How many hashes are looked up in one query.
const HASHES_A_QUERY: usize = 200;

/// How often reading a log is resumed after an interruption.
const MOST_RESUMES: u32 = 5;

/// What others wrote.
pub(super) struct Foreign {
    /// The objects, each with the first of these transactions that wrote it, in that order.
    pub changed: Vec<(TxId, ObjectId)>,
    /// The newest transaction that was read.
    pub newest: TxId,
    /// The log ends there.
    pub is_all: bool,
}

impl Inner {
    /// The objects that later transactions wrote.
    pub(super) async fn changes_since(&self, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>> {
        let mut changed: HashMap<String, TxId> = HashMap::new();
        self.each_tx(tx, false, |tx, row| {
            for hash in hashes(row) {
                let newest = changed.entry(hash.to_owned()).or_insert(tx);
                *newest = tx.max(*newest);
            }
            Ok(true)
        })
        .await?;
        self.resolve(changed.keys()).await?;
        let mut named = BTreeMap::new();
        self.cache(|cache| {
            for (hash, tx) in changed {
                if let Some(Some(id)) = cache.name(&hash) {
                    named.insert(id, tx);
                }
            }
        });
        Ok(named)
    }

    /// Returns what others wrote after this transaction, within the next `most` transactions of the log: for a journal
    /// of an earlier version of this library, which does not know how far it has heard of each area.
    pub(super) async fn changes_of_others(&self, since: TxId, most: usize) -> Result<Foreign> {
        let mut rows: Vec<(TxId, Vec<String>)> = Vec::new();
        let mut count = 0;
        let mut newest = since;
        self.each_tx(since, false, |tx, row| {
            newest = tx;
            count += 1;
            if !self.cache(|cache| cache.is_own(tx)) {
                rows.push((tx, hashes(row).map(str::to_owned).collect()));
            }
            Ok(count < most)
        })
        .await?;
        // Whatever was seen must also be seen by later reads, whichever node answers them.
        self.known.fetch_max(newest.0, Ordering::AcqRel);
        self.resolve(rows.iter().flat_map(|(_, hashes)| hashes)).await?;
        let mut known: HashMap<ObjectId, TxId> = HashMap::new();
        self.cache(|cache| {
            for (tx, hashes) in &rows {
                // Those of this writer from before it started, or of another process that shares its journal.
                if cache.own_hash.as_ref().is_some_and(|own| hashes.contains(own)) {
                    continue;
                }
                for id in hashes.iter().filter_map(|hash| cache.name(hash).flatten()) {
                    known.entry(id).or_insert(*tx);
                }
            }
            known.keys().for_each(|id| cache.forget(id));
        });
        let mut changed: Vec<(TxId, ObjectId)> = known.into_iter().map(|(id, tx)| (tx, id)).collect();
        changed.sort();
        Ok(Foreign { changed, newest, is_all: count < most })
    }

    /// The objects that one transaction wrote, in order.
    pub(super) async fn written_in(&self, tx: TxId) -> Result<Vec<ObjectId>> {
        let mut written = Vec::new();
        self.each_tx(TxId(tx.0.saturating_sub(1)), false, |number, row| {
            if number == tx {
                written.extend(hashes(row).map(str::to_owned));
            }
            Ok(false)
        })
        .await?;
        self.resolve(written.iter()).await?;
        Ok(self.cache(|cache| written.iter().filter_map(|hash| cache.name(hash).flatten()).collect()))
    }

    /// Reads everything and checks it against the stored hashes.
    pub(super) async fn verify(&self) -> Result<Vec<Damage>> {
        let mut damages = Vec::new();
        // The newest version of each chat and session so far, on which the next one is based.
        let mut grown: HashMap<ObjectId, Document> = HashMap::new();
        let mut apart: BTreeSet<ObjectId> = BTreeSet::new();
        self.each_tx(TxId(0), true, |tx, row| {
            for value in documents(row) {
                let id = ObjectId::new(value["xt/id"].as_str().unwrap_or_default());
                let read = match Given::read(value.clone()) {
                    Ok(Given::Whole(document)) => Ok(document),
                    Ok(Given::Changed(changed)) => match grown.get(&id) {
                        Some(before) if before.content_hash() == changed.of() => {
                            changed.resolve(before.clone()).map(|(document, _)| document)
                        }
                        // It is based on an earlier one, because two clients wrote; its history has that version.
                        _ => {
                            apart.insert(id);
                            continue;
                        }
                    },
                    Err(error) => Err(error),
                };
                match read {
                    Ok(document) if document.object_type().is_content() => {}
                    Ok(document) => {
                        grown.insert(id, document);
                    }
                    Err(error) => {
                        damages.push(Damage { id: Some(id), tx_id: Some(tx), what: error.to_string() });
                    }
                }
            }
            Ok(true)
        })
        .await?;
        for id in apart {
            match self.history(&id).await {
                Ok(_) => {}
                Err(error @ StoreError::Corrupt(_)) => {
                    damages.push(Damage { id: Some(id), tx_id: None, what: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(damages)
    }

    /// Goes through every version of every object.
    pub(super) async fn search(&self, query: &Search) -> Result<Vec<Hit>> {
        let wanted = words::longest(&query.text);
        let mut hits: HashMap<(ObjectId, String), Hit> = HashMap::new();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let time = Timestamp::from_millis(0);
        self.each_tx(TxId(0), true, |tx, row| {
            for value in documents(row) {
                // A change contains all texts of its version, including the content.
                let is_change = value.get(PATCH).is_some();
                let mut value = value.clone();
                let _ = Mark::take(&mut value);
                let read =
                    if is_change { Document::from_json(value).map_err(Into::into) } else { document(value) };
                let Ok(document) = read else { continue };
                if !query.covers(document.id(), document.object_type()) {
                    continue;
                }
                let Some(text) = document.content().map(str::to_owned) else { continue };
                let version = Version { document, tx_id: tx, tx_time: time, valid_time: time, erased: None };
                if let Some(hit) = words::hit(&wanted, &text, &version) {
                    hits.insert((hit.id.clone(), text), hit);
                }
            }
            Ok(true)
        })
        .await?;
        let mut hits: Vec<Hit> = hits.into_values().collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.tx_id.cmp(&a.tx_id)).then(a.id.cmp(&b.id)));
        hits.truncate(query.limit);
        Ok(hits)
    }

    /// Reads the log after a transaction row by row, and resumes after interruptions.
    pub(super) async fn each_tx(
        &self,
        after: TxId,
        with_documents: bool,
        mut row: impl FnMut(TxId, &Value) -> Result<bool>,
    ) -> Result<()> {
        let mut after = after;
        let mut resumes = 0;
        loop {
            let mut request = self.read("tx-log", Format::Json);
            if let Some(number) = xtdb_number(after) {
                request = request.with("after-tx-id", number);
            }
            if with_documents {
                request = request.with("with-ops?", true);
            }
            let mut advanced = after;
            let read = self
                .nodes
                .each(&request, |value| {
                    let tx = value["txId"].as_u64().map(number).ok_or_else(|| {
                        StoreError::Unavailable("a row of XTDB's log has no transaction number".into())
                    })?;
                    let goes_on = row(tx, &value)?;
                    advanced = tx;
                    Ok(goes_on)
                })
                .await;
            match read {
                Ok(()) => return Ok(()),
                Err(error) => {
                    resumes = if advanced > after { 0 } else { resumes + 1 };
                    if resumes >= MOST_RESUMES {
                        return Err(error);
                    }
                    after = advanced;
                    tokio::time::sleep(std::time::Duration::from_millis(40 << resumes)).await;
                }
            }
        }
    }

    /// Looks up the IDs behind hashes that are not known yet.
    async fn resolve(&self, hashes: impl Iterator<Item = &String>) -> Result<()> {
        let unknown: Vec<&String> = self.cache(|cache| hashes.filter(|h| cache.name(h).is_none()).collect());
        for part in unknown.chunks(HASHES_A_QUERY) {
            let args: Vec<String> = part.iter().map(|hash| format!("#xtdb/id \"{hash}\"")).collect();
            let query = "{:find [h (pull h [:xt/id :type])] :in [[h ...]]}";
            let body = format!("{{:query {query} :in-args [[{}]]}}", args.join(" "));
            let request = Request::post("query", Format::Json, Format::Edn, body);
            let answer = self.nodes.send(&self.after_known(request).with("valid-time", FOREVER)).await?;
            let rows = answer.json()?;
            self.cache(|cache| {
                for row in rows.as_array().into_iter().flatten() {
                    let (Some(hash), Some(id)) = (row[0].as_str(), row[1]["xt/id"].as_str()) else {
                        continue;
                    };
                    if id == self.writer.as_str() {
                        cache.own_hash = Some(hash.to_owned());
                    }
                    let is_ours = row[1]["type"].as_str().is_some_and(|t| t.parse::<ObjectType>().is_ok());
                    cache.learn(hash.to_owned(), is_ours.then(|| ObjectId::new(id)));
                }
            });
        }
        Ok(())
    }
}

fn events(row: &Value) -> impl Iterator<Item = &Value> {
    row["txEvents"].as_array().into_iter().flatten()
}

/// The hashes of the IDs that a transaction wrote.
fn hashes(row: &Value) -> impl Iterator<Item = &str> {
    events(row)
        .filter(|event| matches!(event[0].as_str(), Some("put" | "delete" | "evict" | "cas")))
        .filter_map(|event| event[1].as_str())
}

/// The documents in this library's shape that a transaction wrote.
pub(super) fn documents(row: &Value) -> impl Iterator<Item = &Value> {
    let ops = row["txOps"].as_array().into_iter().flatten();
    ops.filter(|op| op[0] == "put").map(|op| &op[1]).filter(|value| {
        let is_object = value["type"].as_str().is_some_and(|t| t.parse::<ObjectType>().is_ok());
        is_object && !value["xt/id"].as_str().is_some_and(|id| id.starts_with(WRITERS))
    })
}
