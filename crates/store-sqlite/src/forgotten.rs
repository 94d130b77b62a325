//! Erased texts that can't be told from the erased texts of the store: short ones, which may return as part of a payload,
//! and those that are erased wherever they occur. They are remembered by their hashes, so that they are not stored again.

use context_store::StoreError;
use context_store::backend::erasing::{Gone, Needles, Position, each_said, each_said_in_patch};
use rusqlite::{Connection, params};
use serde_json::Value;
use std::collections::BTreeSet;

use super::columns::text;
use super::error::Result;
use super::form::{self, StoredText};
use super::row::{Row, TextColumn, select};

/// The texts that were forgotten, as far as this connection has read them.
#[derive(Default)]
pub(super) struct Forgotten {
    record: i64,
    gone: Gone,
}

impl Forgotten {
    /// All that is forgotten now. Costs a look at the last record, unless there are new ones.
    pub(crate) fn newest(&mut self, connection: &Connection) -> Result<&Gone> {
        let mut last = connection.prepare_cached("SELECT coalesce(max(record), 0) FROM forgotten")?;
        let last: i64 = last.query_row([], |row| row.get(0))?;
        if last != self.record {
            let mut find =
                connection.prepare("SELECT hashes FROM forgotten WHERE record > ? ORDER BY record")?;
            let mut rows = find.query([self.record])?;
            while let Some(row) = rows.next()? {
                let damaged =
                    |_| StoreError::Corrupt("what was forgotten can't be read; restore the file".into());
                self.gone.extend(serde_json::from_str(text(row, 0)?).map_err(damaged)?);
            }
            self.record = last;
        }
        Ok(&self.gone)
    }
}

/// Remembers the needles and the words of these versions: of `whole` ones all, of `touched` ones those with a needle; and the
/// texts that are to be erased.
pub(super) fn remember(
    connection: &Connection,
    whole: &BTreeSet<i64>,
    touched: &BTreeSet<i64>,
    contents: &BTreeSet<i64>,
    needles: &Needles,
) -> Result<()> {
    let mut gone = Gone::default();
    for content in contents {
        // Damage is reported when the text is read; lost text is not remembered.
        if let Ok(StoredText::Text(text)) = form::text_of(connection, *content) {
            gone.add_said(&text);
        }
    }
    for seq in whole {
        each_word(connection, *seq, &mut |text| gone.add_said(text))?;
    }
    if !gone.is_empty() {
        spare(connection, whole, contents, &mut gone)?;
    }
    for seq in touched.difference(whole) {
        each_word(connection, *seq, &mut |text| gone.add_match(text, needles))?;
    }
    gone.add_fragments(needles);
    let mut known = Forgotten::default();
    let known = known.newest(connection)?;
    let mut both = known.clone();
    both.extend(gone.clone());
    if both != *known {
        let json = serde_json::to_string(&gone)
            .map_err(|_| StoreError::Invalid("these texts can't be remembered".into()))?;
        connection.prepare_cached("INSERT INTO forgotten (hashes) VALUES (?)")?.execute([json])?;
    }
    Ok(())
}

/// Leaves out what also stands in versions that stay, and the paths of files.
fn spare(
    connection: &Connection,
    whole: &BTreeSet<i64>,
    contents: &BTreeSet<i64>,
    gone: &mut Gone,
) -> Result<()> {
    let mut find = connection.prepare("SELECT content FROM contents WHERE sha256 = ? AND codec <> ?")?;
    gone.spare_if(|key| {
        let found = find.query_row(params![key.as_bytes(), form::ERASED], |row| row.get::<_, i64>(0));
        found.is_ok_and(|content| !contents.contains(&content))
    });
    let mut paths = connection.prepare("SELECT path FROM objects WHERE path IS NOT NULL")?;
    for path in paths.query_map([], |row| row.get::<_, String>(0))? {
        gone.spare_path(&path?);
    }
    let mut all = connection.prepare("SELECT seq FROM versions")?;
    for seq in all.query_map([], |row| row.get::<_, i64>(0))? {
        let seq = seq?;
        if !whole.contains(&seq) {
            each_word(connection, seq, &mut |text| gone.spare(text))?;
        }
    }
    Ok(())
}

/// The words of a version that its own row has: no long ones, which are texts of their own.
fn each_word(connection: &Connection, seq: i64, use_it: &mut impl FnMut(&str)) -> Result<()> {
    let mut find = connection.prepare_cached(&select(TextColumn::Left, "WHERE v.seq = ?"))?;
    let mut rows = find.query([seq])?;
    let Some(sql) = rows.next()? else { return Ok(()) };
    // Damage is reported when the version is read; a lost version is not remembered.
    let Ok(row) = Row::read(connection, sql) else { return Ok(()) };
    let read = |json: &str| serde_json::from_str::<Value>(&json.replace('\u{1}', ""));
    if let Ok(body) = read(&row.body) {
        each_said(&body, Position::Payload, use_it);
    }
    if let Some(Ok(patch)) = row.patch.as_deref().map(read) {
        each_said_in_patch(&patch, use_it);
    }
    Ok(())
}
