//! A text that the owner erases in XTDB is in no answer of a real node any more, whichever clients were away or killed
//! meanwhile; everything else is unchanged.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::planted::{
    SECRET, all, asked, documents_left, in_answers, in_files, plant, question, session, shapes, turn,
};
use crate::rig::objects::{queued, write};
use crate::rig::{Kind, Node};
use crate::secrets::file;
use context_model::error::ErrorCode;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::session::Sets;
use context_model::time::{Timestamp, TxId};
use context_store::sessions::Prune;
use context_store::{AsOf, Erase, OwnedStore, Search, Store, Version, Write};
use context_store_xtdb::{XtdbOptions, XtdbStore};
use serde_json::{Value, json};

/// Tells a process of this test which texts to erase, and where.
const CHILD: &str = "CONTEXT_ERASE_CHILD";

fn script() -> Option<PathBuf> {
    crate::rig::start_script("erase", include_str!("erase.rs"))
}

fn node(kind: Kind) -> Option<Node> {
    Some(Node::start(&script()?, kind))
}

async fn direct(node: &Node) -> Arc<XtdbStore> {
    connected(node.url()).await
}

/// A client that waits only briefly for one that was killed.
async fn connected(url: String) -> Arc<XtdbStore> {
    let mut options = XtdbOptions::new([url]);
    options.timeout_ms = 1_500;
    XtdbStore::connect(options).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_text_is_in_no_answer_and_the_rest_is_as_it_was() {
    let Some(script) = script() else { return };
    let place = tempfile::tempdir().unwrap();
    let mut node = Node::start_in(&script, Kind::RocksDb, place.path());
    let store = direct(&node).await;
    plant(&*store).await;
    let before = all(&*store).await;
    let ids: Vec<ObjectId> = before.iter().map(|(id, _)| id.clone()).collect();
    let found = in_answers(&node, &ids, SECRET).await;
    assert!(found > 10, "{found}");

    let count = store.erase(vec![Erase::Text(SECRET.into())], "a live key").await.unwrap();
    // Three texts in four versions; the call's arguments; and the chat from its twelfth turn on.
    assert_eq!((count.texts, count.versions), (3, 4 + 1 + 19));
    assert_eq!(in_answers(&node, &ids, SECRET).await, 0);
    assert_eq!(store.verify().await.unwrap(), []);
    let after = all(&*store).await;
    for ((id, now), (_, then)) in after.iter().zip(&before) {
        assert_eq!(now.len(), then.len(), "{id}");
        for (now, then) in now.iter().zip(then) {
            assert_eq!(
                (now.valid_time, now.document.source_hash()),
                (then.valid_time, then.document.source_hash())
            );
            let had = then.document.to_json().values().any(|value| value.to_string().contains(SECRET));
            assert_eq!(now.erased.as_ref().map(|mark| mark.why.as_str()), had.then_some("a live key"));
            if had {
                let text = Value::Object(now.document.to_json()).to_string();
                assert!(!text.contains(SECRET) && now.document.id() == then.document.id());
            } else {
                assert_eq!(now.document, then.document);
            }
        }
    }
    let versions = store.history(file("/versions", "").id()).await.unwrap();
    let contents: Vec<_> = versions.iter().map(|v| v.document.content()).collect();
    assert_eq!(contents, [Some("back"), Some("one"), None, Some("three"), Some("four"), None]);
    let chat = store.get(&ObjectId::chat(&session("s")), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(chat.document.field("turns").unwrap()[11]["user"], json!("the key is [erased], use it"));
    assert_eq!(chat.document.field("turns").unwrap()[12]["user"], json!(question(13)));
    // Most versions of the chat are still changes, and nothing of the work is left.
    let log = asked(&node, "tx-log?with-ops%3F=true").await;
    assert_eq!(documents_left(&log), 0);
    let changes = log.matches("context/patch").count();
    assert!(changes > 10, "{changes}");

    // A second erasure finds nothing and writes nothing but its notices; and the chat continues.
    assert_eq!(store.erase(vec![Erase::Text(SECRET.into())], "again").await.unwrap().versions, 0);
    write(&*store, vec![Write::patch(ObjectId::chat(&session("s")), turn(31, "and now?"))]).await;
    let other = direct(&node).await;
    let chat = other.history(&ObjectId::chat(&session("s"))).await.unwrap();
    assert_eq!(chat.len(), 32);

    // A node that builds its index anew from the log gives the same answers.
    let (last, newest) = (shapes(&all(&*store).await), store.latest_tx().await.unwrap());
    node.kill();
    let files = in_files(place.path(), SECRET);
    let kept = ["document-store", "tx-log", "index-store"]
        .map(|name| format!("{name}: {}", in_files(&place.path().join(name), SECRET)));
    let kept = kept.join(", ");
    println!("{files} files still have the text before RocksDB compacts ({kept})");
    std::fs::remove_dir_all(place.path().join("index-store")).unwrap();
    node.restart();
    let again = direct(&node).await;
    let start = Instant::now();
    while again.latest_tx().await.unwrap() < newest {
        assert!(start.elapsed() < crate::rig::PATIENCE, "the node does not show what it has");
    }
    assert!(shapes(&all(&*again).await) == last);
    assert_eq!(in_answers(&node, &ids, SECRET).await, 0);
    assert_eq!(again.verify().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_and_its_queue_are_also_erased() {
    let Some(mut node) = node(Kind::RocksDb) else { return };
    let place = tempfile::tempdir().unwrap();
    let store = queued(place.path(), &node).await;
    plant(&*store).await;
    store.flush().await.unwrap();
    // These wait in the queue while the node is away.
    node.kill();
    write(&*store, vec![Write::put(file("/waiting", &format!("waiting {SECRET}")))]).await;
    let chat = ObjectId::chat(&session("s"));
    write(&*store, vec![Write::patch(chat.clone(), turn(31, &format!("once more: {SECRET}")))]).await;
    let error = store.erase(vec![Erase::Text(SECRET.into())], "a live key").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(in_files(place.path(), SECRET) > 0);
    node.restart();
    let count = store.erase(vec![Erase::Text(SECRET.into())], "a live key").await.unwrap();
    // Those in XTDB; what waits may have been sent before or after.
    assert!(count.versions >= 24, "{count:?}");
    store.flush().await.unwrap();
    store.pull().await.unwrap();
    let before = shapes(&all(&*store).await);
    let ids: Vec<ObjectId> = before.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!((in_answers(&node, &ids, SECRET).await, in_files(place.path(), SECRET)), (0, 0));
    let remote = direct(&node).await;
    assert_eq!(remote.verify().await.unwrap(), []);
    let there = remote.get(&chat, AsOf::default()).await.unwrap().unwrap();
    assert_eq!(there.document.field("turn_count"), Some(&json!(31)));
    let waiting = remote.get(file("/waiting", "").id(), AsOf::default()).await.unwrap().unwrap();
    assert!(waiting.document.content().is_none() && waiting.erased.unwrap().why == "a live key");
    // Nothing comes twice, in either of them.
    for (id, versions) in all(&*remote).await {
        let here = store.history(&id).await.unwrap();
        let times = |versions: &[Version]| -> Vec<_> { versions.iter().map(|v| v.valid_time).collect() };
        assert_eq!(times(&here), times(&versions), "{id}");
    }
    store.close().await.unwrap();
    let store = queued(place.path(), &node).await;
    store.flush().await.unwrap();
    store.pull().await.unwrap();
    assert!(shapes(&all(&*store).await) == before);
    store.close().await.unwrap();
    assert_eq!((in_answers(&node, &ids, SECRET).await, in_files(place.path(), SECRET)), (0, 0));
}

/// Another machine has read the text, has it in its queue, and continues a chat that had it.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_was_away_does_not_restore_erased_text() {
    let Some(mut node) = node(Kind::RocksDb) else { return };
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = queued(places[0].path(), &node).await;
    let two = queued(places[1].path(), &node).await;
    plant(&*two).await;
    two.flush().await.unwrap();
    one.pull().await.unwrap();
    let chat = ObjectId::chat(&session("s"));
    assert!(one.get(&chat, AsOf::default()).await.unwrap().is_some());
    node.kill();
    write(&*two, vec![Write::put(file("/new", &format!("two {SECRET}")))]).await;
    write(&*two, vec![Write::patch(chat.clone(), turn(31, "while away"))]).await;
    two.close().await.unwrap();
    node.restart();
    let text = vec![Erase::Text(SECRET.into())];
    one.erase(text.clone(), "a live key").await.unwrap();
    let remote = direct(&node).await;
    let ids: Vec<ObjectId> = all(&*remote).await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(in_answers(&node, &ids, SECRET).await, 0);

    // It returns, sends what waits, and continues.
    let two = queued(places[1].path(), &node).await;
    two.flush().await.unwrap();
    write(&*two, vec![Write::patch(chat.clone(), turn(32, "and on"))]).await;
    two.flush().await.unwrap();
    two.pull().await.unwrap();
    let remote = direct(&node).await;
    let ids: Vec<ObjectId> = all(&*remote).await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(in_answers(&node, &ids, SECRET).await, 0);
    let there = remote.get(&chat, AsOf::default()).await.unwrap().unwrap();
    assert_eq!(there.document.field("turn_count"), Some(&json!(32)));
    assert_eq!(there.document.field("turns").unwrap()[11]["user"], json!("the key is [erased], use it"));
    let new = remote.get(file("/new", "").id(), AsOf::default()).await.unwrap().unwrap();
    assert!(new.document.content().is_none() && new.erased.is_some());
    assert_eq!(remote.verify().await.unwrap(), []);
    // Its own journal has the text until the same is erased there.
    assert!(in_files(places[1].path(), SECRET) > 0);
    two.erase(text, "here, too").await.unwrap();
    assert_eq!((in_files(places[1].path(), SECRET), in_files(places[0].path(), SECRET)), (0, 0));
    two.flush().await.unwrap();
    let versions = remote.history(&chat).await.unwrap();
    assert_eq!(versions.len(), 33);
    one.close().await.unwrap();
    two.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_erase_is_completed_by_the_next_one() {
    if let Ok(url) = std::env::var(CHILD) {
        let store = connected(url).await;
        store.erase(vec![Erase::Text(SECRET.into())], "a live key").await.unwrap();
        return;
    }
    let Some(script) = script() else { return };
    let (mut kills, mut halfway) = (0, 0);
    for after in (1..).step_by(3) {
        let node = Node::start(&script, Kind::Memory);
        let store = direct(&node).await;
        plant(&*store).await;
        let before = all(&*store).await;
        let start = store.latest_tx().await.unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "erase::a_killed_erase_is_completed_by_the_next_one"])
            .env(CHILD, node.url())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It is killed as soon as its n-th transaction is there.
        let begin = Instant::now();
        let ended = loop {
            assert!(begin.elapsed() < crate::rig::PATIENCE, "{after} transactions do not come");
            if store.latest_tx().await.unwrap() >= TxId(start.0 + after) {
                break None;
            }
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
        };
        let _ = child.kill();
        let _ = child.wait();
        assert!(ended.is_none_or(|status| status.success()));
        kills += usize::from(ended.is_none());
        let log = asked(&node, "tx-log?with-ops%3F=true").await;
        halfway += usize::from(documents_left(&log) > 0);
        let again = direct(&node).await;
        tokio::time::timeout(
            Duration::from_secs(60),
            again.erase(vec![Erase::Text(SECRET.into())], "a live key"),
        )
        .await
        .unwrap()
        .unwrap();
        let ids: Vec<ObjectId> = before.iter().map(|(id, _)| id.clone()).collect();
        assert_eq!(in_answers(&node, &ids, SECRET).await, 0, "killed after {after}");
        let log = asked(&node, "tx-log?with-ops%3F=true").await;
        assert_eq!(documents_left(&log), 0, "killed after {after}");
        let after_it = all(&*again).await;
        assert_eq!(after_it.len(), before.len());
        for ((id, now), (_, then)) in after_it.iter().zip(&before) {
            assert_eq!(now.len(), then.len(), "{id}, killed after {after}");
            for (now, then) in now.iter().zip(then) {
                assert_eq!(now.valid_time, then.valid_time);
                let had = then.document.to_json().values().any(|value| value.to_string().contains(SECRET));
                assert!(now.erased.is_some() == had && (had || now.document == then.document));
            }
        }
        assert_eq!(again.verify().await.unwrap(), []);
        // Others may write again.
        write(&*store, vec![Write::put(file("/after", "all"))]).await;
        if ended.is_some() {
            break;
        }
    }
    println!("{kills} kills, {halfway} of them between eviction and the end; 0 left");
    assert!(kills > 5 && halfway > 2, "{kills} kills, {halfway} halfway");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_sessions_leave_and_the_rest_is_as_it_was() {
    let Some(node) = node(Kind::RocksDb) else { return };
    let store = direct(&node).await;
    for name in ["alpha", "beta"] {
        let session = session(name);
        let own = file(&format!("/{name}"), &format!("only {name} has this"));
        let shared = file("/shared", &format!("shared by {name}"));
        let mut sets = Patch::new();
        sets.set(&["session_index"], json!([own.id(), shared.id()]));
        write(
            &*store,
            vec![
                Write::put(Document::chat(&session)),
                Write::put(Document::system_prompt(&session, &format!("<cwd>\n/home/{name}\n</cwd>"))),
                Write::put(Sets::default().document(&session)),
                Write::put(own),
                Write::put(shared),
            ],
        )
        .await;
        write(
            &*store,
            vec![
                Write::patch(ObjectId::session(&session), sets),
                Write::patch(ObjectId::chat(&session), turn(1, &format!("do {name}"))),
            ],
        )
        .await;
    }
    let before = all(&*store).await;
    let now = Timestamp::from_millis(
        i64::try_from(
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis(),
        )
        .unwrap(),
    );
    let of_alpha = Prune { project: Some("/home/alpha".into()), ..Prune::default() };
    // Nothing of the last day leaves.
    assert_eq!(store.prune(of_alpha.clone()).await.unwrap().sessions, []);
    let later = Timestamp::from_millis(now.millis() + 3 * 24 * 60 * 60 * 1_000);
    let would = store.prune_at(Prune { is_dry_run: true, ..of_alpha.clone() }, later).await.unwrap();
    assert_eq!(would.sessions.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["alpha"]);
    assert_eq!((would.objects, would.freed_bytes > 0, would.freed_bytes < would.used_bytes), (4, true, true));
    assert!(all(&*store).await == before);
    let left = store.prune_at(of_alpha.clone(), later).await.unwrap();
    assert_eq!((left.sessions, left.objects), (would.sessions, 4));
    let after = all(&*store).await;
    let stayed: Vec<_> =
        before.iter().filter(|(id, _)| after.iter().any(|(other, _)| other == id)).cloned().collect();
    assert_eq!((after.len(), before.len()), (stayed.len(), stayed.len() + 4));
    assert!(after == stayed);
    let ids: Vec<ObjectId> = before.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(in_answers(&node, &ids, "only alpha has this").await, 0);
    let query = Search { text: "only alpha".into(), limit: 9, object_type: None, within: None };
    assert_eq!(store.search(&query).await.unwrap(), []);
    assert_eq!(store.prune_at(of_alpha, later).await.unwrap().sessions, []);
    // It may come back.
    let own = file("/alpha", "only alpha has this");
    write(&*store, vec![Write::put(own.clone())]).await;
    assert_eq!(store.get(own.id(), AsOf::default()).await.unwrap().unwrap().document, own);
}
