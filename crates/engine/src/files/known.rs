//! Which version of a file the model knows, and what it has to be told.

use std::collections::{HashMap, HashSet};

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;

use crate::session::Session;
use crate::session::catalog::Kind;

/// The version of a file that the model has last seen or written whole, as far as it has seen any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownVersion {
    /// The hash of its bytes; `None` for a file that is gone or was not read.
    pub hash: Option<Digest>,
    /// A transaction as of which the file is that version.
    pub tx: TxId,
    /// The model knows it from a read alone: once that has left its sight, lines of another version count.
    pub by_read: bool,
    /// The newest version that the model was told of; `None` where it knows of none that there is.
    pub announced: Option<Option<Digest>>,
    /// The last answer to a read was that its lines are visible above; the next one is served in full.
    pub pointed: bool,
}

/// What the model knows of the session's files.
#[derive(Default)]
pub(crate) struct Known {
    versions: HashMap<ObjectId, KnownVersion>,
    /// Files of which the model may have to be told.
    open: HashSet<ObjectId>,
    /// By file, of which versions the chat says that the model was told, oldest first. Where messages have fewer notices,
    /// the later ones did not reach the model.
    noted: HashMap<ObjectId, Vec<Option<Digest>>>,
}

impl Known {
    /// What the model knows of a file.
    pub fn get(&self, file: &ObjectId) -> Option<&KnownVersion> {
        self.versions.get(file)
    }

    /// The model has written this version, or was told all that is new in it.
    pub fn knows(&mut self, file: &ObjectId, hash: Option<Digest>, tx: TxId) {
        let version = KnownVersion { hash, tx, by_read: false, announced: Some(hash), pointed: false };
        self.versions.insert(file.clone(), version);
        self.open.insert(file.clone());
    }

    /// The model has read this version, whole or as far as it was shown any of the file.
    pub fn saw(&mut self, file: &ObjectId, hash: Option<Digest>, tx: TxId) {
        self.knows(file, hash, tx);
        if let Some(known) = self.versions.get_mut(file) {
            known.by_read = true;
        }
    }

    /// The model was shown text of a file that is in no version of it, as far as anybody can tell.
    pub fn saw_unknown(&mut self, file: &ObjectId, tx: TxId) {
        let version = KnownVersion { hash: None, tx, by_read: true, announced: None, pointed: false };
        self.versions.insert(file.clone(), version);
        self.open.insert(file.clone());
    }

    /// The model has seen lines of another version than the one it knows.
    pub fn saw_some(&mut self, file: &ObjectId) {
        if let Some(known) = self.versions.get_mut(file) {
            known.pointed = false;
        }
        self.open.insert(file.clone());
    }

    /// The catalog has another version of a file.
    pub fn changed(&mut self, file: ObjectId) {
        if self.versions.contains_key(&file) {
            self.open.insert(file);
        }
    }

    /// The model was told of a version.
    pub fn told(&mut self, file: &ObjectId, hash: Option<Digest>) {
        if let Some(known) = self.versions.get_mut(file) {
            known.announced = Some(hash);
        }
    }

    /// What the chat says that the model was told of files, oldest first.
    pub fn noted(&mut self, notices: impl Iterator<Item = (ObjectId, Option<Digest>)>) {
        self.noted.clear();
        notices.for_each(|(file, hash)| self.note(file, hash));
    }

    /// The chat has gained a notice.
    pub fn note(&mut self, file: ObjectId, hash: Option<Digest>) {
        self.noted.entry(file).or_default().push(hash);
    }

    /// Begins anew with what the model knows: its messages are read again.
    pub fn forget(&mut self) {
        self.versions.clear();
        self.open.clear();
    }

    /// While messages are read again: one of them is the notice of a file that comes after so many of it.
    pub fn heard_again(&mut self, file: &ObjectId, earlier: usize) {
        if let Some(hash) = self.noted.get(file).and_then(|noted| noted.get(earlier)).copied() {
            self.told(file, hash);
        }
    }

    /// What the model was told of a file has left its sight, while text of the version before has not.
    pub fn untell(&mut self, file: &ObjectId, shown: Digest) {
        if let Some(known) = self.versions.get_mut(file) {
            known.announced = Some(Some(shown));
            self.open.insert(file.clone());
        }
    }

    /// A read was answered with where its lines stand, or not.
    pub fn set_pointed(&mut self, file: &ObjectId, pointed: bool) {
        if let Some(known) = self.versions.get_mut(file) {
            known.pointed = pointed;
        }
    }

    /// The files whose current version the model was not told of.
    pub fn untold(&mut self, session: &Session) -> Vec<(ObjectId, KnownVersion)> {
        let Self { versions, open, .. } = self;
        open.retain(|id| versions.get(id).is_some_and(|known| Some(session.hash_of(id)) != known.announced));
        let mut untold: Vec<_> = open.iter().map(|id| (id.clone(), versions[id])).collect();
        untold.sort_by(|(a, _), (b, _)| a.cmp(b));
        untold
    }
}

impl Session {
    /// The hash of a file's current bytes; `None` where it is gone, too large or was never read.
    pub fn hash_of(&self, id: &ObjectId) -> Option<Digest> {
        match &self.catalog.get(id)?.kind {
            Kind::File { source_hash, .. } => *source_hash,
            Kind::Toolcall { .. } => None,
        }
    }
}
