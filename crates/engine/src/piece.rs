//! The pieces of a request, and what can be shown of each.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use serde_json::{Map, Value};

/// One piece of the request.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The harness's name for the message.
    pub key: String,
    pub kind: PieceKind,
    /// A later read of the same file took its place.
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
    /// First line, counted from 1.
    pub first: usize,
    /// Last line, included.
    pub last: usize,
}

/// What a piece is, and what replaces it in a roll.
#[derive(Clone, Debug)]
pub(crate) enum PieceKind {
    /// Text that always stays.
    Fixed,
    /// The output of a tool call; a roll leaves the reference line.
    Result {
        object: ObjectId,
        /// The file that it shows, where it is a read.
        file: Option<ObjectId>,
        excerpts: Excerpts,
        reference: String,
        /// Tokens of what it came with.
        born_tokens: u64,
    },
    /// The arguments of an answer's calls; a roll leaves their collapsed form.
    Arguments { calls: Vec<CollapsedCall> },
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

/// The output of a tool call on its way into the request.
pub(crate) struct NewResult {
    pub object: ObjectId,
    /// The lines of a file that it shows.
    pub shown: Option<ShownLines>,
    pub excerpts: Excerpts,
    /// What a roll leaves in its place.
    pub reference: String,
    /// Its size as it is shown.
    pub tokens: u64,
}
