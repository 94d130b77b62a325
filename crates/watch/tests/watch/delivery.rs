//! The order of events, flushes, overflow, and the end of a tracker.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{GENEROUS, Mirror, Scene};
use camino::Utf8PathBuf;
use context_watch::{Acknowledge, Event, NotifyTracker, Sink, Touch, Tracker, TrackerOptions, WatchError};
use rstest::rstest;

/// A sink that stops at each event until it is let go.
struct Gate {
    entered: Receiver<String>,
    open: Sender<()>,
}

impl Gate {
    fn around(mut sink: impl FnMut(Event) + Send + 'static) -> (Self, impl FnMut(Event) + Send + 'static) {
        let ((enter, entered), (open, opened)) = (channel(), channel::<()>());
        let gated = move |event: Event| {
            // A gate that is gone is open.
            let _ = enter.send(format!("{event:?}"));
            let _ = opened.recv();
            sink(event);
        };
        (Self { entered, open }, gated)
    }

    fn arrival(&self) -> String {
        self.entered.recv_timeout(GENEROUS).expect("an event")
    }
}

/// A directory, and a tracker in it with the given sink and `files` tracked files.
fn tracker(
    options: TrackerOptions,
    files: usize,
    sink: impl FnMut(Event) + Send + 'static,
) -> (tempfile::TempDir, Vec<Utf8PathBuf>, NotifyTracker) {
    let directory = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
    let options = TrackerOptions { marker_directory: Some(root.join("markers")), ..options };
    let tracker = NotifyTracker::start(options, sink).unwrap();
    let paths: Vec<_> = (0..files).map(|number| root.join(format!("f{number}"))).collect();
    paths.iter().for_each(|path| {
        tracker.track(path).unwrap();
    });
    (directory, paths, tracker)
}

fn write_all(paths: &[Utf8PathBuf]) {
    paths.iter().for_each(|path| std::fs::write(path, "x").unwrap());
}

#[test]
fn a_busy_sink_gets_later_events_merged() {
    let (gate, sink) = Gate::around(|_| {});
    let (_directory, paths, tracker) = tracker(TrackerOptions::default(), 100, sink);
    write_all(&paths[..1]);
    assert!(gate.arrival().starts_with("Changed"));
    (0..5).for_each(|_| write_all(&paths));
    let flush = tracker.flush();
    gate.open.send(()).unwrap();
    // Once or twice: the file events may come in before or after the sink asks again.
    let mut rounds = 0;
    loop {
        let arrival = gate.arrival();
        gate.open.send(()).unwrap();
        if arrival.starts_with("Flush") {
            break;
        }
        assert!(arrival.starts_with("Changed"), "{arrival}");
        rounds += 1;
    }
    assert!((1..=100).contains(&rounds), "{rounds} deliveries for 500 writes");
    flush.wait_timeout(GENEROUS).unwrap().unwrap();
}

/// A sink that also gets touches.
struct Touchy<S> {
    sink: S,
    touched: Mutex<Option<Touch>>,
}

impl<S: FnMut(Event) + Send + 'static> Sink for Touchy<S> {
    fn deliver(&mut self, event: Event) {
        (self.sink)(event);
    }

    fn touch(&self) -> Option<Touch> {
        self.touched.lock().unwrap().take()
    }
}

#[test]
fn a_touch_is_told_once_for_each_delivery_also_while_the_sink_is_busy_or_the_receiver_panics() {
    let (tell, told) = channel();
    let touch: Touch = Box::new(move |path| {
        tell.send(path.to_owned()).unwrap();
        assert!(path.file_name() != Some("f1"), "one of the receiver's own");
    });
    let delivered = Arc::new(Mutex::new(Vec::new()));
    let deliveries = Arc::clone(&delivered);
    let (gate, sink) = Gate::around(move |event| match event {
        Event::Changed(paths) => deliveries.lock().unwrap().extend(paths),
        Event::Flush(done) => done.done(),
        other => panic!("{other:?}"),
    });
    let directory = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
    let options =
        TrackerOptions { marker_directory: Some(root.join("markers")), ..TrackerOptions::default() };
    let sink = Touchy { sink, touched: Mutex::new(Some(touch)) };
    let tracker = NotifyTracker::start(options, sink).unwrap();
    let paths = [root.join("f0"), root.join("f1")];
    paths.iter().for_each(|path| {
        tracker.track(path).unwrap();
    });
    write_all(&paths[..1]);
    assert_eq!(told.recv_timeout(GENEROUS).unwrap(), paths[0]);
    assert!(gate.arrival().starts_with("Changed"));
    // The sink is busy now.
    for _ in 0..3 {
        write_all(&paths);
    }
    let mut touched = vec![paths[0].clone()];
    touched.extend([told.recv_timeout(GENEROUS).unwrap(), told.recv_timeout(GENEROUS).unwrap()]);
    assert_eq!(touched[1..], paths);
    drop(gate);
    tracker.flush().wait_timeout(GENEROUS).expect("an answer").expect("an open tracker");
    touched.extend(told.try_iter());
    touched.sort();
    let mut delivered = delivered.lock().unwrap().clone();
    delivered.sort();
    assert_eq!(touched, delivered);
}

#[test]
fn a_flush_waits_for_the_sink() {
    let (gate, sink) = Gate::around(|_| {});
    let (_directory, paths, tracker) = tracker(TrackerOptions::default(), 1, sink);
    write_all(&paths);
    let flush = tracker.flush();
    assert!(gate.arrival().contains("f0"));
    assert_eq!(flush.wait_timeout(Duration::ZERO), None, "its change is in the sink");
    gate.open.send(()).unwrap();
    assert!(gate.arrival().starts_with("Flush"));
    assert_eq!(flush.wait_timeout(Duration::ZERO), None, "it is in the sink itself");
    gate.open.send(()).unwrap();
    assert_eq!(flush.wait_timeout(GENEROUS), Some(Ok(())));
}

#[test]
fn a_flush_waits_for_a_sink_at_work_elsewhere() {
    let (hand_over, later) = channel::<Acknowledge>();
    let (_directory, paths, tracker) = tracker(TrackerOptions::default(), 1, move |event| {
        if let Event::Flush(acknowledge) = event {
            hand_over.send(acknowledge).unwrap();
        }
    });
    write_all(&paths);
    let flush = tracker.flush();
    let acknowledge = later.recv_timeout(GENEROUS).unwrap();
    assert_eq!(flush.wait_timeout(Duration::ZERO), None);
    acknowledge.done();
    assert_eq!(flush.wait_timeout(GENEROUS), Some(Ok(())));
}

#[test]
fn flushes_of_many_threads_are_each_answered_after_their_write() {
    let scene = Scene::new();
    (0..8).for_each(|thread| {
        scene.track(&format!("f{thread}"));
    });
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let scene = &scene;
            scope.spawn(move || {
                for round in 0..50 {
                    let name = format!("f{thread}");
                    scene.write(&name, round.to_string());
                    scene.flush();
                    let path = scene.path(&name);
                    let seen = scene.mirror.seen(|seen| seen.contents[&path].clone());
                    assert_eq!(seen, crate::common::Content::Bytes(round.to_string().into_bytes()));
                }
            });
        }
    });
    assert_eq!(scene.rescans(), 0);
}

/// Whatever happens to the directory of the markers, a flush answers and nothing is missed.
#[rstest]
#[case::removed("rmtree ../own")]
#[case::only_emptied("rmtree ../own/markers")]
#[case::moved("mv ../own ../gone")]
#[case::exchanged("mv ../own/markers ../gone; mkdir ../own/markers")]
#[case::moved_and_back("mv ../own/markers ../gone; mv ../gone ../own/markers")]
#[case::a_file_now("rmtree ../own; write ../own 1")]
fn a_flush_survives_the_loss_of_its_markers(#[case] loss: &str) {
    let scene = Scene::new();
    scene.track("f");
    scene.assert_equal_after_flush();
    assert_eq!(scene.rescans(), 0);
    scene.run(loss);
    for number in 0..3 {
        scene.write("f", number.to_string());
        scene.assert_equal_after_flush();
    }
    assert_eq!(scene.path("../own").is_dir(), !loss.contains("write"), "made again where possible");
}

#[test]
fn a_flush_without_markers_is_a_rescan() {
    let mirror = Arc::new(Mirror::default());
    let sink = Arc::clone(&mirror);
    let tracker = NotifyTracker::start(TrackerOptions::default(), move |event| sink.take(event)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap().join("f")).unwrap();
    tracker.track(&path).unwrap();
    tracker.flush().wait_timeout(GENEROUS).unwrap().unwrap();
    mirror.seen(|seen| assert_eq!(seen.rescans, 1));
}

#[test]
fn the_tracker_of_markers_leaves_nothing_behind() {
    let scene = Scene::new();
    scene.track("f");
    (0..20).for_each(|_| scene.flush());
    assert_eq!(std::fs::read_dir(scene.path("../own/markers")).unwrap().count(), 0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(scene.path("../own/markers")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[test]
fn more_changes_than_the_queue_holds_lead_to_one_rescan() {
    let mirror = Arc::new(Mirror::default());
    let sink = Arc::clone(&mirror);
    let (gate, sink) = Gate::around(move |event| sink.take(event));
    let (_directory, paths, tracker) =
        tracker(TrackerOptions { capacity: 100, ..TrackerOptions::default() }, 1000, sink);
    mirror.seen(|seen| {
        seen.contents.extend(paths.iter().map(|path| (path.clone(), crate::common::read(path))))
    });
    write_all(&paths[..1]);
    gate.arrival();
    write_all(&paths);
    let flush = tracker.flush();
    drop(gate);
    flush.wait_timeout(GENEROUS).unwrap().unwrap();
    mirror.seen(|seen| {
        assert!(seen.rescans >= 1);
        assert!(seen.contents.iter().all(|(path, content)| *content == crate::common::read(path)));
        assert_eq!(tracker.status().rescans, seen.rescans as u64);
    });
}

#[test]
fn a_panicking_sink_is_asked_to_look_at_everything() {
    let (tell, told) = channel();
    let (_directory, paths, tracker) = tracker(TrackerOptions::default(), 1, move |event| match event {
        Event::Changed(_) => panic!("a defect of the receiver, on purpose"),
        other => tell.send(format!("{other:?}")).unwrap(),
    });
    for _ in 0..2 {
        write_all(&paths);
        assert_eq!(told.recv_timeout(GENEROUS).unwrap(), "Rescan");
    }
    let flush = tracker.flush();
    flush.wait_timeout(GENEROUS).unwrap().unwrap();
}

#[test]
fn the_sink_may_call_the_tracker() {
    let own: Arc<Mutex<Option<Arc<NotifyTracker>>>> = Arc::default();
    let (tell, told) = channel();
    let inner = Arc::clone(&own);
    let (_directory, paths, tracker) = tracker(TrackerOptions::default(), 1, move |event| {
        let Event::Changed(paths) = event else { return };
        let own = inner.lock().unwrap();
        let Some(tracker) = own.as_ref() else { return };
        let sibling = paths[0].with_file_name("sibling");
        tracker.track(&sibling).unwrap();
        tracker.untrack(&sibling);
        let flush = tracker.flush();
        assert_eq!(tracker.status().tracked, 1);
        tracker.close();
        tell.send(flush).unwrap();
    });
    *own.lock().unwrap() = Some(Arc::new(tracker));
    write_all(&paths);
    let flush = told.recv_timeout(GENEROUS).expect("closing within the sink does not wait for itself");
    assert_eq!(flush.wait_timeout(GENEROUS), Some(Err(WatchError::Closed)));
}

#[test]
fn nothing_is_delivered_after_close() {
    let closed = Arc::new(AtomicBool::new(false));
    let late = Arc::new(AtomicUsize::new(0));
    let (sees_closed, counts) = (Arc::clone(&closed), Arc::clone(&late));
    let (_directory, paths, tracker) = tracker(TrackerOptions::default(), 200, move |_| {
        counts.fetch_add(usize::from(sees_closed.load(Ordering::SeqCst)), Ordering::SeqCst);
    });
    write_all(&paths);
    tracker.close();
    closed.store(true, Ordering::SeqCst);
    write_all(&paths);
    assert_eq!(tracker.flush().wait_timeout(GENEROUS), Some(Err(WatchError::Closed)));
    assert_eq!(tracker.track(&paths[0]), Err(WatchError::Closed));
    tracker.untrack(&paths[0]);
    assert!(tracker.status().closed);
    tracker.close();
    drop(tracker);
    assert_eq!(late.load(Ordering::SeqCst), 0);
}

#[test]
fn closing_answers_a_flush_waiting_for_a_busy_sink() {
    let (gate, sink) = Gate::around(|_| {});
    let (_directory, paths, tracker) = tracker(TrackerOptions::default(), 1, sink);
    write_all(&paths);
    gate.arrival();
    let flush = tracker.flush();
    std::thread::scope(|scope| {
        scope.spawn(|| tracker.close());
        assert_eq!(flush.wait_timeout(GENEROUS), Some(Err(WatchError::Closed)));
        gate.open.send(()).unwrap();
    });
}
