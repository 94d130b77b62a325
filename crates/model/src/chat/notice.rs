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
    /// The hash of the line as the model was told it, by which a host's messages are searched for it.
    pub line: Digest,
    /// The agent's path that the line names, absolute: what leads there may be another file later.
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
