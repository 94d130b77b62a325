//! Any sequence of changes to a small tree: after a flush, the content read because of events equals the disk.

use std::fs;

use crate::common::Scene;
use camino::Utf8PathBuf;
use context_watch::Tracker;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Write(String),
    Save(String),
    Append(String),
    MakeDirectory(String),
    Remove(String),
    Rename(String, String),
    Track(String),
    Untrack(String),
    Flush,
}

fn any_place() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof!["a", "b"], 1..4).prop_map(|names| names.join("/"))
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any_place().prop_map(Step::Write),
        2 => any_place().prop_map(Step::Save),
        1 => any_place().prop_map(Step::Append),
        3 => any_place().prop_map(Step::MakeDirectory),
        3 => any_place().prop_map(Step::Remove),
        4 => (any_place(), any_place()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => any_place().prop_map(Step::Track),
        1 => any_place().prop_map(Step::Untrack),
        3 => Just(Step::Flush),
    ]
}

/// Steps that are impossible as the tree is now change nothing, which is fine.
fn apply(scene: &Scene, step: &Step, number: usize) {
    let text = number.to_string();
    let place = |relative: &String| -> Utf8PathBuf { scene.path(relative) };
    let _ = match step {
        Step::Write(path) => fs::write(place(path), text),
        Step::Save(path) => {
            let temporary = scene.path("../temporary");
            fs::write(&temporary, text).and_then(|()| fs::rename(temporary, place(path)))
        }
        Step::Append(path) => fs::OpenOptions::new().append(true).open(place(path)).and_then(|mut file| {
            use std::io::Write;
            file.write_all(text.as_bytes())
        }),
        Step::MakeDirectory(path) => fs::create_dir(place(path)),
        Step::Remove(path) => match fs::symlink_metadata(place(path)) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(place(path)),
            _ => fs::remove_file(place(path)),
        },
        Step::Rename(from, to) => fs::rename(place(from), place(to)),
        Step::Track(path) => {
            scene.track(path);
            Ok(())
        }
        Step::Untrack(path) => {
            scene.untrack(path);
            Ok(())
        }
        Step::Flush => {
            scene.assert_equal_after_flush();
            Ok(())
        }
    };
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 400, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn after_a_flush_nothing_is_stale(steps in proptest::collection::vec(any_step(), 1..60)) {
        let scene = Scene::new();
        for path in ["a", "b", "a/a", "a/b", "b/a/a", "b/b/b", "a/b/a", "a/a/b"] {
            scene.track(path);
        }
        for (number, step) in steps.iter().enumerate() {
            apply(&scene, step, number);
        }
        scene.assert_equal_after_flush();
        prop_assert_eq!(scene.rescans(), 0);
        prop_assert_eq!(scene.tracker.status().polled_directories, 0);
    }
}
