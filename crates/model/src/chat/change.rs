//! The growth of a chat: each message, call and roll as an addition to its document, and the names of its fields.

use serde_json::{Map, Value, json};

use super::arrival::Arrived;
use super::fields::{
    ACTIVATED_IDS, ARRIVED, ASSISTANT, EVIDENCE, INSERTED, LISTED, NOTICES, OF, ROLLS, SAID, TOOLCALL_IDS,
    TOOLCALL_REFS, TURN_COUNT, TURNS, USER, text,
};
use super::roll::RollEntry;
use crate::canonical::{MAX_DEPTH, is_deeper_than};
use crate::error::ModelError;
use crate::hash::Digest;
use crate::id::ObjectId;
use crate::patch::Patch;

/// Additions to a chat: a patch of its document, under construction.
///
/// A patch names turns by their number, so it applies only to the version of the chat that it was started for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatPatch {
    turns: usize,
    patch: Patch,
}

impl ChatPatch {
    /// An empty patch of a chat with this many turns.
    #[must_use]
    pub fn new(turns: usize) -> Self {
        Self { turns, ..Self::default() }
    }

    /// Adds a message. A user's message starts a turn; an assistant's belongs to the current turn, or starts the first one
    /// without a user's message. The content is kept unchanged, and for answers also the harness's other fields, such as
    /// provider, model, usage and stop reason.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a message whose role is neither `user` nor `assistant`, or that is nested deeper than
    /// [`MAX_DEPTH`]; nothing is added then.
    pub fn message(&mut self, message: &Value) -> Result<(), ModelError> {
        if is_deeper_than(message, MAX_DEPTH) {
            return Err(ModelError::Invalid(format!(
                "a message must be nested at most {MAX_DEPTH} levels deep"
            )));
        }
        let content = message.get("content").cloned().unwrap_or(Value::Null);
        match message.get("role").and_then(Value::as_str) {
            Some("user") => self.start_turn(content),
            Some("assistant") => {
                self.begin();
                self.append(ASSISTANT, json!({ "content": content, "meta": meta(message) }));
            }
            _ => {
                let wrong = "a message of a turn must have the role user or assistant";
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

    /// Notes that the current turn activated an older tool call, which renews the call's stay in the window. Returns false, and
    /// adds nothing, without a turn.
    pub fn activation(&mut self, id: &ObjectId) -> bool {
        let has_turn = self.turns > 0;
        if has_turn {
            self.append(ACTIVATED_IDS, json!(id));
        }
        has_turn
    }

    /// Records a roll in the current turn. Returns false, and adds nothing, without a turn.
    pub fn roll(&mut self, roll: &RollEntry) -> bool {
        let has_turn = self.turns > 0;
        if has_turn {
            self.append(ROLLS, roll.to_json());
        }
        has_turn
    }

    /// Records the notices to the model about versions of files in the current turn. They are stored among the rolls, the other
    /// changes of what the model sees. Returns false, and adds nothing, without a turn.
    ///
    /// A host that does not keep the lines itself finds them with `said`: its own name for their place, and the lines. `list` has
    /// the notices that one of the lines represents, one in a line; [`Chat::said`](super::Chat::said) finds it.
    pub fn notices(&mut self, told: &[Notice], said: Option<(&str, &[String])>, list: Option<&str>) -> bool {
        let has_turn = self.turns > 0;
        if has_turn {
            let told = told.iter().map(Notice::to_json);
            let mut entry = json!({ NOTICES: told.collect::<Vec<_>>() });
            if let Some((place, lines)) = said {
                entry[SAID] = json!({ "place": place, "lines": lines });
            }
            if let Some(list) = list {
                entry[LISTED] = json!(list);
            }
            self.append(ROLLS, entry);
        }
        has_turn
    }

    /// Records the evidence in results in the current turn, where the calls themselves don't have it. It is also stored among
    /// the rolls. Returns false, and adds nothing, without a turn.
    pub fn evidence(&mut self, entries: &[Value]) -> bool {
        let has_turn = self.turns > 0;
        if has_turn {
            self.append(ROLLS, json!({ EVIDENCE: entries }));
        }
        has_turn
    }

    /// Records texts that the harness has put into the past of its conversation, so that they can be found there, each with the
    /// first call of its answer: where an answer is a list of messages, nothing else says which of them belong to it. They are
    /// also stored among the rolls. Returns false, and adds nothing, without a turn.
    pub fn inserted(&mut self, texts: &[(&str, Option<&str>)]) -> bool {
        let has_turn = self.turns > 0;
        if has_turn {
            let (texts, calls): (Vec<&str>, Vec<Option<&str>>) = texts.iter().copied().unzip();
            self.append(ROLLS, json!({ INSERTED: texts, OF: calls }));
        }
        has_turn
    }

    /// Records that messages came at another time than their places say. It is also stored among the rolls. Returns false, and adds
    /// nothing, without a turn.
    pub fn arrived(&mut self, arrived: &Arrived) -> bool {
        let has_turn = self.turns > 0;
        if has_turn {
            self.append(ROLLS, json!({ ARRIVED: arrived.to_json() }));
        }
        has_turn
    }

    /// Returns the number of turns that the chat has with these changes.
    pub fn turns(&self) -> usize {
        self.turns
    }

    /// The number of the current turn with these changes, counted from 0; also 0 if there is none yet.
    pub fn current_turn(&self) -> usize {
        self.turns.saturating_sub(1)
    }

    /// The changes as a patch of the chat document.
    pub fn patch(&self) -> &Patch {
        &self.patch
    }

    /// Returns the patch.
    pub fn into_patch(self) -> Patch {
        self.patch
    }

    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.patch.is_empty()
    }

    fn start_turn(&mut self, user: Value) {
        let turn = json!({ USER: user, ASSISTANT: [], TOOLCALL_IDS: [], ACTIVATED_IDS: [], ROLLS: [] });
        self.patch.append(&[TURNS], turn);
        self.turns += 1;
        self.patch.set(&[TURN_COUNT], json!(self.turns));
    }

    fn begin(&mut self) {
        if self.turns == 0 {
            self.start_turn(Value::Null);
        }
    }

    /// Appends to a list of the current turn.
    fn append(&mut self, list: &str, value: Value) {
        self.patch.append(&[TURNS, &self.current_turn().to_string(), list], value);
    }
}

/// The harness's statements about an answer besides its role and content.
fn meta(message: &Value) -> Map<String, Value> {
    let fields = message.as_object().into_iter().flatten();
    let kept = fields.filter(|(name, _)| !matches!(name.as_str(), "role" | "content"));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A line that tells the model that a file has another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The file.
    pub file: ObjectId,
    /// The `source_hash` of the version; `None` for a file that is gone.
    pub hash: Option<Digest>,
    /// The hash of the line that the model saw, by which a host's messages are searched for it.
    pub line: Digest,
    /// The agent's path in the line, absolute: it may lead to another file later.
    pub path: String,
}

impl Notice {
    pub(super) fn of(entry: &Value) -> Option<Self> {
        let hash = |name| text(entry, name).and_then(|hash| hash.parse().ok());
        let file = ObjectId::new(text(entry, "file")?);
        let path = text(entry, "path")?.to_owned();
        Some(Self { file, hash: hash("source_hash"), line: hash("line")?, path })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "file": self.file, "source_hash": self.hash, "line": self.line, "path": self.path })
    }
}
