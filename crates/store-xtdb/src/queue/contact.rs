//! Bringing other clients' versions into the journal.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use context_model::id::ObjectId;
use context_model::time::TxId;

use super::shared::Shared;
use super::status::QueueStatus;
use super::ties::Ties;
use super::work_areas::WorkAreas;
use crate::XtdbStore;
use context_store::{AsOf, Filter, Result, Store, StoreError, Transaction, Version, Write};
use context_store_sqlite::VersionAt;

/// The pause between two attempts to read the list of objects.
const LIST_PAUSE: Duration = Duration::from_millis(500);

/// If a database has more objects than this, it is asked about each object that the journal lacks.
pub(super) const MOST_NAMES: usize = 500_000;

/// Number of objects that are fetched before the progress is saved.
pub(super) const OBJECTS: usize = 128;

/// Time for which XTDB is not asked again for an object that it did not have, unless others' changes name it.
const ABSENT: Duration = Duration::from_secs(5);

/// Number of times that versions are compared with the journal again because another client wrote to it in the meantime.
const MOST_ATTEMPTS: u32 = 8;

/// Reads the list of all objects in XTDB, as soon as XTDB can be reached, and again for each store that is opened later and whenever
/// that is another database.
pub(super) async fn list(shared: Arc<Shared>) {
    loop {
        if let Some(remote) = shared.reachable() {
            let newest = shared.areas().newest();
            match remote.names(MOST_NAMES).await {
                Ok(names) => {
                    {
                        let mut status = shared.status();
                        let is_current =
                            status.remote.as_ref().is_some_and(|current| Arc::ptr_eq(current, &remote));
                        if !is_current {
                            continue;
                        }
                        names.into_iter().for_each(|names| status.names.complete(names, newest));
                    }
                    shared.list.notified().await;
                    continue;
                }
                Err(StoreError::Closed) => return,
                // The error is reported as soon as something is needed from XTDB.
                Err(error) => tracing::debug!(%error, "the list of objects could not be read"),
            }
        }
        tokio::time::sleep(LIST_PAUSE).await;
    }
}

/// Checks for other clients' writes whenever a caller asks for it, and fetches those to objects in the journal.
pub(super) async fn follow(shared: Arc<Shared>) {
    loop {
        shared.look.notified().await;
        let asked = shared.asked.load(Ordering::Acquire);
        let done = shared.catch_up().await;
        if let Err(error) = shared.tolerate(done) {
            shared.status().refused = Some(error);
        }
        shared.status().is_late = false;
        shared.looked.send_replace(asked);
    }
}

impl Shared {
    /// Requests a check whether others changed objects in the journal, and that their changes are fetched. Takes one request
    /// if nothing has changed. Waits a moment for it, but not while an earlier check takes longer than that or XTDB is
    /// unreachable.
    pub(super) async fn pull(&self, work: &WorkAreas) -> Result<()> {
        if self.reachable().is_none() {
            return Ok(());
        }
        let mut looked = self.looked.subscribe();
        self.status().asks(work);
        let asked = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        self.look.notify_one();
        let is_late = self.status().is_late;
        if !is_late && tokio::time::timeout(self.pull_wait, looked.wait_for(|n| *n >= asked)).await.is_err() {
            let mut status = self.status();
            // Unless that has just been done.
            status.is_late = *self.looked.borrow() < asked;
        }
        self.status().refused.take().map_or(Ok(()), Err)
    }

    /// Fetches the latest versions of objects that the journal has never had. False if XTDB could not be asked for all of them:
    /// it may have those that the journal still lacks.
    pub(super) async fn meet(&self, ids: &[ObjectId]) -> Result<bool> {
        let ids = self.not_absent(ids);
        let mut is_certain = true;
        // Each batch has the time limit of a read, and its fetched versions stay.
        for ids in ids.chunks(OBJECTS) {
            let Some(remote) = self.reachable() else { return Ok(false) };
            let met = self.bounded(self.meet_some(&remote, ids.to_vec())).await;
            is_certain &= met.is_ok();
            self.tolerate(met)?;
        }
        Ok(is_certain)
    }

    /// The same from the node that the sender uses, without a limit on the time.
    pub(super) async fn meet_in(&self, remote: &XtdbStore, ids: &[ObjectId]) -> Result<()> {
        for ids in self.not_absent(ids).chunks(OBJECTS) {
            self.meet_some(remote, ids.to_vec()).await?;
        }
        Ok(())
    }

    /// Those of some objects that XTDB was not found to lack a moment ago.
    fn not_absent(&self, ids: &[ObjectId]) -> Vec<ObjectId> {
        let status = self.status();
        let is_absent = |id: &ObjectId| status.absent.get(id).is_some_and(|at| at.elapsed() < ABSENT);
        ids.iter().filter(|id| !is_absent(id)).cloned().collect()
    }

    pub(super) async fn meet_some(&self, remote: &XtdbStore, mut ids: Vec<ObjectId>) -> Result<()> {
        while !ids.is_empty() {
            let way = InTransit::begin(self, ids.clone());
            let versions = remote.get_many(&ids, AsOf::default()).await?;
            let absent: Vec<ObjectId> = ids
                .iter()
                .zip(&versions)
                .filter(|(_, version)| version.is_none())
                .map(|(id, _)| id.clone())
                .collect();
            let latest: Vec<Version> = versions.into_iter().flatten().collect();
            self.lacks_past(latest.iter()).await?;
            self.bring_in(remote, latest.into_iter().map(|version| vec![version]).collect()).await?;
            let mut status = self.status();
            ids = way.end(&mut status);
            let absent = absent.into_iter().filter(|id| !ids.contains(id));
            status.absent.extend(absent.map(|id| (id, Instant::now())));
        }
        Ok(())
    }

    /// The IDs that match: first those in the journal, in its order, then those that are only in XTDB.
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
        // For its own objects the journal decides, because their latest versions may not have been sent yet.
        let stored = self.journal.outlines(&there).await?;
        ids.extend(there.into_iter().zip(stored).filter(|(_, outline)| outline.is_none()).map(|(id, _)| id));
        Ok(ids)
    }

    /// Writes those versions of some objects that the journal lacks, in order for each object. Where several hold from the
    /// same moment on, the last one is the one that is the last in XTDB.
    pub(super) async fn bring_in(&self, remote: &XtdbStore, objects: Vec<Vec<Version>>) -> Result<()> {
        let _one = self.contact.lock().await;
        let mut ties = Ties::new();
        let longest = objects.iter().map(Vec::len).max().unwrap_or(0);
        // One version of each object per transaction, so that a transaction number identifies one version.
        for place in 0..longest {
            let mut wanted = Vec::new();
            for versions in &objects {
                let Some(version) = versions.get(place) else { continue };
                // Several may share a millisecond and a content. The n-th of them is missing if the journal has fewer.
                let alike = versions[..=place].iter().filter(|other| {
                    let (one, other) = (&version.document, &other.document);
                    (one.content_hash(), one.source_hash()) == (other.content_hash(), other.source_hash())
                });
                let n = alike.filter(|other| other.valid_time == version.valid_time).count();
                wanted.push((version, n));
            }
            for part in wanted.chunks(OBJECTS) {
                self.bring_in_some(part, &mut ties).await?;
            }
        }
        self.settle(remote, ties).await
    }

    async fn bring_in_some(&self, wanted: &[(&Version, usize)], ties: &mut Ties) -> Result<()> {
        for attempt in 0.. {
            let ids: Vec<ObjectId> =
                wanted.iter().map(|(version, _)| version.document.id().clone()).collect();
            let latest: HashMap<ObjectId, TxId> = {
                let outlines = self.journal.outlines(&ids).await?;
                outlines.into_iter().flatten().map(|outline| (outline.id, outline.tx_id)).collect()
            };
            let (mut writes, mut expected) = (Vec::new(), Vec::new());
            let mut marks = Vec::new();
            for (version, n) in wanted {
                let id = version.document.id();
                let valid_time = version.valid_time;
                if latest.contains_key(id) {
                    let here = self.journal.versions_at(id, valid_time).await?;
                    if !here.iter().all(|one| one.is_like(version)) {
                        ties.insert((id.clone(), valid_time));
                    }
                    if has(&here, version, *n) {
                        continue;
                    }
                }
                marks.push(version.erased.clone());
                writes.push(Write::Put { document: version.document.clone(), valid_time: Some(valid_time) });
                expected.push((id.clone(), latest.get(id).copied()));
            }
            if writes.is_empty() {
                return Ok(());
            }
            match self.journal.bring_in(Transaction { writes, expected }, &marks).await {
                Ok(receipt) => {
                    self.wrote_for_others(&receipt);
                    return Ok(());
                }
                Err(StoreError::Conflict(_)) if attempt < MOST_ATTEMPTS => {}
                // A version that the journal will never accept must not block the others.
                Err(error @ StoreError::Invalid(_)) => {
                    let [_] = wanted else {
                        for one in wanted.chunks(1) {
                            Box::pin(self.bring_in_some(one, ties)).await?;
                        }
                        return Ok(());
                    };
                    tracing::warn!(%error, "a version of another client can't be stored");
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// As [`has`], given what the journal has now.
    pub(super) async fn has(&self, version: &Version, n: usize) -> Result<bool> {
        let here = self.journal.versions_at(version.document.id(), version.valid_time).await?;
        Ok(has(&here, version, n))
    }

    pub(super) fn reachable(&self) -> Option<Arc<XtdbStore>> {
        let status = self.status();
        status.remote.clone().filter(|_| status.is_connected)
    }

    /// Limits how long a read waits for XTDB.
    pub(super) async fn bounded<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::time::timeout(self.read_timeout, work).await.unwrap_or_else(|_| {
            let urls = self.urls();
            Err(StoreError::Unavailable(format!(
                "XTDB at {urls} does not answer in time; the journal is used"
            )))
        })
    }

    /// An unreachable node is not an error: the journal answers the read. Everything else is an error.
    pub(super) fn tolerate(&self, result: Result<()>) -> Result<()> {
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

/// True if the n-th version like this one is among those that the journal has from that moment on. If that version was
/// erased, the journal may have the original, or one that it has erased itself; both stay as they are.
fn has(here: &[VersionAt], version: &Version, n: usize) -> bool {
    match version.erased {
        Some(_) => !here.is_empty(),
        None => here.iter().filter(|one| one.is_like(version)).count() >= n,
    }
}

/// Objects that are on their way from XTDB, which the journal may lack. If others' changes to them are reported meanwhile,
/// they must not be skipped as changes of objects unknown to this machine.
pub(super) struct InTransit<'a> {
    shared: &'a Shared,
    /// Number of reported changes when it began.
    ids: Vec<(ObjectId, u64)>,
}

impl<'a> InTransit<'a> {
    pub(super) fn begin(shared: &'a Shared, ids: Vec<ObjectId>) -> Self {
        let mut status = shared.status();
        let begin = |id: ObjectId| {
            let meeting = status.meeting.entry(id.clone()).or_default();
            meeting.reads += 1;
            (id, meeting.heard)
        };
        let ids = ids.into_iter().map(begin).collect();
        drop(status);
        Self { shared, ids }
    }

    /// Ends it. Returns the objects whose changes were heard of meanwhile.
    pub(super) fn end(mut self, status: &mut QueueStatus) -> Vec<ObjectId> {
        leave(status, std::mem::take(&mut self.ids))
    }
}

impl Drop for InTransit<'_> {
    fn drop(&mut self) {
        if !self.ids.is_empty() {
            let ids = std::mem::take(&mut self.ids);
            leave(&mut self.shared.status(), ids);
        }
    }
}

fn leave(status: &mut QueueStatus, ids: Vec<(ObjectId, u64)>) -> Vec<ObjectId> {
    let mut heard = Vec::new();
    for (id, before) in ids {
        let Some(meeting) = status.meeting.get_mut(&id) else { continue };
        meeting.reads -= 1;
        let (is_heard, is_last) = (meeting.heard > before, meeting.reads == 0);
        if is_last {
            status.meeting.remove(&id);
        }
        if is_heard {
            heard.push(id);
        }
    }
    heard
}
