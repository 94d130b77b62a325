//! Histories as JSON Lines, to move them between stores of any kind (SSOT 1.2, 3.6).
//!
//! The first line names the format, each further line is a version as it was written, and the last line has the
//! SHA-256 of everything before it. IDs, hashes, the order of versions and valid times are preserved; a store numbers
//! and dates its transactions itself, so the original ones travel as data.
//!
//! Architecture invariants:
//! - A file is checked as a whole before the first write, against the rules of the model and against the store, so a
//!   damaged, cut or forged one changes nothing, nor does one that contradicts what is there.
//! - An import checks what the store already has, version by version, so an interrupted or repeated one writes only
//!   what is missing.
//! - Memory holds the versions of one object at a time, never the file.

use std::collections::HashSet;
use std::io::{BufRead, Seek, SeekFrom, Write};

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType};
use context_model::session::Sets;
use context_model::time::Timestamp;
use serde_json::Value;

use crate::{AsOf, Change, Entry, Filter, Store, StoreError, Transaction, Write as StoreWrite};

mod format;
mod migrate;
mod outcome;
mod place;
mod rules;

use format::{Exported, Reading, Writing};
pub use migrate::migrate;
pub use outcome::{Result, Summary, TransferError};
pub use place::{Target, open};

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

/// The sessions in a file, which is checked as by [`check`].
///
/// # Errors
/// As [`check`].
pub fn sessions(file: &mut (impl BufRead + Seek)) -> Result<Vec<SessionId>> {
    file.seek(SeekFrom::Start(0))?;
    let mut reading = Reading::new(file)?;
    let mut sessions = Vec::new();
    while let Some((version, _)) = reading.next()? {
        if version.position == 0
            && let Change::Document(document) = &version.change
            && document.object_type() == ObjectType::Session
            && let Some(session) = document.text("session_id")
        {
            sessions.push(SessionId::new(session).map_err(StoreError::from)?);
        }
    }
    Ok(sessions)
}

/// Writes the versions of a file that the store does not have yet.
///
/// A file object that both know keeps the versions of both, each at its valid time. Any other object must
/// have the same history as far as both go.
///
/// # Errors
/// `INVALID_ARGUMENT` when the file is damaged, cut, no export, or holds what the model does not allow; `CONFLICT`
/// when an object that is no file has another history in the store. Nothing was then written. `IO`, and those of the
/// store.
pub async fn import(file: &mut (impl BufRead + Seek + Send), store: &dyn Store) -> Result<Summary> {
    file.seek(SeekFrom::Start(0))?;
    let mut reading = Reading::new(file)?;
    let mut object: Option<Object> = None;
    while let Some((version, _)) = reading.next()? {
        Object::at(&mut object, store, &version).await?.missing(version)?;
    }
    let mut summary = reading.summary();
    file.seek(SeekFrom::Start(0))?;
    let mut reading = Reading::new(file)?;
    let mut object: Option<Object> = None;
    let mut batch = Batch::default();
    while let Some((version, bytes)) = reading.next()? {
        if batch.is_full(bytes) || batch.objects.contains(&version.object) {
            summary.written += batch.flush(store).await?;
        }
        let object = Object::at(&mut object, store, &version).await?;
        if let Some(write) = object.missing(version)? {
            batch.objects.insert(object.id.clone());
            batch.writes.push(write);
            batch.bytes += bytes;
        }
    }
    summary.written += batch.flush(store).await?;
    Ok(summary)
}

/// Writes that wait for their transaction: at most one version of each object, so that a transaction's number still
/// names one version, as it did in the store that the file comes from.
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

/// What identifies a version in any store.
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
    stored: Vec<Entry>,
    /// How many versions of the file were found to equal the stored ones.
    common: usize,
    /// The latest version of the file, and that of the store, as far as they were compared.
    mine: Latest,
    theirs: Latest,
    /// If the histories differ: what identifies each stored version, so that each of the file's versions is looked up
    /// by itself.
    merged: Option<Vec<Mark>>,
}

impl Object {
    /// The object that a version belongs to: the current one or the next one.
    async fn at<'o>(
        present: &'o mut Option<Self>,
        store: &dyn Store,
        version: &Exported,
    ) -> Result<&'o mut Self> {
        let next = match present.take() {
            Some(object) if object.id == version.object => object,
            _ => Self {
                id: version.object.clone(),
                stored: store.journal(&version.object).await?,
                common: 0,
                mine: Latest::default(),
                theirs: Latest::default(),
                merged: None,
            },
        };
        Ok(present.insert(next))
    }

    /// The write that brings this version into the store; `None` if the store has it.
    fn missing(&mut self, version: Exported) -> Result<Option<StoreWrite>> {
        let valid_time = version.valid_time;
        if let Some(marks) = &self.merged {
            let mark = self.mine.push(version.change.clone(), valid_time)?.mark(valid_time)?;
            return Ok((!marks.contains(&mark)).then(|| self.write(version.change, valid_time)));
        }
        let Some(stored) = self.stored.get(self.common) else {
            return Ok(Some(self.write(version.change, valid_time)));
        };
        if stored.erased.is_some() && stored.valid_time == valid_time {
            // What this store's owner has erased never comes back.
            self.mine.push(version.change, valid_time)?;
            self.theirs.push(stored.change.clone(), stored.valid_time)?;
            self.common += 1;
            return Ok(None);
        }
        let is_same = stored.valid_time == valid_time && stored.change == version.change;
        let mine = self.mine.push(version.change.clone(), valid_time)?;
        let theirs = self.theirs.push(stored.change.clone(), stored.valid_time)?;
        if is_same || mine.mark(valid_time)? == theirs.mark(stored.valid_time)? {
            self.common += 1;
            return Ok(None);
        }
        let Change::Document(document) = &version.change else {
            return Err(TransferError::Different(self.id.clone()));
        };
        if document.source().is_none() {
            return Err(TransferError::Different(self.id.clone()));
        }
        let mark = Mark::new(document, valid_time);
        let mut latest = Latest::default();
        let marks = self
            .stored
            .iter()
            .map(|entry| latest.push(entry.change.clone(), entry.valid_time)?.mark(entry.valid_time));
        let marks = self.merged.insert(marks.collect::<Result<_>>()?);
        Ok((!marks.contains(&mark)).then(|| self.write(version.change, valid_time)))
    }

    fn write(&self, change: Change, valid_time: Timestamp) -> StoreWrite {
        let valid_time = Some(valid_time);
        match change {
            Change::Document(document) => StoreWrite::Put { document, valid_time },
            Change::Patch(patch) => StoreWrite::Patch { id: self.id.clone(), patch, valid_time },
        }
    }
}

/// The latest version of a history that is read entry by entry, changed in place.
#[derive(Default)]
struct Latest(Option<(Timestamp, Parts)>);

/// A document taken apart.
struct Parts {
    id: ObjectId,
    object_type: ObjectType,
    source: Option<context_model::source::Source>,
    payload: Value,
}

/// A version of such a history.
enum Pushed<'l> {
    /// The latest one.
    Latest(&'l Parts),
    /// One that is dated back.
    Earlier(Document),
}

impl Latest {
    fn push(&mut self, change: Change, valid_time: Timestamp) -> Result<Pushed<'_>> {
        let document = match change {
            Change::Patch(patch) => {
                let (time, parts) = self.0.as_mut().ok_or_else(|| {
                    StoreError::Corrupt("a history begins with a patch, which has nothing to change".into())
                })?;
                patch.change(&mut parts.payload).map_err(StoreError::from)?;
                *time = valid_time;
                return Ok(Pushed::Latest(parts));
            }
            Change::Document(document) => document,
        };
        if self.0.as_ref().is_some_and(|(time, _)| *time > valid_time) {
            return Ok(Pushed::Earlier(document));
        }
        let (id, object_type, source, payload) = document.into_parts();
        let parts = Parts { id, object_type, source, payload: Value::Object(payload) };
        Ok(Pushed::Latest(&self.0.insert((valid_time, parts)).1))
    }
}

impl Pushed<'_> {
    /// The cost is that of the whole document.
    fn mark(&self, valid_time: Timestamp) -> Result<Mark> {
        let Parts { id, object_type, source, payload } = match self {
            Self::Earlier(document) => return Ok(Mark::new(document, valid_time)),
            Self::Latest(parts) => parts,
        };
        let Value::Object(payload) = payload else {
            return Err(StoreError::Corrupt(format!("a patch of {id} does not leave an object")).into());
        };
        let document = Document::new(id.clone(), *object_type, source.clone(), payload.clone());
        Ok(Mark::new(&document.map_err(StoreError::from)?, valid_time))
    }
}
