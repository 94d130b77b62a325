//! A session's sets and their invariants (SSOT 3.1 to 3.5).
//!
//! Architecture invariant: after every operation `active_set` is within `metadata_pool`, which is within
//! `session_index`, and the index never shrinks. The operations return what changed as a [`Patch`] of the
//! session document; saving it is the engine's business.

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
    #[must_use]
    pub fn index(&self) -> &IndexSet<ObjectId> {
        &self.index
    }

    /// The objects that are visible as metadata.
    #[must_use]
    pub fn pool(&self) -> &IndexSet<ObjectId> {
        &self.pool
    }

    /// The objects whose content is loaded.
    #[must_use]
    pub fn active(&self) -> &IndexSet<ObjectId> {
        &self.active
    }

    /// The objects that are exempt from auto-collapse.
    #[must_use]
    pub fn pinned(&self) -> &IndexSet<ObjectId> {
        &self.pinned
    }

    /// Adds an ID to the index (encountered; "indexed only").
    pub fn encounter(&mut self, id: &ObjectId, patch: &mut Patch) {
        insert(&mut self.index, INDEX, id, patch);
    }

    /// Adds an ID to the metadata pool, and to the index if it is new.
    pub fn promote(&mut self, id: &ObjectId, patch: &mut Patch) {
        self.encounter(id, patch);
        insert(&mut self.pool, POOL, id, patch);
    }

    /// Takes an ID out of the metadata pool, and so out of the active set; the index keeps it.
    pub fn demote(&mut self, id: &ObjectId, patch: &mut Patch) {
        self.deactivate(id, patch);
        remove(&mut self.pool, POOL, id, patch);
    }

    /// Adds an ID to the active set; one that is only indexed is promoted first (SSOT 3.3). One that is
    /// active already moves to the end, as the most recently activated.
    pub fn activate(&mut self, id: &ObjectId, patch: &mut Patch) {
        self.promote(id, patch);
        if self.active.last() != Some(id) {
            remove(&mut self.active, ACTIVE, id, patch);
            insert(&mut self.active, ACTIVE, id, patch);
        }
    }

    /// Takes an ID out of the active set; it stays in the pool (SSOT 3.3). Returns whether it was active.
    pub fn deactivate(&mut self, id: &ObjectId, patch: &mut Patch) -> bool {
        remove(&mut self.active, ACTIVE, id, patch)
    }

    /// Exempts an ID from auto-collapse; it enters the index if it is new.
    pub fn pin(&mut self, id: &ObjectId, patch: &mut Patch) {
        self.encounter(id, patch);
        insert(&mut self.pinned, PINNED, id, patch);
    }

    /// Takes back a pin. Returns whether it was pinned.
    pub fn unpin(&mut self, id: &ObjectId, patch: &mut Patch) -> bool {
        remove(&mut self.pinned, PINNED, id, patch)
    }

    /// Takes over pool, active and pinned of another point of the session (a branch change); the index
    /// becomes the union, because it never shrinks.
    pub fn restore(&mut self, point: &Self, patch: &mut Patch) {
        for id in &point.index {
            self.encounter(id, patch);
        }
        for (mine, theirs, name) in [
            (&mut self.pool, &point.pool, POOL),
            (&mut self.active, &point.active, ACTIVE),
            (&mut self.pinned, &point.pinned, PINNED),
        ] {
            if mine != theirs || !mine.iter().eq(theirs.iter()) {
                mine.clone_from(theirs);
                patch.set(&[name], json!(theirs));
            }
        }
    }

    /// The session wrapper object with these sets (SSOT 3.1).
    #[must_use]
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
    /// `INVALID_ARGUMENT` when it is no session document or its sets contradict the invariants.
    pub fn from_document(document: &Document) -> Result<Self, ModelError> {
        let set = |name: &str| -> Result<IndexSet<ObjectId>, ModelError> {
            let value = document.field(name).cloned().unwrap_or(Value::Null);
            serde_json::from_value(value)
                .map_err(|_| ModelError::Invalid(format!("a session document has a list of IDs named {name}")))
        };
        if document.object_type() != ObjectType::Session {
            return Err(ModelError::Invalid("this is no session document".into()));
        }
        let sets = Self { index: set(INDEX)?, pool: set(POOL)?, active: set(ACTIVE)?, pinned: set(PINNED)? };
        if !sets.holds() {
            return Err(ModelError::Invalid(
                "the session's sets are not within each other (active, pool, index)".into(),
            ));
        }
        Ok(sets)
    }

    /// Whether the invariants hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.active.is_subset(&self.pool)
            && self.pool.is_subset(&self.index)
            && self.pinned.is_subset(&self.index)
    }
}

fn insert(set: &mut IndexSet<ObjectId>, name: &str, id: &ObjectId, patch: &mut Patch) {
    if set.insert(id.clone()) {
        patch.append(&[name], json!(id));
    }
}

fn remove(set: &mut IndexSet<ObjectId>, name: &str, id: &ObjectId, patch: &mut Patch) -> bool {
    match set.shift_remove_full(id) {
        Some((index, _)) => {
            patch.remove(&[name], index);
            true
        }
        None => false,
    }
}
