//! The evidence about a file in a tool call's result, as it is recorded with the call.
//!
//! A version is named by the hash of its bytes: transaction numbers are a store's own, and a session can move.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The field of a tool call's document that has its evidence.
pub const EVIDENCE_FIELD: &str = "evidence";

/// The evidence about a file that a call's result gives the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// These lines, byte for byte.
    Shows(Lines),
    /// Lines of bytes that were never stored.
    Unstored {
        /// The lines, and the hash of the text that has them.
        #[serde(flatten)]
        lines: Lines,
        /// The version that is the same in these lines, if there is one: the result also shows other text.
        #[serde(skip_serializing_if = "Option::is_none")]
        like: Option<Digest>,
    },
    /// These lines are unchanged in another result.
    Points {
        /// The lines.
        #[serde(flatten)]
        lines: Lines,
        /// The tool call whose result has them.
        at: ObjectId,
    },
    /// The requested text is in another result.
    Refers {
        /// The tool call whose result has it.
        at: ObjectId,
    },
    /// A difference that leads to these bytes.
    LedTo(Bytes),
    /// The call wrote these bytes. If others had changed the file unseen, they are the model's knowledge of it: the text that
    /// it knew before, and the text that it has put in.
    Made {
        /// The bytes.
        #[serde(flatten)]
        bytes: Bytes,
        /// The bytes of the version that the call changed, if an earlier notice had named another version.
        #[serde(skip_serializing_if = "Option::is_none")]
        left: Option<Digest>,
    },
    /// The call wrote these files: a patch may change several.
    Several(Vec<Evidence>),
}

/// The bytes that a file had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// The file.
    pub file: ObjectId,
    /// The hash of the bytes.
    pub hash: Digest,
}

/// Lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The version to which they belong.
    #[serde(flatten)]
    pub bytes: Bytes,
    /// First line, counted from 1.
    pub first: usize,
    /// Last line, included.
    pub last: usize,
    /// These are all lines of the file.
    pub whole: bool,
}

impl Bytes {
    /// The hash of a text's bytes.
    pub fn hash_of(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }
}

impl Evidence {
    /// The bytes of a file that it is about.
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Shows(lines) | Self::Unstored { lines, .. } | Self::Points { lines, .. } => {
                Some(&lines.bytes)
            }
            Self::LedTo(bytes) | Self::Made { bytes, .. } => Some(bytes),
            Self::Refers { .. } | Self::Several(_) => None,
        }
    }

    /// Returns the bytes that the call left in each file that it wrote.
    pub fn made(&self) -> Vec<&Bytes> {
        match self {
            Self::Made { bytes, .. } => vec![bytes],
            Self::Several(all) => all.iter().flat_map(Self::made).collect(),
            _ => Vec::new(),
        }
    }

    /// True if the answer to a read with this evidence was the place of its lines, or their change.
    pub fn answers_a_read(&self) -> bool {
        matches!(self, Self::Points { .. } | Self::LedTo(_))
    }

    /// As it is recorded.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads it from the field of a recorded call. An entry of a later release counts as none.
    pub fn of(value: &Value) -> Option<Self> {
        serde_json::from_value(value.clone()).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bytes() -> Bytes {
        Bytes { file: ObjectId::new("f"), hash: Digest::of(b"a") }
    }

    #[test]
    fn evidence_says_whether_it_is_about_bytes_or_in_place_of_lines_and_which_files_were_made() {
        let lines = Lines { bytes: bytes(), first: 2, last: 9, whole: false };
        let at = ObjectId::new("call");
        let made = Evidence::Made { bytes: bytes(), left: None };
        for (evidence, has_bytes, files, answers) in [
            (Evidence::Shows(lines.clone()), true, 0, false),
            (Evidence::Unstored { lines: lines.clone(), like: None }, true, 0, false),
            (Evidence::Points { lines, at: at.clone() }, true, 0, true),
            (Evidence::Refers { at }, false, 0, false),
            (Evidence::LedTo(bytes()), true, 0, true),
            (made.clone(), true, 1, false),
            (Evidence::Several(vec![made.clone(), made]), false, 2, false),
        ] {
            assert_eq!(evidence.answers_a_read(), answers, "{evidence:?}");
            assert_eq!(evidence.bytes(), has_bytes.then_some(&bytes()), "{evidence:?}");
            assert_eq!(evidence.made(), vec![&bytes(); files], "{evidence:?}");
        }
    }

    #[test]
    fn evidence_is_read_as_it_was_recorded() {
        let lines = Lines { bytes: bytes(), first: 2, last: 9, whole: false };
        let hash = Digest::of(b"a").to_string();
        let shown = json!({ "file": "f", "hash": hash, "first": 2, "last": 9, "whole": false });
        let mut pointed = shown.clone();
        pointed["at"] = json!("call");
        let at = ObjectId::new("call");
        let mut like = shown.clone();
        like["like"] = json!(hash);
        let version = Some(Digest::of(b"a"));
        for (evidence, value) in [
            (Evidence::Shows(lines.clone()), json!({ "shows": shown })),
            (Evidence::Unstored { lines: lines.clone(), like: None }, json!({ "unstored": shown })),
            (Evidence::Unstored { lines: lines.clone(), like: version }, json!({ "unstored": like })),
            (Evidence::Points { lines: lines.clone(), at: at.clone() }, json!({ "points": pointed })),
            (Evidence::Refers { at: at.clone() }, json!({ "refers": { "at": "call" } })),
            (Evidence::LedTo(bytes()), json!({ "led_to": { "file": "f", "hash": hash } })),
            (Evidence::Made { bytes: bytes(), left: None }, json!({ "made": { "file": "f", "hash": hash } })),
            (
                Evidence::Made { bytes: bytes(), left: Some(bytes().hash) },
                json!({ "made": { "file": "f", "hash": hash, "left": hash } }),
            ),
            (
                Evidence::Several(vec![Evidence::Made { bytes: bytes(), left: None }]),
                json!({ "several": [{ "made": { "file": "f", "hash": hash } }] }),
            ),
        ] {
            assert_eq!(evidence.to_value(), value);
            assert_eq!(Evidence::of(&value), Some(evidence));
        }
        // Earlier versions recorded a sentence beside it, for the time after the other result has left.
        pointed["left"] = json!("gone");
        let refers = json!({ "refers": { "at": "call", "left": "gone" } });
        assert_eq!(
            Evidence::of(&json!({ "points": pointed })),
            Some(Evidence::Points { lines, at: at.clone() })
        );
        assert_eq!(Evidence::of(&refers), Some(Evidence::Refers { at }));
        assert_eq!(Evidence::of(&json!({ "smells": {} })), None);
        assert_eq!(Evidence::of(&Value::Null), None);
    }
}
