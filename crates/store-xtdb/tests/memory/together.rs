//! Many stores of one process on one journal: they share its lock, its sender and its connections, and each ends by itself. Needs no
//! XTDB: the node is the one of the engine's simulation.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::fleet::{PATIENCE, assert_once, direct, file, options, text, there};
use crate::node::{Node, Port, Question, Way};
use context_model::error::ErrorCode;
use context_store::Store;
use context_store::conformance::given::{file_in, put};
use context_store_xtdb::{QueueOptions, QueuedStore};

/// The address of the node, for the process that counts.
const CHILD: &str = "CONTEXT_TEST_MANY_STORES";

async fn node() -> (Arc<Node>, Port) {
    let node = Arc::new(Node::default());
    let port = Port::open(Arc::clone(&node)).await;
    (node, port)
}

async fn open(place: &Path, url: &str) -> Arc<QueuedStore> {
    QueuedStore::open_shared(options(place, url)).await.unwrap()
}

/// Opens this many stores at once, each of which writes and asks the node for something.
async fn many(place: &Path, url: &str, count: usize) -> Vec<Arc<QueuedStore>> {
    let mut opening = tokio::task::JoinSet::new();
    for n in 0..count {
        let (place, url) = (place.to_owned(), url.to_owned());
        opening.spawn(async move {
            let store = open(&place, &url).await;
            put(&*store, file(&format!("/{n}"), &n.to_string())).await;
            assert_eq!(text(&*store, &format!("/unknown/{n}")).await, None);
            store.pull().await.unwrap();
            store
        });
    }
    opening.join_all().await
}

#[cfg(target_os = "linux")]
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// In a separate process, because the other tests also have descriptors.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_stores_take_few_descriptors_and_leave_none() {
    const STORES: usize = 500;
    if let Ok(url) = std::env::var(CHILD) {
        let place = tempfile::tempdir().unwrap();
        // The runtime takes some at its first connection.
        open(&place.path().join("first"), &url).await.close().await.unwrap();
        let before = descriptors();
        let stores = many(place.path(), &url, STORES).await;
        println!("with {STORES}: {}", descriptors() - before);
        for store in &stores {
            store.close().await.unwrap();
        }
        // Connections end a moment after the last store.
        let ended = async {
            while descriptors() > before + 2 {
                tokio::task::yield_now().await;
            }
        };
        let left = tokio::time::timeout(PATIENCE, ended).await;
        println!("after them: {}", descriptors().saturating_sub(before));
        left.unwrap();
        return;
    }
    let (node, port) = node().await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "together::five_hundred_stores_take_few_descriptors_and_leave_none", "--nocapture"])
        .env(CHILD, &port.url);
    let output = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let count = |what: &str| -> usize {
        let line = said.lines().find_map(|line| line.strip_prefix(what));
        line.unwrap_or_else(|| panic!("{said}")).trim().parse().unwrap()
    };
    assert!(count("with 500:") < 80, "{said}");
    assert!(count("after them:") < 10, "{said}");
    for n in [0, STORES - 1] {
        assert!(node.latest(file(&format!("/{n}"), "").id().as_str()).is_some(), "{n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_store_is_closed_by_itself_and_the_last_one_ends_the_queue() {
    let (_node, port) = node().await;
    let place = tempfile::tempdir().unwrap();
    let [one, two, three] = [
        open(place.path(), &port.url).await,
        open(place.path(), &port.url).await,
        open(place.path(), &port.url).await,
    ];
    put(&*one, file("/one", "1")).await;
    one.close().await.unwrap();
    one.close().await.unwrap();
    assert_eq!(one.latest_tx().await.unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(one.pull().await.unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(text(&*two, "/one").await.as_deref(), Some("1"));
    put(&*two, file("/two", "2")).await;
    drop(three);
    two.flush().await.unwrap();
    assert!(two.state().is_sender && two.state().queued == 0);
    let there = direct(&port).await;
    assert_eq!(text(&*there, "/two").await.as_deref(), Some("2"));
    let lock = std::fs::File::open(place.path().join("journal.db.lock")).unwrap();
    assert!(lock.try_lock().is_err());
    two.close().await.unwrap();
    lock.try_lock().unwrap();
    lock.unlock().unwrap();
    // It can be opened again.
    let again = open(place.path(), &port.url).await;
    put(&*again, file("/two", "3")).await;
    again.flush().await.unwrap();
    assert_eq!(text(&*there, "/two").await.as_deref(), Some("3"));
    drop(again);
    lock.lock().unwrap();
}

/// The last store ends while others are opened: one queue follows the other, and the database has every write once.
#[tokio::test(flavor = "multi_thread")]
async fn stores_that_come_and_go_at_once_lose_nothing() {
    const ROUNDS: usize = 12;
    let (node, port) = node().await;
    let place = tempfile::tempdir().unwrap();
    let mut working = tokio::task::JoinSet::new();
    for worker in 0..4 {
        let (place, url) = (place.path().to_owned(), port.url.clone());
        working.spawn(async move {
            for round in 0..ROUNDS {
                let store = open(&place, &url).await;
                put(&*store, file(&format!("/{worker}"), &round.to_string())).await;
                if (worker + round) % 3 == 0 {
                    drop(store);
                } else {
                    store.close().await.unwrap();
                }
            }
        });
    }
    working.join_all().await;
    let last = open(place.path(), &port.url).await;
    last.flush().await.unwrap();
    assert_eq!(last.state().queued, 0);
    let there = there(&node).await;
    for worker in 0..4 {
        for round in 0..ROUNDS {
            assert_once(&there, &format!("/{worker}"), &round.to_string());
        }
    }
}

/// Each store has separate areas: one that rests costs the others no request.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_asks_only_for_what_its_store_works_in() {
    let (node, port) = node().await;
    let place = tempfile::tempdir().unwrap();
    let stores = [open(place.path(), &port.url).await, open(place.path(), &port.url).await];
    for (n, store) in stores.iter().enumerate() {
        put(&**store, file_in(&format!("disk {n}"), "/f", Some("own"))).await;
        store.flush().await.unwrap();
        store.pull().await.unwrap();
    }
    let others = direct(&port).await;
    for n in 0..stores.len() {
        put(&*others, file_in(&format!("disk {n}"), "/f", Some("others"))).await;
    }
    for store in &stores {
        store.pull().await.unwrap();
    }
    for (n, store) in stores.iter().enumerate() {
        let id = file_in(&format!("disk {n}"), "/f", None).id().clone();
        let version = store.get(&id, context_store::AsOf::default()).await.unwrap().unwrap();
        assert_eq!(version.document.content(), Some("others"), "{n}");
        node.requests();
        store.pull().await.unwrap();
        assert_eq!(node.requests(), 1);
    }
}

/// The list of all objects is older than the second store: what others have written since is not absent for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_later_store_knows_what_others_wrote_before_it_was_opened() {
    let (node, port) = node().await;
    let place = tempfile::tempdir().unwrap();
    let one = open(place.path(), &port.url).await;
    let [early, late] = ["/early", "/late"].map(|path| file_in("elsewhere", path, Some("others")));
    let others = direct(&port).await;
    put(&*others, early.clone()).await;
    // Once the list has come, what is not in it costs no request.
    let listed = async {
        loop {
            node.requests();
            let found = one.outlines(&[file("/missing", "").id().clone()]).await.unwrap();
            if found == [None] && node.requests() == 0 {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, listed).await.unwrap();
    put(&*others, late.clone()).await;
    let two = open(place.path(), &port.url).await;
    let found = two.outlines(&[early.id().clone(), late.id().clone()]).await.unwrap();
    assert!(found.iter().all(Option::is_some), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_that_wait_for_one_attempt_to_reach_a_node_share_its_failure() {
    // It takes each request and says nothing.
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let port = Port::before(Arc::new(move |_: Question| {
        counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }))
    .await;
    let place = tempfile::tempdir().unwrap();
    let options = QueueOptions { read_timeout_ms: 500, ..options(place.path(), &port.url) };
    let begin = Instant::now();
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..40 {
        opening.spawn(QueuedStore::open_shared(options.clone()));
    }
    for opened in opening.join_all().await {
        assert_eq!(opened.err().unwrap().code(), ErrorCode::StoreUnavailable);
    }
    // One after the other would take 40 seconds.
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(asked.load(Ordering::Relaxed) < 10, "{asked:?}");
    assert!(!place.path().join("journal.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_opened_while_the_node_is_away_notices_that_it_is_back() {
    let (_node, port) = node().await;
    let place = tempfile::tempdir().unwrap();
    let one = open(place.path(), &port.url).await;
    port.set(Way::Away);
    put(&*one, file("/a", "a")).await;
    let away = async {
        while one.state().is_connected {
            text(&*one, "/unknown").await;
        }
    };
    tokio::time::timeout(PATIENCE, away).await.unwrap();
    port.set(Way::Open);
    let two = open(place.path(), &port.url).await;
    assert!(two.state().is_connected && one.state().is_connected);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_behind_a_link_is_the_same_one_and_a_replaced_one_is_not() {
    let (_node, port) = node().await;
    let place = tempfile::tempdir().unwrap();
    let (real, linked) = (place.path().join("real"), place.path().join("linked"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &linked).unwrap();
    let one = open(&real, &port.url).await;
    let two = open(&linked, &port.url).await;
    put(&*two, file("/two", "2")).await;
    two.flush().await.unwrap();
    assert!(one.state().is_sender && two.state().is_sender, "one queue");
    // The link leads elsewhere now: the store behind it stops, the other one continues.
    std::fs::remove_file(&linked).unwrap();
    let error = two.latest_tx().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    put(&*one, file("/one", "1")).await;
    // Another journal in the place of the first.
    std::fs::rename(&real, place.path().join("moved")).unwrap();
    std::fs::create_dir(&real).unwrap();
    assert_eq!(one.latest_tx().await.unwrap_err().code(), ErrorCode::StoreUnavailable);
    let three = open(&real, &port.url).await;
    put(&*three, file("/three", "3")).await;
    three.flush().await.unwrap();
    assert_eq!(text(&*direct(&port).await, "/three").await.as_deref(), Some("3"));
    let _ = one.close().await;
    put(&*three, file("/three", "4")).await;
    three.flush().await.unwrap();
    three.close().await.unwrap();
}
