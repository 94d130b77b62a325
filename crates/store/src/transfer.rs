//! Histories as JSON Lines, to move them between stores of any kind (SSOT 1.2, 3.6).
//!
//! The first line names the format, each further one is a version in the form in which it was written, and the
//! last one has the SHA-256 of everything before it. IDs, hashes, the order of versions and valid times stay;
//! a store numbers and dates its transactions itself, so the original ones travel as data.
//!
//! Architecture invariants:
//! - A file is checked as a whole before the first write, so a damaged or cut one changes nothing.
//! - An import looks at what the store has already, version by version, so one that was interrupted, or is
//!   repeated, writes only what is missing.
//! - Memory holds the versions of one object at a time, never the file.

use std::collections::HashSet;
use std::io::{BufRead, Seek, SeekFrom, Write};

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::{self, Patch};
use context_model::session::Sets;
use context_model::time::Timestamp;

use crate::{AsOf, Change, Filter, Store, StoreError, Transaction, Write as StoreWrite};

mod format;
mod migrate;
mod outcome;

use format::{Exported, Reading, Writing};
pub use migrate::migrate;
pub use outcome::{Result, Summary, TransferError};

/// The most writes that an import puts into one transaction.
const WRITES_A_TRANSACTION: usize = 64;

/// The most bytes of lines that an import puts into one transaction; one longer line has one of its own.
const BYTES_A_TRANSACTION: usize = 1 << 20;

/// The objects of a session in the order of an export: its prompt, its index, its chat and itself.
///
/// # Errors
/// `UNKNOWN_OBJECT` has no variant here: a session that does not exist gives an empty list. Errors of the
/// store, and `INVALID_ARGUMENT` for a session document that contradicts itself.
pub async fn session_objects(store: &dyn Store, session: &SessionId) -> Result<Vec<ObjectId>> {
    let Some(version) = store.get(&ObjectId::session(session), AsOf::default()).await? else {
        return Ok(Vec::new());
    };
    let sets = Sets::from_document(&version.document).map_err(StoreError::from)?;
    let mut ids = vec![ObjectId::system_prompt(session)];
    ids.extend(sets.index().iter().cloned());
    ids.extend([ObjectId::chat(session), ObjectId::session(session)]);
    Ok(ids)
}

/// All objects of a store in the order of an export: that of their first transactions.
///
/// # Errors
/// Those of the store.
pub async fn all_objects(store: &dyn Store) -> Result<Vec<ObjectId>> {
    Ok(store.query(&Filter::default()).await?)
}

/// Writes the whole histories of these objects. IDs that the store does not have are left out.
///
/// # Errors
/// `IO`, and those of the store.
pub async fn export(store: &dyn Store, ids: &[ObjectId], out: &mut (dyn Write + Send)) -> Result<Summary> {
    let mut writing = Writing::new(out)?;
    for id in ids {
        for (position, entry) in (0..).zip(store.journal(id).await?) {
            writing.version(&Exported::new(id.clone(), position, entry))?;
        }
    }
    Ok(writing.close()?)
}

/// Reads a file from its start and says what is in it, without a store.
///
/// # Errors
/// `INVALID_ARGUMENT` when it is damaged, cut, or no export; `IO`.
pub fn check(file: &mut (impl BufRead + Seek)) -> Result<Summary> {
    file.seek(SeekFrom::Start(0))?;
    let mut reading = Reading::new(file)?;
    while reading.next()?.is_some() {}
    Ok(reading.summary())
}

/// Writes the versions of a file that the store does not have yet.
///
/// A file object that both know keeps the versions of both, each at its valid time. Any other object must
/// have the same history as far as both go.
///
/// # Errors
/// `INVALID_ARGUMENT` when the file is damaged, cut, or no export; nothing was written then. `CONFLICT` when
/// an object that is no file has another history; objects before it in the file may have been imported.
/// `IO`, and those of the store.
pub async fn import(file: &mut (impl BufRead + Seek + Send), store: &dyn Store) -> Result<Summary> {
    let mut summary = check(file)?;
    file.seek(SeekFrom::Start(0))?;
    let mut reading = Reading::new(file)?;
    let mut object: Option<Object> = None;
    let mut batch = Batch::default();
    while let Some((version, bytes)) = reading.next()? {
        if batch.is_full(bytes) || batch.objects.contains(&version.object) {
            summary.written += batch.flush(store).await?;
        }
        if object.as_ref().is_none_or(|object| object.id != version.object) {
            object = Some(Object::open(store, version.object.clone()).await?);
        }
        let Some(object) = object.as_mut() else { continue };
        if let Some(write) = object.missing(version)? {
            batch.objects.insert(object.id.clone());
            batch.writes.push(write);
            batch.bytes += bytes;
        }
    }
    summary.written += batch.flush(store).await?;
    Ok(summary)
}

/// Writes that wait for their transaction: at most one version of each object, so that a transaction's number
/// goes on naming one version, as it did in the store that the file comes from.
#[derive(Default)]
struct Batch {
    writes: Vec<StoreWrite>,
    bytes: usize,
    objects: HashSet<ObjectId>,
}

impl Batch {
    fn is_full(&self, more: usize) -> bool {
        self.writes.len() >= WRITES_A_TRANSACTION
            || (self.bytes > 0 && self.bytes + more > BYTES_A_TRANSACTION)
    }

    async fn flush(&mut self, store: &dyn Store) -> Result<u64> {
        self.bytes = 0;
        self.objects.clear();
        if self.writes.is_empty() {
            return Ok(0);
        }
        let writes = std::mem::take(&mut self.writes);
        let receipt = store.transact(Transaction { writes, expected: Vec::new() }).await?;
        Ok(receipt.written.iter().filter(|written| **written).count() as u64)
    }
}

/// What identifies a version whatever store it is in.
#[derive(Clone, Debug, PartialEq)]
struct Mark {
    content_hash: Digest,
    source_hash: Option<Digest>,
    valid_time: Timestamp,
}

impl Mark {
    fn new(document: &Document, valid_time: Timestamp) -> Self {
        Self { content_hash: document.content_hash(), source_hash: document.source_hash(), valid_time }
    }
}

/// An object while its versions are imported.
struct Object {
    id: ObjectId,
    /// The versions that the store had before.
    stored: Vec<Mark>,
    /// How many versions of the file were seen to be the stored ones.
    common: usize,
    /// Whether the histories differ, so that each version is looked for by itself.
    is_merged: bool,
    /// The state of the file's history, for comparing patches; `None` where there is nothing to compare.
    states: States,
}

impl Object {
    async fn open(store: &dyn Store, id: ObjectId) -> Result<Self> {
        let mut states = States::default();
        let mut stored = Vec::new();
        for entry in store.journal(&id).await? {
            let document = states.push(entry.change, entry.valid_time)?;
            stored.push(Mark::new(document, entry.valid_time));
        }
        Ok(Self { id, stored, common: 0, is_merged: false, states: States::default() })
    }

    /// The write that brings this version into the store; `None` where it has it.
    fn missing(&mut self, version: Exported) -> Result<Option<StoreWrite>> {
        let valid_time = version.valid_time;
        if self.stored.is_empty() || (!self.is_merged && self.common == self.stored.len()) {
            return Ok(Some(match version.change {
                Change::Document(document) => StoreWrite::Put { document, valid_time: Some(valid_time) },
                Change::Patch(patch) => {
                    StoreWrite::Patch { id: self.id.clone(), patch, valid_time: Some(valid_time) }
                }
            }));
        }
        let document = self.states.push(version.change, valid_time)?.clone();
        let mark = Mark::new(&document, valid_time);
        if !self.is_merged {
            if self.stored[self.common] == mark {
                self.common += 1;
                return Ok(None);
            }
            if document.source().is_none() {
                return Err(TransferError::Different(self.id.clone()));
            }
            self.is_merged = true;
        }
        if self.stored.contains(&mark) {
            return Ok(None);
        }
        Ok(Some(StoreWrite::Put { document, valid_time: Some(valid_time) }))
    }
}

/// The versions of an object one after the other, with patches applied to the version that was the latest.
#[derive(Default)]
struct States {
    latest: Option<(Timestamp, Document)>,
    current: Option<Document>,
}

impl States {
    fn push(&mut self, change: Change, valid_time: Timestamp) -> Result<&Document> {
        let document = match change {
            Change::Document(document) => document,
            Change::Patch(patch) => self.patched(&patch)?,
        };
        if self.latest.as_ref().is_none_or(|(time, _)| *time <= valid_time) {
            self.latest = Some((valid_time, document.clone()));
        }
        Ok(self.current.insert(document))
    }

    fn patched(&self, patch: &Patch) -> Result<Document> {
        let (_, latest) = self.latest.as_ref().ok_or_else(|| {
            StoreError::Corrupt("a history begins with a patch, which has nothing to change".into())
        })?;
        Ok(patch::apply(latest.clone(), [patch]).map_err(StoreError::from)?)
    }
}
