//! The cost of a growing document on the way to XTDB and back, in bytes. Needs no XTDB: the node is the one of the engine's
//! simulation, which counts.

use std::path::Path;
use std::sync::Arc;

use crate::ask::ask;
use crate::node::{Node, Port};
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_store::conformance::given::turn;
use context_store::memory::MemoryStore;
use context_store::{AsOf, KnownAt, Store, Transaction, Version, Write};
use context_store_sqlite::{Durability, SqliteStore};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};
use serde_json::{Value, json};

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

async fn grow(store: &dyn Store, turns: std::ops::RangeInclusive<usize>) {
    for n in turns {
        let writes = vec![Write::patch(ObjectId::chat(&session()), turn(n))];
        store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
    }
}

/// A journal with a chat of this many turns that were not sent yet.
async fn backlog(path: &Path, turns: usize) {
    let store = SqliteStore::open(path, Durability::Process).unwrap();
    let writes = vec![Write::put(Document::chat(&session()))];
    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
    grow(&*store, 1..=turns).await;
    store.close().await.unwrap();
    std::fs::write(path.with_extension("db.progress"), r#"{"sent":0,"seen":0}"#).unwrap();
}

fn options(path: &Path, url: &str) -> QueueOptions {
    QueueOptions { close_timeout_ms: 600_000, ..QueueOptions::new(path, XtdbOptions::new([url])) }
}

/// A node, and the journal of a machine that has sent it a backlog of this many turns.
async fn drained(turns: usize) -> (Arc<Node>, Port, tempfile::TempDir, Arc<QueuedStore>) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal.db");
    backlog(&path, turns).await;
    let node = Arc::new(Node::default());
    let port = Port::open(Arc::clone(&node)).await;
    let store = QueuedStore::open(options(&path, &port.url)).await.unwrap();
    store.flush().await.unwrap();
    (node, port, place, store)
}

fn documents(versions: Vec<Version>) -> Vec<Value> {
    versions.into_iter().map(|version| Value::Object(version.document.to_json())).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "lasts 6 seconds: `npm run test:full`"]
async fn a_backlog_of_one_chat_is_sent_in_proportion_to_its_turns() {
    let mut sent = Vec::new();
    for turns in [100, 400] {
        let (node, _port, _place, store) = drained(turns).await;
        sent.push(node.traffic().0);
        store.close().await.unwrap();
    }
    // Four times as many turns: four times as many bytes, and not sixteen times.
    assert!(sent[1] < sent[0] * 5, "{} bytes for 100 turns, {} for 400", sent[0], sent[1]);
    assert!(sent[1] < 400 * 2_000, "{} bytes for 400 turns", sent[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_is_read_as_it_was_written() {
    const TURNS: usize = 200;
    let (_node, port, _place, store) = drained(TURNS).await;
    let remote = XtdbStore::connect(XtdbOptions::new([port.url.clone()])).await.unwrap();
    let chat = ObjectId::chat(&session());
    let (here, there) = (store.history(&chat).await.unwrap(), remote.history(&chat).await.unwrap());
    assert_eq!(there.len(), TURNS + 1);
    for Version { tx_id, valid_time, .. } in there.iter().step_by(7) {
        let then = AsOf { valid_time: Some(*valid_time), known: None };
        let known = AsOf { valid_time: None, known: Some(KnownAt::Tx(*tx_id)) };
        for (at, last) in [
            (then, there.iter().rfind(|version| version.valid_time == *valid_time)),
            (known, there.iter().rfind(|version| version.tx_id == *tx_id)),
        ] {
            assert_eq!(remote.get(&chat, at).await.unwrap().as_ref(), last);
        }
    }
    assert_eq!(remote.verify().await.unwrap(), []);
    assert_eq!(documents(here), documents(there));
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "lasts 12 seconds: `npm run test:full`"]
async fn another_machine_reads_only_the_new_turns_of_a_chat() {
    let (node, port, _place, one) = drained(600).await;
    let other = tempfile::tempdir().unwrap();
    let two = QueuedStore::open(options(&other.path().join("journal.db"), &port.url)).await.unwrap();
    let chat = ObjectId::chat(&session());
    let count = |version: Option<Version>| version.unwrap().document.field("turn_count").cloned();
    assert_eq!(count(two.get(&chat, AsOf::default()).await.unwrap()), Some(json!(600)));
    let mut answered = Vec::new();
    for n in 601..=620 {
        grow(&*one, n..=n).await;
        one.flush().await.unwrap();
        node.traffic();
        // A turn may wait for half a second at most; what takes longer has come by the next one.
        while count(two.get(&chat, AsOf::default()).await.unwrap()) != Some(json!(n)) {
            two.pull().await.unwrap();
        }
        answered.push(node.traffic().1);
    }
    answered.sort_unstable();
    let whole = Value::Object(one.get(&chat, AsOf::default()).await.unwrap().unwrap().document.to_json());
    let length = whole.to_string().len();
    assert!(answered[10] * 4 < length, "{answered:?} bytes read a turn; the chat has {length}");
    let versions = two.history(&chat).await.unwrap();
    assert_eq!(documents(versions).pop().unwrap(), whole);
}

/// As another program writes: each version whole.
#[tokio::test(flavor = "multi_thread")]
async fn whole_versions_of_another_program_are_read_and_grown_on() {
    let node = Arc::new(Node::default());
    let port = Port::open(Arc::clone(&node)).await;
    let before = versions_of(30).await;
    let mut ops = Vec::new();
    for version in &before {
        let op = json!({ "tx-ops": [["put", version.document.to_json(), version.valid_time]] });
        ops.push(op.to_string());
    }
    for body in ops {
        ask(&format!("{}/_xtdb/submit-tx", port.url), &[], Some(body)).await;
    }
    let remote = XtdbStore::connect(XtdbOptions::new([port.url.clone()])).await.unwrap();
    let chat = ObjectId::chat(&session());
    let mut changes = 0;
    for n in 31..=60 {
        grow(&*remote, n..=n).await;
        changes += usize::from(node.latest(chat.as_str()).unwrap().get("context/patch").is_some());
    }
    assert!((10..30).contains(&changes), "{changes} of 30 sent as changes");
    let versions = remote.history(&chat).await.unwrap();
    let counts: Vec<_> = versions.iter().map(|v| v.document.field("turn_count").unwrap().clone()).collect();
    assert_eq!(counts, (0..=60).map(Value::from).collect::<Vec<_>>());
    let journal = tempfile::tempdir().unwrap();
    let two = QueuedStore::open(options(&journal.path().join("journal.db"), &port.url)).await.unwrap();
    assert_eq!(two.get(&chat, AsOf::default()).await.unwrap().unwrap().document, versions[60].document);
}

/// All versions of a chat of this many turns.
async fn versions_of(turns: usize) -> Vec<Version> {
    let store = MemoryStore::new();
    let writes = vec![Write::put(Document::chat(&session()))];
    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
    grow(&*store, 1..=turns).await;
    store.history(&ObjectId::chat(&session())).await.unwrap()
}
