//! Changes to files and directories while they are tracked, on the real file system.

use std::fs::{self, File};
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Content, Scene};
use camino::Utf8PathBuf;
use context_watch::{Tracked, Tracker, TrackerOptions, WatchError};
use rstest::rstest;

const TRACKED: [&str; 4] = ["a/f", "a/b/f", "a/b/g", "later/deep/er/f"];

/// Each step is a line of commands (see [`Scene::run`]); its changes must be seen with and without a flush.
#[rstest]
#[case::overwrite(&["write a/f 2"])]
#[case::overwrite_1_mb(&["fill a/f 1048576"])]
#[case::overwrite_10_mb(&["fill a/f 10485760"])]
#[case::append(&["append a/f 2", "append a/f 3"])]
#[case::truncated(&["truncate a/f"])]
#[case::atomic_saves(&["save a/f 2", "save a/f 3", "save a/f 4"])]
#[case::backup_save(&["mv a/f a/f~; write a/f 2"])]
#[case::made_again_at_once(&["rm a/f; write a/f 2"])]
#[case::made_again(&["rm a/f", "write a/f 2", "write a/f 3"])]
#[case::moved_away_and_back(&["mv a/f x", "mv x a/f"])]
#[case::moved_onto_another(&["mv a/b/f a/b/g", "write a/b/f new"])]
#[case::hard_link(&["rm a/f; hardlink a/b/f a/f", "save a/b/f 2"])]
#[case::directory_removed(&["rmtree a/b", "write a/b/g 2", "write a/b/f 3"])]
#[case::directory_made_again_at_once(&["rmtree a/b; write a/b/f 2", "write a/b/f 3"])]
#[case::directory_moved_away(&["mv a/b x", "write x/f other", "mv x a/b", "write a/b/f 2"])]
#[case::directory_moved_and_back_at_once(&["mv a/b x; write x/f 2; mv x a/b", "write a/b/f 3"])]
#[case::directory_exchanged(&[
    "mv a/b old; write a/b/f 2",
    "write old/f other",
    "write a/b/f 3",
    "rmtree a/b; mv old a/b",
    "write a/b/g 4",
])]
#[case::ancestor_moved_away(&["mv a x", "write x/b/f other", "mv x a", "write a/b/f 2"])]
#[case::ancestor_moved_and_back_at_once(&["mv a x; mv x a", "write a/b/f 2", "mv a x; mv x a; write a/b/f 3"])]
#[case::ancestor_exchanged(&["mv a x; write a/b/f 2", "write a/b/f 3", "write x/b/f other", "write a/b/g 4"])]
#[case::ancestor_removed(&["rmtree a", "write a/b/f 2", "write a/b/f 3"])]
#[case::root_removed(&["rmtree .", "write a/b/f 2", "write a/b/f 3"])]
#[case::directory_becomes_file(&["rmtree a/b; write a/b 2", "rm a/b; write a/b/f 2", "write a/b/f 3"])]
#[case::file_becomes_directory(&["rm a/f; write a/f/inner 2", "rmtree a/f; write a/f 3"])]
#[cfg(unix)]
#[case::directory_becomes_link(&[
    "mv a/b real; symlink real a/b",
    "write real/f 2",
    "rm a/b; mv real a/b",
    "write a/b/f 3",
])]
#[cfg(unix)]
#[case::directory_becomes_cycle(&["rmtree a/b; symlink a/b a/b", "rm a/b; write a/b/f 2"])]
#[cfg(unix)]
#[case::links_around(&[
    "symlink a a/b/up; symlink /usr a/usr",
    "write a/b/up/f 2",
    "write a/b/up/b/up/b/f 3",
])]
#[case::appears_with_its_directories(&["write later/deep/er/f 1", "write later/deep/er/f 2"])]
#[case::appears_step_by_step(&["mkdir later", "mkdir later/deep", "write later/deep/er/f 1"])]
#[case::appears_by_rename(&["write x/deep/er/f 1; mv x later", "write later/deep/er/f 2"])]
#[cfg(unix)]
#[case::fifo(&["rm a/f; fifo a/f", "rm a/f; write a/f 2"])]
fn sees_each_change(#[case] steps: &[&str], #[values(true, false)] flush: bool) {
    let scene = Scene::new();
    TRACKED[..3].iter().for_each(|path| scene.write(path, "1"));
    TRACKED.iter().for_each(|path| {
        scene.track(path);
    });
    for step in steps {
        scene.run(step);
        if flush { scene.assert_equal_after_flush() } else { scene.until_equal() }
    }
    assert_eq!(scene.rescans(), 0, "found by events, not by looking at everything");
    assert_eq!(scene.tracker.status().polled_directories, 0);
}

#[rstest]
#[case::overwritten("write a/f {}")]
#[case::saved("save a/f {}")]
#[case::made_again("rm a/f; write a/f {}")]
#[case::directory_made_again("rmtree a; write a/f {}")]
#[case::ancestor_exchanged("mv . ../old; write a/f {}; rmtree ../old")]
fn the_last_of_many_is_seen(#[case] step: &str, #[values(1, 20)] at_once: usize) {
    let scene = Scene::new();
    scene.write("a/f", "first");
    scene.track("a/f");
    for number in 0..100 {
        scene.run(&step.replace("{}", &number.to_string()));
        if number % at_once == 0 {
            scene.until_equal();
        }
    }
    scene.assert_equal_after_flush();
}

#[test]
fn a_file_held_open_is_seen_as_it_grows() {
    let scene = Scene::new();
    scene.write("log", "");
    scene.track("log");
    let mut log = File::options().append(true).open(scene.path("log")).unwrap();
    for line in 0..5 {
        writeln!(log, "line {line}").unwrap();
        scene.until_equal();
    }
}

#[test]
fn each_of_many_writes_is_seen_in_turn() {
    let scene = Scene::new();
    scene.track("f");
    for number in 0..200 {
        scene.write("f", number.to_string());
        scene.until_equal();
    }
}

#[test]
fn a_save_is_delivered_complete_however_long_the_settle_time() {
    let scene =
        Scene::with(TrackerOptions { settle: crate::common::GENEROUS * 10, ..TrackerOptions::default() });
    scene.write("f", "1");
    scene.track("f");
    scene.write("f", "2");
    scene.until_equal();
    scene.run("save f 3");
    scene.until_equal();
}

#[test]
fn only_tracked_names_count() {
    let scene = Scene::new();
    scene.write("f", "1");
    scene.write("g", "1");
    scene.track("f");
    scene.track("g");
    scene.untrack("g");
    for number in 0..100 {
        for other in ["store.db", "store.db-wal", "g", "sub/f"] {
            scene.write(other, number.to_string());
        }
        fs::read(scene.path("f")).unwrap();
    }
    scene.flush();
    scene.mirror.seen(|seen| assert_eq!((seen.hints, seen.rescans), (0, 0), "{:?}", seen.hinted));
}

#[test]
#[cfg(target_os = "linux")]
fn names_outside_utf8_do_not_stop_tracking() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let scene = Scene::new();
    scene.write("f", "1");
    scene.track("f");
    let odd = scene.path("").into_std_path_buf().join(OsStr::from_bytes(b"\xff\xfe"));
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("f"), "x").unwrap();
    fs::rename(odd.join("f"), scene.path("f")).unwrap();
    scene.assert_equal_after_flush();
}

#[test]
fn a_rename_of_a_tracked_file_is_named() {
    let scene = Scene::new();
    scene.write("a/f", "1");
    scene.write("b/other", "1");
    scene.track("a/f");
    scene.track("b/other");
    scene.run("mv a/f b/g");
    scene.run("save b/other 2");
    scene.assert_equal_after_flush();
    let expected: Vec<(Utf8PathBuf, Utf8PathBuf)> = vec![(scene.path("a/f"), scene.path("b/g"))];
    scene.mirror.seen(|seen| {
        assert_eq!(seen.moves, expected);
        assert_eq!(seen.contents[&scene.path("a/f")], Content::Missing);
    });
}

#[test]
fn a_directory_followed_to_its_new_place_is_watched_there() {
    let scene = Scene::new();
    scene.write("a/f", "1");
    scene.track("a/f");
    scene.run("mv a b");
    scene.track("b/f");
    scene.untrack("a/f");
    scene.write("b/f", "2");
    scene.assert_equal_after_flush();
    scene.write("b/f", "3");
    scene.assert_equal_after_flush();
    assert_eq!(scene.rescans(), 0);
}

#[test]
fn directories_exchanged_while_they_are_attached_are_not_missed() {
    let scene = Scene::new();
    for _ in 0..10 {
        let busy = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..50 {
                    scene.run(&format!("write new/b/f {number}; mv new a; mv a old; rmtree old"));
                }
                scene.run("write a/b/f last");
                busy.store(false, Ordering::SeqCst);
            });
            while busy.load(Ordering::SeqCst) {
                scene.track("a/b/f");
                scene.untrack("a/b/f");
            }
        });
        scene.track("a/b/f");
        scene.run("write a/b/f after");
        scene.assert_equal_after_flush();
        scene.run("rmtree a");
        scene.assert_equal_after_flush();
        scene.untrack("a/b/f");
    }
}

#[test]
fn untracking_releases_the_watches() {
    let scene = Scene::new();
    let before = scene.tracker.status();
    let paths: Vec<_> = (0..50).map(|number| format!("d{}/f{number}", number % 7)).collect();
    for path in &paths {
        scene.write(path, "1");
        assert_eq!(scene.track(path), Tracked::Watched);
        assert_eq!(scene.track(path), Tracked::Watched);
    }
    assert_eq!(scene.track("missing/f"), Tracked::Waiting);
    let full = scene.tracker.status();
    assert_eq!((full.tracked, full.missing_directories), (51, 1));
    assert!(full.watched_directories >= before.watched_directories + 8, "{full:?}");
    for path in &paths {
        scene.untrack(path);
        scene.untrack(path);
    }
    scene.untrack("missing/f");
    assert_eq!(scene.tracker.status(), before);
}

#[cfg(unix)]
#[rstest]
#[case::relative("a/f")]
#[case::root("/")]
#[case::parent("/a/../f")]
#[case::dot("/a/./f")]
#[case::directory("/a/f/")]
#[case::doubled("/a//f")]
#[case::empty("")]
#[case::nul("/a/\0")]
fn refuses_a_path_that_is_not_canonical(#[case] path: &str) {
    let scene = Scene::new();
    let error = scene.tracker.track(path.into()).unwrap_err();
    assert_eq!(error, WatchError::InvalidPath { path: path.into() });
    assert_eq!(error.code().as_str(), "INVALID_ARGUMENT");
    assert_eq!(scene.tracker.status().tracked, 0);
}

#[test]
#[ignore = "lasts 5 seconds: `npm run test:full`"]
fn ten_thousand_files_written_three_times() {
    let scene = Scene::new();
    let paths: Vec<_> = (0..10_000).map(|number| format!("d{}/f{number}", number / 20)).collect();
    for path in &paths {
        scene.write(path, "0");
        scene.track(path);
    }
    for round in 1..=3 {
        for path in &paths {
            scene.write(path, round.to_string());
        }
    }
    scene.assert_equal_after_flush();
}

#[test]
fn a_checkout_of_another_branch_with_a_thousand_files() {
    let scene = Scene::new();
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(scene.path(""))
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .output();
        output.map(|output| assert!(output.status.success(), "{output:?}"))
    };
    if git(&["init", "-q", "-b", "one"]).is_err() {
        eprintln!("not run: git is missing");
        return;
    }
    let common: Vec<_> = (0..1000).map(|number| format!("src/d{}/f{number}", number % 40)).collect();
    let only_in_two: Vec<_> = (0..50).map(|number| format!("two/d{}/f{number}", number % 5)).collect();
    common.iter().for_each(|path| scene.write(path, format!("one {path}")));
    git(&["add", "."]).unwrap();
    git(&["commit", "-q", "-m", "one"]).unwrap();
    git(&["checkout", "-q", "-b", "two"]).unwrap();
    common.iter().chain(&only_in_two).for_each(|path| scene.write(path, format!("two {path}")));
    git(&["add", "."]).unwrap();
    git(&["commit", "-q", "-m", "two"]).unwrap();
    common.iter().chain(&only_in_two).for_each(|path| {
        scene.track(path);
    });
    for branch in ["one", "two", "one", "two"] {
        git(&["checkout", "-q", branch]).unwrap();
        scene.assert_equal_after_flush();
    }
    assert_eq!(scene.rescans(), 0);
}

/// The operating system has one watch for a directory, whatever the paths to it.
#[cfg(unix)]
#[rstest]
fn a_directory_that_has_two_paths_is_heard_by_both(#[values("a/f", "link/f")] left: &str) {
    let scene = Scene::new();
    scene.write("a/f", "1");
    scene.run("symlink a link");
    scene.track("a/f");
    scene.track("link/f");
    for text in ["2", "3"] {
        scene.write("a/f", text);
        scene.until_equal();
    }
    let other = if left == "a/f" { "link/f" } else { "a/f" };
    scene.untrack(other);
    for text in ["4", "5"] {
        scene.write("a/f", text);
        scene.until_equal();
    }
    scene.track(other);
    scene.write("a/f", "6");
    scene.until_equal();
    scene.untrack(left);
    scene.write("a/f", "7");
    scene.until_equal();
    assert_eq!(scene.rescans(), 0, "found by events, not by looking at everything");
}
