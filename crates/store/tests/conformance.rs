//! The conformance suite on the backends that need nothing but this crate.

#![expect(clippy::print_stderr, reason = "the name of the last check tells which one failed")]

use std::sync::Arc;

use context_store::OwnedStore;
use context_store::conformance::{CHECKS, run_all};
use context_store::memory::MemoryStore;
use context_store::sqlite::{Durability, SqliteStore};

#[tokio::test]
async fn memory() {
    run_all(|| async { MemoryStore::new() as Arc<dyn OwnedStore> }, |name| eprintln!("memory: {name}")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite() {
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
async fn sqlite_with_all_checks_in_one_file() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let factory = || {
        let path = path.clone();
        async move { SqliteStore::open(path, Durability::Process).unwrap() as Arc<dyn OwnedStore> }
    };
    run_all(factory, |name| eprintln!("shared: {name}")).await;
}

#[test]
fn the_names_of_the_checks_are_unique() {
    let names: std::collections::BTreeSet<_> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(names.len(), CHECKS.len());
}
