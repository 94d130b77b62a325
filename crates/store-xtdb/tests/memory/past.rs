//! The past of one machine read through the journal of another one. The node is the one of the engine's simulation.

use std::path::Path;
use std::sync::Arc;

use crate::fleet;
use crate::node::{Node, Port, Way};
use context_model::error::ErrorCode;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::time::Timestamp;
use context_store::conformance::given::{file, file_in, toolcall, turn};
use context_store::transfer;
use context_store::{AsOf, Change, KnownAt, Store, Transaction, Version, Write};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions};
use serde_json::{Value, json};

const TURNS: usize = 60;

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

fn chat() -> ObjectId {
    ObjectId::chat(&session())
}

fn options(place: &Path, port: &Port) -> QueueOptions {
    QueueOptions {
        // Long enough for a busy machine; a port that is away answers at once.
        read_timeout_ms: 20_000,
        close_timeout_ms: 60_000,
        ..QueueOptions::new(
            place.join("journal.db"),
            XtdbOptions { attempts: 1, ..XtdbOptions::new([port.url.clone()]) },
        )
    }
}

async fn open(place: &Path, port: &Port) -> Arc<QueuedStore> {
    QueuedStore::open(options(place, port)).await.unwrap()
}

async fn write(store: &dyn Store, writes: Vec<Write>) {
    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
}

fn dated(document: Document, millis: i64) -> Write {
    Write::Put { document, valid_time: Some(Timestamp::from_millis(millis)) }
}

fn index(n: usize) -> Patch {
    let mut patch = Patch::new();
    patch.append(&["session_index"], json!(format!("file:{n}")));
    patch
}

/// A machine's session: a chat and a session that grow, a file with a deletion and a version that is dated back, a call.
async fn worked(store: &dyn Store) -> Vec<ObjectId> {
    let growing = context_model::session::Sets::default().document(&session());
    write(store, vec![Write::put(Document::chat(&session())), Write::put(growing)]).await;
    for n in 1..=TURNS {
        let writes =
            vec![Write::patch(chat(), turn(n)), Write::patch(ObjectId::session(&session()), index(n))];
        write(store, writes).await;
    }
    for (text, millis) in
        [(Some("one"), 1_000), (Some("two"), 2_000), (None, 3_000), (Some("back"), 500), (Some("one"), 4_000)]
    {
        write(store, vec![dated(file_in("f", "/a", text), millis)]).await;
    }
    let call = toolcall("c1", &session(), "an output");
    let ids =
        vec![chat(), ObjectId::session(&session()), file_in("f", "/a", None).id().clone(), call.id().clone()];
    write(store, vec![Write::put(call)]).await;
    store.flush().await.unwrap();
    ids
}

fn shapes(versions: &[Version]) -> Vec<(Value, Timestamp)> {
    versions.iter().map(|v| (Value::Object(v.document.to_json()), v.valid_time)).collect()
}

fn valid(time: Timestamp) -> AsOf {
    AsOf { valid_time: Some(time), known: None }
}

async fn document(store: &dyn Store, id: &ObjectId, at: AsOf) -> Option<Document> {
    store.get(id, at).await.unwrap().map(|version| version.document)
}

async fn exported(store: &dyn Store) -> Vec<Value> {
    let ids = transfer::session_objects(store, &session()).await.unwrap();
    let mut bytes = Vec::new();
    transfer::export(store, &ids, &mut bytes).await.unwrap();
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    lines
        .filter_map(|line| Some(json!([line.get("object")?, line["position"], line["valid_time"]])))
        .collect()
}

/// The first read of a second machine.
#[derive(Clone, Copy, Debug)]
enum First {
    Nothing,
    Latest,
    Points,
    Export,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_journal_gives_back_the_whole_past_of_a_session() {
    let node = Arc::new(Node::default());
    let places = [(); 5].map(|()| tempfile::tempdir().unwrap());
    let port = Port::open(Arc::clone(&node)).await;
    let one = open(places[4].path(), &port).await;
    let ids = worked(&*one).await;
    let mut histories = Vec::new();
    for id in &ids {
        histories.push(one.history(id).await.unwrap());
    }
    for (place, first) in places.iter().zip([First::Nothing, First::Latest, First::Points, First::Export]) {
        let two = open(place.path(), &port).await;
        match first {
            First::Nothing => {}
            First::Latest => {
                two.get_many(&ids, AsOf::default()).await.unwrap();
            }
            First::Points => {
                for (id, versions) in ids.iter().zip(&histories) {
                    assert_eq!(document(&*two, id, valid(Timestamp::from_millis(1))).await, None, "{id}");
                    for version in versions.iter().step_by(3) {
                        let there = one.get(id, valid(version.valid_time)).await.unwrap().unwrap();
                        let here = document(&*two, id, valid(version.valid_time)).await;
                        assert_eq!(here, Some(there.document), "{id} at {}", version.valid_time);
                    }
                }
            }
            First::Export => assert_eq!(exported(&*two).await, exported(&*one).await),
        }
        for (id, versions) in ids.iter().zip(&histories) {
            assert_eq!(shapes(&two.history(id).await.unwrap()), shapes(versions), "{id}, {first:?}");
            let part = two.history_part(id, None, 1_000).await.unwrap();
            assert_eq!(shapes(&part), shapes(versions), "{id}, {first:?}");
        }
        assert_eq!(exported(&*two).await, exported(&*one).await, "{first:?}");
        assert_eq!(two.verify().await.unwrap(), []);
        // Changes stored as patches on one machine are stored as patches on the other, where nothing has broken the order.
        let journal = two.journal(&chat()).await.unwrap();
        let patches = journal.iter().filter(|entry| matches!(entry.change, Change::Patch(_))).count();
        let broken = if matches!(first, First::Points) { TURNS } else { 3 };
        assert!(patches + broken >= TURNS, "{patches} of {TURNS}, {first:?}");
        // Nothing of it is sent again, and no fetched version is fetched again.
        two.flush().await.unwrap();
        node.traffic();
        for id in &ids {
            two.history(id).await.unwrap();
        }
        let (sent, answered) = node.traffic();
        let bytes: usize =
            histories[0].iter().map(|v| Value::Object(v.document.to_json()).to_string().len()).sum();
        assert!(sent == 0 && answered * 3 < bytes, "{sent} sent, {answered} answered, {bytes} in the chat");
        two.close().await.unwrap();
    }
    for (id, versions) in ids.iter().zip(&histories) {
        assert_eq!(shapes(&one.history(id).await.unwrap()), shapes(versions), "{id}");
    }
    one.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_machines_taking_turns_both_have_all_turns() {
    let node = Arc::new(Node::default());
    let port = Port::open(Arc::clone(&node)).await;
    let places = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let stores = [open(places[0].path(), &port).await, open(places[1].path(), &port).await];
    write(&*stores[0], vec![Write::put(Document::chat(&session()))]).await;
    stores[0].flush().await.unwrap();
    for n in 1..=30 {
        // Each takes three turns, and continues the turns of the other.
        let store = &stores[(n / 3) % 2];
        store.pull().await.unwrap();
        let there = document(&**store, &chat(), AsOf::default()).await.unwrap();
        assert_eq!(there.field("turn_count").and_then(Value::as_u64).unwrap_or(0), n as u64 - 1);
        write(&**store, vec![Write::patch(chat(), turn(n))]).await;
        store.flush().await.unwrap();
    }
    for store in &stores {
        let history = store.history(&chat()).await.unwrap();
        let counts: Vec<_> =
            history.iter().map(|v| v.document.field("turn_count").unwrap().clone()).collect();
        assert_eq!(counts, (0..=30).map(Value::from).collect::<Vec<_>>());
        assert_eq!(store.verify().await.unwrap(), []);
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_past_out_of_reach_and_does_not_deny_it() {
    let node = Arc::new(Node::default());
    let port = Port::open(Arc::clone(&node)).await;
    let places = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let one = open(places[0].path(), &port).await;
    let ids = worked(&*one).await;
    let histories = [one.history(&ids[0]).await.unwrap(), one.history(&ids[2]).await.unwrap()];
    let away = Port::open(Arc::clone(&node)).await;
    let two = open(places[1].path(), &away).await;
    two.get_many(&ids, AsOf::default()).await.unwrap();
    let own = file("/own", "mine");
    write(&*two, vec![dated(own.clone(), 1_000)]).await;
    away.set(Way::Away);

    let refused = |error: context_store::StoreError| {
        assert_eq!(error.code(), ErrorCode::StoreUnavailable);
        assert!(error.to_string().contains("may lack versions of"), "{error}");
    };
    for (id, versions) in [(&ids[0], &histories[0]), (&ids[2], &histories[1])] {
        refused(two.get(id, valid(versions[1].valid_time)).await.unwrap_err());
        refused(two.get(id, valid(Timestamp::from_millis(1))).await.unwrap_err());
        let then = AsOf { valid_time: None, known: Some(KnownAt::Time(Timestamp::from_millis(1))) };
        refused(two.get(id, then).await.unwrap_err());
        refused(two.history(id).await.unwrap_err());
        refused(two.history_part(id, None, 5).await.unwrap_err());
        refused(two.journal(id).await.unwrap_err());
        // The latest version is there, also by the moment from which it holds.
        let last = versions.last().unwrap();
        assert_eq!(document(&*two, id, AsOf::default()).await.unwrap(), last.document);
        assert_eq!(document(&*two, id, valid(last.valid_time)).await.unwrap(), last.document);
    }
    // This machine's own writes need no node.
    assert_eq!(document(&*two, own.id(), valid(Timestamp::from_millis(999))).await, None);
    assert_eq!(two.history(own.id()).await.unwrap().len(), 1);

    away.set(Way::Open);
    while !two.state().is_connected {
        two.flush().await.ok();
    }
    for (id, versions) in [(&ids[0], &histories[0]), (&ids[2], &histories[1])] {
        assert_eq!(shapes(&two.history(id).await.unwrap()), shapes(versions));
    }
    // Now the journal has all of it, also after a restart.
    two.flush().await.unwrap();
    two.close().await.unwrap();
    away.set(Way::Away);
    let two = open(places[1].path(), &away).await;
    for (id, versions) in [(&ids[0], &histories[0]), (&ids[2], &histories[1])] {
        assert_eq!(shapes(&two.history(id).await.unwrap()), shapes(versions));
        assert_eq!(document(&*two, id, valid(versions[1].valid_time)).await.unwrap(), versions[1].document);
        assert_eq!(document(&*two, id, valid(Timestamp::from_millis(1))).await, None);
    }
    two.close().await.unwrap();
    one.close().await.unwrap();
}

/// Versions of a file are named by their transactions, so a queue sends no two of them together.
#[tokio::test(flavor = "multi_thread")]
async fn each_version_of_a_file_has_its_own_transaction_on_the_node() {
    let node = Arc::new(Node::default());
    let machine = fleet::Machine::start(&node).await;
    machine.port.set(Way::Away);
    for n in 0..5 {
        machine.put("/x", &format!("v{n}")).await;
        machine.put(&format!("/other/{n}"), "other").await;
    }
    machine.port.set(Way::Open);
    let before = node.count();
    machine.store.flush().await.unwrap();
    assert!(node.count() - before < 10, "others still share one");
    let there = fleet::direct(&machine.port).await;
    let history = there.history(fleet::file("/x", "").id()).await.unwrap();
    assert_eq!(history.len(), 5);
    for (n, version) in history.iter().enumerate() {
        let found = there.version(fleet::file("/x", "").id(), version.tx_id).await.unwrap().unwrap();
        assert_eq!(found.document.content(), Some(&*format!("v{n}")), "{}", version.tx_id.0);
    }
}
