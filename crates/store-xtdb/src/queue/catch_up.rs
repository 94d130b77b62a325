//! Fetching others' changes: in the areas that the stores of this process work in, and in the objects that it reads as a whole.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::time::TxId;
use serde_json::Value;

use super::contact::OBJECTS;
use super::shared::Shared;
use super::work_areas::WorkAreas;
use crate::XtdbStore;
use crate::areas::{Area, AreaChanges, AreaPosition, ChangedObject};
use context_store::{AsOf, Outline, Result, Store, StoreError, Version};

/// In so short a time, no node is stopped, restored and started: an area that was asked for since then is that of the same
/// database.
const RESTORED: Duration = Duration::from_secs(10);

/// Notice for users about a database whose log of changes is another one.
const OTHER: &str = "its log of changes is another one than before; what this machine wrote is sent again";

impl Shared {
    /// Fetches others' changes in the areas of the stores that ask for them, and saves the progress on the way.
    pub(super) async fn catch_up(&self) -> Result<()> {
        let asking = std::mem::take(&mut self.status().asking);
        let mut known = HashSet::new();
        let due = asking.iter().flat_map(WorkAreas::due).filter(|area| known.insert(area.clone()));
        for area in due.collect::<Vec<_>>() {
            asking.iter().for_each(|work| work.asks(&area));
            self.catch_up_in(&area).await?;
        }
        Ok(())
    }

    /// The same in one area.
    async fn catch_up_in(&self, area: &Area) -> Result<()> {
        let Some(remote) = self.reachable() else { return Ok(()) };
        let since = self.progress.position(area);
        let checked = self.status().checked.get(area).copied();
        let is_first = checked.is_none_or(|checked| checked.elapsed() >= RESTORED);
        let writer = self.writer();
        let own = (writer.name.as_str(), writer.run());
        let read = remote.changes_in(area, &since, own, is_first).await;
        if read.is_err() {
            // The next look is a first one again.
            self.status().checked.remove(area);
        }
        let mut changes = read?;
        if !changes.is_continued {
            // If the node has only not read all of the log yet, the database is the same.
            if !self.is_older(&remote, TxId(since.tx)).await? {
                changes = remote.changes_in(area, &since, own, is_first).await?;
            }
            if !changes.is_continued {
                self.forget(&remote, OTHER)?;
                return Err(StoreError::Unavailable(format!(
                    "XTDB at {} has another past than before; it is read again",
                    remote.current_url()
                )));
            }
        }
        let AreaChanges { changed, position, .. } = changes;
        self.status().checked.insert(area.clone(), Instant::now());
        // Up to there nothing is left; that transaction's own list, which tells it from others, is noted at the end.
        let note = |tx: TxId| {
            let tx = tx.0.max(since.tx);
            let check = since.check.clone().filter(|_| tx == since.tx);
            self.note_position(area, AreaPosition { tx, check, millis: since.millis })
        };
        self.fetch(&remote, changed, TxId(since.tx), note).await?;
        self.note_position(area, position)
    }

    fn note_position(&self, area: &Area, position: AreaPosition) -> Result<()> {
        if self.progress.position(area) == position {
            return Ok(());
        }
        let latest = self.status().latest;
        self.progress.note_position(area, position, self.place(latest.0)?)
    }

    /// Fetches those of the changed objects that the journal knows, as they have been written since a transaction. After
    /// each batch, `note` gets the transaction up to which everything is fetched.
    async fn fetch(
        &self,
        remote: &XtdbStore,
        changed: Vec<ChangedObject>,
        since: TxId,
        note: impl Fn(TxId) -> Result<()>,
    ) -> Result<()> {
        if changed.is_empty() {
            return Ok(());
        }
        let ids: Vec<ObjectId> = changed.iter().map(|one| one.id.clone()).collect();
        {
            let mut status = self.status();
            for id in &ids {
                status.absent.remove(id);
                status.meeting.get_mut(id).into_iter().for_each(|meeting| meeting.heard += 1);
            }
            status.names.add(&ids);
        }
        let known = self.journal.outlines(&ids).await?;
        let wanted: Vec<(ChangedObject, ObjectType)> = changed
            .into_iter()
            .zip(known)
            .filter_map(|(one, outline)| outline.map(|outline| (one, outline.object_type)))
            .collect();
        for (n, batch) in wanted.chunks(OBJECTS).enumerate() {
            let done = n * OBJECTS;
            self.status().behind = (wanted.len() - done) as u64;
            let objects = batch.iter().map(|(one, kind)| (one.id.clone(), *kind, Some(one.last))).collect();
            let versions = remote.versions_after(objects, since).await?;
            // Of chats and sessions only the latest version comes.
            let growing = versions.iter().flatten();
            self.lacks_past(growing.filter(|version| !version.document.object_type().is_content())).await?;
            self.bring_in(remote, versions).await?;
            self.went_well();
            // Everything that is left was changed only by this transaction or later ones.
            if let Some((next, _)) = wanted.get(done + batch.len()) {
                note(TxId(next.first.0.saturating_sub(1)))?;
            }
        }
        self.status().behind = 0;
        Ok(())
    }

    /// Notes that a store works in these areas. Others' changes in new areas are fetched first, within the time limit
    /// of a read. True if there were new areas.
    pub(super) async fn enter(
        &self,
        work: &WorkAreas,
        areas: impl IntoIterator<Item = Area>,
    ) -> Result<bool> {
        let new: Vec<Area> = areas.into_iter().filter(|area| work.enter(area.clone())).collect();
        for area in &new {
            self.ask(work, area).await?;
        }
        Ok(!new.is_empty())
    }

    /// Fetches others' changes in one area, within the time limit of a read. If that is too short, the rest comes in the
    /// background.
    pub(super) async fn ask(&self, work: &WorkAreas, area: &Area) -> Result<()> {
        work.asks(area);
        let before = self.progress.position(area);
        let done = self.bounded(self.catch_up_in(area)).await;
        if done.is_err() && self.progress.position(area) != before {
            work.is_late(area);
            self.status().asks(work);
            self.look.notify_one();
            return Ok(());
        }
        self.tolerate(done)
    }

    /// Fetches the latest versions of those chats and sessions that the journal has in another version, although this store
    /// does not work on them.
    pub(super) async fn freshen(&self, work: &WorkAreas, outlines: &[&Outline]) -> Result<bool> {
        let own = |outline: &Outline| Area::from_id(&outline.id).is_none_or(|area| work.has(&area));
        let strange = outlines.iter().filter(|outline| !outline.object_type.is_content() && !own(outline));
        let strange: Vec<&Outline> = strange.copied().collect();
        let mut is_changed = false;
        for some in strange.chunks(OBJECTS) {
            let Some(remote) = self.reachable() else { return Ok(is_changed) };
            let ids: Vec<ObjectId> = some.iter().map(|outline| outline.id.clone()).collect();
            let done = self
                .bounded(async {
                    let there = remote.content_hashes(&ids).await?;
                    let here = self.journal.get_many(&ids, AsOf::default()).await?;
                    let here = here.iter().flatten().map(|version| &version.document);
                    let is_other = |document: &&Document| {
                        let hash = there.get(document.id()).and_then(Value::as_str);
                        hash.is_some_and(|hash| hash != document.content_hash().to_string())
                    };
                    let other: Vec<ObjectId> =
                        here.filter(is_other).map(|document| document.id().clone()).collect();
                    if other.is_empty() {
                        return Ok(());
                    }
                    is_changed = true;
                    let versions = remote.get_many(&other, AsOf::default()).await?.into_iter().flatten();
                    let latest: Vec<Version> = versions.collect();
                    self.lacks_past(latest.iter()).await?;
                    self.bring_in(&remote, latest.into_iter().map(|version| vec![version]).collect()).await
                })
                .await;
            self.tolerate(done)?;
        }
        Ok(is_changed)
    }
}
