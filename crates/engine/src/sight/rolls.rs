//! Rolls: what they replace, and how they are remembered.
//!
//! A roll is recorded with the turn in which it happened, together with its receipt. So a resumed session shows
//! what it showed before, also in a harness that keeps only its raw messages.

use context_model::chat::RollEntry;
use context_model::id::ObjectId;

use super::Sight;
use super::piece::{Form, Piece, PieceKind};
use super::plan::Edit;

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
