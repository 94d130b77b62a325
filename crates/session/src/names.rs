//! The names of a session's objects. They are kept apart from the session, so that a lookup never waits for a write.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use context_model::id::ObjectId;
use context_model::render;

/// The full IDs and the handles of a session's objects.
#[derive(Debug, Default)]
pub struct Names(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    ids: HashSet<ObjectId>,
    by_handle: HashMap<String, ObjectId>,
}

impl Names {
    /// Takes in an object, with its handle if it gets one now.
    pub fn put(&self, id: &ObjectId, handle: Option<&str>) {
        let mut known = self.write();
        if let Some(handle) = handle {
            known.by_handle.insert(handle.to_owned(), id.clone());
        }
        known.ids.insert(id.clone());
    }

    /// Forgets the full ID of an object that was never written. Its handle stays reserved for it.
    pub fn forget(&self, id: &ObjectId) {
        self.write().ids.remove(id);
    }

    /// Returns whether a handle is taken.
    pub fn has_handle(&self, handle: &str) -> bool {
        self.read().by_handle.contains_key(handle)
    }

    /// The object with this full ID or handle, or with this ID as a rendered line shows it.
    pub fn find(&self, name: &str) -> Option<ObjectId> {
        let known = self.read();
        let id = ObjectId::new(name);
        if known.ids.contains(&id) {
            return Some(id);
        }
        if let Some(id) = known.by_handle.get(name) {
            return Some(id.clone());
        }
        let shown = ObjectId::new(render::unescape(name)?);
        known.ids.contains(&shown).then_some(shown)
    }

    // A poisoned lock only means that a reader panicked; each change is made by one call.
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
