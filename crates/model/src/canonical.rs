//! Canonical JSON by RFC 8785 (JCS): the bytes over which every hash is computed.
//!
//! For values that JavaScript can represent, it equals `JSON.stringify` with sorted keys. The tests of both languages read
//! the golden vectors in `fixtures/golden/canonical.json`.

use std::io::Write;

use serde_json::Value;

/// The maximum depth of values from outside. Stored values must be readable again, and JSON parsers limit the depth
/// (`serde_json` to 128), of which a document itself takes some levels.
pub const MAX_DEPTH: usize = 100;

/// True if a value's lists and objects are nested deeper than `limit`.
#[must_use]
pub fn is_deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| is_deeper_than(item, limit - 1)),
        Value::Object(map) => limit == 0 || map.values().any(|item| is_deeper_than(item, limit - 1)),
        _ => false,
    }
}

/// The value, with everything nested deeper than `limit` replaced by its JSON text, so that it can be stored without
/// loss.
#[must_use]
pub fn flattened(value: &Value, limit: usize) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) if limit == 0 => Value::String(value.to_string()),
        Value::Array(items) => items.iter().map(|item| flattened(item, limit - 1)).collect(),
        Value::Object(map) => {
            map.iter().map(|(name, item)| (name.clone(), flattened(item, limit - 1))).collect()
        }
        _ => value.clone(),
    }
}

/// The number of a string's bytes that are prepared before they go to the writer.
const PIECE: usize = 512;

/// The longest escape: `\u001f`.
const LONGEST: usize = 6;

/// Writes the canonical form of a value.
///
/// Each string goes to the writer unchanged: the texts of files and outputs are nearly all of what is hashed, and a
/// canonicaliser for any serialisable type has to gather each object before it can sort it.
///
/// # Errors
/// Only errors of the writer: every `serde_json::Value` has a canonical form.
pub fn write(value: &Value, out: &mut impl Write) -> std::io::Result<()> {
    match value {
        // The only case in which JCS differs from serde_json.
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
        Value::String(text) => write_text(text, out),
        Value::Null | Value::Bool(_) => Ok(serde_json::to_writer(out, value)?),
    }
}

/// Writes the canonical form of an object with these members.
pub fn write_object<'a>(
    members: impl Iterator<Item = (&'a String, &'a Value)>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mut members: Vec<_> = members.collect();
    // RFC 8785, 3.2.3: by UTF-16 units. This differs from the order of the bytes only beyond the surrogates.
    members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    out.write_all(b"{")?;
    for (place, (key, value)) in members.into_iter().enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        write_text(key, out)?;
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

/// Writes a string according to RFC 8785, 3.2.2.2: quotation marks, backslashes and characters below U+0020 as two or
/// six characters, everything else unchanged.
///
/// Eight bytes at a time: byte by byte, as `serde_json` does it, takes longer than hashing the result.
fn write_text(text: &str, out: &mut impl Write) -> std::io::Result<()> {
    let mut piece = [0; PIECE];
    piece[0] = b'"';
    let mut length = 1;
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if length > PIECE - 8 - LONGEST {
            out.write_all(&piece[..length])?;
            length = 0;
        }
        if let Some(eight) = rest.first_chunk::<8>() {
            piece[length..length + 8].copy_from_slice(eight);
            let plain = plain_bytes(*eight);
            length += plain;
            rest = &rest[plain..];
            if plain > 0 {
                continue;
            }
        }
        length += escape(*first, &mut piece[length..]);
        rest = after;
    }
    piece[length] = b'"';
    out.write_all(&piece[..=length])
}

/// Returns the number of leading bytes that need no escape.
fn plain_bytes(eight: [u8; 8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(eight);
    // The high bit of each byte that is less than `limit`; a borrow can set further ones behind the first.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let special = below(word, 0x20) | equal(b'"') | equal(b'\\');
    (special.trailing_zeros() / 8) as usize
}

/// Writes one byte, or the escape of one that needs it. Returns the length.
fn escape(byte: u8, to: &mut [u8]) -> usize {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        0x20.. => {
            to[0] = byte;
            return 1;
        }
        _ => {
            let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
            to[..LONGEST].copy_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            return LONGEST;
        }
    };
    to[..2].copy_from_slice(&[b'\\', short]);
    2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::a_scalar(json!("x"), 0)]
    #[case::an_empty_list(json!([]), 1)]
    #[case::an_empty_object(json!({}), 1)]
    #[case::a_list_of_scalars(json!([1, "x", null]), 1)]
    #[case::the_deepest_of_several(json!([1, [2, [3]], 4]), 3)]
    #[case::the_last_of_several(json!({ "a": 1, "b": { "c": [1] } }), 3)]
    fn the_depth_of_a_value(#[case] value: Value, #[case] depth: usize) {
        for limit in 0..5 {
            assert_eq!(is_deeper_than(&value, limit), limit < depth, "{limit}");
        }
    }

    #[test]
    fn value_below_the_limit_becomes_its_text() {
        let value = json!({ "a": [1, [2, [3]]], "b": "x", "c": {} });
        assert_eq!(flattened(&value, 4), value);
        assert_eq!(flattened(&value, 3), json!({ "a": [1, [2, "[3]"]], "b": "x", "c": {} }));
        assert_eq!(flattened(&value, 1), json!({ "a": "[1,[2,[3]]]", "b": "x", "c": "{}" }));
        assert_eq!(flattened(&json!([1]), 0), json!("[1]"));
        assert_eq!(flattened(&json!(1), 0), json!(1));
    }

    proptest! {
        /// Also for strings longer than a piece, with escapes at every position.
        #[test]
        fn strings_match_serde_json(
            start in 0..20_usize,
            parts in prop::collection::vec(("[ -~\u{0}-\u{1f}\"\\\\\u{7f}é日😀]{0,40}", 1..300_usize), 0..6),
        ) {
            let mut text = "x".repeat(start);
            for (part, times) in parts {
                text.push_str(&part.repeat(times));
            }
            prop_assert_eq!(to_string(&text.as_str().into()), serde_json::to_string(&text).unwrap());
        }
    }

    /// One less would be escaped byte by byte, which is correct and slow.
    #[test]
    fn all_bytes_before_the_first_that_needs_an_escape_are_plain() {
        for (byte, place) in (0..=255_u8).flat_map(|byte| (0..8).map(move |place| (byte, place))) {
            let mut eight = *b"aZ ~\x7f\xc3\xa9\xff";
            eight[place] = byte;
            let needs_escape = byte < 0x20 || byte == b'"' || byte == b'\\';
            assert_eq!(plain_bytes(eight), if needs_escape { place } else { 8 }, "{byte:#x} at {place}");
        }
    }

    #[test]
    fn every_character_of_one_byte_at_every_place_of_eight() {
        for (byte, before) in (0..128_u8).flat_map(|byte| (0..9).map(move |before| (byte, before))) {
            let text = format!("{}{}{}", "é".repeat(before), char::from(byte), "\"".repeat(9 - before));
            assert_eq!(to_string(&text.as_str().into()), serde_json::to_string(&text).unwrap());
        }
    }

    /// Hashing takes each piece at once.
    #[test]
    fn a_long_text_is_written_in_large_pieces() {
        struct Pieces(Vec<usize>);
        impl Write for Pieces {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.push(bytes.len());
                Ok(bytes.len())
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let sizes = |text: &str| {
            let mut pieces = Pieces(Vec::new());
            write_text(text, &mut pieces).unwrap();
            pieces.0
        };
        // Eight at a time, after the quotation mark; the last piece has the other one.
        let full = 505;
        assert_eq!(sizes(&"x".repeat(full - 1 + 504 + 7)), [full, 504, 7 + 1]);
        assert_eq!(sizes("x"), [3]);
        // Escapes of six characters.
        let escapes = sizes(&"\u{1}".repeat(1_000));
        assert!(
            escapes[..escapes.len() - 1].iter().all(|size| (PIECE - 13..=PIECE).contains(size)),
            "{escapes:?}"
        );
    }
}
