//! Canonical JSON by RFC 8785 (JCS): the byte form that every hash is taken of.
//!
//! For values that JavaScript can hold it equals a `JSON.stringify` with sorted keys; the golden vectors in
//! `fixtures/golden/canonical.json` are read by the tests of both languages.

use std::io::Write;

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
/// Each string goes to the writer as it is: the texts of files and outputs are nearly all of what is hashed, and a
/// canonicaliser for any serialisable type has to gather each object before it can sort it.
///
/// # Errors
/// Only what the writer itself reports: every `serde_json::Value` has a canonical form.
pub fn write(value: &Value, out: &mut impl Write) -> std::io::Result<()> {
    match value {
        // The one form in which JCS differs from serde_json.
        Value::Number(number) => {
            serde_json_canonicalizer::to_writer(number, out).map_err(std::io::Error::other)
        }
        Value::Array(items) => {
            out.write_all(b"[")?;
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.write_all(b",")?;
                }
                write(item, out)?;
            }
            out.write_all(b"]")
        }
        Value::Object(map) => write_object(map.iter(), out),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(serde_json::to_writer(out, value)?),
    }
}

/// Writes the canonical form of an object of these members.
///
/// # Errors
/// As [`write()`].
pub fn write_object<'a>(
    members: impl Iterator<Item = (&'a String, &'a Value)>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mut members: Vec<_> = members.collect();
    // RFC 8785, 3.2.3: by UTF-16 units, which differs from the order of the bytes beyond the surrogates only.
    members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    out.write_all(b"{")?;
    for (place, (key, value)) in members.into_iter().enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, key)?;
        out.write_all(b":")?;
        write(value, out)?;
    }
    out.write_all(b"}")
}

/// The canonical form as text.
#[must_use]
pub fn to_string(value: &Value) -> String {
    let mut bytes = Vec::new();
    write(value, &mut bytes).unwrap_or_else(|e| unreachable!("memory takes all: {e}"));
    String::from_utf8(bytes).unwrap_or_else(|e| unreachable!("JSON is UTF-8: {e}"))
}
