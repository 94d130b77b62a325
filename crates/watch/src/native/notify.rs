//! File events by the `notify` crate. On Linux it also hears of files that are opened; they are left out here.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{Native, WatchRefusal};
use crate::inbox::{Cause, Urgency};
use crate::listen::Listener;

/// `notify`'s watcher for this operating system.
pub(crate) struct Watcher {
    watcher: Option<RecommendedWatcher>,
    /// Ends when `notify`'s thread has let go of the listener.
    ended: Receiver<()>,
    #[cfg(target_os = "linux")]
    _mounts: Option<super::mounts::MountWatch>,
}

impl Watcher {
    /// # Errors
    /// Why there can't be one, as the operating system says it.
    pub(crate) fn open(listener: Arc<Listener>) -> Result<Self, String> {
        let (held, ended) = channel();
        // Read before the first watch: later mounts are reported.
        #[cfg(target_os = "linux")]
        let mounts = super::mounts::MountWatch::start(Arc::clone(&listener));
        let handler = Handler { listener, halves: Halves::default(), _held: held };
        // A link to a large tree must never be walked.
        let config = notify::Config::default().with_follow_symlinks(false);
        match RecommendedWatcher::new(handler, config) {
            Ok(watcher) => Ok(Self {
                watcher: Some(watcher),
                ended,
                #[cfg(target_os = "linux")]
                _mounts: mounts,
            }),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Native for Watcher {
    fn watch(&mut self, path: &Utf8Path) -> Result<(), WatchRefusal> {
        let Some(watcher) = &mut self.watcher else { return Err(WatchRefusal::Gone) };
        // A watch of a file would count as one of a directory.
        if !path.is_dir() {
            return Err(WatchRefusal::Gone);
        }
        watcher.watch(path.as_std_path(), RecursiveMode::NonRecursive).map_err(refusal)
    }

    fn unwatch(&mut self, path: &Utf8Path) {
        if let Some(watcher) = &mut self.watcher {
            // Fails if the directory is gone, because the system has already ended its watch.
            let _ = watcher.unwatch(path.as_std_path());
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watcher = None;
        // The thread ends at once unless the machine is overloaded; the process need not wait for it then.
        let _ = self.ended.recv_timeout(Duration::from_secs(5));
    }
}

/// Runs on `notify`'s thread, which also answers the calls that add and remove watches.
struct Handler {
    listener: Arc<Listener>,
    halves: Halves,
    _held: Sender<()>,
}

impl notify::EventHandler for Handler {
    fn handle_event(&mut self, event: notify::Result<notify::Event>) {
        // Elsewhere a third event has both names.
        let whole = if cfg!(windows) { self.halves.join(&event) } else { None };
        hear(&self.listener, event);
        if let Some((from, to)) = whole {
            self.listener.hear_rename(&from, &to);
        }
    }
}

/// Windows tells of a rename in two events, one right after the other, and never of both names at once.
#[derive(Default)]
struct Halves {
    from: Option<Utf8PathBuf>,
}

impl Halves {
    /// Both names, once the second one has come.
    fn join(&mut self, event: &notify::Result<notify::Event>) -> Option<(Utf8PathBuf, Utf8PathBuf)> {
        let from = self.from.take();
        let event = event.as_ref().ok()?;
        let path = Utf8Path::from_path(event.paths.first()?)?.to_owned();
        match event.kind {
            EventKind::Modify(ModifyKind::Name(RenameMode::From)) => {
                self.from = Some(path);
                None
            }
            EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Some((from?, path)),
            _ => None,
        }
    }
}

/// Takes one event, or the news that some were lost.
fn hear(listener: &Listener, event: notify::Result<notify::Event>) {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        Ok(_) => return listener.inbox.overflowed(),
        Err(error) => {
            tracing::warn!(%error, "file events may be lost");
            return listener.inbox.overflowed();
        }
    };
    // A name that is not UTF-8 can't be a tracked path.
    let mut paths = event.paths.iter().filter_map(|path| Utf8Path::from_path(path));
    if event.kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both)) {
        // Comes after the two events of the single paths.
        if let (Some(from), Some(to)) = (paths.next(), paths.next()) {
            listener.hear_rename(from, to);
        }
    } else if let Some((urgency, cause)) = weigh(event.kind) {
        paths.for_each(|path| listener.hear(path, urgency, cause));
    }
}

/// Urgency of a tracked path of such an event, and what it says about a directory of the plan. `None` for events that
/// change nothing, such as our own reading.
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

fn refusal(error: notify::Error) -> WatchRefusal {
    match error.kind {
        notify::ErrorKind::MaxFilesWatch => WatchRefusal::Limit,
        notify::ErrorKind::PathNotFound | notify::ErrorKind::WatchNotFound => WatchRefusal::Gone,
        notify::ErrorKind::Io(io) => super::refusal(&io),
        _ => WatchRefusal::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use notify::Event;
    use notify::event::{CreateKind, DataChange, Flag, MetadataKind, RemoveKind};
    use rstest::rstest;

    use super::*;
    use crate::listen::tests::listener;

    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const OPENED: EventKind = EventKind::Access(AccessKind::Open(AccessMode::Any));
    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const MODE: EventKind = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
    const CREATED: EventKind = EventKind::Create(CreateKind::File);
    const REMOVED: EventKind = EventKind::Remove(RemoveKind::File);
    const FROM: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::From));
    const TO: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));
    const BOTH: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::Both));

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
    fn the_kind_of_an_event_decides_its_urgency(
        #[case] kind: EventKind,
        #[case] at_once: bool,
        #[case] cause: Option<Cause>,
    ) {
        let listener = listener();
        for path in ["/a/b/f", "/a/b/store.db", "/a/b"] {
            hear(&listener, event(kind, &[path]));
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
        hear(&listener, event(FROM, &["/a/b/f"]));
        hear(&listener, event(TO, &["/a/b/g"]));
        hear(&listener, event(BOTH, &["/a/b/f", "/a/b/g"]));
        hear(&listener, event(BOTH, &["/a/b/temp", "/a/b/f"]));
        let batch = listener.inbox.take().unwrap();
        assert_eq!(batch.moves, vec![("/a/b/f".into(), "/a/b/g".into())]);
        assert!(batch.changed.contains(Utf8Path::new("/a/b/f")));
    }

    #[test]
    fn the_halves_of_a_rename_belong_together_where_one_follows_the_other() {
        let mut halves = Halves::default();
        let mut join = |kind, path: &str| halves.join(&event(kind, &[path]));
        let whole = |from: &str, to: &str| Some((from.into(), to.into()));
        assert_eq!(join(FROM, "/a/f"), None);
        assert_eq!(join(TO, "/a/g"), whole("/a/f", "/a/g"));
        assert_eq!(join(TO, "/a/h"), None, "it was renamed from an unwatched place");
        assert_eq!(join(FROM, "/a/h"), None);
        assert_eq!(join(CREATED, "/a/i"), None);
        assert_eq!(join(TO, "/a/j"), None, "another event came between");
        assert_eq!(join(FROM, "/a/j"), None);
        assert_eq!(join(FROM, "/a/k"), None);
        assert_eq!(join(TO, "/a/l"), whole("/a/k", "/a/l"));
    }

    #[rstest]
    #[case::flag(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)))]
    #[case::error(Err(notify::Error::generic("read")))]
    fn lost_events_lead_to_a_rescan(#[case] event: notify::Result<Event>) {
        let listener = listener();
        hear(&listener, event);
        let batch = listener.inbox.take().unwrap();
        assert!(batch.rescan && batch.lost);
    }

    #[test]
    #[cfg(unix)]
    fn skips_a_name_outside_utf8() {
        use std::os::unix::ffi::OsStringExt;
        let listener = listener();
        let name = std::ffi::OsString::from_vec(b"/a/b/\xff".to_vec());
        hear(&listener, Ok(Event::new(CLOSED).add_path(name.into())));
        hear(&listener, event(CLOSED, &["/a/b/f"]));
        assert_eq!(listener.inbox.take().unwrap().changed.len(), 1);
    }
}
