//! Which transactions there are, and what they wrote.

use std::collections::BTreeMap;

use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use rusqlite::{Connection, OptionalExtension};

use super::column;
use super::error::Result;

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
        changes.entry(ObjectId::new(column::text(row, 1)?)).or_insert(changed);
    }
    Ok(changes)
}
