//! The full-text index, and the lasting form of each text. Both follow the history: the writer advances them when it
//! is idle, and before a search.
//!
//! A version that resembles the previous one becomes a difference from a whole text of the same object, its root, so
//! reading it never takes more than two texts. The root and its differences are indexed together: of a difference only
//! the new lines. So all words of a text are in its root's rows, and a search checks which of the texts has them all.
//!
//! Not all of a text is worth indexing ([`indexable`]); the search finds the omitted parts by reading the text.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, OptionalExtension, ToSql, params};

use super::error::Result;
use super::form::{self, NewText, StoredText};

/// Bytes of text and versions that one transaction processes at most, so that a write waits only briefly.
const PORTION_BYTES: usize = 512 << 10;
const PORTION_VERSIONS: usize = 500;

/// The most texts that one root can have, including itself.
pub(super) const FAMILY: i64 = 16;

/// Shorter texts are kept whole.
const SHORT: usize = 512;

/// The row of a text in the index.
pub(super) fn row_of(root: i64, place: i64) -> i64 {
    root * FAMILY + place
}

pub(super) fn root_of(row: i64) -> i64 {
    row / FAMILY
}

/// Indexes the next versions. True if more may be waiting.
pub(super) fn portion(connection: &Connection) -> Result<bool> {
    let seq: i64 = connection.prepare_cached("SELECT seq FROM indexed")?.query_row([], |row| row.get(0))?;
    let (mut last, mut bytes, mut count) = (seq, 0, 0);
    let mut rows_of_index = BTreeMap::new();
    {
        let mut waiting = connection
            .prepare_cached("SELECT seq, object, content FROM versions WHERE seq > ? ORDER BY seq LIMIT ?")?;
        let mut rows = waiting.query(params![seq, PORTION_VERSIONS as i64])?;
        while bytes < PORTION_BYTES {
            let Some(row) = rows.next()? else { break };
            (last, count) = (row.get(0)?, count + 1);
            let object = row.get(1)?;
            let Some(content) = row.get::<_, Option<i64>>(2)? else { continue };
            occurs(connection, content, object, last)?;
            if let Some((place, text)) = settle(connection, content, object, last)? {
                bytes += text.len();
                rows_of_index.insert(place, text);
            }
        }
    }
    // In the order of their numbers, because a step back would end a segment of the index.
    let mut insert = connection.prepare_cached("INSERT INTO contents_fts (rowid, text) VALUES (?, ?)")?;
    for (place, text) in rows_of_index {
        insert.execute(params![place, text])?;
    }
    if last > seq {
        connection.prepare_cached("UPDATE indexed SET seq = ?")?.execute([last])?;
    }
    Ok(bytes >= PORTION_BYTES || count >= PORTION_VERSIONS)
}

fn occurs(connection: &Connection, content: i64, object: i64, seq: i64) -> Result<()> {
    let sql = "INSERT INTO occurrences (content, object, seq) VALUES (?, ?, ?)
               ON CONFLICT DO UPDATE SET seq = excluded.seq";
    connection.prepare_cached(sql)?.execute([content, object, seq])?;
    Ok(())
}

/// Gives a text its lasting form, if it has none yet; returns its row in the index and the part of it that is
/// indexed.
fn settle(connection: &Connection, content: i64, object: i64, seq: i64) -> Result<Option<(i64, String)>> {
    let (root, codec): (Option<i64>, i64) = connection
        .prepare_cached("SELECT root, codec FROM contents WHERE content = ?")?
        .query_row([content], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if root.is_some() || codec == form::ERASED {
        return Ok(None);
    }
    // Damage is reported when the text is read or verified; the rest continues.
    let Ok(StoredText::Text(text)) = form::text_of(connection, content) else { return Ok(None) };
    let name = name_of(connection, object)?;
    if let Some(before) = before(connection, object, seq)?
        && let Some(indexed) = as_delta(connection, content, &text, before)?
    {
        let (row, lines) = indexed;
        return Ok(Some((row, indexable(&lines, name.as_deref()))));
    }
    match form::compressed(text.as_bytes()).filter(|_| codec == form::PLAIN) {
        Some(bytes) => {
            form::reform(connection, content, &text, (form::COMPRESSED, &bytes), (content, 0), None)?;
        }
        None => {
            let sql = "UPDATE contents SET root = content, place = 0 WHERE content = ?";
            connection.prepare_cached(sql)?.execute([content])?;
        }
    }
    Ok(Some((row_of(content, 0), indexable(&text, name.as_deref()))))
}

fn name_of(connection: &Connection, object: i64) -> Result<Option<String>> {
    let mut find = connection.prepare_cached("SELECT path FROM objects WHERE object = ?")?;
    Ok(find.query_row([object], |row| row.get(0)).optional()?.flatten())
}

/// The text of an object's version before this one.
fn before(connection: &Connection, object: i64, seq: i64) -> Result<Option<i64>> {
    let sql = "SELECT content FROM versions WHERE object = ? AND seq < ? AND content IS NOT NULL
               ORDER BY valid_from DESC, tx_id DESC LIMIT 1";
    Ok(connection.prepare_cached(sql)?.query_row([object, seq], |row| row.get(0)).optional()?)
}

/// Stores a text as a difference from the previous text's root, if that saves space; returns its row in the index and
/// the lines that neither of the two has.
fn as_delta(connection: &Connection, content: i64, text: &str, before: i64) -> Result<Option<(i64, String)>> {
    if text.len() < SHORT || before == content {
        return Ok(None);
    }
    let mut find = connection.prepare_cached("SELECT root FROM contents WHERE content = ?")?;
    let Some(root) = find.query_row([before], |row| row.get::<_, Option<i64>>(0)).optional()?.flatten()
    else {
        return Ok(None);
    };
    let last: Option<i64> = connection
        .prepare_cached("SELECT max(place) FROM contents WHERE root = ? AND place > 0")?
        .query_row([root], |row| row.get(0))?;
    let place = last.unwrap_or(0) + 1;
    if place >= FAMILY {
        return Ok(None);
    }
    let Ok(StoredText::Text(base)) = form::text_of(connection, root) else { return Ok(None) };
    // Reading it takes both texts: never more than twice the bytes of the whole text.
    if base.len() > text.len() * 2 {
        return Ok(None);
    }
    let whole = form::compressed(text.as_bytes()).map_or(text.len(), |bytes| bytes.len());
    let Some(delta) = form::delta(text.as_bytes(), base.as_bytes()).filter(|delta| delta.len() * 2 < whole)
    else {
        return Ok(None);
    };
    form::reform(connection, content, text, (form::DELTA, &delta), (root, place), Some(&base))?;
    let previous = match form::text_of(connection, before) {
        Ok(StoredText::Text(previous)) if before != root => previous,
        _ => String::new(),
    };
    let known: HashSet<&str> = base.lines().chain(previous.lines()).collect();
    let mut new = String::new();
    for line in text.lines().filter(|line| !known.contains(line)) {
        new.push_str(line);
        new.push('\n');
    }
    Ok(Some((row_of(root, place), new)))
}

/// The number of a text, which is stored if it is new, and whether its owner has erased it.
pub(super) fn stored(connection: &Connection, text: &NewText) -> Result<(i64, bool)> {
    let (codec, bytes): (_, &dyn ToSql) = match &text.compressed {
        Some(bytes) => (form::COMPRESSED, bytes),
        None => (form::PLAIN, &text.text),
    };
    stored_as(connection, text, codec, bytes)
}

/// The same for a text that its owner has erased elsewhere: if it is new, only its hash and length are stored.
pub(super) fn stored_erased(connection: &Connection, text: &NewText) -> Result<(i64, bool)> {
    Ok((stored_as(connection, text, form::ERASED, &[0_u8; 0].as_slice())?.0, true))
}

fn stored_as(connection: &Connection, text: &NewText, codec: i64, bytes: &dyn ToSql) -> Result<(i64, bool)> {
    let mut find = connection.prepare_cached("SELECT content, codec FROM contents WHERE sha256 = ?")?;
    let found = find.query_row([text.key.as_bytes()], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)));
    if let Some((content, codec)) = found.optional()? {
        return Ok((content, codec == form::ERASED));
    }
    let length = i64::try_from(text.text.len()).unwrap_or(i64::MAX);
    let mut insert = connection
        .prepare_cached("INSERT INTO contents (sha256, codec, text, length) VALUES (?, ?, ?, ?)")?;
    let content = insert.insert(params![text.key.as_bytes(), codec, bytes, length])?;
    Ok((content, codec == form::ERASED))
}

/// Only this many bytes at the beginning of a longer line, as in minified code, are indexed.
const LONG_LINE: usize = 4 << 10;

/// Only this many bytes at the beginning of a longer run without spaces, as in base64, are indexed.
const LONG_RUN: usize = 256;

/// Only this many bytes of a lock file are indexed.
const LOCK_FILE: usize = 64 << 10;

/// The names of lock files, besides those that end with `.lock`.
const LOCK_FILES: [&str; 5] =
    ["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "Package.resolved"];

/// The part of a text that is indexed; `path` is that of a file.
pub(super) fn indexable(text: &str, path: Option<&str>) -> String {
    let name = path.and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let is_lock = name.ends_with(".lock") || LOCK_FILES.contains(&name);
    let text = if is_lock { &text[..text.floor_char_boundary(LOCK_FILE)] } else { text };
    text.split_inclusive('\n').map(line).collect()
}

fn line(line: &str) -> Cow<'_, str> {
    if line.len() <= LONG_RUN {
        return Cow::Borrowed(line);
    }
    let mut kept = String::new();
    for run in line.split_inclusive(char::is_whitespace) {
        if kept.len() + run.len().min(LONG_RUN) > LONG_LINE {
            break;
        }
        kept.push_str(beginning(run));
    }
    kept.push('\n');
    Cow::Owned(kept)
}

/// The beginning of a long run, up to the end of a word, because half a word would be found as a word.
fn beginning(run: &str) -> &str {
    if run.len() <= LONG_RUN {
        return run;
    }
    let cut = &run[..run.floor_char_boundary(LONG_RUN)];
    let end = cut.rfind(|c: char| !c.is_alphanumeric() && c != '_');
    end.map_or("", |end| &cut[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_and_lines_are_cut_between_words() {
        let code = "fn main() {\n    body();\n}\n";
        assert_eq!(indexable(code, None), code);
        assert_eq!(indexable(&format!("key {}\nend", "QUJD".repeat(200)), None), "key \nend");
        let kept = indexable(&format!("{}\nend", "word,".repeat(200)), None);
        assert_eq!(kept, format!("{}word\nend", "word,".repeat(50)));
        let kept = indexable(&format!("begin {}last", "a = b; ".repeat(2_000)), None);
        assert!(kept.len() <= LONG_LINE + 1 && kept.starts_with("begin a = b;") && !kept.contains("last"));
    }

    #[test]
    fn indexes_only_the_beginning_of_lock_files() {
        let text = "name = \"x\"\n".repeat(20_000);
        assert_eq!(indexable(&text, Some("/p/Cargo.lock")).len(), LOCK_FILE);
        assert_eq!(indexable(&text, Some("/p/package-lock.json")).len(), LOCK_FILE);
        assert_eq!(indexable(&text, Some("/p/lock.txt")), text);
    }
}
