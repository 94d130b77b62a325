//! Tests at the border to the operating system: its queue runs over for real, and its refusals are injected.

use std::fs::{self, File};
use std::io::Write;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rstest::rstest;

use crate::listen::Listener;
use crate::native::{Native, WatchRefusal, Watcher, notify};
use crate::{Event, NotifyTracker, Tracked, Tracker, TrackerOptions};

const GENEROUS: Duration = Duration::from_secs(120);

/// The real watcher, which refuses on request and remembers its watches.
struct Choosy {
    inner: Box<dyn Native>,
    refusal: Arc<Mutex<Option<WatchRefusal>>>,
    watches: Watches,
}

/// The directories that were watched, in their order.
type Watches = Arc<Mutex<Vec<Utf8PathBuf>>>;

impl Native for Choosy {
    fn watch(&mut self, path: &Utf8Path) -> Result<(), WatchRefusal> {
        // The markers are always watched, so that flushes go their usual way.
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(refusal) = refusal.filter(|_| path.file_name() != Some("markers")) {
            return Err(refusal);
        }
        self.watches.lock().unwrap().push(path.to_owned());
        self.inner.watch(path)
    }

    fn unwatch(&mut self, path: &Utf8Path) {
        self.inner.unwatch(path);
    }
}

struct Stage {
    tracker: NotifyTracker,
    events: Receiver<String>,
    refusal: Arc<Mutex<Option<WatchRefusal>>>,
    watches: Watches,
    listener: Arc<Listener>,
    root: Utf8PathBuf,
    _directory: tempfile::TempDir,
}

type Open = fn(Arc<Listener>) -> Result<Box<dyn Native>, String>;

fn own(listener: Arc<Listener>) -> Result<Box<dyn Native>, String> {
    Watcher::open(listener).map(|watcher| Box::new(watcher) as Box<dyn Native>)
}

/// Returns the watcher of other operating systems.
fn others(listener: Arc<Listener>) -> Result<Box<dyn Native>, String> {
    notify::Watcher::open(listener).map(|watcher| Box::new(watcher) as Box<dyn Native>)
}

impl Stage {
    fn new(refusal: Option<WatchRefusal>) -> Self {
        Self::with(refusal, own)
    }

    fn with(refusal: Option<WatchRefusal>, open: Open) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        let options = TrackerOptions {
            marker_directory: Some(root.join("markers")),
            poll_interval: Duration::from_millis(10),
            ..TrackerOptions::default()
        };
        let refusal = Arc::new(Mutex::new(refusal));
        let watches = Watches::default();
        let (tell, events) = channel();
        let sink = move |event: Event| {
            // Only a test that is over no longer listens.
            let _ = tell.send(format!("{event:?}"));
        };
        let mut kept = None;
        let tracker = NotifyTracker::start_with(options, sink, |listener| {
            kept = Some(Arc::clone(&listener));
            let (refusal, watches) = (Arc::clone(&refusal), Arc::clone(&watches));
            Ok(Box::new(Choosy { inner: open(listener)?, refusal, watches }))
        })
        .unwrap();
        Self { tracker, events, refusal, watches, listener: kept.unwrap(), root, _directory: directory }
    }

    fn until(&self, what: &str) {
        while !self.events.recv_timeout(GENEROUS).unwrap_or_else(|_| panic!("no {what}")).contains(what) {}
    }

    /// Everything delivered up to the end of a flush.
    fn flushed(&self) -> Vec<String> {
        self.tracker.flush().wait_timeout(GENEROUS).expect("an answer").expect("an open tracker");
        self.events.try_iter().filter(|event| !event.starts_with("Flush")).collect()
    }
}

#[rstest]
#[case::limit(WatchRefusal::Limit, Tracked::Polled, 1)]
#[case::denied(WatchRefusal::Denied, Tracked::Polled, 0)]
#[case::other(WatchRefusal::Other("no such thing here".into()), Tracked::Polled, 2)]
fn a_refused_directory_is_polled_until_a_watch_succeeds(
    #[case] refusal: WatchRefusal,
    #[case] tracked: Tracked,
    #[case] warnings: usize,
) {
    let stage = Stage::new(Some(refusal));
    let path = stage.root.join("f");
    assert_eq!(stage.tracker.track(&path).unwrap(), tracked);
    fs::write(&path, "1").unwrap();
    let events = stage.flushed();
    let of = |kind: &str| events.iter().filter(|event| event.starts_with(kind)).count();
    assert!(of("Warning") >= warnings.min(1) && (warnings > 0 || of("Warning") == 0), "{events:?}");
    assert!(of("Changed") >= 1, "{events:?}");
    *stage.refusal.lock().unwrap() = None;
    stage.flushed();
    let status = stage.tracker.status();
    assert_eq!(status.polled_directories, 0, "{status:?}");
    fs::write(&path, "2").unwrap();
    stage.until("Changed");
}

#[rstest]
#[case::own(own)]
#[case::others(others)]
fn every_watcher_reports_changes_of_a_file_and_its_directory(#[case] open: Open) {
    let stage = Stage::with(None, open);
    let directory = stage.root.join("d");
    let (path, beside) = (directory.join("f"), directory.join("g"));
    let changes: [(&str, &dyn Fn() -> std::io::Result<()>); 8] = [
        ("the directory is made, with the file", &|| {
            fs::create_dir(&directory).and_then(|()| fs::write(&path, "1"))
        }),
        ("overwritten", &|| fs::write(&path, "2")),
        ("replaced", &|| fs::write(&beside, "3").and_then(|()| fs::rename(&beside, &path))),
        ("renamed", &|| fs::rename(&path, &beside)),
        ("renamed back", &|| fs::rename(&beside, &path)),
        ("removed", &|| fs::remove_file(&path)),
        ("the directory is exchanged", &|| {
            fs::rename(&directory, stage.root.join("e"))?;
            fs::create_dir(&directory).and_then(|()| fs::write(&path, "4"))
        }),
        ("overwritten there", &|| fs::write(&path, "5")),
    ];
    assert_eq!(stage.tracker.track(&path).unwrap(), Tracked::Waiting);
    stage.flushed();
    for (what, change) in changes {
        change().unwrap();
        let events = stage.flushed();
        let told = format!("Changed([{path:?}");
        assert!(events.iter().any(|event| event.starts_with(&told)), "{what}: {events:?}");
        let moved = events.iter().any(|event| event.starts_with("Moved"));
        assert_eq!(moved, what == "renamed", "{what}: {events:?}");
    }
}

#[test]
#[cfg(unix)]
fn a_directory_of_everybody_is_watched_only_while_something_in_it_is_missing() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new(None);
    let (shared, directory) = (stage.root.join("shared"), stage.root.join("shared/d"));
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let path = directory.join("f");
    assert_eq!(stage.tracker.track(&path).unwrap(), Tracked::Watched);
    let watched = |path: &Utf8Path| stage.watches.lock().unwrap().iter().any(|watched| watched == path);
    // Watching and unwatching it would cost as much, because the system scans everything in it.
    assert!(watched(&directory) && !watched(&shared) && !watched(Utf8Path::new("/")));
    fs::remove_dir(&directory).unwrap();
    stage.flushed();
    assert!(watched(&shared));
    fs::create_dir(&directory).and_then(|()| fs::write(&path, "1")).unwrap();
    stage.until(&format!("Changed([{path:?}"));
    stage.flushed();
    let later = stage.root.join("shared/later/f");
    assert_eq!(stage.tracker.track(&later).unwrap(), Tracked::Waiting);
    fs::create_dir(later.parent().unwrap()).and_then(|()| fs::write(&later, "1")).unwrap();
    stage.until(&format!("Changed([{later:?}"));
}

#[test]
fn nothing_is_left_to_wake_for_when_nothing_happens() {
    let stage = Stage::new(None);
    for number in 0..20 {
        let path = stage.root.join(format!("d{number}/f"));
        stage.tracker.track(&path).unwrap();
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(path, "1").unwrap();
    }
    stage.flushed();
    assert!(!stage.listener.inbox.has_timer(), "no settling, no polling");
    *stage.refusal.lock().unwrap() = Some(WatchRefusal::Limit);
    stage.tracker.track(&stage.root.join("more/f")).unwrap();
    fs::create_dir(stage.root.join("more")).unwrap();
    stage.flushed();
    assert!(stage.listener.inbox.has_timer(), "polled");
    *stage.refusal.lock().unwrap() = None;
    stage.flushed();
    // The last planned poll finds nothing to poll and plans no other.
    while stage.listener.inbox.has_timer() {
        std::thread::yield_now();
    }
}

/// The number of events that the kernel's queue holds; `None` if they are too many for a test.
#[cfg(target_os = "linux")]
#[allow(clippy::print_stderr, reason = "a test that can't be run says so")]
fn queue_limit() -> Option<usize> {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    if limit > 1_000_000 {
        eprintln!("not run: the kernel's queue holds {limit} events");
        return None;
    }
    Some(limit)
}

#[test]
#[cfg(target_os = "linux")]
fn the_kernels_queue_running_over_leads_to_a_rescan_and_new_watches() {
    let Some(limit) = queue_limit() else { return };
    let stage = Stage::new(None);
    let directory = stage.root.join("d");
    fs::create_dir(&directory).unwrap();
    let path = directory.join("f");
    stage.tracker.track(&path).unwrap();
    stage.flushed();
    let watches = stage.watches.lock().unwrap().len();
    {
        // Holds up the thread that empties the kernel's queue.
        let _held = stage.listener.plan();
        let mut noise = ["x", "y"].map(|name| File::create(stage.root.join(name)).unwrap());
        // In turns, because equal neighbours are one event.
        (0..limit + 1000).for_each(|number| noise[number % 2].write_all(b".").unwrap());
        fs::remove_dir(&directory).unwrap();
        fs::create_dir(&directory).unwrap();
        fs::write(&path, "lost").unwrap();
    }
    stage.until("Rescan");
    assert!(stage.tracker.status().rescans >= 1);
    stage.flushed();
    assert!(stage.watches.lock().unwrap().len() > watches, "attached again");
    fs::write(&path, "seen").unwrap();
    let events = stage.flushed();
    assert!(events.iter().any(|event| event.starts_with("Changed")), "{events:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_flush_is_answered_when_its_marker_is_lost() {
    let Some(limit) = queue_limit() else { return };
    let stage = Stage::new(None);
    let path = stage.root.join("f");
    stage.tracker.track(&path).unwrap();
    let (waiting, ready) = std::sync::mpsc::sync_channel(0);
    std::thread::scope(|scope| {
        let mut noise = ["x", "y"].map(|name| File::create(stage.root.join(name)).unwrap());
        let held = stage.listener.plan();
        (0..limit + 1000).for_each(|number| noise[number % 2].write_all(b".").unwrap());
        let tracker = &stage.tracker;
        // Its marker is made when the plan is free, into a queue that is full or just being emptied.
        scope.spawn(move || {
            waiting.send(()).unwrap();
            assert_eq!(tracker.flush().wait_timeout(GENEROUS), Some(Ok(())));
        });
        ready.recv().unwrap();
        drop(held);
    });
    assert!(stage.tracker.status().rescans >= 1);
}
