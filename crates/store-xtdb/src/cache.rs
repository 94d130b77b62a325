//! This client's memory: the latest versions that it read or wrote, and the names behind XTDB's ID hashes.
//!
//! Architecture invariant: a cached latest version is only a guess. Every transaction that is based on one has a `match`
//! for it, and a read asks the node for the version's coordinates before it takes the document from here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::time::TxId;
use lru::LruCache;
use serde_json::Value;

use super::form::StoredForm;
use super::wire::Coordinates;
use context_store::Version;

/// The most bytes of documents that are remembered.
const MOST_BYTES: usize = 64 << 20;

/// The most names of ID hashes that are remembered.
const MOST_NAMES: usize = 200_000;

/// An object's first transaction and, if that was needed, its position among that transaction's writes.
pub(crate) type First = (TxId, Option<usize>);

/// Number of growing documents that stay remembered after another client has replaced them.
const MOST_GROWN: usize = 8;

/// The latest version of an object as far as this client knows.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub version: Arc<Version>,
    /// The form in which XTDB stores it.
    pub form: StoredForm,
    /// The approximate length of its JSON text, in bytes; 0 if it was not measured.
    pub bytes: usize,
}

impl Head {
    /// This version's document in XTDB.
    pub(crate) fn value(&self) -> Value {
        self.form.value(&self.version.document)
    }
}

/// The client's memory.
pub(crate) struct Cache {
    /// Bounded by their bytes; the ones that were not used for the longest time go first.
    heads: LruCache<ObjectId, Head>,
    bytes: usize,
    /// Versions of chats and sessions that later versions may be based on, whether they are the latest or not.
    grown: VecDeque<Arc<Version>>,
    names: HashMap<String, Option<ObjectId>>,
    firsts: HashMap<ObjectId, First>,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            heads: LruCache::unbounded(),
            bytes: 0,
            grown: VecDeque::new(),
            names: HashMap::new(),
            firsts: HashMap::new(),
        }
    }
}

impl Cache {
    pub(crate) fn head(&mut self, id: &ObjectId) -> Option<Head> {
        self.heads.get(id).cloned()
    }

    /// The remembered document of exactly this version, if any.
    pub(crate) fn at(&mut self, id: &ObjectId, place: Coordinates) -> Option<Head> {
        let head = self.heads.get(id)?;
        let same = head.version.tx_id == place.tx.id && head.version.valid_time == place.valid_time;
        same.then(|| head.clone())
    }

    /// A version of a chat or session that later versions may be based on.
    pub(crate) fn grown(&self, id: &ObjectId) -> Option<Arc<Version>> {
        let head = self.heads.peek(id).map(|head| &head.version);
        head.or_else(|| self.grown.iter().find(|version| version.document.id() == id)).map(Arc::clone)
    }

    /// Remembers a version of a chat or session, unless one with a later valid time is known.
    pub(crate) fn grow(&mut self, version: Arc<Version>) {
        let order = |version: &Version| (version.valid_time, version.tx_id);
        let id = version.document.id();
        let is_content = version.document.object_type().is_content();
        if is_content || self.grown(id).is_some_and(|known| order(&known) >= order(&version)) {
            return;
        }
        self.grown.retain(|other| other.document.id() != id);
        self.grown.push_back(version);
        if self.grown.len() > MOST_GROWN {
            self.grown.pop_front();
        }
    }

    pub(crate) fn keep(&mut self, head: Head) {
        self.bytes += head.bytes;
        if let Some(before) = self.heads.put(head.version.document.id().clone(), head) {
            self.bytes -= before.bytes;
        }
        while self.bytes > MOST_BYTES {
            let Some((_, oldest)) = self.heads.pop_lru() else { break };
            self.bytes -= oldest.bytes;
        }
    }

    pub(crate) fn forget(&mut self, id: &ObjectId) {
        if let Some(head) = self.heads.pop(id) {
            self.bytes -= head.bytes;
            self.grow(head.version);
        }
    }

    /// Forgets all documents, because it is not known which ones have changed.
    pub(crate) fn forget_all(&mut self) {
        self.heads.clear();
        self.bytes = 0;
    }

    /// Forgets all documents, also those that later versions may be based on, because their owner has erased some.
    pub(crate) fn forget_erased(&mut self) {
        self.forget_all();
        self.grown.clear();
        self.firsts.clear();
    }

    /// The object behind an ID hash. `None` if that is not known yet, `Some(None)` if it is not one of our objects.
    pub(crate) fn name(&self, hash: &str) -> Option<Option<ObjectId>> {
        self.names.get(hash).cloned()
    }

    pub(crate) fn learn(&mut self, hash: String, id: Option<ObjectId>) {
        if self.names.len() >= MOST_NAMES {
            self.names.clear();
        }
        self.names.insert(hash, id);
    }

    /// An object's first transaction and its position in it. These never change.
    pub(crate) fn first(&self, id: &ObjectId) -> Option<First> {
        self.firsts.get(id).copied()
    }

    pub(crate) fn learn_first(&mut self, id: ObjectId, first: First) {
        if self.firsts.len() >= MOST_NAMES {
            self.firsts.clear();
        }
        self.firsts.insert(id, first);
    }
}

#[cfg(test)]
mod tests {
    use context_model::object::Document;
    use context_model::source::FilesystemSource;
    use context_model::time::Timestamp;

    use super::*;

    fn head(n: usize, bytes: usize) -> Head {
        let source = FilesystemSource { filesystem_id: "fs".into(), path: format!("/{n}") };
        let document = Document::file(source, Some(n.to_string()), None);
        let time = Timestamp::from_millis(0);
        let form = StoredForm::whole(&document);
        let version = Version { document, tx_id: TxId(1), tx_time: time, valid_time: time, erased: None };
        Head { version: Arc::new(version), form, bytes }
    }

    fn id(n: usize) -> ObjectId {
        head(n, 0).version.document.id().clone()
    }

    #[test]
    fn drops_the_least_recently_used_first() {
        let mut cache = Cache::default();
        (0..4).for_each(|n| cache.keep(head(n, MOST_BYTES / 4)));
        assert!(cache.head(&id(0)).is_some(), "it is used once more");
        cache.keep(head(4, MOST_BYTES / 4));
        let there: Vec<bool> = (0..5).map(|n| cache.head(&id(n)).is_some()).collect();
        assert_eq!(there, [true, false, true, true, true]);
    }

    #[test]
    fn counts_the_bytes_of_the_present_documents() {
        let mut cache = Cache::default();
        for bytes in [10, 20, 30] {
            cache.keep(head(0, bytes));
            cache.keep(head(1, bytes));
        }
        assert_eq!(cache.bytes, 60);
        cache.forget(&id(0));
        cache.forget(&id(0));
        assert_eq!(cache.bytes, 30);
        cache.forget_all();
        assert_eq!((cache.bytes, cache.heads.len()), (0, 0));
    }
}
