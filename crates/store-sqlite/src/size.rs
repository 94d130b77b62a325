//! How large a store is, and what takes the space.

use rusqlite::Connection;

use super::error::Result;

/// What a store contains.
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
