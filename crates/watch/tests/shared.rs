//! Sessions that share one tracker: each gets the events of its files, and none waits for another.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

#[path = "watch/common/mod.rs"]
mod common;

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::channel;

use camino::{Utf8Path, Utf8PathBuf};
use common::{GENEROUS, Mirror, read};
use context_watch::{Event, SharedTracker, Tracker, TrackerOptions, WatchError};

struct Place {
    root: Utf8PathBuf,
    _directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        Self { root, _directory: directory }
    }

    fn join(&self, sink: impl FnMut(Event) + Send + 'static) -> SharedTracker {
        SharedTracker::join(&self.root.join("own/watch"), TrackerOptions::default(), sink).unwrap()
    }

    fn mirror(&self) -> (Arc<Mirror>, SharedTracker) {
        let mirror = Arc::new(Mirror::default());
        let sink = Arc::clone(&mirror);
        (mirror, self.join(move |event| sink.take(event)))
    }

    fn file(&self, name: &str, text: &str) -> Utf8PathBuf {
        let path = self.root.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

fn track(mirror: &Mirror, tracker: &SharedTracker, path: &Utf8Path) {
    tracker.track(path).unwrap();
    mirror.seen(|seen| seen.contents.insert(path.to_owned(), read(path)));
}

fn flush(tracker: &SharedTracker) {
    tracker.flush().wait_timeout(GENEROUS).expect("the flush is answered").unwrap();
}

#[cfg(unix)]
#[test]
fn a_directory_behind_a_link_is_the_same_one() {
    let place = Place::new();
    fs::create_dir(place.root.join("own")).unwrap();
    std::os::unix::fs::symlink(place.root.join("own"), place.root.join("linked")).unwrap();
    let (mirror, first) = place.mirror();
    let marker = place.root.join("linked/watch");
    let second = SharedTracker::join(&marker, TrackerOptions::default(), |_: Event| {}).unwrap();
    track(&mirror, &first, &place.file("a", "1"));
    assert_ne!(first.status().watched_directories, 0);
    assert_eq!(second.status().watched_directories, first.status().watched_directories, "one tracker");
}

#[test]
fn each_hears_of_its_own_files_and_both_of_a_common_one() {
    let place = Place::new();
    let ((one, first), (two, second)) = (place.mirror(), place.mirror());
    let (a, b, both) = (place.file("a", "1"), place.file("b", "1"), place.file("both", "1"));
    track(&one, &first, &a);
    track(&two, &second, &b);
    for (mirror, tracker) in [(&one, &first), (&two, &second)] {
        track(mirror, tracker, &both);
    }
    for path in [&a, &b, &both] {
        fs::write(path, "2").unwrap();
    }
    flush(&first);
    flush(&second);
    one.seen(|seen| assert_eq!(seen.hinted.iter().collect::<Vec<_>>(), [&a, &both]));
    two.seen(|seen| assert_eq!(seen.hinted.iter().collect::<Vec<_>>(), [&b, &both]));
    assert_eq!((first.status().tracked, second.status().tracked), (2, 2));
}

#[test]
fn a_member_leaves_its_path_to_the_others_when_it_untracks_or_closes() {
    let place = Place::new();
    let ((one, first), (two, second), (_three, third)) = (place.mirror(), place.mirror(), place.mirror());
    let path = place.file("f", "1");
    for tracker in [&first, &third] {
        tracker.track(&path).unwrap();
    }
    track(&two, &second, &path);
    first.untrack(&path);
    third.close();
    third.close();
    assert!(matches!(third.track(&path), Err(WatchError::Closed)));
    assert_eq!(third.flush().wait(), Err(WatchError::Closed));
    assert!(third.status().closed && !second.status().closed);
    fs::write(&path, "2").unwrap();
    flush(&second);
    two.seen(|seen| assert_eq!(seen.contents[&path], read(&path)));
    one.seen(|seen| assert!(seen.hinted.is_empty()));
    drop(first);
    fs::write(&path, "3").unwrap();
    flush(&second);
    two.seen(|seen| assert_eq!(seen.contents[&path], read(&path)));
}

#[test]
fn a_tracker_left_by_all_members_starts_again() {
    let place = Place::new();
    let path = place.file("f", "1");
    for round in 0..3 {
        let (mirror, tracker) = place.mirror();
        track(&mirror, &tracker, &path);
        fs::write(&path, format!("round {round}")).unwrap();
        flush(&tracker);
        mirror.seen(|seen| assert_eq!(seen.contents[&path], read(&path)));
        tracker.close();
    }
}

#[test]
fn a_busy_member_delays_no_other_one_and_is_told_once() {
    let place = Place::new();
    let path = place.file("f", "0");
    let ((enter, entered), (open, opened)) = (channel(), channel::<()>());
    let busy = place.join(move |event| {
        if let Event::Changed(paths) = event {
            enter.send(paths).unwrap();
            let _open = opened.recv();
        }
    });
    let (mirror, other) = place.mirror();
    busy.track(&path).unwrap();
    track(&mirror, &other, &path);
    fs::write(&path, "1").unwrap();
    assert_eq!(entered.recv_timeout(GENEROUS).unwrap(), std::slice::from_ref(&path));
    for text in ["2", "3", "4"] {
        fs::write(&path, text).unwrap();
        flush(&other);
        mirror.seen(|seen| assert_eq!(seen.contents[&path], read(&path)));
    }
    // The changes made meanwhile arrive as one delivery.
    open.send(()).unwrap();
    assert_eq!(entered.recv_timeout(GENEROUS).unwrap(), [path]);
    open.send(()).unwrap();
    flush(&busy);
    assert!(entered.try_recv().is_err());
}

#[test]
fn a_panicking_receiver_must_look_at_all_paths_and_the_others_continue() {
    let place = Place::new();
    let path = place.file("f", "0");
    let (tell, told) = channel();
    let failing = place.join(move |event| match event {
        Event::Changed(_) => panic!("a receiver that fails"),
        Event::Rescan => tell.send(()).unwrap(),
        _ => {}
    });
    let (mirror, other) = place.mirror();
    failing.track(&path).unwrap();
    track(&mirror, &other, &path);
    fs::write(&path, "1").unwrap();
    told.recv_timeout(GENEROUS).unwrap();
    flush(&other);
    mirror.seen(|seen| assert_eq!((seen.rescans, &seen.contents[&path]), (0, &read(&path))));
}

#[test]
fn a_member_may_close_itself_within_a_delivery() {
    let place = Place::new();
    let path = place.file("f", "0");
    let slot = Arc::new(std::sync::Mutex::new(None::<SharedTracker>));
    let (tell, told) = channel();
    let own = Arc::clone(&slot);
    let tracker = place.join(move |event| {
        if matches!(event, Event::Changed(_)) {
            own.lock().unwrap().take().unwrap().close();
            tell.send(()).unwrap();
        }
    });
    tracker.track(&path).unwrap();
    *slot.lock().unwrap() = Some(tracker);
    fs::write(&path, "1").unwrap();
    told.recv_timeout(GENEROUS).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn further_members_cost_no_descriptors_and_no_threads() {
    let place = Place::new();
    let path = place.file("f", "0");
    let (_mirror, first) = place.mirror();
    first.track(&path).unwrap();
    // Other tests of this process open and close their own meanwhile; that many would be seen among them.
    let count = |what: &str| fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let (descriptors, threads) = (count("fd"), count("task"));
    let members: Vec<_> = (0..300).map(|_| place.join(|_| {})).collect();
    members.iter().for_each(|member| assert!(member.track(&path).is_ok()));
    assert!(count("fd") < descriptors + 150, "{descriptors} before, {} after", count("fd"));
    assert!(count("task") < threads + 150, "{threads} before, {} after", count("task"));
}
