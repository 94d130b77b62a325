//! The conversation as a harness keeps it.

use context_model::id::{ObjectId, SessionId};
use context_model::time::{Timestamp, TxId};
use serde_json::{Map, Value};

use crate::knowledge::Note;

/// A state to come back to.
#[derive(Clone, Debug)]
pub struct Point {
    /// The number of messages.
    pub length: usize,
    /// The number of compactions.
    pub compactions: usize,
    pub session: SessionId,
    pub tx: TxId,
    pub times: Option<[Timestamp; 2]>,
}

/// A summary in place of the messages before one.
#[derive(Clone, Debug)]
pub struct Compaction {
    /// The first message that is still in the request.
    pub first: usize,
    pub key: String,
    pub now: i64,
}

#[derive(Clone, Debug)]
pub struct Message {
    pub key: String,
    /// As the harness has it.
    pub raw: Value,
    /// As the model is shown it.
    pub shown: Value,
    /// A line about files and no message of anybody.
    pub is_notice: bool,
    /// It is no longer in the request: a notice before a rebuild.
    pub gone: bool,
    pub notes: Vec<Note>,
    /// The tool call behind a result, and its whole output.
    pub object: Option<ObjectId>,
    pub output: String,
    /// The places of the lines that it says are in sight.
    pub pointers: Vec<Pointer>,
}

/// A sentence that lines are in another result.
#[derive(Clone, Debug)]
pub struct Pointer {
    pub object: ObjectId,
    pub lines: String,
}

/// An output that the engine has, whole.
#[derive(Clone, Debug)]
pub struct Output {
    pub object: ObjectId,
    pub text: String,
    /// The lines of files that it shows.
    pub notes: Vec<Note>,
}

/// A call of a tool that has run.
#[derive(Clone, Debug)]
pub struct Open {
    pub call_id: String,
    pub tool: &'static str,
    pub args: Map<String, Value>,
    pub output: String,
    pub is_error: bool,
    pub notes: Vec<Note>,
    pub pointers: Vec<Pointer>,
    /// The engine's answer when the output was reported: its object, and the line before its output.
    pub born: Option<(ObjectId, Option<String>)>,
    /// It was offered to the engine.
    pub reported: bool,
}

impl Message {
    pub fn role(&self) -> &str {
        self.raw["role"].as_str().unwrap()
    }

    /// True if the model is shown it as it was first.
    pub fn is_whole(&self) -> bool {
        self.shown == self.raw
    }

    /// The text that the model is shown of a result.
    pub fn text(&self) -> &str {
        self.shown["content"][0]["text"].as_str().unwrap_or_default()
    }

    /// True if whole lines are in sight.
    pub fn shows(&self, lines: &str) -> bool {
        !self.gone && format!("\n{}\n", self.text()).contains(&format!("\n{lines}\n"))
    }
}
