//! The pure part: the directories in the plan for some paths, and those that are to be watched.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rstest::rstest;

use super::*;

const HERE: Presence = Presence::Watched(Identity::from_parts(1, 1, 1));

fn paths(texts: &[&str]) -> Vec<Utf8PathBuf> {
    texts.iter().map(Utf8PathBuf::from).collect()
}

#[rstest]
#[case::one(&["/a/b/f"], &["/", "/a", "/a/b"])]
#[case::two_in_one_directory(&["/a/f", "/a/g"], &["/", "/a"])]
#[case::in_the_root(&["/f"], &["/"])]
#[case::shared_ancestors(&["/a/b/f", "/a/c/f"], &["/", "/a", "/a/b", "/a/c"])]
#[case::a_path_in_a_tracked_path(&["/a/f", "/a/f/g"], &["/", "/a", "/a/f"])]
fn the_parents_and_their_ancestors_are_in_the_plan(#[case] tracked: &[&str], #[case] directories: &[&str]) {
    let mut plan = WatchPlan::default();
    for path in tracked {
        assert!(plan.track(Utf8Path::new(path)).fresh);
        assert!(!plan.track(Utf8Path::new(path)).fresh);
    }
    assert_eq!(plan.directories(), paths(directories));
    for path in tracked {
        plan.untrack(Utf8Path::new(path));
    }
    assert_eq!(plan.directories(), paths(&[]));
    assert_eq!(plan.tracked(), 0);
}

#[test]
fn new_directories_are_named_ancestors_first_and_leaving_ones_descendants_first() {
    let mut plan = WatchPlan::default();
    assert_eq!(plan.track(Utf8Path::new("/a/b/f")).directories, paths(&["/", "/a", "/a/b"]));
    assert_eq!(plan.track(Utf8Path::new("/a/c/f")).directories, paths(&["/a/c"]));
    plan.set_presence(Utf8Path::new("/a/c"), HERE);
    let removed = plan.untrack(Utf8Path::new("/a/c/f"));
    assert_eq!(removed.directories, vec![("/a/c".into(), HERE)]);
    assert_eq!(removed.remaining, Some("/a".into()));
    let removed = plan.untrack(Utf8Path::new("/a/b/f"));
    let left: Vec<_> = removed.directories.into_iter().map(|(path, _)| path).collect();
    assert_eq!(left, paths(&["/a/b", "/a", "/"]));
    assert_eq!(removed.remaining, None);
}

#[rstest]
#[case::holds_a_name("/a/b", false, true)]
#[case::holds_a_name_and_is_quiet("/a/b", true, true)]
#[case::ancestor("/a", false, true)]
#[case::quiet_ancestor("/a", true, false)]
fn a_directory_is_watched_as_needed(#[case] directory: &str, #[case] quiet: bool, #[case] watched: bool) {
    let mut plan = WatchPlan::default();
    for directory in plan.track(Utf8Path::new("/a/b/f")).directories {
        plan.set_presence(&directory, HERE);
    }
    plan.set_quiet(Utf8Path::new(directory), quiet);
    assert_eq!(plan.needs_watch(Utf8Path::new(directory)), watched);
}

#[test]
fn a_quiet_ancestor_is_watched_while_a_child_is_absent() {
    let mut plan = WatchPlan::default();
    let (parent, child) = (Utf8Path::new("/tmp"), Utf8Path::new("/tmp/x"));
    plan.track(Utf8Path::new("/tmp/x/f"));
    plan.set_quiet(parent, true);
    assert!(plan.needs_watch(parent));
    plan.set_presence(child, HERE);
    assert!(!plan.needs_watch(parent));
    plan.set_presence(child, Presence::Absent);
    assert!(plan.needs_watch(parent) && plan.is_needed(parent));
    plan.set_presence(child, HERE);
    plan.track(Utf8Path::new("/tmp/f"));
    assert!(plan.needs_watch(parent));
}

#[test]
fn a_pinned_directory_stays_and_needs_no_ancestors() {
    let mut plan = WatchPlan::default();
    let pinned = Utf8Path::new("/p/q");
    assert!(plan.pin(pinned));
    assert_eq!(plan.directories(), paths(&["/p/q"]));
    plan.set_presence(pinned, HERE);
    plan.track(Utf8Path::new("/p/q/f"));
    assert_eq!(plan.directories(), paths(&["/", "/p", "/p/q"]));
    let removed = plan.untrack(Utf8Path::new("/p/q/f"));
    assert_eq!(removed.directories.len(), 2);
    assert_eq!(plan.directories(), paths(&["/p/q"]));
    assert_eq!(plan.presence(pinned), Some(HERE));
    assert!(plan.needs_watch(pinned));
}

#[derive(Clone, Debug)]
enum Step {
    Track(Utf8PathBuf),
    Untrack(Utf8PathBuf),
    Find(Utf8PathBuf, bool),
    Quiet(Utf8PathBuf, bool),
}

fn any_path() -> impl Strategy<Value = Utf8PathBuf> {
    proptest::collection::vec(prop_oneof!["a", "b", "ab"], 1..5)
        .prop_map(|names| Utf8PathBuf::from(format!("/{}", names.join("/"))))
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any_path().prop_map(Step::Track),
        2 => any_path().prop_map(Step::Untrack),
        2 => (any_path(), any::<bool>()).prop_map(|(path, here)| Step::Find(path, here)),
        1 => (any_path(), any::<bool>()).prop_map(|(path, quiet)| Step::Quiet(path, quiet)),
    ]
}

/// The expected plan: recomputed from the tracked paths each time, nothing counted.
#[derive(Default)]
struct Model {
    tracked: BTreeSet<Utf8PathBuf>,
    /// True if a directory is there, and true if it is quiet.
    directories: BTreeMap<Utf8PathBuf, (bool, bool)>,
}

impl Model {
    fn recompute(&mut self) {
        let wanted: BTreeSet<_> =
            self.tracked.iter().flat_map(|path| path.ancestors().skip(1)).map(Utf8Path::to_owned).collect();
        self.directories.retain(|path, _| wanted.contains(path));
        for path in wanted {
            self.directories.entry(path).or_insert((false, false));
        }
    }

    fn needs_watch(&self, path: &Utf8Path) -> bool {
        let Some((_, quiet)) = self.directories.get(path) else { return false };
        let mut children = self.directories.iter().filter(|(child, _)| child.parent() == Some(path));
        let holds_names = self.tracked.iter().any(|tracked| tracked.parent() == Some(path));
        holds_names || if *quiet { children.any(|(_, (here, _))| !here) } else { children.next().is_some() }
    }
}

proptest! {
    #[test]
    fn the_plan_equals_its_definition(steps in proptest::collection::vec(any_step(), 0..60)) {
        let mut plan = WatchPlan::default();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Track(path) => {
                    prop_assert_eq!(plan.track(&path).fresh, model.tracked.insert(path));
                }
                Step::Untrack(path) => {
                    let before = model.directories.len();
                    model.tracked.remove(&path);
                    model.recompute();
                    let removed = plan.untrack(&path);
                    prop_assert_eq!(removed.directories.len(), before - model.directories.len());
                }
                Step::Find(path, here) => {
                    let presence = if here { HERE } else { Presence::Absent };
                    plan.set_presence(&path, presence);
                    if let Some(directory) = model.directories.get_mut(&path) {
                        directory.0 = here;
                    }
                }
                Step::Quiet(path, quiet) => {
                    plan.set_quiet(&path, quiet);
                    if let Some(directory) = model.directories.get_mut(&path) {
                        directory.1 = quiet;
                    }
                }
            }
            model.recompute();
            prop_assert_eq!(plan.tracked(), model.tracked.len());
            prop_assert_eq!(plan.directories(), model.directories.keys().cloned().collect::<Vec<_>>());
            for (directory, (here, _)) in &model.directories {
                prop_assert_eq!(plan.needs_watch(directory), model.needs_watch(directory), "{}", directory);
                prop_assert_eq!(plan.presence(directory) == Some(HERE), *here, "{}", directory);
                prop_assert!(plan.meaning(directory).directory);
            }
            for path in &model.tracked {
                prop_assert!(plan.meaning(path).tracked);
            }
            prop_assert!(!plan.meaning(Utf8Path::new("/a/never")).tracked);
        }
    }
}
