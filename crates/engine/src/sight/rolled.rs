//! What was rolled, as the chat records it.

use std::collections::HashSet;

use context_model::chat::{Chat, RollEntry};
use context_model::id::ObjectId;
use context_model::pricing::Receipt;

use super::piece::Form;

/// What was rolled in the part of the conversation that is visible, and the receipts of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rolled {
    results: HashSet<ObjectId>,
    /// Calls whose results are short excerpts.
    excerpts: HashSet<ObjectId>,
    /// Calls whose arguments are collapsed.
    arguments: HashSet<ObjectId>,
    receipts: Vec<Receipt>,
}

impl Rolled {
    /// Reads what is rolled from a chat's turns.
    pub fn of(chat: Chat<'_>) -> Self {
        let mut rolled = Self::default();
        chat.rolls().for_each(|entry| rolled.note(entry));
        rolled
    }

    /// The receipts of the rolls that are in effect, oldest first.
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// What rolls have made of a call's result.
    pub fn form_of(&self, object: &ObjectId) -> Form {
        match object {
            id if self.results.contains(id) => Form::Reference,
            id if self.excerpts.contains(id) => Form::Faded,
            _ => Form::Born,
        }
    }

    /// Whether a roll made a short excerpt of a call's result once.
    pub fn fades(&self, object: &ObjectId) -> bool {
        self.excerpts.contains(object)
    }

    /// Whether rolls have collapsed the arguments of an object's call.
    pub fn hides_arguments(&self, object: &ObjectId) -> bool {
        self.arguments.contains(object)
    }

    /// Takes in one roll, or one that was taken back.
    pub fn note(&mut self, entry: RollEntry) {
        let RollEntry { results, excerpts, arguments, receipt, undone } = entry;
        for id in &results {
            self.excerpts.remove(id);
        }
        let sets =
            [(results, &mut self.results), (excerpts, &mut self.excerpts), (arguments, &mut self.arguments)];
        for (ids, set) in sets {
            for id in ids {
                if undone {
                    set.remove(&id);
                } else {
                    set.insert(id);
                }
            }
        }
        if undone {
            self.receipts.pop();
        } else {
            self.receipts.extend(receipt);
        }
    }
}
