//! Payloads of versions in compact form: long strings become separate texts, each stored once, and the rest is compressed.
//!
//! A tool call's arguments are in the call and in the chat, and text that it wrote is also in the file.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::LazyLock;

use context_model::hash::Digest;
use rusqlite::Connection;
use serde_json::{Map, Value};
use zstd::zstd_safe::{CCtx, CDict, DCtx, DDict, get_frame_content_size};

use super::error::Result;
use super::form::{self, NewText, StoredText};
use context_store::StoreError;

/// A string of at least this many bytes, as written in JSON, becomes a separate text.
const LONG: usize = 256;

/// Payloads with fewer bytes are not packed.
const SHORT: usize = 128;

/// Marks the place of a text within JSON, which never contains this byte.
const HOLE: char = '\u{1}';

/// Separates the parts that are packed together.
const BORDER: char = '\0';

/// The longest payload that is read, so that a damaged length can't allocate more.
const LONGEST: u64 = 1_000_000_000;

/// Rows are short, so a high level takes only microseconds.
const LEVEL: i32 = 9;

/// Trained with `zstd --train` on the rows of this project's recorded sessions (`fixtures/sessions`) and its sources.
static DICTIONARY: &[u8] = include_bytes!("rows.zdict");

static TO_COMPRESS: LazyLock<CDict<'static>> = LazyLock::new(|| CDict::create(DICTIONARY, LEVEL));
static TO_DECOMPRESS: LazyLock<DDict<'static>> = LazyLock::new(|| DDict::create(DICTIONARY));

thread_local! {
    static COMPRESSOR: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
    static DECOMPRESSOR: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// JSON with holes in place of its long strings.
pub(super) struct Skeleton {
    pub json: String,
    /// The strings that belong in the holes, in order.
    pub texts: Vec<NewText>,
    /// The hash of the JSON and of the texts that belong in it.
    pub digest: Digest,
}

impl Skeleton {
    /// Removes the long strings from JSON.
    pub(crate) fn of(json: String) -> Self {
        let mut texts = Vec::new();
        let json = if json.len() < LONG { json } else { hollow(json, &mut texts) };
        let digest = digest(&json, texts.iter().map(|text| text.key));
        Self { json, texts, digest }
    }

    /// The JSON with its long strings.
    pub(crate) fn whole(&self) -> Cow<'_, str> {
        if self.texts.is_empty() {
            return Cow::Borrowed(&self.json);
        }
        let mut parts = self.json.split(HOLE);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for (part, text) in parts.zip(&self.texts) {
            whole.push_str(&escaped(&text.text));
            whole.push_str(part);
        }
        Cow::Owned(whole)
    }
}

/// The hash of JSON with holes.
pub(super) fn digest(json: &str, texts: impl IntoIterator<Item = Digest>) -> Digest {
    let mut bytes = Cow::Borrowed(json.as_bytes());
    for key in texts {
        bytes.to_mut().extend(key.as_bytes());
    }
    Digest::of(&bytes)
}

fn hollow(json: String, texts: &mut Vec<NewText>) -> String {
    let bytes = json.as_bytes();
    let (mut skeleton, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        if bytes[at] != b'"' {
            at += 1;
            continue;
        }
        let start = at + 1;
        at = start;
        while at < bytes.len() && bytes[at] != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        let end = at.min(bytes.len());
        at = end + 1;
        // Names stay where they are.
        if end - start < LONG || bytes.get(at) == Some(&b':') {
            continue;
        }
        let Ok(text) = serde_json::from_str::<String>(&json[start - 1..=end]) else { continue };
        if escaped(&text) == json[start..end] {
            skeleton.push_str(&json[copied..start]);
            skeleton.push(HOLE);
            copied = end;
            texts.push(NewText::new(text));
        }
    }
    if texts.is_empty() {
        return json;
    }
    skeleton.push_str(&json[copied..]);
    skeleton
}

/// Number of holes in JSON.
pub(super) fn holes(json: &str) -> usize {
    if json.len() < 3 { 0 } else { json.bytes().filter(|byte| *byte == HOLE as u8).count() }
}

/// JSON with its long strings in place, and whether one of them was erased and replaced by a mark.
pub(super) fn filled<'j>(
    connection: &Connection,
    json: &'j str,
    texts: &[i64],
) -> Result<(Cow<'j, str>, bool)> {
    if texts.is_empty() {
        return Ok((Cow::Borrowed(json), false));
    }
    let (mut whole, mut is_erased) = (String::new(), false);
    let mut parts = json.split(HOLE);
    whole.push_str(parts.next().unwrap_or_default());
    for (part, content) in parts.zip(texts) {
        match form::text_of(connection, *content)? {
            StoredText::Text(text) => whole.push_str(&escaped(&text)),
            StoredText::Erased => {
                is_erased = true;
                whole.push_str(context_store::backend::erasing::MARK);
            }
        }
        whole.push_str(part);
    }
    Ok((Cow::Owned(whole), is_erased))
}

/// A string as `serde_json` writes it, without its quotes.
fn escaped(text: &str) -> String {
    let mut json = Value::from(text).to_string();
    json.pop();
    json.remove(0);
    json
}

/// The parts of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowParts<'a> {
    pub body: &'a str,
    pub patch: Option<&'a str>,
    pub nested: Option<&'a str>,
}

/// Packs a payload. `None` if it stays in plain columns.
pub(super) fn pack(parts: RowParts<'_>, texts: &[i64]) -> Result<Option<Vec<u8>>> {
    let length =
        parts.body.len() + [parts.patch, parts.nested].into_iter().flatten().map(str::len).sum::<usize>();
    if length < SHORT && texts.is_empty() {
        return Ok(None);
    }
    let mut whole = parts.body.to_owned();
    for part in [parts.patch, parts.nested].into_iter().flatten() {
        whole.push(BORDER);
        whole.push_str(part);
    }
    let mut packed = Vec::with_capacity(whole.len() / 2 + 64);
    number(&mut packed, texts.len() as u64);
    for text in texts {
        number(&mut packed, text.unsigned_abs());
    }
    let bytes = COMPRESSOR.with_borrow_mut(|context| {
        let mut bytes = Vec::with_capacity(zstd::zstd_safe::compress_bound(whole.len()));
        context.compress_using_cdict(&mut bytes, whole.as_bytes(), &TO_COMPRESS).ok().map(|_| bytes)
    });
    let unable = || StoreError::Unavailable("a version could not be compressed; write it again".into());
    packed.extend(bytes.ok_or_else(unable)?);
    Ok(Some(packed))
}

/// The texts that a packed payload refers to, without unpacking it.
pub(super) fn texts_of(packed: &[u8]) -> Option<Vec<i64>> {
    head(packed).map(|(texts, _)| texts)
}

fn head(packed: &[u8]) -> Option<(Vec<i64>, &[u8])> {
    let mut rest = packed;
    let count = read_number(&mut rest)?;
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(i64::try_from(read_number(&mut rest)?).ok()?);
    }
    Some((texts, rest))
}

/// A payload that was packed: its parts, and the texts that belong in them.
pub(super) struct Unpacked {
    whole: String,
    pub texts: Vec<i64>,
}

impl Unpacked {
    /// `None` if it is damaged.
    pub(crate) fn new(packed: &[u8]) -> Option<Self> {
        let (texts, bytes) = head(packed)?;
        let length = get_frame_content_size(bytes).ok()??;
        if length > LONGEST {
            return None;
        }
        let mut whole = Vec::new();
        whole.try_reserve_exact(usize::try_from(length).ok()?).ok()?;
        DECOMPRESSOR.with_borrow_mut(|context| {
            context.decompress_using_ddict(&mut whole, bytes, &TO_DECOMPRESS).ok()
        })?;
        Some(Self { whole: String::from_utf8(whole).ok()?, texts })
    }

    pub(crate) fn parts(&self) -> RowParts<'_> {
        let mut parts = self.whole.split(BORDER);
        RowParts { body: parts.next().unwrap_or_default(), patch: parts.next(), nested: parts.next() }
    }
}

/// The fields of a body that stay readable next to its packed form: numbers and short words.
pub(super) fn seen(body: &str) -> String {
    const SHORT: usize = 24;
    let fields: Map<String, Value> = serde_json::from_str(body).unwrap_or_default();
    let fields = fields.into_iter().filter(|(_, value)| match value {
        Value::String(text) => text.len() <= SHORT && !text.contains(HOLE),
        Value::Array(_) | Value::Object(_) => false,
        _ => true,
    });
    Value::Object(fields.collect()).to_string()
}

fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_strings_are_taken_out_and_names_are_not() {
        let long = "a \"quoted\" \\ line\n\u{1F600}\u{1}\u{7f}".repeat(30);
        let value = json!({ "x": long, long.clone(): 1, "list": [long, "short", { "y": [long] }], "z": "" });
        let Skeleton { json, texts, .. } = Skeleton::of(value.to_string());
        assert_eq!((holes(&json), texts.len()), (3, 3));
        assert!(texts.iter().all(|text| text.text == long));
        let mut parts = json.split(HOLE);
        let mut whole = parts.next().unwrap().to_owned();
        for part in parts {
            whole.push_str(&escaped(&long));
            whole.push_str(part);
        }
        assert_eq!(whole, value.to_string());
        let short = json!({ "x": "y" }).to_string();
        assert_eq!(Skeleton::of(short.clone()).json, short);
    }

    #[test]
    fn packed_texts_unpack_unchanged() {
        let body = json!({ "tool": "read", "args": { "path": "x".repeat(300) } }).to_string();
        let all = [
            RowParts { body: &body, patch: None, nested: None },
            RowParts { body: &body, patch: Some("[]"), nested: Some("{}") },
        ];
        for parts in all {
            let texts = [1, 127, 128, i64::MAX];
            let packed = pack(parts, &texts).unwrap().unwrap();
            let unpacked = Unpacked::new(&packed).unwrap();
            assert_eq!(unpacked.parts(), parts);
            assert_eq!((unpacked.texts, texts_of(&packed).unwrap()), (texts.to_vec(), texts.to_vec()));
            for end in 0..packed.len() {
                assert!(Unpacked::new(&packed[..end]).is_none());
            }
        }
        assert_eq!(pack(RowParts { body: "{}", patch: None, nested: None }, &[]).unwrap(), None);
    }
}
