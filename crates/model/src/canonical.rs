//! Canonical JSON by RFC 8785 (JCS): the byte form that every hash is taken of.
//!
//! For values that JavaScript can hold it equals a `JSON.stringify` with sorted keys; the golden vectors in
//! `fixtures/golden/canonical.json` are read by the tests of both languages.

use std::io::Write;

use serde::Serialize;
use serde_json::Value;

/// How deep values from outside may be nested. What is stored must be readable again, and readers of JSON bound
/// their depth (`serde_json` at 128), of which a document uses up some levels itself.
pub const MAX_DEPTH: usize = 100;

/// Whether a value's lists and objects are nested deeper than `limit`.
#[must_use]
pub fn is_deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| is_deeper_than(item, limit - 1)),
        Value::Object(map) => limit == 0 || map.values().any(|item| is_deeper_than(item, limit - 1)),
        _ => false,
    }
}

/// Writes the canonical form of a value.
///
/// # Errors
/// Only what the writer itself reports: every `serde_json::Value` has a canonical form.
pub fn write(value: &impl Serialize, out: &mut impl Write) -> std::io::Result<()> {
    serde_json_canonicalizer::to_writer(value, out).map_err(std::io::Error::other)
}

/// The canonical form as text.
#[must_use]
pub fn to_string(value: &Value) -> String {
    let mut bytes = Vec::new();
    write(value, &mut bytes).unwrap_or_else(|e| unreachable!("a JSON value is always serialisable: {e}"));
    String::from_utf8(bytes).unwrap_or_else(|e| unreachable!("JSON is UTF-8: {e}"))
}
