//! Removals by the owner of a store, and by its limits.

use std::time::Instant;

use rusqlite::{Transaction, TransactionBehavior};

use context_store::{Erase, Erased, ErasedCount, StoreError};

use super::{LIMIT_TIME, Writer};
use crate::error::{Result, Trouble};
use crate::prune::{self, Left, Which};
use crate::{erase, index, rewrite};

impl Writer {
    /// Erases the texts that the owner of the store wants to forget, and then rewrites the whole file. The count includes
    /// the erasures of earlier calls that ended before the file was rewritten.
    pub(crate) fn erase(&mut self, wanted: &[Erase], mark: &Erased) -> Result<ErasedCount> {
        rewrite::has_room(&self.place, rewrite::ERASE, "Nothing was changed")?;
        self.index_all()?;
        self.heads.borrow_mut().clear();
        let count = self.write(|connection| {
            // Includes the writes of others since then: no other connection writes during this transaction.
            while index::portion(connection)? {}
            let count = erase::erase(connection, wanted, mark)?;
            erase::note_unfinished(connection, count)
        })?;
        self.optimize_index().and_then(|()| self.rewrite()).map_err(half_done)?;
        self.write(erase::finished)?;
        Ok(count)
    }

    /// Counts what [`Writer::erase`] would take out: it does that in a transaction that is taken back.
    pub(crate) fn would_erase(&mut self, wanted: &[Erase], mark: &Erased) -> Result<ErasedCount> {
        self.index_all()?;
        let taken_back = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        while index::portion(&taken_back)? {}
        let count = erase::erase(&taken_back, wanted, mark)?;
        taken_back.rollback()?;
        Ok(count)
    }

    /// Removes sessions from the store, and then rewrites the whole file if that is wanted and there is enough space.
    pub(crate) fn prune(&mut self, which: &Which, is_dry_run: bool, is_shortened: bool) -> Result<Left> {
        self.index_all()?;
        let now = (self.clock)();
        if is_dry_run {
            let moment = self.connection.unchecked_transaction()?;
            return Ok(prune::choose(&moment, which, now)?.0);
        }
        self.heads.borrow_mut().clear();
        // With foreign keys, removing a text would scan all versions.
        self.connection.pragma_update(None, "foreign_keys", false)?;
        let left = self.write(|connection| {
            while index::portion(connection)? {}
            let (left, weighed) = prune::choose(connection, which, now)?;
            prune::prune(connection, &weighed, left.sessions.len())?;
            Ok(left)
        });
        self.connection.pragma_update(None, "foreign_keys", true)?;
        let mut left = left?;
        if is_shortened && !left.sessions.is_empty() {
            left.pruned.is_shorter = self.optimize_index().and_then(|()| self.rewrite()).is_ok();
        }
        self.checkpoint();
        Ok(left)
    }

    /// Deleted text stays in the index until its segments are merged.
    fn optimize_index(&self) -> Result<()> {
        self.write(|connection| {
            connection.execute("INSERT INTO contents_fts (contents_fts) VALUES ('optimize')", [])?;
            Ok(())
        })
    }

    /// Keeps to the limits that the owner has set: removes the oldest session if they are exceeded. If that fails, it is
    /// tried again after the next write.
    pub(crate) fn keep_limits(&mut self) {
        self.is_within = true;
        if self.looked.is_some_and(|looked| looked.elapsed() < LIMIT_TIME) {
            return;
        }
        let exceeding = prune::exceeding(&self.connection, (self.clock)());
        let left =
            exceeding.and_then(|which| which.map(|which| self.prune(&which, false, false)).transpose());
        match left {
            Ok(Some(left)) if !left.sessions.is_empty() => self.is_within = false,
            Ok(_) => self.looked = Some(Instant::now()),
            Err(error) => {
                tracing::warn!(code = %error.into_store().code(), "old sessions beyond the store's limits could not be removed");
                self.looked = Some(Instant::now());
            }
        }
        self.worked = Instant::now();
    }

    /// Rewrites the whole file, without free pages, and empties the log.
    pub(crate) fn rewrite(&mut self) -> Result<()> {
        self.sync_commits(true)?;
        // The log is full of the erased or removed pages: emptied first, it takes no space beside the rewrite.
        rewrite::empty_log(&self.connection)?;
        rewrite::has_room(&self.place, rewrite::REWRITE, "The file keeps its length")?;
        rewrite::rewrite(&self.connection)
    }
}

/// The error of the second step of erasing says that the first one is done.
fn half_done(error: Trouble) -> Trouble {
    let what = |why: String| {
        format!(
            "what was named can't be read any more, but its bytes stay in the file until this is repeated: {why}"
        )
    };
    let error = match error.into_store() {
        StoreError::Full(why) => StoreError::Full(what(why)),
        StoreError::Unavailable(why) => StoreError::Unavailable(what(why)),
        other => other,
    };
    error.into()
}
