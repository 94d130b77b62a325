//! The pieces of a request, and what can be shown of each.

use std::ops::RangeInclusive;

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
    /// How many model calls were made before it came, or was needed again.
    pub since: u64,
    /// The answer with calls that it is a part of, by its number.
    pub step: Option<usize>,
}

/// How much of a piece is shown, from all of it to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// What it came with: all of it, or the excerpt of a large output.
    Born,
    /// Arguments without the old text of an edit. Of an output a short excerpt, which only older sessions have.
    Faded,
    /// The reference, the collapsed arguments, the beginning of a text; of thinking nothing.
    Reference,
    /// The reference, and of the lines behind it only those of calls that changed something. Never the form of a piece,
    /// only what a roll makes of one: it is a reference again from then on.
    Short,
    /// Nothing: the message has left, and a line elsewhere names its calls.
    Gone,
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
    /// What the model thought or said, or a long text of a user's.
    Words(Words),
}

/// What the model thought or said, or a long text of a user's.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    /// The block of the message that it is, counted from 0.
    pub block: usize,
    /// By which it can be had again.
    pub id: String,
    /// Its length in UTF-16 units.
    pub chars: usize,
    pub what: Said,
    /// What a roll leaves of it alone.
    pub short: Short,
    /// What a line has of it where the whole answer becomes lines; `None` for nothing.
    pub line: Option<String>,
}

/// Whose words, and of what kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Thinking,
    Prose,
    User,
}

/// What a roll leaves of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// All of it: there is no shorter form, or its provider takes none.
    Whole,
    /// This text.
    Text(String),
    /// Nothing.
    Nothing,
    /// Nothing, once a user has spoken after it.
    NothingAfterUser,
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
    /// It is a text of rules, such as AGENTS.md, and stays whole.
    pub is_rule: bool,
    /// What stands behind its reference for calls after it that have left.
    pub lines: Vec<Line>,
}

/// What stands for a call, or for what was said before it, once that has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub text: String,
    /// It is of a call that has changed something, and stays.
    pub stays: bool,
}

/// Another object whose text an output shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub object: ObjectId,
    /// All of its text, and not a part.
    pub whole: bool,
}

/// The arguments of an answer's calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// Of those that have a shorter form.
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
    /// Those of an edit that succeeded, with nothing left out but the old text, and what that saves.
    pub new_text: Option<(Map<String, Value>, usize)>,
}

/// An answer with calls.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// The place of its first piece.
    pub first: usize,
    /// The places of its words and arguments.
    pub answer: Vec<usize>,
    pub calls: Vec<StepCall>,
    /// How many model calls were made before it came.
    pub since: u64,
    /// All of it may become lines.
    pub is_ripe: bool,
    /// The answer behind whose last result its lines stand, by its number; its own where it has those of others.
    pub page: Option<usize>,
}

/// A call, and what a line says of it.
#[derive(Debug, Default)]
pub(crate) struct StepCall {
    pub call_id: String,
    pub tool: String,
    /// The end of its path, the beginning of its command.
    pub gist: String,
    pub object: Option<ObjectId>,
    pub result: Option<usize>,
}

impl Step {
    /// The places of all its pieces; none as long as a result is missing, or where something else stands between them.
    pub fn range(&self) -> Option<RangeInclusive<usize>> {
        let last = self.calls.last()?.result?;
        let all = self.calls.iter().all(|call| call.result.is_some());
        let count = self.answer.len() + self.calls.len();
        (all && last + 1 == self.first + count).then_some(self.first..=last)
    }
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
    /// As rolls of older sessions left it.
    pub faded: Option<String>,
}

impl ArgumentsOf {
    /// What a form saves, in UTF-16 units.
    fn saves(&self, form: Form) -> usize {
        match form {
            Form::Born => 0,
            Form::Faded => self.new_text.as_ref().map_or(0, |(_, saved)| *saved),
            _ => self.saved,
        }
    }

    fn shown(&self, form: Form) -> Option<&Map<String, Value>> {
        self.object.as_ref()?;
        match form {
            Form::Born => None,
            Form::Faded => self.new_text.as_ref().map(|(args, _)| args),
            _ => Some(&self.args),
        }
    }
}

impl Arguments {
    /// Their size in a form, in UTF-16 units.
    pub fn units_in(&self, form: Form) -> usize {
        self.units.saturating_sub(self.calls.iter().map(|call| call.saves(form)).sum())
    }

    /// Whether all results are known by which the forms name their calls.
    pub fn is_answered(&self) -> bool {
        self.calls.iter().all(|call| call.object.is_some())
    }

    /// Whether there is an edit's old text to leave out.
    pub fn has_old_text(&self) -> bool {
        self.is_answered() && self.calls.iter().any(|call| call.new_text.is_some())
    }

    /// What stands in place of the full arguments in a form.
    pub fn in_form(&self, form: Form) -> Vec<CollapsedCall> {
        let shown = self.calls.iter().filter_map(|call| {
            Some(CollapsedCall {
                call_id: call.call_id.clone(),
                position: call.position,
                object: call.object.clone(),
                args: call.shown(form)?.clone(),
            })
        });
        shown.collect()
    }
}

impl Output {
    /// What stands in its place in a form that is shorter than what it came with.
    pub fn text_in(&self, form: Form) -> Option<String> {
        match form {
            Form::Born => self.excerpts.born.clone(),
            Form::Faded => self.excerpts.faded.clone(),
            Form::Reference => Some(self.with_lines(|_| true)),
            Form::Short => Some(self.with_lines(|line| line.stays)),
            Form::Gone => None,
        }
    }

    fn with_lines(&self, stays: impl Fn(&Line) -> bool) -> String {
        let lines = self.lines.iter().filter(|line| stays(line)).map(|line| line.text.as_str());
        let all: Vec<&str> = std::iter::once(self.reference.as_str()).chain(lines).collect();
        all.join("\n")
    }
}
