//! The forms that a text has on disk: plain, compressed, or as a difference from another text.
//!
//! A form is never trusted: the text that it yields is checked against the stored hash.

use std::cell::RefCell;

use context_model::hash::Digest;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use zstd::zstd_safe::{CCtx, CParameter, DCtx, get_frame_content_size};

use super::columns::text as column_text;
use super::error::{Result, Trouble};
use context_store::StoreError;

/// The values of the column `codec`.
pub(super) const PLAIN: i64 = 0;
pub(super) const COMPRESSED: i64 = 1;
pub(super) const DELTA: i64 = 2;
pub(super) const ERASED: i64 = 3;

/// Shorter texts stay uncompressed: compressing them saves less than a row takes.
const SHORT: usize = 256;

/// A higher level saves little, and costs more time than a sync.
const LEVEL: i32 = 3;

/// The longest text that is read, so that a damaged length can't allocate more: SQLite's limit for a value.
const LONGEST: u64 = 1_000_000_000;

thread_local! {
    static COMPRESSOR: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
    static DECOMPRESSOR: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// A text as found in the store.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StoredText {
    Text(String),
    /// Its owner has erased it.
    Erased,
}

/// A content, its key, and its compressed form if that saves space.
#[derive(Clone)]
pub(super) struct NewText {
    pub text: String,
    pub key: Digest,
    pub compressed: Option<Vec<u8>>,
}

impl NewText {
    /// Compresses a text.
    pub(crate) fn new(text: String) -> Self {
        let key = Digest::of(text.as_bytes());
        Self::with_key(text, key)
    }

    /// The same with a known key.
    pub(crate) fn with_key(text: String, key: Digest) -> Self {
        let compressed = compressed(text.as_bytes());
        Self { text, key, compressed }
    }
}

/// A compressed text; `None` if compressing saves no space.
pub(super) fn compressed(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() < SHORT {
        return None;
    }
    COMPRESSOR.with_borrow_mut(|context| {
        context.set_parameter(CParameter::CompressionLevel(LEVEL)).ok()?;
        let mut bytes = Vec::with_capacity(zstd::zstd_safe::compress_bound(text.len()));
        context.compress2(&mut bytes, text).ok()?;
        bytes.shrink_to_fit();
        (bytes.len() + bytes.len() / 8 < text.len()).then_some(bytes)
    })
}

/// A text as a difference from another one; `None` if that can't be expressed.
pub(super) fn delta(text: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let mut context = CCtx::create();
    context.set_parameter(CParameter::CompressionLevel(LEVEL)).ok()?;
    // The window has to reach back over both texts.
    let log = (text.len() + base.len()).next_power_of_two().trailing_zeros().clamp(17, 27);
    context.set_parameter(CParameter::WindowLog(log)).ok()?;
    context.set_parameter(CParameter::EnableLongDistanceMatching(text.len() > 1 << 20)).ok()?;
    context.ref_prefix(base).ok()?;
    let mut bytes = Vec::with_capacity(zstd::zstd_safe::compress_bound(text.len()));
    context.compress2(&mut bytes, text).ok()?;
    Some(bytes)
}

/// Returns the original of [`compressed`] or [`delta`].
fn restored(bytes: &[u8], base: Option<&[u8]>) -> Option<String> {
    let length = get_frame_content_size(bytes).ok()??;
    if length > LONGEST {
        return None;
    }
    let mut text = Vec::new();
    text.try_reserve_exact(usize::try_from(length).ok()?).ok()?;
    match base {
        None => DECOMPRESSOR.with_borrow_mut(|context| context.decompress(&mut text, bytes).ok())?,
        Some(base) => {
            let mut context = DCtx::create();
            context.ref_prefix(base).ok()?;
            context.decompress(&mut text, bytes).ok()?
        }
    };
    String::from_utf8(text).ok()
}

/// The text of a row, from its columns `codec`, `text` and `root`, which begin at this index. Null if the contents'
/// row is missing in a join.
pub(super) fn text_at(
    connection: &Connection,
    row: &rusqlite::Row<'_>,
    index: usize,
) -> Result<Option<StoredText>> {
    let Some(codec) = row.get::<_, Option<i64>>(index)? else { return Ok(None) };
    let bytes = || match row.get_ref(index + 1)? {
        ValueRef::Blob(bytes) => Ok(bytes),
        _ => Err(damaged()),
    };
    let text = match codec {
        PLAIN => column_text(row, index + 1)?.to_owned(),
        COMPRESSED => restored(bytes()?, None).ok_or_else(damaged)?,
        DELTA => {
            let root: i64 = row.get(index + 2)?;
            let Some((PLAIN | COMPRESSED, base)) = whole(connection, root)? else { return Err(damaged()) };
            restored(bytes()?, Some(base.as_bytes())).ok_or_else(damaged)?
        }
        ERASED => return Ok(Some(StoredText::Erased)),
        _ => return Err(damaged()),
    };
    Ok(Some(StoredText::Text(text)))
}

/// A text that is kept whole.
fn whole(connection: &Connection, content: i64) -> Result<Option<(i64, String)>> {
    let mut find = connection.prepare_cached("SELECT codec, text FROM contents WHERE content = ?")?;
    let mut rows = find.query([content])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let codec = row.get(0)?;
    let text = match (codec, row.get_ref(1)?) {
        (PLAIN, _) => column_text(row, 1)?.to_owned(),
        (COMPRESSED, ValueRef::Blob(bytes)) => restored(bytes, None).ok_or_else(damaged)?,
        _ => return Err(damaged()),
    };
    Ok(Some((codec, text)))
}

/// A text by its number, compared with its hash.
///
/// # Errors
/// `STORE_CORRUPT`, also if there is none.
pub(super) fn text_of(connection: &Connection, content: i64) -> Result<StoredText> {
    let mut find =
        connection.prepare_cached("SELECT codec, text, root, sha256 FROM contents WHERE content = ?")?;
    let mut rows = find.query([content])?;
    let row = rows.next()?.ok_or_else(damaged)?;
    let found = text_at(connection, row, 0)?.ok_or_else(damaged)?;
    if let StoredText::Text(text) = &found {
        let stored = row.get_ref(3)?.as_blob().map_err(|_| damaged())?;
        if stored != Digest::of(text.as_bytes()).as_bytes() {
            return Err(damaged());
        }
    }
    Ok(found)
}

/// Stores a text in another form, after checking that the form yields the text again.
pub(super) fn reform(
    connection: &Connection,
    content: i64,
    text: &str,
    (codec, bytes): (i64, &[u8]),
    (root, place): (i64, i64),
    base: Option<&str>,
) -> Result<()> {
    if restored(bytes, base.map(str::as_bytes)).as_deref() != Some(text) {
        return Err(
            StoreError::Unavailable("a text could not be compressed; it stays as it is".into()).into()
        );
    }
    connection
        .prepare_cached("UPDATE contents SET codec = ?, text = ?, root = ?, place = ? WHERE content = ?")?
        .execute(rusqlite::params![codec, bytes, root, place, content])?;
    Ok(())
}

fn damaged() -> Trouble {
    StoreError::Corrupt("a text can't be read from its form".into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(lines: usize) -> String {
        (0..lines).map(|n| format!("let value_{n} = compute({}, other);\n", n * 7919 % 1_000)).collect()
    }

    #[test]
    fn each_form_gives_the_text_again() {
        for lines in [1, 10, 1_000, 100_000] {
            let text = source(lines);
            let changed = text.replacen("compute", "calculate", 3);
            if let Some(bytes) = compressed(text.as_bytes()) {
                assert!(bytes.len() < text.len());
                assert_eq!(restored(&bytes, None).as_deref(), Some(&*text));
            }
            let bytes = delta(changed.as_bytes(), text.as_bytes()).unwrap();
            assert_eq!(restored(&bytes, Some(text.as_bytes())).as_deref(), Some(&*changed));
            assert!(bytes.len() < 100 + lines / 100, "{} bytes for {lines} lines", bytes.len());
            assert_ne!(restored(&bytes, Some(b"something else")).as_deref(), Some(&*changed));
        }
    }

    #[test]
    fn refuses_damaged_bytes_without_allocating() {
        let text = source(100);
        let bytes = compressed(text.as_bytes()).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x80;
            // It may yield another text, which then does not match the hash.
            let _ = restored(&damaged, None);
        }
        assert_eq!(restored(&[], None), None);
        assert_eq!(restored(&bytes[..bytes.len() / 2], None), None);
    }
}
