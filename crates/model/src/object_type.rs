//! The types of objects.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::ModelError;

/// The five types of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectType {
    /// A file on disk; sourced.
    File,
    /// The result of a tool execution; unsourced, one version.
    Toolcall,
    /// A session's conversation.
    Chat,
    /// A session's system prompt.
    SystemPrompt,
    /// A session's wrapper: its sets and references.
    Session,
}

impl ObjectType {
    /// True if objects of this type have context levels: `file` and `toolcall` do, the session's
    /// infrastructure does not.
    pub fn is_content(self) -> bool {
        matches!(self, Self::File | Self::Toolcall)
    }

    /// The type's name in a document.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Toolcall => "toolcall",
            Self::Chat => "chat",
            Self::SystemPrompt => "system_prompt",
            Self::Session => "session",
        }
    }
}

impl fmt::Display for ObjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ObjectType {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        [Self::File, Self::Toolcall, Self::Chat, Self::SystemPrompt, Self::Session]
            .into_iter()
            .find(|t| t.as_str() == text)
            .ok_or_else(|| {
                ModelError::Invalid("a type must be file, toolcall, chat, system_prompt or session".into())
            })
    }
}
