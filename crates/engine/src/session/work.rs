//! A transaction under construction: the writes of a change, and what it will change in memory.

use std::collections::{HashMap, HashSet};

use context_model::chat::ChatPatch;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::session::SetsChange;
use context_model::time::TxId;
use indexmap::IndexMap;

use super::catalog::Meta;

/// A transaction under construction.
#[derive(Default)]
pub(crate) struct Work {
    /// Documents to write whole.
    pub documents: Documents,
    /// The additions to the chat.
    pub chat: ChatPatch,
    /// The change of the sets.
    pub change: SetsChange,
    /// Fields of the session document beside the sets.
    pub session: Patch,
    /// The conditions that must hold in the store.
    pub expected: IndexMap<ObjectId, Option<TxId>>,
    /// The number of turns in the chat afterwards, if the chat is written whole.
    pub turns: Option<usize>,
    /// The paths by which the agent named files.
    pub displays: IndexMap<ObjectId, String>,
    /// The turns in which tool calls were made or last activated, where they change.
    pub stays: HashMap<ObjectId, usize>,
    /// Objects that were never activated before.
    pub activated: HashSet<ObjectId>,
    /// Objects that are needed in this user turn.
    pub renewed: Vec<ObjectId>,
    /// Objects that the model or a user releases.
    pub dropped: Vec<ObjectId>,
    /// The metadata of calls that the transaction writes: the window also decides about them.
    pub ahead: IndexMap<ObjectId, Meta>,
}

/// Documents in write order. Adding one takes constant time.
#[derive(Default)]
pub(crate) struct Documents {
    all: Vec<Document>,
    places: HashMap<ObjectId, Vec<usize>>,
    /// The number of comparisons between documents so far.
    #[cfg(test)]
    pub(crate) compared: usize,
}

impl Documents {
    /// Adds a document.
    pub(crate) fn push(&mut self, document: Document) {
        self.places.entry(document.id().clone()).or_default().push(self.all.len());
        self.all.push(document);
    }

    /// Adds a document unless an equal one is already there.
    pub(crate) fn push_new(&mut self, document: Document) {
        let places = self.places.get(document.id()).map_or(&[][..], Vec::as_slice);
        #[cfg(test)]
        {
            self.compared += places.len();
        }
        if !places.iter().any(|place| self.all[*place] == document) {
            self.push(document);
        }
    }

    /// True if there is a version of this object.
    pub(crate) fn has(&self, id: &ObjectId) -> bool {
        self.places.contains_key(id)
    }

    /// The objects, each once.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.places.keys()
    }

    /// Takes the documents out.
    pub(crate) fn take(&mut self) -> Vec<Document> {
        self.places.clear();
        std::mem::take(&mut self.all)
    }
}
