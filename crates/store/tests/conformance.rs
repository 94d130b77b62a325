//! The conformance suite on the store in memory.

#![expect(clippy::print_stderr, reason = "the name of the last check tells which one failed")]

use std::sync::Arc;

use context_store::OwnedStore;
use context_store::conformance::{CHECKS, run_all};
use context_store::memory::MemoryStore;

#[tokio::test]
async fn memory() {
    run_all(|| async { MemoryStore::new() as Arc<dyn OwnedStore> }, |name| eprintln!("memory: {name}")).await;
}

#[test]
fn the_names_of_the_checks_are_unique() {
    let names: std::collections::BTreeSet<_> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(names.len(), CHECKS.len());
}
