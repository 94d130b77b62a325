//! A tracker without watches, without permission, and when it ends. Each test runs in its own process, whose limits and
//! user change without touching the rest of the machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

use crate::common::{Content, Scene};
use context_watch::{Tracked, Tracker, TrackerOptions};

/// Set for the process that a test starts to run itself once more.
const CHILD: &str = "CONTEXT_WATCH_TEST_CHILD";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs one test of this file by `prepare`d means; false, with a line that says so, if that can't be done here.
fn run_again(test: &str, prepare: impl FnOnce(&mut Command, &str)) -> bool {
    let binary = std::env::current_exe().unwrap();
    let mut command = Command::new("unused");
    prepare(&mut command, binary.to_str().unwrap());
    command.args(["--exact", &format!("limits::{test}"), "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    match command.output() {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains("1 passed"), "{text}");
            true
        }
        Ok(output) if not_possible(&output) => {
            eprintln!("{test} not run: {}", String::from_utf8_lossy(&output.stderr).trim());
            false
        }
        Ok(output) => panic!("{test} failed in its process: {output:#?}"),
        Err(error) => {
            eprintln!("{test} not run: {error}");
            false
        }
    }
}

fn not_possible(output: &Output) -> bool {
    output.status.code() == Some(77) || String::from_utf8_lossy(&output.stderr).starts_with("unshare:")
}

/// In a user namespace, where the limits of inotify may be lowered for this process alone.
fn run_limited(test: &str, limits: &str) -> bool {
    run_again(test, |command, binary| {
        let script = format!("cd /proc/sys/user && {{ {limits}; }} || exit 77; exec \"$0\" \"$@\"");
        *command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", &script, binary]);
    })
}

fn run_unprivileged(test: &str) -> bool {
    run_again(test, |command, binary| {
        *command = Command::new(binary);
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(65534).gid(65534).env_remove("TMPDIR").current_dir("/");
        }
    })
}

fn quick_polls() -> TrackerOptions {
    TrackerOptions { poll_interval: Duration::from_millis(20), ..TrackerOptions::default() }
}

#[test]
fn without_free_watches_the_rest_is_polled_until_some_are_free() {
    if !is_child() {
        let test = "without_free_watches_the_rest_is_polled_until_some_are_free";
        run_limited(test, "echo 12 > max_inotify_watches");
        return;
    }
    let scene = Scene::with(quick_polls());
    let names: Vec<_> = (0..30).map(|number| format!("d{number}/f")).collect();
    names.iter().for_each(|name| scene.write(name, "1"));
    let how: Vec<_> = names.iter().map(|name| scene.track(name)).collect();
    assert_eq!(how[0], Tracked::Watched);
    assert_eq!(how[29], Tracked::Polled);
    scene.mirror.until("the warning", |seen| !seen.warnings.is_empty());
    scene.mirror.seen(|seen| {
        assert_eq!(seen.warnings.len(), 1, "once: {:?}", seen.warnings);
        assert!(seen.warnings[0].contains("max_user_watches"), "{:?}", seen.warnings);
    });
    let status = scene.tracker.status();
    assert!(status.watched_directories > 0 && status.watched_directories <= 12, "{status:?}");
    assert!(status.polled_directories >= 18, "{status:?}");
    for step in
        ["write d29/f 2", "save d29/f 3", "rm d29/f", "rmtree d29", "write d29/f 4", "mv d29 x", "mv x d29"]
    {
        scene.run(step);
        scene.until_equal();
    }
    names.iter().for_each(|name| scene.write(name, "flushed"));
    scene.assert_equal_after_flush();
    names[..22].iter().for_each(|name| scene.untrack(name));
    scene.write("d29/f", "5");
    let end = std::time::Instant::now() + crate::common::GENEROUS;
    while scene.tracker.status().polled_directories > 0 {
        assert!(std::time::Instant::now() < end, "{:?}", scene.tracker.status());
        scene.flush();
    }
    scene.write("d29/f", "6");
    scene.assert_equal_after_flush();
}

#[test]
fn without_a_watcher_everything_is_polled() {
    if !is_child() {
        run_limited("without_a_watcher_everything_is_polled", "echo 0 > max_inotify_instances");
        return;
    }
    let scene = Scene::with(quick_polls());
    assert_eq!(scene.track("a/f"), Tracked::Waiting);
    scene.write("b/f", "1");
    assert_eq!(scene.track("b/f"), Tracked::Polled);
    scene.mirror.until("the warning", |seen| !seen.warnings.is_empty());
    scene.mirror.seen(|seen| assert!(seen.warnings[0].contains("max_user_instances"), "{:?}", seen.warnings));
    for step in ["write a/f 1", "rm b/f", "write b/f 2", "rmtree a", "write a/f 3"] {
        scene.run(step);
        scene.until_equal();
    }
    scene.run("write a/f 4; rmtree b");
    scene.assert_equal_after_flush();
    assert_eq!(scene.rescans(), 0, "a flush polls, which is enough");
    assert_eq!(scene.tracker.status().watched_directories, 0);
}

#[test]
fn polling_and_watching_see_the_same() {
    let scene = Scene::with(TrackerOptions { always_poll: true, ..quick_polls() });
    scene.write("a/b/f", "1");
    scene.track("a/b/f");
    scene.track("later/f");
    for step in [
        "write a/b/f 2",
        "write a/b/f 3",
        "save a/b/f 4",
        "rmtree a",
        "write a/b/f 5",
        "mv a x",
        "mv x a",
        "write later/f 1",
    ] {
        scene.run(step);
        scene.until_equal();
    }
    (0..50).for_each(|number| {
        scene.write("a/b/f", (number % 10).to_string());
        scene.assert_equal_after_flush();
    });
    scene.mirror.seen(|seen| assert!(seen.warnings.is_empty(), "it was asked for"));
}

#[test]
fn follows_paths_without_permission_to_enter_or_list() {
    if !is_child() {
        run_unprivileged("follows_paths_without_permission_to_enter_or_list");
        return;
    }
    let scene = Scene::with(quick_polls());
    let mode = |relative: &str, mode| {
        fs::set_permissions(scene.path(relative), Permissions::from_mode(mode)).unwrap();
    };
    let content = |relative: &str| scene.mirror.seen(|seen| seen.contents[&scene.path(relative)].clone());
    scene.write("a/b/f", "1");
    scene.track("a/b/f");
    // A file.
    mode("a/b/f", 0);
    scene.until_equal();
    assert_eq!(content("a/b/f"), Content::Unreadable);
    mode("a/b/f", 0o600);
    scene.until_equal();
    // Its directory, and the one above.
    for directory in ["a/b", "a"] {
        mode(directory, 0);
        scene.until_equal();
        assert_eq!(content("a/b/f"), Content::Unreadable);
        mode(directory, 0o700);
        scene.until_equal();
        scene.write("a/b/f", format!("after {directory}"));
        scene.assert_equal_after_flush();
    }
    assert_eq!(scene.rescans(), 0);
    assert_eq!(scene.tracker.status().polled_directories, 0, "no polling where the parent tells");
    // Tracked while it is closed.
    scene.write("c/f", "1");
    mode("c", 0);
    assert_eq!(scene.track("c/f"), Tracked::Waiting);
    mode("c", 0o700);
    scene.until_equal();
    // Not listable, so it can't be watched, but its files can be read: polled, as long as that is so.
    scene.write("d/f", "1");
    mode("d", 0o300);
    assert_eq!(scene.track("d/f"), Tracked::Polled);
    scene.write("d/f", "2");
    scene.until_equal();
    mode("d", 0o700);
    scene.flush();
    assert_eq!(scene.tracker.status().polled_directories, 0);
    scene.write("d/f", "3");
    scene.assert_equal_after_flush();
    // An ancestor that is not listable does not cause polling.
    scene.write("e/e/f", "1");
    mode("e", 0o300);
    assert_eq!(scene.track("e/e/f"), Tracked::Watched);
    scene.write("e/e/f", "2");
    scene.assert_equal_after_flush();
    assert_eq!(scene.tracker.status().polled_directories, 0);
    ["a", "c", "d", "e"].iter().for_each(|directory| mode(directory, 0o700));
}

#[test]
fn closed_trackers_leave_no_thread_and_no_descriptor() {
    if !is_child() {
        assert!(run_again("closed_trackers_leave_no_thread_and_no_descriptor", |command, binary| {
            *command = Command::new(binary);
        }));
        return;
    }
    let count = |what: &str| fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let cycle = |close: bool| {
        let scene = Scene::new();
        scene.write("f", "1");
        scene.track("f");
        scene.flush();
        if close {
            scene.tracker.close();
        }
    };
    cycle(true);
    // A thread that was joined may stay listed for a moment, so the count is waited for.
    let settled = |most: usize| {
        let end = std::time::Instant::now() + crate::common::GENEROUS;
        while count("task") > most {
            assert!(std::time::Instant::now() < end, "{} threads, not {most}", count("task"));
            std::thread::yield_now();
        }
    };
    settled(2);
    let descriptors = count("fd");
    (0..30).for_each(|round| cycle(round % 2 == 0));
    settled(2);
    assert!(count("fd") <= descriptors, "{} descriptors, not {descriptors}", count("fd"));
}

#[test]
fn a_process_ends_with_an_open_tracker() {
    if !is_child() {
        assert!(run_again("a_process_ends_with_an_open_tracker", |command, binary| {
            *command = Command::new(binary);
        }));
        return;
    }
    let scene = Scene::with(TrackerOptions { always_poll: true, ..quick_polls() });
    scene.track("f");
    std::mem::forget(scene);
    let scene = Scene::new();
    scene.track("f");
    std::mem::forget(scene);
}
