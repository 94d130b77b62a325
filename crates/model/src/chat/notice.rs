//! What the model is told about versions of files, as a chat records it.

use serde_json::{Value, json};

use super::fields::text;
use crate::hash::Digest;
use crate::id::ObjectId;

/// A line that tells the model that a file has another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The file.
    pub file: ObjectId,
    /// The `source_hash` of the version; `None` for a file that is gone.
    pub hash: Option<Digest>,
    /// How many notices about the file come before it in the model's messages, if the chat has a different number: a
    /// process may end before its harness has stored one, and a session may return to a point before one.
    pub after: Option<usize>,
}

impl Notice {
    pub(super) fn of(entry: &Value) -> Option<Self> {
        let hash = text(entry, "source_hash").and_then(|hash| hash.parse().ok());
        let after = entry.get("after").and_then(Value::as_u64).and_then(|after| usize::try_from(after).ok());
        Some(Self { file: ObjectId::new(text(entry, "file")?), hash, after })
    }

    pub(super) fn to_json(&self) -> Value {
        let mut entry = json!({ "file": self.file, "source_hash": self.hash });
        if let Some(after) = self.after {
            entry["after"] = json!(after);
        }
        entry
    }
}
