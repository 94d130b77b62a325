//! Expensive searches, and searches that do not delay other work.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use context_store::conformance::given::{file, put};
use context_store::memory::MemoryStore;
use context_store::{AsOf, Hit, Search, Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};

async fn search(store: &dyn Store, text: &str) -> Vec<Hit> {
    store.search(&Search { text: text.into(), limit: 10, object_type: None, within: None }).await.unwrap()
}

/// The lines of a log: much that is in each of them, and a little that is not.
fn log(file: usize, lines: usize) -> Vec<String> {
    (0..lines)
        .map(|n| {
            let id = (file * 7_919 + n) * 2_654_435_761 % 4_294_967_296;
            format!(
                "2026-01-31T12:{:02}:{:02}.{:03}Z INFO server.http request_id={id:08x} GET /api/v1/items/{n} status=200 \
                 took={}ms user=user{} \"Mozilla/5.0 (X11; Linux x86_64)\"",
                n / 60 % 60,
                n % 60,
                n * 37 % 1_000,
                n % 250,
                n % 40,
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pasted_passage_is_found() {
    let place = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(place.path().join("store.db"), Durability::Process).unwrap();
    let memory = MemoryStore::new();
    for n in 0..12 {
        let text = log(n, 1_000).join("\n");
        put(&*sqlite, file(&format!("/{n}.log"), &text)).await;
        put(&*memory, file(&format!("/{n}.log"), &text)).await;
    }
    let passage = log(7, 1_000)[300..340].join("\n");
    for store in [&*sqlite as &dyn Store, &*memory] {
        let start = Instant::now();
        let hits = search(store, &passage).await;
        let ids: Vec<_> = hits.iter().map(|hit| hit.id.clone()).collect();
        assert_eq!(ids, [file("/7.log", "").id().clone()]);
        assert!((1..=340).contains(&hits[0].line), "{}", hits[0].line);
        // It took a minute: each phrase was looked for in each text by itself.
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
    // A line without any space is one phrase.
    let long = format!("{{{}}}", (0..5_000).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(","));
    put(&*sqlite, file("/long", &long)).await;
    assert_eq!(search(&*sqlite, &long).await.len(), 1);
}

/// Another process that writes, and continues to write.
struct Lock(rusqlite::Connection);

impl Lock {
    fn take(path: &Path) -> Self {
        let other = rusqlite::Connection::open(path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(other)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_read_waits_for_a_waiting_write() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let store = SqliteStore::open(&path, Durability::Power).unwrap();
    put(&*store, file("/old", "indexed long ago")).await;
    store.flush().await.unwrap();
    put(&*store, file("/old", "another crocodile")).await;
    put(&*store, file("/new", "a separate crocodile")).await;
    put(&*store, file("/back", "indexed long ago")).await;
    let lock = Lock::take(&path);
    let writer = Arc::clone(&store);
    let write = tokio::spawn(async move { put(&*writer, file("/late", "x")).await });
    let start = Instant::now();
    let id = file("/old", "").id().clone();
    let latest = store.get(&id, AsOf::default()).await.unwrap().unwrap();
    assert_eq!(latest.document.content(), Some("another crocodile"));
    assert_eq!(store.history(&id).await.unwrap().len(), 2);
    assert_eq!(store.latest_tx().await.unwrap().0, 4);
    assert_eq!(store.outlines(std::slice::from_ref(&id)).await.unwrap().len(), 1);
    assert_eq!(store.note("x").await.unwrap(), None);
    // The search also finds texts that the index can't take in now: new texts, and new places of old ones.
    let mut found: Vec<_> = search(&*store, "crocodile").await.into_iter().map(|hit| hit.id).collect();
    found.sort();
    let mut expected = vec![id.clone(), file("/new", "").id().clone()];
    expected.sort();
    assert_eq!(found, expected);
    let mut found: Vec<_> = search(&*store, "long ago").await.into_iter().map(|hit| hit.id).collect();
    found.sort();
    let mut expected = vec![id, file("/back", "").id().clone()];
    expected.sort();
    assert_eq!(found, expected);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(!write.is_finished());
    lock.0.execute_batch("ROLLBACK").unwrap();
    write.await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_reads_on_a_full_disk() {
    let small = tempfile::tempdir().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
        .arg(small.path())
        .output()
        .is_ok_and(|done| done.status.success());
    if !mounted {
        return;
    }
    let store = SqliteStore::open(small.path().join("store.db"), Durability::Power).unwrap();
    put(&*store, file("/old", "a crocodile")).await;
    store.flush().await.unwrap();
    // Without a text, so that the index has nothing to free.
    for n in 0_u64.. {
        let mut text = format!("crocodile {n} ");
        text.extend((0..4_000_u64).map(|word| format!("w{:x} ", (n * 4_000 + word) * 48_271)));
        let writes = vec![Write::put(file(&format!("/{n}"), &text))];
        if store.transact(Transaction { writes, expected: Vec::new() }).await.is_err() {
            break;
        }
    }
    assert!(fs::write(small.path().join("ballast"), vec![0; 4 << 20]).is_err());
    assert_eq!(search(&*store, "crocodile").await.len(), 10);
    store.close().await.unwrap();
    assert!(std::process::Command::new("umount").arg("-l").arg(small.path()).status().unwrap().success());
}
