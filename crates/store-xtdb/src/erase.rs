//! Erasing in XTDB. `evict` removes all versions of an object and replaces their documents by tombstones, so those versions
//! that stay are put back.
//!
//! Architecture invariants:
//! - Nothing that stays is ever only in memory: before an object is evicted, its rest is in XTDB in separate documents, the
//!   parts. A third kind of document, the step, says how far the work on this object is, and is replaced in the same
//!   transaction as each piece of that work. So the work can be interrupted anywhere, and any client can complete it.
//! - A document is not put back as it was, but with a field `KEPT` that is new each time: a node that indexes the
//!   transactions from the beginning writes the tombstones once more, by content hash.
//! - No transaction with `evict` has a document of an evicted object, not even in a `match`: a copy of it that arrives late
//!   would store that document again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::time::Timestamp;
use serde_json::{Value, json};

use super::erasures::{Record, overtaken, record_document};
use super::form::StoredForm;
use super::inner::XtdbClient;
use super::log::documents;
use super::mark::Mark;
use super::plan::PartialWrite;
use super::random::random_name;
use super::steps::{EVICTED, PART, STEP, part_id, parts};
use super::wire::{KEPT, Ops, PATCH};
use super::write::{MARK_TIME, Submitted};
use super::writer::NodeWriter;
use context_store::backend::erasing::{Gone, Needles};
use context_store::backend::pruning::Weight;
use context_store::{Erased, ErasedCount, Result};

/// Interval within which the erasing client writes at least once.
const BEAT: Duration = Duration::from_millis(500);

impl XtdbClient {
    /// Erases the named objects, and every text with a needle.
    pub(super) async fn erase(
        self: &Arc<Self>,
        writer: &mut NodeWriter,
        objects: &BTreeSet<ObjectId>,
        needles: &Needles,
        mark: &Erased,
    ) -> Result<ErasedCount> {
        let texts = self.publish(writer, objects, needles, mark).await?;
        let affected = self.affected(objects).await?;
        self.begin(writer).await?;
        let worked = async {
            let mut versions = 0;
            for (id, n) in affected.iter().zip(0_u64..) {
                versions += self.erase_object(writer, id, objects.contains(id), mark, n).await?;
            }
            Ok(versions)
        };
        let worked: Result<u64> = worked.await;
        let ended = self.end(writer).await;
        let versions = worked?;
        ended?;
        Ok(ErasedCount { texts, versions })
    }

    /// Removes objects with all their versions.
    pub(super) async fn evict(self: &Arc<Self>, writer: &mut NodeWriter, objects: &[ObjectId]) -> Result<()> {
        self.begin(writer).await?;
        let mut worked = Ok(());
        for some in objects.chunks(EVICTED) {
            let mut ops = Ops::default();
            some.iter().for_each(|id| ops.evict(id));
            worked = self.step(writer, ops).await;
            if worked.is_err() {
                break;
            }
        }
        let ended = self.end(writer).await;
        worked.and(ended)
    }

    /// Returns the sizes of the objects, from the log.
    pub(super) async fn weights(&self) -> Result<HashMap<ObjectId, Weight>> {
        let mut weights: HashMap<ObjectId, Weight> = HashMap::new();
        self.each_tx_of_all(|_, row| {
            let time = row["txTime"].as_str().and_then(|time| time.parse().ok());
            let newest = time.unwrap_or_else(context_store::clock::system().as_ref());
            for value in documents(row) {
                let id = ObjectId::new(value["xt/id"].as_str().unwrap_or_default());
                let weight = weights.entry(id).or_insert(Weight { bytes: 0, newest });
                weight.bytes += value.to_string().len() as u64;
                weight.newest = weight.newest.max(newest);
            }
        })
        .await?;
        Ok(weights)
    }

    /// Completes the work of a client that ended while it erased.
    pub(super) async fn take_over(self: &Arc<Self>, writer: &mut NodeWriter) -> Result<()> {
        tracing::warn!("completing what another client began to erase");
        self.rename(writer).await?;
        self.complete(writer).await?;
        self.end(writer).await
    }

    /// Tells all clients the erased texts before they are erased. Returns the number of texts that go as a whole.
    async fn publish(
        self: &Arc<Self>,
        writer: &mut NodeWriter,
        objects: &BTreeSet<ObjectId>,
        needles: &Needles,
        mark: &Erased,
    ) -> Result<u64> {
        let mut first = None;
        loop {
            self.look_for_erasures().await?;
            let mut gone = Gone::default();
            self.each_document(|document| {
                if objects.contains(document.id()) {
                    gone.add_all_of(document);
                }
                gone.add_matches(document, needles);
            })
            .await?;
            self.each_document(|document| {
                if !objects.contains(document.id()) {
                    gone.spare_all_of(document);
                }
            })
            .await?;
            gone.add_fragments(needles);
            let texts = *first.get_or_insert(gone.count());
            let erasures = self.erasures().await?;
            let mut both = erasures.all().gone.clone();
            both.extend(gone.clone());
            let is_known = |id: &ObjectId| erasures.all().objects.contains_key(id);
            if both == erasures.all().gone && objects.iter().all(is_known) {
                return Ok(texts);
            }
            let number = erasures.number() + 1;
            let objects = objects.iter().map(|id| (id.clone(), mark.at)).collect();
            let record = Record { gone, objects };
            let mut ops = Ops::default();
            ops.put(&record_document(number, &record), Some(Timestamp::from_millis(MARK_TIME)));
            writer.notice = Some(erasures.next(number, None));
            let part = PartialWrite { ops, ..PartialWrite::default() };
            match self.submit(writer, &part, None).await? {
                // Another look: something may have been written since the first one.
                Submitted::Committed(_) => self.recorded(record),
                Submitted::Refused | Submitted::Erasing => writer.notice = None,
            }
        }
    }

    /// The objects that lose some text.
    async fn affected(&self, objects: &BTreeSet<ObjectId>) -> Result<BTreeSet<ObjectId>> {
        let mut affected = objects.clone();
        let erasures = self.erasures().await?;
        let gone = &erasures.all().gone;
        self.each_document(|document| {
            if !affected.contains(document.id()) && gone.taken_out_of(document, false).is_some() {
                affected.insert(document.id().clone());
            }
        })
        .await?;
        Ok(affected)
    }

    /// Goes through all documents. If a version is stored as a change, the operations are a field.
    async fn each_document(&self, mut use_it: impl FnMut(&Document)) -> Result<()> {
        self.each_tx_of_all(|_, row| {
            for value in documents(row) {
                let mut value = value.clone();
                let _ = Mark::take(&mut value);
                if let Some(change) = value.get(PATCH).and_then(Value::as_str) {
                    value[PATCH] = serde_json::from_str(change).unwrap_or_default();
                }
                // A document in another shape belongs to another program, which has to erase it.
                if let Ok(document) = Document::from_json(value) {
                    use_it(&document);
                }
            }
        })
        .await
    }

    /// Makes the others wait, and completes the work of a client that ended meanwhile.
    async fn begin(self: &Arc<Self>, writer: &mut NodeWriter) -> Result<()> {
        loop {
            if self.free(writer).await?.is_some() {
                let erasures = self.erasures().await?;
                let name = random_name()?;
                writer.notice = Some(erasures.next(erasures.number(), Some(&name)));
                match self.submit(writer, &PartialWrite::default(), None).await? {
                    Submitted::Committed(_) => {
                        writer.erasing = Some(name);
                        return self.complete(writer).await;
                    }
                    Submitted::Refused | Submitted::Erasing => writer.notice = None,
                }
            }
        }
    }

    /// Takes over from a client that has ended.
    async fn rename(self: &Arc<Self>, writer: &mut NodeWriter) -> Result<()> {
        let erasures = self.erasures().await?;
        let name = random_name()?;
        // So that `submit` sees its own name.
        writer.erasing = erasures.value().and_then(|notice| Some(notice["erasing"].as_str()?.to_owned()));
        writer.notice = Some(erasures.next(erasures.number(), Some(&name)));
        let submitted = self.submit(writer, &PartialWrite::default(), None).await;
        writer.erasing = Some(name);
        match submitted {
            Ok(Submitted::Committed(_)) => Ok(()),
            Ok(Submitted::Refused | Submitted::Erasing) => {
                (writer.erasing, writer.notice) = (None, None);
                Err(overtaken())
            }
            Err(error) => {
                (writer.erasing, writer.notice) = (None, None);
                Err(error)
            }
        }
    }

    /// Lets the others continue, unless some object's rest has not been put back yet.
    async fn end(self: &Arc<Self>, writer: &mut NodeWriter) -> Result<()> {
        let ended = async {
            if !self.steps().await?.is_empty() {
                return Ok(());
            }
            let erasures = self.erasures().await?;
            writer.notice = Some(erasures.next(erasures.number(), None));
            match self.submit(writer, &PartialWrite::default(), None).await? {
                Submitted::Committed(_) => Ok(()),
                Submitted::Refused | Submitted::Erasing => Err(overtaken()),
            }
        };
        let ended = ended.await;
        (writer.erasing, writer.notice) = (None, None);
        self.cache(super::cache::Cache::forget_erased);
        ended
    }

    /// Erases in one object. Returns the number of versions that are marked now.
    async fn erase_object(
        self: &Arc<Self>,
        writer: &mut NodeWriter,
        id: &ObjectId,
        whole: bool,
        mark: &Erased,
        n: u64,
    ) -> Result<u64> {
        let erasures = self.erasures().await?;
        let gone = &erasures.all().gone;
        let name = format!("{}:{n}", writer.erasing.as_deref().unwrap_or_default());
        let (mut count, mut is_changed) = (0, false);
        let mut rest: Vec<(Value, Timestamp)> = Vec::new();
        let mut before: Option<(Document, StoredForm, Timestamp)> = None;
        let mut versions = self.meanwhile(writer, self.marked_history(id)).await?;
        // They are put back as they were written, so that one that was dated back does not begin to hold earlier.
        versions.sort_by_key(|(version, _)| (version.tx_id, version.valid_time));
        for (version, known) in versions {
            let less = gone.taken_out_of(&version.document, whole);
            is_changed |= less.is_some();
            let is_new = less.is_some() || (whole && known.is_none());
            let mark = if is_new {
                count += 1;
                let hash = known.and_then(|known| known.hash).unwrap_or(version.document.content_hash());
                Some(Mark { erased: mark.clone(), hash: Some(hash) })
            } else {
                known
            };
            let document = less.unwrap_or(version.document);
            let mut form = match &before {
                Some((last, form, from)) if *from <= version.valid_time => form.next(last, *from, &document),
                _ => StoredForm::whole(&document),
            };
            if let Some(mark) = mark {
                form = form.marked(&document, mark);
            }
            let mut value = form.value(&document);
            value[KEPT] = name.clone().into();
            rest.push((value, version.valid_time));
            before = Some((document, form, version.valid_time));
        }
        if count == 0 && !is_changed {
            return Ok(0);
        }
        let step = format!("erasing:{name}");
        let parts = parts(rest);
        for (k, versions) in parts.iter().enumerate() {
            let text = serde_json::to_string(versions).unwrap_or_default();
            let part = json!({ "xt/id": part_id(&step, k), PART: step, "versions": text });
            let mut ops = Ops::default();
            ops.put(&part, Some(Timestamp::from_millis(MARK_TIME)));
            self.step(writer, ops).await?;
        }
        let step = json!({ "xt/id": step, STEP: id, "parts": parts.len(), "next": null });
        let mut ops = Ops::default();
        ops.put(&step, Some(Timestamp::from_millis(MARK_TIME)));
        self.step(writer, ops).await?;
        self.put_back(writer, step).await?;
        Ok(count)
    }

    /// One transaction of the client that erases.
    pub(super) async fn step(self: &Arc<Self>, writer: &mut NodeWriter, ops: Ops) -> Result<()> {
        let erasures = self.erasures().await?;
        writer.notice = Some(erasures.next(erasures.number(), writer.erasing.as_deref()));
        match self.submit(writer, &PartialWrite { ops, ..PartialWrite::default() }, None).await? {
            Submitted::Committed(_) => Ok(()),
            Submitted::Refused | Submitted::Erasing => Err(overtaken()),
        }
    }

    /// Waits for a read, and shows the others meanwhile that this client is at work.
    async fn meanwhile<T>(
        self: &Arc<Self>,
        writer: &mut NodeWriter,
        read: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut read = std::pin::pin!(read);
        loop {
            match tokio::time::timeout(BEAT, &mut read).await {
                Ok(done) => return done,
                Err(_) => self.step(writer, Ops::default()).await?,
            }
        }
    }
}
