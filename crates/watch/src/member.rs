//! A member of a shared tracker: its waiting events, and the threads that deliver them.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use crate::inbox::Batch;
use crate::tracker::Outlet;
use crate::{Event, Sink, Touch, WatchError};

/// Number of members that are notified at the same moment. A member that waits for a lock delays the others only if this
/// many wait.
const THREADS: usize = 8;

/// Time that a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(5);

/// Renames are only hints, so a few are enough.
const MOVES: usize = 1024;

/// See the module.
pub(crate) struct Member {
    number: u64,
    capacity: usize,
    sink: Mutex<Outlet<Box<dyn Sink>>>,
    touch: Option<Touch>,
    due: Mutex<Due>,
    tracked: Mutex<HashSet<Utf8PathBuf>>,
    /// The thread that is telling it something.
    teller: Mutex<Option<ThreadId>>,
    rescans: AtomicU64,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct Due {
    batch: Batch,
    /// True while it waits for a thread, or has one.
    is_waiting: bool,
}

impl Member {
    pub(crate) fn new(number: u64, capacity: usize, sink: Box<dyn Sink>) -> Self {
        Self {
            number,
            capacity: capacity.max(1),
            touch: sink.touch(),
            sink: Mutex::new(Outlet::new(sink)),
            due: Mutex::default(),
            tracked: Mutex::default(),
            teller: Mutex::default(),
            rescans: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn touch(&self, path: &Utf8Path) {
        if let Some(touch) = self.touch.as_ref().filter(|_| !self.is_closed()) {
            touch(path);
        }
    }

    /// Adds to its waiting events, and has a thread deliver them. `is_alone`: no other member waits meanwhile, so this
    /// thread does it: a change that comes right before a model call must not wait for another thread.
    pub(crate) fn push(
        self: &Arc<Self>,
        workers: &Arc<Workers>,
        is_alone: bool,
        add: impl FnOnce(&mut Batch),
    ) {
        let starts = {
            let mut due = locked(&self.due);
            add(&mut due.batch);
            let batch = &mut due.batch;
            batch.moves.truncate(MOVES);
            if batch.changed.len() > self.capacity {
                batch.rescan = true;
            }
            if batch.rescan && !batch.changed.is_empty() {
                batch.changed = HashSet::new();
            }
            // Looked at under the lock that closing takes, so that no flush is forgotten.
            if self.is_closed() {
                fail(std::mem::take(batch));
                return;
            }
            !std::mem::replace(&mut due.is_waiting, true)
        };
        if starts && is_alone {
            while self.tell() {}
        } else if starts {
            workers.schedule(Arc::clone(self));
        }
    }

    /// Delivers the events that are due now. True if more have come meanwhile.
    fn tell(&self) -> bool {
        let batch = std::mem::take(&mut locked(&self.due).batch);
        *locked(&self.teller) = Some(thread::current().id());
        {
            let mut sink = locked(&self.sink);
            if batch.rescan {
                self.rescans.fetch_add(1, Ordering::Relaxed);
            }
            for event in batch.into_events() {
                match event {
                    Event::Flush(flush) if self.is_closed() => flush.fail(WatchError::Closed),
                    _ if self.is_closed() => {}
                    event => sink.deliver(event),
                }
            }
        }
        *locked(&self.teller) = None;
        let mut due = locked(&self.due);
        due.is_waiting = due.batch.is_something();
        due.is_waiting
    }

    pub(crate) fn tracks(&self, path: &Utf8Path) {
        locked(&self.tracked).insert(path.to_owned());
    }

    /// True if it tracked the path.
    pub(crate) fn lets_go(&self, path: &Utf8Path) -> bool {
        locked(&self.tracked).remove(path)
    }

    pub(crate) fn lets_all_go(&self) -> HashSet<Utf8PathBuf> {
        std::mem::take(&mut locked(&self.tracked))
    }

    pub(crate) fn tracked(&self) -> usize {
        locked(&self.tracked).len()
    }

    pub(crate) fn rescans(&self) -> u64 {
        self.rescans.load(Ordering::Relaxed)
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// It gets no more events. Waits for a delivery in progress, unless that delivery closes it.
    pub(crate) fn close(&self) {
        let left = {
            let mut due = locked(&self.due);
            self.is_closed.store(true, Ordering::Release);
            std::mem::take(&mut due.batch)
        };
        fail(left);
        if *locked(&self.teller) != Some(thread::current().id()) {
            drop(locked(&self.sink));
        }
    }
}

/// The threads of one tracker's members, started when they are needed.
#[derive(Default)]
pub(crate) struct Workers {
    state: Mutex<WorkersState>,
    filled: Condvar,
}

#[derive(Default)]
struct WorkersState {
    queue: VecDeque<Arc<Member>>,
    running: usize,
    idle: usize,
    has_ended: bool,
}

impl Workers {
    /// Has a thread deliver this member's due events.
    fn schedule(self: &Arc<Self>, member: Arc<Member>) {
        let mut state = locked(&self.state);
        state.queue.push_back(member);
        if state.idle >= state.queue.len() || state.running >= THREADS {
            self.filled.notify_one();
            return;
        }
        state.running += 1;
        drop(state);
        let working = Arc::clone(self);
        let started = thread::Builder::new().name("context-tell".to_owned()).spawn(move || working.work());
        if let Err(error) = started {
            tracing::warn!(%error, "a thread that tells of file events could not be started");
            let mut state = locked(&self.state);
            state.running -= 1;
            let alone = if state.running == 0 { state.queue.pop_front() } else { None };
            drop(state);
            // No other thread would do it.
            while alone.as_ref().is_some_and(|member| member.tell()) {}
        }
    }

    /// The threads end once nothing is left to do.
    pub(crate) fn end(&self) {
        locked(&self.state).has_ended = true;
        self.filled.notify_all();
    }

    fn work(self: Arc<Self>) {
        while let Some(member) = self.next() {
            if member.tell() {
                locked(&self.state).queue.push_back(member);
            }
        }
    }

    fn next(&self) -> Option<Arc<Member>> {
        let mut state = locked(&self.state);
        if state.queue.is_empty() && !state.has_ended {
            state.idle += 1;
            let wait = |state: &mut WorkersState| state.queue.is_empty() && !state.has_ended;
            let waited = self.filled.wait_timeout_while(state, IDLE, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
        }
        let next = state.queue.pop_front();
        if next.is_none() {
            state.running -= 1;
        }
        next
    }
}

fn fail(batch: Batch) {
    for flush in batch.flushes {
        flush.fail(WatchError::Closed);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
