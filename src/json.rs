//! JSON crosses the border as text, which lib/core/json.ts writes and reads: V8 does this many times faster than it can
//! create values one by one, and our side works away from the event loop. A text also keeps what assigning fields would
//! not: an own field named `__proto__`.

use context_store::Version;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::Coded;

/// The text of a value.
pub(crate) fn text(value: &impl Serialize) -> Result<String, Coded> {
    serde_json::to_string(value)
        .map_err(|error| Coded::failed(format!("an answer can't be written as JSON: {error}")))
}

/// The text of a version.
pub(crate) fn version(version: &Version) -> Result<String, Coded> {
    text(&whole(version, json!(version.document)))
}

/// The value of a text.
///
/// # Errors
/// `INVALID_ARGUMENT` for one that is nested too deeply.
pub(crate) fn value(text: String) -> Result<Value, Coded> {
    serde_json::from_str(&without_lone_surrogates(text))
        .map_err(|error| Coded::invalid(format!("a value can't be read, or is nested too deeply: {error}")))
}

/// The fields of an object.
///
/// # Errors
/// `INVALID_ARGUMENT` for another value; `what` begins the sentence.
pub(crate) fn object(text: String, what: &str) -> Result<Map<String, Value>, Coded> {
    match value(text)? {
        Value::Object(map) => Ok(map),
        _ => Err(Coded::invalid(format!("{what} must be an object"))),
    }
}

/// Half of a surrogate pair becomes the replacement character, as in every other text that crosses the border.
fn without_lone_surrogates(text: String) -> String {
    // Whole pairs stand for themselves in what JavaScript writes; only halves are escaped.
    if !text.contains("\\ud") {
        return text;
    }
    let mut bytes = text.into_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'\\', b'u', b'd', b'8'..=b'f', _, _, ..] => {
                bytes[at + 2..at + 6].copy_from_slice(b"fffd");
                at += 6;
            }
            [b'\\', ..] => at += 2,
            _ => at += 1,
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| unreachable!("ASCII was replaced by ASCII"))
}

/// A version with its document in this form.
pub(crate) fn whole(version: &Version, document: Value) -> Value {
    let mut whole = json!({
        "document": document,
        "txId": version.tx_id.0,
        "txTime": version.tx_time.to_string(),
        "validTime": version.valid_time.to_string(),
    });
    if let Some(erased) = &version.erased {
        whole["erased"] = json!({ "at": erased.at.to_string(), "why": erased.why });
    }
    whole
}
