//! The meaning of an event of the operating system for the plan.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use crate::event::Touch;
use crate::inbox::{Cause, Inbox, Urgency};
use crate::plan::WatchPlan;

/// Filters events by the plan. Runs on the thread that reads them, so it takes short locks only and never waits.
pub(crate) struct Listener {
    pub inbox: Inbox,
    pub markers: Option<Markers>,
    touch: Option<Touch>,
    plan: Mutex<WatchPlan>,
}

/// The entries a tracker makes in its own directory. The operating system keeps the events of all directories in one queue,
/// so when such an entry is announced, everything before it has been announced.
#[derive(Debug)]
pub(crate) struct Markers {
    pub directory: Utf8PathBuf,
    /// Tells this tracker's entries from those of other trackers and processes.
    pub prefix: String,
}

impl Listener {
    pub(crate) fn new(inbox: Inbox, markers: Option<Markers>, touch: Option<Touch>) -> Self {
        Self { inbox, markers, touch, plan: Mutex::default() }
    }

    pub(crate) fn plan(&self) -> MutexGuard<'_, WatchPlan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened at a path. `cause` is what that means if the path is a directory.
    pub(crate) fn hear(&self, path: &Utf8Path, urgency: Urgency, cause: Option<Cause>) {
        let meaning = self.plan().meaning(path);
        if meaning.tracked && self.inbox.changed(path, urgency) {
            self.touched(path);
        }
        if let Some(cause) = cause.filter(|_| meaning.directory) {
            self.inbox.directory(path, cause);
        }
        if let Some(number) = self.markers.as_ref().and_then(|markers| markers.number(path)) {
            self.inbox.marker(number);
        }
    }

    fn touched(&self, path: &Utf8Path) {
        let Some(touch) = &self.touch else { return };
        // This thread must continue whatever the receiver does.
        if catch_unwind(AssertUnwindSafe(|| touch(path))).is_err() {
            tracing::error!("the receiver of touches panicked");
        }
    }

    /// One name became another, after both were heard of alone.
    pub(crate) fn hear_rename(&self, from: &Utf8Path, to: &Utf8Path) {
        if self.plan().meaning(from).tracked {
            self.inbox.moved(from, to);
            self.inbox.changed(from, Urgency::Now);
        }
    }
}

impl Markers {
    /// True if their directory is among these, or below one of them.
    pub(crate) fn are_touched_by(&self, directories: &BTreeMap<Utf8PathBuf, Cause>) -> bool {
        self.directory.ancestors().any(|directory| directories.contains_key(directory))
    }

    fn number(&self, path: &Utf8Path) -> Option<u64> {
        if path.parent()? != self.directory {
            return None;
        }
        path.file_name()?.strip_prefix(self.prefix.as_str())?.parse().ok()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::flush::Acknowledge;

    /// Listens for one file and for markers of flushes.
    pub(crate) fn listener() -> Listener {
        let markers = Markers { directory: "/m".into(), prefix: "flush-1-".into() };
        let listener = Listener::new(Inbox::new(100, Duration::from_secs(3600)), Some(markers), None);
        listener.plan().track(Utf8Path::new("/a/b/f"));
        listener.plan().pin(Utf8Path::new("/m"));
        listener
    }

    #[test]
    fn only_paths_of_the_plan_count() {
        let listener = listener();
        for path in ["/a/b/f", "/a/b/store.db", "/a/b", "/a/c"] {
            listener.hear(Utf8Path::new(path), Urgency::Now, Some(Cause::Touched));
        }
        let batch = listener.inbox.take().unwrap();
        assert_eq!(batch.changed.into_iter().collect::<Vec<_>>(), ["/a/b/f"]);
        assert_eq!(batch.directories.into_iter().collect::<Vec<_>>(), [("/a/b".into(), Cause::Touched)]);
    }

    #[test]
    fn only_the_own_marker_answers_a_flush() {
        let listener = listener();
        let created = |path: &str| listener.hear(Utf8Path::new(path), Urgency::Settle, Some(Cause::Touched));
        let (flush, ack) = Acknowledge::pair();
        listener.inbox.await_marker(5, ack);
        for other in ["/m/flush-2-5", "/m/flush-1-4", "/m/x/flush-1-5", "/flush-1-5", "/m/flush-1-5x"] {
            created(other);
        }
        listener.inbox.warn("so that something is due".into());
        assert!(listener.inbox.take().unwrap().flushes.is_empty());
        created("/m/flush-1-5");
        assert_eq!(listener.inbox.take().unwrap().flushes.len(), 1);
        assert_eq!(flush.wait(), Ok(()));
    }
}
