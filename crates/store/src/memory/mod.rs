//! The store in memory: the short reference model of the others, and the ephemeral backend.
//!
//! It is written to be obviously correct: one list of versions in write order, searched from front to back. It keeps
//! patches as patches, so the memory for a chat grows linearly with its length and not quadratically.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::patch;
use context_model::time::{Timestamp, TxId};

use crate::backend::words;
use crate::clock::{self, Clock};
use crate::{
    AsOf, Change, Damage, Entry, Erased, Filter, Hit, Outline, ReadOnly, Receipt, Result, Search, Store,
    StoreError, Transaction, Version,
};

mod owner;
mod state;

use state::{MemoryRow, MemoryState, RowForm};

/// A store that lives as long as its process.
pub struct MemoryStore {
    clock: Clock,
    state: Mutex<MemoryState>,
}

impl MemoryStore {
    /// An empty store with the system's clock.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Self::with_clock(clock::system())
    }

    /// An empty store with the given clock.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Arc<Self> {
        Arc::new(Self { clock, state: Mutex::default() })
    }

    fn state(&self) -> Result<MutexGuard<'_, MemoryState>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed { Err(StoreError::Closed) } else { Ok(state) }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn transact_marked(&self, transaction: Transaction, marks: Vec<Option<Erased>>) -> Result<Receipt> {
        let mut state = self.state()?;
        for (id, expected) in &transaction.expected {
            if state.locate(id, AsOf::default()).map(|row| state.rows[row].tx_id) != *expected {
                return Err(StoreError::Conflict(id.clone()));
            }
        }
        let (rows, objects) = (state.rows.len(), state.order.len());
        let last = state.txs.last().copied();
        state.txs.push(clock::next(&self.clock, last));
        let marks = marks.into_iter().chain(std::iter::repeat(None));
        let written: Result<Vec<bool>> =
            transaction.writes.into_iter().zip(marks).map(|(write, mark)| state.write(write, mark)).collect();
        if state.rows.len() == rows || written.is_err() {
            state.take_back(rows, objects);
        }
        let tx_time = state.txs.last().copied().unwrap_or(Timestamp::from_millis(0));
        Ok(Receipt { tx_id: state.newest(), tx_time, written: written? })
    }

    async fn get(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        let state = self.state()?;
        state.locate(id, at).map(|row| state.version(row)).transpose()
    }

    async fn get_many(&self, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>> {
        let state = self.state()?;
        ids.iter().map(|id| state.locate(id, at).map(|row| state.version(row)).transpose()).collect()
    }

    async fn outlines(&self, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>> {
        let mut state = self.state()?;
        ids.iter()
            .map(|id| state.locate(id, AsOf::default()).map(|row| state.outline(row)).transpose())
            .collect()
    }

    async fn history(&self, id: &ObjectId) -> Result<Vec<Version>> {
        let state = self.state()?;
        let mut versions: Vec<Version> = Vec::new();
        let mut places = HashMap::new();
        for row in &state.oldest_first(id) {
            let MemoryRow { written, .. } = &state.rows[*row];
            // Each patch is applied once: the version that it changes precedes it in the answer.
            let document = match written {
                RowForm::Document(document) => document.clone(),
                RowForm::Patch(_, patch, before) => {
                    let before: &Version = &versions[places[before]];
                    patch::apply(before.document.clone(), [patch])?
                }
            };
            places.insert(*row, versions.len());
            versions.push(state.version_of(*row, document));
        }
        Ok(versions)
    }

    async fn history_page(&self, id: &ObjectId, after: TxId, most: usize) -> Result<Vec<Version>> {
        let state = self.state()?;
        let mut versions: Vec<Version> = Vec::new();
        let mut places = HashMap::new();
        for row in state.objects.get(id).into_iter().flatten() {
            let MemoryRow { written, tx_id, .. } = &state.rows[*row];
            if *tx_id <= after {
                continue;
            }
            if versions.len() >= most && versions.last().is_some_and(|last| last.tx_id != *tx_id) {
                break;
            }
            let document = match written {
                RowForm::Patch(_, patch, before) if places.contains_key(before) => {
                    let before: &Version = &versions[places[before]];
                    patch::apply(before.document.clone(), [patch])?
                }
                _ => state.document(*row)?,
            };
            places.insert(*row, versions.len());
            versions.push(state.version_of(*row, document));
        }
        Ok(versions)
    }

    async fn journal(&self, id: &ObjectId) -> Result<Vec<Entry>> {
        let state = self.state()?;
        let mut last = None;
        let entry = |row: usize| {
            let MemoryRow { written, tx_id, valid_time, erased } = &state.rows[row];
            let before = last.replace(row);
            let change = match written {
                RowForm::Patch(_, patch, changed) if before == Some(*changed) => Change::Patch(patch.clone()),
                _ => Change::Document(state.document(row)?),
            };
            let erased = erased.as_ref().map(|(mark, _)| mark.clone());
            Ok(Entry { change, tx_id: *tx_id, tx_time: state.time(*tx_id), valid_time: *valid_time, erased })
        };
        state.oldest_first(id).into_iter().map(entry).collect()
    }

    async fn query(&self, filter: &Filter) -> Result<Vec<ObjectId>> {
        let state = self.state()?;
        Ok(state.order.iter().filter(|id| state.fits(id, filter)).cloned().collect())
    }

    async fn latest_tx(&self) -> Result<TxId> {
        Ok(self.state()?.newest())
    }

    async fn changes_since(&self, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>> {
        let state = self.state()?;
        let changed = state.rows.iter().enumerate().filter(|(_, row)| row.tx_id > tx);
        Ok(changed.map(|(index, row)| (state.id(index).clone(), row.tx_id)).collect())
    }

    async fn search(&self, query: &Search) -> Result<Vec<Hit>> {
        let state = self.state()?;
        let mut texts = None;
        let wanted = words::wanted(&query.text, |word| {
            let texts = match &texts {
                Some(texts) => texts,
                None => texts.insert(state.texts_by_word()?),
            };
            Ok::<_, StoreError>(texts.get(word).copied())
        })?;
        let mut hits: HashMap<(ObjectId, String), Hit> = HashMap::new();
        for row in 0..state.rows.len() {
            let version = state.version(row)?;
            if wanted.is_empty() || !query.covers(version.document.id(), version.document.object_type()) {
                continue;
            }
            let Some(text) = version.document.content() else { continue };
            if let Some(hit) = words::hit(&wanted, text, &version) {
                hits.insert((hit.id.clone(), text.to_owned()), hit);
            }
        }
        let mut hits: Vec<Hit> = hits.into_values().collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.tx_id.cmp(&a.tx_id)).then(a.id.cmp(&b.id)));
        hits.truncate(query.limit);
        Ok(hits)
    }

    async fn local_value(&self, name: &str, default: &str) -> Result<String> {
        Ok(self.state()?.local.entry(name.to_owned()).or_insert_with(|| default.to_owned()).clone())
    }

    fn read_only(self: Arc<Self>) -> Result<Arc<dyn Store>> {
        drop(self.state()?);
        Ok(Arc::new(ReadOnly::new(self)))
    }

    async fn verify(&self) -> Result<Vec<Damage>> {
        self.state().map(|_| Vec::new())
    }

    async fn flush(&self) -> Result<()> {
        self.state().map(|_| ())
    }

    async fn close(&self) -> Result<()> {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) =
            MemoryState { closed: true, ..MemoryState::default() };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use context_model::id::SessionId;
    use context_model::object::Document;
    use context_model::patch::Patch;
    use serde_json::json;

    use super::*;
    use crate::{KnownAt, Write};

    #[tokio::test]
    async fn the_outline_of_a_growing_document_is_not_put_together_from_all_patches() {
        let store = MemoryStore::new();
        let session = SessionId::new("s").unwrap();
        let id = ObjectId::chat(&session);
        let write = async |write| {
            store.transact(Transaction { writes: vec![write], expected: Vec::new() }).await.unwrap();
        };
        write(Write::put(Document::chat(&session))).await;
        for turn in 1..=300 {
            let mut patch = Patch::new();
            patch.append(&["turns"], json!({ "user": turn }));
            patch.set(&["turn_count"], json!(turn));
            write(Write::patch(id.clone(), patch)).await;
            if turn % 3 == 0 {
                let outline = store.outlines(std::slice::from_ref(&id)).await.unwrap().remove(0).unwrap();
                assert_eq!((&outline.payload["turn_count"], outline.is_null), (&json!(turn), false));
                assert_eq!(outline.payload.keys().collect::<Vec<_>>(), ["session_ref", "turn_count"]);
            }
        }
        assert_eq!(store.state().unwrap().applied.get(), 1);
    }

    #[tokio::test]
    async fn newest_version_is_found_without_a_look_at_the_others() {
        let store = MemoryStore::new();
        let session = SessionId::new("s").unwrap();
        let id = ObjectId::chat(&session);
        let write =
            async |write| store.transact(Transaction { writes: vec![write], expected: Vec::new() }).await;
        write(Write::put(Document::chat(&session))).await.unwrap();
        let mut txs = Vec::new();
        for turn in 1..=100 {
            let mut patch = Patch::new();
            patch.append(&["turns"], json!({ "user": turn }));
            txs.push(write(Write::patch(id.clone(), patch)).await.unwrap().tx_id);
            assert_eq!(store.get(&id, AsOf::default()).await.unwrap().unwrap().tx_id, txs[turn - 1]);
            // One that is refused leaves the newest one in its place.
            let mut misfit = Patch::new();
            misfit.append(&["none", "such"], json!(1));
            write(Write::patch(id.clone(), misfit)).await.unwrap_err();
        }
        assert_eq!(store.state().unwrap().looked.get(), 0);
        let at = AsOf { known: Some(KnownAt::Tx(txs[49])), valid_time: None };
        assert_eq!(store.get(&id, at).await.unwrap().unwrap().tx_id, txs[49]);
        assert_eq!(store.state().unwrap().looked.get(), 101);
    }
}
