//! A store as the journal of another database: what that one has is brought in here, and what was written here is listed for
//! it.

use std::collections::BTreeSet;

use context_model::id::ObjectId;
use context_model::patch::Patch;
use context_model::time::{Timestamp, TxId};
use context_store::{Erased, Receipt, Result, Transaction, Write};
use rusqlite::Connection;

use super::local::NOTE;
use super::prepare::{Prepared, PreparedWrite};
use super::{SqliteStore, VersionAt, brought, page};

impl SqliteStore {
    /// When the first transaction after this one was made. Reads one row on the caller's thread.
    pub fn time_after(&self, tx: TxId) -> Result<Option<Timestamp>> {
        self.here(|connection| page::time_after(connection, tx))
    }

    /// The objects that the transactions after this one wrote: at most this many writes, of whole transactions.
    pub async fn written_after(&self, tx: TxId, most: usize) -> Result<Vec<(TxId, ObjectId)>> {
        self.pool()?.away(move |connection| page::written_after(connection, tx, most)).await
    }

    /// As [`Store::transact`](context_store::Store::transact), for versions of another database, with the mark of each whole
    /// one that its owner has erased there. [`SqliteStore::brought_between`] tells such transactions from others.
    pub async fn bring_in(&self, transaction: Transaction, marks: &[Option<Erased>]) -> Result<Receipt> {
        let mut prepared = Prepared { is_brought: true, ..Prepared::new(transaction)? };
        prepared.mark(marks)?;
        self.write(prepared).await
    }

    /// As [`Store::transact`](context_store::Store::transact), but a write without a valid time is dated a millisecond
    /// after the latest version, if that is not older: an object has one version at a time. `marks`: those of whole documents that
    /// come from an export.
    pub async fn transact_after_latest(
        &self,
        transaction: Transaction,
        marks: &[Option<Erased>],
    ) -> Result<Receipt> {
        let mut prepared = Prepared { is_after_latest: true, ..Prepared::new(transaction)? };
        prepared.mark(marks)?;
        self.write(prepared).await
    }

    /// Those of the transactions after this one, up to the other one, that brought in versions of another database.
    pub async fn brought_between(&self, after: TxId, until: TxId) -> Result<BTreeSet<TxId>> {
        self.pool()?.away(move |connection| brought::between(connection, after, until)).await
    }

    /// The versions of an object that hold from this moment on, in the order in which they were written.
    pub async fn versions_at(&self, id: &ObjectId, valid_time: Timestamp) -> Result<Vec<VersionAt>> {
        let id = id.clone();
        self.pool()?.away(move |connection| page::at(connection, &id, valid_time)).await
    }

    /// Writes a version of another database that holds from an earlier time on, as the patch that makes it of the version that the transaction
    /// `of` wrote. So a long past takes what its changes take.
    ///
    /// # Errors
    /// `CONFLICT` if the latest version is not of the expected transaction, if there is no version of `of`, or if a patch of
    /// it has been stored before: then the version has to be written whole. What [`Store::transact`](context_store::Store::transact) reports.
    pub async fn write_grown(
        &self,
        id: ObjectId,
        patch: Patch,
        valid_time: Timestamp,
        of: TxId,
        expected: Option<TxId>,
    ) -> Result<Receipt> {
        let expected = vec![(id.clone(), expected)];
        let writes = vec![Write::Patch { id, patch, valid_time: Some(valid_time) }];
        let transaction = Transaction { writes, expected };
        let mut prepared = Prepared { is_brought: true, ..Prepared::new(transaction)? };
        for write in &mut prepared.writes {
            if let PreparedWrite::Patch(patch) = write {
                patch.of = Some(of);
            }
        }
        self.write(prepared).await
    }

    /// The time from which each version of an object holds, oldest first.
    pub async fn valid_times(&self, id: &ObjectId) -> Result<Vec<Timestamp>> {
        let id = id.clone();
        let read = move |connection: &Connection| {
            let sql = "SELECT v.valid_from FROM versions v JOIN objects o USING (object)
                       WHERE o.object_id = ? ORDER BY v.valid_from";
            let mut find = connection.prepare_cached(sql)?;
            let times = find.query_map([id.as_str()], |row| row.get(0).map(Timestamp::from_millis))?;
            Ok(times.collect::<rusqlite::Result<_>>()?)
        };
        self.pool()?.away(read).await
    }

    /// As [`Store::set_note`](context_store::Store::set_note), for many notes with one text.
    pub async fn set_notes(&self, names: Vec<String>, text: &str) -> Result<()> {
        let names: Vec<String> = names.iter().map(|name| format!("{NOTE}{name}")).collect();
        let text = text.to_owned();
        self.call(move |writer| writer.set_locals(&names, &text)).await
    }
}
