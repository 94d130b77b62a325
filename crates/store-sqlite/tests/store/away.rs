//! A store whose file disappears while it is open. On Windows an open one can't be moved, removed or replaced.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use context_model::error::ErrorCode;
use context_model::object::Document;
use context_store::conformance::given;
use context_store::{Result, Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};
use rstest::rstest;

fn file(n: usize) -> Document {
    given::file("/a", &n.to_string())
}

async fn put(store: &dyn Store, n: usize) -> Result<()> {
    let transaction = Transaction { writes: vec![Write::put(file(n))], expected: Vec::new() };
    store.transact(transaction).await.map(|_| ())
}

async fn versions(store: &dyn Store) -> Vec<String> {
    let history = store.history(file(0).id()).await.unwrap();
    history.iter().map(|version| version.document.content().unwrap().to_owned()).collect()
}

/// A store with one version in its own folder, inside another one.
async fn store(place: &Path) -> Arc<SqliteStore> {
    let store = SqliteStore::open(place.join("here/store.db"), Durability::Power).unwrap();
    put(&*store, 1).await.unwrap();
    store
}

fn moved_folder(place: &Path) {
    fs::rename(place.join("here"), place.join("there")).unwrap();
}

fn moved_file(place: &Path) {
    fs::rename(place.join("here/store.db"), place.join("there.db")).unwrap();
}

fn moved_log(place: &Path) {
    fs::rename(place.join("here/store.db-wal"), place.join("there-wal")).unwrap();
}

fn replaced(place: &Path) {
    moved_folder(place);
    let other = SqliteStore::open(place.join("here/store.db"), Durability::Power).unwrap();
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(other.close())).unwrap();
}

fn folder_back(place: &Path) {
    let _ = fs::remove_dir_all(place.join("here"));
    fs::rename(place.join("there"), place.join("here")).unwrap();
}

fn file_back(place: &Path) {
    fs::rename(place.join("there.db"), place.join("here/store.db")).unwrap();
}

fn log_back(place: &Path) {
    fs::rename(place.join("there-wal"), place.join("here/store.db-wal")).unwrap();
}

#[rstest]
#[case::the_folder(moved_folder, folder_back)]
#[case::the_file(moved_file, file_back)]
#[case::the_log(moved_log, log_back)]
#[case::another_store_in_its_place(replaced, folder_back)]
#[tokio::test(flavor = "multi_thread")]
async fn fails_while_the_store_is_away_and_works_when_it_returns(
    #[case] away: fn(&Path),
    #[case] back: fn(&Path),
) {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path()).await;
    store
        .transact_deferred(Transaction { writes: vec![Write::put(file(2))], expected: Vec::new() })
        .await
        .unwrap();
    assert_eq!(versions(&*store).await, ["1", "2"]);
    away(place.path());
    for n in 3..6 {
        let error = put(&*store, n).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable);
        assert!(error.to_string().contains("here/store.db was moved, deleted or replaced"), "{error}");
    }
    let others = [
        store.latest_tx().await.err(),
        store.settle().await.err(),
        store.set_note("n", "x").await.err(),
        store.local_value("v", "x").await.err(),
        store.backup(place.path().join("copy.db")).await.err(),
    ];
    for error in others {
        assert_eq!(error.unwrap().code(), ErrorCode::StoreUnavailable);
    }
    // Content read from the files that were opened is still right.
    assert_eq!(versions(&*store).await, ["1", "2"]);
    back(place.path());
    put(&*store, 6).await.unwrap();
    store.settle().await.unwrap();
    assert_eq!(versions(&*store).await, ["1", "2", "6"]);
    store.close().await.unwrap();
    let again = SqliteStore::open(place.path().join("here/store.db"), Durability::Power).unwrap();
    assert_eq!(versions(&*again).await, ["1", "2", "6"]);
    assert_eq!(again.verify().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_a_replaced_store_leaves_the_new_one_alone() {
    let place = tempfile::tempdir().unwrap();
    let old = store(place.path()).await;
    fs::remove_dir_all(place.path().join("here")).unwrap();
    let new = store(place.path()).await;
    put(&*new, 2).await.unwrap();
    assert_eq!(put(&*old, 9).await.unwrap_err().code(), ErrorCode::StoreUnavailable);
    let _ = old.flush().await;
    old.close().await.unwrap();
    put(&*new, 3).await.unwrap();
    assert_eq!(versions(&*new).await, ["1", "2", "3"]);
    assert!(place.path().join("here/store.db-wal").exists());
    new.close().await.unwrap();
    let again = SqliteStore::open(place.path().join("here/store.db"), Durability::Power).unwrap();
    assert_eq!(versions(&*again).await, ["1", "2", "3"]);
}
