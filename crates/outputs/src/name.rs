//! File names: `{tool}_{argsHash}_{timestamp}_{counter}_{random}.json`.
//!
//! A name is one path segment whatever the tool is called: it holds only ASCII letters, digits, `_`, `-` and
//! the one dot of `.json`, starts with none of `.` and `-`, and is at most 124 bytes long, so that it is valid
//! on every file system in use. It can't be a reserved device name of Windows, because what precedes the dot
//! always ends in the four fields after the tool's name.

use context_model::canonical;
use context_model::hash::Digest;

use crate::error::OutputError;

/// The longest tool segment, in bytes.
pub const TOOL_SEGMENT_MAX: usize = 64;
/// Hexadecimal digits of the arguments' hash in a name.
pub const ARGS_HASH_DIGITS: usize = 6;
/// Hexadecimal digits of a query's hash.
pub const QUERY_HASH_DIGITS: usize = 12;
/// Characters of the random field.
pub const RANDOM_CHARS: usize = 4;

/// The longest decimal number in a name: the largest `u64` has 20 digits.
const NUMBER_DIGITS_MAX: usize = 20;
const SUFFIX: &str = ".json";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// The name of one output's file.
///
/// `timestamp` is in milliseconds since 1970, `counter` counts the saves of one instance, and `random` keeps
/// two processes apart (see [`random_suffix`]).
#[must_use]
pub fn file_name(tool: &str, args_hash: &str, timestamp: u64, counter: u64, random: &str) -> String {
    format!("{}_{args_hash}_{timestamp}_{counter}_{random}{SUFFIX}", tool_segment(tool))
}

/// The part of a tool's name that may appear in a file name; `tool` if no part may.
#[must_use]
pub fn tool_segment(tool: &str) -> String {
    let mut segment = String::with_capacity(tool.len().min(TOOL_SEGMENT_MAX));
    for c in tool.chars() {
        if segment.len() == TOOL_SEGMENT_MAX {
            break;
        }
        let kept = c.is_ascii_alphanumeric() || c == '_' || (c == '-' && !segment.is_empty());
        if kept {
            segment.push(c);
        } else if !segment.ends_with('_') {
            segment.push('_');
        }
    }
    if segment.bytes().all(|b| b == b'_') { String::from("tool") } else { segment }
}

/// A fresh random field: four characters of base 36.
///
/// Uniqueness doesn't rest on it (see [`crate::OutputDirectory::save`]), so a system without a source of randomness
/// is no error.
#[must_use]
pub fn random_suffix() -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut number = getrandom::u64().unwrap_or_default();
    let mut suffix = String::with_capacity(RANDOM_CHARS);
    for _ in 0..RANDOM_CHARS {
        suffix.push(char::from(DIGITS[(number % 36) as usize]));
        number /= 36;
    }
    suffix
}

/// The order of a name among its siblings: by time, then by counter, then by text. `None` if the name is not
/// one that [`file_name`] could have written.
#[must_use]
pub fn order(name: &str) -> Option<(u64, u64, &str)> {
    if !name.is_ascii() {
        return None;
    }
    let stem = name.strip_suffix(SUFFIX)?;
    let mut fields = stem.rsplitn(5, '_');
    let (random, counter, timestamp, hash, tool) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let base36 = |s: &str, n| s.len() == n && s.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
    let number = |s: &str| {
        let decimal = !s.is_empty() && s.len() <= NUMBER_DIGITS_MAX && s.bytes().all(|b| b.is_ascii_digit());
        decimal.then(|| s.parse::<u64>().ok()).flatten()
    };
    let tool_fits = !tool.is_empty()
        && tool.len() <= TOOL_SEGMENT_MAX
        && !tool.starts_with('-')
        && tool.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let fits = tool_fits && base36(hash, ARGS_HASH_DIGITS) && base36(random, RANDOM_CHARS);
    if fits { Some((number(timestamp)?, number(counter)?, name)) } else { None }
}

/// The name that a file has until it is whole: hidden, and never one of [`file_name`]'s.
#[must_use]
pub fn temporary(name: &str) -> String {
    format!(".{name}{TEMPORARY_SUFFIX}")
}

/// Whether a name is one that [`temporary`] could have written.
#[must_use]
pub fn is_temporary(name: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|n| n.strip_suffix(TEMPORARY_SUFFIX));
    inner.is_some_and(|n| order(n).is_some())
}

/// The first 12 hexadecimal digits of the SHA-256 of the query's UTF-8 bytes.
#[must_use]
pub fn query_hash(query: &str) -> String {
    shortened(Digest::of(query.as_bytes()), QUERY_HASH_DIGITS)
}

/// The first 6 hexadecimal digits of the SHA-256 of the arguments' canonical JSON (RFC 8785).
///
/// `args` is JSON text as `JSON.stringify` writes it. A lone surrogate escape counts as U+FFFD, as it would if
/// the string itself were encoded in UTF-8.
///
/// # Errors
/// `INVALID_ARGUMENT` if the text is not JSON or is nested deeper than 127 levels.
pub fn args_hash(args: &str) -> Result<String, OutputError> {
    let value: serde_json::Value = serde_json::from_str(args)
        .or_else(|_| serde_json::from_str(&replace_lone_surrogates(args)))
        .map_err(|e| {
            let hint = "pass plain JSON values nested at most 127 levels deep";
            OutputError::Invalid(format!("the tool's arguments are no JSON document: {e}; {hint}"))
        })?;
    Ok(shortened(Digest::of(canonical::to_string(&value).as_bytes()), ARGS_HASH_DIGITS))
}

fn shortened(digest: Digest, digits: usize) -> String {
    let mut hex = digest.to_string();
    hex.truncate(digits);
    hex
}

/// Replaces each `\uD800`..`\uDFFF` escape that is not half of a pair by `\uFFFD`.
fn replace_lone_surrogates(json: &str) -> String {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = String::with_capacity(json.len());
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = json[at..].find('\\') {
        let escape = at + found;
        at = match unit(escape) {
            Some(0xD800..=0xDBFF) if matches!(unit(escape + 6), Some(0xDC00..=0xDFFF)) => escape + 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(&json[copied..escape]);
                out.push_str("\\ufffd");
                copied = escape + 6;
                copied
            }
            // In valid JSON, a backslash is followed by at least one ASCII character; otherwise stop.
            _ => match json.get(escape + 2..) {
                Some(_) => escape + 2,
                None => break,
            },
        };
    }
    out.push_str(&json[copied..]);
    out
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
