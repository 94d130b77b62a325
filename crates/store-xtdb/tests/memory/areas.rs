//! A client learns of changes that concern its sessions, and asks for nothing else. Needs no XTDB: the node is the one of
//! the engine's simulation, which counts.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::node::{Node, Port, Way};
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::Patch;
use context_store::conformance::given::{file_in, put};
use context_store::{AsOf, Store, Transaction, Write};
use context_store_sqlite::Durability;
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};
use serde_json::json;

struct Machine {
    store: Arc<QueuedStore>,
    _place: tempfile::TempDir,
}

fn options(place: &Path, url: &str) -> QueueOptions {
    // Long enough that a turn on a busy machine also learns of everything.
    QueueOptions {
        pull_wait_ms: 60_000,
        ..QueueOptions::new(place.join("journal.db"), XtdbOptions::new([url]))
    }
}

async fn machine(url: &str) -> Machine {
    let place = tempfile::tempdir().unwrap();
    Machine { store: QueuedStore::open(options(place.path(), url)).await.unwrap(), _place: place }
}

async fn node() -> (Arc<Node>, Port) {
    let node = Arc::new(Node::default());
    let port = Port::open(Arc::clone(&node)).await;
    (node, port)
}

fn file(filesystem: &str, path: &str, text: &str) -> Document {
    file_in(filesystem, path, Some(text))
}

async fn text(store: &dyn Store, document: &Document) -> Option<String> {
    let version = store.get(document.id(), AsOf::default()).await.unwrap()?;
    version.document.content().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_asks_for_the_same_however_much_others_write_elsewhere() {
    let (node, port) = node().await;
    let one = machine(&port.url).await;
    let others = XtdbStore::connect(XtdbOptions::new([port.url.clone()])).await.unwrap();
    put(&*one.store, file("here", "/a", "one")).await;
    one.store.flush().await.unwrap();
    one.store.pull().await.unwrap();
    let mut answered = Vec::new();
    for count in [1, 10, 100, 300] {
        for n in 0..count {
            put(&*others, file("elsewhere", &format!("/{n}"), &format!("{n} of {count}"))).await;
        }
        node.traffic();
        one.store.pull().await.unwrap();
        answered.push(node.traffic().1);
    }
    assert_eq!(answered, vec![answered[0]; 4], "bytes that a turn was answered");
    put(&*others, file("here", "/a", "two")).await;
    one.store.pull().await.unwrap();
    assert_eq!(text(&*one.store, &file("here", "/a", "")).await.as_deref(), Some("two"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_does_not_have_the_node_walk_through_the_past_of_an_area() {
    let (node, port) = node().await;
    let one = machine(&port.url).await;
    let others = XtdbStore::connect(XtdbOptions::new([port.url.clone()])).await.unwrap();
    put(&*one.store, file("here", "/a", "one")).await;
    one.store.flush().await.unwrap();
    let mut walked = Vec::new();
    for round in 0..40 {
        for n in 0..5 {
            put(&*others, file("here", "/a", &format!("{round}, {n}"))).await;
        }
        node.pass(Duration::from_secs(120));
        put(&*others, file("here", "/a", &format!("{round}, last"))).await;
        one.store.pull().await.unwrap();
        walked.push(node.walked());
        let seen = text(&*one.store, &file("here", "/a", "")).await;
        assert_eq!(seen, Some(format!("{round}, last")));
    }
    // The new entries, and those of the last turn.
    assert!(walked.iter().skip(1).all(|count| *count <= 7), "{walked:?}");
    assert_eq!(one.store.history(file("here", "/a", "").id()).await.unwrap().len(), 1 + 40 * 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_after_the_check_go_with_the_turn() {
    const TURNS: usize = 12;
    let (_node, port) = node().await;
    let one = machine(&port.url).await;
    let count = XtdbStore::connect(XtdbOptions::new([port.url.clone()])).await.unwrap();
    let mut whole = 0;
    for n in 0..TURNS {
        let before = count.latest_tx().await.unwrap();
        put(&*one.store, file("here", "/a", &format!("{n}"))).await;
        one.store.pull().await.unwrap();
        // The turn is at work.
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(30) {
            text(&*one.store, &file("here", "/a", "")).await;
        }
        put(&*one.store, file("here", "/b", &format!("{n}"))).await;
        one.store.flush().await.unwrap();
        whole += usize::from(count.latest_tx().await.unwrap().0 == before.0 + 1);
    }
    // On a machine that stands still for a moment, a turn may become two.
    assert!(whole * 2 > TURNS, "{whole} of {TURNS} turns were one transaction");
}

/// XTDB keeps two versions of one object in a transaction only if their valid times differ.
#[tokio::test(flavor = "multi_thread")]
async fn versions_that_follow_each_other_within_a_millisecond_go_together() {
    let (_node, port) = node().await;
    let place = tempfile::tempdir().unwrap();
    let options = QueueOptions { durability: Durability::Process, ..options(place.path(), &port.url) };
    let one = QueuedStore::open(options).await.unwrap();
    let (chat, count) = (SessionId::new("s").unwrap(), XtdbOptions::new([port.url.clone()]));
    let count = XtdbStore::connect(count).await.unwrap();
    put(&*one, Document::chat(&chat)).await;
    one.flush().await.unwrap();
    let before = count.latest_tx().await.unwrap();
    // All are there before one can be sent.
    port.set(Way::Away);
    for n in 0..30 {
        let mut patch = Patch::new();
        patch.set(&["turn_count"], json!(n));
        let writes = vec![Write::patch(ObjectId::chat(&chat), patch)];
        one.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
    }
    port.set(Way::Open);
    one.flush().await.unwrap();
    let sent = count.latest_tx().await.unwrap().0 - before.0;
    assert!(sent <= 2, "{sent} transactions");
    let here = one.history(&ObjectId::chat(&chat)).await.unwrap();
    assert_eq!(here.len(), 31);
    assert!(here.windows(2).all(|two| two[0].valid_time < two[1].valid_time));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_returns_to_an_area_fetches_the_changes_made_meanwhile() {
    let (_node, port) = node().await;
    let place = tempfile::tempdir().unwrap();
    let path = file("here", "/a", "");
    {
        let one = QueuedStore::open(options(place.path(), &port.url)).await.unwrap();
        put(&*one, file("here", "/a", "one")).await;
        one.pull().await.unwrap();
        one.close().await.unwrap();
    }
    let two = machine(&port.url).await;
    put(&*two.store, file("here", "/a", "two")).await;
    two.store.flush().await.unwrap();
    let one = QueuedStore::open(options(place.path(), &port.url)).await.unwrap();
    // It knows of no area yet.
    one.pull().await.unwrap();
    let outlines = one.outlines(std::slice::from_ref(path.id())).await.unwrap();
    assert!(outlines[0].is_some());
    assert_eq!(text(&*one, &path).await.as_deref(), Some("two"));
    let there: Vec<_> = one.history(path.id()).await.unwrap();
    assert_eq!(there.iter().map(|v| v.document.content().unwrap()).collect::<Vec<_>>(), ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_continued_elsewhere_is_read_in_its_present_state() {
    let (_node, port) = node().await;
    let (one, two) = (machine(&port.url).await, machine(&port.url).await);
    let session = SessionId::new("s").unwrap();
    let chat = ObjectId::chat(&session);
    put(&*one.store, Document::chat(&session)).await;
    one.store.flush().await.unwrap();
    for n in 1..=6 {
        let machine = if n % 2 == 0 { &one } else { &two };
        let before = machine.store.get(&chat, AsOf::default()).await.unwrap().unwrap();
        assert_eq!(before.document.field("turn_count"), Some(&json!(n - 1)), "before turn {n}");
        let mut patch = Patch::new();
        patch.append(&["turns"], json!({ "user": format!("question {n}") }));
        patch.set(&["turn_count"], json!(n));
        let writes = vec![Write::patch(chat.clone(), patch)];
        machine.store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
        machine.store.flush().await.unwrap();
    }
    // A list of sessions reads outlines, and works on none of them.
    let three = machine(&port.url).await;
    three.store.get_many(std::slice::from_ref(&chat), AsOf::default()).await.unwrap();
    let mut patch = Patch::new();
    patch.set(&["turn_count"], json!(7));
    let writes = vec![Write::patch(chat.clone(), patch)];
    one.store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
    one.store.flush().await.unwrap();
    let outlines = three.store.outlines(std::slice::from_ref(&chat)).await.unwrap();
    assert_eq!(outlines[0].as_ref().unwrap().payload["turn_count"], json!(7));
}
