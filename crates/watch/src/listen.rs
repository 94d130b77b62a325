//! What an event of the operating system means for the plan.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use notify::EventKind;
use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};

use crate::inbox::{Cause, Inbox, Urgency};
use crate::plan::Plan;

/// Filters events by the plan. Runs on `notify`'s thread, so it takes short locks only and never waits: that
/// thread also answers the calls that add and remove watches.
#[derive(Debug)]
pub(crate) struct Listener {
    pub inbox: Inbox,
    pub markers: Option<Markers>,
    plan: Mutex<Plan>,
}

/// The entries a tracker makes in a directory of its own. The operating system keeps the events of all
/// directories in one queue, so when such an entry is announced, everything before it has been.
#[derive(Debug)]
pub(crate) struct Markers {
    pub directory: Utf8PathBuf,
    /// Tells this tracker's entries from those of other trackers and processes.
    pub prefix: String,
}

impl Listener {
    pub fn new(inbox: Inbox, markers: Option<Markers>) -> Self {
        Self { inbox, markers, plan: Mutex::default() }
    }

    pub fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one event, or the news that some were lost.
    pub fn hear(&self, event: notify::Result<notify::Event>) {
        let event = match event {
            Ok(event) if !event.need_rescan() => event,
            Ok(_) => return self.inbox.overflowed(),
            Err(error) => {
                tracing::warn!(%error, "file events may be lost");
                return self.inbox.overflowed();
            }
        };
        if event.kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both)) {
            return self.hear_rename(&event.paths);
        }
        let Some((urgency, cause)) = weigh(event.kind) else { return };
        // A name that is not UTF-8 can't be a tracked path.
        for path in event.paths.iter().filter_map(|path| Utf8Path::from_path(path)) {
            self.hear_path(path, urgency, cause);
        }
    }

    fn hear_path(&self, path: &Utf8Path, urgency: Urgency, cause: Option<Cause>) {
        let meaning = self.plan().meaning(path);
        if meaning.tracked {
            self.inbox.changed(path, urgency);
        }
        if let Some(cause) = cause.filter(|_| meaning.directory) {
            self.inbox.directory(path, cause);
        }
        if let Some(number) = self.markers.as_ref().and_then(|markers| markers.number(path)) {
            self.inbox.marker(number);
        }
    }

    /// Comes after the two events of the single paths.
    fn hear_rename(&self, paths: &[std::path::PathBuf]) {
        let [from, to] = paths else { return };
        let (Some(from), Some(to)) = (Utf8Path::from_path(from), Utf8Path::from_path(to)) else { return };
        if self.plan().meaning(from).tracked {
            self.inbox.moved(from, to);
            self.inbox.changed(from, Urgency::Now);
        }
    }
}

impl Markers {
    /// Whether their directory is among these, or below one of them.
    pub fn are_touched_by(&self, directories: &BTreeMap<Utf8PathBuf, Cause>) -> bool {
        self.directory.ancestors().any(|directory| directories.contains_key(directory))
    }

    fn number(&self, path: &Utf8Path) -> Option<u64> {
        if path.parent()? != self.directory {
            return None;
        }
        path.file_name()?.strip_prefix(self.prefix.as_str())?.parse().ok()
    }
}

/// How soon a tracked path of such an event is due, and what it says about a directory of the plan. `None`
/// for events that change nothing, such as our own reading.
fn weigh(kind: EventKind) -> Option<(Urgency, Option<Cause>)> {
    Some(match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => (Urgency::Now, None),
        EventKind::Access(_) => return None,
        EventKind::Create(_) => (Urgency::Settle, Some(Cause::Touched)),
        EventKind::Remove(_) => (Urgency::Settle, Some(Cause::Lost)),
        EventKind::Modify(ModifyKind::Name(mode)) => match mode {
            RenameMode::From => (Urgency::Settle, Some(Cause::Lost)),
            RenameMode::To => (Urgency::Now, Some(Cause::Touched)),
            RenameMode::Any | RenameMode::Both | RenameMode::Other => (Urgency::Now, Some(Cause::Lost)),
        },
        EventKind::Modify(ModifyKind::Data(_)) => (Urgency::Settle, None),
        EventKind::Modify(_) | EventKind::Any | EventKind::Other => (Urgency::Settle, Some(Cause::Touched)),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use notify::Event;
    use notify::event::{CreateKind, DataChange, Flag, MetadataKind, RemoveKind};
    use rstest::rstest;

    use super::*;
    use crate::flush::Acknowledge;

    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const OPENED: EventKind = EventKind::Access(AccessKind::Open(AccessMode::Any));
    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const MODE: EventKind = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
    const CREATED: EventKind = EventKind::Create(CreateKind::File);
    const REMOVED: EventKind = EventKind::Remove(RemoveKind::File);
    const FROM: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::From));
    const TO: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));
    const BOTH: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::Both));

    fn listener() -> Listener {
        let markers = Markers { directory: "/m".into(), prefix: "flush-1-".into() };
        let listener = Listener::new(Inbox::new(100, Duration::from_secs(3600)), Some(markers));
        listener.plan().track(Utf8Path::new("/a/b/f"));
        listener.plan().pin(Utf8Path::new("/m"));
        listener
    }

    fn event(kind: EventKind, paths: &[&str]) -> notify::Result<Event> {
        Ok(paths.iter().fold(Event::new(kind), |event, path| event.add_path(path.into())))
    }

    #[rstest]
    #[case::closed(CLOSED, true, None)]
    #[case::opened(OPENED, false, None)]
    #[case::written(WRITTEN, false, None)]
    #[case::mode(MODE, false, Some(Cause::Touched))]
    #[case::created(CREATED, false, Some(Cause::Touched))]
    #[case::removed(REMOVED, false, Some(Cause::Lost))]
    #[case::from(FROM, false, Some(Cause::Lost))]
    #[case::to(TO, true, Some(Cause::Touched))]
    fn kinds_decide_what_is_due(
        #[case] kind: EventKind,
        #[case] at_once: bool,
        #[case] cause: Option<Cause>,
    ) {
        let listener = listener();
        for path in ["/a/b/f", "/a/b/store.db", "/a/b"] {
            listener.hear(event(kind, &[path]));
        }
        listener.inbox.warn("so that something is due".into());
        let batch = listener.inbox.take().unwrap();
        assert_eq!(batch.changed.contains(Utf8Path::new("/a/b/f")), at_once);
        assert!(batch.changed.len() <= 1, "only the tracked name counts");
        assert_eq!(batch.directories.get(Utf8Path::new("/a/b")).copied(), cause);
    }

    #[test]
    fn a_rename_of_a_tracked_path_is_named_once_complete() {
        let listener = listener();
        listener.hear(event(FROM, &["/a/b/f"]));
        listener.hear(event(TO, &["/a/b/g"]));
        listener.hear(event(BOTH, &["/a/b/f", "/a/b/g"]));
        listener.hear(event(BOTH, &["/a/b/temp", "/a/b/f"]));
        let batch = listener.inbox.take().unwrap();
        assert_eq!(batch.moves, vec![("/a/b/f".into(), "/a/b/g".into())]);
        assert!(batch.changed.contains(Utf8Path::new("/a/b/f")));
    }

    #[test]
    fn only_the_own_marker_answers_a_flush() {
        let listener = listener();
        let (flush, ack) = Acknowledge::pair();
        listener.inbox.await_marker(5, ack);
        for other in ["/m/flush-2-5", "/m/flush-1-4", "/m/x/flush-1-5", "/flush-1-5", "/m/flush-1-5x"] {
            listener.hear(event(CREATED, &[other]));
        }
        listener.inbox.warn("so that something is due".into());
        assert!(listener.inbox.take().unwrap().flushes.is_empty());
        listener.hear(event(CREATED, &["/m/flush-1-5"]));
        assert_eq!(listener.inbox.take().unwrap().flushes.len(), 1);
        assert_eq!(flush.wait(), Ok(()));
    }

    #[rstest]
    #[case::flag(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)))]
    #[case::error(Err(notify::Error::generic("read")))]
    fn lost_events_lead_to_a_rescan(#[case] event: notify::Result<Event>) {
        let listener = listener();
        listener.hear(event);
        let batch = listener.inbox.take().unwrap();
        assert!(batch.rescan && batch.lost);
    }

    #[test]
    #[cfg(unix)]
    fn a_name_that_is_not_utf8_is_skipped() {
        use std::os::unix::ffi::OsStringExt;
        let listener = listener();
        let name = std::ffi::OsString::from_vec(b"/a/b/\xff".to_vec());
        listener.hear(Ok(Event::new(CLOSED).add_path(name.into())));
        listener.hear(event(CLOSED, &["/a/b/f"]));
        assert_eq!(listener.inbox.take().unwrap().changed.len(), 1);
    }
}
