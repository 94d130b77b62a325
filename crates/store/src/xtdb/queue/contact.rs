//! Bringing versions of others into the journal.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use context_model::id::ObjectId;
use context_model::time::TxId;

use super::shared::Shared;
use super::status::short;
use crate::xtdb::XtdbStore;
use crate::{AsOf, Filter, Result, Store, StoreError, Transaction, Version, Write, clock};

/// The pause between two attempts to read the list of objects.
const LIST_PAUSE: Duration = Duration::from_millis(500);

/// Databases with more objects are asked for each object that the journal has not; in objects.
const MOST_NAMES: usize = 500_000;

/// Reads the list of all objects of XTDB, once, as soon as that can be reached.
pub(super) async fn list(shared: Arc<Shared>) {
    loop {
        if let Some(remote) = shared.reachable() {
            match remote.names(MOST_NAMES).await {
                Ok(Some(names)) => return shared.status().names.complete(names),
                Ok(None) | Err(StoreError::Closed) => return,
                // What is wrong shows, and is told, where something is needed.
                Err(error) => tracing::debug!(%error, "the list of objects could not be read"),
            }
        }
        tokio::time::sleep(LIST_PAUSE).await;
    }
}

impl Shared {
    /// Looks once whether others changed what the journal has, and brings that in. One request where nothing
    /// was changed. Does nothing while XTDB is away.
    pub(super) async fn pull(&self) -> Result<()> {
        let Some(remote) = self.reachable() else { return Ok(()) };
        let pulled = self.bounded(self.pull_from(&remote)).await;
        self.tolerate(pulled)
    }

    async fn pull_from(&self, remote: &XtdbStore) -> Result<()> {
        let _one = self.contact.lock().await;
        let seen = self.progress.seen();
        let (changes, newest) = remote.changes_of_others(seen).await?;
        {
            let mut status = self.status();
            for id in &changes {
                status.absent.remove(id);
            }
            status.names.add(&changes);
        }
        let known = self.journal.outlines(&changes).await?;
        for (id, _) in changes.iter().zip(known).filter(|(_, outline)| outline.is_some()) {
            for version in remote.versions_after(id, seen).await? {
                self.bring_in(version).await?;
            }
        }
        self.progress.note_seen(newest)
    }

    /// Brings the latest versions of objects that the journal has never seen into it.
    pub(super) async fn meet(&self, ids: &[ObjectId]) -> Result<()> {
        let Some(remote) = self.reachable() else { return Ok(()) };
        let ids: Vec<ObjectId> = {
            let status = self.status();
            ids.iter().filter(|id| !status.absent.contains(*id)).cloned().collect()
        };
        if ids.is_empty() {
            return Ok(());
        }
        let met = self
            .bounded(async {
                let versions = remote.get_many(&ids, AsOf::default()).await?;
                let _one = self.contact.lock().await;
                for (id, version) in ids.iter().zip(versions) {
                    match version {
                        Some(version) => self.bring_in(version).await?,
                        None => {
                            self.status().absent.insert(id.clone());
                        }
                    }
                }
                Ok(())
            })
            .await;
        self.tolerate(met)
    }

    /// Brings in all versions of an object that XTDB has and the journal has not.
    pub(super) async fn bring_history(&self, id: &ObjectId) -> Result<()> {
        let Some(remote) = self.reachable() else { return Ok(()) };
        let brought = self
            .bounded(async {
                let versions = remote.versions_after(id, TxId(0)).await?;
                let _one = self.contact.lock().await;
                let known = self.journal.history(id).await?;
                for version in versions {
                    let is_known = known.iter().any(|k| {
                        k.valid_time == version.valid_time
                            && k.document.content_hash() == version.document.content_hash()
                            && k.document.source_hash() == version.document.source_hash()
                    });
                    if !is_known {
                        self.bring_in(version).await?;
                    }
                }
                Ok(())
            })
            .await;
        self.tolerate(brought)
    }

    /// The IDs that fit: what the journal has in its order, then what only XTDB has.
    pub(super) async fn query(&self, filter: &Filter) -> Result<Vec<ObjectId>> {
        let mut ids = self.journal.query(filter).await?;
        let Some(remote) = self.reachable() else { return Ok(ids) };
        let there = match self.bounded(remote.query(filter)).await {
            Ok(there) => there,
            Err(error) => {
                self.tolerate(Err(error))?;
                return Ok(ids);
            }
        };
        // What the journal has it knows better: the latest version may not have been sent yet.
        let stored = self.journal.outlines(&there).await?;
        ids.extend(there.into_iter().zip(stored).filter(|(_, outline)| outline.is_none()).map(|(id, _)| id));
        Ok(ids)
    }

    async fn bring_in(&self, version: Version) -> Result<()> {
        let id = version.document.id().clone();
        let valid_time = version.valid_time;
        let write = Write::Put { document: version.document, valid_time: Some(valid_time) };
        let receipt =
            self.journal.transact(Transaction { writes: vec![write], expected: Vec::new() }).await?;
        let mut status = self.status();
        status.latest = status.latest.max(receipt.tx_id);
        if receipt.written == [true] {
            status.brought_in.insert(receipt.tx_id);
            if valid_time > clock::system()() {
                status.ahead.insert(id, valid_time);
            }
        }
        Ok(())
    }

    fn reachable(&self) -> Option<Arc<XtdbStore>> {
        let status = self.status();
        status.remote.clone().filter(|_| status.is_connected)
    }

    /// Lets a read wait for XTDB only so long.
    async fn bounded<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::time::timeout(self.read_timeout, work).await.unwrap_or_else(|_| {
            let urls = self.urls();
            Err(StoreError::Unavailable(format!(
                "XTDB at {urls} does not answer in time; the journal is used"
            )))
        })
    }

    /// An absent node is no error of a read: the journal answers. Everything else is.
    fn tolerate(&self, result: Result<()>) -> Result<()> {
        match result {
            Ok(()) => {
                self.went_well();
                Ok(())
            }
            Err(error @ StoreError::Unavailable(_)) => {
                self.failed(&error);
                // The sender notices when the node is back.
                self.work.notify_one();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl XtdbStore {
    /// The hashes of the IDs of all objects; `None` where there are more than `most`.
    async fn names(&self, most: usize) -> Result<Option<HashSet<u64>>> {
        let mut names = HashSet::new();
        self.open()?
            .each_id(|id| {
                names.insert(short(&id));
                names.len() <= most
            })
            .await?;
        Ok((names.len() <= most).then_some(names))
    }

    /// The objects that others wrote after a transaction, and the newest transaction of all.
    async fn changes_of_others(&self, since: TxId) -> Result<(Vec<ObjectId>, TxId)> {
        self.open()?.changes_of_others(since).await
    }

    /// The versions of an object that were written after a transaction. Of a chat or session only the latest:
    /// its earlier ones are whole copies, as many as it has turns.
    async fn versions_after(&self, id: &ObjectId, since: TxId) -> Result<Vec<Version>> {
        let inner = self.open()?;
        let Some(latest) = inner.get(id, AsOf::default()).await? else { return Ok(Vec::new()) };
        if !latest.document.object_type().is_content() {
            return Ok(vec![latest]);
        }
        let mut versions = Vec::new();
        for place in inner.history_places(id, latest.tx_id).await? {
            if place.tx.id <= since {
                continue;
            }
            let at = AsOf { valid_time: Some(place.valid_time), known: Some(crate::Known::Tx(place.tx.id)) };
            match inner.get(id, at).await? {
                Some(version) if version.valid_time == place.valid_time => versions.push(version),
                _ => {}
            }
        }
        versions.sort_by_key(|version| (version.tx_id, version.valid_time));
        Ok(versions)
    }
}
