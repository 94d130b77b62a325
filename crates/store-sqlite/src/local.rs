//! The table `local`: values of this file alone, which are in no export.

use rusqlite::Connection;

use super::error::Result;

/// Prefix of the names of notes in the `local` table.
pub(super) const NOTE: &str = "note:";

/// Sets a value of the `local` table within the current transaction.
pub(super) fn set_local(connection: &Connection, name: &str, value: &str) -> Result<()> {
    let set = "INSERT INTO local (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2";
    connection.execute(set, [name, value])?;
    Ok(())
}
