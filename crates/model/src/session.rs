//! A session's sets and their invariants.
//!
//! Architecture invariant: after every operation `active_set` is within `metadata_pool`, which is within
//! `session_index`, and the index never shrinks. The operations change nothing: they collect what is to change in a
//! [`SetsChange`], which is a [`Patch`] of the session document to save, and applied once it is saved.

use std::collections::BTreeSet;

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

/// The field of a session document with the folder that the session works in.
pub const FOLDER: &str = "folder";

/// Returns the document of a session that begins in this folder; `None` if it is not known.
///
/// # Errors
/// `INVALID_ARGUMENT` if the document can't be made.
pub fn begun(session: &SessionId, folder: Option<&str>) -> Result<Document, ModelError> {
    let (id, object_type, source, mut payload) = Sets::default().document(session).into_parts();
    payload.extend(folder.map(|folder| (FOLDER.into(), json!(folder))));
    Document::new(id, object_type, source, payload)
}

/// The folder that a session works in, as its document has it; `None` if it was never known, or an earlier version of this
/// library began it.
pub fn folder_of(session: &Document) -> Option<&str> {
    session.text(FOLDER)
}

/// The changes that operations make to the sets. The sets stay as they are until [`Sets::apply`], so a change that can't be
/// saved is dropped. Operations see what earlier ones of the same change have done.
#[derive(Clone, Debug, Default)]
pub struct SetsChange {
    patch: Patch,
    touched: Vec<ObjectId>,
    index: SetChange,
    pool: SetChange,
    active: SetChange,
    pinned: SetChange,
}

impl SetsChange {
    /// The change as a patch of the session document.
    pub fn patch(&self) -> &Patch {
        &self.patch
    }

    /// The objects whose place in a set changes, in order; an object may occur several times.
    pub fn touched(&self) -> &[ObjectId] {
        &self.touched
    }

    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.patch.is_empty()
    }

    fn insert(&mut self, set: &IndexSet<ObjectId>, name: &'static str, id: &ObjectId) {
        if self.named(name).insert(set, id) {
            self.patch.append(&[name], json!(id));
            self.touched.push(id.clone());
        }
    }

    fn remove(&mut self, set: &IndexSet<ObjectId>, name: &'static str, id: &ObjectId) -> bool {
        let Some(place) = self.named(name).remove(set, id) else { return false };
        self.patch.remove(&[name], place);
        self.touched.push(id.clone());
        true
    }

    fn replace(&mut self, set: &IndexSet<ObjectId>, name: &'static str, new: &IndexSet<ObjectId>) {
        let now: IndexSet<ObjectId> = self.named(name).iter(set).cloned().collect();
        if !now.iter().eq(new.iter()) {
            self.patch.set(&[name], json!(new));
            self.touched.extend(now.symmetric_difference(new).cloned());
            *self.named(name) = SetChange { replaced: Some(new.clone()), ..SetChange::default() };
        }
    }

    fn named(&mut self, name: &'static str) -> &mut SetChange {
        match name {
            INDEX => &mut self.index,
            POOL => &mut self.pool,
            ACTIVE => &mut self.active,
            _ => &mut self.pinned,
        }
    }
}

/// The change of one set.
#[derive(Clone, Debug, Default)]
struct SetChange {
    /// The set that takes its place.
    replaced: Option<IndexSet<ObjectId>>,
    /// The places of those that leave.
    left: BTreeSet<usize>,
    /// Those that enter, behind the others.
    entered: IndexSet<ObjectId>,
}

impl SetChange {
    fn base<'a>(&'a self, set: &'a IndexSet<ObjectId>) -> &'a IndexSet<ObjectId> {
        self.replaced.as_ref().unwrap_or(set)
    }

    fn contains(&self, set: &IndexSet<ObjectId>, id: &ObjectId) -> bool {
        let place = self.base(set).get_index_of(id);
        self.entered.contains(id) || place.is_some_and(|place| !self.left.contains(&place))
    }

    fn iter<'a>(&'a self, set: &'a IndexSet<ObjectId>) -> impl DoubleEndedIterator<Item = &'a ObjectId> {
        let stays = self.base(set).iter().enumerate().filter(|(place, _)| !self.left.contains(place));
        stays.map(|(_, id)| id).chain(&self.entered)
    }

    fn insert(&mut self, set: &IndexSet<ObjectId>, id: &ObjectId) -> bool {
        !self.contains(set, id) && self.entered.insert(id.clone())
    }

    /// Returns the place that it had.
    fn remove(&mut self, set: &IndexSet<ObjectId>, id: &ObjectId) -> Option<usize> {
        if let Some((place, _)) = self.entered.shift_remove_full(id) {
            return Some(self.base(set).len() - self.left.len() + place);
        }
        let place = self.base(set).get_index_of(id)?;
        let before = self.left.range(..place).count();
        self.left.insert(place).then(|| place - before)
    }

    fn apply(self, set: &mut IndexSet<ObjectId>) {
        if let Some(new) = self.replaced {
            *set = new;
        }
        for place in self.left.into_iter().rev() {
            set.shift_remove_index(place);
        }
        set.extend(self.entered);
    }
}

/// The sets as a change will leave them.
#[derive(Clone, Copy)]
pub struct SetsAfter<'a> {
    sets: &'a Sets,
    change: &'a SetsChange,
}

impl<'a> SetsAfter<'a> {
    /// True for an object of the index.
    pub fn is_indexed(&self, id: &ObjectId) -> bool {
        self.change.index.contains(&self.sets.index, id)
    }

    /// True for an object that is exempt from auto-collapse.
    pub fn is_pinned(&self, id: &ObjectId) -> bool {
        self.change.pinned.contains(&self.sets.pinned, id)
    }

    /// The active objects, in the order in which they entered.
    pub fn active(&self) -> impl DoubleEndedIterator<Item = &'a ObjectId> + use<'a> {
        self.change.active.iter(&self.sets.active)
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
    pub fn encounter(&self, id: &ObjectId, change: &mut SetsChange) {
        change.insert(&self.index, INDEX, id);
    }

    /// Adds an ID to the metadata pool, and to the index if it is new.
    pub fn promote(&self, id: &ObjectId, change: &mut SetsChange) {
        self.encounter(id, change);
        change.insert(&self.pool, POOL, id);
    }

    /// Removes an ID from the metadata pool, and so from the active set; the index keeps it.
    pub fn demote(&self, id: &ObjectId, change: &mut SetsChange) {
        self.deactivate(id, change);
        change.remove(&self.pool, POOL, id);
    }

    /// Adds an ID to the active set; one that is only indexed is promoted first. One that is
    /// active already moves to the end, as the most recently activated.
    pub fn activate(&self, id: &ObjectId, change: &mut SetsChange) {
        self.promote(id, change);
        if self.after(change).active().next_back() != Some(id) {
            change.remove(&self.active, ACTIVE, id);
            change.insert(&self.active, ACTIVE, id);
        }
    }

    /// Removes an ID from the active set; it stays in the pool. Returns true if it was active.
    pub fn deactivate(&self, id: &ObjectId, change: &mut SetsChange) -> bool {
        change.remove(&self.active, ACTIVE, id)
    }

    /// Exempts an ID from auto-collapse; it enters the index if it is new.
    pub fn pin(&self, id: &ObjectId, change: &mut SetsChange) {
        self.encounter(id, change);
        change.insert(&self.pinned, PINNED, id);
    }

    /// Removes a pin. Returns true if it was pinned.
    pub fn unpin(&self, id: &ObjectId, change: &mut SetsChange) -> bool {
        change.remove(&self.pinned, PINNED, id)
    }

    /// Takes over pool, active and pinned of another point of the session (a branch change); the index
    /// becomes the union, because it never shrinks.
    pub fn restore(&self, point: &Self, change: &mut SetsChange) {
        for id in &point.index {
            self.encounter(id, change);
        }
        for (mine, theirs, name) in [
            (&self.pool, &point.pool, POOL),
            (&self.active, &point.active, ACTIVE),
            (&self.pinned, &point.pinned, PINNED),
        ] {
            change.replace(mine, name, theirs);
        }
    }

    /// The sets as a change will leave them.
    pub fn after<'a>(&'a self, change: &'a SetsChange) -> SetsAfter<'a> {
        SetsAfter { sets: self, change }
    }

    /// Makes a change that has been saved. It must have been made from these sets.
    pub fn apply(&mut self, change: SetsChange) {
        change.index.apply(&mut self.index);
        change.pool.apply(&mut self.pool);
        change.active.apply(&mut self.active);
        change.pinned.apply(&mut self.pinned);
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
