//! The plan of a transaction, given the versions that it is based on. No I/O.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use context_model::error::ErrorCode;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::areas::Area;
use super::cache::Head;
use super::erasures::Erasures;
use super::form::StoredForm;
use super::mark::{Mark, Marks};
use super::wire::{FOREVER, LONGEST_FENCE, Ops, document_length, text_length};
use context_store::backend::erasing;
use context_store::backend::shape::misfit;
use context_store::backend::{envelope_differs, patch_time, unknown};
use context_store::{Result, StoreError, Version, Write, clock};

/// The state of an object before a write, as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct BeforeWrite {
    head: Option<Head>,
    /// The latest version comes from this client's memory.
    is_guess: bool,
    /// The versions that are valid at earlier times at which writes begin.
    earlier: Vec<(Timestamp, Option<Head>)>,
    /// Those of these times after which only the earlier version and then the latest one are valid.
    last_before: Vec<Timestamp>,
}

impl BeforeWrite {
    pub(crate) fn new(head: Option<Head>, is_guess: bool) -> Self {
        Self { head, is_guess, earlier: Vec::new(), last_before: Vec::new() }
    }

    pub(crate) fn latest(&self) -> Option<&Arc<Version>> {
        self.head.as_ref().map(|head| &head.version)
    }

    /// The latest version's document in XTDB.
    fn value(&self) -> Option<Value> {
        self.head.as_ref().map(Head::value)
    }

    pub(crate) fn tx(&self) -> Option<TxId> {
        self.latest().map(|version| version.tx_id)
    }

    pub(crate) fn place(&self) -> Option<(TxId, Timestamp)> {
        self.latest().map(|version| (version.tx_id, version.valid_time))
    }

    pub(crate) fn add_earlier(&mut self, at: Timestamp, head: Option<Head>) {
        self.earlier.push((at, head));
    }

    /// Notes that after this time only the latest version follows.
    pub(crate) fn add_last_before(&mut self, at: Timestamp) {
        self.last_before.push(at);
    }

    /// True if the next version after this time has the same content: another client noticed it later and reported it
    /// sooner.
    fn follows(&self, from: Option<Timestamp>, document: &Document) -> bool {
        from.is_some_and(|from| self.last_before.contains(&from))
            && self.latest().is_some_and(|version| is_equal(&version.document, document))
    }

    /// The version that is valid when a write begins, and that time.
    fn holding(&self, from: Option<Timestamp>) -> (Option<&Head>, Option<Timestamp>) {
        match self.earlier.iter().find(|(at, _)| Some(*at) == from) {
            Some((at, head)) => (head.as_ref(), Some(*at)),
            None => (self.head.as_ref(), None),
        }
    }

    fn is_ahead(&self) -> bool {
        self.latest().is_some_and(|v| v.valid_time > v.tx_time)
    }

    /// The valid time of a version that holds from now on, where the transaction's time may be earlier than that of the latest version.
    fn now_at_least(&self) -> Option<Timestamp> {
        let ahead = self.latest().filter(|_| self.is_ahead())?;
        Some(ahead.valid_time.max(clock::system()()))
    }
}

/// A version that a plan makes.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub document: Document,
    /// The time from which it is valid. If `None`, the transaction's time.
    pub valid_time: Option<Timestamp>,
    /// The form in which XTDB will store it.
    pub form: StoredForm,
    /// The approximate length of its JSON text, in bytes.
    pub bytes: usize,
    /// The mark of a version whose owner erased something of it.
    mark: Option<Mark>,
}

/// One transaction of XTDB, with as many of the writes as it can contain.
#[derive(Default)]
pub(super) struct PartialWrite {
    pub ops: Ops,
    /// For each of these writes, whether it creates a version.
    pub written: Vec<bool>,
    pub drafts: Vec<Draft>,
}

/// All writes of a transaction, checked, and divided into the parts in which they are sent.
#[derive(Default)]
pub(super) struct WritePlan {
    pub parts: Vec<PartialWrite>,
    /// A write was found to equal a version that is known only from memory.
    pub took_equal: bool,
}

/// A condition which ensures that a part is only applied to the state that it was planned on: the object, the document
/// that it must have, and the valid time of that (the end of time if `None`).
type Fence = (ObjectId, Option<Value>, Option<Timestamp>);

/// Plans the writes. If `is_fenced` is false, only absences are fenced. Versions that come late from a journal don't depend
/// on the writes in the meantime; of these, only content objects are fenced, against a second version with the same
/// content.
pub(super) fn plan(
    writes: &[Write],
    bases: &HashMap<ObjectId, BeforeWrite>,
    expected: &[(ObjectId, Option<TxId>)],
    (is_fenced, is_late): (bool, bool),
    (erasures, marks): (&Erasures, &Marks),
) -> Result<WritePlan> {
    let none = BeforeWrite::new(None, false);
    let mut plan = WritePlan::default();
    let mut part = PartialWrite::default();
    let mut fences: Vec<Fence> = Vec::new();
    for (id, _) in expected {
        fences.push((id.clone(), bases.get(id).and_then(BeforeWrite::value), None));
    }
    let must: HashSet<&ObjectId> = expected.iter().map(|(id, _)| id).collect();
    let mut latest: HashMap<ObjectId, Draft> = HashMap::new();
    let mut in_part: HashSet<ObjectId> = HashSet::new();
    for write in writes {
        let id = id_of(write);
        let base = bases.get(id).unwrap_or(&none);
        let before = latest.get(id);
        let Some(mut draft) = draft(write, base, before, erasures)? else {
            plan.took_equal |= before.is_none() && base.is_guess;
            part.written.push(false);
            continue;
        };
        draft.take_form(base, before);
        draft.take_mark(marks);
        let rises = before.and_then(|b| b.valid_time).zip(draft.valid_time).is_some_and(|(a, b)| b > a);
        if in_part.contains(id) && !rises {
            plan.parts.push(part.closed(std::mem::take(&mut fences), &must, is_fenced));
            part = PartialWrite::default();
            in_part.clear();
        }
        let is_needed = !is_late || draft.document.object_type().is_content();
        if in_part.insert(id.clone()) && is_needed {
            match (before, write) {
                (None, Write::Put { .. }) => {
                    let (head, at) = base.holding(draft.valid_time);
                    fences.push((id.clone(), head.map(Head::value), at));
                }
                (None, Write::Patch { .. }) => {
                    fences.push((id.clone(), base.value(), None));
                }
                (Some(before), _) if base.latest().is_none_or(|v| before.holds_after(v.valid_time)) => {
                    fences.push((id.clone(), Some(before.form.value(&before.document)), None));
                }
                (Some(_), _) => {}
            }
        }
        latest.insert(id.clone(), draft.clone());
        part.drafts.push(draft);
        part.written.push(true);
    }
    plan.parts.push(part.closed(fences, &must, is_fenced));
    Ok(plan)
}

impl Draft {
    fn new(document: Document, valid_time: Option<Timestamp>) -> Self {
        Self { form: StoredForm::whole(&document), document, valid_time, bytes: 0, mark: None }
    }

    /// The version without the texts that the owner of the store has erased.
    fn clean(document: Document, valid_time: Option<Timestamp>, erasures: &Erasures) -> Self {
        match erasures.taken_out_of(&document, valid_time) {
            None => Self::new(document, valid_time),
            Some(rest) => {
                let hash = Some(document.content_hash());
                let mark = Mark { erased: erasing::again(clock::system()()), hash };
                Self { mark: Some(mark), ..Self::new(rest, valid_time) }
            }
        }
    }

    /// Notes in the form that the owner erased something.
    fn take_mark(&mut self, marks: &Marks) {
        let key = self.valid_time.map(|time| (self.document.id().clone(), time));
        let known = key.and_then(|key| marks.get(&key));
        if let Some(erased) = known {
            let hash = self.mark.take().and_then(|mark| mark.hash);
            self.mark = Some(Mark { erased: erased.clone(), hash });
        }
        if let Some(mark) = self.mark.clone() {
            self.form = std::mem::replace(&mut self.form, StoredForm::whole(&self.document))
                .marked(&self.document, mark);
        }
    }

    /// Turns the version into a change, if the previous version is known to come before it in a history.
    fn take_form(&mut self, base: &BeforeWrite, before: Option<&Self>) {
        let (document, form, from, is_ahead) = match (before, &base.head) {
            (Some(draft), _) => (&draft.document, &draft.form, draft.valid_time, true),
            (None, Some(head)) => {
                (&head.version.document, &head.form, Some(head.version.valid_time), base.is_ahead())
            }
            (None, None) => return,
        };
        let Some(from) = from else { return };
        if self.valid_time.map_or(!is_ahead, |time| time >= from) {
            self.form = form.next(document, from, &self.document);
        }
    }

    fn holds_after(&self, time: Timestamp) -> bool {
        self.valid_time.is_none_or(|from| from >= time)
    }
}

impl PartialWrite {
    fn closed(mut self, fences: Vec<Fence>, must: &HashSet<&ObjectId>, is_fenced: bool) -> Self {
        if self.drafts.is_empty() {
            return self;
        }
        let mut fenced: HashSet<(ObjectId, Option<Timestamp>)> = HashSet::new();
        for (id, value, at) in fences {
            if !fenced.insert((id.clone(), at)) {
                continue;
            }
            let is_long = value.as_ref().is_some_and(|v| text_length(v) > LONGEST_FENCE);
            if value.is_none() || (is_fenced && (must.contains(&id) || !is_long)) {
                let at = at.map_or_else(|| FOREVER.to_owned(), |at| at.to_string());
                self.ops.matches(&id, value.as_ref(), &at);
            }
        }
        for draft in &mut self.drafts {
            let sent = self.ops.put(&draft.form.value(&draft.document), draft.valid_time);
            draft.bytes = sent.max(document_length(&draft.document));
        }
        self
    }
}

/// The version that a write creates. `None` if it equals the one that is valid then.
fn draft(
    write: &Write,
    base: &BeforeWrite,
    before: Option<&Draft>,
    erasures: &Erasures,
) -> Result<Option<Draft>> {
    match write {
        Write::Put { document, valid_time } => {
            let envelope = before.map(|d| &d.document).or_else(|| base.latest().map(|v| &v.document));
            if let Some(stored) = envelope
                && (stored.object_type(), stored.source()) != (document.object_type(), document.source())
            {
                return Err(envelope_differs(document.id()));
            }
            let valid_time = valid_time.or_else(|| base.now_at_least());
            let holding = match before {
                Some(draft) if draft.valid_time.is_none_or(|from| valid_time.is_none_or(|at| at >= from)) => {
                    Some(&draft.document)
                }
                _ => base.holding(valid_time).0.map(|head| &head.version.document),
            };
            let draft = Draft::clean(document.clone(), valid_time, erasures);
            // The version as it was before its owner erased something of it.
            let erased = base.holding(valid_time).0.filter(|_| before.is_none());
            let was =
                erased.and_then(|head| Some((head.form.mark()?.hash?, head.version.document.source_hash())));
            let is_there = holding.is_some_and(|stored| is_equal(stored, &draft.document))
                || was == Some((document.content_hash(), document.source_hash()))
                || (before.is_none_or(|draft| draft.valid_time <= valid_time)
                    && base.follows(valid_time, document));
            Ok((!is_there).then_some(draft))
        }
        Write::Patch { id, patch, valid_time } => {
            let (stored, from) = match (before, base.latest()) {
                (Some(draft), _) => (&draft.document, draft.valid_time),
                (None, Some(version)) => (&version.document, Some(version.valid_time)),
                (None, None) => return Err(unknown(id)),
            };
            let document = patch::apply(stored.clone(), [patch]).map_err(|e| match e.code() {
                ErrorCode::InvalidArgument => StoreError::from(e),
                _ => misfit(&e.to_string()),
            })?;
            let valid_time = match (*valid_time, from) {
                (Some(wanted), Some(from)) => Some(patch_time(Some(wanted), wanted, from)?),
                (Some(wanted), None) => Some(wanted),
                // The transaction's time is not known yet, and only a version dated ahead can be later than that.
                (None, from) => from.filter(|_| before.is_some()).or_else(|| base.now_at_least()),
            };
            Ok(Some(Draft::clean(document, valid_time, erasures)))
        }
    }
}

pub(super) fn is_equal(one: &Document, other: &Document) -> bool {
    one.content_hash() == other.content_hash() && one.source_hash() == other.source_hash()
}

/// The area of a write's object; `None` where only the stored object tells.
pub(super) fn area_of(write: &Write) -> Option<Area> {
    match write {
        Write::Put { document, .. } => Some(Area::of(document)),
        Write::Patch { id, .. } => Area::from_id(id),
    }
}

/// The object that a write changes.
pub(super) fn id_of(write: &Write) -> &ObjectId {
    match write {
        Write::Put { document, .. } => document.id(),
        Write::Patch { id, .. } => id,
    }
}
