//! Reads: from the journal, and from XTDB where the journal lacks something or others may have changed it.

use std::collections::HashSet;

use context_model::id::ObjectId;
use context_model::object::ObjectType;

use super::past::is_past;
use super::shared::Shared;
use super::work_areas::WorkAreas;
use crate::areas::Area;
use context_store::{AsOf, Outline, Result, Store, StoreError, Version};

/// Prefixes of the IDs of the documents that grow with a session, so that its clients write changes of what they have.
const GROWING: [&str; 2] = ["session:", "chat:"];

impl Shared {
    pub(super) async fn get(&self, work: &WorkAreas, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        if is_past(at) {
            return Ok(self.get_past(std::slice::from_ref(id), at).await?.pop().flatten());
        }
        if let Some(version) = self.journal.get(id, at).await? {
            let area = Area::of(&version.document);
            match version.document.object_type() {
                ObjectType::Toolcall => return Ok(Some(version)),
                ObjectType::File if !self.enter(work, [area.clone()]).await? => return Ok(Some(version)),
                ObjectType::File => {}
                // A client that reads a session as a whole may continue it after another machine.
                _ => {
                    if !self.enter(work, [area.clone()]).await? {
                        self.ask(work, &area).await?;
                    }
                }
            }
            return self.journal.get(id, at).await;
        }
        let is_certain = self.meet(std::slice::from_ref(id)).await?;
        let found = self.journal.get(id, at).await?;
        if found.is_none() && !is_certain && GROWING.iter().any(|prefix| id.as_str().starts_with(prefix)) {
            // A client that takes it for a new one would write over that of another machine.
            return Err(StoreError::Unavailable(format!(
                "{id} is not on this machine, and XTDB at {} can't be asked whether another one has it; try again once it \
                 answers",
                self.urls()
            )));
        }
        Ok(found)
    }

    pub(super) async fn get_many(
        &self,
        work: &WorkAreas,
        ids: &[ObjectId],
        at: AsOf,
    ) -> Result<Vec<Option<Version>>> {
        if is_past(at) {
            return self.get_past(ids, at).await;
        }
        let found = self.journal.get_many(ids, at).await?;
        let missing = missing(ids, &found);
        let files = found.iter().flatten().map(|version| &version.document);
        let files: HashSet<Area> =
            files.filter(|document| document.object_type() == ObjectType::File).map(Area::of).collect();
        let mut is_changed = self.enter(work, files).await?;
        let infrastructure: Vec<ObjectId> = found
            .iter()
            .flatten()
            .filter(|version| !version.document.object_type().is_content())
            .map(|version| version.document.id().clone())
            .collect();
        if !infrastructure.is_empty() {
            let outlines = self.journal.outlines(&infrastructure).await?;
            let outlines: Vec<&Outline> = outlines.iter().flatten().collect();
            is_changed |= self.freshen(work, &outlines).await?;
        }
        if missing.is_empty() && !is_changed {
            return Ok(found);
        }
        self.meet(&missing).await?;
        self.journal.get_many(ids, at).await
    }

    /// For the decisions at every tool call: objects that XTDB did not have at the last [`Store::pull`] are not asked for.
    pub(super) async fn outlines(&self, work: &WorkAreas, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>> {
        let found = self.journal.outlines(ids).await?;
        let mut missing = missing(ids, &found);
        {
            let status = self.status();
            missing.retain(|id| !status.names.lacks(id, work.number));
        }
        let known: Vec<&Outline> = found.iter().flatten().collect();
        let files = known.iter().filter(|outline| outline.object_type == ObjectType::File);
        let files: HashSet<Area> = files
            .map(|file| Area::from_parts(&file.id, file.object_type, file.source.as_ref(), None))
            .collect();
        let is_changed = self.enter(work, files).await? | self.freshen(work, &known).await?;
        if missing.is_empty() && !is_changed {
            return Ok(found);
        }
        self.meet(&missing).await?;
        self.journal.outlines(ids).await
    }
}

/// The IDs without a version.
fn missing<T>(ids: &[ObjectId], found: &[Option<T>]) -> Vec<ObjectId> {
    ids.iter().zip(found).filter(|(_, found)| found.is_none()).map(|(id, _)| id.clone()).collect()
}
