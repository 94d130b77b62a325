//! The table `local`: values of this file alone, which are in no export.

use rusqlite::Connection;

use super::error::Result;

/// Sets a value of the `local` table within the current transaction.
pub(super) fn set_local(connection: &Connection, name: &str, value: &str) -> Result<()> {
    let set = "INSERT INTO local (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2";
    connection.execute(set, [name, value])?;
    Ok(())
}
