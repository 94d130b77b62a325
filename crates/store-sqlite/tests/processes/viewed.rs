//! A view of a file that another process writes, and what reading leaves beside the file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use context_model::time::TxId;
use context_store::{AsOf, Search, Store};
use context_store_sqlite::{Durability, SqliteSnapshot, SqliteStore};

use super::worker::{self, Said, Worker, acknowledged, failures};
use super::{chat, check, file, runtime, sized, step};

/// The names and bytes of all files in a folder.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

/// The number of the writer's steps that a view sees, the same by each of its objects.
async fn seen(view: &SqliteSnapshot, name: &str) -> usize {
    let ids = [file(name, "a", "").id().clone(), file(name, "b", "").id().clone(), chat(name).id().clone()];
    let found = view.get_many(&ids, AsOf::default()).await.unwrap();
    let [a, b, chat] = found.try_into().unwrap();
    let number = |version: Option<context_store::Version>| {
        version.map_or(0, |v| v.document.content().unwrap().lines().next().unwrap().parse::<usize>().unwrap())
    };
    let turns = chat.map_or(0, |v| v.document.field("turns").unwrap().as_array().unwrap().len());
    let (a, b) = (number(a), number(b));
    assert_eq!((a, b), (turns, turns), "a read has seen a part of a transaction");
    turns
}

async fn made(path: &Path, name: &str, count: usize) {
    let store = SqliteStore::open(path, Durability::Process).unwrap();
    for n in 1..=count {
        store.transact(step(name, n)).await.unwrap();
    }
    store.close().await.unwrap();
}

#[test]
fn each_read_of_a_view_sees_whole_transactions_of_a_writing_process_up_to_the_newest() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let count = sized(150, 1_000, 10_000);
    runtime().block_on(made(&path, "w", 1));
    // Opened while nothing writes, and used throughout.
    let view = SqliteSnapshot::open(&path).unwrap();
    let mut worker = Worker::start(worker::command(&path, "w", count));
    let mut last = 0;
    let mut said = Vec::new();
    while let Some(one) = worker.next() {
        if let Said::Ack(n) = one {
            last = runtime().block_on(async {
                let now = seen(&view, "w").await;
                assert!(
                    now >= n && now >= last,
                    "step {n} is acknowledged, and the view sees {now} after {last}"
                );
                now
            });
        }
        said.push(one);
    }
    assert_eq!((failures(&said), acknowledged(&said), last), (vec![], count + 1, count + 1));
    worker.finish();
    runtime().block_on(async {
        let hits = view.search(&Search { text: format!("{}", count + 1), ..search() }).await.unwrap();
        assert!(!hits.is_empty());
        assert_eq!(view.verify().await.unwrap(), []);
        view.close().await.unwrap();
    });
    assert_eq!(check(&path, "w", count + 1), count + 1);
}

#[test]
fn a_view_survives_the_death_of_the_writer() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    runtime().block_on(made(&path, "w", 1));
    let view = SqliteSnapshot::open(&path).unwrap();
    for _ in 0..sized(5, 20, 100) {
        let mut worker = Worker::start(worker::command(&path, "w", 1_000_000));
        assert!(matches!(worker.next(), Some(Said::Ack(_))));
        let killed = acknowledged(&worker.kill());
        let now = runtime().block_on(seen(&view, "w"));
        assert!(now >= killed, "{killed} were acknowledged, and the view sees {now}");
    }
    runtime().block_on(view.close()).unwrap();
}

#[test]
fn reading_a_file_at_rest_changes_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("50% #1?.db");
    runtime().block_on(made(&path, "w", 20));
    let before = contents(place.path());
    runtime().block_on(async {
        let view = SqliteSnapshot::open(&path).unwrap();
        assert_eq!(seen(&view, "w").await, 20);
        assert!(!view.search(&Search { text: "output".into(), ..search() }).await.unwrap().is_empty());
        assert_eq!(view.verify().await.unwrap(), []);
        view.close().await.unwrap();
    });
    assert_eq!(contents(place.path()), before);
    assert_eq!(before.len(), 1);
}

#[test]
fn a_view_does_not_keep_a_closing_writer_from_removing_its_log() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    runtime().block_on(async {
        made(&path, "w", 3).await;
        let view = SqliteSnapshot::open(&path).unwrap();
        assert_eq!(seen(&view, "w").await, 3);
        made(&path, "v", 4).await;
        assert_eq!(contents(place.path()).len(), 1);
        assert_eq!((seen(&view, "w").await, seen(&view, "v").await), (3, 4));
        assert_eq!(view.latest_tx().await.unwrap(), TxId(7));
        view.close().await.unwrap();
    });
}

/// The log of a process that ended early, copied without its index to a place where none can be made.
#[cfg(unix)]
#[test]
fn a_log_that_was_left_behind_is_read_without_its_index() {
    let place = tempfile::tempdir().unwrap();
    let (path, copy) = (place.path().join("store.db"), place.path().join("copy.db"));
    let mut worker = Worker::start(worker::command(&path, "w", 1_000_000));
    assert!(matches!(worker.next(), Some(Said::Ack(1))));
    let killed = acknowledged(&worker.kill()).max(1);
    for end in ["", "-wal"] {
        let beside = |path: &Path| format!("{}{end}", path.display());
        fs::copy(beside(&path), beside(&copy)).unwrap();
    }
    // SQLite follows no link in this place, so that the index can't be made, by root neither.
    std::os::unix::fs::symlink("nowhere", place.path().join("copy.db-shm")).unwrap();
    let [before, wal] = ["copy.db", "copy.db-wal"].map(|name| fs::read(place.path().join(name)).unwrap());
    runtime().block_on(async {
        let view = SqliteSnapshot::open(&copy).unwrap();
        assert!(seen(&view, "w").await >= killed);
        assert_eq!(view.verify().await.unwrap(), []);
        view.close().await.unwrap();
    });
    let after = ["copy.db", "copy.db-wal"].map(|name| fs::read(place.path().join(name)).unwrap());
    assert_eq!(after, [before, wal]);
}

#[test]
fn files_that_are_no_store_are_refused_as_they_are() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let refusal = || SqliteSnapshot::open(&path).err().unwrap().to_string();
    assert!(refusal().contains("does not exist"), "{}", refusal());
    fs::write(&path, "").unwrap();
    assert!(refusal().contains("is empty"), "{}", refusal());
    fs::write(&path, "some text that is longer than a header of a database is, and is none".repeat(9))
        .unwrap();
    assert!(refusal().contains("not a context store"), "{}", refusal());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(refusal().contains("not a regular file"), "{}", refusal());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

fn search() -> Search {
    Search { text: String::new(), limit: 5, object_type: None, within: None }
}
