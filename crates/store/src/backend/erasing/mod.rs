//! What erasing means, for every backend: which objects and texts are erased, and what a document is afterwards.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType};
use context_model::source::Source;
use context_model::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AsOf, Erase, Erased, Filter, Result, Store, StoreError};

mod mark;
mod needles;
mod position;
mod stripped;

pub use mark::MARK;
pub use needles::Needles;
pub use position::{Position, each_said, each_said_in_patch};
pub use stripped::stripped;

/// A string of a payload with at least this many bytes is a text of its own: it is erased wherever it occurs.
const LONG: usize = 256;

/// The mark of a version whose text was erased before it was written.
pub fn again(at: Timestamp) -> Erased {
    Erased { at, why: "its text was erased before".into() }
}

/// The error of a call about an object that the store does not have.
pub fn no_object(id: &ObjectId) -> StoreError {
    StoreError::Invalid(format!("the store has no object {id}"))
}

/// The error of a call about a file that the store does not have.
pub fn no_file(path: &str) -> StoreError {
    StoreError::Invalid(format!("the store has no file {path}"))
}

/// The error of a call about a session that the store does not have.
pub fn no_session(session: &SessionId) -> StoreError {
    StoreError::Invalid(format!("the store has no session {session}"))
}

/// The texts that are erased, by their hashes, so that whoever has one can tell that it is one of them, and nobody else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gone {
    /// By SHA-256. With a text: what stands in its place. Without: it goes as a whole.
    texts: BTreeMap<Digest, Option<String>>,
    /// Shorter strings of erased messages and arguments: they go where they are a whole message or argument again. Elsewhere
    /// they may be words that mean something else.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    said: BTreeSet<Digest>,
}

impl Gone {
    /// Whether no text is erased.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.said.is_empty()
    }

    /// How many texts go as a whole.
    pub fn count(&self) -> u64 {
        self.texts.values().filter(|instead| instead.is_none()).count() as u64
    }

    /// Adds the texts of another set.
    pub fn extend(&mut self, other: Self) {
        for (key, instead) in other.texts {
            self.add(key, instead);
        }
        self.said.extend(other.said);
    }

    /// Adds a string of an erased message or argument.
    pub fn add_said(&mut self, text: &str) {
        if !text.is_empty() && text.len() < LONG && text != MARK {
            self.said.insert(Digest::of(text.as_bytes()));
        }
    }

    /// Adds a string that contains a needle.
    pub fn add_match(&mut self, text: &str, needles: &Needles) {
        if let Some(instead) = needles.replaced_in(text) {
            self.add(Digest::of(text.as_bytes()), Some(instead));
        }
    }

    /// Takes back [`Gone::add_said`] for a string that also stands in something that stays: it tells nothing about what goes.
    pub fn spare(&mut self, text: &str) {
        if !self.said.is_empty() && text.len() < LONG {
            self.said.remove(&Digest::of(text.as_bytes()));
        }
    }

    /// The same for the path of a file, which stays, and its ends.
    pub fn spare_path(&mut self, path: &str) {
        if self.said.is_empty() {
            return;
        }
        self.spare(path);
        for (at, _) in path.match_indices('/') {
            self.spare(&path[at + 1..]);
        }
    }

    /// [`Gone::spare`] for all words of a document that stays.
    pub fn spare_all_of(&mut self, document: &Document) {
        if self.said.is_empty() {
            return;
        }
        if let Some(Source::Filesystem(file)) = document.source() {
            self.spare_path(&file.path);
        }
        for (name, value) in document.payload() {
            each_said(value, Position::Payload.of_field(name), &mut |text| self.spare(text));
        }
    }

    /// Adds the texts of a version whose object is erased as a whole.
    pub fn add_all_of(&mut self, document: &Document) {
        if let (Some(text), Some(key)) = (document.content(), document.text_hash())
            && !text.is_empty()
        {
            self.add(key, None);
        }
        each_text(document, &mut |text| {
            if text.len() >= LONG && text != MARK {
                self.add(Digest::of(text.as_bytes()), None);
            }
        });
        for (name, value) in document.payload() {
            each_said(value, Position::Payload.of_field(name), &mut |text| self.add_said(text));
        }
    }

    /// Adds those texts of a version that contain a needle.
    pub fn add_matches(&mut self, document: &Document, needles: &Needles) {
        if needles.is_empty() {
            return;
        }
        if let (Some(text), Some(key)) = (document.content(), document.text_hash())
            && needles.is_in(text)
        {
            self.add(key, None);
        }
        each_text(document, &mut |text| {
            self.add_match(text, needles);
        });
    }

    fn add(&mut self, key: Digest, instead: Option<String>) {
        let known = self.texts.entry(key).or_insert_with(|| instead.clone());
        if instead.is_none() {
            *known = None;
        }
    }

    /// The document without these texts; with `whole` also without all of its content, messages and arguments. `None` if it
    /// has nothing of that.
    pub fn taken_out_of(&self, document: &Document, whole: bool) -> Option<Document> {
        if self.is_empty() && !whole {
            return None;
        }
        let key = document.text_hash().filter(|_| document.content().is_some_and(|text| !text.is_empty()));
        let (id, kind, source, mut payload) = document.clone().into_parts();
        let mut is_changed = false;
        if let Some(key) = key
            && (whole || self.texts.contains_key(&key))
        {
            payload.insert("content".into(), Value::Null);
            is_changed = true;
        }
        if whole {
            let before = payload.clone();
            stripped::strip(&mut payload);
            is_changed |= payload != before;
        }
        if !self.is_empty() {
            is_changed |= self.mask_payload(&mut payload);
        }
        if is_changed { Document::new(id, kind, source, payload).ok() } else { None }
    }

    /// Puts marks in place of these texts in a payload, except for its content. Returns whether it had one.
    pub fn mask_payload(&self, payload: &mut Map<String, Value>) -> bool {
        let hashes = ["content", "content_hash", "source_hash"];
        let held: Vec<_> = hashes.iter().filter_map(|name| payload.remove_entry(*name)).collect();
        let mut rest = Value::Object(std::mem::take(payload));
        let is_changed = self.mask(&mut rest, Position::Payload);
        if let Value::Object(fields) = rest {
            *payload = fields;
        }
        payload.extend(held);
        is_changed
    }

    /// The same in the operations of a patch.
    pub fn mask_patch(&self, operations: &mut Value) -> bool {
        let mut is_changed = false;
        for operation in operations.as_array_mut().into_iter().flatten() {
            let position =
                Position::of_path(operation.get("path").and_then(Value::as_str).unwrap_or_default());
            if let Some(value) = operation.get_mut("value") {
                is_changed |= self.mask(value, position);
            }
        }
        is_changed
    }

    fn mask(&self, value: &mut Value, position: Position) -> bool {
        match value {
            Value::String(text) => match self.instead_of(text, position) {
                Some(instead) => {
                    *text = instead;
                    true
                }
                None => false,
            },
            Value::Array(items) => {
                items.iter_mut().fold(false, |done, item| self.mask(item, position) | done)
            }
            Value::Object(fields) => {
                let mask = |done: bool, (name, value): (&String, &mut Value)| {
                    self.mask(value, position.of_field(name)) | done
                };
                let mut done = fields.iter_mut().fold(false, mask);
                let instead = |name: &str| self.instead_of(name, Position::Structure);
                if fields.keys().any(|name| instead(name).is_some()) {
                    let renamed = std::mem::take(fields).into_iter();
                    let renamed = renamed.map(|(name, value)| (instead(&name).unwrap_or(name), value));
                    *fields = renamed.collect::<Map<_, _>>();
                    done = true;
                }
                done
            }
            _ => false,
        }
    }

    fn instead_of(&self, text: &str, position: Position) -> Option<String> {
        let key = Digest::of(text.as_bytes());
        match self.texts.get(&key) {
            Some(Some(instead)) => Some(instead.clone()),
            Some(None) if text.len() >= LONG => Some(MARK.to_owned()),
            // A short text may be a word that means something else here.
            _ => (position.is_said() && self.said.contains(&key)).then(|| MARK.to_owned()),
        }
    }
}

/// All strings of a payload, with the names of fields, except for the content.
fn each_text(document: &Document, use_it: &mut impl FnMut(&str)) {
    fn of(value: &Value, use_it: &mut impl FnMut(&str)) {
        match value {
            Value::String(text) => use_it(text),
            Value::Array(items) => items.iter().for_each(|item| of(item, use_it)),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                use_it(name);
                of(value, use_it);
            }),
            _ => {}
        }
    }
    for (name, value) in document.payload() {
        if !matches!(name.as_str(), "content" | "content_hash" | "source_hash") {
            use_it(name);
            of(value, use_it);
        }
    }
}

/// The objects that the owner has named.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown object, path or session; errors of the store.
pub async fn objects(store: &dyn Store, wanted: &[Erase]) -> Result<BTreeSet<ObjectId>> {
    let mut objects = BTreeSet::new();
    for one in wanted {
        match one {
            Erase::Text(_) => {}
            Erase::Object(id) => {
                if store.outlines(std::slice::from_ref(id)).await?.iter().all(Option::is_none) {
                    return Err(no_object(id));
                }
                objects.insert(id.clone());
            }
            Erase::Path(path) => {
                let found = at_path(store, path).await?;
                if found.is_empty() {
                    return Err(no_file(path));
                }
                objects.extend(found);
            }
            Erase::Session(session) => objects.extend(of_session(store, session).await?),
        }
    }
    Ok(objects)
}

async fn at_path(store: &dyn Store, path: &str) -> Result<Vec<ObjectId>> {
    let files = Filter { path_prefix: Some(path.to_owned()), ..Filter::default() };
    let ids = store.query(&files).await?;
    let outlines = store.outlines(&ids).await?;
    let is_there =
        |source: &Option<Source>| matches!(source, Some(Source::Filesystem(file)) if file.path == path);
    Ok(outlines.into_iter().flatten().filter(|one| is_there(&one.source)).map(|one| one.id).collect())
}

/// The objects of a session that no other session has encountered and that the store has.
async fn of_session(store: &dyn Store, session: &SessionId) -> Result<Vec<ObjectId>> {
    let this = ObjectId::session(session);
    let mut mine = index_of(store, &this).await?.ok_or_else(|| no_session(session))?;
    let sessions = Filter { object_type: Some(ObjectType::Session), ..Filter::default() };
    for other in store.query(&sessions).await?.into_iter().filter(|other| *other != this) {
        for id in index_of(store, &other).await?.into_iter().flatten() {
            mine.remove(&id);
        }
    }
    mine.extend([this, ObjectId::chat(session), ObjectId::system_prompt(session)]);
    let ids: Vec<ObjectId> = mine.into_iter().collect();
    let known = store.outlines(&ids).await?;
    Ok(known.into_iter().flatten().map(|outline| outline.id).collect())
}

/// What a session has encountered; `None` if there is no such session.
pub async fn index_of(store: &dyn Store, session: &ObjectId) -> Result<Option<HashSet<ObjectId>>> {
    let Some(version) = store.get(session, AsOf::default()).await? else { return Ok(None) };
    let index = version.document.field("session_index").and_then(Value::as_array);
    Ok(Some(index.into_iter().flatten().filter_map(Value::as_str).map(ObjectId::new).collect()))
}
