//! Identifiers: opaque newtypes, so that an object ID, a session ID and a digest can't be mixed up.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::hash::Digest;

/// The longest session ID that is accepted, in bytes.
pub const MAX_SESSION_ID: usize = 512;

/// The ID of an object, `xt/id` in its document (SSOT 2.2).
///
/// For a sourced object it is the identity hash in hex; for an unsourced one it was assigned at creation
/// (`chat:{sessionId}`, the harness's tool call ID, …). Copies share the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectId(Arc<str>);

impl ObjectId {
    /// Takes an ID as it stands.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The ID of a sourced object: its identity hash in hex (SSOT 2.4).
    #[must_use]
    pub fn sourced(identity: Digest) -> Self {
        Self::new(identity.to_string())
    }

    /// The ID of a session's chat object (SSOT 2.4).
    #[must_use]
    pub fn chat(session: &SessionId) -> Self {
        Self::new(format!("chat:{session}"))
    }

    /// The ID of a session's system prompt object (SSOT 2.4).
    #[must_use]
    pub fn system_prompt(session: &SessionId) -> Self {
        Self::new(format!("system_prompt:{session}"))
    }

    /// The ID of a session's wrapper object (SSOT 2.4).
    #[must_use]
    pub fn session(session: &SessionId) -> Self {
        Self::new(format!("session:{session}"))
    }

    /// The `n`-th candidate for the ID of a tool call, counted from 0.
    ///
    /// Candidate 0 is the harness's call ID verbatim. Providers repeat call IDs (`call_0`), send empty ones,
    /// and could send one that looks like ours; then a deterministic mark keeps the objects apart
    /// (a design change against SSOT 2.4, which takes call IDs for unique).
    #[must_use]
    pub fn toolcall(call_id: &str, n: usize) -> Self {
        let base = if call_id.is_empty() || is_reserved(call_id) {
            format!("toolcall:{call_id}")
        } else {
            call_id.to_owned()
        };
        Self::new(if n == 0 { base } else { format!("{base}~{}", n + 1) })
    }

    /// Whether this is one of the candidates for a call ID; see [`ObjectId::toolcall`].
    #[must_use]
    pub fn is_toolcall(&self, call_id: &str) -> bool {
        let first = Self::toolcall(call_id, 0);
        match self.0.strip_prefix(first.as_str()) {
            Some("") => true,
            Some(mark) => mark.strip_prefix('~').and_then(|n| n.parse().ok()).is_some_and(|n: usize| n >= 2),
            None => false,
        }
    }

    /// The ID as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_reserved(id: &str) -> bool {
    ["session:", "chat:", "system_prompt:", "toolcall:"].iter().any(|p| id.starts_with(p))
        || (id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit()))
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for ObjectId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The ID of a session, given by the harness (SSOT 3.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// Checks and takes a session ID.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is empty, longer than [`MAX_SESSION_ID`] bytes, or has a control character.
    pub fn new(id: impl Into<String>) -> Result<Self, ModelError> {
        let id = id.into();
        if id.is_empty() || id.len() > MAX_SESSION_ID || id.chars().any(char::is_control) {
            return Err(ModelError::Invalid(format!(
                "a session ID has 1 to {MAX_SESSION_ID} bytes and no control characters"
            )));
        }
        Ok(Self(id))
    }

    /// The ID as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("call_1", 0, "call_1")]
    #[case("call_1", 1, "call_1~2")]
    #[case("", 0, "toolcall:")]
    #[case("", 2, "toolcall:~3")]
    #[case("chat:x", 0, "toolcall:chat:x")]
    #[case("toolcall:chat:x", 0, "toolcall:toolcall:chat:x")]
    fn toolcall_ids_are_verbatim_unless_they_collide(#[case] call: &str, #[case] n: usize, #[case] id: &str) {
        assert_eq!(ObjectId::toolcall(call, n).as_str(), id);
    }

    #[test]
    fn a_call_id_of_64_hex_digits_can_not_pose_as_a_file() {
        let hex = "0a".repeat(32);
        assert_eq!(ObjectId::toolcall(&hex, 0).as_str(), format!("toolcall:{hex}"));
    }

    #[rstest]
    #[case("")]
    #[case("a\nb")]
    #[case("x".repeat(513).leak())]
    fn session_ids_that_can_not_be_shown_are_refused(#[case] id: &str) {
        assert_eq!(SessionId::new(id).unwrap_err().code(), crate::error::ErrorCode::InvalidArgument);
    }
}
