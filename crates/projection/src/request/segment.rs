//! The segments of a request, and the forms in which each can be shown.

use context_lines::CHANGED;
use context_lines::marker::Collapsed;
use context_model::chat::numbered;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;
use serde_json::{Map, Value};

/// One segment of the request.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// The harness's name for the message.
    pub key: String,
    pub kind: SegmentKind,
    /// A later segment shows the same thing.
    pub superseded: bool,
    /// The form in which it is shown.
    pub form: Form,
    /// The form that a roll would give it.
    pub next: Form,
    /// The number of model calls made before it came or was last needed.
    pub since: u64,
    /// The number of model calls made before a newer message of its kind came, until which it had to stay; 0 if it did not.
    pub newest_until: u64,
    /// The number of the answer with calls that it is part of.
    pub step: Option<usize>,
}

/// The shown part of a segment, from all of it to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// As it first came: all of it, or the excerpt of a large output.
    Full,
    /// Arguments without an edit's old text.
    WithoutOldText,
    /// The reference, the collapsed arguments, or the beginning of a text. Nothing remains of thinking.
    Reference,
    /// The reference, and only those of the lines after it that belong to calls that changed something. No segment ever has
    /// this form: it is the effect of a roll on a segment, which is then a reference again.
    Compact,
    /// Nothing: the message is gone, and a line elsewhere names its calls.
    Removed,
}

/// The lines that a result shows byte for byte, and the file version that they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownLines {
    /// The file.
    pub file: ObjectId,
    /// The hash of the version's bytes.
    pub hash: Digest,
    /// A transaction as of which the file has that version.
    pub tx: TxId,
    /// First line, counted from 1.
    pub first: usize,
    /// Last line, included.
    pub last: usize,
}

/// The content of a segment.
#[derive(Clone, Debug)]
pub(crate) enum SegmentKind {
    /// Text that always stays.
    Fixed,
    /// The output of a tool call.
    Result(Box<Output>),
    /// The arguments of an answer's calls. A roll collapses them.
    Arguments(Arguments),
    /// The model's reasoning or prose, or a user's long text.
    Prose(Prose),
}

/// The model's reasoning or prose, or a user's long text.
#[derive(Clone, Debug)]
pub(crate) struct Prose {
    /// Its block in the message, counted from 0.
    pub block: usize,
    /// The ID that brings it back.
    pub id: String,
    /// The number of texts before it that are equal and may leave. A roll means one of them.
    pub earlier: usize,
    /// Its length in UTF-16 units.
    pub chars: usize,
    pub what: TextKind,
    /// The text that is left of it by a roll that shortens only this.
    pub short: Short,
    /// The text that a line keeps of it when the whole answer becomes lines; `None` for nothing.
    pub line: Option<String>,
    /// The other contents of its answer.
    pub rest: RestOfAnswer,
}

impl Prose {
    /// The name by which a roll records it: its ID, with a number if equal ones are before it.
    pub(crate) fn name(&self) -> String {
        numbered(&self.id, self.earlier)
    }
}

/// The contents of an answer besides its reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RestOfAnswer {
    /// A text or calls. Also for prose.
    #[default]
    Some,
    /// Nothing: with its reasoning, the whole answer leaves.
    Nothing,
    /// The same directly behind a system message, which has to stand before an answer: a short text takes its place.
    StandIn,
}

/// The author and kind of prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Thinking,
    Prose,
    User,
}

/// The text that a roll leaves of prose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// All of it: it cannot be shortened, or its provider accepts nothing shorter.
    Whole,
    /// This text.
    Text(String),
    /// Nothing.
    Nothing,
    /// Nothing, once a later user message exists.
    NothingAfterUser,
}

/// A tool call's output, in the request or on its way there.
#[derive(Clone, Debug)]
pub struct Output {
    /// The tool call.
    pub object: ObjectId,
    /// Its first line names the object.
    pub named: bool,
    /// The lines of a file that it shows.
    pub shown: Option<ShownLines>,
    /// The object whose text it brings back.
    pub carries: Option<Carried>,
    /// The excerpt in its place from the start, because it is large, under its header.
    pub excerpt: Option<String>,
    /// Its host has put another text in its place.
    pub masked: bool,
    /// The text that a roll leaves in its place.
    pub reference: String,
    /// The file that it shows had other bytes when it became a reference.
    pub had_changed: bool,
    /// The tokens of its original form.
    pub full_tokens: u64,
    /// It is a rules file, such as AGENTS.md, and stays whole.
    pub is_rule: bool,
    /// The lines after its reference, for later calls that have left.
    pub lines: Vec<Line>,
}

/// The line that replaces a call, or the prose before it, once the answer that has them is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The text of the line.
    pub text: String,
    /// It belongs to a call that changed something, and stays.
    pub stays: bool,
    /// The number of the answer with calls that it replaces.
    pub of: usize,
}

/// Another object whose text an output shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The object.
    pub object: ObjectId,
    /// All of its text, not a part.
    pub whole: bool,
    /// The hash of the file version whose text it is, if it is a file's.
    pub version: Option<Digest>,
}

/// The calls of an answer with their arguments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// All of its calls, in order.
    pub calls: Vec<AnswerCall>,
    /// The size of all calls' arguments as they came, in UTF-16 units.
    pub units: usize,
    /// About the number of tokens in the lines of its calls.
    pub line_tokens: u64,
}

/// A call of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerCall {
    pub call_id: String,
    /// Its position among the calls of its message.
    pub position: usize,
    pub tool: String,
    /// The end of its path, or the beginning of its command, on one line: its part of a line.
    pub gist: String,
    /// It is known to have changed something.
    pub has_effect: bool,
    /// As the model gave them. Empty once its result is known.
    pub args: Map<String, Value>,
    /// Its object, once its result is known.
    pub object: Option<ObjectId>,
    /// The place of its result.
    pub result: Option<usize>,
    /// The arguments in a shorter form, if they have one. Until the object is known, its markers name a placeholder.
    pub collapsed: Option<Collapsed>,
    /// For an edit that succeeded: the arguments without the old text.
    pub new_text: Option<Collapsed>,
}

/// An answer with calls.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub first: usize,
    /// The places of its prose and, the last one, of its arguments.
    pub answer: Vec<usize>,
    /// The number of model calls made before it came.
    pub since: u64,
    /// All of it may become lines.
    pub is_ripe: bool,
    /// The number of the answer whose last result its lines follow; its own number if it carries other answers'
    /// lines.
    pub call_digest: Option<usize>,
    /// Its results share their message with what the user said next, which would stand behind another message of the user without it.
    pub is_joined: bool,
    /// The number, counted from 1, of the arrival with which a text or a call of it came into the past; 0 if it came in its place.
    pub arrival: usize,
}

/// The collapsed arguments of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct CollapsedCall {
    /// The harness's call ID.
    pub call_id: String,
    /// The call's position among the calls of its message.
    pub position: usize,
    /// The arguments that replace the full ones.
    pub args: Map<String, Value>,
}

impl AnswerCall {
    /// The arguments in a form; `None` if it shows them as they came.
    fn shorter_in(&self, form: Form) -> Option<&Collapsed> {
        match form {
            Form::Full => None,
            Form::WithoutOldText => self.new_text.as_ref(),
            _ => self.collapsed.as_ref(),
        }
    }
}

impl Arguments {
    /// The calls whose arguments have a shorter form.
    pub(crate) fn shorter(&self) -> impl Iterator<Item = &AnswerCall> {
        self.calls.iter().filter(|call| call.collapsed.is_some())
    }

    /// Their size in a form, in UTF-16 units.
    pub(crate) fn units_in(&self, form: Form) -> usize {
        let saved = self.calls.iter().filter_map(|call| call.shorter_in(form)).map(|args| args.saved_chars);
        self.units.saturating_sub(saved.sum())
    }

    /// True if the results of all calls with a shorter form are known; the forms name their calls by them.
    pub(crate) fn is_answered(&self) -> bool {
        self.shorter().all(|call| call.object.is_some())
    }

    /// True if there is an edit's old text to leave out.
    pub(crate) fn has_old_text(&self) -> bool {
        self.is_answered() && self.calls.iter().any(|call| call.new_text.is_some())
    }

    /// Returns what replaces the full arguments in a form.
    pub(crate) fn in_form(&self, form: Form) -> Vec<CollapsedCall> {
        let named = self.calls.iter().filter(|call| call.object.is_some());
        let shown = named.filter_map(|call| {
            let args = call.shorter_in(form)?.args.clone();
            Some(CollapsedCall { call_id: call.call_id.clone(), position: call.position, args })
        });
        shown.collect()
    }
}

#[cfg(test)]
impl Output {
    /// A named output with this many tokens that shows no file.
    pub fn of_test(name: &str, full_tokens: u64) -> Self {
        Self {
            object: ObjectId::new(name),
            named: true,
            shown: None,
            carries: None,
            excerpt: None,
            masked: false,
            reference: format!("toolcall_ref id={name}"),
            had_changed: false,
            full_tokens,
            is_rule: false,
            lines: Vec::new(),
        }
    }
}

impl Output {
    /// An output in whose place its host has put a text with this many tokens. That shows no lines of a file.
    #[must_use]
    pub fn masked(object: ObjectId, full_tokens: u64, reference: String) -> Self {
        Self {
            object,
            named: false,
            shown: None,
            carries: None,
            excerpt: None,
            masked: true,
            reference,
            had_changed: false,
            full_tokens,
            is_rule: false,
            lines: Vec::new(),
        }
    }

    /// The text that replaces it in a form shorter than [`Form::Full`].
    pub fn text_in(&self, form: Form) -> Option<String> {
        match form {
            Form::Full => self.excerpt.clone(),
            Form::Reference => Some(self.with_lines(|_| true)),
            Form::Compact => Some(self.with_lines(|line| line.stays)),
            Form::WithoutOldText | Form::Removed => None,
        }
    }

    fn with_lines(&self, stays: impl Fn(&Line) -> bool) -> String {
        let lines = self.lines.iter().filter(|line| stays(line)).map(|line| line.text.as_str());
        let since = if self.had_changed { CHANGED } else { "" };
        lines.fold(format!("{}{since}", self.reference), |all, line| all + "\n" + line)
    }
}
