//! What was rolled, as the chat records it.

use std::collections::HashSet;

use context_model::chat::{Chat, RollEntry};
use context_model::id::ObjectId;
use context_model::pricing::Receipt;

use super::piece::Form;

/// What was rolled in the visible part of the conversation, with the receipts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rolled {
    /// The rolls that are in effect, oldest first.
    entries: Vec<RollEntry>,
    sets: Sets,
    receipts: Vec<Receipt>,
    /// What a person brought back by undoing a roll, with the number of the turn.
    undone: Vec<(usize, RollEntry)>,
}

/// The same by object.
#[derive(Clone, Debug, Default)]
struct Sets {
    results: HashSet<ObjectId>,
    /// Calls whose results are short excerpts.
    excerpts: HashSet<ObjectId>,
    /// Calls whose arguments are collapsed.
    arguments: HashSet<ObjectId>,
    /// Edits without their old text.
    old_texts: HashSet<ObjectId>,
    /// Words that are shortened or left out, by their ID.
    words: HashSet<String>,
}

impl Sets {
    fn take_in(&mut self, entry: &RollEntry) {
        self.results.extend(entry.results.iter().cloned());
        self.excerpts.extend(entry.excerpts.iter().cloned());
        self.arguments.extend(entry.arguments.iter().cloned());
        self.old_texts.extend(entry.old_texts.iter().cloned());
        self.words.extend(entry.words.iter().cloned());
    }
}

impl Rolled {
    /// Reads what is rolled from a chat's turns.
    pub fn of(chat: Chat<'_>) -> Self {
        let mut rolled = Self::default();
        for (number, turn) in chat.turns().enumerate() {
            turn.rolls().for_each(|entry| rolled.note(entry, number));
        }
        rolled
    }

    /// The receipts of the rolls that are in effect, oldest first.
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// What rolls have made of a call's result.
    pub fn form_of(&self, object: &ObjectId) -> Form {
        match object {
            id if self.sets.results.contains(id) => Form::Reference,
            id if self.sets.excerpts.contains(id) => Form::Faded,
            _ => Form::Born,
        }
    }

    /// What rolls have made of the arguments of a call.
    pub fn arguments_of(&self, object: &ObjectId) -> Form {
        match object {
            id if self.sets.arguments.contains(id) => Form::Reference,
            id if self.sets.old_texts.contains(id) => Form::Faded,
            _ => Form::Born,
        }
    }

    /// Whether a roll left a short excerpt of a call's result and no later roll removed it.
    pub fn fades(&self, object: &ObjectId) -> bool {
        self.form_of(object) == Form::Faded
    }

    /// Whether rolls have shortened the arguments of an object's call.
    pub fn hides_arguments(&self, object: &ObjectId) -> bool {
        self.arguments_of(object) != Form::Born
            || self.entries.iter().flat_map(|entry| &entry.pages).flatten().any(|id| id == object)
    }

    /// Whether rolls have shortened words or left them out.
    pub fn hides_words(&self, id: &str) -> bool {
        self.sets.words.contains(id)
    }

    /// The rolls that are in effect, oldest first.
    pub fn entries(&self) -> &[RollEntry] {
        &self.entries
    }

    /// What a person brought back by undoing a roll, with the number of the turn, oldest first.
    pub fn undone(&self) -> &[(usize, RollEntry)] {
        &self.undone
    }

    /// Takes in the latest roll, or that it was undone, in the turn with this number.
    pub fn note(&mut self, entry: RollEntry, turn: usize) {
        if !entry.undone {
            self.sets.take_in(&entry);
            self.receipts.extend(entry.receipt.clone());
            self.entries.push(entry);
            return;
        }
        self.undone.push((turn, entry));
        self.entries.pop();
        self.receipts.pop();
        self.sets = Sets::default();
        for entry in &self.entries {
            self.sets.take_in(entry);
        }
    }
}
