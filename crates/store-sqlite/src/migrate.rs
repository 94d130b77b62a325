//! Numbered migrations. A migration that was released is never edited.

use context_store::StoreError;
use rusqlite::{Connection, TransactionBehavior};

use super::error::Result;

/// Marks the file as a context store, in SQLite's header.
const APPLICATION_ID: i32 = 0x6374_7873; // "ctxs"

/// The schema, and the migrations that were released after it, in their order. The schema's number is how many were applied.
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];

/// Refuses files that are not ours or newer than this version.
pub(super) fn check(connection: &Connection) -> Result<()> {
    // Of one moment: another process may be making the file, and then it has tables but no mark yet, or the other way round.
    let moment = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Deferred)?;
    check_for(&moment, &MIGRATIONS)
}

/// The same, and refuses a schema that has to be brought up to date first.
pub(super) fn check_current(connection: &Connection) -> Result<()> {
    let moment = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Deferred)?;
    check_for(&moment, &MIGRATIONS)?;
    let found: i64 = moment.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found < MIGRATIONS.len() as i64 {
        let what = "the file is empty or of an older version; a session that writes brings it up to date";
        return Err(StoreError::Unavailable(what.into()).into());
    }
    Ok(())
}

/// Applies the missing steps, all of them in one transaction.
pub(super) fn run(connection: &Connection) -> Result<()> {
    run_all(connection, &MIGRATIONS)
}

fn check_for(connection: &Connection, migrations: &[&str]) -> Result<()> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (application != 0 || tables > 0) {
        let what = "the file is another program's database; choose another path";
        return Err(StoreError::Unavailable(what.into()).into());
    }
    let supported = migrations.len() as i64;
    if found > supported {
        return Err(StoreError::Newer { found, supported }.into());
    }
    Ok(())
}

fn run_all(connection: &Connection, migrations: &[&str]) -> Result<()> {
    let newest = migrations.len() as i64;
    let current: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if current == newest {
        return Ok(());
    }
    let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have applied them first.
    check_for(&transaction, migrations)?;
    let current: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for migration in migrations.iter().skip(usize::try_from(current).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", newest)?;
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

    use super::*;

    /// The mark is read before the tables: another process makes both in between.
    #[test]
    fn a_store_in_the_making_counts_as_ours() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("store.db");
        let other = Connection::open(&path).unwrap();
        other.pragma_update(None, "journal_mode", "wal").unwrap();
        let mut connection = Connection::open(&path).unwrap();
        let made = Arc::new(AtomicBool::new(false));
        let is_made = Arc::clone(&made);
        let other = Mutex::new(other);
        let make = move |context: AuthContext<'_>| {
            if matches!(context.action, AuthAction::Select) {
                run(&other.lock().unwrap()).unwrap();
                is_made.store(true, Ordering::Relaxed);
            }
            Authorization::Allow
        };
        connection.authorizer(Some(make)).unwrap();
        check(&connection).unwrap();
        assert!(made.load(Ordering::Relaxed));
        check(&connection).unwrap();
    }

    #[test]
    fn older_schema_is_brought_up_to_date_and_newer_one_is_refused() {
        let later = [MIGRATIONS[0], "CREATE TABLE later (one INTEGER) STRICT"];
        let connection = Connection::open_in_memory().unwrap();
        run(&connection).unwrap();
        connection.execute("INSERT INTO local VALUES ('name', 'kept')", []).unwrap();
        run_all(&connection, &later).unwrap();
        run_all(&connection, &later).unwrap();
        let sql = "SELECT value FROM local, (SELECT count(*) FROM later)";
        let kept: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(kept, "kept");
        for refused in [check(&connection), run(&connection)] {
            let error = StoreError::from(refused.unwrap_err());
            assert_eq!(error, StoreError::Newer { found: 2, supported: 1 });
        }
    }
}
