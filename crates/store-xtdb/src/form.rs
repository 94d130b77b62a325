//! The form of a version in XTDB: a whole document, or a change of the one before it.
//!
//! A chat gains a turn and a session gains IDs at every step. If each version were sent whole, the total would grow with the
//! square of the length. So a version of such an object is a document without lists and objects; its field `PATCH` has the
//! patch that turns another version into it. Once the patches are together as long as the last whole document, the next
//! version is whole again. So what is sent stays below twice the changes, and one read needs less than two documents.
//!
//! Architecture invariants:
//! - A change names the version that it is based on by its `content_hash`. That version was written earlier and its valid
//!   time is not later, so it comes first in a history by valid time and transaction.
//! - A document's `content_hash` is that of the version and not of the patch. So a resolved version is checked like a whole
//!   one, and a reader that does not know patches refuses the document.

use std::sync::Arc;

use context_model::canonical::MAX_DEPTH;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch::{self, Patch};
use context_model::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::mark::Mark;
use super::wire::{ERASED, KEPT, PATCH, document, document_length};
use context_store::{Result, StoreError};

/// About how many bytes a document in XTDB takes besides its fields.
const ENVELOPE: usize = 400;

/// The contents of `PATCH`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PatchMark {
    /// The content hash of the version that was changed.
    of: Digest,
    /// The valid time of the last whole document before.
    since: Timestamp,
    /// The length of that document, in bytes.
    whole: usize,
    /// The length of all patches since then, including this one, in bytes.
    patches: usize,
    /// The change.
    operations: Patch,
}

/// The form in which one version is stored in XTDB.
#[derive(Clone, Debug)]
pub(crate) struct StoredForm {
    /// The valid time of the last whole document. `None` if it is this one.
    since: Option<Timestamp>,
    whole: usize,
    patches: usize,
    /// The document in XTDB, if it differs from the version's own.
    value: Option<Arc<Value>>,
    /// The mark that the owner's erasing left in it.
    mark: Option<Mark>,
}

impl StoredForm {
    /// The mark of a version that the owner erased.
    pub(crate) fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref()
    }

    /// The name that tells its document from the one that was there before the object's eviction.
    pub(crate) fn kept(&self) -> Option<&Value> {
        self.value.as_ref()?.get(KEPT)
    }

    /// The same form, with this mark.
    pub(crate) fn marked(self, document: &Document, mark: Mark) -> Self {
        let mut value = self.value(document);
        value[ERASED] = serde_json::to_string(&mark).unwrap_or_default().into();
        Self { value: Some(Arc::new(value)), mark: Some(mark), ..self }
    }

    /// The form of a version whose document in XTDB is this.
    pub(crate) fn stored_as(self, value: Value, mark: Option<Mark>) -> Self {
        Self { value: Some(Arc::new(value)), mark, ..self }
    }

    pub(crate) fn whole(document: &Document) -> Self {
        Self { since: None, whole: document_length(document), patches: 0, value: None, mark: None }
    }

    /// The document in XTDB of a version with this form.
    pub(crate) fn value(&self, document: &Document) -> Value {
        match &self.value {
            Some(value) => (**value).clone(),
            None => Value::Object(document.to_json()),
        }
    }

    /// The form of a version that follows one with this form and this valid time.
    pub(crate) fn next(&self, before: &Document, from: Timestamp, document: &Document) -> Self {
        let Some(operations) = between(before, document) else { return Self::whole(document) };
        let since = self.since.unwrap_or(from);
        let mut change = PatchMark {
            of: before.content_hash(),
            since,
            whole: self.whole,
            patches: self.patches,
            operations,
        };
        let Ok(mut text) = serde_json::to_string(&change) else { return Self::whole(document) };
        let mut map = document.to_json();
        map.retain(|_, value| !value.is_array() && !value.is_object());
        let scalars: usize = map.values().map(|value| value.as_str().map_or(8, str::len)).sum();
        let length = text.len() + scalars + ENVELOPE;
        change.patches += length;
        if change.patches > self.whole || length * 2 > document_length(document) {
            return Self::whole(document);
        }
        let (whole, patches) = (change.whole, change.patches);
        match serde_json::to_string(&change) {
            Ok(counted) => text = counted,
            Err(_) => return Self::whole(document),
        }
        map.insert(PATCH.to_owned(), text.into());
        Self { since: Some(since), whole, patches, value: Some(Arc::new(Value::Object(map))), mark: None }
    }
}

/// About how many bytes are sent for the next version after this one.
pub(crate) fn growth(before: &Document, document: &Document) -> usize {
    let patch = between(before, document).and_then(|patch| serde_json::to_string(&patch).ok());
    patch.map_or_else(|| document_length(document), |text| text.len() + ENVELOPE)
}

/// The change of a growing object; `None` for any other one.
pub(crate) fn between(before: &Document, document: &Document) -> Option<Patch> {
    let same = before.object_type() == document.object_type() && document.source().is_none();
    let hashes = before.source_hash() == document.source_hash();
    if !same || !hashes || document.object_type().is_content() || before.content() != document.content() {
        return None;
    }
    // The hash can be computed from the rest.
    let fields = |document: &Document| {
        let mut fields: Map<String, Value> = document.payload().clone();
        fields.remove("content_hash");
        fields
    };
    Some(Patch::between(&fields(before), &fields(document)))
}

/// A version as XTDB returned it.
#[derive(Clone)]
pub(crate) enum Given {
    /// A whole document.
    Whole(Document),
    /// A change that has to be resolved.
    Changed(Changed),
}

/// A version that is stored as the change of another one.
#[derive(Clone)]
pub(crate) struct Changed {
    id: ObjectId,
    /// The content hash of the version itself.
    hash: Digest,
    change: PatchMark,
    value: Value,
    mark: Option<Mark>,
}

impl Changed {
    /// The content hash of the version that was changed.
    pub(crate) fn of(&self) -> Digest {
        self.change.of
    }

    /// The valid time of the last whole document before it.
    pub(crate) fn since(&self) -> Timestamp {
        self.change.since
    }

    /// The version, built from the one that was changed.
    pub(crate) fn resolve(self, before: Document) -> Result<(Document, StoredForm)> {
        let damaged = |what: String| StoreError::Corrupt(format!("a version of {} {what}", self.id));
        let fits = *before.id() == self.id && before.content_hash() == self.change.of;
        let document = patch::apply(before, [&self.change.operations])?;
        if !fits || document.content_hash() != self.hash {
            return Err(damaged("does not match its stored hash".into()));
        }
        let PatchMark { since, whole, patches, .. } = self.change;
        let form = StoredForm {
            since: Some(since),
            whole,
            patches,
            value: Some(Arc::new(self.value)),
            mark: self.mark,
        };
        Ok((document, form))
    }

    /// The error for a change whose base version is missing.
    pub(crate) fn lost(&self) -> StoreError {
        StoreError::Corrupt(format!(
            "a version of {} is the change of one with the hash {}, which XTDB does not have",
            self.id, self.change.of
        ))
    }
}

impl Given {
    /// Reads a document of XTDB.
    pub(crate) fn read(mut value: Value) -> Result<Self> {
        let stored = (value.get(PATCH).is_some()).then(|| value.clone());
        let mark = Mark::take(&mut value);
        let Some(text) = value.get(PATCH) else { return document(value).map(Self::Whole) };
        let field = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let id = ObjectId::new(field("xt/id"));
        let damaged =
            || StoreError::Corrupt(format!("a version of {id} is not a valid change of another one"));
        let hash = field("content_hash").parse().map_err(|_| damaged())?;
        let change: PatchMark =
            serde_json::from_str(text.as_str().unwrap_or_default()).map_err(|_| damaged())?;
        if !change.operations.is_plain(MAX_DEPTH) {
            return Err(damaged());
        }
        let value = stored.unwrap_or_default();
        Ok(Self::Changed(Changed { id, hash, change, value, mark }))
    }

    /// The content hash of the version.
    pub(crate) fn hash(&self) -> Digest {
        match self {
            Self::Whole(document) => document.content_hash(),
            Self::Changed(changed) => changed.hash,
        }
    }
}

/// Builds the version `wanted` from those before it, which are a part of the object's history by valid time and
/// transaction. `None` if that part does not reach back far enough.
pub(crate) fn resolve(wanted: Changed, mut before: Vec<Given>) -> Result<Option<(Document, StoredForm)>> {
    let mut chain = vec![wanted];
    while let Some(given) = before.pop() {
        if chain.last().is_none_or(|last| last.of() != given.hash()) {
            continue;
        }
        match given {
            Given::Changed(changed) => chain.push(changed),
            Given::Whole(document) => {
                let form = StoredForm::whole(&document);
                let resolved = chain
                    .into_iter()
                    .rev()
                    .try_fold((document, form), |(document, _), changed| changed.resolve(document));
                return resolved.map(Some);
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
