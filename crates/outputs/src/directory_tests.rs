use std::collections::BTreeSet;
#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicU64, Ordering};

use rstest::{fixture, rstest};
use tempfile::TempDir;

use super::*;

const TEXT: &str = r#"{"toolName":"t","toolDescription":"t","args":{},"timestamp":"t","result":1}"#;

#[fixture]
fn root() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn open(root: &TempDir) -> OutputDirectory {
    OutputDirectory::new(root.path().join("a/b"), Durability::Power)
}

fn numbered(counter: u64) -> String {
    name::file_name("tool", "a1b2c3", 1000, counter, "x9k2")
}

fn listing(directory: &OutputDirectory) -> BTreeSet<String> {
    let entries = fs::read_dir(directory.path()).expect("a directory");
    entries.map(|e| e.expect("an entry").file_name().into_string().expect("UTF-8")).collect()
}

#[cfg(unix)]
#[rstest]
fn a_saved_file_is_private_and_alone(root: TempDir) {
    let directory = open(&root);
    let name = directory.save(TEXT, || numbered(0)).expect("saved");
    assert_eq!(name, numbered(0));
    assert_eq!(listing(&directory), BTreeSet::from([name.clone()]));
    let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    assert_eq!(mode(&directory.path().join(&name)), 0o600);
    assert_eq!(mode(directory.path()), 0o700);
    assert_eq!(directory.load(&[name]), [Ok(String::from(TEXT))]);
}

#[rstest]
fn a_name_that_is_taken_or_being_written_is_passed_over(root: TempDir) {
    let directory = open(&root);
    directory.save("first", || numbered(0)).expect("saved");
    fs::write(directory.path().join(name::temporary(&numbered(1))), "another process").expect("written");
    let mut counter = 0..;
    let name = directory.save("second", || numbered(counter.next().expect("a number"))).expect("saved");
    assert_eq!(name, numbered(2));
    assert_eq!(directory.load(&[numbered(0)]), [Ok(String::from("first"))]);
    let never = directory.save("third", || numbered(0)).expect_err("no free name");
    assert_eq!(never.code(), "IO");
    assert_eq!(listing(&directory).len(), 3);
}

#[rstest]
fn eight_threads_with_one_source_of_names_lose_nothing(root: TempDir) {
    let (directory, saved) = (open(&root), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (directory, saved) = (&directory, &saved);
            scope.spawn(move || {
                for i in 0..20 {
                    let text = format!("{thread} {i}");
                    // All threads try the same names in the same order.
                    let mut counter = 0..;
                    let mut next =
                        || numbered(saved.load(Ordering::SeqCst) + counter.next().expect("a number"));
                    let name = directory.save(&text, &mut next).expect("saved");
                    saved.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(directory.load(&[name]), [Ok(text)]);
                }
            });
        }
    });
    assert_eq!(directory.names().expect("names").len(), 160);
}

#[cfg(unix)]
#[rstest]
fn what_is_missing_or_of_no_use_is_said_and_the_order_stays(root: TempDir) {
    let directory = open(&root);
    for counter in 0..4 {
        directory.save(&format!("{counter}"), || numbered(counter)).expect("saved");
    }
    fs::remove_file(directory.path().join(numbered(1))).expect("removed");
    fs::write(directory.path().join(numbered(2)), [0xFF, 0xFE]).expect("damaged");
    symlink("/etc/hostname", directory.path().join(numbered(7))).expect("linked");
    fs::create_dir(directory.path().join(numbered(8))).expect("created");
    let outside = String::from("../../outside");
    let asked = [numbered(3), numbered(1), outside, numbered(2), numbered(7), numbered(8), numbered(0)];
    let loaded = directory.load(&asked);
    let texts: Vec<Option<&str>> = loaded.iter().map(|l| l.as_deref().ok()).collect();
    assert_eq!(texts, [Some("3"), None, None, None, None, None, Some("0")]);
}

#[rstest]
fn many_files_are_read_in_their_order(root: TempDir) {
    let directory = OutputDirectory::new(root.path().to_path_buf(), Durability::Process);
    let names: Vec<String> =
        (0..201).map(|i| directory.save(&i.to_string(), || numbered(i)).expect("saved")).collect();
    assert_eq!(directory.names().expect("names"), names);
    let expected: Vec<Outcome> = (0..201).map(|i| Ok(i.to_string())).collect();
    assert_eq!(directory.load(&names), expected);
}

#[cfg(unix)]
#[rstest]
fn clearing_removes_only_what_was_written_here(root: TempDir) {
    let directory = open(&root);
    assert_eq!(directory.clear().expect("nothing to clear"), 0);
    directory.save(TEXT, || numbered(0)).expect("saved");
    let foreign = ["notes.json", "tool.json", ".keep", ".x.json.tmp", "tool_a1b2c3_1000_1_x9k2.txt"];
    for name in foreign {
        fs::write(directory.path().join(name), "mine").expect("written");
    }
    fs::write(directory.path().join(name::temporary(&numbered(5))), "half").expect("written");
    symlink("notes.json", directory.path().join(numbered(6))).expect("linked");
    fs::create_dir(directory.path().join(numbered(7))).expect("created");
    assert_eq!(directory.clear().expect("cleared"), 2);
    let left: BTreeSet<String> =
        foreign.map(String::from).into_iter().chain([numbered(6), numbered(7)]).collect();
    assert_eq!(listing(&directory), left);
}

#[rstest]
fn removing_never_leaves_the_directory(root: TempDir) {
    let directory = open(&root);
    directory.save(TEXT, || numbered(0)).expect("saved");
    fs::write(root.path().join("victim"), "stays").expect("written");
    assert_eq!(
        directory.remove(&[String::from("../../victim"), numbered(9), numbered(0)]).expect("removed"),
        1
    );
    assert!(root.path().join("victim").exists());
}

#[rstest]
fn a_directory_that_vanishes_is_created_again(root: TempDir) {
    let directory = open(&root);
    directory.save(TEXT, || numbered(0)).expect("saved");
    fs::remove_dir_all(directory.path()).expect("removed");
    assert!(directory.names().expect("names").is_empty());
    directory.save(TEXT, || numbered(1)).expect("saved again");
    assert_eq!(listing(&directory), BTreeSet::from([numbered(1)]));
}

#[rstest]
fn a_refusal_has_a_code_and_leaves_nothing(root: TempDir) {
    let in_the_way = root.path().join("a");
    fs::write(&in_the_way, "a file").expect("written");
    let error = open(&root).save(TEXT, || numbered(0)).expect_err("no directory");
    assert_eq!(error.code(), "IO");
    assert!(error.to_string().contains("check that the directory"), "{error}");
    assert_eq!(fs::read_to_string(in_the_way).expect("untouched"), "a file");
}

#[test]
fn a_full_device_has_its_own_code() {
    let full = OutputError::io("write", Path::new("x"), io::Error::from(io::ErrorKind::StorageFull));
    assert_eq!(full.code(), "STORE_FULL");
}

#[rstest]
fn metadata_does_not_read_the_result(root: TempDir) {
    let directory = open(&root);
    let head = TEXT.trim_end_matches("1}");
    directory.save(&format!("{head}\"{}\"}}", "x".repeat(1 << 20)), || numbered(0)).expect("saved");
    // Only the result is damaged: the metadata is as good as before.
    directory.save(&format!("{head}{{{{"), || numbered(1)).expect("saved");
    directory.save("{\"toolName\":", || numbered(2)).expect("saved");
    let read = directory.metadata(&[numbered(0), numbered(1), numbered(2)]);
    assert_eq!(read[0].as_ref().expect("metadata"), read[1].as_ref().expect("metadata"));
    assert!(read[2].is_err());
}
