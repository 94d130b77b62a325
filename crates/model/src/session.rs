//! A session's sets and their invariants.
//!
//! Architecture invariant: after every operation `active_set` is within `metadata_pool`, which is within
//! `session_index`, and the index never shrinks. The operations collect what changed in a [`SetsChange`]: a
//! [`Patch`] of the session document to save, and the way back if saving fails.

use indexmap::IndexSet;
use serde_json::{Map, Value, json};

use crate::error::ModelError;
use crate::id::{ObjectId, SessionId};
use crate::object::{Document, ObjectType};
use crate::patch::Patch;

const INDEX: &str = "session_index";
const POOL: &str = "metadata_pool";
const ACTIVE: &str = "active_set";
const PINNED: &str = "pinned_set";

/// The changes that operations made to the sets.
#[derive(Clone, Debug, Default)]
pub struct SetsChange {
    patch: Patch,
    undo: Vec<Undo>,
    touched: Vec<ObjectId>,
}

#[derive(Clone, Debug)]
enum Undo {
    Inserted(&'static str),
    Removed(&'static str, usize, ObjectId),
    Replaced(&'static str, IndexSet<ObjectId>),
}

impl SetsChange {
    /// The change as a patch of the session document.
    pub fn patch(&self) -> &Patch {
        &self.patch
    }

    /// The objects whose place in a set has changed, in order; an object may occur several times.
    pub fn touched(&self) -> &[ObjectId] {
        &self.touched
    }

    /// True if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.patch.is_empty()
    }

    fn insert(&mut self, set: &mut IndexSet<ObjectId>, name: &'static str, id: &ObjectId) {
        if set.insert(id.clone()) {
            self.patch.append(&[name], json!(id));
            self.undo.push(Undo::Inserted(name));
            self.touched.push(id.clone());
        }
    }

    fn remove(&mut self, set: &mut IndexSet<ObjectId>, name: &'static str, id: &ObjectId) -> bool {
        let Some((place, id)) = set.shift_remove_full(id) else { return false };
        self.patch.remove(&[name], place);
        self.touched.push(id.clone());
        self.undo.push(Undo::Removed(name, place, id));
        true
    }

    fn replace(&mut self, set: &mut IndexSet<ObjectId>, name: &'static str, new: &IndexSet<ObjectId>) {
        if !set.iter().eq(new.iter()) {
            self.patch.set(&[name], json!(new));
            self.touched.extend(set.symmetric_difference(new).cloned());
            self.undo.push(Undo::Replaced(name, std::mem::replace(set, new.clone())));
        }
    }
}

/// The four sets of a session: content object IDs only, in the order in which they entered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sets {
    index: IndexSet<ObjectId>,
    pool: IndexSet<ObjectId>,
    active: IndexSet<ObjectId>,
    pinned: IndexSet<ObjectId>,
}

impl Sets {
    /// Every content object the session has encountered; append-only.
    pub fn index(&self) -> &IndexSet<ObjectId> {
        &self.index
    }

    /// The objects that are visible as metadata.
    pub fn pool(&self) -> &IndexSet<ObjectId> {
        &self.pool
    }

    /// The objects whose content is loaded.
    pub fn active(&self) -> &IndexSet<ObjectId> {
        &self.active
    }

    /// The objects that are exempt from auto-collapse.
    pub fn pinned(&self) -> &IndexSet<ObjectId> {
        &self.pinned
    }

    /// Adds an ID to the index (encountered; "indexed only").
    pub fn encounter(&mut self, id: &ObjectId, change: &mut SetsChange) {
        change.insert(&mut self.index, INDEX, id);
    }

    /// Adds an ID to the metadata pool, and to the index if it is new.
    pub fn promote(&mut self, id: &ObjectId, change: &mut SetsChange) {
        self.encounter(id, change);
        change.insert(&mut self.pool, POOL, id);
    }

    /// Removes an ID from the metadata pool, and so from the active set; the index keeps it.
    pub fn demote(&mut self, id: &ObjectId, change: &mut SetsChange) {
        self.deactivate(id, change);
        change.remove(&mut self.pool, POOL, id);
    }

    /// Adds an ID to the active set; one that is only indexed is promoted first. One that is
    /// active already moves to the end, as the most recently activated.
    pub fn activate(&mut self, id: &ObjectId, change: &mut SetsChange) {
        self.promote(id, change);
        if self.active.last() != Some(id) {
            change.remove(&mut self.active, ACTIVE, id);
            change.insert(&mut self.active, ACTIVE, id);
        }
    }

    /// Removes an ID from the active set; it stays in the pool. Returns true if it was active.
    pub fn deactivate(&mut self, id: &ObjectId, change: &mut SetsChange) -> bool {
        change.remove(&mut self.active, ACTIVE, id)
    }

    /// Exempts an ID from auto-collapse; it enters the index if it is new.
    pub fn pin(&mut self, id: &ObjectId, change: &mut SetsChange) {
        self.encounter(id, change);
        change.insert(&mut self.pinned, PINNED, id);
    }

    /// Removes a pin. Returns true if it was pinned.
    pub fn unpin(&mut self, id: &ObjectId, change: &mut SetsChange) -> bool {
        change.remove(&mut self.pinned, PINNED, id)
    }

    /// Takes over pool, active and pinned of another point of the session (a branch change); the index
    /// becomes the union, because it never shrinks.
    pub fn restore(&mut self, point: &Self, change: &mut SetsChange) {
        for id in &point.index {
            self.encounter(id, change);
        }
        for (mine, theirs, name) in [
            (&mut self.pool, &point.pool, POOL),
            (&mut self.active, &point.active, ACTIVE),
            (&mut self.pinned, &point.pinned, PINNED),
        ] {
            change.replace(mine, name, theirs);
        }
    }

    /// Undoes a change that could not be saved. It must be the latest one.
    pub fn undo(&mut self, change: SetsChange) {
        for step in change.undo.into_iter().rev() {
            match step {
                Undo::Inserted(name) => {
                    self.named(name).pop();
                }
                Undo::Removed(name, place, id) => {
                    self.named(name).shift_insert(place, id);
                }
                Undo::Replaced(name, before) => *self.named(name) = before,
            }
        }
    }

    fn named(&mut self, name: &'static str) -> &mut IndexSet<ObjectId> {
        match name {
            INDEX => &mut self.index,
            POOL => &mut self.pool,
            ACTIVE => &mut self.active,
            _ => &mut self.pinned,
        }
    }

    /// The session wrapper object with these sets.
    pub fn document(&self, session: &SessionId) -> Document {
        let mut payload = Map::new();
        payload.insert("session_id".into(), json!(session));
        payload.insert("chat_ref".into(), json!(ObjectId::chat(session)));
        payload.insert("system_prompt_ref".into(), json!(ObjectId::system_prompt(session)));
        for (name, set) in
            [(INDEX, &self.index), (POOL, &self.pool), (ACTIVE, &self.active), (PINNED, &self.pinned)]
        {
            payload.insert(name.into(), json!(set));
        }
        Document::new(ObjectId::session(session), ObjectType::Session, None, payload)
            .unwrap_or_else(|e| unreachable!("a session document is well-formed: {e}"))
    }

    /// Reads the sets of a session document.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not a session document or its sets violate the invariants.
    pub fn from_document(document: &Document) -> Result<Self, ModelError> {
        let set = |name: &str| -> Result<IndexSet<ObjectId>, ModelError> {
            let value = document.field(name).cloned().unwrap_or(Value::Null);
            serde_json::from_value(value).map_err(|_| {
                ModelError::Invalid(format!("a session document has a list of IDs named {name}"))
            })
        };
        if document.object_type() != ObjectType::Session {
            return Err(ModelError::Invalid("this is not a session document".into()));
        }
        let sets = Self { index: set(INDEX)?, pool: set(POOL)?, active: set(ACTIVE)?, pinned: set(PINNED)? };
        let listed = |name: &str| document.field(name).and_then(Value::as_array).map_or(0, Vec::len);
        let twice =
            [(INDEX, &sets.index), (POOL, &sets.pool), (ACTIVE, &sets.active), (PINNED, &sets.pinned)]
                .into_iter()
                .find(|(name, set)| set.len() != listed(name));
        if let Some((name, _)) = twice {
            // Later changes name elements by their position, which would be a different one here.
            return Err(ModelError::Invalid(format!("{name} lists an ID twice")));
        }
        if !sets.holds() {
            return Err(ModelError::Invalid(
                "the session's sets are not within each other (active, pool, index)".into(),
            ));
        }
        Ok(sets)
    }

    /// True if the invariants hold.
    pub fn holds(&self) -> bool {
        self.active.is_subset(&self.pool)
            && self.pool.is_subset(&self.index)
            && self.pinned.is_subset(&self.index)
    }
}
