//! The texts in what a node is asked, and their hashes.

use sha1::{Digest as _, Sha1};

/// The strings of an EDN text.
pub fn strings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut chars = text.chars();
    while chars.by_ref().any(|c| c == '"') {
        let mut string = String::new();
        while let Some(c) = chars.next().filter(|c| *c != '"') {
            match if c == '\\' { chars.next() } else { None } {
                Some('n') => string.push('\n'),
                Some('r') => string.push('\r'),
                Some('t') => string.push('\t'),
                Some(other) => string.push(other),
                None => string.push(c),
            }
        }
        found.push(string);
    }
    found
}

/// A parameter without its escapes.
pub fn plain(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let escaped = if byte == b'%' { [rest.next(), rest.next()] } else { [None; 2] };
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (digit(escaped[0]), digit(escaped[1])) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// XTDB's hash of an ID, or of another text.
pub fn hash(text: &str) -> String {
    let length = text.len();
    let head = match length {
        0..=127 => vec![105, length as u8],
        128..=32_767 => vec![16, (length >> 8) as u8, length as u8],
        _ => [&[13][..], &(length as u32).to_be_bytes()].concat(),
    };
    let frozen = [&head[..], text.as_bytes()].concat();
    Sha1::digest(&frozen).iter().map(|byte| format!("{byte:02x}")).collect()
}
