//! What is recorded of a tool execution.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::ObjectId;

/// The record of a tool execution: the fields of a `toolcall` object.
#[derive(Clone, Debug, PartialEq)]
pub struct Toolcall {
    /// The tool's name.
    pub tool: String,
    /// The arguments, as the model gave them.
    pub args: Map<String, Value>,
    /// A short form of the arguments for people.
    pub args_display: Option<String>,
    /// The complete output text.
    pub content: String,
    /// How the tool ended.
    pub status: Status,
    /// The chat object that the call belongs to.
    pub chat_ref: ObjectId,
    /// The file objects that the call read, wrote or named.
    pub file_refs: Vec<ObjectId>,
    /// The call that made this one, if a program and not the model made it (field `parent_ref`).
    pub parent: Option<ObjectId>,
}

impl Toolcall {
    /// A call that has succeeded, with nothing besides.
    pub fn new(
        tool: impl Into<String>,
        args: Map<String, Value>,
        content: impl Into<String>,
        chat_ref: ObjectId,
    ) -> Self {
        let (tool, content, status) = (tool.into(), content.into(), Status::Ok);
        Self {
            tool,
            args,
            args_display: None,
            content,
            status,
            chat_ref,
            file_refs: Vec::new(),
            parent: None,
        }
    }
}

/// How a tool execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The tool returned a result.
    Ok,
    /// The tool reported an error.
    Fail,
}

impl Status {
    /// `ok` or `fail`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Fail => "fail",
        }
    }
}
