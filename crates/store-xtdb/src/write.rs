//! Transactions: planned on the latest versions, fenced against other clients' writes, and applied exactly once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use serde_json::{Value, json};

use super::areas::{Area, listed};
use super::cache::Head;
use super::erasures::ERASURES;
use super::http::{Format, NodeRequest};
use super::inner::XtdbClient;
use super::mark::Marks;
use super::parallel::in_parallel;
use super::plan::{BeforeWrite, PartialWrite, id_of, is_equal, plan};
use super::read::version;
use super::wire::{Coordinates, FOREVER, Ops, Tx, check};
use super::writer::NodeWriter;
use context_store::{AsOf, Receipt, Result, StoreError, Transaction, Write};

/// Number of times that a transaction is planned again because others wrote in the meantime.
const MOST_PLANS: u32 = 24;

/// The valid time of all marks and notices, so that the newest transaction's mark is the valid one.
pub(super) const MARK_TIME: i64 = 0;

/// The additions to a transaction that comes late from a journal.
pub(crate) struct Late {
    /// Is stored in the writer's mark.
    pub note: Value,
    pub marks: Marks,
    /// Content objects that the database probably lacks. The transaction is refused if it has one of them.
    pub absent: HashSet<ObjectId>,
}

/// The origin of a transaction.
#[derive(Clone, Copy)]
pub(crate) enum Coming<'a> {
    /// From its writer, with the marks of versions that come from an export.
    Now(&'a Marks),
    /// From a journal.
    Late(&'a Late),
}

/// The outcome of a submission.
pub(super) enum Submitted {
    Committed(Tx),
    Refused,
    /// The owner of the store has erased something since, so everything has to be planned anew.
    Erasing,
}

impl XtdbClient {
    /// Applies a transaction. One that comes late from a journal: if others have written a version with the same content in the meantime, that version counts as its own.
    pub(super) async fn transact(
        self: &Arc<Self>,
        writer: &mut NodeWriter,
        transaction: Transaction,
        coming: Coming<'_>,
    ) -> Result<Receipt> {
        let (late, marks) = match coming {
            Coming::Now(marks) => (None, marks),
            Coming::Late(late) => (Some(late), &late.marks),
        };
        let note = late.map(|late| &late.note);
        let Transaction { writes, expected } = transaction;
        for write in &writes {
            if let Write::Put { document, .. } = write {
                check(document)?;
            }
        }
        let mut written = Vec::with_capacity(writes.len());
        let mut last = None;
        let mut is_fresh = false;
        let mut plans = 0;
        let mut refused: Option<HashMap<ObjectId, Option<(TxId, Timestamp)>>> = None;
        loop {
            let expected = if last.is_none() { expected.as_slice() } else { &[] };
            let rest = &writes[written.len()..];
            let absent = late.filter(|_| !is_fresh).map(|late| &late.absent);
            let bases = self.bases(rest, expected, (note.is_some(), absent), is_fresh).await?;
            for (id, wanted) in expected {
                if bases.get(id).and_then(BeforeWrite::tx) != *wanted {
                    if is_fresh {
                        return Err(StoreError::Conflict(id.clone()));
                    }
                    self.cache(|cache| bases.keys().for_each(|id| cache.forget(id)));
                    is_fresh = true;
                    break;
                }
            }
            if expected.iter().any(|(id, wanted)| bases.get(id).and_then(BeforeWrite::tx) != *wanted) {
                continue;
            }
            // Refused although nothing has changed: a base was stored with types that JSON does not have.
            let places = bases.iter().map(|(id, base)| (id.clone(), base.place())).collect();
            let is_fenced = refused.as_ref() != Some(&places);
            let erasures = self.erasures().await?;
            let plan = plan(rest, &bases, expected, (is_fenced, late.is_some()), (&erasures, marks))?;
            if plan.took_equal && !is_fresh {
                self.cache(|cache| bases.keys().for_each(|id| cache.forget(id)));
                is_fresh = true;
                continue;
            }
            let (mut is_refused, mut is_erasing) = (false, false);
            for part in plan.parts {
                if !part.drafts.is_empty() {
                    match self.submit(writer, &part, note).await? {
                        Submitted::Committed(tx) => {
                            last = Some(tx);
                            self.remember(&part, &bases, tx);
                        }
                        Submitted::Refused => {
                            is_refused = true;
                            break;
                        }
                        Submitted::Erasing => {
                            is_erasing = true;
                            break;
                        }
                    }
                }
                written.extend_from_slice(&part.written);
            }
            if is_erasing {
                is_fresh = true;
                refused = None;
                continue;
            }
            if !is_refused {
                break;
            }
            plans += 1;
            if plans == MOST_PLANS {
                let busy = bases.into_keys().next().unwrap_or_else(|| ObjectId::new(""));
                return Err(StoreError::Conflict(busy));
            }
            self.cache(|cache| bases.keys().for_each(|id| cache.forget(id)));
            refused = Some(places);
            is_fresh = true;
            // Clients that collided once must not keep colliding in lockstep.
            let spread = getrandom::u64().unwrap_or_default() % (4 << plans.min(6));
            tokio::time::sleep(Duration::from_millis(spread)).await;
        }
        let tx = match last {
            Some(tx) => tx,
            None => self.latest().await?.unwrap_or(Tx { id: TxId(0), time: Timestamp::from_millis(0) }),
        };
        Ok(Receipt { tx_id: tx.id, tx_time: tx.time, written })
    }

    /// The versions that the writes and expectations are about, from this client's memory or else from the node.
    async fn bases(
        self: &Arc<Self>,
        writes: &[Write],
        expected: &[(ObjectId, Option<TxId>)],
        (is_late, absent): (bool, Option<&HashSet<ObjectId>>),
        is_fresh: bool,
    ) -> Result<HashMap<ObjectId, BeforeWrite>> {
        let ids: HashSet<&ObjectId> =
            writes.iter().map(id_of).chain(expected.iter().map(|(id, _)| id)).collect();
        let mut bases = HashMap::new();
        let mut missing = Vec::new();
        for id in ids {
            match self.cache(|cache| cache.head(id)) {
                Some(head) => {
                    bases.insert(id.clone(), BeforeWrite::new(Some(head), true));
                }
                None if absent.is_some_and(|absent| absent.contains(id)) => {
                    bases.insert(id.clone(), BeforeWrite::new(None, true));
                }
                None => missing.push(id.clone()),
            }
        }
        let inner = Arc::clone(self);
        // After a refusal, as of the refused transaction: an answer from memory, whatever it should wait for, would look as
        // if nothing had changed.
        let at = if is_fresh { self.as_known() } else { AsOf::default() };
        let read = in_parallel(missing, move |id| {
            let inner = Arc::clone(&inner);
            async move {
                let head = inner.find(&id, at).await?;
                Ok((id, head))
            }
        })
        .await?;
        bases.extend(read.into_iter().map(|(id, head)| (id, BeforeWrite::new(head, false))));
        self.add_earlier(writes, &mut bases, is_late).await?;
        Ok(bases)
    }

    /// For writes with an earlier valid time than the latest version: the version that they replace. For those that come
    /// late from a journal, also whether the latest version is the next one.
    async fn add_earlier(
        &self,
        writes: &[Write],
        bases: &mut HashMap<ObjectId, BeforeWrite>,
        is_late: bool,
    ) -> Result<()> {
        for write in writes {
            let Write::Put { document, valid_time } = write else { continue };
            let Some(base) = bases.get_mut(document.id()) else { continue };
            let Some(latest) = base.latest().map(Arc::clone) else { continue };
            let Some(from) = valid_time.filter(|time| *time < latest.valid_time) else { continue };
            let at = AsOf { valid_time: Some(from), known: None };
            let earlier = self.find(document.id(), at).await?;
            if is_late && is_equal(&latest.document, document) {
                let last = Timestamp::from_millis(latest.valid_time.millis() - 1);
                let at = AsOf { valid_time: Some(last), known: None };
                let before =
                    self.place(document.id(), at).await?.map(|place| (place.tx.id, place.valid_time));
                let holding = earlier.as_ref().map(|head| (head.version.tx_id, head.version.valid_time));
                if before == holding {
                    base.add_last_before(from);
                }
            }
            base.add_earlier(from, earlier);
        }
        Ok(())
    }

    /// Writes a mark with this note, and nothing else. Returns its number and the transaction.
    pub(super) async fn write_note(
        self: &Arc<Self>,
        writer: &mut NodeWriter,
        note: &Value,
    ) -> Result<(u64, TxId)> {
        loop {
            match self.submit(writer, &PartialWrite::default(), Some(note)).await? {
                Submitted::Committed(tx) => return Ok((writer.number().unwrap_or_default(), tx.id)),
                Submitted::Refused => return Err(StoreError::Conflict(writer.id.clone())),
                Submitted::Erasing => {}
            }
        }
    }

    pub(super) async fn submit(
        self: &Arc<Self>,
        writer: &mut NodeWriter,
        part: &PartialWrite,
        note: Option<&Value>,
    ) -> Result<Submitted> {
        let erasures = self.free(writer).await?;
        let Some(erasures) = erasures else { return Ok(Submitted::Erasing) };
        self.settle(writer).await?;
        let before = writer.mark.clone();
        let mut mark = json!({ "xt/id": writer.id, "number": writer.next });
        if let Some(run) = &writer.run {
            mark["run"] = run.as_str().into();
        }
        if let Some(note) = note.or_else(|| writer.mark.as_ref()?.get("note")) {
            mark["note"] = note.clone();
        }
        let mut ops: Ops = part.ops.clone();
        ops.matches(&writer.id, before.as_ref(), FOREVER);
        ops.matches(&ObjectId::new(ERASURES), erasures.value(), FOREVER);
        ops.put(&mark, Some(Timestamp::from_millis(MARK_TIME)));
        let written = part.drafts.iter().map(|draft| (Area::of(&draft.document), draft.document.id()));
        let lists = listed(&writer.lister(), written);
        writer.next += 1;
        for list in lists {
            ops.put(&list, None);
        }
        let notice = writer.notice.take();
        if let Some(notice) = &notice {
            ops.put(notice, Some(Timestamp::from_millis(MARK_TIME)));
        }
        let committed = |tx| {
            notice.clone().into_iter().for_each(|notice| self.noticed(notice));
            Ok(Submitted::Committed(tx))
        };
        writer.is_known = false;
        let request = NodeRequest::post("submit-tx", Format::Edn, Format::Json, ops.body());
        let answer = self.nodes.send(&request).await?;
        let tx = Tx::from_edn(&answer.edn()?).ok_or_else(|| answer.strange("no transaction in it"))?;
        let after = self.mark_after(writer, tx).await?;
        self.known.fetch_max(tx.id.0, Ordering::AcqRel);
        if after.as_ref() == Some(&mark) {
            writer.mark = after;
            writer.is_known = true;
            return committed(tx);
        }
        self.settle(writer).await?;
        if writer.mark.as_ref() != Some(&mark) {
            if writer.run.is_some() && writer.mark != before {
                return Err(StoreError::Conflict(writer.id.clone()));
            }
            let is_news = self.look_for_erasures().await?;
            return Ok(if is_news { Submitted::Erasing } else { Submitted::Refused });
        }
        // An earlier copy of this submission had been applied, but its answer was lost.
        let place = self.place(&writer.id, AsOf::default()).await?;
        committed(place.ok_or_else(|| answer.strange("the writer's mark is gone"))?.tx)
    }

    /// Remembers what was written, if it is now the latest version.
    fn remember(&self, part: &PartialWrite, bases: &HashMap<ObjectId, BeforeWrite>, tx: Tx) {
        self.cache(|cache| {
            for draft in &part.drafts {
                let valid_time = draft.valid_time.unwrap_or(tx.time);
                let id = draft.document.id();
                let latest = bases.get(id).and_then(BeforeWrite::latest).map(|v| v.valid_time);
                if latest.is_some_and(|latest| latest > valid_time) {
                    continue;
                }
                let version = version(
                    draft.document.clone(),
                    Coordinates { tx, valid_time, is_deletion: false, document: None },
                    draft.form.mark(),
                );
                let (form, bytes) = (draft.form.clone(), draft.bytes);
                cache.keep(Head { version: Arc::new(version), form, bytes });
            }
        });
    }
}
