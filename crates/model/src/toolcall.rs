//! A tool execution, from the harness's report to the record.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::ObjectId;

/// A tool execution as the harness reports it, which becomes the fields of a `toolcall` object.
#[derive(Clone, Debug, PartialEq)]
pub struct Toolcall {
    /// The harness's call ID, verbatim; may be empty or repeated.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments as the model gave them.
    pub args: Map<String, Value>,
    /// A short form of the arguments for people.
    pub args_display: Option<String>,
    /// The complete output text.
    pub content: String,
    /// The status that the tool ended with.
    pub status: Status,
    /// The file objects that the call read, wrote or named. The caller of an engine gives those that it knows; the engine adds
    /// those that it finds itself.
    pub file_refs: Vec<ObjectId>,
    /// The call ID of the call whose program made this call (field `parent_ref`). The output then goes to the program and
    /// not to the model: it is recorded and can be found by search, but takes no place in pool, window or chat.
    pub parent: Option<String>,
}

impl Toolcall {
    /// A call of the model that has succeeded, with nothing besides.
    pub fn new(
        id: impl Into<String>,
        tool: impl Into<String>,
        args: Map<String, Value>,
        content: impl Into<String>,
    ) -> Self {
        let (id, tool, content) = (id.into(), tool.into(), content.into());
        let (status, file_refs) = (Status::Ok, Vec::new());
        Self { id, tool, args, args_display: None, content, status, file_refs, parent: None }
    }
}

/// The way in which a tool execution ended.
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
