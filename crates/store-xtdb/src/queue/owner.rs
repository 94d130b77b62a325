//! Operations for the owner of the store only: in the journal first, so that nothing more is sent, and then in XTDB.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use context_model::id::ObjectId;

use super::QueuedStore;
use super::contact::MOST_NAMES;
use crate::{XtdbOptions, XtdbStore};
use context_store::backend::erasing::{self, Needles};
use context_store::sessions::{Prune, Pruned};
use context_store::{Erase, ErasedCount, OwnedStore, Result, Store, StoreError};

/// The time limit of one request while something is erased, in milliseconds.
const TIMEOUT_MS: u64 = 60_000;

#[async_trait]
impl OwnedStore for QueuedStore {
    /// Needs XTDB: without a node nothing is erased. The journals of other machines keep their copies until the same is
    /// erased there, but send none of it.
    async fn erase(&self, wanted: Vec<Erase>, why: &str) -> Result<ErasedCount> {
        self.shared.check_open()?;
        Needles::new(&wanted)?;
        let remote = self.owner().await?;
        // A named object may be in an area that this machine does not know, so its list of names is too old for this.
        let newest = self.shared.areas().newest();
        if let Some(names) = remote.names(MOST_NAMES).await? {
            let mut status = self.shared.status();
            status.names.complete(names, newest);
            status.absent.clear();
        }
        // Each of both may lack some of them, but not both.
        let objects = erasing::objects(self, &wanted).await?;
        let texts: Vec<Erase> = wanted.into_iter().filter(|one| matches!(one, Erase::Text(_))).collect();
        let with_texts = |ids: &BTreeSet<ObjectId>| -> Vec<Erase> {
            ids.iter().cloned().map(Erase::Object).chain(texts.iter().cloned()).collect()
        };
        let here = known(&*self.shared.journal, &objects).await?;
        let mut count = ErasedCount::default();
        if !with_texts(&here).is_empty() {
            count = self.shared.journal.erase(with_texts(&here), why).await?;
        }
        // The queue is sent as it is now, and its versions are then found there.
        self.shared.work.notify_one();
        let there = known(&*remote, &objects).await?;
        if let Some(id) = objects.iter().find(|id| !here.contains(id) && !there.contains(id)) {
            return Err(StoreError::Unavailable(format!(
                "the database did not show {id}, so it may still have its text; forget it again"
            )));
        }
        if !with_texts(&there).is_empty() {
            let sent = remote.erase(with_texts(&there), why).await?;
            count.texts = count.texts.max(sent.texts);
            count.versions = count.versions.max(sent.versions);
        }
        remote.close().await?;
        Ok(count)
    }

    /// Removes the sessions from XTDB, and from the journal those that it has. Other journals keep theirs.
    async fn prune(&self, wanted: Prune) -> Result<Pruned> {
        self.shared.check_open()?;
        wanted.check()?;
        let remote = self.owner().await?;
        let there = remote.prune(wanted.clone()).await;
        remote.close().await?;
        let there = there?;
        let here = self.shared.journal.prune(wanted).await?;
        let mut pruned = there;
        for session in here.sessions {
            if pruned.sessions.iter().all(|known| known.id != session.id) {
                pruned.sessions.push(session);
            }
        }
        pruned.objects = pruned.objects.max(here.objects);
        pruned.freed_bytes += here.freed_bytes;
        pruned.used_bytes += here.used_bytes;
        pruned.is_shorter &= here.is_shorter || here.objects == 0;
        Ok(pruned)
    }
}

impl QueuedStore {
    /// A connection with more patience than the queue has.
    async fn owner(&self) -> Result<Arc<XtdbStore>> {
        let shared = &self.shared.options;
        let timeout_ms = shared.timeout_ms.max(TIMEOUT_MS);
        let options = XtdbOptions { timeout_ms, writer: None, ..shared.clone() };
        // A node that is down is known after the time that a read waits.
        self.shared.connect().await?.latest_tx().await?;
        XtdbStore::connect(options).await
    }
}

/// Those of these objects that a store has.
async fn known(store: &dyn Store, objects: &BTreeSet<ObjectId>) -> Result<BTreeSet<ObjectId>> {
    let ids: Vec<ObjectId> = objects.iter().cloned().collect();
    Ok(store.outlines(&ids).await?.into_iter().flatten().map(|outline| outline.id).collect())
}
