//! Rolls: what they replace, and how they are remembered.
//!
//! A roll is recorded with the turn in which it happened, together with its receipt. So a resumed session shows
//! what it showed before, also in a harness that keeps only its raw messages.

use std::collections::HashSet;

use context_model::chat::{Chat, RollEntry};
use context_model::id::ObjectId;
use context_model::pricing::Receipt;

use super::Sight;
use super::piece::{Form, Piece, PieceKind};
use super::plan::Edit;

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

impl Sight {
    /// While what is visible is rebuilt: rolls again what was rolled of a call whose result has just come by, as
    /// this text.
    pub fn repeat_rolls(&mut self, object: &ObjectId, text: &str) {
        let result = self.rolled.form_of(object);
        let hidden = self.rolled.hides_arguments(object);
        let arguments = if hidden { Form::Reference } else { Form::Born };
        let pieces = self.pieces.roll_again(object, result, arguments);
        let mut edits: Vec<Edit> = pieces.into_iter().filter_map(replaced).collect();
        edits.retain(|edit| !matches!(edit, Edit::Result { text: Some(new), .. } if new == text));
        self.issue(&edits);
        self.pending.extend(edits);
    }
}

/// A roll as the chat records it: whose results are references, whose results are short excerpts, and whose arguments
/// are collapsed.
pub(crate) fn entry_of<'a>(
    pieces: impl Iterator<Item = &'a Piece>,
    form: impl Fn(&Piece) -> Form,
) -> RollEntry {
    let mut entry = RollEntry::default();
    for piece in pieces {
        match &piece.kind {
            PieceKind::Fixed => {}
            PieceKind::Result(output) => {
                let faded = form(piece) == Form::Faded;
                if faded { &mut entry.excerpts } else { &mut entry.results }.push(output.object.clone());
            }
            PieceKind::Arguments(arguments) => {
                entry.arguments.extend(arguments.calls.iter().filter_map(|call| call.object.clone()));
            }
        }
    }
    entry
}

/// What shows a piece in its present form.
pub(crate) fn replaced(piece: &Piece) -> Option<Edit> {
    Some(match &piece.kind {
        PieceKind::Fixed => return None,
        PieceKind::Result(output) => {
            let text = match piece.form {
                Form::Born => output.excerpts.born.clone(),
                Form::Faded => output.excerpts.faded.clone(),
                Form::Reference => Some(output.reference.clone()),
            };
            Edit::Result { key: piece.key.clone(), object: output.object.clone(), text }
        }
        PieceKind::Arguments(arguments) => {
            Edit::Arguments { key: piece.key.clone(), calls: arguments.collapsed() }
        }
    })
}

/// What shows a piece as it was before any roll: what was an excerpt is one again.
pub(crate) fn restored(piece: &Piece) -> Option<Edit> {
    match &piece.kind {
        PieceKind::Arguments(_) => Some(Edit::Arguments { key: piece.key.clone(), calls: Vec::new() }),
        _ => replaced(piece),
    }
}
