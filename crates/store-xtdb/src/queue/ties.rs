//! Versions of one object that hold from the same millisecond on, because several machines wrote it then.
//!
//! In XTDB, the last of them is the one of the latest transaction, and so it must be in each journal, or the machines would
//! end with different versions. A journal has them in the order in which it heard of them, and changes none. So it gets the
//! last one once more, behind the others.

use std::collections::BTreeSet;

use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};

use super::shared::Shared;
use crate::XtdbStore;
use context_store::{Result, Store, StoreError, Transaction, Write};

/// Objects, and the moments from which several of their versions may hold.
pub(super) type Ties = BTreeSet<(ObjectId, Timestamp)>;

/// Number of times that a version is written again because another client wrote to its object in the meantime.
const MOST_ATTEMPTS: u32 = 8;

impl Shared {
    /// Has the journal agree with XTDB which of the versions is the last. The caller holds `contact`, so that an older answer
    /// is never taken after a newer one.
    pub(super) async fn settle(&self, remote: &XtdbStore, ties: Ties) -> Result<()> {
        for (id, valid_time) in ties {
            let mut settled = self.settle_one(remote, &id, valid_time).await;
            for _ in 1..MOST_ATTEMPTS {
                if !matches!(settled, Err(StoreError::Conflict(_))) {
                    break;
                }
                settled = self.settle_one(remote, &id, valid_time).await;
            }
            settled?;
        }
        Ok(())
    }

    async fn settle_one(&self, remote: &XtdbStore, id: &ObjectId, valid_time: Timestamp) -> Result<()> {
        // Before the sender has compared the database, it may have lost what was once sent, and gets it anew.
        let is_compared = *self.is_compared.borrow();
        let sent = if is_compared { *self.sent.borrow() } else { TxId(0) };
        let there = remote.versions_at(id, valid_time).await?;
        let here = self.journal.versions_at(id, valid_time).await?;
        // Of erased versions, both sides may have left different parts.
        if here.iter().any(|one| one.is_erased) || there.iter().any(|one| one.erased.is_some()) {
            return Ok(());
        }
        let Some(newest) = here.last() else { return Ok(()) };
        let mut unsent = None;
        for one in here.iter().rev().filter(|one| one.tx_id > sent) {
            if !there.iter().any(|other| one.is_like(other)) && !self.is_brought(one.tx_id).await? {
                unsent = Some(one.tx_id);
                break;
            }
        }
        let last = match unsent {
            // It comes behind what is there.
            Some(tx) => self.journal.version(id, tx).await?,
            None => there.into_iter().next_back(),
        };
        let Some(last) = last.filter(|version| !newest.is_like(version)) else { return Ok(()) };
        let latest = self.journal.outlines(std::slice::from_ref(id)).await?.pop().flatten();
        let writes = vec![Write::Put { document: last.document, valid_time: Some(valid_time) }];
        let expected = vec![(id.clone(), latest.map(|outline| outline.tx_id))];
        let receipt = self.journal.bring_in(Transaction { writes, expected }, &[None]).await?;
        self.wrote_for_others(&receipt);
        Ok(())
    }

    /// True if a transaction of the journal wrote what came from XTDB.
    async fn is_brought(&self, tx: TxId) -> Result<bool> {
        let before = TxId(tx.0.saturating_sub(1));
        Ok(self.journal.brought_between(before, tx).await?.contains(&tx))
    }
}
