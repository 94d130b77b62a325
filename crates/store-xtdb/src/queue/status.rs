//! The status of the queue and the database behind it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use lru::LruCache;

use crate::XtdbStore;
use crate::areas::Area;
use context_store::StoreError;

/// Interval at which turns ask for others' writes in a session of this process. A session that is worked on here is not
/// worked on elsewhere, as a rule; a client that reads it as a whole asks anyway.
const SESSION_PAUSE: Duration = Duration::from_secs(30);

/// The most areas that a process asks for at each turn: those in which it worked last. When it returns to another one, it
/// first asks for that.
const MOST_AREAS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

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
    /// The areas that this process works in.
    pub areas: Areas,
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

/// The areas that this process works in, and the time of its last request for others' writes there.
pub(super) struct Areas(LruCache<Area, Option<Instant>>);

impl Default for Areas {
    fn default() -> Self {
        Self(LruCache::new(MOST_AREAS))
    }
}

impl Areas {
    /// Notes that the process works in this area. True if that is new.
    pub(super) fn enter(&mut self, area: Area) -> bool {
        if self.0.get(&area).is_some() {
            return false;
        }
        self.0.put(area, None);
        true
    }

    pub(super) fn has(&self, area: &Area) -> bool {
        self.0.contains(area)
    }

    /// Notes that the process asks now.
    pub(super) fn asks(&mut self, area: &Area) {
        if let Some(asked) = self.0.peek_mut(area) {
            *asked = Some(Instant::now());
        }
    }

    /// Notes that nothing is known of any of them.
    pub(super) fn ask_again(&mut self) {
        self.0.iter_mut().for_each(|(_, asked)| *asked = None);
    }

    /// Notes that it does not have everything yet.
    pub(super) fn is_late(&mut self, area: &Area) {
        if let Some(asked) = self.0.peek_mut(area) {
            *asked = None;
        }
    }

    /// Those to ask about at a turn: all but those of sessions that were asked about a moment ago.
    pub(super) fn due(&self) -> Vec<Area> {
        let is_due = |(area, asked): &(&Area, &Option<Instant>)| {
            !area.is_of_a_session() || asked.is_none_or(|asked| asked.elapsed() >= SESSION_PAUSE)
        };
        self.0.iter().filter(is_due).map(|(area, _)| area.clone()).collect()
    }
}

/// The IDs of all objects in XTDB at the last check, as 64-bit hashes. If two IDs share a hash, that costs an unnecessary
/// request.
#[derive(Default)]
pub(super) struct RemoteIds {
    hashes: HashSet<u64>,
    /// True if the whole list was read; before that nothing is known to be absent.
    is_complete: bool,
}

impl RemoteIds {
    pub(super) fn add<'a>(&mut self, ids: impl IntoIterator<Item = &'a ObjectId>) {
        self.hashes.extend(ids.into_iter().map(short));
    }

    /// Takes over the part of the list that was read.
    pub(super) fn complete(&mut self, hashes: HashSet<u64>) {
        self.hashes.extend(hashes);
        self.is_complete = true;
    }

    /// True if XTDB had no such object at the last check for others' writes.
    pub(super) fn lacks(&self, id: &ObjectId) -> bool {
        self.is_complete && !self.hashes.contains(&short(id))
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
