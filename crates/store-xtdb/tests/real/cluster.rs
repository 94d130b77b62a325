//! Two nodes on one PostgreSQL, and clients of each of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::rig::Node;
use crate::rig::objects::{file, latest, put, texts};
use crate::rig::postgres::Postgres;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::Patch;
use context_store::{AsOf, Store, StoreError, Transaction, Write};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};
use serde_json::json;

struct Cluster {
    one: Node,
    two: Node,
    _postgres: Postgres,
}

fn cluster() -> Option<Cluster> {
    let script = crate::rig::start_script("cluster", include_str!("cluster.rs"))?;
    match Postgres::start() {
        Ok(postgres) => {
            let (one, two) = std::thread::scope(|scope| {
                let start = || Node::start(&script, postgres.kind());
                let (one, two) = (scope.spawn(start), scope.spawn(start));
                (one.join().unwrap(), two.join().unwrap())
            });
            Some(Cluster { one, two, _postgres: postgres })
        }
        Err(why) => {
            crate::rig::not_run("cluster", &why);
            None
        }
    }
}

fn options(urls: [String; 2]) -> XtdbOptions {
    XtdbOptions { timeout_ms: 5_000, ..XtdbOptions::new(urls) }
}

async fn queued(place: &Path, urls: [String; 2]) -> Arc<QueuedStore> {
    let options = QueueOptions {
        read_timeout_ms: 3_000,
        pull_wait_ms: 3_000,
        close_timeout_ms: 60_000,
        ..QueueOptions::new(place.join("journal.db"), options(urls))
    };
    QueuedStore::open(options).await.unwrap()
}

/// Looks, turn after turn, until the other node has read the common log; it does so every 100 ms.
async fn see(store: &dyn Store, path: &str, text: &str) {
    let seen = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            store.pull().await.unwrap();
            if latest(store, path).await.as_deref() == Some(text) {
                break;
            }
        }
    });
    assert!(seen.await.is_ok(), "{text} was not seen; there is {:?}", latest(store, path).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_two_nodes_share_files_and_survive_one_of_them() {
    let Some(mut cluster) = cluster() else { return };
    let urls = [cluster.one.url(), cluster.two.url()];
    let swapped = [urls[1].clone(), urls[0].clone()];
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = queued(places[0].path(), urls.clone()).await;
    let two = queued(places[1].path(), swapped.clone()).await;
    assert_eq!([one.state().url, two.state().url], urls);
    put(&*one, file("/a", "1 by one")).await;
    one.flush().await.unwrap();
    see(&*two, "/a", "1 by one").await;
    put(&*two, file("/a", "2 by two")).await;
    two.flush().await.unwrap();
    see(&*one, "/a", "2 by two").await;

    cluster.one.kill();
    put(&*one, file("/a", "3 by one")).await;
    one.flush().await.unwrap();
    assert_eq!(one.state().url, urls[1]);
    see(&*two, "/a", "3 by one").await;
    put(&*two, file("/a", "4 by two")).await;
    two.flush().await.unwrap();
    see(&*one, "/a", "4 by two").await;

    // The node returns and catches up from the common log; the other one stops.
    cluster.one.restart();
    cluster.two.kill();
    put(&*two, file("/a", "5 by two")).await;
    two.flush().await.unwrap();
    see(&*one, "/a", "5 by two").await;
    let expected = ["1 by one", "2 by two", "3 by one", "4 by two", "5 by two"];
    let direct = XtdbStore::connect(options(urls)).await.unwrap();
    for store in [&one as &dyn AsStore, &two, &direct] {
        assert_eq!(texts(store.store(), "/a").await, expected);
    }
    for store in [one, two] {
        store.close().await.unwrap();
    }
}

trait AsStore {
    fn store(&self) -> &dyn Store;
}

impl<S: Store> AsStore for Arc<S> {
    fn store(&self) -> &dyn Store {
        &**self
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dying_node_under_many_writers_costs_no_version() {
    let Some(mut cluster) = cluster() else { return };
    let urls = [cluster.one.url(), cluster.two.url()];
    let session = SessionId::new("s").unwrap();
    let chat = ObjectId::chat(&session);
    let first = XtdbStore::connect(options(urls.clone())).await.unwrap();
    let writes = vec![Write::put(Document::chat(&session))];
    first.transact(Transaction { writes, expected: vec![] }).await.unwrap();
    let (half, mut halves) = tokio::sync::mpsc::channel(4);
    let tasks: Vec<_> = (0..4)
        .map(|writer| {
            let (urls, chat, half) = (urls.clone(), chat.clone(), half.clone());
            tokio::spawn(async move {
                let store = XtdbStore::connect(options(urls)).await.unwrap();
                for n in 0..20 {
                    let mut patch = Patch::new();
                    patch.append(&["turns"], json!(format!("{writer}/{n}")));
                    let own = Write::put(file(&format!("/{writer}"), &n.to_string()));
                    let transaction = Transaction {
                        writes: vec![Write::patch(chat.clone(), patch), own],
                        expected: vec![],
                    };
                    // Four writers of one document on a slow machine: a writer that loses too often is asked to repeat.
                    loop {
                        match store.transact(transaction.clone()).await {
                            Ok(_) => break,
                            Err(StoreError::Conflict(_)) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    if n == 8 {
                        half.send(()).await.unwrap();
                    }
                }
            })
        })
        .collect();
    // A writer that fails must not be waited for.
    drop(half);
    for _ in 0..4 {
        halves.recv().await.unwrap();
    }
    cluster.one.kill();
    for task in tasks {
        task.await.unwrap();
    }
    // All wrote the same document: no turn was lost, and none came twice.
    let document = first.get(&chat, AsOf::default()).await.unwrap().unwrap().document;
    let mut turns: Vec<String> = document
        .field("turns")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t.as_str().unwrap().to_owned())
        .collect();
    turns.sort();
    let mut expected: Vec<String> = (0..4).flat_map(|w| (0..20).map(move |n| format!("{w}/{n}"))).collect();
    expected.sort();
    assert_eq!(turns, expected);
    assert_eq!(first.history(&chat).await.unwrap().len(), 81);
    for writer in 0..4 {
        let expected: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        assert_eq!(texts(&*first, &format!("/{writer}")).await, expected);
    }
}
