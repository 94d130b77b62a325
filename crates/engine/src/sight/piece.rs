//! The pieces of a request, and what can be shown of each.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;
use serde_json::{Map, Value};

/// One piece of the request.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The harness's name for the message.
    pub key: String,
    pub kind: PieceKind,
    /// A later piece shows the same.
    pub superseded: bool,
    /// What is shown of it.
    pub form: Form,
    /// What a roll would make of it.
    pub next: Form,
}

/// How much of a piece is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// What it came with: all of it, or the excerpt of a large output.
    Born,
    /// A short excerpt, of an active output whose user turn is over.
    Faded,
    /// The reference, or the collapsed arguments.
    Reference,
}

/// Which lines of which version of a file a result shows, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownLines {
    pub file: ObjectId,
    /// The hash of the version's bytes.
    pub hash: Digest,
    /// A transaction as of which the file is that version.
    pub tx: TxId,
    /// First line, counted from 1.
    pub first: usize,
    /// Last line, included.
    pub last: usize,
}

/// What a piece is of.
#[derive(Clone, Debug)]
pub(crate) enum PieceKind {
    /// Text that always stays.
    Fixed,
    /// The output of a tool call.
    Result(Box<Output>),
    /// The arguments of an answer's calls; a roll leaves their collapsed form.
    Arguments(Arguments),
}

/// The output of a tool call in the request, or on its way there.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub object: ObjectId,
    /// Its first line is the object's name.
    pub named: bool,
    /// The lines of a file that it shows.
    pub shown: Option<ShownLines>,
    /// The object that it brings back.
    pub carries: Option<Carried>,
    pub excerpts: Excerpts,
    /// What a roll leaves in its place.
    pub reference: String,
    /// Tokens of what it came with.
    pub born_tokens: u64,
}

/// Another object whose text an output shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub object: ObjectId,
    /// All of its text, and not a part.
    pub whole: bool,
}

/// The arguments of an answer's calls, of those that have a shorter form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    pub calls: Vec<ArgumentsOf>,
    /// Their size together with the other calls' as they came, in UTF-16 units.
    pub units: usize,
}

/// The arguments of one call.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentsOf {
    pub call_id: String,
    /// The call's position among the calls of its message.
    pub position: usize,
    pub tool: String,
    /// The object of the call, once its result is known.
    pub object: Option<ObjectId>,
    /// As the model gave them until the object is known, whose handle the markers name; collapsed from then on.
    pub args: Map<String, Value>,
    /// What collapsing saves, in UTF-16 units.
    pub saved: usize,
}

/// The collapsed arguments of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct CollapsedCall {
    /// The harness's call ID.
    pub call_id: String,
    /// The call's position among the calls of its message.
    pub position: usize,
    /// The object of the call, once its result is known.
    pub object: Option<ObjectId>,
    /// The arguments that stand in place of the full ones.
    pub args: Map<String, Value>,
}

/// What is shown of an output in place of all of it, with its header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Excerpts {
    /// From the beginning, because it is large.
    pub born: Option<String>,
    /// Once its user turn is over.
    pub faded: Option<String>,
}

impl Arguments {
    /// Their size once they are collapsed, in UTF-16 units.
    pub fn collapsed_units(&self) -> usize {
        self.units.saturating_sub(self.calls.iter().map(|call| call.saved).sum())
    }

    /// What stands in place of the full arguments.
    pub fn collapsed(&self) -> Vec<CollapsedCall> {
        let bound = self.calls.iter().filter(|call| call.object.is_some());
        let collapsed = bound.map(|call| CollapsedCall {
            call_id: call.call_id.clone(),
            position: call.position,
            object: call.object.clone(),
            args: call.args.clone(),
        });
        collapsed.collect()
    }
}
