//! One tracker for all sessions of this process that keep their markers in one directory: a further session costs neither a file
//! descriptor nor a thread.
//!
//! The tracker's own thread passes each event to the members whose path it is, and waits for none of them: members take their
//! events on a few threads that end when they are idle.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use context_platform::shared::{Seat, Shareable, SharedTable};

use crate::member::{Member, Workers};
use crate::{
    Acknowledge, Event, Flush, NotifyTracker, Sink, Touch, Tracked, Tracker, TrackerOptions, TrackerStatus,
    WatchError,
};

/// Number of warnings that a tracker keeps for members that join later.
const WARNINGS: usize = 4;

/// A session's part of the tracker that it shares with others.
pub struct SharedTracker {
    hub: Seat<Hub>,
    member: Arc<Member>,
    is_closed: AtomicBool,
}

struct Hub {
    tracker: NotifyTracker,
    members: Arc<Members>,
    /// Held while a path gets its first member or loses its last one.
    changing: Mutex<()>,
}

#[derive(Default)]
struct Members {
    table: Mutex<Table>,
    workers: Arc<Workers>,
}

#[derive(Default)]
struct Table {
    next: u64,
    members: HashMap<u64, Arc<Member>>,
    paths: HashMap<Utf8PathBuf, Vec<u64>>,
    warnings: Vec<String>,
}

/// By the marker directory.
static HUBS: SharedTable<Hub> = SharedTable::empty();

impl Shareable for Hub {
    type Key = Utf8PathBuf;
    type Opening = Mutex<()>;

    fn is_sound(&self) -> bool {
        true
    }
}

impl SharedTracker {
    /// Joins the tracker of this marker directory, or starts it with these options. `sink` gets the events of the paths
    /// that the returned member tracks, one at a time, and those that concern all.
    ///
    /// # Errors
    /// [`WatchError::Thread`] if a thread can't be started.
    pub fn join(
        marker_directory: &Utf8Path,
        options: TrackerOptions,
        sink: impl Sink,
    ) -> Result<Self, WatchError> {
        let capacity = options.capacity;
        // One directory under the names of several links is one.
        let real =
            Utf8PathBuf::from_path_buf(context_platform::in_real_folder(marker_directory.as_std_path()));
        let marker_directory = real.unwrap_or_else(|_| marker_directory.to_owned());
        let place = HUBS.place(marker_directory);
        let hub = {
            let _opening = locked(place.opening());
            match place.join() {
                Some(hub) => hub,
                None => place.share(Hub::start(place.key(), options)?),
            }
        };
        let (member, warnings) = {
            let mut table = hub.members.table();
            let number = table.next;
            table.next += 1;
            let member = Arc::new(Member::new(number, capacity, Box::new(sink)));
            table.members.insert(number, Arc::clone(&member));
            (member, table.warnings.clone())
        };
        for warning in warnings {
            member.push(&hub.members.workers, false, |due| due.warnings.push(warning));
        }
        Ok(Self { hub, member, is_closed: AtomicBool::new(false) })
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

impl Tracker for SharedTracker {
    fn track(&self, path: &Utf8Path) -> Result<Tracked, WatchError> {
        let _changing = locked(&self.hub.changing);
        if self.is_closed() {
            return Err(WatchError::Closed);
        }
        let number = self.member.number();
        let is_new = {
            let mut table = self.hub.members.table();
            let members = table.paths.entry(path.to_owned()).or_default();
            let is_new = !members.contains(&number);
            if is_new {
                members.push(number);
            }
            is_new
        };
        let tracked = self.hub.tracker.track(path);
        if tracked.is_err() && is_new {
            self.hub.members.table().leave(path, number);
        } else {
            self.member.tracks(path);
        }
        tracked
    }

    fn untrack(&self, path: &Utf8Path) {
        let _changing = locked(&self.hub.changing);
        if self.member.lets_go(path) && self.hub.members.table().leave(path, self.member.number()) {
            self.hub.tracker.untrack(path);
        }
    }

    fn flush(&self) -> Flush {
        if self.is_closed() {
            let (flush, acknowledge) = Acknowledge::pair();
            acknowledge.fail(WatchError::Closed);
            return flush;
        }
        self.hub.tracker.flush_for(self.member.number())
    }

    fn status(&self) -> TrackerStatus {
        TrackerStatus {
            tracked: self.member.tracked(),
            rescans: self.member.rescans(),
            closed: self.is_closed(),
            ..self.hub.tracker.status()
        }
    }

    fn close(&self) {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.hub.members.table().members.remove(&self.member.number());
        self.member.close();
        if self.hub.leave() {
            self.hub.tracker.close();
            self.hub.members.workers.end();
            return;
        }
        let _changing = locked(&self.hub.changing);
        for path in self.member.lets_all_go() {
            if self.hub.members.table().leave(&path, self.member.number()) {
                self.hub.tracker.untrack(&path);
            }
        }
    }
}

impl Drop for SharedTracker {
    fn drop(&mut self) {
        self.close();
    }
}

impl Hub {
    fn start(marker_directory: &Utf8Path, options: TrackerOptions) -> Result<Self, WatchError> {
        let members = Arc::<Members>::default();
        let options = TrackerOptions { marker_directory: Some(marker_directory.to_owned()), ..options };
        let tracker = NotifyTracker::start(options, Fanout(Arc::clone(&members)))?;
        Ok(Self { tracker, members, changing: Mutex::default() })
    }
}

impl Members {
    fn table(&self) -> MutexGuard<'_, Table> {
        locked(&self.table)
    }

    fn all(&self) -> Vec<Arc<Member>> {
        self.table().members.values().cloned().collect()
    }

    fn of(&self, path: &Utf8Path) -> Vec<Arc<Member>> {
        let table = self.table();
        let numbers = table.paths.get(path).into_iter().flatten();
        numbers.filter_map(|number| table.members.get(number).cloned()).collect()
    }

    /// Sorts paths by the members that track them.
    fn split(&self, paths: Vec<Utf8PathBuf>) -> Vec<(Arc<Member>, HashSet<Utf8PathBuf>)> {
        let table = self.table();
        let mut split: HashMap<u64, HashSet<Utf8PathBuf>> = HashMap::new();
        for path in paths {
            for number in table.paths.get(&path).into_iter().flatten() {
                split.entry(*number).or_default().insert(path.clone());
            }
        }
        let member = |number| table.members.get(&number).cloned();
        split.into_iter().filter_map(|(number, paths)| Some((member(number)?, paths))).collect()
    }
}

impl Table {
    /// A member lets go of a path. True if no other member tracks it.
    fn leave(&mut self, path: &Utf8Path, number: u64) -> bool {
        let Some(members) = self.paths.get_mut(path) else { return false };
        members.retain(|member| *member != number);
        let is_free = members.is_empty();
        if is_free {
            self.paths.remove(path);
        }
        is_free
    }
}

/// Passes events on to the members that they concern.
struct Fanout(Arc<Members>);

impl Sink for Fanout {
    fn deliver(&mut self, event: Event) {
        let workers = &self.0.workers;
        let is_alone = self.0.table().members.len() == 1;
        match event {
            Event::Changed(paths) => {
                for (member, paths) in self.0.split(paths) {
                    member.push(workers, is_alone, |due| due.changed.extend(paths));
                }
            }
            Event::Rescan => {
                for member in self.0.all() {
                    member.push(workers, is_alone, |due| due.rescan = true);
                }
            }
            Event::Moved { from, to } => {
                for member in self.0.of(&from) {
                    member.push(workers, is_alone, |due| due.moves.push((from.clone(), to.clone())));
                }
            }
            Event::Warning(text) => {
                {
                    let warnings = &mut self.0.table().warnings;
                    if warnings.len() < WARNINGS && !warnings.contains(&text) {
                        warnings.push(text.clone());
                    }
                }
                for member in self.0.all() {
                    member.push(workers, is_alone, |due| due.warnings.push(text.clone()));
                }
            }
            Event::Flush(acknowledge) => {
                let member = self.0.table().members.get(&acknowledge.member()).cloned();
                match member {
                    Some(member) => member.push(workers, is_alone, |due| due.flushes.push(acknowledge)),
                    None => acknowledge.fail(WatchError::Closed),
                }
            }
        }
    }

    fn touch(&self) -> Option<Touch> {
        let members = Arc::clone(&self.0);
        Some(Box::new(move |path| {
            for member in members.of(path) {
                if catch_unwind(AssertUnwindSafe(|| member.touch(path))).is_err() {
                    tracing::error!("the receiver of touches panicked");
                }
            }
        }))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
