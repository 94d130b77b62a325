//! Stores that one process opens on one file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};

use context_model::id::SessionId;
use context_model::object::Document;
use context_store::{AsOf, Filter, Store, StoreError, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};

fn shared(path: &Path) -> Arc<SqliteStore> {
    SqliteStore::open_shared(path, Durability::Power).unwrap()
}

fn document(name: &str) -> Document {
    Document::system_prompt(&SessionId::new(name).unwrap(), name)
}

async fn put(store: &SqliteStore, name: &str) -> Result<(), StoreError> {
    let writes = vec![Write::put(document(name))];
    store.transact(Transaction { writes, expected: vec![] }).await.map(drop)
}

async fn has(store: &SqliteStore, name: &str) -> Result<bool, StoreError> {
    Ok(store.get(document(name).id(), AsOf::default()).await?.is_some())
}

/// Number of this process's descriptors that lead to the file, its log or the log's index.
fn descriptors(path: &Path) -> usize {
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let links =
        fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links
        .filter(|link| link.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name)))
        .count()
}

fn log(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", path.display()))
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn further_stores_cost_no_descriptors() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("counted.db");
    let first = shared(&path);
    put(&first, "first").await.unwrap();
    let before = descriptors(&path);
    let stores: Vec<_> = (0..100).map(|_| shared(&path)).collect();
    for store in &stores {
        assert!(has(store, "first").await.unwrap());
        assert_eq!(store.query(&Filter::default()).await.unwrap().len(), 1);
    }
    // One of each kind that was idle before: a reader, and the log's file that is synced.
    assert!(descriptors(&path) <= before + 3, "{before} before, {} after", descriptors(&path));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_is_closed_for_itself_and_the_last_one_copies_the_log_back() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let (first, second) = (shared(&path), shared(&path));
    put(&first, "a").await.unwrap();
    first.close().await.unwrap();
    first.close().await.unwrap();
    assert_eq!(put(&first, "b").await, Err(StoreError::Closed));
    assert_eq!(has(&first, "a").await, Err(StoreError::Closed));
    assert_eq!(first.latest_tx().await, Err(StoreError::Closed));
    assert_eq!(first.query(&Filter::default()).await, Err(StoreError::Closed));
    assert_eq!(first.flush().await, Err(StoreError::Closed));
    assert_eq!(first.limits().await.unwrap_err(), StoreError::Closed);
    put(&second, "b").await.unwrap();
    assert!(has(&second, "a").await.unwrap());
    assert!(log(&path).exists());
    second.close().await.unwrap();
    assert!(!log(&path).exists(), "the log was not copied back");
    let third = shared(&path);
    assert!(has(&third, "b").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_store_leaves_the_others_working() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let kept = shared(&path);
    for _ in 0..3 {
        drop(shared(&path));
    }
    put(&kept, "a").await.unwrap();
    kept.close().await.unwrap();
    assert!(!log(&path).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_file_is_opened_anew_and_the_old_store_says_so() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let old = shared(&path);
    put(&old, "old").await.unwrap();
    for end in ["", "-wal", "-shm"] {
        let file = format!("{}{end}", path.display());
        fs::rename(&file, format!("{file}.away")).unwrap();
    }
    let new = shared(&path);
    assert!(!has(&new, "old").await.unwrap());
    put(&new, "new").await.unwrap();
    let lost = put(&old, "more").await.unwrap_err();
    assert!(matches!(&lost, StoreError::Unavailable(why) if why.contains("replaced")), "{lost}");
    old.close().await.unwrap();
    assert!(has(&new, "new").await.unwrap());
    new.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_path_to_the_file_is_watched_for_itself() {
    let place = tempfile::tempdir().unwrap();
    let (path, link) = (place.path().join("store.db"), place.path().join("link.db"));
    let direct = shared(&path);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let by_link = shared(&link);
    put(&by_link, "a").await.unwrap();
    assert!(has(&direct, "a").await.unwrap());
    fs::remove_file(&link).unwrap();
    let gone = put(&by_link, "b").await.unwrap_err();
    assert!(matches!(&gone, StoreError::Unavailable(why) if why.contains("link.db")), "{gone}");
    put(&direct, "b").await.unwrap();
}

#[test]
fn threads_opening_and_closing_at_once_lose_nothing() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let begin = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (path, begin) = (&path, &begin);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                begin.wait();
                for round in 0..10 {
                    runtime.block_on(async {
                        let store = shared(path);
                        put(&store, &format!("s{thread}-{round}")).await.unwrap();
                        store.close().await.unwrap();
                    });
                }
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = shared(&path);
    assert_eq!(runtime.block_on(store.query(&Filter::default())).unwrap().len(), 40);
}
