//! The queued store on a database that is slow, far behind, or was written by another process of the same journal.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::rig::objects::{file, texts};
use crate::rig::proxy::Proxy;
use crate::rig::{Kind, Node, PATIENCE};
use context_model::error::ErrorCode;
use context_model::object::Document;
use context_store::{AsOf, Store, Transaction, Version, Write};
use context_store_sqlite::{Durability, SqliteStore};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};

fn node(kind: Kind) -> Option<Node> {
    let script = crate::rig::start_script("behind", include_str!("behind.rs"))?;
    Some(Node::start(&script, kind))
}

fn options(place: &Path, url: &str) -> QueueOptions {
    QueueOptions {
        close_timeout_ms: 60_000,
        ..QueueOptions::new(place.join("journal.db"), XtdbOptions::new([url]))
    }
}

async fn open(place: &Path, url: &str) -> Arc<QueuedStore> {
    QueuedStore::open(options(place, url)).await.unwrap()
}

async fn write(store: &dyn Store, documents: impl IntoIterator<Item = Document>) {
    let writes = documents.into_iter().map(Write::put).collect();
    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
}

/// Each answer takes longer than it takes to say that nothing is new; many more changes than fit into one time limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_node_is_caught_up_with_and_no_turn_waits_for_it() {
    const FILES: usize = 400;
    let Some(node) = node(Kind::Memory) else { return };
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let proxy = Proxy::start(node.port(), Duration::from_millis(20), 0).await;
    let one = open(places[0].path(), &proxy.url()).await;
    let two = open(places[1].path(), &node.url()).await;
    let all = |text: &str| (0..FILES).map(|n| file(&format!("/{n}"), text)).collect::<Vec<_>>();
    write(&*one, all("one")).await;
    one.flush().await.unwrap();
    let ids: Vec<_> = all("").iter().map(|document| document.id().clone()).collect();
    two.get_many(&ids, AsOf::default()).await.unwrap();
    write(&*two, all("two")).await;
    two.flush().await.unwrap();
    let new = |versions: &[Option<Version>]| {
        versions.iter().flatten().filter(|v| v.document.content() == Some("two")).count()
    };
    // Another process with the same journal opens before anything of it has come, and works on nothing yet.
    let beside = open(places[0].path(), &proxy.url()).await;
    let mut behind = 0;
    let mut turns = 0;
    let start = Instant::now();
    let mut waited = Duration::ZERO;
    loop {
        let turn = Instant::now();
        one.pull().await.unwrap();
        waited += turn.elapsed();
        turns += 1;
        behind = behind.max(one.state().behind);
        let new = new(&one.get_many(&ids, AsOf::default()).await.unwrap());
        if new == FILES {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{new} of {FILES}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    crate::rig::say(&format!(
        "{turns} turns waited {waited:?} of {:?}; {behind} behind at most",
        start.elapsed()
    ));
    assert!(behind > 100, "{behind}");
    // One turn waits its half of a second, and those after it not at all.
    assert!(waited < Duration::from_secs(3), "{waited:?} in {turns} turns");
    one.pull().await.unwrap();
    assert_eq!((one.state().behind, one.state().is_connected), (0, true));
    beside.pull().await.unwrap();
    for store in [&one, &beside] {
        assert_eq!(texts(&**store, "/7").await, ["one", "two"]);
    }
}

/// A process that ends in the middle does not begin anew.
#[tokio::test(flavor = "multi_thread")]
async fn how_far_it_got_is_kept() {
    let Some(node) = node(Kind::Memory) else { return };
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = open(places[0].path(), &node.url()).await;
    let two = open(places[1].path(), &node.url()).await;
    let all: Vec<_> = (0..600).map(|n| format!("/{n}")).collect();
    write(&*one, all.iter().map(|path| file(path, "one"))).await;
    one.flush().await.unwrap();
    one.close().await.unwrap();
    let ids: Vec<_> = all.iter().map(|path| file(path, "").id().clone()).collect();
    two.get_many(&ids, AsOf::default()).await.unwrap();
    write(&*two, all.iter().map(|path| file(path, "two"))).await;
    two.flush().await.unwrap();
    let seen = || {
        let text = std::fs::read_to_string(places[0].path().join("journal.db.progress")).unwrap();
        let progress: serde_json::Value = serde_json::from_str(&text).unwrap();
        let areas = progress["areas"].as_object().unwrap();
        let files = areas.iter().find(|(name, _)| name.starts_with("files:"));
        files.and_then(|(_, position)| position["tx"].as_u64()).unwrap_or(0)
    };
    let before = seen();
    let slow = Proxy::start(node.port(), Duration::from_millis(100), 0).await;
    let one = open(places[0].path(), &slow.url()).await;
    // A client that reads a file asks for others' changes in its namespace.
    let (reader, id) = (Arc::clone(&one), ids[0].clone());
    let reading = tokio::spawn(async move { reader.get(&id, AsOf::default()).await.map(drop) });
    let start = Instant::now();
    while seen() == before {
        assert!(start.elapsed() < PATIENCE, "nothing is noted: {:?}", one.state());
        one.pull().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Ended where it is: part of it is there, and noted.
    reading.abort();
    let _ended = reading.await;
    drop(one);
    let journal = SqliteStore::open(places[0].path().join("journal.db"), Durability::Power).unwrap();
    let versions = journal.get_many(&ids, AsOf::default()).await.unwrap();
    let new = versions.iter().flatten().filter(|v| v.document.content() == Some("two")).count();
    assert!(new > 0 && seen() > before, "{new}");
    journal.close().await.unwrap();
    let one = open(places[0].path(), &node.url()).await;
    let start = Instant::now();
    loop {
        one.pull().await.unwrap();
        let versions = one.get_many(&ids, AsOf::default()).await.unwrap();
        if versions.iter().flatten().all(|v| v.document.content() == Some("two")) {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "the rest does not come: {:?}", one.state());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(texts(&*one, "/599").await, ["one", "two"]);
}

/// Versions that share a millisecond come back neither after a restart nor to the other process of the same journal.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_doubled() {
    let Some(node) = node(Kind::Memory) else { return };
    let place = tempfile::tempdir().unwrap();
    let one = open(place.path(), &node.url()).await;
    let two = open(place.path(), &node.url()).await;
    let mut expected = Vec::new();
    for round in 0..5 {
        // One transaction, so one millisecond; the same content comes a second time in it.
        let texts = ["a", "b", "a", "c", "d"].map(|text| format!("{round}{text}"));
        let store = if round % 2 == 0 { &one } else { &two };
        write(&**store, texts.iter().map(|text| file("/a", text))).await;
        expected.extend(texts);
        store.pull().await.unwrap();
    }
    for store in [&one, &two] {
        store.flush().await.unwrap();
        store.pull().await.unwrap();
        assert_eq!(texts(&**store, "/a").await, expected);
    }
    let remote = XtdbStore::connect(XtdbOptions::new([node.url()])).await.unwrap();
    assert_eq!(texts(&*remote, "/a").await, expected);
    one.close().await.unwrap();
    two.close().await.unwrap();
    // Everything is looked at again, with and without knowing how far sending had got.
    for progress in [r#"{"sent":0,"seen":0}"#, "damaged"] {
        std::fs::write(place.path().join("journal.db.progress"), progress).unwrap();
        let one = open(place.path(), &node.url()).await;
        let two = open(place.path(), &node.url()).await;
        for store in [&one, &two] {
            store.pull().await.unwrap();
            assert_eq!(texts(&**store, "/a").await, expected);
        }
        write(&*two, [file("/other", progress)]).await;
        two.flush().await.unwrap();
        assert_eq!(texts(&*remote, "/a").await, expected);
        one.close().await.unwrap();
        two.close().await.unwrap();
    }
    // Versions that another machine wrote within one millisecond arrive unchanged, and no machine sends them back.
    let other = tempfile::tempdir().unwrap();
    let far = open(other.path(), &node.url()).await;
    assert_eq!(texts(&*far, "/a").await, expected);
    write(&*far, ["x", "y", "x"].map(|text| file("/a", text))).await;
    far.flush().await.unwrap();
    expected.extend(["x", "y", "x"].map(str::to_owned));
    for _ in 0..2 {
        let one = open(place.path(), &node.url()).await;
        one.pull().await.unwrap();
        assert_eq!(texts(&*one, "/a").await, expected);
        write(&*one, [file("/b", "b")]).await;
        one.flush().await.unwrap();
        one.close().await.unwrap();
        assert_eq!(texts(&*remote, "/a").await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_missing_journal() {
    let Some(node) = node(Kind::Memory) else { return };
    let place = tempfile::tempdir().unwrap();
    let journal = place.path().join("folder");
    let store = open(&journal, &node.url()).await;
    write(&*store, [file("/a", "1")]).await;
    store.flush().await.unwrap();
    for name in ["journal.db.lock", "journal.db.progress", "journal.db"] {
        let mode = std::fs::metadata(journal.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    std::fs::rename(&journal, place.path().join("away")).unwrap();
    let writes = vec![Write::put(file("/a", "2"))];
    let error = store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    std::fs::rename(place.path().join("away"), &journal).unwrap();
    write(&*store, [file("/a", "3")]).await;
    assert_eq!(texts(&*store, "/a").await, ["1", "3"]);
}

#[tokio::test]
#[ignore = "lasts 5 seconds: `npm run test:full`"]
async fn a_failed_first_open_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let url = format!("http://127.0.0.1:{}", crate::rig::free_port());
    for journal in [place.path().to_owned(), place.path().join("folder")] {
        let error = QueuedStore::open(options(&journal, &url)).await.err().unwrap();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}
