//! Operations for the owner of the store only.

use std::collections::{BTreeSet, HashMap, HashSet};

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::object::Document;

use super::MemoryStore;
use super::state::{MemoryState, RowForm};
use crate::backend::erasing::{self, Gone, Needles};
use crate::backend::pruning::{self, Leaving, Weight};
use crate::sessions::{Prune, Pruned};
use crate::{Erase, Erased, ErasedCount, OwnedStore, Result};

#[async_trait]
impl OwnedStore for MemoryStore {
    async fn erase(&self, wanted: Vec<Erase>, why: &str) -> Result<ErasedCount> {
        let needles = Needles::new(&wanted)?;
        let objects = erasing::objects(self, &wanted).await?;
        let mark = Erased { at: (self.clock)(), why: why.to_owned() };
        self.state()?.erase(&objects, &needles, &mark)
    }

    async fn prune(&self, wanted: Prune) -> Result<Pruned> {
        let weights = self.state()?.weights()?;
        let Leaving { objects, pruned } = pruning::choose(self, &wanted, &weights, (self.clock)()).await?;
        if wanted.is_dry_run {
            return Ok(pruned);
        }
        self.state()?.remove(&objects.into_iter().collect());
        Ok(Pruned { is_shorter: true, ..pruned })
    }
}

impl MemoryState {
    fn erase(
        &mut self,
        objects: &BTreeSet<ObjectId>,
        needles: &Needles,
        mark: &Erased,
    ) -> Result<ErasedCount> {
        let documents = (0..self.rows.len()).map(|row| self.document(row)).collect::<Result<Vec<_>>>()?;
        let mut gone = Gone::default();
        for document in &documents {
            if objects.contains(document.id()) {
                gone.add_all_of(document);
            }
            gone.add_matches(document, needles);
        }
        let staying = documents.iter().filter(|document| !objects.contains(document.id()));
        staying.for_each(|document| gone.spare_all_of(document));
        gone.add_fragments(needles);
        let mut versions = 0;
        let mut touched: HashSet<&ObjectId> = HashSet::new();
        let mut changed: HashMap<usize, Document> = HashMap::new();
        for (row, document) in documents.iter().enumerate() {
            let whole = objects.contains(document.id());
            let rest = gone.taken_out_of(document, whole);
            if rest.is_none() && (!whole || self.rows[row].erased.is_some()) {
                continue;
            }
            versions += 1;
            touched.insert(document.id());
            let before = self.rows[row].erased.take().map_or_else(|| document.content_hash(), |(_, b)| b);
            self.rows[row].erased = Some((mark.clone(), before));
            changed.extend(rest.map(|rest| (row, rest)));
        }
        // A patch of an erased version would no longer give the version that it gave, so these are kept whole.
        for (row, document) in documents.iter().enumerate().filter(|(_, d)| touched.contains(d.id())) {
            let document = changed.remove(&row).unwrap_or_else(|| document.clone());
            self.rows[row].written = RowForm::Document(document);
        }
        self.forget_shapes();
        let count = ErasedCount { texts: gone.count(), versions };
        self.gone.extend(gone);
        Ok(count)
    }

    fn weights(&self) -> Result<HashMap<ObjectId, Weight>> {
        let mut weights: HashMap<ObjectId, Weight> = HashMap::new();
        for row in 0..self.rows.len() {
            let newest = self.time(self.rows[row].tx_id);
            let bytes = serde_json::to_string(&self.document(row)?).map_or(0, |json| json.len() as u64);
            let weight = weights.entry(self.id(row).clone()).or_insert(Weight { bytes: 0, newest });
            weight.bytes += bytes;
            weight.newest = weight.newest.max(newest);
        }
        Ok(weights)
    }

    /// Removes all versions of these objects. No version of another object is based on one of them.
    fn remove(&mut self, leaving: &HashSet<ObjectId>) {
        let stays: Vec<bool> = (0..self.rows.len()).map(|row| !leaving.contains(self.id(row))).collect();
        let mut places = Vec::with_capacity(stays.len());
        let mut next = 0;
        for stays in &stays {
            places.push(next);
            next += usize::from(*stays);
        }
        let mut place = 0;
        self.rows.retain(|_| {
            place += 1;
            stays[place - 1]
        });
        for row in &mut self.rows {
            if let RowForm::Patch(_, _, before) = &mut row.written {
                *before = places[*before];
            }
        }
        self.order.retain(|id| !leaving.contains(id));
        self.objects.retain(|id, _| !leaving.contains(id));
        self.latest.retain(|id, _| !leaving.contains(id));
        self.objects
            .values_mut()
            .flatten()
            .chain(self.latest.values_mut())
            .for_each(|row| *row = places[*row]);
        self.forget_shapes();
    }

    fn forget_shapes(&mut self) {
        self.shapes.clear();
        self.heads.clear();
        self.tops.clear();
    }
}
