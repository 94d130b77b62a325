//! The transaction log: the objects that changed, and everything that was ever written.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::form::Given;
use super::http::Format;
use super::inner::{WRITERS, XtdbClient};
use super::mark::Mark;
use super::wire::{self, PATCH, number, xtdb_number};
use context_store::backend::words;
use context_store::{AsOf, Damage, Hit, Result, Search, StoreError, Version};

/// Number of hashes that are looked up in one query.
const HASHES_A_QUERY: usize = 200;

impl XtdbClient {
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

    /// Reads everything and checks it against the stored hashes. What looks damaged in the log is read once more by itself.
    pub(super) async fn verify(&self) -> Result<Vec<Damage>> {
        let mut suspects: Vec<(ObjectId, TxId, String)> = Vec::new();
        // The newest version of each chat and session so far, on which the next one is based.
        let mut grown: HashMap<ObjectId, Document> = HashMap::new();
        let mut apart: BTreeSet<ObjectId> = BTreeSet::new();
        self.each_tx_of_all(|tx, row| {
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
                    Err(error) => suspects.push((id, tx, error.to_string())),
                }
            }
        })
        .await?;
        let mut damages = Vec::new();
        for (id, tx, what) in suspects {
            match self.version(&id, tx).await {
                // Its owner may have removed it meanwhile.
                Ok(None) => {}
                Ok(Some(_)) => return Err(self.nodes.foreign("its whole log")),
                Err(StoreError::Corrupt(_)) => damages.push(Damage { id: Some(id), tx_id: Some(tx), what }),
                Err(error) => return Err(error),
            }
        }
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

    /// Goes through every version of every object. What looks damaged in the log is read once more by itself; if it is, the version
    /// is a hit that says so.
    pub(super) async fn search(&self, query: &Search) -> Result<Vec<Hit>> {
        let wanted = words::longest(&query.text);
        let mut hits: HashMap<(ObjectId, String), Hit> = HashMap::new();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let time = Timestamp::from_millis(0);
        let mut suspects: Vec<(ObjectId, TxId)> = Vec::new();
        self.each_tx_of_all(|tx, row| {
            for value in documents(row) {
                // A change contains all texts of its version, including the content.
                let is_change = value.get(PATCH).is_some();
                let mut value = value.clone();
                let _ = Mark::take(&mut value);
                // A document in another shape belongs to another program.
                let Ok(document) = Document::from_json(value.clone()) else { continue };
                if !query.covers(document.id(), document.object_type()) {
                    continue;
                }
                if !is_change && wire::document(value).is_err() {
                    suspects.push((document.id().clone(), tx));
                    continue;
                }
                let Some(text) = document.content().map(str::to_owned) else { continue };
                let version = Version { document, tx_id: tx, tx_time: time, valid_time: time, erased: None };
                if let Some(hit) = words::hit(&wanted, &text, &version) {
                    hits.insert((hit.id.clone(), text), hit);
                }
            }
        })
        .await?;
        let mut hits: Vec<Hit> = hits.into_values().collect();
        for (id, tx) in suspects {
            match self.version(&id, tx).await {
                // Its owner may have removed it meanwhile.
                Ok(None) => {}
                Ok(Some(_)) => return Err(self.nodes.foreign("its whole log")),
                Err(StoreError::Corrupt(_)) => hits.push(Hit::damaged(id, tx, 0.0)),
                Err(error) => return Err(error),
            }
        }
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
        let last = AtomicU64::new(after.0);
        let request = || {
            let mut request = self.read("tx-log", Format::Json);
            if let Some(number) = xtdb_number(TxId(last.load(Ordering::Relaxed))) {
                request = request.with("after-tx-id", number);
            }
            if with_documents { request.with("with-ops?", true) } else { request }
        };
        let each = |value: Value| {
            let tx = value["txId"].as_u64().map(number).ok_or_else(|| {
                StoreError::Unavailable("a row of XTDB's log has no transaction number".into())
            })?;
            if tx.0 <= last.load(Ordering::Relaxed) {
                return Err(self.nodes.foreign("its log"));
            }
            let goes_on = row(tx, &value)?;
            last.store(tx.0, Ordering::Relaxed);
            Ok(goes_on)
        };
        self.nodes.each(request, each).await
    }

    /// Looks up the IDs behind hashes that are not known yet.
    async fn resolve(&self, hashes: impl Iterator<Item = &String>) -> Result<()> {
        let unknown: Vec<&String> = self.cache(|cache| hashes.filter(|h| cache.name(h).is_none()).collect());
        for part in unknown.chunks(HASHES_A_QUERY) {
            let values = part.iter().map(|hash| format!("#xtdb/id \"{hash}\"")).collect();
            let (_, rows) =
                self.rows(("h (pull h [:xt/id :type])", "h", ""), values, AsOf::default()).await?;
            self.cache(|cache| {
                for row in &rows {
                    let (Some(hash), Some(id)) = (row[0].as_str(), row[1]["xt/id"].as_str()) else {
                        continue;
                    };
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
