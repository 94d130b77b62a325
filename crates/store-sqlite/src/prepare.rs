//! Prepares transactions for the writer: everything that can be computed without a lock is computed here.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::time::{Timestamp, TxId};
use serde_json::{Map, Value};

use super::form::NewText;
use super::pack::Skeleton;
use context_store::backend::erasing::{Gone, Rest};
use context_store::{Result, StoreError, Transaction, Write};

/// A transaction in the form of rows.
pub(super) struct Prepared {
    pub writes: Vec<PreparedWrite>,
    pub expected: Vec<(ObjectId, Option<TxId>)>,
    /// The commit need not be synced.
    pub is_deferred: bool,
    /// A write without a valid time is dated a millisecond after the version that it replaces, if that one is not older.
    pub is_after_latest: bool,
    /// The versions come from another database, which is noted in the same transaction.
    pub is_brought: bool,
}

pub(super) enum PreparedWrite {
    Put(Box<PutWrite>),
    Patch(PatchWrite),
}

/// A whole document in the form of a row.
pub(super) struct PutWrite {
    pub id: ObjectId,
    pub object_type: ObjectType,
    pub source: Option<String>,
    /// The payload without its content and hashes.
    pub body: Skeleton,
    pub text: Option<NewText>,
    /// True if all of the text is forgotten. Then only its hash and length are stored.
    pub is_text_gone: bool,
    pub content_hash: Digest,
    pub source_hash: Option<Digest>,
    pub valid_time: Option<Timestamp>,
    /// The mark of a version that its owner has erased elsewhere, as JSON.
    pub erased: Option<String>,
    /// True if something in it is forgotten, and was masked.
    pub is_masked: bool,
}

/// A patch in the form of a row, except for what depends on the version before it.
pub(super) struct PatchWrite {
    pub id: ObjectId,
    pub operations: Value,
    pub skeleton: Skeleton,
    pub valid_time: Option<Timestamp>,
    /// The transaction of the version that it changes; `None` for the latest one.
    pub of: Option<TxId>,
    /// True if something in it is forgotten, and was masked.
    pub is_masked: bool,
}

impl Prepared {
    /// # Errors
    /// `INVALID_ARGUMENT` for what can't be written as JSON.
    pub(crate) fn new(transaction: Transaction) -> Result<Self> {
        let writes = transaction.writes.into_iter().map(PreparedWrite::new).collect::<Result<_>>()?;
        let expected = transaction.expected;
        Ok(Self { writes, expected, is_deferred: false, is_after_latest: false, is_brought: false })
    }

    /// Sets the marks of whole documents.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a mark that can't be written as JSON.
    pub(crate) fn mark(&mut self, marks: &[Option<context_store::Erased>]) -> Result<()> {
        for (write, mark) in self.writes.iter_mut().zip(marks) {
            if let (PreparedWrite::Put(put), Some(mark)) = (write, mark) {
                put.erased = Some(super::erase::mark_json(mark)?);
            }
        }
        Ok(())
    }
}

impl PreparedWrite {
    fn new(write: Write) -> Result<Self> {
        match write {
            Write::Put { document, valid_time } => {
                PutWrite::new(document, valid_time).map(Box::new).map(Self::Put)
            }
            Write::Patch { id, patch, valid_time } => {
                let operations = serde_json::to_value(&patch).map_err(unwritable)?;
                let skeleton = Skeleton::of(operations.to_string());
                Ok(Self::Patch(PatchWrite {
                    id,
                    operations,
                    skeleton,
                    valid_time,
                    of: None,
                    is_masked: false,
                }))
            }
        }
    }
}

impl PreparedWrite {
    /// The write with marks in place of forgotten text; `None` if it has none. The hash of a whole document stays that of
    /// the original, so that the same document is not written twice.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what can't be written as JSON.
    pub(crate) fn masked(&self, gone: &Gone) -> Result<Option<Self>> {
        match self {
            Self::Put(put) => {
                let json = put.body.whole();
                let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(&json) else {
                    return Ok(None);
                };
                let rest = put.text.as_ref().and_then(|text| gone.rest_of(&text.text, &text.key));
                if !gone.mask_payload(&mut fields) && rest.is_none() {
                    return Ok(None);
                }
                let json = serde_json::to_string(&fields).map_err(unwritable)?;
                let is_text_gone = rest == Some(Rest::None);
                let text = match rest {
                    Some(Rest::Text(text)) => Some(NewText::new(text)),
                    Some(Rest::None) | None => put.text.clone(),
                };
                Ok(Some(Self::Put(Box::new(PutWrite {
                    id: put.id.clone(),
                    object_type: put.object_type,
                    source: put.source.clone(),
                    body: Skeleton::of(json),
                    text,
                    is_text_gone,
                    content_hash: put.content_hash,
                    source_hash: put.source_hash,
                    valid_time: put.valid_time,
                    erased: put.erased.clone(),
                    is_masked: true,
                }))))
            }
            Self::Patch(patch) => {
                let mut operations = patch.operations.clone();
                if !gone.mask_patch(&mut operations) {
                    return Ok(None);
                }
                let skeleton = Skeleton::of(operations.to_string());
                let PatchWrite { id, valid_time, of, .. } = patch;
                let (id, valid_time, of) = (id.clone(), *valid_time, *of);
                Ok(Some(Self::Patch(PatchWrite {
                    id,
                    operations,
                    skeleton,
                    valid_time,
                    of,
                    is_masked: true,
                })))
            }
        }
    }
}

impl PutWrite {
    fn new(document: Document, valid_time: Option<Timestamp>) -> Result<Self> {
        let (content_hash, key) = (document.content_hash(), document.text_hash());
        let (id, object_type, source, mut payload) = document.into_parts();
        let source = source.map(|s| serde_json::to_string(&s)).transpose().map_err(unwritable)?;
        let text = match (payload.remove("content"), key) {
            (Some(Value::String(text)), Some(key)) => Some(NewText::with_key(text, key)),
            (Some(other), _) => {
                payload.insert("content".into(), other);
                None
            }
            (None, _) => None,
        };
        let (body, source_hash) = body_of(payload)?;
        Ok(Self {
            id,
            object_type,
            source,
            body,
            text,
            is_text_gone: false,
            content_hash,
            source_hash,
            valid_time,
            erased: None,
            is_masked: false,
        })
    }
}

/// A payload whose content was already removed, without its hashes; and its source hash.
///
/// # Errors
/// `INVALID_ARGUMENT` for what can't be written as JSON.
pub(super) fn body_of(mut payload: Map<String, Value>) -> Result<(Skeleton, Option<Digest>)> {
    payload.remove("content_hash");
    let source_hash = payload.get("source_hash").and_then(Value::as_str).and_then(canonical_digest);
    if source_hash.is_some() {
        payload.remove("source_hash");
    }
    let json = serde_json::to_string(&payload).map_err(unwritable)?;
    Ok((Skeleton::of(json), source_hash))
}

/// Parses a text that is exactly the written form of a digest; anything else stays a text.
fn canonical_digest(text: &str) -> Option<Digest> {
    text.parse::<Digest>().ok().filter(|digest| digest.to_string() == text)
}

fn unwritable(error: serde_json::Error) -> StoreError {
    StoreError::Invalid(format!("the document can't be written as JSON: {:?}", error.classify()))
}
