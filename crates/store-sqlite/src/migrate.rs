//! Numbered migrations. A migration that was released is never edited.

use rusqlite::{Connection, TransactionBehavior};

use super::error::Trouble;
use context_store::StoreError;

/// Marks the file as a context store, in SQLite's header.
const APPLICATION_ID: i32 = 0x6374_7873; // "ctxs"

/// The migrations in their order; the schema's number is how many were applied.
pub(super) const MIGRATIONS: [&str; 4] = [
    include_str!("migrations/0001-history.sql"),
    include_str!("migrations/0002-search.sql"),
    include_str!("migrations/0003-text-hash.sql"),
    include_str!("migrations/0004-forms.sql"),
];

/// The newest schema number that this version can read.
pub(super) const SCHEMA: i64 = MIGRATIONS.len() as i64;

/// Refuses files that are not ours or newer than this version.
pub(super) fn check(connection: &Connection) -> Result<(), Trouble> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (application != 0 || tables > 0) {
        let what = "the file is another program's database; choose another path";
        return Err(StoreError::Unavailable(what.into()).into());
    }
    if found > SCHEMA {
        return Err(StoreError::Newer { found, supported: SCHEMA }.into());
    }
    Ok(())
}

/// Applies what is missing, all of it in one transaction.
pub(super) fn run(connection: &Connection) -> Result<(), Trouble> {
    let current: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if current == SCHEMA {
        return Ok(());
    }
    let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have applied them first.
    check(&transaction)?;
    let current: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(current).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.commit()?;
    Ok(())
}
