//! Whether an object that was not found does not exist, or can't be found because of damage.

use std::sync::{Mutex, PoisonError};

use context_model::id::ObjectId;
use rusqlite::{Connection, OptionalExtension};

use crate::{AsOf, Result, StoreError};

/// What is known about the index that finds objects. A lookup can't show that the index has lost an entry, so each object is
/// looked up in it once. After that, a query for an unknown ID takes time only for the objects added since.
#[derive(Default)]
pub(super) struct Absent(Mutex<Checked>);

#[derive(Default)]
struct Checked {
    /// All objects with numbers up to this one are found by their IDs.
    up_to: i64,
    /// Some are not found, so every query scans the table.
    is_damaged: bool,
    /// How many objects have been looked up so far, if their numbers have no gaps.
    #[cfg(test)]
    looked_up: i64,
}

impl Absent {
    /// Fails if an object that was not found does exist, but its envelope or the path to it is damaged.
    ///
    /// # Errors
    /// `STORE_CORRUPT`.
    pub fn check(&self, connection: &Connection, id: &ObjectId, at: AsOf) -> Result<()> {
        let lost = || StoreError::Corrupt(format!("the envelope of object {:?} is damaged", id.as_str()));
        let found = |sql: &str, what: &dyn rusqlite::ToSql| -> Result<Option<i64>> {
            Ok(connection.prepare_cached(sql)?.query_row([what], |row| row.get(0)).optional()?)
        };
        let Some(object) = found("SELECT object FROM objects WHERE object_id = ?", &id.as_str())? else {
            if self.finds_all(connection)? {
                return Ok(());
            }
            let scan = "SELECT object FROM objects NOT INDEXED WHERE object_id = ?";
            return found(scan, &id.as_str())?.map_or(Ok(()), |_| Err(lost()));
        };
        // Each object has at least one version, and each version belongs to an object.
        let is_whole = found("SELECT object FROM objects NOT INDEXED WHERE object = ?", &object)?.is_some();
        if is_whole && at != AsOf::default() { Ok(()) } else { Err(lost()) }
    }

    /// Whether the index finds every object of the table.
    fn finds_all(&self, connection: &Connection) -> Result<bool> {
        let mut checked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if checked.is_damaged {
            return Ok(false);
        }
        let sql = "SELECT coalesce(max(o.object), ?1),
                          coalesce(sum(o.object IS NOT (SELECT i.object FROM objects i WHERE i.object_id = o.object_id)), 0)
                   FROM objects o NOT INDEXED WHERE o.object > ?1";
        let (last, lost): (i64, i64) = connection
            .prepare_cached(sql)?
            .query_row([checked.up_to], |row| Ok((row.get(0)?, row.get(1)?)))?;
        #[cfg(test)]
        {
            checked.looked_up += last - checked.up_to;
        }
        checked.is_damaged = lost > 0;
        checked.up_to = last;
        Ok(lost == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(connection: &Connection, numbers: std::ops::Range<i64>) {
        for n in numbers {
            connection.execute("INSERT INTO objects VALUES (?, ?)", (n, format!("object {n}"))).unwrap();
        }
    }

    fn store() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "CREATE TABLE objects (object INTEGER PRIMARY KEY, object_id TEXT NOT NULL UNIQUE)",
            )
            .unwrap();
        connection
    }

    #[test]
    fn each_object_is_looked_up_once_however_many_unknown_ids_are_asked_for() {
        let (connection, absent) = (store(), Absent::default());
        objects(&connection, 1..501);
        let ask =
            |n: usize| absent.check(&connection, &ObjectId::new(format!("unknown {n}")), AsOf::default());
        for n in 0..1_000 {
            assert_eq!(ask(n), Ok(()));
        }
        assert_eq!(absent.0.lock().unwrap().looked_up, 500);
        objects(&connection, 501..511);
        for n in 0..1_000 {
            assert_eq!(ask(n), Ok(()));
        }
        assert_eq!(absent.0.lock().unwrap().looked_up, 510);
    }

    #[test]
    fn an_object_that_the_index_has_lost_is_damaged_and_others_are_absent() {
        let (connection, absent) = (store(), Absent::default());
        objects(&connection, 1..10);
        // The index lacks the last two rows of the table.
        connection
            .execute_batch(
                "CREATE TABLE shorter (object INTEGER PRIMARY KEY, object_id TEXT NOT NULL UNIQUE);
                 INSERT INTO shorter SELECT * FROM objects WHERE object < 8;
                 PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_shorter_1')
                   WHERE name = 'sqlite_autoindex_objects_1';
                 PRAGMA writable_schema = RESET;",
            )
            .unwrap();
        let ask = |id: &str| absent.check(&connection, &ObjectId::new(id), AsOf::default());
        for _ in 0..2 {
            assert!(matches!(ask("object 9"), Err(StoreError::Corrupt(_))));
            assert_eq!(ask("object 10"), Ok(()));
        }
    }
}
