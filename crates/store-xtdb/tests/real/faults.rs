//! Faults of a real XTDB node and of the network before it: nothing acknowledged is lost, nothing comes twice.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::rig::objects::{file, texts};
use crate::rig::proxy::Proxy;
use crate::rig::{Kind, Node};
use context_model::error::ErrorCode;
use context_store::{AsOf, Store, StoreError, Transaction, Write};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};

fn script() -> Option<PathBuf> {
    crate::rig::start_script("faults", include_str!("faults.rs"))
}

fn node(kind: Kind) -> Option<Node> {
    Some(Node::start(&script()?, kind))
}

fn options(urls: &[String], timeout_ms: u64) -> XtdbOptions {
    let mut options = XtdbOptions::new(urls.to_vec());
    options.timeout_ms = timeout_ms;
    options
}

async fn queued(place: &Path, urls: &[String]) -> Arc<QueuedStore> {
    let options = QueueOptions {
        read_timeout_ms: 1_000,
        pull_wait_ms: 1_000,
        close_timeout_ms: 60_000,
        ..QueueOptions::new(place.join("journal.db"), options(urls, 3_000))
    };
    QueuedStore::open(options).await.unwrap()
}

async fn put(store: &dyn Store, path: &str, text: &str) -> Result<(), StoreError> {
    let writes = vec![Write::put(file(path, text))];
    store.transact(Transaction { writes, expected: Vec::new() }).await.map(|_| ())
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

/// Asserts that everything acknowledged is there, in order, and that nothing is there twice.
fn assert_kept(stored: &[String], acknowledged: &[String]) {
    let mut rest = stored.iter();
    for text in acknowledged {
        assert!(rest.any(|s| s == text), "{text} was acknowledged and is not there in order: {stored:?}");
    }
    let mut unique = stored.to_vec();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), stored.len(), "twice: {stored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_killed_during_writes_keeps_acknowledged_ones() {
    let Some(mut node) = node(Kind::RocksDb) else { return };
    let store = XtdbStore::connect(options(&[node.url()], 2_000)).await.unwrap();
    let mut acknowledged = Vec::new();
    let mut sent = 0;
    for round in 0..3 {
        let writer = {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for n in sent.. {
                    match put(&*store, "/a", &n.to_string()).await {
                        Ok(()) => acknowledged.push(n.to_string()),
                        Err(error) => {
                            assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
                            return (acknowledged, n + 1);
                        }
                    }
                }
                unreachable!("the node is killed before that")
            })
        };
        // Until some of the round's writes have been acknowledged.
        let reader = XtdbStore::connect(options(&[node.url()], 2_000)).await.unwrap();
        let begin = Instant::now();
        while texts(&*reader, "/a").await.len() < acknowledged.len() + 10 {
            assert!(begin.elapsed() < crate::rig::PATIENCE, "round {round}: ten writes do not come");
            tokio::task::yield_now().await;
        }
        node.kill();
        let (more, next) = writer.await.unwrap();
        crate::rig::say(&format!("round {round}: {} acknowledged", more.len()));
        acknowledged.extend(more);
        sent = next;
        node.restart();
    }
    let fresh = XtdbStore::connect(options(&[node.url()], 5_000)).await.unwrap();
    assert_kept(&texts(&*fresh, "/a").await, &acknowledged);
    // The store that saw the crash continues.
    put(&*store, "/a", "after").await.unwrap();
    assert_eq!(texts(&*fresh, "/a").await.last().unwrap(), "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_survives_the_node_and_its_own_process() {
    let Some(mut node) = node(Kind::RocksDb) else { return };
    let place = tempfile::tempdir().unwrap();
    let mut count = 0;
    for _ in 0..3 {
        let store = queued(place.path(), &[node.url()]).await;
        for _ in 0..40 {
            put(&*store, "/a", &count.to_string()).await.unwrap();
            count += 1;
            if count % 40 == 17 {
                node.kill();
            }
        }
        // Ends without closing, while the sender is at work.
        drop(store);
        node.restart();
    }
    let store = queued(place.path(), &[node.url()]).await;
    store.flush().await.unwrap();
    let fresh = XtdbStore::connect(options(&[node.url()], 5_000)).await.unwrap();
    assert_eq!(texts(&*fresh, "/a").await, numbers(count));
}

/// Frozen for as long as `CONTEXT_FREEZE_SECONDS` says; 5 seconds by default, which is longer than the time
/// limits in this test.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_node_is_an_error_in_time_and_a_pause_for_the_queue() {
    let Some(node) = node(Kind::RocksDb) else { return };
    let place = tempfile::tempdir().unwrap();
    let patient = XtdbStore::connect(options(&[node.url()], 30_000)).await.unwrap();
    put(&*patient, "/direct", "0").await.unwrap();
    let store = XtdbStore::connect(options(&[node.url()], 1_000)).await.unwrap();
    let queue = queued(place.path(), &[node.url()]).await;
    put(&*queue, "/queued", "0").await.unwrap();
    let seconds = std::env::var("CONTEXT_FREEZE_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(5);
    node.freeze(true);
    let thaw = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let error = put(&*store, "/direct", "1").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.to_string().contains("no answer in time"), "{error}");
    for n in 1..=20 {
        put(&*queue, "/queued", &n.to_string()).await.unwrap();
    }
    tokio::time::sleep_until(thaw).await;
    node.freeze(false);
    queue.flush().await.unwrap();
    // The abandoned write may have happened; the next ones come after it, and once.
    for n in 2..=10 {
        // A busy machine may need more than the short time limit: a write may be repeated.
        while let Err(error) = put(&*store, "/direct", &n.to_string()).await {
            assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
        }
    }
    let mut acknowledged = numbers(11);
    acknowledged.remove(1);
    assert_kept(&texts(&*patient, "/direct").await, &acknowledged);
    assert_eq!(texts(&*patient, "/queued").await, numbers(21));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_network_with_cut_connections_repeats_nothing() {
    let Some(node) = node(Kind::Memory) else { return };
    let slow = Proxy::start(node.port(), Duration::from_millis(200), 20).await;
    let bad = Proxy::start(node.port(), Duration::ZERO, 3).await;
    let place = tempfile::tempdir().unwrap();
    let store = XtdbStore::connect(options(&[bad.url()], 5_000)).await.unwrap();
    let queue = queued(place.path(), &[slow.url()]).await;
    for n in 0..60 {
        put(&*store, "/direct", &n.to_string()).await.unwrap();
        put(&*queue, "/queued", &n.to_string()).await.unwrap();
    }
    // At 200 ms a request a turn-by-turn send would take long: batches do not.
    queue.flush().await.unwrap();
    for n in 60..100 {
        put(&*queue, "/queued", &n.to_string()).await.unwrap();
        queue.pull().await.unwrap();
    }
    queue.flush().await.unwrap();
    // Documents that are too long to be fenced by the version that they replace, going back and forth.
    let big: Vec<String> = (0..8).map(|n| format!("{}{}", n % 2, "x".repeat(1_200_000))).collect();
    for text in &big {
        put(&*store, "/big", text).await.unwrap();
    }
    assert!(bad.cut() > 20 && slow.cut() > 0, "{} and {} answers were lost", bad.cut(), slow.cut());
    let direct = XtdbStore::connect(options(&[node.url()], 5_000)).await.unwrap();
    assert_eq!(texts(&*direct, "/direct").await, numbers(60));
    assert_eq!(texts(&*direct, "/queued").await, numbers(100));
    assert!(texts(&*direct, "/big").await == big, "the long documents came in another order or number");
}

/// A file system of a few megabytes, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(megabytes: u32) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(place.path()).output();
        mount.is_ok_and(|done| done.status.success()).then_some(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_under_the_node_is_said_and_survived() {
    let Some(script) = script() else { return };
    let Some(disk) = SmallDisk::mount(96) else {
        crate::rig::not_run(
            "a_full_disk_under_the_node_is_said_and_survived",
            "a tmpfs can be mounted by root only",
        );
        return;
    };
    let data = disk.0.path().join("node");
    let mut node = Node::start_in(&script, Kind::RocksDb, &data);
    let place = tempfile::tempdir().unwrap();
    let queue = queued(place.path(), &[node.url()]).await;
    let store = XtdbStore::connect(options(&[node.url()], 2_000)).await.unwrap();
    let filler = disk.0.path().join("filler");
    let mut acknowledged = Vec::new();
    let mut error = None;
    put(&*store, "/direct", "first").await.unwrap();
    acknowledged.push("first".to_owned());
    let used = Command::new("df").args(["--output=avail", "-k"]).arg(disk.0.path()).output().unwrap();
    let free: u64 = String::from_utf8_lossy(&used.stdout).split_whitespace().last().unwrap().parse().unwrap();
    std::fs::write(&filler, vec![0; usize::try_from(free.saturating_sub(4_000) * 1024).unwrap()]).unwrap();
    for n in 0..200 {
        let text = format!("{n} {}", random_text(200_000, n));
        match put(&*store, "/direct", &text).await {
            Ok(()) => acknowledged.push(text),
            Err(e) => {
                error = Some(e);
                break;
            }
        }
    }
    let error = error.expect("the disk of four megabytes is full after two hundred times 200 kB");
    assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
    crate::rig::say(&format!("after {} writes: {error}", acknowledged.len()));
    for n in 0..5 {
        put(&*queue, "/queued", &n.to_string()).await.unwrap();
    }
    std::fs::remove_file(&filler).unwrap();
    node.restart();
    queue.flush().await.unwrap();
    let fresh = XtdbStore::connect(options(&[node.url()], 5_000)).await.unwrap();
    assert_kept(&texts(&*fresh, "/direct").await, &acknowledged);
    assert_eq!(texts(&*fresh, "/queued").await, numbers(5));
    put(&*store, "/direct", "after").await.unwrap();
    assert_eq!(
        fresh.get(file("/direct", "").id(), AsOf::default()).await.unwrap().unwrap().document.content(),
        Some("after")
    );
    drop(node);
}

/// A text that does not get shorter by compression.
fn random_text(length: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut text = String::with_capacity(length);
    while text.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("{state:016x}"));
    }
    text
}
