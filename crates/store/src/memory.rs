//! The store in memory: the short reference model of the others, and the ephemeral backend (SSOT 6.3).
//!
//! It is written to be obviously correct: one list of versions in write order, searched from front to back. It keeps
//! patches as patches, so the memory for a chat grows linearly with its length and not quadratically.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch::{self, Patch};
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use crate::clock::{self, Clock};
use crate::heads::{self, Heads};
use crate::shape::{Fit, Shape, misfit};
use crate::top::Top;
use crate::words::{self, Part};
use crate::{
    AsOf, Change, Damage, Entry, Filter, Hit, Known, Outline, Receipt, Result, Search, Store, StoreError,
    Transaction, Version, Write,
};

/// A store that lives as long as its process.
pub struct MemoryStore {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// All versions in write order.
    rows: Vec<Row>,
    /// The rows of each object.
    objects: HashMap<ObjectId, Vec<usize>>,
    /// The objects in the order of their first transaction.
    order: Vec<ObjectId>,
    /// The times of the transactions; the first has number 1.
    txs: Vec<Timestamp>,
    /// The shapes of latest versions that were written as patches, by their row.
    shapes: HashMap<ObjectId, (usize, Shape)>,
    heads: Heads,
    /// What outlines of versions written as patches are made from, by row.
    tops: HashMap<ObjectId, (usize, Top)>,
    local: HashMap<String, String>,
    /// How many documents were assembled from patches.
    #[cfg(test)]
    applied: std::cell::Cell<usize>,
}

struct Row {
    written: Written,
    tx_id: TxId,
    valid_time: Timestamp,
}

enum Written {
    Document(Document),
    /// A patch, and the row that it changes.
    Patch(ObjectId, Patch, usize),
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

    fn state(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed { Err(StoreError::Closed) } else { Ok(state) }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn transact(&self, transaction: Transaction) -> Result<Receipt> {
        let mut state = self.state()?;
        for (id, expected) in &transaction.expected {
            if state.locate(id, AsOf::default()).map(|row| state.rows[row].tx_id) != *expected {
                return Err(StoreError::Conflict(id.clone()));
            }
        }
        let (rows, objects) = (state.rows.len(), state.order.len());
        let last = state.txs.last().copied();
        state.txs.push(clock::next(&self.clock, last));
        let written: Result<Vec<bool>> =
            transaction.writes.into_iter().map(|write| state.write(write)).collect();
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
        for row in state.objects.get(id).into_iter().flatten() {
            let Row { written, .. } = &state.rows[*row];
            // Each patch is applied once: the version that it changes precedes it in the answer.
            let document = match written {
                Written::Document(document) => document.clone(),
                Written::Patch(_, patch, before) => {
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
            let Row { written, tx_id, .. } = &state.rows[*row];
            if *tx_id <= after {
                continue;
            }
            if versions.len() >= most && versions.last().is_some_and(|last| last.tx_id != *tx_id) {
                break;
            }
            let document = match written {
                Written::Patch(_, patch, before) if places.contains_key(before) => {
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
        let entry = |row: &usize| {
            let Row { written, tx_id, valid_time } = &state.rows[*row];
            let change = match written {
                Written::Document(document) => Change::Document(document.clone()),
                Written::Patch(_, patch, _) => Change::Patch(patch.clone()),
            };
            Entry {
                change,
                tx_id: *tx_id,
                tx_time: state.time(*tx_id),
                valid_time: *valid_time,
                erased: None,
            }
        };
        Ok(state.objects.get(id).into_iter().flatten().map(entry).collect())
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
            if let Some(hit) = matches(&wanted, text, &version) {
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

    async fn verify(&self) -> Result<Vec<Damage>> {
        self.state().map(|_| Vec::new())
    }

    async fn flush(&self) -> Result<()> {
        self.state().map(|_| ())
    }

    async fn close(&self) -> Result<()> {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) =
            State { closed: true, ..State::default() };
        Ok(())
    }
}

impl State {
    fn newest(&self) -> TxId {
        TxId(self.txs.len() as u64)
    }

    fn time(&self, tx: TxId) -> Timestamp {
        self.txs[tx.0 as usize - 1]
    }

    fn id(&self, row: usize) -> &ObjectId {
        match &self.rows[row].written {
            Written::Document(document) => document.id(),
            Written::Patch(id, ..) => id,
        }
    }

    /// The row of the version at a point of the two times.
    fn locate(&self, id: &ObjectId, at: AsOf) -> Option<usize> {
        let known = |row: &Row| match at.known {
            None => true,
            Some(Known::Tx(tx)) => row.tx_id <= tx,
            Some(Known::Time(time)) => self.time(row.tx_id) <= time,
        };
        let holds = |row: &Row| at.valid_time.is_none_or(|time| row.valid_time <= time);
        let rows = self.objects.get(id)?.iter().copied();
        rows.filter(|row| known(&self.rows[*row]) && holds(&self.rows[*row]))
            .max_by_key(|row| (self.rows[*row].valid_time, *row))
    }

    fn document(&self, mut row: usize) -> Result<Document> {
        let mut patches = Vec::new();
        loop {
            match &self.rows[row].written {
                Written::Document(document) if patches.is_empty() => return Ok(document.clone()),
                Written::Document(document) => {
                    #[cfg(test)]
                    self.applied.set(self.applied.get() + 1);
                    return Ok(patch::apply(document.clone(), patches.into_iter().rev())?);
                }
                Written::Patch(_, patch, before) => {
                    patches.push(patch);
                    row = *before;
                }
            }
        }
    }

    /// The version in a row, whose document is this.
    fn version_of(&self, row: usize, document: Document) -> Version {
        let Row { tx_id, valid_time, .. } = self.rows[row];
        Version { document, tx_id, tx_time: self.time(tx_id), valid_time, erased: None }
    }

    fn version(&self, row: usize) -> Result<Version> {
        Ok(self.version_of(row, self.document(row)?))
    }

    fn outline(&mut self, row: usize) -> Result<Outline> {
        let id = self.id(row).clone();
        let top = match &self.rows[row].written {
            Written::Document(document) => Top::of(document.clone()),
            Written::Patch(..) => {
                let top = match self.patches_since(&id, row) {
                    Some((mut top, patches)) => {
                        for operations in patches {
                            top.change(&operations);
                        }
                        top
                    }
                    None => Top::of(self.document(row)?).of_patch(),
                };
                self.tops.insert(id.clone(), (row, top.clone()));
                top
            }
        };
        let Row { tx_id, valid_time, .. } = self.rows[row];
        let Top { object_type, source, fields, is_null } = top;
        Ok(Outline { id, object_type, source, payload: fields, is_null, tx_id, valid_time })
    }

    /// The top of an earlier version of this chain, and the patch operations from there to this row.
    fn patches_since(&mut self, id: &ObjectId, mut row: usize) -> Option<(Top, Vec<Value>)> {
        let (from, top) = self.tops.remove(id)?;
        let mut patches = Vec::new();
        while row != from {
            let Written::Patch(_, patch, before) = &self.rows[row].written else { return None };
            patches.push(serde_json::to_value(patch).ok()?);
            row = *before;
        }
        patches.reverse();
        Some((top, patches))
    }

    /// In how many texts each word is.
    fn texts_by_word(&self) -> Result<HashMap<String, u64>> {
        let mut texts = HashSet::new();
        let mut counts = HashMap::new();
        for row in 0..self.rows.len() {
            let version = self.version(row)?;
            let Some(text) = version.document.content() else { continue };
            if texts.insert(Digest::of(text.as_bytes())) {
                let words: HashSet<String> = words::tokens(text).map(|(_, word)| word).collect();
                words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
            }
        }
        Ok(counts)
    }

    fn fits(&self, id: &ObjectId, filter: &Filter) -> bool {
        let Some(row) = self.locate(id, AsOf::default()) else { return false };
        let mut first = row;
        while let Written::Patch(_, _, before) = &self.rows[first].written {
            first = *before;
        }
        let Written::Document(document) = &self.rows[first].written else { return false };
        let file = document.source().and_then(Source::as_filesystem);
        filter.object_type.is_none_or(|t| t == document.object_type())
            && filter.filesystem_id.as_ref().is_none_or(|f| file.is_some_and(|file| file.filesystem_id == *f))
            && filter.path_prefix.as_ref().is_none_or(|p| file.is_some_and(|file| is_below(&file.path, p)))
            && filter.since.is_none_or(|since| self.time(self.rows[row].tx_id) >= since)
    }

    fn write(&mut self, write: Write) -> Result<bool> {
        let tx_id = self.newest();
        let tx_time = self.time(tx_id);
        let (written, valid_time) = match write {
            Write::Put { document, valid_time } => {
                let valid_time = valid_time.unwrap_or(tx_time);
                if let Some(first) = self.objects.get(document.id()).and_then(|rows| rows.first()) {
                    let stored = self.document(*first)?;
                    if (stored.object_type(), stored.source()) != (document.object_type(), document.source())
                    {
                        return Err(envelope_differs(document.id()));
                    }
                }
                let at = AsOf { valid_time: Some(valid_time), known: None };
                if let Some(row) = self.locate(document.id(), at) {
                    let stored = self.document(row)?;
                    if stored.content_hash() == document.content_hash()
                        && stored.source_hash() == document.source_hash()
                    {
                        return Ok(false);
                    }
                }
                (Written::Document(document), valid_time)
            }
            Write::Patch { id, patch, valid_time } => {
                let before = self.locate(&id, AsOf::default()).ok_or_else(|| unknown(&id))?;
                let valid_time = patch_time(valid_time, tx_time, self.rows[before].valid_time)?;
                let shape = self.reshape(&id, before, &patch)?;
                self.shapes.insert(id.clone(), (self.rows.len(), shape));
                (Written::Patch(id, patch, before), valid_time)
            }
        };
        self.rows.push(Row { written, tx_id, valid_time });
        let row = self.rows.len() - 1;
        let id = self.id(row).clone();
        let rows = self.objects.entry(id.clone()).or_default();
        if rows.is_empty() {
            self.order.push(id);
        }
        rows.push(row);
        Ok(true)
    }

    /// The shape after a patch of this row, which shows that the patch fits.
    fn reshape(&mut self, id: &ObjectId, before: usize, patch: &Patch) -> Result<Shape> {
        let mut shape = match self.shapes.remove(id) {
            Some((row, shape)) if row == before => shape,
            _ => Shape::of(self.document(before)?.payload()),
        };
        let operations = serde_json::to_value(patch).map_err(|e| misfit(&e.to_string()))?;
        let mut head = self.heads.take(id, before as u64);
        let fit = shape.apply(&operations)?;
        if fit == Fit::Deep && head.is_none() {
            head = Some(Value::Object(self.document(before)?.into_parts().3));
        }
        if let Some(mut payload) = head {
            heads::change(&mut payload, &operations)?;
            if let (Fit::Deep, Value::Object(fields)) = (fit, &payload) {
                shape = Shape::of(fields);
            }
            self.heads.keep(id, self.rows.len() as u64, payload);
        }
        Ok(shape)
    }

    fn take_back(&mut self, rows: usize, objects: usize) {
        self.txs.pop();
        self.heads.clear();
        self.tops.clear();
        for row in rows..self.rows.len() {
            let id = self.id(row).clone();
            self.shapes.remove(&id);
            if let Some(list) = self.objects.get_mut(&id) {
                list.retain(|r| *r < rows);
            }
        }
        for id in self.order.drain(objects..) {
            self.objects.remove(&id);
        }
        self.rows.truncate(rows);
    }
}

/// Whether a path is this prefix or lies below it, at a segment border.
pub(crate) fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(crate) fn envelope_differs(id: &ObjectId) -> StoreError {
    StoreError::Invalid(format!("object {id} exists with another type or source, which never change"))
}

pub(crate) fn unknown(id: &ObjectId) -> StoreError {
    StoreError::Invalid(format!("object {id} does not exist; write it whole before patching it"))
}

/// The valid time of a patch: never earlier than that of the version that it changes.
pub(crate) fn patch_time(
    wanted: Option<Timestamp>,
    tx_time: Timestamp,
    latest: Timestamp,
) -> Result<Timestamp> {
    match wanted {
        None => Ok(tx_time.max(latest)),
        Some(time) if time >= latest => Ok(time),
        Some(_) => Err(StoreError::Invalid(
            "a patch can't have an earlier valid time than the version that it changes; write a whole document".into(),
        )),
    }
}

/// The hit of a version whose content has all words. More matches in less text score higher.
pub(crate) fn matches(wanted: &[Part], text: &str, version: &Version) -> Option<Hit> {
    let tokens: Vec<(usize, String)> = words::tokens(text).collect();
    let mut first = usize::MAX;
    let mut count = 0_usize;
    for Part { words, .. } in wanted {
        let mut places = tokens
            .windows(words.len())
            .filter(|window| window.iter().map(|(_, word)| word).eq(words))
            .peekable();
        first = first.min(places.peek()?[0].0);
        count += places.count();
    }
    let (line, snippet) = words::line_at(text, first);
    let score = count as f64 / (tokens.len() as f64 + 100.0);
    Some(Hit { id: version.document.id().clone(), tx_id: version.tx_id, line, snippet, score })
}

#[cfg(test)]
mod tests {
    use context_model::id::SessionId;
    use serde_json::json;

    use super::*;

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
}
