//! The versions in memory, and how they are found and written.

use std::collections::{HashMap, HashSet};

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch::{self, Patch};
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use crate::backend::erasing::{self, Gone};
use crate::backend::shape::{PatchFit, PayloadShape, Top, misfit};
use crate::backend::{self, Heads, envelope_differs, is_below, patch_time, unknown, words};
use crate::{AsOf, Erased, Filter, KnownAt, Outline, Result, Version, Write};

#[derive(Default)]
pub(super) struct MemoryState {
    pub closed: bool,
    /// All versions in write order.
    pub rows: Vec<MemoryRow>,
    /// The rows of each object.
    pub objects: HashMap<ObjectId, Vec<usize>>,
    /// The row of each object with the newest valid time, the last one of several.
    pub latest: HashMap<ObjectId, usize>,
    /// The objects in the order of their first transaction.
    pub order: Vec<ObjectId>,
    /// The times of the transactions; the first has number 1.
    pub txs: Vec<Timestamp>,
    /// The shapes of latest versions that were written as patches, by their row.
    pub shapes: HashMap<ObjectId, (usize, PayloadShape)>,
    pub heads: Heads,
    /// The tops from which the outlines of versions written as patches are made, by row.
    pub tops: HashMap<ObjectId, (usize, Top)>,
    /// The texts that the owner has erased.
    pub gone: Gone,
    pub local: HashMap<String, String>,
    /// Number of documents that were assembled from patches.
    #[cfg(test)]
    pub applied: std::cell::Cell<usize>,
    /// Number of rows among which a version was looked for.
    #[cfg(test)]
    pub looked: std::cell::Cell<usize>,
}

pub(super) struct MemoryRow {
    pub written: RowForm,
    pub tx_id: TxId,
    pub valid_time: Timestamp,
    /// When and why its owner erased something in it, and the content hash from before.
    pub erased: Option<(Erased, Digest)>,
}

pub(super) enum RowForm {
    Document(Document),
    /// A patch, and the row that it changes.
    Patch(ObjectId, Patch, usize),
}

impl MemoryState {
    pub(super) fn newest(&self) -> TxId {
        TxId(self.txs.len() as u64)
    }

    pub(super) fn time(&self, tx: TxId) -> Timestamp {
        self.txs[tx.0 as usize - 1]
    }

    pub(super) fn id(&self, row: usize) -> &ObjectId {
        match &self.rows[row].written {
            RowForm::Document(document) => document.id(),
            RowForm::Patch(id, ..) => id,
        }
    }

    /// The row of the version at a point of the two times.
    pub(super) fn locate(&self, id: &ObjectId, at: AsOf) -> Option<usize> {
        let known = |row: &MemoryRow| match at.known {
            None => true,
            Some(KnownAt::Tx(tx)) => row.tx_id <= tx,
            Some(KnownAt::Time(time)) => self.time(row.tx_id) <= time,
        };
        let holds = |row: &MemoryRow| at.valid_time.is_none_or(|time| row.valid_time <= time);
        // Mostly the newest version is asked for, and an object may have thousands.
        let latest = self.latest.get(id).map(|row| &self.rows[*row]);
        if latest.is_some_and(|row| known(row) && holds(row)) {
            return self.latest.get(id).copied();
        }
        let rows = self.objects.get(id)?;
        #[cfg(test)]
        self.looked.set(self.looked.get() + rows.len());
        let rows = rows.iter().copied().filter(|row| known(&self.rows[*row]) && holds(&self.rows[*row]));
        rows.max_by_key(|row| (self.rows[*row].valid_time, *row))
    }

    /// The rows of an object by valid time, among equal ones in the order in which they were written.
    pub(super) fn oldest_first(&self, id: &ObjectId) -> Vec<usize> {
        let mut rows = self.objects.get(id).cloned().unwrap_or_default();
        rows.sort_by_key(|row| (self.rows[*row].valid_time, *row));
        rows
    }

    pub(super) fn document(&self, mut row: usize) -> Result<Document> {
        let mut patches = Vec::new();
        loop {
            match &self.rows[row].written {
                RowForm::Document(document) if patches.is_empty() => return Ok(document.clone()),
                RowForm::Document(document) => {
                    #[cfg(test)]
                    self.applied.set(self.applied.get() + 1);
                    return Ok(patch::apply(document.clone(), patches.into_iter().rev())?);
                }
                RowForm::Patch(_, patch, before) => {
                    patches.push(patch);
                    row = *before;
                }
            }
        }
    }

    /// The version in a row, whose document is this.
    pub(super) fn version_of(&self, row: usize, document: Document) -> Version {
        let MemoryRow { tx_id, valid_time, .. } = self.rows[row];
        let erased = self.rows[row].erased.as_ref().map(|(mark, _)| mark.clone());
        Version { document, tx_id, tx_time: self.time(tx_id), valid_time, erased }
    }

    pub(super) fn version(&self, row: usize) -> Result<Version> {
        Ok(self.version_of(row, self.document(row)?))
    }

    pub(super) fn outline(&mut self, row: usize) -> Result<Outline> {
        let id = self.id(row).clone();
        let top = match &self.rows[row].written {
            RowForm::Document(document) => Top::of(document.clone()),
            RowForm::Patch(..) => {
                let top = match self.patches_since(&id, row) {
                    Some((mut top, patches)) => {
                        for operations in patches {
                            top.change(&operations);
                        }
                        top
                    }
                    None => Top::of(self.document(row)?).from_patch(),
                };
                self.tops.insert(id.clone(), (row, top.clone()));
                top
            }
        };
        let MemoryRow { tx_id, valid_time, .. } = self.rows[row];
        let Top { object_type, source, fields, is_null } = top;
        Ok(Outline { id, object_type, source, payload: fields, is_null, tx_id, valid_time })
    }

    /// The top of an earlier version of this chain, and the patch operations from there to this row.
    pub(super) fn patches_since(&mut self, id: &ObjectId, mut row: usize) -> Option<(Top, Vec<Value>)> {
        let (from, top) = self.tops.remove(id)?;
        let mut patches = Vec::new();
        while row != from {
            let RowForm::Patch(_, patch, before) = &self.rows[row].written else { return None };
            patches.push(serde_json::to_value(patch).ok()?);
            row = *before;
        }
        patches.reverse();
        Some((top, patches))
    }

    /// In how many texts each word is.
    pub(super) fn texts_by_word(&self) -> Result<HashMap<String, u64>> {
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

    pub(super) fn fits(&self, id: &ObjectId, filter: &Filter) -> bool {
        let Some(row) = self.locate(id, AsOf::default()) else { return false };
        let mut first = row;
        while let RowForm::Patch(_, _, before) = &self.rows[first].written {
            first = *before;
        }
        let RowForm::Document(document) = &self.rows[first].written else { return false };
        let file = document.source().and_then(Source::as_filesystem);
        filter.object_type.is_none_or(|t| t == document.object_type())
            && filter.filesystem_id.as_ref().is_none_or(|f| file.is_some_and(|file| file.filesystem_id == *f))
            && filter.path_prefix.as_ref().is_none_or(|p| file.is_some_and(|file| is_below(&file.path, p)))
            && filter.since.is_none_or(|since| self.time(self.rows[row].tx_id) >= since)
    }

    /// `mark`: that of a whole document whose owner has erased something of it elsewhere.
    pub(super) fn write(&mut self, write: Write, mark: Option<Erased>) -> Result<bool> {
        let tx_id = self.newest();
        let tx_time = self.time(tx_id);
        let mut erased = None;
        let (written, valid_time) = match write {
            Write::Put { document, valid_time } => {
                let latest = self.latest.get(document.id()).map(|row| self.rows[*row].valid_time);
                let valid_time = valid_time.unwrap_or_else(|| tx_time.max(latest.unwrap_or(tx_time)));
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
                    let before = self.rows[row].erased.as_ref().map(|(_, before)| *before);
                    if before.unwrap_or_else(|| stored.content_hash()) == document.content_hash()
                        && stored.source_hash() == document.source_hash()
                    {
                        return Ok(false);
                    }
                }
                let rest = self.gone.taken_out_of(&document, false);
                let again = || rest.is_some().then(|| erasing::again(tx_time));
                erased = mark.or_else(again).map(|mark| (mark, document.content_hash()));
                (RowForm::Document(rest.unwrap_or(document)), valid_time)
            }
            Write::Patch { id, patch, valid_time } => {
                let before = self.locate(&id, AsOf::default()).ok_or_else(|| unknown(&id))?;
                let valid_time = patch_time(valid_time, tx_time, self.rows[before].valid_time)?;
                let shape = self.reshape(&id, before, &patch)?;
                self.shapes.insert(id.clone(), (self.rows.len(), shape));
                if self.gone.is_empty() {
                    (RowForm::Patch(id, patch, before), valid_time)
                } else {
                    let document = patch::apply(self.document(before)?, [&patch])?;
                    let rest = self.gone.taken_out_of(&document, false);
                    erased = rest.is_some().then(|| (erasing::again(tx_time), document.content_hash()));
                    match rest {
                        Some(rest) => (RowForm::Document(rest), valid_time),
                        None => (RowForm::Patch(id, patch, before), valid_time),
                    }
                }
            }
        };
        self.rows.push(MemoryRow { written, tx_id, valid_time, erased });
        let row = self.rows.len() - 1;
        let id = self.id(row).clone();
        let rows = self.objects.entry(id.clone()).or_default();
        if rows.is_empty() {
            self.order.push(id.clone());
        }
        rows.push(row);
        let latest = self.latest.entry(id).or_insert(row);
        if valid_time >= self.rows[*latest].valid_time {
            *latest = row;
        }
        Ok(true)
    }

    /// The shape after a patch of this row, which shows that the patch fits.
    pub(super) fn reshape(&mut self, id: &ObjectId, before: usize, patch: &Patch) -> Result<PayloadShape> {
        let mut shape = match self.shapes.remove(id) {
            Some((row, shape)) if row == before => shape,
            _ => PayloadShape::of(self.document(before)?.payload()),
        };
        let operations = serde_json::to_value(patch).map_err(|e| misfit(&e.to_string()))?;
        let mut head = self.heads.take(id, before as u64);
        let fit = shape.apply(&operations)?;
        if fit == PatchFit::Deep && head.is_none() {
            head = Some(Value::Object(self.document(before)?.into_parts().3));
        }
        if let Some(mut payload) = head {
            backend::change(&mut payload, &operations)?;
            if let (PatchFit::Deep, Value::Object(fields)) = (fit, &payload) {
                shape = PayloadShape::of(fields);
            }
            self.heads.keep(id, self.rows.len() as u64, payload);
        }
        Ok(shape)
    }

    pub(super) fn take_back(&mut self, rows: usize, objects: usize) {
        self.txs.pop();
        self.heads.clear();
        self.tops.clear();
        for row in rows..self.rows.len() {
            let id = self.id(row).clone();
            self.shapes.remove(&id);
            if let Some(list) = self.objects.get_mut(&id) {
                list.retain(|r| *r < rows);
                let latest = list.iter().copied().max_by_key(|row| (self.rows[*row].valid_time, *row));
                match latest {
                    Some(latest) => self.latest.insert(id, latest),
                    None => self.latest.remove(&id),
                };
            }
        }
        for id in self.order.drain(objects..) {
            self.objects.remove(&id);
            self.latest.remove(&id);
        }
        self.rows.truncate(rows);
    }
}
