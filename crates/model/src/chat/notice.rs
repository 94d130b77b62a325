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
}

impl Notice {
    pub(super) fn of(entry: &Value) -> Option<Self> {
        let hash = text(entry, "source_hash").and_then(|hash| hash.parse().ok());
        Some(Self { file: ObjectId::new(text(entry, "file")?), hash })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "file": self.file, "source_hash": self.hash })
    }
}
