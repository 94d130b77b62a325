//! The three hashes of the specification, all SHA-256 in lower-case hex.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::canonical;
use crate::error::ModelError;
use crate::object_type::ObjectType;
use crate::source::Source;

/// A SHA-256 digest; hex only at the edges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest of 32 raw bytes; `None` if there are more or fewer.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The raw 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A text and its SHA-256, which is computed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedText {
    text: String,
    hash: Digest,
}

impl HashedText {
    /// Hashes a text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self { hash: Digest::of(text.as_bytes()), text }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of its UTF-8 bytes.
    pub fn hash(&self) -> Digest {
        self.hash
    }

    /// The text, and SHA-256 of its UTF-8 bytes.
    pub fn into_parts(self) -> (String, Digest) {
        (self.text, self.hash)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0_u8; 64];
        for (i, byte) in self.0.iter().enumerate() {
            text[2 * i] = HEX[usize::from(byte >> 4)];
            text[2 * i + 1] = HEX[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let wrong = || ModelError::Invalid("a hash is 64 hexadecimal digits".into());
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(wrong()) };
        let mut bytes = [0_u8; 32];
        if pairs.len() != bytes.len() {
            return Err(wrong());
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(wrong);
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            // Two digits, of 16 values each.
            *byte = (digit(*high)? * 16 + digit(*low)?) as u8;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A hasher for bytes that arrive in pieces (a large file, a canonical form).
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all that was added.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl std::io::Write for Hasher {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0.update(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `identity_hash`: SHA-256 of the canonical `{type, source}`. It is the ID of a sourced object.
#[must_use]
pub fn identity_hash(object_type: ObjectType, source: Option<&Source>) -> Digest {
    let source = source.map_or(Value::Null, |source| json!(source));
    let envelope = [("source".to_owned(), source), ("type".to_owned(), object_type.as_str().into())];
    hash_object(envelope.iter().map(|(name, value)| (name, value)))
}

/// `source_hash`: SHA-256 of the raw bytes of the external source.
#[must_use]
pub fn source_hash(bytes: &[u8]) -> Digest {
    Digest::of(bytes)
}

/// `content_hash`: SHA-256 of every payload field except `source_hash` and itself.
///
/// The hash covers everything in the payload, also fields added later; it needs no list of fields.
#[must_use]
pub fn content_hash(payload: &Map<String, Value>) -> Digest {
    hash_object(payload.iter().filter(|(name, _)| *name != "source_hash" && *name != "content_hash"))
}

fn hash_object<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>) -> Digest {
    // Writes come in pieces of a few bytes; a buffer gives the hasher whole blocks.
    let mut out = std::io::BufWriter::with_capacity(16 * 1024, Hasher::default());
    canonical::write_object(members, &mut out).unwrap_or_else(|e| unreachable!("hashing does no I/O: {e}"));
    out.into_inner().unwrap_or_else(|e| unreachable!("hashing does no I/O: {e}")).finish()
}
