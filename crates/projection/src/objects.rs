//! The session's answers that a decision about a request needs.

#[cfg(test)]
use std::collections::{HashMap, HashSet};

use context_model::hash::Digest;
use context_model::id::ObjectId;

/// The session's objects, as far as a request depends on them.
pub trait Objects {
    /// True if an object is neither active nor pinned.
    fn is_inactive(&self, id: &ObjectId) -> bool;

    /// True if an object is pinned.
    fn is_pinned(&self, id: &ObjectId) -> bool;

    /// True if the model or a user released an object, and it was not activated again.
    fn is_released(&self, id: &ObjectId) -> bool;

    /// True if an object's whole text must stay in sight where it is: it is pinned, or was activated.
    fn keeps_whole(&self, id: &ObjectId) -> bool;

    /// True if an object is a tool call.
    fn is_toolcall(&self, id: &ObjectId) -> bool;

    /// Returns what a call's output came to.
    fn outcome(&self, id: &ObjectId) -> Option<&str>;

    /// True if a call has failed.
    fn has_failed(&self, id: &ObjectId) -> bool;

    /// The short name of an object, or its ID if it has none.
    fn handle(&self, id: &ObjectId) -> String;

    /// The short name of an object, even of one that is not known yet.
    fn handle_of(&self, id: &ObjectId) -> String;

    /// The hash of a file's current bytes; `None` if the file is gone, too large or was never read.
    fn hash_of(&self, id: &ObjectId) -> Option<Digest>;
}

/// Objects for tests. An ID is its own handle.
#[cfg(test)]
#[derive(Clone, Default)]
pub(crate) struct TestObjects {
    pub calls: HashSet<ObjectId>,
    pub active: HashSet<ObjectId>,
    pub pinned: HashSet<ObjectId>,
    pub released: HashSet<ObjectId>,
    pub failed: HashSet<ObjectId>,
    pub outcomes: HashMap<ObjectId, String>,
    pub hashes: HashMap<ObjectId, Digest>,
}

#[cfg(test)]
impl Objects for TestObjects {
    fn is_inactive(&self, id: &ObjectId) -> bool {
        !self.active.contains(id) && !self.is_pinned(id)
    }

    fn is_pinned(&self, id: &ObjectId) -> bool {
        self.pinned.contains(id)
    }

    fn is_released(&self, id: &ObjectId) -> bool {
        self.released.contains(id)
    }

    fn keeps_whole(&self, id: &ObjectId) -> bool {
        self.is_pinned(id)
    }

    fn is_toolcall(&self, id: &ObjectId) -> bool {
        self.calls.contains(id)
    }

    fn outcome(&self, id: &ObjectId) -> Option<&str> {
        self.outcomes.get(id).map(String::as_str)
    }

    fn has_failed(&self, id: &ObjectId) -> bool {
        self.failed.contains(id)
    }

    fn handle(&self, id: &ObjectId) -> String {
        id.as_str().to_owned()
    }

    fn handle_of(&self, id: &ObjectId) -> String {
        self.handle(id)
    }

    fn hash_of(&self, id: &ObjectId) -> Option<Digest> {
        self.hashes.get(id).copied()
    }
}
