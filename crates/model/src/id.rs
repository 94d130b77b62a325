//! Identifiers: opaque newtypes, so that an object ID, a session ID and a digest can't be mixed up.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::hash::Digest;

/// The longest session ID that is accepted, in bytes.
pub const MAX_SESSION_ID: usize = 512;

/// Hexadecimal digits of the mark of [`ObjectId::repeated_toolcall`].
const MARK: usize = 16;

/// The ID of an object, `xt/id` in its document.
///
/// For a sourced object it is the identity hash in hex; for an unsourced one it was assigned at creation
/// (`chat:{sessionId}`, the harness's tool call ID, …). Copies share the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectId(Arc<str>);

impl ObjectId {
    /// Takes an ID unchanged.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The ID of a sourced object: its identity hash in hex.
    #[must_use]
    pub fn sourced(identity: Digest) -> Self {
        Self::new(identity.to_string())
    }

    /// The ID of a session's chat object.
    #[must_use]
    pub fn chat(session: &SessionId) -> Self {
        Self::new(format!("chat:{session}"))
    }

    /// The ID of a session's system prompt object.
    #[must_use]
    pub fn system_prompt(session: &SessionId) -> Self {
        Self::new(format!("system_prompt:{session}"))
    }

    /// The ID of a session's wrapper object.
    #[must_use]
    pub fn session(session: &SessionId) -> Self {
        Self::new(format!("session:{session}"))
    }

    /// The ID of a tool call: the harness's call ID verbatim.
    ///
    /// Only an ID that is empty or looks like one of ours gets a prefix, because providers also send such IDs.
    #[must_use]
    pub fn toolcall(call_id: &str) -> Self {
        if call_id.is_empty() || is_reserved(call_id) {
            Self::new(format!("toolcall:{call_id}"))
        } else {
            Self::new(call_id)
        }
    }

    /// The ID of a tool call whose call ID already names another call. `call` is the digest of the call.
    ///
    /// Providers repeat call IDs (`call_0`), although the specification assumes that they are unique (design change). The mark depends
    /// only on the call, so equal calls are one object in every session, and finding it takes one lookup no matter how often
    /// the call ID was used.
    #[must_use]
    pub fn repeated_toolcall(call_id: &str, call: &Digest) -> Self {
        let base = Self::toolcall(call_id);
        Self::new(format!("{base}~{}", &call.to_string()[..MARK]))
    }

    /// True if this is the object of a call with this call ID.
    pub fn is_toolcall(&self, call_id: &str) -> bool {
        let first = Self::toolcall(call_id);
        // A call ID may itself end like a mark.
        *self == first || unmarked(&self.0) == first.as_str()
    }

    /// The ID without the mark of [`ObjectId::repeated_toolcall`], which all calls with one call ID have in common.
    #[must_use]
    pub fn without_mark(&self) -> Self {
        let base = unmarked(&self.0);
        if base.len() == self.0.len() { self.clone() } else { Self::new(base) }
    }

    /// The ID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An object's ID without the mark that distinguishes calls with the same call ID: the [`ObjectId::toolcall`] of that
/// call ID.
pub(crate) fn unmarked(id: &str) -> &str {
    let Some((base, mark)) = id.rsplit_once('~') else { return id };
    let is_digest = mark.len() == MARK && mark.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if is_digest { base } else { id }
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

/// The ID of a session, given by the harness.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// Checks and takes a session ID.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is empty, longer than [`MAX_SESSION_ID`] bytes, or has a control character.
    pub fn new(id: impl Into<String>) -> Result<Self, ModelError> {
        let id = id.into();
        if id.is_empty() || id.len() > MAX_SESSION_ID || id.chars().any(char::is_control) {
            return Err(ModelError::Invalid(format!(
                "a session ID must have 1 to {MAX_SESSION_ID} bytes and no control characters"
            )));
        }
        Ok(Self(id))
    }

    /// The ID as text.
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
    #[case("call_1", "call_1")]
    #[case("", "toolcall:")]
    #[case("chat:x", "toolcall:chat:x")]
    #[case("toolcall:chat:x", "toolcall:toolcall:chat:x")]
    fn toolcall_ids_are_verbatim_unless_they_collide(#[case] call: &str, #[case] id: &str) {
        assert_eq!(ObjectId::toolcall(call).as_str(), id);
        let marked = ObjectId::repeated_toolcall(call, &Digest::of(b"a call"));
        assert_eq!(marked.as_str(), format!("{id}~{}", &Digest::of(b"a call").to_string()[..16]));
        assert!(marked.is_toolcall(call) && ObjectId::toolcall(call).is_toolcall(call));
    }

    #[test]
    fn a_call_id_of_64_hex_digits_can_not_pose_as_a_file() {
        let hex = "0a".repeat(32);
        assert_eq!(ObjectId::toolcall(&hex).as_str(), format!("toolcall:{hex}"));
    }

    #[rstest]
    #[case("")]
    #[case("a\nb")]
    #[case("x".repeat(513).leak())]
    fn session_ids_that_can_not_be_shown_are_refused(#[case] id: &str) {
        assert_eq!(SessionId::new(id).unwrap_err().code(), crate::error::ErrorCode::InvalidArgument);
    }
}
