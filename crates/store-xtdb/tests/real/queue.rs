//! The queued store on a real XTDB node.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::rig::objects::{file, file_in, latest, latest_of, options, put, queued, texts, write};
use crate::rig::{Kind, Node};
use context_model::error::ErrorCode;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::time::Timestamp;
use context_store::conformance::given::turn;
use context_store::conformance::run_all;
use context_store::{Filter, OwnedStore, Store, Write};
use context_store_xtdb::{QueuedStore, XtdbOptions, XtdbStore};
use serde_json::{Value, json};

fn node(kind: Kind) -> Option<Node> {
    let script = crate::rig::start_script("queue", include_str!("queue.rs"))?;
    Some(Node::start(&script, kind))
}

async fn direct(node: &Node) -> Arc<XtdbStore> {
    XtdbStore::connect(XtdbOptions::new([node.url()])).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance_with_everything_sent() {
    let Some(node) = node(Kind::Memory) else { return };
    let places = tempfile::tempdir().unwrap();
    let mut n = 0;
    let factory = || {
        n += 1;
        let place = places.path().join(n.to_string());
        let node = &node;
        async move {
            std::fs::create_dir(&place).unwrap();
            queued(&place, node).await as Arc<dyn OwnedStore>
        }
    };
    run_all(factory, |name| crate::rig::say(&format!("queue: {name}"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journals_writes_arrive_in_order_and_once() {
    let Some(node) = node(Kind::Memory) else { return };
    let place = tempfile::tempdir().unwrap();
    let store = queued(place.path(), &node).await;
    let session = SessionId::new("s").unwrap();
    let chat = ObjectId::chat(&session);
    put(&*store, Document::chat(&session)).await;
    for n in 1..=40 {
        write(
            &*store,
            vec![
                Write::put(file("/a", &n.to_string())),
                Write::patch(chat.clone(), turn(n)),
                Write::put(file(&format!("/only/{n}"), "x")),
            ],
        )
        .await;
    }
    // One object twice in a transaction, and one dated back.
    write(&*store, vec![Write::put(file("/b", "1")), Write::put(file("/b", "2"))]).await;
    let back = Write::Put { document: file("/a", "back"), valid_time: Some(Timestamp::from_millis(1_000)) };
    write(&*store, vec![back]).await;
    store.flush().await.unwrap();
    assert_eq!((store.state().queued, store.state().is_connected), (0, true));
    let remote = direct(&node).await;
    let mut expected: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
    expected.insert(0, "back".into());
    assert_eq!(texts(&*remote, "/a").await, expected);
    assert_eq!(latest(&*remote, "/a").await.unwrap(), "40");
    assert_eq!(texts(&*remote, "/b").await, ["1", "2"]);
    assert_eq!(remote.history(&chat).await.unwrap().len(), 41);
    // The same versions with the same valid times on both sides.
    for id in store.query(&Filter::default()).await.unwrap() {
        let all = |versions: Vec<context_store::Version>| -> Vec<_> {
            versions.into_iter().map(|v| (v.document, v.valid_time)).collect()
        };
        assert_eq!(all(store.history(&id).await.unwrap()), all(remote.history(&id).await.unwrap()));
    }
    // Far fewer transactions than versions.
    let count = remote.latest_tx().await.unwrap().0;
    assert!(count < 60, "{count} transactions for 122 versions");
    store.close().await.unwrap();
    let again = queued(place.path(), &node).await;
    again.flush().await.unwrap();
    assert_eq!(remote.latest_tx().await.unwrap().0, count);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_node_stops_no_client_and_loses_nothing() {
    let Some(mut node) = node(Kind::RocksDb) else { return };
    let place = tempfile::tempdir().unwrap();
    let store = queued(place.path(), &node).await;
    put(&*store, file("/a", "0")).await;
    store.flush().await.unwrap();
    node.kill();
    for n in 1..=30 {
        put(&*store, file("/a", &n.to_string())).await;
        assert_eq!(latest(&*store, "/a").await.unwrap(), n.to_string());
        store.pull().await.unwrap();
    }
    let state = store.state();
    assert_eq!((state.is_connected, state.queued), (false, 30));
    let first = store.history(file("/a", "").id()).await.unwrap()[1].tx_time;
    assert_eq!(state.waiting_since, Some(first));
    assert!(state.last_error.unwrap().contains(&node.url()));
    // The process ends and starts again while the node is still away.
    drop(store);
    let store = queued(place.path(), &node).await;
    put(&*store, file("/a", "31")).await;
    assert_eq!((store.state().queued, store.state().waiting_since), (31, Some(first)));
    node.restart();
    store.flush().await.unwrap();
    let expected: Vec<String> = (0..=31).map(|n| n.to_string()).collect();
    assert_eq!(texts(&*direct(&node).await, "/a").await, expected);
    assert_eq!((store.state().last_error, store.state().waiting_since), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_is_bounded_and_the_next_open_sends_the_rest() {
    let Some(node) = node(Kind::Memory) else { return };
    let place = tempfile::tempdir().unwrap();
    let mut options = options(place.path(), &[node.url()]);
    options.close_timeout_ms = 300;
    let store = QueuedStore::open(options).await.unwrap();
    node.freeze(true);
    put(&*store, file("/a", "x")).await;
    let error = store.flush().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.to_string().contains("1 transactions wait"), "{error}");
    store.close().await.unwrap();
    assert_eq!(store.state().queued, 1);
    assert_eq!(store.latest_tx().await.unwrap_err().code(), ErrorCode::Closed);
    node.freeze(false);
    let store = queued(place.path(), &node).await;
    store.flush().await.unwrap();
    assert_eq!(latest(&*direct(&node).await, "/a").await.unwrap(), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_see_each_other_at_the_next_look() {
    let Some(node) = node(Kind::Memory) else { return };
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = queued(places[0].path(), &node).await;
    let two = queued(places[1].path(), &node).await;
    put(&*one, file("/a", "one")).await;
    one.flush().await.unwrap();
    // Met on demand.
    assert_eq!(latest(&*two, "/a").await.unwrap(), "one");
    put(&*two, file("/a", "two")).await;
    two.flush().await.unwrap();
    // Known already, so seen at the next look.
    one.pull().await.unwrap();
    let before = one.latest_tx().await.unwrap();
    assert_eq!(latest(&*one, "/a").await.unwrap(), "two");
    put(&*two, file("/a", "three")).await;
    two.flush().await.unwrap();
    one.pull().await.unwrap();
    assert!(one.changes_since(before).await.unwrap().contains_key(file("/a", "").id()));
    assert_eq!(latest(&*one, "/a").await.unwrap(), "three");
    // Nothing went back and forth: three versions everywhere.
    for store in [&one, &two] {
        store.flush().await.unwrap();
        assert_eq!(texts(&**store, "/a").await, ["one", "two", "three"]);
    }
    assert_eq!(texts(&*direct(&node).await, "/a").await, ["one", "two", "three"]);
    // Both noticed the same change of the file while the node was away: one version.
    node.freeze(true);
    put(&*one, file("/a", "four")).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    put(&*two, file("/a", "four")).await;
    node.freeze(false);
    for store in [&one, &two] {
        store.flush().await.unwrap();
    }
    assert_eq!(texts(&*direct(&node).await, "/a").await, ["one", "two", "three", "four"]);
    // A query finds objects that only the other machine has.
    put(&*two, file("/b", "b")).await;
    two.flush().await.unwrap();
    let found = one.query(&Filter { path_prefix: Some("/b".into()), ..Filter::default() }).await.unwrap();
    assert_eq!(found, [file("/b", "").id().clone()]);
}

/// XTDB on RocksDB answers the question for a history from a time on with nothing, for the ID with the greatest hash.
#[tokio::test(flavor = "multi_thread")]
async fn the_area_with_the_greatest_hash_is_heard_of() {
    let Some(node) = node(Kind::RocksDb) else { return };
    let ops: Vec<_> = (0..2_000).map(|n| json!(["put", { "xt/id": format!("changes:files:{n}") }])).collect();
    let (json, url) = (("accept", "application/json"), format!("{}/_xtdb", node.url()));
    let headers = [json, ("content-type", "application/json")];
    let body = json!({ "tx-ops": ops }).to_string();
    assert_eq!(crate::ask::ask(&format!("{url}/submit-tx"), &headers, Some(body)).await.0, 202);
    let remote = direct(&node).await;
    let start = Instant::now();
    while remote.latest_tx().await.unwrap().0 == 0 {
        assert!(start.elapsed() < crate::rig::PATIENCE, "the node does not show what it has");
    }
    let log = crate::ask::ask(&format!("{url}/tx-log"), &[json], None).await.1;
    let log: Value = serde_json::from_str(&log).unwrap();
    let events = log[0]["txEvents"].as_array().unwrap().iter().enumerate();
    let (n, _) = events.max_by_key(|(_, event)| event[1].as_str().unwrap()).unwrap();
    let document = |text: &str| file_in(&n.to_string(), "/a", Some(text));

    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = queued(places[0].path(), &node).await;
    let two = queued(places[1].path(), &node).await;
    put(&*one, document("none")).await;
    one.flush().await.unwrap();
    for text in ["one", "two", "three"] {
        put(&*two, document(text)).await;
        two.flush().await.unwrap();
        one.pull().await.unwrap();
        assert_eq!(latest_of(&*one, &document("")).await.as_deref(), Some(text));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_report_again_what_another_machine_reported_sooner() {
    let Some(node) = node(Kind::Memory) else { return };
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = queued(places[0].path(), &node).await;
    put(&*one, file("/a", "old")).await;
    one.close().await.unwrap();
    // Without the network: it notices a change of the file, and another one.
    let nowhere = format!("http://127.0.0.1:{}", crate::rig::free_port());
    let mut away = options(places[0].path(), &[nowhere]);
    away.close_timeout_ms = 1;
    let one = QueuedStore::open(away).await.unwrap();
    put(&*one, file("/a", "between")).await;
    put(&*one, file("/a", "new")).await;
    one.close().await.unwrap();
    let two = queued(places[1].path(), &node).await;
    put(&*two, file("/a", "new")).await;
    two.close().await.unwrap();
    let one = queued(places[0].path(), &node).await;
    one.flush().await.unwrap();
    let remote = direct(&node).await;
    let mut texts = texts(&*remote, "/a").await;
    texts.sort();
    assert_eq!(texts, ["between", "new", "old"]);
    assert_eq!(latest(&*remote, "/a").await.unwrap(), "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_a_slow_clock_can_replace_the_version_of_a_fast_one() {
    let Some(node) = node(Kind::Memory) else { return };
    let remote = direct(&node).await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let ahead = Some(Timestamp::from_millis(i64::try_from(now).unwrap() + 3_600_000));
    write(&*remote, vec![Write::Put { document: file("/a", "fast"), valid_time: ahead }]).await;
    let place = tempfile::tempdir().unwrap();
    let store = queued(place.path(), &node).await;
    assert_eq!(latest(&*store, "/a").await.unwrap(), "fast");
    put(&*store, file("/a", "slow")).await;
    assert_eq!(latest(&*store, "/a").await.unwrap(), "slow");
    store.flush().await.unwrap();
    assert_eq!(latest(&*remote, "/a").await.unwrap(), "slow");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_node_costs_a_reader_one_time_limit() {
    let Some(node) = node(Kind::Memory) else { return };
    let place = tempfile::tempdir().unwrap();
    let store = queued(place.path(), &node).await;
    put(&*store, file("/a", "0")).await;
    store.flush().await.unwrap();
    node.freeze(true);
    let start = Instant::now();
    for n in 1..=50 {
        store.pull().await.unwrap();
        put(&*store, file("/a", &n.to_string())).await;
        assert_eq!(latest(&*store, &format!("/unknown/{n}")).await, None);
    }
    // 150 calls, and a limit of a second: without the rule it would be 100 seconds.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    node.freeze(false);
    store.flush().await.unwrap();
    let expected: Vec<String> = (0..=50).map(|n| n.to_string()).collect();
    assert_eq!(texts(&*direct(&node).await, "/a").await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_on_one_journal_send_each_version_once() {
    let Some(node) = node(Kind::Memory) else { return };
    let place = tempfile::tempdir().unwrap();
    let one = queued(place.path(), &node).await;
    let two = queued(place.path(), &node).await;
    for n in 0..20 {
        put(&*one, file("/one", &n.to_string())).await;
        put(&*two, file("/two", &n.to_string())).await;
    }
    one.flush().await.unwrap();
    two.flush().await.unwrap();
    assert_eq!([one.state().is_sender, two.state().is_sender], [true, false]);
    let remote = direct(&node).await;
    let expected: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    assert_eq!(texts(&*remote, "/one").await, expected);
    assert_eq!(texts(&*remote, "/two").await, expected);
    // The other one takes over.
    one.close().await.unwrap();
    put(&*two, file("/two", "last")).await;
    two.flush().await.unwrap();
    assert_eq!(latest(&*remote, "/two").await.unwrap(), "last");
}

#[tokio::test]
async fn reports_a_url_that_never_worked_at_once() {
    let place = tempfile::tempdir().unwrap();
    let url = format!("http://127.0.0.1:{}", crate::rig::free_port());
    let error = QueuedStore::open(options(place.path(), std::slice::from_ref(&url))).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.to_string().contains(&url), "{error}");
}
