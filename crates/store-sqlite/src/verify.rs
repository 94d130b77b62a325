//! Reads everything: names the damage, and counts the space.

use std::collections::{BTreeMap, HashMap};

use context_model::id::ObjectId;
use context_model::time::TxId;
use context_store::{Damage, StoreError};
use rusqlite::Connection;

use super::error::{Result, Trouble};
use super::form::{self, StoredText};
use super::row::{Row, TextColumn, content, select};

/// Checks every version, and the file as a whole.
pub(super) fn verify(connection: &Connection) -> Result<Vec<Damage>> {
    let mut damages = Vec::new();
    let places = places(connection, &mut damages);
    let mut chains = HashMap::new();
    for (seq, (tx_id, id)) in &places {
        if let Err(error) = one(connection, *seq, &mut chains) {
            damages.push(Damage { id: id.clone(), tx_id: Some(*tx_id), what: cause(error)? });
        }
    }
    contents(connection, &mut damages)?;
    structure(connection, &mut damages)?;
    Ok(damages)
}

/// Place and object of each version, as far as they can be read.
fn places(connection: &Connection, damages: &mut Vec<Damage>) -> BTreeMap<i64, (TxId, Option<ObjectId>)> {
    let mut places = BTreeMap::new();
    // The index and the table are read separately, because one may still have the versions that the other has lost.
    for source in ["versions INDEXED BY versions_by_object", "versions NOT INDEXED"] {
        let read = || -> Result<Vec<(i64, i64, i64)>> {
            let mut statement = connection.prepare(&format!("SELECT seq, tx_id, object FROM {source}"))?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        match read() {
            Ok(rows) => {
                for (seq, tx, object) in rows {
                    let id = || {
                        let sql = "SELECT object_id FROM objects WHERE object = ?";
                        connection
                            .query_row(sql, [object], |row| row.get::<_, String>(0))
                            .ok()
                            .map(ObjectId::new)
                    };
                    places.entry(seq).or_insert_with(|| (TxId(tx.unsigned_abs()), id()));
                }
            }
            Err(error) => {
                damages.push(Damage { id: None, tx_id: None, what: error.into_store().to_string() })
            }
        }
    }
    places
}

/// Reads one version and everything that it consists of. `chains` has the intact whole versions, each with the number of
/// intact patches after it so far.
fn one(connection: &Connection, seq: i64, chains: &mut HashMap<i64, i64>) -> Result<()> {
    let mut statement = connection.prepare_cached(&select(TextColumn::Fetched, "WHERE v.seq = ?"))?;
    let mut rows = statement.query([seq])?;
    let sql = rows
        .next()?
        .ok_or_else(|| StoreError::Corrupt("its row, object, transaction or content is missing".into()))?;
    let row = Row::read(connection, sql)?;
    if row.patch(connection)?.is_none() {
        row.document(connection, content(connection, sql)?)?;
        chains.insert(seq, 0);
        return Ok(());
    }
    let before = row.base.and_then(|base| chains.get_mut(&base));
    match before {
        Some(patches) if row.depth == Some(*patches + 1) => {
            *patches += 1;
            Ok(())
        }
        _ => Err(StoreError::Corrupt("a version that it changes is missing or damaged".into()).into()),
    }
}

fn contents(connection: &Connection, damages: &mut Vec<Damage>) -> Result<()> {
    let mut check = || -> Result<()> {
        let mut statement = connection.prepare("SELECT content FROM contents")?;
        let contents = statement.query_map([], |row| row.get::<_, i64>(0))?;
        for content in contents.collect::<rusqlite::Result<Vec<_>>>()? {
            match form::text_of(connection, content).map_err(Trouble::into_store) {
                Ok(StoredText::Text(_) | StoredText::Erased) => {}
                Err(StoreError::Corrupt(_)) => {
                    let what = format!("content {content} does not match its hash");
                    damages.push(Damage { id: None, tx_id: None, what });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    };
    if let Err(error) = check() {
        damages.push(Damage { id: None, tx_id: None, what: cause(error)? });
    }
    Ok(())
}

/// SQLite's own check of its pages and indexes.
fn structure(connection: &Connection, damages: &mut Vec<Damage>) -> Result<()> {
    let check = || -> Result<Vec<String>> {
        let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    };
    match check() {
        Ok(lines) => damages.extend(lines.into_iter().filter(|line| line != "ok").map(|what| Damage {
            id: None,
            tx_id: None,
            what,
        })),
        Err(error) => damages.push(Damage { id: None, tx_id: None, what: cause(error)? }),
    }
    Ok(())
}

/// The damage that an error reports; other errors end the check.
fn cause(error: Trouble) -> Result<String> {
    match error.into_store() {
        StoreError::Corrupt(what) => Ok(what),
        other => Err(other.into()),
    }
}

/// The contents of a store, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Objects.
    pub objects: u64,
    /// Versions of all objects.
    pub versions: u64,
    /// Transactions.
    pub transactions: u64,
    /// Distinct texts.
    pub contents: u64,
    /// Bytes of the distinct texts.
    pub content_bytes: u64,
    /// Bytes of the database, without the log.
    pub file_bytes: u64,
    /// Bytes of the database that are free for new data.
    pub free_bytes: u64,
    /// Bytes of each table and index, the largest first.
    pub tables: Vec<(String, u64)>,
}

/// Counts everything; reads every page of the file.
pub(super) fn size(connection: &Connection) -> Result<Size> {
    let moment = connection.unchecked_transaction()?;
    let one = |sql: &str| -> Result<u64> {
        Ok(moment.query_row(sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
    };
    let page = one("PRAGMA page_size")?;
    let mut statement =
        moment.prepare("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC, 1")?;
    let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
    Ok(Size {
        objects: one("SELECT count(*) FROM objects")?,
        versions: one("SELECT count(*) FROM versions")?,
        transactions: one("SELECT count(*) FROM txs")?,
        contents: one("SELECT count(*) FROM contents")?,
        content_bytes: one("SELECT coalesce(sum(length), 0) FROM contents")?,
        file_bytes: page * one("PRAGMA page_count")?,
        free_bytes: page * one("PRAGMA freelist_count")?,
        tables: tables.collect::<rusqlite::Result<_>>()?,
    })
}
