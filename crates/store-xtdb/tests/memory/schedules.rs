//! Several machines on one database, by random schedules: they write, copy and restore their journals, lose the network and
//! each other's news, get other answers from a program in between, have wrong clocks, read sessions that are removed, and the
//! database goes back to an earlier state. In the end each acknowledged write is in the
//! database, once, and all machines have the same versions. Needs no XTDB: the node is the one of the engine's simulation.
//!
//! In CI and with `CONTEXT_FULL=1`, it runs 1,000 schedules, with `CONTEXT_LONG=1` 10,000, `CONTEXT_SEED=n` the one of this seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::node::{Node, Port};
use crate::world::{Database, failure};

/// The simulation's node.
#[derive(Default)]
struct InMemory(Arc<Node>);

impl Database for InMemory {
    async fn port(&self) -> Port {
        Port::open(Arc::clone(&self.0)).await
    }

    async fn evict(&self, ids: &[&str]) {
        self.0.evict(ids);
    }

    async fn has(&self, id: &str) -> bool {
        self.0.latest(id).is_some()
    }

    async fn rewind(&mut self, lost: usize) {
        self.0.rewind(self.0.count().saturating_sub(lost));
    }

    async fn back_up(&mut self) {}

    fn lag_ms(&self) -> u64 {
        20
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_machines_and_database_each_write_is_there_once_and_all_are_equal() {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    if let Some(seed) = std::env::var("CONTEXT_SEED").ok().and_then(|seed| seed.parse().ok()) {
        assert_eq!(failure(seed, InMemory::default()).await, None);
        return;
    }
    let count = match (is_set("CONTEXT_LONG"), is_set("CONTEXT_FULL") || is_set("CI")) {
        (true, _) => 10_000,
        (_, true) => 1_000,
        _ => 40,
    };
    let next = Arc::new(AtomicU64::new(0));
    let has_failed = Arc::new(AtomicBool::new(false));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (next, has_failed) = (Arc::clone(&next), Arc::clone(&has_failed));
        workers.spawn(async move {
            let mut failures = Vec::new();
            while failures.is_empty() && !has_failed.load(Ordering::Relaxed) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= count {
                    break;
                }
                failures.extend(failure(seed, InMemory::default()).await);
            }
            has_failed.fetch_or(!failures.is_empty(), Ordering::Relaxed);
            failures
        });
    }
    let failures: Vec<String> = workers.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
