//! The status of the queue and the database behind it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Instant;

use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};

use super::work_areas::WorkAreas;
use crate::XtdbStore;
use crate::areas::Area;
use context_store::StoreError;

/// The state of the queue, for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// True if XTDB answered the last request.
    pub is_connected: bool,
    /// The node that answers, or the first that is tried; without user name and password.
    pub url: String,
    /// Number of the journal's transactions that XTDB does not have yet, as far as known.
    pub queued: u64,
    /// Since when the oldest of them has been waiting.
    pub waiting_since: Option<Timestamp>,
    /// True if this process sends for the journal.
    pub is_sender: bool,
    /// Number of objects that others changed and that have not been fetched yet, as far as known; 0 if the journal is up to
    /// date.
    pub behind: u64,
    /// The last error, if the same thing has not succeeded since.
    pub last_error: Option<String>,
    /// Notice for users about the database, for instance that it was restored from a backup.
    pub notice: Option<String>,
}

/// An object that is on its way from XTDB.
#[derive(Default)]
pub(super) struct Meeting {
    /// Number of reads that fetch it.
    pub reads: usize,
    /// Number of others' changes to it that were reported since the first of them began.
    pub heard: u64,
}

#[derive(Default)]
pub(super) struct QueueStatus {
    pub remote: Option<Arc<XtdbStore>>,
    /// The node that was used last, once all is closed.
    pub last_url: Option<String>,
    pub is_connected: bool,
    pub is_sender: bool,
    pub last_error: Option<String>,
    /// The writes of this process that the sender has not sent yet.
    pub written: BTreeMap<TxId, Vec<JournalWrite>>,
    /// Transactions of the journal that wrote others' versions.
    pub brought_in: HashSet<TxId>,
    /// Notice for users about the database, until the store is closed.
    pub notice: Option<String>,
    /// The time at which each area was last requested with a check that its last read entry is still there.
    pub checked: HashMap<Area, Instant>,
    /// Objects that are on their way from XTDB, and whether others' changes to them were heard of since that began.
    pub meeting: HashMap<ObjectId, Meeting>,
    /// Objects that XTDB did not have when it was asked, and when that was.
    pub absent: HashMap<ObjectId, Instant>,
    /// The stores of this process that wait for a check for others' writes, by what they work in.
    pub asking: Vec<WorkAreas>,
    /// The IDs of the objects that XTDB has.
    pub names: RemoteIds,
    pub latest: TxId,
    /// Number of objects that have not been fetched yet.
    pub behind: u64,
    /// True if the last check for others' writes took longer than a turn waits.
    pub is_late: bool,
    /// An error of the journal while versions were fetched, for the next caller.
    pub refused: Option<StoreError>,
}

impl QueueStatus {
    /// Notes that a store asks for others' writes in what it works in.
    pub(super) fn asks(&mut self, work: &WorkAreas) {
        if !self.asking.iter().any(|one| one.is(work)) {
            self.asking.push(work.clone());
        }
    }
}

/// The IDs of all objects in XTDB at the last check, as 64-bit hashes. If two IDs share a hash, that costs an unnecessary
/// request.
#[derive(Default)]
pub(super) struct RemoteIds {
    hashes: HashSet<u64>,
    /// The newest store of this process when the whole list was last read; `None` before that, when nothing is known to be absent.
    read_for: Option<u64>,
}

impl RemoteIds {
    pub(super) fn add<'a>(&mut self, ids: impl IntoIterator<Item = &'a ObjectId>) {
        self.hashes.extend(ids.into_iter().map(short));
    }

    /// Takes over the list, which was read when this store was the newest one.
    pub(super) fn complete(&mut self, hashes: HashSet<u64>, newest: u64) {
        self.hashes.extend(hashes);
        self.read_for = self.read_for.max(Some(newest));
    }

    /// True if XTDB had no such object at the last check for others' writes. A store knows that only from a list that was read since
    /// it was opened: until then, others may have written where no store of this process has worked.
    pub(super) fn lacks(&self, id: &ObjectId, store: u64) -> bool {
        self.read_for.is_some_and(|newest| newest >= store) && !self.hashes.contains(&short(id))
    }
}

/// An ID's hash within this process.
pub(super) fn short(id: &ObjectId) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.as_str().hash(&mut hasher);
    hasher.finish()
}

/// Number of times that a transaction of the journal wrote an object.
#[derive(Clone, Debug)]
pub(super) struct JournalWrite {
    pub id: ObjectId,
    pub times: usize,
    /// This process did not write it itself, so it may be a fetched version of others that XTDB already has.
    pub is_doubtful: bool,
}

impl JournalWrite {
    /// Returns the objects that this process has just written.
    pub(super) fn of(ids: Vec<ObjectId>, is_written: &[bool]) -> Vec<Self> {
        let written = ids.into_iter().zip(is_written).filter(|(_, is)| **is).map(|(id, _)| id);
        Self::counted(written, false)
    }

    pub(super) fn counted(ids: impl Iterator<Item = ObjectId>, is_doubtful: bool) -> Vec<Self> {
        let mut times: HashMap<ObjectId, usize> = HashMap::new();
        ids.for_each(|id| *times.entry(id).or_default() += 1);
        times.into_iter().map(|(id, times)| Self { id, times, is_doubtful }).collect()
    }
}
