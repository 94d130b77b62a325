//! The bounded queue between the operating system's events and the sink: merges, and never blocks a producer.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use crate::flush::Acknowledge;
use crate::{Event, WatchError};

/// When a change is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// At once: the file is complete.
    Now,
    /// After the settle time, unless the same path becomes urgent first: something usually follows.
    Settle,
}

/// The change that may have happened to a directory. A stronger cause includes the weaker ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// Nothing in particular.
    Check,
    /// Its tracked files may have changed all at once: it appeared, or its mode changed.
    Touched,
    /// As `Touched`, and the operating system may no longer watch it or what lies below.
    Lost,
}

/// Everything due at one time.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub changed: HashSet<Utf8PathBuf>,
    pub moves: Vec<(Utf8PathBuf, Utf8PathBuf)>,
    pub directories: BTreeMap<Utf8PathBuf, Cause>,
    /// The operating system dropped events: no watch can be relied on.
    pub lost: bool,
    pub rescan: bool,
    pub poll: bool,
    pub warnings: Vec<String>,
    pub flushes: Vec<Acknowledge>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    filled: Condvar,
    capacity: usize,
    settle: Duration,
    patience: Option<Duration>,
}

#[derive(Debug, Default)]
struct InboxState {
    due: Batch,
    settling: HashSet<Utf8PathBuf>,
    settle_at: Option<Instant>,
    poll_at: Option<Instant>,
    /// Flushes whose marker is still on its way through the operating system's queue, and since when.
    pending: BTreeMap<u64, (Instant, Acknowledge)>,
    rescans: u64,
    closed: bool,
}

/// Time that a marker may take. On Windows a full queue drops events, and notify does not say so.
const PATIENCE: Option<Duration> = if cfg!(windows) { Some(Duration::from_secs(2)) } else { None };

/// Renames are only hints, so a few are enough.
const MOVES: usize = 1024;

impl Inbox {
    pub(crate) fn new(capacity: usize, settle: Duration) -> Self {
        let capacity = capacity.max(1);
        Self { state: Mutex::default(), filled: Condvar::new(), capacity, settle, patience: PATIENCE }
    }

    /// A tracked path may have changed. True if it was not waiting before.
    pub(crate) fn changed(&self, path: &Utf8Path, urgency: Urgency) -> bool {
        let mut state = self.lock();
        // A rescan that is still to be delivered covers whatever happened before it.
        if state.due.rescan || state.due.changed.contains(path) {
            return false;
        }
        let was_settling = state.settling.contains(path);
        if !was_settling && state.due.changed.len() + state.settling.len() >= self.capacity {
            state.drop_changes();
            self.filled.notify_one();
            return true;
        }
        match urgency {
            Urgency::Now => {
                state.settling.remove(path);
                state.due.changed.insert(path.to_owned());
                self.filled.notify_one();
            }
            Urgency::Settle if !was_settling => {
                state.settling.insert(path.to_owned());
                if state.settle_at.is_none() {
                    state.settle_at = Some(Instant::now() + self.settle);
                    self.filled.notify_one();
                }
            }
            Urgency::Settle => {}
        }
        !was_settling
    }

    /// A tracked path was renamed; both paths are also reported by [`Inbox::changed`].
    pub(crate) fn moved(&self, from: &Utf8Path, to: &Utf8Path) {
        let mut state = self.lock();
        if state.due.moves.len() < MOVES {
            state.due.moves.push((from.to_owned(), to.to_owned()));
        }
    }

    /// A directory of the plan needs a look.
    pub(crate) fn directory(&self, path: &Utf8Path, cause: Cause) {
        let mut state = self.lock();
        let known = state.due.directories.entry(path.to_owned()).or_insert(cause);
        *known = cause.max(*known);
        self.filled.notify_one();
    }

    /// The operating system dropped events. Markers of flushes may be among them; the rescan that follows
    /// covers those flushes.
    pub(crate) fn overflowed(&self) {
        self.lock().lose();
        self.filled.notify_one();
    }

    pub(crate) fn warn(&self, warning: String) {
        self.lock().due.warnings.push(warning);
        self.filled.notify_one();
    }

    /// Asks for a poll after `interval`, unless one is planned.
    pub(crate) fn poll_after(&self, interval: Duration) {
        let mut state = self.lock();
        if state.poll_at.is_none() {
            state.poll_at = Some(Instant::now() + interval);
            self.filled.notify_one();
        }
    }

    /// Registers a flush whose marker is about to be made.
    pub(crate) fn await_marker(&self, number: u64, flush: Acknowledge) {
        let mut state = self.lock();
        if state.closed {
            flush.fail(WatchError::Closed);
        } else {
            state.pending.insert(number, (Instant::now(), flush));
            if self.patience.is_some() {
                self.filled.notify_one();
            }
        }
    }

    /// A marker came through the operating system's queue, and so did everything before it.
    pub(crate) fn marker(&self, number: u64) {
        let mut state = self.lock();
        if let Some((_, flush)) = state.pending.remove(&number) {
            state.due.flushes.push(flush);
            self.filled.notify_one();
        }
    }

    /// Answers a flush without its marker; `rescan` if changes may not have come through yet.
    pub(crate) fn answer(&self, number: u64, rescan: bool) {
        let mut state = self.lock();
        if let Some((_, flush)) = state.pending.remove(&number) {
            state.due.flushes.push(flush);
            state.due.rescan |= rescan;
            self.filled.notify_one();
        }
    }

    /// Answers all flushes by a rescan: their markers will not come.
    pub(crate) fn answer_all(&self) {
        let mut state = self.lock();
        if !state.pending.is_empty() {
            state.due.rescan = true;
            state.answer_all();
            self.filled.notify_one();
        }
    }

    /// Waits until something is due and takes it; `None` when closed.
    pub(crate) fn take(&self) -> Option<Batch> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            let now = Instant::now();
            if state.late_at(self.patience).is_some_and(|at| at <= now) {
                state.lose();
            }
            if !state.due.flushes.is_empty() || state.settle_at.is_some_and(|at| at <= now) {
                let settled = std::mem::take(&mut state.settling);
                state.due.changed.extend(settled);
                state.settle_at = None;
            }
            if state.poll_at.is_some_and(|at| at <= now) {
                state.poll_at = None;
                state.due.poll = true;
            }
            if state.due.is_something() {
                if state.settling.is_empty() {
                    state.settle_at = None;
                }
                return Some(std::mem::take(&mut state.due));
            }
            let wake_at =
                [state.settle_at, state.poll_at, state.late_at(self.patience)].into_iter().flatten().min();
            state = match wake_at {
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let left = at.saturating_duration_since(now);
                    self.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waiting: Vec<_> =
            std::mem::take(&mut state.pending).into_values().map(|(_, flush)| flush).collect();
        let answered = std::mem::take(&mut state.due.flushes);
        drop(state);
        for flush in waiting.into_iter().chain(answered) {
            flush.fail(WatchError::Closed);
        }
        self.filled.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(crate) fn rescans(&self) -> u64 {
        self.lock().rescans
    }

    /// More changes than fit in one delivery were found: counted as dropped.
    pub(crate) fn count_rescan(&self) {
        self.lock().rescans += 1;
    }

    /// True if the taker will wake up on its own.
    #[cfg(test)]
    pub(crate) fn has_timer(&self) -> bool {
        let state = self.lock();
        state.settle_at.is_some() || state.poll_at.is_some()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InboxState {
    /// Events are missing.
    fn lose(&mut self) {
        self.due.lost = true;
        self.drop_changes();
        self.answer_all();
    }

    /// When the oldest marker is given up.
    fn late_at(&self, patience: Option<Duration>) -> Option<Instant> {
        let (_, (since, _)) = self.pending.first_key_value()?;
        Some(*since + patience?)
    }

    fn drop_changes(&mut self) {
        self.due.changed = HashSet::new();
        self.settling = HashSet::new();
        self.settle_at = None;
        if !self.due.rescan {
            self.due.rescan = true;
            self.rescans += 1;
        }
    }

    fn answer_all(&mut self) {
        self.due.flushes.extend(std::mem::take(&mut self.pending).into_values().map(|(_, flush)| flush));
    }
}

impl Batch {
    /// The events for the sink, in order. Flushes come last: they wait for the events before them.
    pub(crate) fn into_events(self) -> impl Iterator<Item = Event> {
        let changed = if self.rescan {
            Some(Event::Rescan)
        } else if self.changed.is_empty() {
            None
        } else {
            let mut paths: Vec<_> = self.changed.into_iter().collect();
            paths.sort_unstable();
            Some(Event::Changed(paths))
        };
        let warnings = self.warnings.into_iter().map(Event::Warning);
        let moves = self.moves.into_iter().map(|(from, to)| Event::Moved { from, to });
        warnings.chain(moves).chain(changed).chain(self.flushes.into_iter().map(Event::Flush))
    }

    pub(crate) fn is_something(&self) -> bool {
        !self.changed.is_empty()
            || !self.directories.is_empty()
            || self.lost
            || self.rescan
            || self.poll
            || !self.warnings.is_empty()
            || !self.flushes.is_empty()
    }
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
