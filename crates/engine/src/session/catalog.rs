//! The data that the client keeps in memory about each content object of its session: enough to decide and to render, never the
//! content.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use context_lines::{escape, file_line, toolcall_line};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::index::Current;
use context_model::object::{Document, ObjectType, Status};
use context_model::source::{FilesystemSource, Source};
use context_model::time::TxId;
use context_store::Outline;
use context_tools::is_outcome;
use serde_json::{Map, Value};

/// The minimum number of hexadecimal digits in a handle.
const HANDLE: usize = 8;

/// The metadata of one content object's latest version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meta {
    /// The part that differs between files and tool calls.
    pub kind: MetaKind,
    /// True if the content is null.
    pub is_null: bool,
    /// The transaction of the version that this describes.
    pub tx: TxId,
}

/// The type-specific part of [`Meta`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MetaKind {
    /// A file.
    File {
        /// Its binding.
        source: Source,
        /// Its `file_type`.
        file_type: String,
        /// Its length in UTF-16 units.
        char_count: u64,
        /// The hash of its bytes, where they are known.
        source_hash: Option<Digest>,
    },
    /// A tool call.
    Toolcall {
        /// The tool's name.
        tool: String,
        /// The status that it ended with.
        status: Status,
        /// The outcome of its output, in a few words; `None` where nothing was recorded.
        outcome: Option<String>,
    },
}

impl Meta {
    /// The metadata of a document that was just written; `None` for an infrastructure object.
    #[must_use]
    pub(crate) fn from_document(document: &Document, tx: TxId) -> Option<Self> {
        let is_null = document.content().is_none();
        Self::build(document.object_type(), document.source().cloned(), document.payload(), is_null, tx)
    }

    /// The metadata from the store's outline of the latest version; `None` for an infrastructure object.
    #[must_use]
    pub(crate) fn from_outline(outline: Outline) -> Option<Self> {
        Self::build(outline.object_type, outline.source, &outline.payload, outline.is_null, outline.tx_id)
    }

    fn build(
        object_type: ObjectType,
        source: Option<Source>,
        payload: &Map<String, Value>,
        is_null: bool,
        tx: TxId,
    ) -> Option<Self> {
        let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = match object_type {
            ObjectType::File => MetaKind::File {
                source: source?,
                file_type: text("file_type").to_owned(),
                char_count: payload.get("char_count").and_then(Value::as_u64).unwrap_or(0),
                source_hash: text("source_hash").parse().ok(),
            },
            ObjectType::Toolcall => MetaKind::Toolcall {
                tool: text("tool").to_owned(),
                status: if text("status") == "fail" { Status::Fail } else { Status::Ok },
                outcome: Some(text("outcome")).filter(|text| is_outcome(text)).map(str::to_owned),
            },
            _ => return None,
        };
        Some(Self { kind, is_null, tx })
    }

    /// Returns the input of the index decision, for a file.
    pub(crate) fn current(&self) -> Option<Current> {
        match &self.kind {
            MetaKind::File { source_hash, .. } => {
                Some(Current { source_hash: *source_hash, is_null: self.is_null })
            }
            MetaKind::Toolcall { .. } => None,
        }
    }

    /// The length of a file's text in UTF-16 units; 0 if it has none.
    pub(crate) fn text_units(&self) -> u64 {
        match &self.kind {
            MetaKind::File { char_count, .. } if !self.is_null => *char_count,
            _ => 0,
        }
    }

    /// True if only the hash of a file's bytes is known, and its text was never stored. An erased text keeps
    /// its length.
    pub(crate) fn lacks_text(&self) -> bool {
        matches!(&self.kind, MetaKind::File { source_hash: Some(_), char_count: 0, .. } if self.is_null)
    }

    /// The filesystem binding, for a file that has one.
    pub(crate) fn file(&self) -> Option<&FilesystemSource> {
        match &self.kind {
            MetaKind::File { source, .. } => source.as_filesystem(),
            MetaKind::Toolcall { .. } => None,
        }
    }
}

/// The metadata cache of a session, and the short handles of its objects.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    metas: HashMap<ObjectId, Meta>,
    handles: HashMap<ObjectId, String>,
    names: Arc<Names>,
    /// The paths under which files are displayed, where they differ from the reverse translation.
    displays: HashMap<ObjectId, String>,
    /// Rises with each change.
    changes: u64,
}

impl Catalog {
    /// Takes in an object's metadata. The first object to get a handle keeps it, so objects must be put in in the
    /// order of the session index.
    pub(crate) fn put(&mut self, id: &ObjectId, meta: Meta) {
        if !self.handles.contains_key(id) {
            let handle = self.free_handle(id);
            self.names.put(id, Some(&handle));
            self.handles.insert(id.clone(), handle);
        } else if !self.metas.contains_key(id) {
            self.names.put(id, None);
        }
        if self.metas.get(id) != Some(&meta) {
            self.changes += 1;
            self.metas.insert(id.clone(), meta);
        }
    }

    /// A number that stays the same while all objects look the same.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The metadata of an object.
    pub(crate) fn get(&self, id: &ObjectId) -> Option<&Meta> {
        self.metas.get(id)
    }

    /// The short name under which the projection shows an object.
    pub(crate) fn handle(&self, id: &ObjectId) -> Option<&str> {
        self.handles.get(id).map(String::as_str)
    }

    /// The short name of an object, even of one that is not known yet.
    pub(crate) fn handle_of(&self, id: &ObjectId) -> String {
        self.handle(id).map_or_else(|| self.free_handle(id), str::to_owned)
    }

    /// The object with this full ID or handle, or with this ID as a rendered line shows it.
    pub(crate) fn find(&self, name: &str) -> Option<ObjectId> {
        self.names.find(name)
    }

    /// The names of all objects, for callers that can't wait for the session.
    #[must_use]
    pub(crate) fn names(&self) -> Arc<Names> {
        Arc::clone(&self.names)
    }

    /// Drops the recorded outcome of a call, because the text that the outcome quotes was removed from the output.
    pub(crate) fn clear_outcome(&mut self, id: &ObjectId) {
        if let Some(Meta { kind: MetaKind::Toolcall { outcome, .. }, .. }) = self.metas.get_mut(id) {
            *outcome = None;
        }
    }

    /// Keeps the agent's path of a file.
    pub(crate) fn set_display(&mut self, id: &ObjectId, path: &str) {
        self.changes += 1;
        self.displays.insert(id.clone(), path.to_owned());
    }

    /// Forgets the agent's paths of files.
    pub(crate) fn forget_displays(&mut self) {
        self.changes += 1;
        self.displays.clear();
    }

    /// The path that the agent used last, if it differs from the default.
    pub(crate) fn display(&self, id: &ObjectId) -> Option<&str> {
        self.displays.get(id).map(String::as_str)
    }

    /// The pool line of an object, under its full ID. A source type that is not tracked shows its
    /// binding as the path.
    pub(crate) fn line(
        &self,
        id: &ObjectId,
        display: impl Fn(&FilesystemSource) -> String,
    ) -> Option<String> {
        Some(match &self.metas.get(id)?.kind {
            MetaKind::File { source, file_type, char_count, .. } => {
                let path = match (self.display(id), source) {
                    (Some(path), _) => path.to_owned(),
                    (None, Source::Filesystem(file)) => display(file),
                    (None, Source::Other(map)) => Value::Object(map.clone()).to_string(),
                };
                file_line(id, &path, file_type, *char_count)
            }
            MetaKind::Toolcall { tool, status, .. } => toolcall_line(id, tool, *status),
        })
    }

    fn free_handle(&self, id: &ObjectId) -> String {
        let digest = Digest::of(id.as_str().as_bytes()).to_string();
        (HANDLE..=digest.len())
            .step_by(2)
            .map(|length| digest[..length].to_owned())
            .find(|handle| !self.names.has_handle(handle))
            .unwrap_or(digest)
    }
}

/// True if any session may have given this handle to this object. The handle's length depends on the session's
/// other objects.
pub(crate) fn is_handle_of(handle: &str, id: &ObjectId) -> bool {
    handle.len() >= HANDLE && Digest::of(id.as_str().as_bytes()).to_string().starts_with(handle)
}

/// The full IDs and the handles of a session's objects. They are kept apart from the session, so that a lookup never waits for a
/// write.
#[derive(Debug, Default)]
pub(crate) struct Names(RwLock<KnownNames>);

#[derive(Debug, Default)]
struct KnownNames {
    ids: HashSet<ObjectId>,
    by_handle: HashMap<String, ObjectId>,
}

impl Names {
    /// Takes in an object, with its handle if it gets one now.
    pub(crate) fn put(&self, id: &ObjectId, handle: Option<&str>) {
        let mut known = self.write();
        if let Some(handle) = handle {
            known.by_handle.insert(handle.to_owned(), id.clone());
        }
        known.ids.insert(id.clone());
    }

    /// True if a handle is taken.
    pub(crate) fn has_handle(&self, handle: &str) -> bool {
        self.read().by_handle.contains_key(handle)
    }

    /// The object with this full ID or handle, or with this ID as a rendered line shows it.
    pub(crate) fn find(&self, name: &str) -> Option<ObjectId> {
        let known = self.read();
        let id = ObjectId::new(name);
        if known.ids.contains(&id) {
            return Some(id);
        }
        if let Some(id) = known.by_handle.get(name) {
            return Some(id.clone());
        }
        let shown = ObjectId::new(escape::unescape(name)?);
        known.ids.contains(&shown).then_some(shown)
    }

    // A poisoned lock only means that a reader panicked; each change is made by one call.
    fn read(&self) -> RwLockReadGuard<'_, KnownNames> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, KnownNames> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_what_is_known_has_its_own_number() {
        let source = FilesystemSource { filesystem_id: "disk".into(), path: "/a".into() };
        let document = Document::file(source, Some("text".into()), None);
        let (id, meta) = (document.id().clone(), Meta::from_document(&document, TxId(1)).unwrap());
        let mut catalog = Catalog::default();
        let mut numbers = vec![catalog.changes()];
        catalog.put(&id, meta.clone());
        numbers.push(catalog.changes());
        catalog.put(&id, meta);
        assert_eq!(Some(&catalog.changes()), numbers.last(), "it looks the same");
        let handle = catalog.handle(&id).unwrap().to_owned();
        assert_eq!(catalog.find(&handle), Some(id.clone()));
        catalog.put(&id, Meta { is_null: true, ..catalog.get(&id).unwrap().clone() });
        numbers.push(catalog.changes());
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        assert_eq!(catalog.handle_of(&id), handle, "it stays reserved");
    }

    fn file(path: &str, content: Option<&str>) -> Document {
        let source = FilesystemSource { filesystem_id: "disk".into(), path: path.into() };
        Document::file(source, content.map(str::to_owned), None)
    }

    /// An erased version keeps the length that its text had.
    #[test]
    fn a_version_without_text_has_no_units() {
        let meta = Meta::from_document(&file("/a", Some("text")), TxId(1)).unwrap();
        assert_eq!(meta.text_units(), 4);
        assert_eq!(Meta { is_null: true, ..meta }.text_units(), 0);
    }

    #[test]
    fn the_paths_of_another_state_are_forgotten() {
        let document = file("/a", None);
        let mut catalog = Catalog::default();
        catalog.put(document.id(), Meta::from_document(&document, TxId(1)).unwrap());
        catalog.set_display(document.id(), "./a");
        assert_eq!(catalog.display(document.id()), Some("./a"));
        let before = catalog.changes();
        catalog.forget_displays();
        assert_eq!(catalog.display(document.id()), None);
        assert!(catalog.changes() > before, "it looks different");
    }

    /// The hashes of these two IDs begin with the same eight digits.
    #[test]
    fn a_handle_is_longer_where_a_shorter_one_is_taken() {
        let [one, two] = ["call_52986", "call_92571"].map(ObjectId::new);
        let meta = Meta {
            kind: MetaKind::Toolcall { tool: "bash".into(), status: Status::Ok, outcome: None },
            is_null: false,
            tx: TxId(1),
        };
        let mut catalog = Catalog::default();
        catalog.put(&one, meta.clone());
        assert_eq!(catalog.handle_of(&two), "bb74105dfe");
        catalog.put(&two, meta);
        assert_eq!([&one, &two].map(|id| catalog.handle(id)), [Some("bb74105d"), Some("bb74105dfe")]);
        assert_eq!(catalog.find("bb74105d"), Some(one));
        assert_eq!(catalog.find("bb74105dfe"), Some(two));
    }
}
