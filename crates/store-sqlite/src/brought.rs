//! Transactions that brought in versions of another database, so that they are never taken for this machine's own. Each is
//! a separate row among the values of this place: noting one costs the same however many there are.

use std::collections::BTreeSet;

use context_model::time::TxId;
use rusqlite::Connection;

use super::error::Result;

/// Prefix of the names. The transaction's number follows, in digits that sort as numbers do.
const BROUGHT: &str = "brought:";

/// Notes within the current transaction that it brings in versions of another database.
pub(super) fn note(connection: &Connection, tx_id: i64) -> Result<()> {
    let insert = "INSERT OR IGNORE INTO local (name, value) VALUES (?, '')";
    connection.prepare_cached(insert)?.execute([name(tx_id.unsigned_abs())])?;
    Ok(())
}

/// Those of the transactions after this one, up to the other one.
pub(super) fn between(connection: &Connection, after: TxId, until: TxId) -> Result<BTreeSet<TxId>> {
    let find = "SELECT name FROM local WHERE name > ? AND name <= ?";
    let mut find = connection.prepare_cached(find)?;
    let names = find.query_map([name(after.0), name(until.0)], |row| row.get::<_, String>(0))?;
    let mut found = BTreeSet::new();
    for each in names {
        let number = each?.strip_prefix(BROUGHT).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        found.extend(number.map(TxId));
    }
    Ok(found)
}

fn name(tx_id: u64) -> String {
    format!("{BROUGHT}{tx_id:016x}")
}
