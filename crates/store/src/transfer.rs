//! Histories as JSON Lines, to move them between stores of any kind.
//!
//! The first line names the format, each further line is a version as it was written, and the last line has the
//! SHA-256 of everything before it. IDs, hashes, the order of versions and valid times are preserved. Every store numbers
//! and dates its transactions itself, so the original numbers and times are kept as data.
//!
//! Architecture invariants:
//! - The whole file is checked before the first write, against the rules of the model and against the store. So a
//!   damaged, truncated or forged file changes nothing, nor does one that contradicts the store.
//! - An import compares each version with the store, so after an interruption a repeated import writes only the missing
//!   ones.
//! - Only the versions of one object are in memory at a time, never the whole file.

mod batch;
mod format;
mod lists;
mod place;
mod rules;

use std::io::{BufRead, Cursor, Seek, SeekFrom, Write};

use batch::{ImportBatch, ImportWrite, repeated};
use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType};
use context_model::session::Sets;
use context_model::time::{Timestamp, TxId};
use format::{Exported, Reading, Writing};
pub use place::{Target, open};
use serde_json::Value;

use crate::{AsOf, Change, Entry, Filter, Store, StoreError, Write as StoreWrite};

/// The objects of a session in the order of an export: its prompt, its index, its chat and itself.
///
/// # Errors
/// Errors of the store, and `INVALID_ARGUMENT` for a session document that contradicts itself. A session that does not
/// exist is not an error: the list is then empty.
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

/// All objects of a store in the order of an export, which is the order of their first transactions.
pub async fn all_objects(store: &dyn Store) -> Result<Vec<ObjectId>> {
    Ok(store.query(&Filter::default()).await?)
}

/// Writes the whole histories of these objects. IDs that are not in the store are skipped.
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

/// Copies the whole histories of these objects into a store that has none of them, such as one in memory. That one numbers
/// its transactions itself.
///
/// # Errors
/// As of [`export`] and [`import`].
pub async fn copy(from: &dyn Store, ids: &[ObjectId], to: &dyn Store) -> Result<Summary> {
    let mut file = Vec::new();
    export(from, ids, &mut file).await?;
    import(&mut Cursor::new(file), to).await
}

/// The part of an export that is one object's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The transaction and the time of each version, in the order of the export.
    pub written: Vec<(TxId, Timestamp)>,
    /// The bytes of its lines.
    pub bytes: u64,
}

/// Measures what an export would have of an object; nothing of an unknown one.
///
/// # Errors
/// Those of the store.
pub async fn extent(store: &dyn Store, id: &ObjectId) -> Result<Extent> {
    let mut extent = Extent::default();
    for (position, entry) in (0..).zip(store.journal(id).await?) {
        extent.written.push((entry.tx_id, entry.tx_time));
        extent.bytes += Exported::new(id.clone(), position, entry).line()?.len() as u64;
    }
    Ok(extent)
}

/// Reads a whole file and describes its content. Needs no store.
///
/// # Errors
/// `INVALID_ARGUMENT` if it is damaged, truncated, or not an export; `IO`.
pub fn check(file: &mut (impl BufRead + Seek)) -> Result<Summary> {
    file.seek(SeekFrom::Start(0))?;
    let mut reading = Reading::new(file)?;
    while reading.next()?.is_some() {}
    Ok(reading.summary())
}

/// The sessions in a file. The file is checked as by [`check`].
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
/// A file object that is in both gets the versions of both, each at its valid time. The two histories of any other
/// object must be equal up to the end of the shorter one.
///
/// # Errors
/// `INVALID_ARGUMENT` if the file is damaged, truncated, not an export, or contains something that the model does not
/// allow. `CONFLICT` if an object other than a file has a different history in the store. In both cases nothing was
/// written. `IO`, and errors of the store.
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
    let (mut batch, mut run) = (ImportBatch::default(), Vec::new());
    while let Some((version, bytes)) = reading.next()? {
        let object = Object::at(&mut object, store, &version).await?;
        let (id, mark) = (object.id.clone(), version.erased.clone());
        let Some(write) = object.missing(version)? else { continue };
        if !repeated(&run, &write) {
            summary.written += batch.take(&mut run, store).await?;
        }
        run.push(ImportWrite { id, write, mark, bytes });
    }
    summary.written += batch.take(&mut run, store).await?;
    summary.written += batch.flush(store).await?;
    Ok(summary)
}

/// The hashes and the time that identify a version in any store.
#[derive(Clone, Debug, PartialEq)]
struct ResumeMark {
    content_hash: Digest,
    source_hash: Option<Digest>,
    valid_time: Timestamp,
}

impl ResumeMark {
    fn new(document: &Document, valid_time: Timestamp) -> Self {
        Self { content_hash: document.content_hash(), source_hash: document.source_hash(), valid_time }
    }

    /// True if another mark is that of this version. The bytes of a file that `other` has erased keep their hash.
    fn is_of_same(&self, other: &Self, is_erased: bool) -> bool {
        let is_like = is_erased && self.source_hash.is_some();
        *self == *other
            || (is_like && (self.source_hash, self.valid_time) == (other.source_hash, other.valid_time))
    }
}

/// An object whose versions are being imported.
struct Object {
    id: ObjectId,
    /// The versions that the store had before.
    stored: Vec<Entry>,
    /// Number of versions of the file that equal the stored ones.
    common: usize,
    /// The latest versions compared so far, of the file and of the store.
    mine: Latest,
    theirs: Latest,
    /// If the histories differ: what identifies each stored version, so that each version of the file can be looked up
    /// separately.
    merged: Option<Vec<ResumeMark>>,
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
        let is_erased = version.erased.is_some();
        if let Some(marks) = &self.merged {
            let mark = self.mine.push(version.change.clone(), valid_time)?.mark(valid_time)?;
            let is_stored = marks.iter().any(|stored| stored.is_of_same(&mark, is_erased));
            return Ok((!is_stored).then(|| self.write(version.change, valid_time)));
        }
        let Some(stored) = self.stored.get(self.common) else {
            return Ok(Some(self.write(version.change, valid_time)));
        };
        if (stored.erased.is_some() || is_erased) && stored.valid_time == valid_time {
            // Text that this store's owner has erased is never restored, and what another one has erased stays here.
            self.mine.push(version.change, valid_time)?;
            self.theirs.push(stored.change.clone(), stored.valid_time)?;
            self.common += 1;
            return Ok(None);
        }
        if valid_time < stored.valid_time
            && matches!(stored.change, Change::Document(_))
            && stored.change == version.change
        {
            // An interrupted import wrote the last of equal versions, and not yet this one (see `repeated`).
            self.mine.push(version.change.clone(), valid_time)?;
            return Ok(Some(self.write(version.change, valid_time)));
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
        let mark = ResumeMark::new(document, valid_time);
        let mut latest = Latest::default();
        let marks = self
            .stored
            .iter()
            .map(|entry| latest.push(entry.change.clone(), entry.valid_time)?.mark(entry.valid_time));
        let marks = self.merged.insert(marks.collect::<Result<_>>()?);
        let is_stored = marks.iter().any(|stored| stored.is_of_same(&mark, is_erased));
        Ok((!is_stored).then(|| self.write(version.change, valid_time)))
    }

    fn write(&self, change: Change, valid_time: Timestamp) -> StoreWrite {
        let valid_time = Some(valid_time);
        match change {
            Change::Document(document) => StoreWrite::Put { document, valid_time },
            Change::Patch(patch) => StoreWrite::Patch { id: self.id.clone(), patch, valid_time },
        }
    }
}

/// The latest version of a history that is read entry by entry. Patches change it in place.
#[derive(Default)]
struct Latest(Option<(Timestamp, ExportParts)>);

/// A document, split into its parts.
struct ExportParts {
    id: ObjectId,
    object_type: ObjectType,
    source: Option<context_model::source::Source>,
    payload: Value,
}

/// A version of such a history.
enum Pushed<'l> {
    /// The latest one.
    Latest(&'l ExportParts),
    /// One with an earlier valid time than the latest.
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
        let parts = ExportParts { id, object_type, source, payload: Value::Object(payload) };
        Ok(Pushed::Latest(&self.0.insert((valid_time, parts)).1))
    }
}

impl Pushed<'_> {
    /// The time depends on the size of the whole document.
    fn mark(&self, valid_time: Timestamp) -> Result<ResumeMark> {
        let ExportParts { id, object_type, source, payload } = match self {
            Self::Earlier(document) => return Ok(ResumeMark::new(document, valid_time)),
            Self::Latest(parts) => parts,
        };
        let Value::Object(payload) = payload else {
            return Err(StoreError::Corrupt(format!("a patch of {id} does not leave an object")).into());
        };
        let document = Document::new(id.clone(), *object_type, source.clone(), payload.clone());
        Ok(ResumeMark::new(&document.map_err(StoreError::from)?, valid_time))
    }
}

/// The outcome of an export or import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The objects in the file.
    pub objects: u64,
    /// The versions in the file.
    pub versions: u64,
    /// The versions that the store did not have; 0 for an export.
    pub written: u64,
}

/// An error of an export or import.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// The store's own error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// `IO`: the file can't be read or written.
    #[error("the export file can't be read or written: {0}")]
    Io(String),
    /// `INVALID_ARGUMENT`: the file is damaged, truncated, or not an export. Nothing was written.
    #[error("line {line} of the export file: {what}; nothing was imported, get a complete copy of the file")]
    Damaged {
        /// The line, counted from 1.
        line: u64,
        /// The fault in that line.
        what: String,
    },
    /// `CONFLICT`: the store has an object with the same ID and a different history.
    #[error("{0} has a different history in this store; import the file into a store without it")]
    Different(ObjectId),
}

impl TransferError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Io(_) => ErrorCode::Io,
            Self::Damaged { .. } => ErrorCode::InvalidArgument,
            Self::Different(_) => ErrorCode::Conflict,
        }
    }
}

impl From<std::io::Error> for TransferError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

/// The result of an export or import.
pub type Result<T> = std::result::Result<T, TransferError>;
