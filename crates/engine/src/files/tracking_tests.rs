use crate::session::options::Options;
use context_watch::{Acknowledge, Event, Flush, Tracked, TrackerStatus};

use super::*;

/// A tracker that sees nothing, and counts the waits for what it has seen.
#[derive(Clone, Default)]
struct Blind(Arc<AtomicU64>);

impl Tracker for Blind {
    fn track(&self, _: &Utf8Path) -> Result<Tracked, WatchError> {
        Ok(Tracked::Watched)
    }

    fn untrack(&self, _: &Utf8Path) {}

    fn flush(&self) -> Flush {
        self.0.fetch_add(1, Ordering::Relaxed);
        let (flush, acknowledge) = Acknowledge::pair();
        acknowledge.done();
        flush
    }

    fn status(&self) -> TrackerStatus {
        TrackerStatus::default()
    }

    fn close(&self) {}
}

impl Sink for Blind {
    fn deliver(&mut self, _: Event) {}
}

async fn client(blind: &Blind) -> Client {
    let blind = blind.clone();
    crate::files::tests::client_with(|options| Options {
        tracker: Some(Arc::new(move |_| Ok(Arc::new(blind.clone())))),
        ..options
    })
    .await
}

async fn tracking() -> Tracking {
    let blind = Blind::default();
    let tracking = Tracking::new(true, 1_024);
    tracking.start(&client(&blind).await, blind);
    tracking
}

fn source(path: &str) -> FilesystemSource {
    FilesystemSource { filesystem_id: "disk".into(), path: path.into() }
}

fn heard() -> (Arc<Mutex<Vec<String>>>, FileListener) {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&heard);
    (heard, Arc::new(move |event: &FileEvent| locked(&kept).push(event.path.clone())))
}

#[tokio::test]
async fn only_a_session_with_files_waits_for_the_tracker() {
    let blind = Blind::default();
    let tracking = Tracking::new(true, 1_024);
    tracking.start(&client(&blind).await, blind.clone());
    let waits = || blind.0.load(Ordering::Relaxed);
    tracking.flush().await;
    assert_eq!(waits(), 0);
    tracking.track("/home/a".into(), &source("/home/a"));
    tracking.flush().await;
    assert_eq!(waits(), 1);
}

#[test]
fn file_out_of_reach_is_told_once_until_it_is_reached() {
    let (tracking, id) = (Tracking::new(false, 1_024), file_id(&source("/drive/a")));
    for _ in 0..2 {
        tracking.looked(&id, false);
        assert!(tracking.tells_orphaned(&id));
        tracking.looked(&id, false);
        assert!(!tracking.tells_orphaned(&id));
        tracking.looked(&id, true);
        assert!(!tracking.is_orphaned(&id));
    }
}

#[test]
fn file_rests_as_long_as_its_bytes_take_at_the_pace() {
    assert_eq!(Tracking::new(false, 1_024).rest(2_048), Duration::from_secs(2));
    assert_eq!(Tracking::new(false, 4).rest(2), Duration::from_millis(500));
    assert_eq!(Tracking::new(false, 0).rest(2_048), Duration::ZERO);
}

#[test]
fn one_waking_is_scheduled_for_the_earliest_file() {
    let tracking = Tracking::new(false, 1);
    assert_eq!(tracking.wake_at(), None);
    let now = Instant::now();
    let at = |seconds| now + Duration::from_secs(seconds);
    tracking.pending_reads().touch("/later".into(), at(20));
    assert_eq!(tracking.wake_at(), Some(at(20)));
    assert_eq!(tracking.wake_at(), None, "it is scheduled");
    tracking.pending_reads().touch("/sooner".into(), at(10));
    assert_eq!(tracking.wake_at(), Some(at(10)));
    tracking.woke(at(20));
    assert_eq!(tracking.wake_at(), None, "another one is scheduled");
    tracking.woke(at(10));
    assert_eq!(tracking.wake_at(), Some(at(10)), "the file still waits");
}

#[tokio::test]
async fn tracked_file_counts_as_read() {
    let tracking = tracking().await;
    let directory = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(directory.path()).unwrap().join("f");
    std::fs::write(&path, "a").unwrap();
    let source = source(path.as_str());
    tracking.track_unread(&path, &source);
    assert!(tracking.is_unread(&path));
    tracking.track(&path, &source);
    assert!(!tracking.is_unread(&path));
    tracking.track_unread(&path, &source);
    assert!(!tracking.is_unread(&path), "it is tracked already");
    let idle = Tracking::new(false, 1);
    idle.track_unread(&path, &source);
    assert!(!idle.is_unread(&path), "nothing is tracked");
}

#[tokio::test]
async fn listeners_hear_of_touched_files_until_they_unsubscribe_or_the_session_ends() {
    let tracking = tracking().await;
    tracking.track("/a".into(), &source("/a"));
    let (before, after) = (heard(), heard());
    let touch = tracking.touch(client(&Blind::default()).await.paths);
    let first = tracking.touch_listeners().add(before.1);
    tracking.touch_listeners().add(after.1);
    touch("/a".into());
    touch("/not/tracked".into());
    tracking.touch_listeners().remove(first);
    touch("/a".into());
    assert_eq!((locked(&before.0).len(), locked(&after.0).len()), (1, 2));
    tracking.close().await;
    touch("/a".into());
    assert_eq!(locked(&after.0).len(), 2, "the session has ended");
}

#[tokio::test]
async fn a_warning_waits_for_the_first_listener() {
    let tracking = tracking().await;
    tracking.warn("early".into());
    let (first, second) = (heard(), heard());
    tracking.listen(first.1);
    tracking.listen(second.1);
    tracking.warn("late".into());
    assert_eq!(*locked(&first.0), ["early", "late"]);
    assert_eq!(*locked(&second.0), ["late"]);
    tracking.close().await;
    tracking.listeners.tell(&FileEvent { id: None, path: "x".into(), kind: FileEventKind::Warning });
    assert_eq!(locked(&first.0).len(), 2, "the session has ended");
}
