//! Remembers whether an object that was not found does not exist, or can't be found because of damage.

use std::sync::{Mutex, PoisonError};

use context_model::id::ObjectId;
use rusqlite::{Connection, OptionalExtension};

use super::error::{Result, Trouble};
use context_store::{AsOf, StoreError};

/// Objects that a query for an unknown ID looks up at most, so that its time does not grow with the store. In a large store
/// each of them is on a separate page: 1,000 of them took 4 ms at 10 GB.
const PORTION: i64 = 50;

/// The state of the index that finds objects, as far as it is known. A lookup can't show that the index has lost an
/// entry, so each object is looked up in it once, a portion at each query for an unknown ID. After that, such a query
/// takes time only for the objects added since. Until then, the entries around the ID's place show damage at that
/// place.
#[derive(Default)]
pub(super) struct NegativeCache(Mutex<Checked>);

#[derive(Default)]
struct Checked {
    /// All objects with numbers up to this one are found by their IDs.
    up_to: i64,
    /// Some are not found, so every query scans the table.
    is_damaged: bool,
    /// Number of objects that have been looked up so far, if their numbers have no gaps.
    #[cfg(test)]
    looked_up: i64,
}

impl NegativeCache {
    /// Fails if an object that was not found does exist, but its envelope or the path to it is damaged.
    pub(crate) fn check(&self, connection: &Connection, id: &ObjectId, at: AsOf) -> Result<()> {
        let lost = || {
            Trouble::from(StoreError::Corrupt(format!("the envelope of object {:?} is damaged", id.as_str())))
        };
        let found = |sql: &str, what: &dyn rusqlite::ToSql| -> Result<Option<i64>> {
            Ok(connection.prepare_cached(sql)?.query_row([what], |row| row.get(0)).optional()?)
        };
        let Some(object) = found("SELECT object FROM objects WHERE object_id = ?", &id.as_str())? else {
            if self.finds_more(connection)? && is_intact_around(connection, id)? {
                return Ok(());
            }
            let scan = "SELECT object FROM objects NOT INDEXED WHERE object_id = ?";
            return found(scan, &id.as_str())?.map_or(Ok(()), |_| Err(lost()));
        };
        // Each object has at least one version, and each version belongs to an object.
        let is_whole = found("SELECT object FROM objects NOT INDEXED WHERE object = ?", &object)?.is_some();
        if is_whole && at != AsOf::default() { Ok(()) } else { Err(lost()) }
    }

    /// Looks up the next objects of the table. False once the index does not find one of them.
    fn finds_more(&self, connection: &Connection) -> Result<bool> {
        let mut checked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if checked.is_damaged {
            return Ok(false);
        }
        let sql = "SELECT coalesce(max(object), ?1), coalesce(sum(is_lost), 0) FROM (
                     SELECT o.object,
                            o.object IS NOT (SELECT i.object FROM objects i WHERE i.object_id = o.object_id) AS is_lost
                     FROM objects o NOT INDEXED WHERE o.object > ?1 ORDER BY o.object LIMIT ?2
                   )";
        let (last, lost): (i64, i64) = connection
            .prepare_cached(sql)?
            .query_row([checked.up_to, PORTION], |row| Ok((row.get(0)?, row.get(1)?)))?;
        #[cfg(test)]
        {
            checked.looked_up += last - checked.up_to;
        }
        checked.is_damaged = lost > 0;
        checked.up_to = last;
        Ok(lost == 0)
    }
}

/// True if the entries of the index on both sides of an ID that it does not find are in order, and belong to their objects.
/// A search misled by an altered entry ends beside that entry.
fn is_intact_around(connection: &Connection, id: &ObjectId) -> Result<bool> {
    let beside = |sql: &str| -> Result<Vec<(String, bool)>> {
        let mut find = connection.prepare_cached(sql)?;
        let found = find.query_map([id.as_str()], |row| {
            let name: String = row.get(0)?;
            let is_its_own = row.get::<_, Option<String>>(1)?.is_some_and(|own| own == name);
            Ok((name, is_its_own))
        })?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    };
    let mut around = beside(BEFORE)?;
    around.reverse();
    let before = around.len();
    around.extend(beside(AFTER)?);
    let names: Vec<&str> = around.iter().map(|(name, _)| name.as_str()).collect();
    let is_between = names[..before].iter().all(|name| *name < id.as_str())
        && names[before..].iter().all(|name| *name > id.as_str());
    Ok(is_between && names.is_sorted_by(|a, b| a < b) && around.iter().all(|(_, is_its_own)| *is_its_own))
}

const BEFORE: &str =
    "SELECT i.object_id, (SELECT o.object_id FROM objects o NOT INDEXED WHERE o.object = i.object)
     FROM objects i WHERE i.object_id < ? ORDER BY i.object_id DESC LIMIT 2";
const AFTER: &str =
    "SELECT i.object_id, (SELECT o.object_id FROM objects o NOT INDEXED WHERE o.object = i.object)
     FROM objects i WHERE i.object_id > ? ORDER BY i.object_id LIMIT 2";

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "CREATE TABLE objects (object INTEGER PRIMARY KEY, object_id TEXT NOT NULL UNIQUE)";

    fn objects(connection: &Connection, numbers: std::ops::Range<i64>) {
        connection.execute_batch("BEGIN").unwrap();
        for n in numbers {
            connection.execute("INSERT INTO objects VALUES (?, ?)", (n, format!("object {n}"))).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
    }

    fn store() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLE).unwrap();
        connection
    }

    #[test]
    fn each_object_is_looked_up_once_however_many_unknown_ids_are_asked_for() {
        let (connection, negative) = (store(), NegativeCache::default());
        objects(&connection, 1..501);
        let ask = |n: usize| {
            negative
                .check(&connection, &ObjectId::new(format!("unknown {n}")), AsOf::default())
                .map_err(StoreError::from)
        };
        for n in 0..1_000 {
            assert_eq!(ask(n), Ok(()));
        }
        assert_eq!(negative.0.lock().unwrap().looked_up, 500);
        objects(&connection, 501..511);
        for n in 0..1_000 {
            assert_eq!(ask(n), Ok(()));
        }
        assert_eq!(negative.0.lock().unwrap().looked_up, 510);
        objects(&connection, 511..4_000);
        for query in 1..80 {
            assert_eq!(ask(0), Ok(()));
            let expected = (510 + query * PORTION).min(3_999);
            assert_eq!(negative.0.lock().unwrap().looked_up, expected, "one portion at each query");
        }
    }

    /// Gives the table the index of another one, which has other rows.
    fn damage(connection: &Connection, rows: &str) {
        let sql = format!(
            "CREATE TABLE other (object INTEGER PRIMARY KEY, object_id TEXT NOT NULL UNIQUE);
             INSERT INTO other {rows};
             PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_other_1')
               WHERE name = 'sqlite_autoindex_objects_1';
             PRAGMA writable_schema = RESET;"
        );
        connection.execute_batch(&sql).unwrap();
    }

    #[test]
    fn the_first_query_notices_an_altered_entry_in_a_large_index() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("altered.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(TABLE).unwrap();
        objects(&connection, 1..10_000);
        drop(connection);
        let intact = std::fs::read(&path).unwrap();
        for n in [2_001, 5_000, 7_777, 8_888, 9_999] {
            let name = format!("object {n}").into_bytes();
            let places: Vec<usize> =
                (0..intact.len() - name.len()).filter(|at| intact[*at..].starts_with(&name)).collect();
            assert!(places.len() >= 2, "in the table and in the index");
            for at in places {
                let mut altered = intact.clone();
                altered[at + name.len() - 2] ^= 0x40;
                std::fs::write(&path, altered).unwrap();
                let (connection, negative) = (Connection::open(&path).unwrap(), NegativeCache::default());
                let ask = |id: &str| {
                    negative.check(&connection, &ObjectId::new(id), AsOf::default()).map_err(StoreError::from)
                };
                assert!(matches!(ask(&format!("object {n}")), Err(StoreError::Corrupt(_))), "{n} at {at}");
                assert_eq!(ask("object 10000"), Ok(()));
            }
        }
    }

    #[test]
    fn notices_lost_entries_of_a_large_index_after_some_queries() {
        let (connection, negative) = (store(), NegativeCache::default());
        objects(&connection, 1..5_000);
        damage(&connection, "SELECT * FROM objects WHERE object < 4990");
        let ask = |id: &str| {
            negative.check(&connection, &ObjectId::new(id), AsOf::default()).map_err(StoreError::from)
        };
        let first = (0..200).position(|_| ask("object 4995").is_err());
        assert_eq!(first, Some(99), "the portion that has it is the 100th");
    }

    #[test]
    fn an_object_lost_from_the_index_is_damaged_and_others_are_absent() {
        let (connection, negative) = (store(), NegativeCache::default());
        objects(&connection, 1..10);
        damage(&connection, "SELECT * FROM objects WHERE object < 8");
        let ask = |id: &str| {
            negative.check(&connection, &ObjectId::new(id), AsOf::default()).map_err(StoreError::from)
        };
        for _ in 0..2 {
            assert!(matches!(ask("object 9"), Err(StoreError::Corrupt(_))));
            assert_eq!(ask("object 10"), Ok(()));
        }
    }
}
