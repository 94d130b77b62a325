//! Canonical JSON by RFC 8785 (JCS): the byte form that every hash is taken of.
//!
//! For values that JavaScript can hold it equals a `JSON.stringify` with sorted keys; the golden vectors in
//! `fixtures/golden/canonical.json` are read by the tests of both languages.

use std::io::Write;

use serde::Serialize;

/// Writes the canonical form of a value.
///
/// # Errors
/// Only what the writer itself reports: every `serde_json::Value` has a canonical form.
pub fn write(value: &impl Serialize, out: &mut impl Write) -> std::io::Result<()> {
    serde_json_canonicalizer::to_writer(value, out).map_err(std::io::Error::other)
}

/// The canonical form as text.
#[must_use]
pub fn to_string(value: &serde_json::Value) -> String {
    let mut bytes = Vec::new();
    write(value, &mut bytes).unwrap_or_else(|e| unreachable!("a JSON value is always serialisable: {e}"));
    String::from_utf8(bytes).unwrap_or_else(|e| unreachable!("JSON is UTF-8: {e}"))
}
