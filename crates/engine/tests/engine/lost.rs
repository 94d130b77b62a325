//! Events that a tracker has lost: all tracked files are compared with the disk.

use std::fs;
use std::sync::{Arc, Mutex};

use camino::Utf8Path;
use context_engine::{Engine, FileEventKind, Options, TrackerStart};
use context_model::id::ObjectId;
use context_model::index::Action;
use context_watch::{Acknowledge, Event, Flush, Sink, Tracked, Tracker, TrackerStatus, WatchError};

use crate::bench::{Backend, Bench, watching};
use crate::watching::{content, events};

#[tokio::test(flavor = "multi_thread")]
async fn lost_events_are_made_up_for() {
    // A store without files has no place for markers, so each flush compares all tracked files with the disk.
    let (bench, engine) = watching(Backend::Memory).await;
    let path = bench.write("dir/file", "1");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    let later = bench.path("dir/later");
    let discovered = engine.discover(std::slice::from_ref(&later)).await.unwrap().remove(0).id;
    let events = events(&engine);
    let told = |id: &ObjectId| {
        let mut kinds: Vec<FileEventKind> = Vec::new();
        for event in events.lock().unwrap().drain(..).filter(|event| event.id.as_ref() == Some(id)) {
            kinds.push(event.kind);
        }
        kinds
    };
    engine.flush().await.unwrap();
    assert_eq!(told(&id), []);
    fs::write(&path, "2").unwrap();
    fs::write(&later, "here").unwrap();
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &id).await.as_deref(), Some("2"));
    assert_eq!(content(&bench, &discovered).await.as_deref(), Some("here"), "it has appeared");
    fs::remove_file(&path).unwrap();
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &id).await, None);
    assert_eq!(told(&id).last(), Some(&FileEventKind::Indexed(Action::Deleted)));
    fs::rename(bench.path("dir"), bench.path("away")).unwrap();
    engine.flush().await.unwrap();
    assert_eq!(told(&discovered).last(), Some(&FileEventKind::Indexed(Action::Deleted)));
    assert_eq!(content(&bench, &discovered).await, None);
}

/// A tracker with the test's events.
#[derive(Default)]
pub struct Told {
    sink: Mutex<Option<Box<dyn Sink>>>,
    /// True if it loses every event, and says so whenever it is asked to flush.
    is_lossy: bool,
}

impl Told {
    pub fn new(is_lossy: bool) -> Arc<Self> {
        Arc::new(Self { is_lossy, ..Self::default() })
    }

    pub fn start(self: &Arc<Self>) -> TrackerStart {
        let told = Arc::clone(self);
        Arc::new(move |sink| {
            *told.sink.lock().unwrap() = Some(sink);
            Ok(Arc::clone(&told) as Arc<dyn Tracker>)
        })
    }

    /// Delivers it on a separate thread, as trackers do.
    pub fn tell(&self, event: Event) {
        let deliver = || {
            if let Some(sink) = &mut *self.sink.lock().unwrap() {
                sink.deliver(event);
            }
        };
        std::thread::scope(|scope| drop(scope.spawn(deliver)));
    }
}

impl Tracker for Told {
    fn track(&self, _: &Utf8Path) -> Result<Tracked, WatchError> {
        Ok(Tracked::Watched)
    }

    fn untrack(&self, _: &Utf8Path) {}

    fn flush(&self) -> Flush {
        if self.is_lossy {
            self.tell(Event::Rescan);
        }
        let (flush, done) = Acknowledge::pair();
        done.done();
        flush
    }

    fn status(&self) -> TrackerStatus {
        TrackerStatus::default()
    }

    fn close(&self) {
        *self.sink.lock().unwrap() = None;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn file_known_by_path_only_is_read_once_it_changes() {
    let bench = Bench::new(Backend::Memory);
    let tracker = Some(Told::new(true).start());
    let options = Options { watch: true, pace: 0, tracker, ..bench.options("s") };
    let engine = Engine::open(options).await.unwrap();
    let paths = [bench.write("same", "as it was"), bench.write("changed", "as it was")];
    let found = engine.discover(&paths).await.unwrap();
    engine.flush().await.unwrap();
    for one in &found {
        assert_eq!(content(&bench, &one.id).await, None, "no client has read it");
    }
    fs::write(&paths[1], "as it is now").unwrap();
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &found[0].id).await, None);
    assert_eq!(content(&bench, &found[1].id).await.as_deref(), Some("as it is now"));
}
