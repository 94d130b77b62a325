//! The turns of a chat object (SSOT 2.5): how they are written, and how they are read back.
//!
//! A chat's payload lists its turns, oldest first:
//!
//! ```json
//! { "turns": [{
//!     "user": "the message's content, or null where an answer or a call came first",
//!     "assistant": [{ "content": [], "meta": { "model": "m" } }],
//!     "toolcall_ids": ["call_1"],
//!     "activated_ids": ["call_0"],
//!     "rolls": [{ "results": ["call_0"], "excerpts": [], "arguments": [], "words": ["0123456789a"],
//!                 "pages": [["call_0", "call_1"]], "receipt": {} },
//!               { "notices": [{ "file": "ab12…", "source_hash": "cd34…" }] }]
//!   }],
//!   "turn_count": 1, "toolcall_refs": ["call_1"] }
//! ```
//!
//! [`ChatPatch`] collects what is added as a patch of that payload. [`Chat`] and [`Turn`] read it, and take a field
//! that is missing or of another type for an empty one: a damaged document is read as far as it goes. Fields that are
//! unknown here stay unchanged, because a chat changes only by patches that add.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::canonical::{MAX_DEPTH, is_deeper_than};
use crate::error::ModelError;
use crate::hash::Digest;
use crate::id::{ObjectId, SessionId, unmarked};
use crate::object::Document;
use crate::patch::Patch;
use crate::pricing::Receipt;

const TURNS: &str = "turns";
const TURN_COUNT: &str = "turn_count";
const TOOLCALL_REFS: &str = "toolcall_refs";
const USER: &str = "user";
const ASSISTANT: &str = "assistant";
const TOOLCALL_IDS: &str = "toolcall_ids";
const ACTIVATED_IDS: &str = "activated_ids";
const ROLLS: &str = "rolls";
const NOTICES: &str = "notices";

/// Hexadecimal digits of a [`said_id`]: more than the handles of objects have, so that neither is taken for the other.
const SAID_ID: usize = 11;

/// Additions to a chat: a patch of its document, under construction.
///
/// A patch names turns by their number, so it fits only the version of the chat that it was begun for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatPatch {
    turns: usize,
    first_changed: Option<usize>,
    patch: Patch,
}

impl ChatPatch {
    /// An empty patch of a chat with this many turns.
    #[must_use]
    pub fn new(turns: usize) -> Self {
        Self { turns, ..Self::default() }
    }

    /// Adds a message: a user's begins a turn, an assistant's answers in the current one (and begins the first,
    /// without a user's message, where there is none). The content is kept as it is; of an answer also everything
    /// else that the harness says of it, such as provider, model, usage and stop reason.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a message whose role is neither `user` nor `assistant`, or that is nested deeper than
    /// [`MAX_DEPTH`]; nothing is added then.
    pub fn message(&mut self, message: &Value) -> Result<(), ModelError> {
        if is_deeper_than(message, MAX_DEPTH) {
            return Err(ModelError::Invalid(format!("a message is nested at most {MAX_DEPTH} levels deep")));
        }
        let content = message.get("content").cloned().unwrap_or(Value::Null);
        match message.get("role").and_then(Value::as_str) {
            Some("user") => self.start_turn(content),
            Some("assistant") => {
                self.begin();
                self.append(ASSISTANT, json!({ "content": content, "meta": meta(message) }));
            }
            _ => {
                let wrong = "a turn has messages with the role user or assistant";
                return Err(ModelError::Invalid(wrong.into()));
            }
        }
        Ok(())
    }

    /// Adds a recorded tool call to the current turn, and starts a turn if there is none.
    pub fn toolcall(&mut self, id: &ObjectId) {
        self.begin();
        self.append(TOOLCALL_IDS, json!(id));
        self.patch.append(&[TOOLCALL_REFS], json!(id));
    }

    /// Notes that the current turn activated an older tool call, which renews the call's stay in the window (SSOT
    /// 4.3). Returns whether there is a turn to add it to; otherwise nothing is added.
    pub fn activation(&mut self, id: &ObjectId) -> bool {
        let has_turn = self.turns > 0;
        if has_turn {
            self.append(ACTIVATED_IDS, json!(id));
        }
        has_turn
    }

    /// Records a roll in the current turn. Returns whether there is a turn to add it to; otherwise nothing is added.
    pub fn roll(&mut self, roll: &RollEntry) -> bool {
        let has_turn = self.turns > 0;
        if has_turn {
            self.append(ROLLS, roll.to_json());
        }
        has_turn
    }

    /// Records in the current turn which versions of files the model is told about. It stands among the rolls, which are
    /// what else has changed in the model's sight. Returns whether there is a turn to add it to; otherwise nothing is
    /// added.
    pub fn notices(&mut self, told: &[Notice]) -> bool {
        let has_turn = self.turns > 0;
        if has_turn {
            let told = told.iter().map(Notice::to_json);
            self.append(ROLLS, json!({ NOTICES: told.collect::<Vec<_>>() }));
        }
        has_turn
    }

    /// How many turns the chat has with these changes.
    #[must_use]
    pub fn turns(&self) -> usize {
        self.turns
    }

    /// The number of the current turn with these changes, counted from 0; also 0 if there is none yet.
    #[must_use]
    pub fn current_turn(&self) -> usize {
        self.turns.saturating_sub(1)
    }

    /// The number of the first turn that is changed or added, counted from 0; `None` if none is.
    #[must_use]
    pub fn first_changed_turn(&self) -> Option<usize> {
        self.first_changed
    }

    /// The changes as a patch of the chat document.
    #[must_use]
    pub fn patch(&self) -> &Patch {
        &self.patch
    }

    /// Gives the patch away.
    #[must_use]
    pub fn into_patch(self) -> Patch {
        self.patch
    }

    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patch.is_empty()
    }

    fn start_turn(&mut self, user: Value) {
        let turn = json!({ USER: user, ASSISTANT: [], TOOLCALL_IDS: [], ACTIVATED_IDS: [], ROLLS: [] });
        self.patch.append(&[TURNS], turn);
        self.turns += 1;
        self.patch.set(&[TURN_COUNT], json!(self.turns));
        self.changed();
    }

    fn begin(&mut self) {
        if self.turns == 0 {
            self.start_turn(Value::Null);
        }
    }

    /// Appends to a list of the current turn.
    fn append(&mut self, list: &str, value: Value) {
        self.patch.append(&[TURNS, &self.current_turn().to_string(), list], value);
        self.changed();
    }

    fn changed(&mut self) {
        // Turns are only ever added, so the first one stays the first.
        self.first_changed.get_or_insert(self.turns.saturating_sub(1));
    }
}

/// A roll as recorded in its turn, so that a resumed session shows what it showed before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RollEntry {
    /// Calls whose results became references.
    pub results: Vec<ObjectId>,
    /// Calls whose results became short excerpts.
    pub excerpts: Vec<ObjectId>,
    /// Calls whose arguments were collapsed.
    pub arguments: Vec<ObjectId>,
    /// Edits whose old text was left out.
    pub old_texts: Vec<ObjectId>,
    /// Reasoning that left, and prose and users' texts that were shortened, by the [`said_id`] of each.
    pub words: Vec<String>,
    /// Answers that became lines behind the last result of one before them: the first call of that one, and the first
    /// call of each.
    pub pages: Vec<Vec<ObjectId>>,
    /// Calls behind whose references only the lines stayed of calls that changed something.
    pub lines: Vec<ObjectId>,
    /// What the roll removed and cost; `None` if it only undoes another one.
    pub receipt: Option<Receipt>,
    /// Whether this undoes the latest roll, so that everything listed is shown in full again.
    pub undone: bool,
}

impl RollEntry {
    fn of(entry: &Value) -> Self {
        let ids = |name| texts(entry, name).map(ObjectId::new).collect();
        Self {
            results: ids("results"),
            excerpts: ids("excerpts"),
            arguments: ids("arguments"),
            old_texts: ids("old_texts"),
            words: texts(entry, "words").map(str::to_owned).collect(),
            pages: list(entry, "pages")
                .map(|page| {
                    let ids = page.as_array().into_iter().flatten();
                    ids.filter_map(Value::as_str).map(ObjectId::new).collect()
                })
                .collect(),
            lines: ids("lines"),
            receipt: entry.get("receipt").and_then(|receipt| serde_json::from_value(receipt.clone()).ok()),
            undone: entry.get("undone") == Some(&Value::Bool(true)),
        }
    }

    fn to_json(&self) -> Value {
        let Self { results, excerpts, arguments, old_texts, words, pages, lines, receipt, undone } = self;
        let mut entry = json!({ "results": results, "excerpts": excerpts, "arguments": arguments });
        let others = [
            ("old_texts", json!(old_texts)),
            ("words", json!(words)),
            ("pages", json!(pages)),
            ("lines", json!(lines)),
        ];
        for (name, list) in others {
            if list != json!([]) {
                entry[name] = list;
            }
        }
        if let Some(receipt) = receipt {
            entry["receipt"] = json!(receipt);
        }
        if *undone {
            entry["undone"] = Value::Bool(true);
        }
        entry
    }
}

/// A line that tells the model that a file has another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The file.
    pub file: ObjectId,
    /// The `source_hash` of the version; `None` for a file that is gone.
    pub hash: Option<Digest>,
    /// How many notices about the file the model's messages had before it, if the chat has more or fewer: a process may
    /// end before its harness has stored one, and a session may come back to a point before one.
    pub after: Option<usize>,
}

impl Notice {
    fn of(entry: &Value) -> Option<Self> {
        let hash = text(entry, "source_hash").and_then(|hash| hash.parse().ok());
        let after = entry.get("after").and_then(Value::as_u64).and_then(|after| usize::try_from(after).ok());
        Some(Self { file: ObjectId::new(text(entry, "file")?), hash, after })
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({ "file": self.file, "source_hash": self.hash });
        if let Some(after) = self.after {
            entry["after"] = json!(after);
        }
        entry
    }
}

/// The turns of a chat document.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chat<'a> {
    turns: &'a [Value],
}

impl<'a> Chat<'a> {
    /// Reads a chat document.
    #[must_use]
    pub fn of(document: &'a Document) -> Self {
        Self::of_turns(document.field(TURNS))
    }

    /// Reads a chat document's payload.
    #[must_use]
    pub fn of_payload(payload: &'a Value) -> Self {
        Self::of_turns(payload.get(TURNS))
    }

    fn of_turns(turns: Option<&'a Value>) -> Self {
        Self { turns: turns.and_then(Value::as_array).map_or(&[], Vec::as_slice) }
    }

    /// How many turns there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.turns.len()
    }

    /// Whether there is no turn yet.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.turns.is_empty()
    }

    /// The turns, oldest first.
    pub fn turns(self) -> impl ExactSizeIterator<Item = Turn<'a>> + DoubleEndedIterator {
        self.turns.iter().map(Turn)
    }

    /// Each tool call with the number of a turn, counted from 0, in which it was made or activated; turns in their
    /// order, and in each the calls before the activations. A call that comes several times stays since the last one.
    pub fn stays(self) -> impl Iterator<Item = (usize, ObjectId)> {
        self.turns().enumerate().flat_map(|(number, turn)| {
            turn.toolcalls().chain(turn.activated()).map(move |id| (number, ObjectId::new(id)))
        })
    }

    /// What the model was told of versions of files, oldest first.
    pub fn notices(self) -> impl Iterator<Item = Notice> {
        self.turns().flat_map(Turn::notices)
    }

    /// The tool calls and files that a turn activated.
    pub fn activated(self) -> impl Iterator<Item = ObjectId> {
        self.turns().flat_map(Turn::activated).map(ObjectId::new)
    }

    /// The text with this [`said_id`]: what a user wrote, or what the model thought or said.
    #[must_use]
    pub fn said(self, id: &str) -> Option<&'a str> {
        let texts = self.turns().flat_map(|turn| {
            let users = turn.user().into_iter().flat_map(texts_in);
            users.chain(turn.answers().flat_map(|answer| texts_in(answer.content())))
        });
        texts.into_iter().find(|text| said_id(text) == id)
    }

    /// The rolls of all turns, oldest first.
    pub fn rolls(self) -> impl Iterator<Item = RollEntry> {
        self.turns().flat_map(Turn::rolls)
    }
}

/// One turn of a chat: a user's message and everything that followed from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn<'a>(&'a Value);

impl<'a> Turn<'a> {
    /// The content of the user's message; `None` if the conversation started with an answer or a call.
    #[must_use]
    pub fn user(self) -> Option<&'a Value> {
        self.0.get(USER).filter(|content| !content.is_null())
    }

    /// The assistant's messages, oldest first.
    pub fn answers(self) -> impl Iterator<Item = Answer<'a>> {
        list(self.0, ASSISTANT).map(Answer)
    }

    /// The IDs of the tool calls that were recorded in this turn, in the order of their results.
    pub fn toolcalls(self) -> impl Iterator<Item = &'a str> {
        texts(self.0, TOOLCALL_IDS)
    }

    /// The IDs of older tool calls that this turn activated.
    pub fn activated(self) -> impl Iterator<Item = &'a str> {
        texts(self.0, ACTIVATED_IDS)
    }

    /// The rolls that happened in this turn, oldest first.
    pub fn rolls(self) -> impl Iterator<Item = RollEntry> {
        list(self.0, ROLLS).filter(|entry| entry.get(NOTICES).is_none()).map(RollEntry::of)
    }

    /// What the model was told of versions of files in this turn, oldest first.
    pub fn notices(self) -> impl Iterator<Item = Notice> {
        list(self.0, ROLLS).flat_map(|entry| list(entry, NOTICES)).filter_map(Notice::of)
    }

    /// The conversation in order: the user's message, each answer, and after it one reference for each of its calls
    /// that was recorded; last those calls that no answer made.
    #[must_use]
    pub fn conversation(self) -> Vec<Said<'a>> {
        let mut said: Vec<Said<'a>> = self.user().map(Said::User).into_iter().collect();
        let ids: Vec<&str> = self.toolcalls().collect();
        // Objects keep the harness's call ID, except where that would not be unique; see ObjectId::toolcall.
        let mut recorded: HashMap<&str, Vec<&str>> = HashMap::new();
        for id in ids.iter().rev() {
            recorded.entry(unmarked(id)).or_default().push(id);
        }
        let mut answered = HashSet::new();
        for answer in self.answers() {
            said.push(Said::Assistant(answer));
            for call_id in answer.calls() {
                let base = ObjectId::toolcall(call_id);
                let Some(id) = recorded.get_mut(base.as_str()).and_then(Vec::pop) else { continue };
                answered.insert(id);
                said.push(Said::Toolcall { id, call_id });
            }
        }
        // Calls that a harness recorded without an answer that made them still belong to the conversation.
        let others = ids.into_iter().filter(|id| !answered.contains(id));
        said.extend(others.map(|id| Said::Toolcall { id, call_id: id }));
        said
    }
}

/// One part of a turn's conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said<'a> {
    /// The content of the user's message.
    User(&'a Value),
    /// An answer.
    Assistant(Answer<'a>),
    /// A recorded tool call, in the place of its result.
    Toolcall {
        /// The ID of its object.
        id: &'a str,
        /// The ID by which the answer names it; that of the object where no answer does.
        call_id: &'a str,
    },
}

/// A message of the assistant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer<'a>(&'a Value);

impl<'a> Answer<'a> {
    /// The content from the harness; null if there is none.
    #[must_use]
    pub fn content(self) -> &'a Value {
        self.0.get("content").unwrap_or(&Value::Null)
    }

    /// The harness's other fields: provider, model, usage, stop reason.
    #[must_use]
    pub fn meta(self) -> Option<&'a Map<String, Value>> {
        self.0.get("meta").and_then(Value::as_object)
    }

    /// The harness's IDs of the tool calls that it makes, in their order; empty where a call has none.
    pub fn calls(self) -> impl Iterator<Item = &'a str> {
        let calls = list(self.0, "content").filter(|block| text(block, "type") == Some("toolCall"));
        calls.map(|call| text(call, "id").unwrap_or_default())
    }
}

/// The ID of something that was said or thought: of equal texts the same, in every session.
#[must_use]
pub fn said_id(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()[..SAID_ID].to_owned()
}

/// Whether a name has the form of a [`said_id`].
#[must_use]
pub fn is_said_id(name: &str) -> bool {
    name.len() == SAID_ID && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The texts of a message's content: of its text blocks and its reasoning.
fn texts_in(content: &Value) -> Vec<&str> {
    let blocks = content.as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| text(block, "text").or_else(|| text(block, "thinking")));
    content.as_str().into_iter().chain(texts).collect()
}

/// A chat document of another session as one of this session: a fork continues the conversation as its own.
///
/// # Errors
/// `INVALID_ARGUMENT` if the document can't be a chat.
pub fn adopt(session: &SessionId, chat: &Document) -> Result<Document, ModelError> {
    let (_, object_type, source, mut payload) = chat.clone().into_parts();
    payload.insert("session_ref".into(), json!(ObjectId::session(session)));
    Document::new(ObjectId::chat(session), object_type, source, payload)
}

/// Everything that the harness says about an answer besides its role and content.
fn meta(message: &Value) -> Map<String, Value> {
    let fields = message.as_object().into_iter().flatten();
    let kept = fields.filter(|(name, _)| !matches!(name.as_str(), "role" | "content"));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn texts<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    list(value, name).filter_map(Value::as_str)
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}
