//! The line of a call in a conversation as text: `tool_call id=call_1 tool=bash args={"command":"ls"}`.

use std::borrow::Cow;
use std::fmt;

use crate::escape::{shown_word, word};

/// A call, with its arguments as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallInText<'a> {
    /// The ID of the call.
    pub id: Cow<'a, str>,
    /// The tool.
    pub tool: Cow<'a, str>,
    /// The arguments as JSON on one line.
    pub args: Cow<'a, str>,
}

impl<'a> CallInText<'a> {
    /// Reads a line; `None` if it is not a call.
    #[must_use]
    pub fn of(line: &'a str) -> Option<Self> {
        let (id, rest) = line.strip_prefix("tool_call id=")?.split_once(" tool=")?;
        let (tool, args) = rest.split_once(" args=")?;
        let is_one_line = !args.is_empty() && !args.contains('\n');
        is_one_line.then_some(Self { id: shown_word(id)?, tool: shown_word(tool)?, args: args.into() })
    }
}

impl fmt::Display for CallInText<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "tool_call id={} tool={} args={}", word(&self.id), word(&self.tool), self.args)
    }
}
