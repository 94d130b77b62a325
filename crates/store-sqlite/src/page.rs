//! Parts of histories, so that memory use depends on the part and not on the whole history: a page of one object, and what
//! transactions after a point wrote.

use std::collections::{BTreeMap, HashMap};

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch;
use context_model::time::{Timestamp, TxId};
use context_store::{StoreError, Version};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::columns::text;
use super::error::Result;
use super::read;
use super::row::{Row, TextColumn, select};

/// The versions of an object that transactions after this one wrote, in order. At most this many versions and about this
/// many bytes of text, but at least those of one transaction.
pub(super) fn page(
    moment: &Connection,
    id: &ObjectId,
    after: TxId,
    most: usize,
    most_bytes: usize,
) -> Result<Vec<Version>> {
    let mut find = moment.prepare_cached(
        "SELECT v.seq FROM versions v JOIN objects o USING (object) WHERE o.object_id = ? AND v.tx_id > ?",
    )?;
    let places = find.query_map(params![id.as_str(), number(after)], |row| row.get::<_, i64>(0))?;
    let mut places = places.collect::<rusqlite::Result<Vec<_>>>()?;
    places.sort_unstable();
    read_page(moment, id, &places, (most, most_bytes), |last, row| last.tx_id == row.tx())
}

/// The same by valid time and transaction: the versions behind this place.
pub(super) fn part(
    moment: &Connection,
    id: &ObjectId,
    after: Option<(Timestamp, TxId)>,
    limits: (usize, usize),
) -> Result<Vec<Version>> {
    let (valid_time, tx) = after.map_or((i64::MIN, -1), |(time, tx)| (time.millis(), number(tx)));
    let mut find = moment.prepare_cached(
        "SELECT v.seq FROM versions v JOIN objects o USING (object)
         WHERE o.object_id = ? AND (v.valid_from, v.tx_id) > (?, ?) ORDER BY v.valid_from, v.tx_id, v.seq",
    )?;
    let places = find.query_map(params![id.as_str(), valid_time, tx], |row| row.get::<_, i64>(0))?;
    let places = places.collect::<rusqlite::Result<Vec<_>>>()?;
    read_page(moment, id, &places, limits, |last, row| {
        (last.valid_time, last.tx_id) == (row.times().1, row.tx())
    })
}

/// The versions at the first of these places: at most this many versions and about this many bytes, but all that belong
/// together.
fn read_page(
    moment: &Connection,
    id: &ObjectId,
    places: &[i64],
    (most, most_bytes): (usize, usize),
    is_together: impl Fn(&Version, &Row<'_>) -> bool,
) -> Result<Vec<Version>> {
    let mut fetch = moment.prepare_cached(&select(TextColumn::Fetched, "WHERE v.seq = ?"))?;
    let mut versions: Vec<Version> = Vec::new();
    let mut chains: HashMap<i64, usize> = HashMap::new();
    let mut bytes = 0;
    for place in places {
        let mut rows = fetch.query([place])?;
        let sql = rows
            .next()?
            .ok_or_else(|| StoreError::Corrupt(format!("a version of object {id:?} is missing")))?;
        let row = Row::read(moment, sql)?;
        if row.object_id != id.as_str() {
            return Err(row.damaged());
        }
        let is_full = versions.len() >= most || bytes >= most_bytes;
        if is_full && versions.last().is_some_and(|last| !is_together(last, &row)) {
            break;
        }
        // The first patched version of a chain is built from its base, each later one from the one before.
        let chain = row.base.unwrap_or(row.seq);
        let version = match (row.base.and_then(|base| chains.get(&base)), row.patch(moment)?) {
            (Some(before), Some(change)) => {
                let document = patch::apply(versions[*before].document.clone(), [&change])?;
                let (tx_time, valid_time) = row.times();
                let erased = row.erased()?.or_else(|| versions[*before].erased.clone());
                Version { document, tx_id: row.tx(), tx_time, valid_time, erased }
            }
            _ => read::version(moment, row, sql)?,
        };
        chains.insert(chain, versions.len());
        bytes += length(&version.document);
        versions.push(version);
    }
    Ok(versions)
}

/// The objects that the transactions after this one wrote, in order: at most this many writes, of whole transactions.
pub(super) fn written_after(connection: &Connection, tx: TxId, most: usize) -> Result<Vec<(TxId, ObjectId)>> {
    let moment = connection.unchecked_transaction()?;
    // Row numbers and transactions increase together, so a binary search needs no index of transactions.
    let tx_at = |seq: i64| -> Result<Option<i64>> {
        let mut find =
            moment.prepare_cached("SELECT tx_id FROM versions WHERE seq >= ? ORDER BY seq LIMIT 1")?;
        Ok(find.query_row([seq], |row| row.get(0)).optional()?)
    };
    let newest = "SELECT coalesce(max(seq), 0) FROM versions";
    let (mut low, mut high) = (0, moment.query_row(newest, [], |row| row.get::<_, i64>(0))? + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if tx_at(middle)?.is_none_or(|found| found > number(tx)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let mut find = moment.prepare_cached(
        "SELECT v.tx_id, o.object_id FROM versions v JOIN objects o USING (object) WHERE v.seq >= ? ORDER BY v.seq",
    )?;
    let mut rows = find.query([low])?;
    let mut written: Vec<(TxId, ObjectId)> = Vec::new();
    while let Some(row) = rows.next()? {
        let tx = TxId(row.get::<_, i64>(0)?.unsigned_abs());
        if written.len() >= most && written.last().is_some_and(|(last, _)| *last != tx) {
            break;
        }
        written.push((tx, ObjectId::new(text(row, 1)?)));
    }
    Ok(written)
}

/// A version among those of its object that hold from the same moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionAt {
    /// The transaction that wrote it.
    pub tx_id: TxId,
    /// Its content.
    pub content_hash: Digest,
    /// The place that it was read from.
    pub source_hash: Option<Digest>,
    /// True if its owner has erased something of it.
    pub is_erased: bool,
}

impl VersionAt {
    /// True if it says the same as this version.
    #[must_use]
    pub fn is_like(&self, version: &Version) -> bool {
        let document = &version.document;
        (self.content_hash, self.source_hash) == (document.content_hash(), document.source_hash())
    }
}

/// The versions of an object that hold from this moment on, in the order in which they were written.
pub(super) fn at(connection: &Connection, id: &ObjectId, valid_time: Timestamp) -> Result<Vec<VersionAt>> {
    let moment = connection.unchecked_transaction()?;
    let rest = "WHERE v.object = (SELECT object FROM objects WHERE object_id = ?) AND v.valid_from = ? ORDER BY v.seq";
    let mut find = moment.prepare_cached(&select(TextColumn::Fetched, rest))?;
    let mut rows = find.query(params![id.as_str(), valid_time.millis()])?;
    let mut found = Vec::new();
    while let Some(sql) = rows.next()? {
        let row = Row::read(&moment, sql)?;
        let (tx_id, is_erased) = (row.tx(), row.erased()?.is_some());
        let (content_hash, source_hash) = match row.digest(row.content_hash)? {
            Some(content) => (content, row.digest(row.source_hash)?),
            None => {
                let document = read::version(&moment, row, sql)?.document;
                (document.content_hash(), document.source_hash())
            }
        };
        found.push(VersionAt { tx_id, content_hash, source_hash, is_erased });
    }
    Ok(found)
}

fn number(tx: TxId) -> i64 {
    i64::try_from(tx.0).unwrap_or(i64::MAX)
}

/// About the length of a document in bytes.
fn length(document: &Document) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len() + 8,
            Value::Array(items) => items.iter().map(of).sum::<usize>() + 8,
            Value::Object(map) => map.iter().map(|(name, value)| name.len() + 16 + of(value)).sum(),
            _ => 8,
        }
    }
    document.payload().iter().map(|(name, value)| name.len() + of(value)).sum()
}

/// The newest transaction number, 0 in an empty store.
pub(super) fn latest_tx(connection: &Connection) -> Result<TxId> {
    let mut statement = connection.prepare_cached("SELECT coalesce(max(tx_id), 0) FROM txs")?;
    Ok(TxId(statement.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs()))
}

/// The time of the first transaction after this one.
pub(super) fn time_after(connection: &Connection, tx: TxId) -> Result<Option<Timestamp>> {
    let sql = "SELECT tx_time FROM txs WHERE tx_id > ? ORDER BY tx_id LIMIT 1";
    let tx = i64::try_from(tx.0).unwrap_or(i64::MAX);
    let time = connection.prepare_cached(sql)?.query_row([tx], |row| row.get(0)).optional()?;
    Ok(time.map(Timestamp::from_millis))
}

/// The objects that transactions after this one wrote.
pub(super) fn changes_since(connection: &Connection, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>> {
    // From the end backwards: this takes time only for the changes and needs no index of transactions.
    let sql = "SELECT v.tx_id, o.object_id FROM versions v JOIN objects o USING (object) ORDER BY v.seq DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut changes = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let changed = TxId(row.get::<_, i64>(0)?.unsigned_abs());
        if changed <= tx {
            break;
        }
        changes.entry(ObjectId::new(text(row, 1)?)).or_insert(changed);
    }
    Ok(changes)
}
