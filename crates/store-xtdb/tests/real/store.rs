//! The store on a real XTDB node.

use std::io::Cursor;
use std::sync::Arc;

use crate::ask::ask;
use crate::rig::objects::file;
use crate::rig::{Kind, Node};
use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType};
use context_model::patch::Patch;
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use context_store::conformance::run_all;
use context_store::memory::MemoryStore;
use context_store::transfer::{all_objects, export, import};
use context_store::{AsOf, Filter, OwnedStore, Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};
use context_store_xtdb::{XtdbOptions, XtdbStore};
use serde_json::{Value, json};

fn node() -> Option<Node> {
    let script = crate::rig::start_script("store", include_str!("store.rs"))?;
    Some(Node::start(&script, Kind::Memory))
}

async fn open(node: &Node) -> Arc<XtdbStore> {
    XtdbStore::connect(XtdbOptions::new([node.url()])).await.unwrap()
}

fn puts(documents: impl IntoIterator<Item = Document>) -> Transaction {
    Transaction { writes: documents.into_iter().map(Write::put).collect(), expected: Vec::new() }
}

fn odd(id: &str, value: Value) -> Document {
    let Value::Object(payload) = value else { panic!("an object") };
    Document::new(ObjectId::new(id), ObjectType::Toolcall, None, payload).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_neither_lose_nor_repeat_a_version() {
    let Some(node) = node() else { return };
    let (one, two) = (open(&node).await, open(&node).await);
    let id = file("/a", "").id().clone();
    // Both saw the same change: one version.
    for round in 0..10 {
        let text = format!("text {round}");
        let (a, b) =
            tokio::join!(one.transact(puts([file("/a", &text)])), two.transact(puts([file("/a", &text)])));
        let written = [a.unwrap().written[0], b.unwrap().written[0]];
        assert_eq!(written.iter().filter(|w| **w).count(), 1, "round {round}: {written:?}");
    }
    assert_eq!(one.history(&id).await.unwrap().len(), 10);
    // Patches of both: each is there, whatever the order.
    let session = SessionId::new("s").unwrap();
    one.transact(puts([Document::chat(&session)])).await.unwrap();
    let chat = ObjectId::chat(&session);
    let append = |store: Arc<XtdbStore>, name: String| {
        let chat = chat.clone();
        async move {
            let mut patch = Patch::new();
            patch.append(&["turns"], json!(name));
            let writes = vec![Write::patch(chat, patch)];
            store.transact(Transaction { writes, expected: vec![] }).await.unwrap();
        }
    };
    for round in 0..10 {
        let (a, b) =
            (append(Arc::clone(&one), format!("a{round}")), append(Arc::clone(&two), format!("b{round}")));
        tokio::join!(a, b);
    }
    let turns = two.get(&chat, AsOf::default()).await.unwrap().unwrap();
    assert_eq!(turns.document.field("turns").unwrap().as_array().unwrap().len(), 20);
    assert_eq!(one.history(&chat).await.unwrap().len(), 21);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_back_as_they_were_hashed() {
    let Some(node) = node() else { return };
    let store = open(&node).await;
    let long = "ä\u{1F600}\n".repeat(300_000);
    let documents = [
        odd(
            "numbers",
            json!({"content": "", "args": {"a": 1.0, "b": 1e21, "c": -0.0, "d": 0.1, "e": u64::MAX,
            "f": i64::MIN, "g": 5e-324, "h": 1.797_693_134_862_315_7e308, "i": 123_456_789.123_456_79, "j": 2.5e-7}}),
        ),
        odd(
            "keys",
            json!({"content": "x", "a/b": 1, "a b": 2, "ключ": {"": null, "/x": [], "x/": {}, ":c": 1, "a/b/c": 2}}),
        ),
        odd(
            "texts",
            json!({"content": "\u{0}\u{1}\u{7f}\u{2028}\\\"</script>", "args": {"\u{1F600}": ["", null]}}),
        ),
        odd("päth/ü \"q\" \\ :a", json!({"content": null})),
        odd("null", json!({"content": null, "status": null})),
        file(&format!("/{}", "long/".repeat(200)), "deep"),
        file("/big", &long),
    ];
    store.transact(puts(documents.clone())).await.unwrap();
    let other = open(&node).await;
    let ids: Vec<ObjectId> = documents.iter().map(|d| d.id().clone()).collect();
    let many = other.get_many(&ids, AsOf::default()).await.unwrap();
    for (document, read) in documents.iter().zip(many) {
        assert_eq!(&read.unwrap().document, document);
        assert_eq!(&other.get(document.id(), AsOf::default()).await.unwrap().unwrap().document, document);
        assert_eq!(&other.history(document.id()).await.unwrap()[0].document, document);
    }
    let outlines = other.outlines(&ids).await.unwrap();
    for (document, outline) in documents.iter().zip(outlines) {
        let outline = outline.unwrap();
        let mut payload = document.payload().clone();
        payload.remove("content");
        assert_eq!(outline.payload, payload, "{}", document.id());
        assert_eq!(outline.is_null, document.content().is_none());
        assert_eq!(outline.source.as_ref(), document.source());
    }
    let query =
        Filter { path_prefix: Some("/long".into()), filesystem_id: Some("f".into()), ..Filter::default() };
    assert_eq!(other.query(&query).await.unwrap(), [ids[5].clone()]);
    // A second client replaces the document of the first one: its match has the same classes of numbers.
    let mut patch = Patch::new();
    patch.put(&["content"], json!("new"));
    for id in &ids[..5] {
        let writes = vec![Write::patch(id.clone(), patch.clone())];
        let tx = other.get(id, AsOf::default()).await.unwrap().unwrap().tx_id;
        let expected = vec![(id.clone(), Some(tx))];
        other.transact(Transaction { writes, expected }).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_other_clients_can_also_be_replaced() {
    let Some(node) = node() else { return };
    let store = open(&node).await;
    let document = odd("foreign", json!({"content": "by another client", "count": 7}));
    // In EDN, numbers are of another class than in JSON, and a match in JSON can never hold.
    let mut edn = String::from("{");
    for (name, value) in document.to_json() {
        let text = if value.is_null() { "nil".to_owned() } else { value.to_string() };
        edn.push_str(&format!(":{name} {text} "));
    }
    let body = format!("{{:tx-ops [[:xtdb.api/put {edn}}}]]}}");
    let edn = [("content-type", "application/edn")];
    assert_eq!(ask(&format!("{}/_xtdb/submit-tx", node.url()), &edn, Some(body)).await.0, 202);
    ask(&format!("{}/_xtdb/sync", node.url()), &[], None).await;
    assert_eq!(store.get(document.id(), AsOf::default()).await.unwrap().unwrap().document, document);
    assert_eq!(store.changes_since(TxId(0)).await.unwrap().len(), 1);
    let receipt =
        store.transact(puts([odd("foreign", json!({"content": "ours", "count": 7}))])).await.unwrap();
    assert_eq!(receipt.written, [true]);
    assert_eq!(store.history(document.id()).await.unwrap().len(), 2);
    // And they read ours: the document as it stands, with xt/id.
    let source = Source::file("f", "/x");
    let ours = file("/x", "text");
    store.transact(puts([ours.clone()])).await.unwrap();
    let url = format!("{}/_xtdb/entity?eid={}", node.url(), ours.id());
    let (_, read) = ask(&url, &[("accept", "application/json")], None).await;
    let read: Value = serde_json::from_str(&read).unwrap();
    assert_eq!(
        read,
        json!({
            "xt/id": ours.id(), "type": "file", "source": source, "identity_hash": ours.identity_hash(),
            "content": "text", "char_count": 4, "file_type": "text",
            "source_hash": Digest::of(b"text"), "content_hash": ours.content_hash(),
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_expectation_is_a_conflict() {
    let Some(node) = node() else { return };
    let (one, two) = (open(&node).await, open(&node).await);
    let id = file("/a", "").id().clone();
    let first = one.transact(puts([file("/a", "1")])).await.unwrap().tx_id;
    let second = two.transact(puts([file("/a", "2")])).await.unwrap().tx_id;
    let with = |text: &str, tx| Transaction {
        writes: vec![Write::put(file("/a", text)), Write::put(file("/other", text))],
        expected: vec![(id.clone(), tx)],
    };
    for wrong in [None, Some(first), Some(TxId(77))] {
        let error = one.transact(with("3", wrong)).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Conflict);
    }
    assert_eq!(one.get(file("/other", "").id(), AsOf::default()).await.unwrap(), None);
    one.transact(with("3", Some(second))).await.unwrap();
    // Races for the same place: one winner each.
    for round in 0..10 {
        let tx = one.get(&id, AsOf::default()).await.unwrap().unwrap().tx_id;
        let (a, b) = tokio::join!(
            one.transact(with(&format!("a{round}"), Some(tx))),
            two.transact(with(&format!("b{round}"), Some(tx)))
        );
        assert_eq!([&a, &b].iter().filter(|r| r.is_ok()).count(), 1);
        let loser = a.err().or(b.err()).unwrap();
        assert_eq!(loser.code(), ErrorCode::Conflict);
    }
}

/// The suite that every backend passes, on one node that all checks share.
#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    let Some(node) = node() else { return };
    let factory = || async { open(&node).await as Arc<dyn OwnedStore> };
    run_all(factory, |name| crate::rig::say(&format!("xtdb: {name}"))).await;
}

/// A store that moves from SQLite to XTDB and on into memory is the same one.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_moves_to_xtdb_and_back() {
    let Some(node) = node() else { return };
    let place = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(place.path().join("a.db"), Durability::Process).unwrap();
    let session = SessionId::new("s").unwrap();
    let at = |text: &str, millis| Write::Put {
        document: file("/a", text),
        valid_time: Some(Timestamp::from_millis(millis)),
    };
    let writes = vec![Write::put(Document::chat(&session)), at("1", 1_000), at("2", 2_000), at("1.5", 1_500)];
    sqlite.transact(Transaction { writes, expected: vec![] }).await.unwrap();
    for n in 1..=20 {
        let mut patch = Patch::new();
        patch.append(&["turns"], json!({ "user": n, "weight": 0.1 }));
        patch.set(&["turn_count"], json!(n));
        let writes =
            vec![Write::patch(ObjectId::chat(&session), patch), Write::put(file("/b", &n.to_string()))];
        sqlite.transact(Transaction { writes, expected: vec![] }).await.unwrap();
    }
    let s3 = Source::from_value(json!({ "type": "s3", "bucket": "b", "key": "k" })).unwrap();
    let id = ObjectId::sourced(context_model::hash::identity_hash(ObjectType::File, Some(&s3)));
    let s3 = Document::new(id, ObjectType::File, Some(s3), serde_json::Map::new()).unwrap();
    sqlite.transact(puts([s3])).await.unwrap();

    let xtdb = open(&node).await;
    let memory = MemoryStore::new();
    let ids = all_objects(&*sqlite).await.unwrap();
    let mut there = Vec::new();
    export(&*sqlite, &ids, &mut there).await.unwrap();
    for written in [45, 0] {
        assert_eq!(import(&mut Cursor::new(&there), &*xtdb).await.unwrap().written, written);
    }
    let mut back = Vec::new();
    assert_eq!(all_objects(&*xtdb).await.unwrap(), ids);
    export(&*xtdb, &ids, &mut back).await.unwrap();
    import(&mut Cursor::new(&back), &*memory).await.unwrap();
    for id in &ids {
        let versions = |versions: Vec<context_store::Version>| -> Vec<(Document, Timestamp)> {
            versions.into_iter().map(|v| (v.document, v.valid_time)).collect()
        };
        let expected = versions(sqlite.history(id).await.unwrap());
        assert_eq!(versions(xtdb.history(id).await.unwrap()), expected);
        assert_eq!(versions(memory.history(id).await.unwrap()), expected);
    }
}
