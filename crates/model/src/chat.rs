//! The turns of a chat object: writing them, and reading them back.
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
//!               { "notices": [{ "file": "ab12…", "source_hash": "cd34…", "line": "ef56…", "path": "/a" }],
//!                 "said": { "place": "a host's name for it", "lines": ["stale id=…"] },
//!                 "listed": "the lines of the notices that one of these represents" },
//!               { "evidence": [{ "call": "call_1", "evidence": {} }] },
//!               { "inserted": ["a text that the harness has put into the past"],
//!                 "of": ["the first call of the answer that the text is in, or null"] },
//!               { "arrived": { "made": 8, "answers": 6, "said": ["0123456789a"], "calls": ["call_1"], "dead": true } },
//!               { "results": [], "excerpts": [], "arguments": [], "whole": ["call_2"], "bound": true },
//!               { "results": [], "excerpts": [], "arguments": [], "anew": true }]
//!   }],
//!   "turn_count": 1, "toolcall_refs": ["call_1"], "records_evidence": true }
//! ```
//!
//! [`ChatPatch`] collects additions as a patch of that payload. [`Chat`] and [`Turn`] read it; they treat a field that is
//! missing or has the wrong type as empty, so a damaged document is read as far as possible. Unknown fields stay
//! unchanged, because a chat changes only by patches that add.

mod arrival;
mod beginning;
mod change;
mod fields;
mod roll;

pub use arrival::Arrived;
pub use beginning::beginning_of;
pub use change::ChatPatch;
pub use change::Notice;
pub use roll::{RollEntry, Spending, numbered};
pub use roll::{RollReason, RollReceipt};

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::error::ModelError;
use crate::hash::Digest;
use crate::id::{ObjectId, SessionId, unmarked};
use crate::object::Document;
use fields::{
    ACTIVATED_IDS, ARRIVED, ASSISTANT, EVIDENCE, INSERTED, LISTED, NOTICES, ROLLS, TOOLCALL_IDS, TURNS, USER,
    list, text, texts,
};

/// Hexadecimal digits of a [`said_id`]. More than object handles have, so that the two can't be confused.
const SAID_ID: usize = 11;

/// The field of a chat whose session records what each result and notice says.
const RECORDS_EVIDENCE: &str = "records_evidence";

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

    /// Returns the number of turns.
    pub fn len(self) -> usize {
        self.turns.len()
    }

    /// True if the chat has no turns yet.
    pub fn is_empty(self) -> bool {
        self.turns.is_empty()
    }

    /// The turns, oldest first.
    pub fn turns(self) -> impl ExactSizeIterator<Item = Turn<'a>> + DoubleEndedIterator {
        self.turns.iter().map(Turn)
    }

    /// Each tool call with the number, counted from 0, of a turn in which it was made or activated: turns in order, and in
    /// each turn calls before activations. If a call occurs several times, the last one counts.
    pub fn stays(self) -> impl Iterator<Item = (usize, ObjectId)> {
        self.turns().enumerate().flat_map(|(number, turn)| {
            turn.toolcalls().chain(turn.activated()).map(move |id| (number, ObjectId::new(id)))
        })
    }

    /// Returns the notices to the model about versions of files, oldest first.
    pub fn notices(self) -> impl Iterator<Item = Notice> {
        self.turns().flat_map(Turn::notices)
    }

    /// Returns what results say of files, where the calls themselves don't have it, oldest first.
    pub fn evidence(self) -> impl Iterator<Item = &'a Value> {
        self.turns().flat_map(Turn::evidence)
    }

    /// The tool calls and files that a turn activated.
    pub fn activated(self) -> impl Iterator<Item = ObjectId> {
        self.turns().flat_map(Turn::activated).map(ObjectId::new)
    }

    /// The text with this [`said_id`]: a user's, the model's prose or reasoning, or a list of notices.
    pub fn said(self, id: &str) -> Option<&'a str> {
        let listed = self.turns().flat_map(Turn::listed);
        self.texts().chain(listed).find(|text| said_id(text) == id)
    }

    /// The user's texts, and the model's prose and reasoning, also those that a harness has put into the past.
    pub fn texts(self) -> impl Iterator<Item = &'a str> {
        self.turns().flat_map(|turn| {
            let users = turn.user().into_iter().flat_map(texts_in);
            let answers = turn.answers().flat_map(|answer| texts_in(answer.content()));
            users.chain(answers).chain(turn.inserted())
        })
    }

    /// Returns the entries of rolls about the conversation up to this chat's end, without the calls and texts that only `later`
    /// has, a chat that continues this one.
    pub fn rolls_before(self, later: Chat<'_>, rolls: &[RollEntry]) -> Vec<RollEntry> {
        let own: HashSet<&str> = self.turns().flat_map(Turn::toolcalls).collect();
        let calls = later.turns().flat_map(Turn::toolcalls).filter(|id| !own.contains(id)).collect();
        let said: HashSet<String> = self.texts().map(said_id).collect();
        let texts = later.texts().map(said_id).filter(|id| !said.contains(id)).collect();
        rolls.iter().filter_map(|roll| roll.without(&calls, &texts)).collect()
    }

    /// The rolls of all turns, oldest first.
    pub fn rolls(self) -> impl Iterator<Item = RollEntry> {
        self.turns().flat_map(Turn::rolls)
    }
}

/// A change of the request that its turn records.
#[derive(Clone, Debug, PartialEq)]
pub enum Noted {
    /// A roll.
    Roll(Box<RollEntry>),
    /// Messages that came at another time than their places say.
    Arrived(Arrived),
}

/// One turn of a chat: a user's message and everything that followed from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn<'a>(&'a Value);

impl<'a> Turn<'a> {
    /// The content of the user's message; `None` if the conversation started with an answer or a call.
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
        self.noted().filter_map(|one| match one {
            Noted::Roll(roll) => Some(*roll),
            Noted::Arrived(_) => None,
        })
    }

    /// The rolls of this turn, and the messages that came meanwhile at another time than their places say, in the order in which that
    /// happened.
    pub fn noted(self) -> impl Iterator<Item = Noted> {
        list(self.0, ROLLS).filter(|entry| !is_telling(entry)).map(|entry| match entry.get(ARRIVED) {
            Some(arrived) => Noted::Arrived(Arrived::of(arrived)),
            None => Noted::Roll(Box::new(RollEntry::of(entry))),
        })
    }

    /// Returns what results say of files, where the calls themselves don't have it, oldest first.
    pub fn evidence(self) -> impl Iterator<Item = &'a Value> {
        list(self.0, ROLLS).flat_map(|entry| list(entry, EVIDENCE))
    }

    /// The texts that the harness has put into the past of its conversation in this turn.
    pub fn inserted(self) -> impl Iterator<Item = &'a str> {
        list(self.0, ROLLS).flat_map(|entry| texts(entry, INSERTED))
    }

    /// Returns the notices to the model about versions of files in this turn, oldest first.
    pub fn notices(self) -> impl Iterator<Item = Notice> {
        list(self.0, ROLLS).flat_map(|entry| list(entry, NOTICES)).filter_map(Notice::of)
    }

    /// The lists of notices that one line represents, oldest first.
    fn listed(self) -> impl Iterator<Item = &'a str> {
        list(self.0, ROLLS).filter_map(|entry| text(entry, LISTED))
    }

    /// The conversation in order: the user's message, then each answer with a reference for each of its recorded calls, and
    /// last the calls that no answer made.
    pub fn conversation(self) -> Vec<Message<'a>> {
        let mut messages: Vec<Message<'a>> = self.user().map(Message::User).into_iter().collect();
        let ids: Vec<&str> = self.toolcalls().collect();
        // Objects keep the harness's call ID, except where that would not be unique; see ObjectId::toolcall.
        let mut recorded: HashMap<&str, Vec<&str>> = HashMap::new();
        for id in ids.iter().rev() {
            recorded.entry(unmarked(id)).or_default().push(id);
        }
        let mut answered = HashSet::new();
        for answer in self.answers() {
            messages.push(Message::Assistant(answer));
            for call_id in answer.calls() {
                let base = ObjectId::toolcall(call_id);
                let Some(id) = recorded.get_mut(base.as_str()).and_then(Vec::pop) else { continue };
                answered.insert(id);
                messages.push(Message::Toolcall { id, call_id });
            }
        }
        // Calls that a harness recorded without an answer still belong to the conversation.
        let others = ids.into_iter().filter(|id| !answered.contains(id));
        messages.extend(others.map(|id| Message::Toolcall { id, call_id: id }));
        messages
    }
}

/// One part of a turn's conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message<'a> {
    /// The content of the user's message.
    User(&'a Value),
    /// An answer.
    Assistant(Answer<'a>),
    /// A recorded tool call, in the place of its result.
    Toolcall {
        /// The ID of its object.
        id: &'a str,
        /// The ID by which the answer names it; the object's ID if no answer does.
        call_id: &'a str,
    },
}

/// A message of the assistant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer<'a>(&'a Value);

impl<'a> Answer<'a> {
    /// The content from the harness; null if there is none.
    pub fn content(self) -> &'a Value {
        self.0.get("content").unwrap_or(&Value::Null)
    }

    /// The harness's other fields: provider, model, usage, stop reason.
    pub fn meta(self) -> Option<&'a Map<String, Value>> {
        self.0.get("meta").and_then(Value::as_object)
    }

    /// The harness's IDs of the tool calls that it makes, in order; empty if a call has none.
    pub fn calls(self) -> impl Iterator<Item = &'a str> {
        let calls = list(self.0, "content").filter(|block| text(block, "type") == Some("toolCall"));
        calls.map(|call| text(call, "id").unwrap_or_default())
    }
}

/// The ID of prose or reasoning. Equal texts have the same ID in every session.
#[must_use]
pub fn said_id(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()[..SAID_ID].to_owned()
}

/// True if a name has the form of a [`said_id`].
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

/// Returns the chat of a session that records the evidence of results and notices, before its first turn.
pub fn begun(session: &SessionId) -> Result<Document, ModelError> {
    let (id, object_type, source, mut payload) = Document::chat(session).into_parts();
    payload.insert(RECORDS_EVIDENCE.into(), json!(true));
    Document::new(id, object_type, source, payload)
}

/// True if an entry among the rolls has notices, evidence or inserted texts, and not a roll.
fn is_telling(entry: &Value) -> bool {
    [NOTICES, EVIDENCE, INSERTED].iter().any(|name| entry.get(name).is_some())
}

/// Turns another session's chat document into one of this session, because a fork continues the conversation as its own.
///
/// The statements of the `others` about notices and evidence are added to the last turn: messages of the conversation may be
/// newer than the chat that continues. So are `rolls`, which are in effect although they came later.
///
/// # Errors
/// `INVALID_ARGUMENT` if the document can't be a chat.
pub fn adopt(
    session: &SessionId,
    chat: &Document,
    others: &[&Document],
    rolls: &[RollEntry],
) -> Result<Document, ModelError> {
    let (_, object_type, source, mut payload) = chat.clone().into_parts();
    payload.insert("session_ref".into(), json!(ObjectId::session(session)));
    let known: HashSet<String> = telling(chat).map(Value::to_string).collect();
    let mut added = HashSet::new();
    let missing = others.iter().flat_map(|other| telling(other));
    let missing: Vec<Value> = missing
        .filter(|entry| !known.contains(&entry.to_string()) && added.insert(entry.to_string()))
        .cloned()
        .collect();
    let last = payload.get_mut(TURNS).and_then(Value::as_array_mut).and_then(|turns| turns.last_mut());
    if let Some(recorded) = last.and_then(|turn| turn.get_mut(ROLLS)).and_then(Value::as_array_mut) {
        recorded.extend(missing);
        recorded.extend(rolls.iter().map(RollEntry::to_json));
    }
    Document::new(ObjectId::chat(session), object_type, source, payload)
}

/// The entries of a chat that say what the model was told.
fn telling(chat: &Document) -> impl Iterator<Item = &Value> {
    Chat::of(chat).turns().flat_map(|turn| list(turn.0, ROLLS)).filter(|entry| is_telling(entry))
}
