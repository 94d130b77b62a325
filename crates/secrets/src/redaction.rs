//! The secrets that a client takes out when it records, and puts back while it runs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;

use super::redact::{self, TEXTS};
use context_store::redacted::FIELD;
use context_store::{Transaction, Version};

/// As many bytes of texts as they were are held in memory.
const HELD: usize = 32 << 20;

/// Takes secrets out of the records of a client. They are held in memory only, so that the same process can send the model
/// its original text; after a restart they are gone.
#[derive(Default)]
pub struct Redaction {
    originals: Mutex<Originals>,
}

/// A string of a version after something was taken out: its object, the hash of the file's bytes, and its own hash.
type Key = (ObjectId, Option<Digest>, Digest);

#[derive(Default)]
struct Originals {
    /// `None` where two strings have become the same one.
    texts: HashMap<Key, Option<String>>,
    order: VecDeque<Key>,
    objects: HashSet<ObjectId>,
    bytes: usize,
}

impl Redaction {
    /// Takes the secrets out of a transaction. Only its writes are searched.
    pub fn take_out(&self, transaction: &mut Transaction) {
        redact::transaction(transaction, &mut |(id, source_hash), old, new| {
            let mut originals = self.originals.lock().unwrap_or_else(PoisonError::into_inner);
            originals.keep((id.clone(), source_hash, Digest::of(new.as_bytes())), old);
        });
    }

    /// Puts back the secrets that this process has taken out of a version. An unknown version stays as it is.
    pub fn put_back(&self, version: Version) -> Version {
        let originals = self.originals.lock().unwrap_or_else(PoisonError::into_inner);
        let id = version.document.id();
        if !originals.objects.contains(id) {
            return version;
        }
        let (id, source_hash) = (id.clone(), version.document.source_hash());
        let whole = changed(&version.document, &mut |text| {
            originals.texts.get(&(id.clone(), source_hash, Digest::of(text.as_bytes())))?.clone()
        });
        match whole {
            Some(document) => Version { document, ..version },
            None => version,
        }
    }
}

impl Originals {
    fn keep(&mut self, key: Key, text: &str) {
        if let Some(known) = self.texts.get_mut(&key) {
            if known.as_deref().is_some_and(|known| known != text) {
                *known = None;
            }
            return;
        }
        self.bytes += text.len();
        self.objects.insert(key.0.clone());
        self.order.push_back(key.clone());
        self.texts.insert(key, Some(text.to_owned()));
        while self.bytes > HELD
            && let Some(oldest) = self.order.pop_front()
        {
            let text = self.texts.remove(&oldest).flatten();
            self.bytes -= text.map_or(0, |text| text.len());
        }
    }
}

/// The document with other strings in place of those that have a mark, where `find` knows them.
fn changed(document: &Document, find: &mut dyn FnMut(&str) -> Option<String>) -> Option<Document> {
    let (id, object_type, source, mut payload) = document.clone().into_parts();
    let (mut known, mut unknown) = (false, false);
    for name in TEXTS {
        let Some(field) = payload.get_mut(name) else { continue };
        redact::strings(field, None, &mut |text, _| {
            let text = text.contains("[redacted: ").then(|| find(text))?;
            known |= text.is_some();
            unknown |= text.is_none();
            text
        });
    }
    if !unknown {
        payload.remove(FIELD);
    }
    known.then(|| Document::new(id, object_type, source, payload).ok()).flatten()
}
