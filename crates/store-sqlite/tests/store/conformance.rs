//! The conformance suite on a SQLite file.

use std::sync::Arc;

use context_store::OwnedStore;
use context_store::conformance::run_all;
use context_store_sqlite::{Durability, SqliteStore};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_check_in_a_file_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let mut n = 0;
    let factory = || {
        n += 1;
        let path = place.path().join(format!("{n}.db"));
        async { SqliteStore::open(path, Durability::Power).unwrap() as Arc<dyn OwnedStore> }
    };
    run_all(factory, |name| eprintln!("sqlite: {name}")).await;
}

/// A store that holds everything the other checks left behind answers as an empty one does.
#[tokio::test]
async fn all_checks_in_one_file() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let factory = || {
        let path = path.clone();
        async move { SqliteStore::open(path, Durability::Process).unwrap() as Arc<dyn OwnedStore> }
    };
    run_all(factory, |name| eprintln!("shared: {name}")).await;
}
