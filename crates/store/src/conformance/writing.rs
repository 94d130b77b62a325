//! Checks of writing.

use std::sync::Arc;

use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::patch::{self, Patch};
use context_model::source::{FilesystemSource, Source};
use serde_json::{Map, Value, json};

use super::given::{
    contents, file_in, known, latest, prompt, put, put_at, refused, session, toolcall, turn, unique, write,
};
use crate::{AsOf, Store, Transaction, Write};

pub(super) async fn a_document_comes_back_as_it_was_written(store: Arc<dyn Store>) {
    let document = prompt(&session(), "You are an agent.\n\u{1F600} \u{0} \u{2028} é");
    let receipt = put(&*store, document.clone()).await;
    let version = store.get(document.id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(version.document, document);
    assert_eq!((version.tx_id, version.tx_time), (receipt.tx_id, receipt.tx_time));
    assert_eq!(version.valid_time, receipt.tx_time);
    assert_eq!(receipt.written, [true]);
}

pub(super) async fn every_kind_of_document_comes_back(store: Arc<dyn Store>) {
    let session = session();
    let other = Source::from_value(json!({ "type": "s3", "bucket": unique("b"), "key": "k" })).unwrap();
    let identity = context_model::hash::identity_hash(ObjectType::File, Some(&other));
    let payload = json!({ "content": null, "depth": { "a": [1, { "b": null }], "z": -0.5 }, "big": 1e300 });
    let Value::Object(payload) = payload else { unreachable!() };
    let foreign = Document::new(ObjectId::sourced(identity), ObjectType::File, Some(other), payload).unwrap();
    let documents = [
        file_in(&unique("f"), "/a/ü \u{202e}.rs", Some("fn main() {}\r\n")),
        file_in(&unique("f"), "/a/deleted", None),
        file_in(&unique("f"), "/a/empty", Some("")),
        toolcall(&unique("call"), &session, "out"),
        Document::chat(&session),
        prompt(&session, ""),
        context_model::session::Sets::default().document(&session),
        foreign,
    ];
    write(&*store, documents.iter().cloned().map(Write::put).collect()).await;
    for document in documents {
        assert_eq!(latest(&*store, document.id()).await.as_ref(), Some(&document));
    }
}

pub(super) async fn equal_content_is_written_once(store: Arc<dyn Store>) {
    let document = file_in(&unique("f"), "/a", Some("same"));
    let first = put(&*store, document.clone()).await;
    let second = put(&*store, document.clone()).await;
    assert_eq!((first.written, second.written), (vec![true], vec![false]));
    assert!(second.tx_id >= first.tx_id);
    assert_eq!(store.history(document.id()).await.unwrap().len(), 1);
}

pub(super) async fn a_then_b_then_a_makes_three_versions(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    for text in ["a", "b", "a"] {
        assert_eq!(put(&*store, file_in(&filesystem, "/x", Some(text))).await.written, [true]);
    }
    let id = file_in(&filesystem, "/x", None).id().clone();
    assert_eq!(contents(&*store, &id).await, ["a", "b", "a"].map(|t| Some(t.to_owned())));
}

pub(super) async fn a_changed_source_hash_makes_a_version(store: Arc<dyn Store>) {
    let source = FilesystemSource { filesystem_id: unique("f"), path: "/image.png".into() };
    for bytes in [b"one", b"two"] {
        let document = Document::file(source.clone(), None, Some(Digest::of(bytes)));
        assert_eq!(put(&*store, document.clone()).await.written, [true]);
        assert_eq!(latest(&*store, document.id()).await, Some(document));
    }
}

pub(super) async fn transactions_rise_strictly(store: Arc<dyn Store>) {
    let session = session();
    let mut last = (store.latest_tx().await.unwrap(), None);
    for n in 0..20 {
        let receipt = put(&*store, prompt(&session, &n.to_string())).await;
        assert!(receipt.tx_id > last.0);
        assert!(last.1.is_none_or(|time| receipt.tx_time >= time));
        last = (receipt.tx_id, Some(receipt.tx_time));
    }
    assert!(store.latest_tx().await.unwrap() >= last.0);
}

pub(super) async fn ten_writes_in_one_moment_make_ten_versions(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    for n in 0..10 {
        put_at(&*store, file_in(&filesystem, "/x", Some(&n.to_string())), 1_000).await;
    }
    let id = file_in(&filesystem, "/x", None).id().clone();
    let expected: Vec<_> = (0..10).map(|n| Some(n.to_string())).collect();
    assert_eq!(contents(&*store, &id).await, expected);
    assert_eq!(latest(&*store, &id).await.unwrap().content(), Some("9"));
}

pub(super) async fn a_transaction_is_applied_whole_or_not_at_all(store: Arc<dyn Store>) {
    let session = session();
    let before = store.latest_tx().await.unwrap();
    let unknown = ObjectId::new(unique("absent"));
    let writes = vec![Write::put(prompt(&session, "x")), Write::patch(unknown, turn(1))];
    assert_eq!(refused(&*store, writes).await, ErrorCode::InvalidArgument);
    assert_eq!(latest(&*store, &ObjectId::system_prompt(&session)).await, None);
    let changes = store.changes_since(before).await.unwrap();
    assert!(!changes.contains_key(&ObjectId::system_prompt(&session)));
    assert_eq!(put(&*store, prompt(&session, "x")).await.written, [true]);
}

pub(super) async fn a_failed_expectation_is_a_conflict(store: Arc<dyn Store>) {
    let session = session();
    let id = ObjectId::system_prompt(&session);
    let first = put(&*store, prompt(&session, "1")).await;
    let second = put(&*store, prompt(&session, "2")).await;
    let attempt = |expected| Transaction {
        writes: vec![Write::put(prompt(&session, "3"))],
        expected: vec![(id.clone(), expected)],
    };
    for wrong in [Some(first.tx_id), None] {
        let error = store.transact(attempt(wrong)).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Conflict);
    }
    assert_eq!(latest(&*store, &id).await.unwrap().content(), Some("2"));
    store.transact(attempt(Some(second.tx_id))).await.unwrap();
    assert_eq!(latest(&*store, &id).await.unwrap().content(), Some("3"));
}

pub(super) async fn an_expected_absence_holds_once(store: Arc<dyn Store>) {
    let session = session();
    let create = || Transaction {
        writes: vec![Write::put(Document::chat(&session))],
        expected: vec![(ObjectId::chat(&session), None)],
    };
    store.transact(create()).await.unwrap();
    assert_eq!(store.transact(create()).await.unwrap_err().code(), ErrorCode::Conflict);
}

pub(super) async fn an_envelope_never_changes(store: Arc<dyn Store>) {
    let id = unique("call");
    put(&*store, toolcall(&id, &session(), "out")).await;
    let payload = Map::from_iter([("content".to_owned(), json!("out"))]);
    let other = Document::new(ObjectId::new(id), ObjectType::Chat, None, payload).unwrap();
    assert_eq!(refused(&*store, vec![Write::put(other.clone())]).await, ErrorCode::InvalidArgument);
    assert_eq!(latest(&*store, other.id()).await.unwrap().object_type(), ObjectType::Toolcall);
}

pub(super) async fn the_same_object_twice_in_one_transaction_keeps_the_order(store: Arc<dyn Store>) {
    let session = session();
    let writes = ["1", "2", "2", "3"].map(|text| Write::put(prompt(&session, text)));
    let receipt = write(&*store, writes.to_vec()).await;
    assert_eq!(receipt.written, [true, true, false, true]);
    let id = ObjectId::system_prompt(&session);
    assert_eq!(contents(&*store, &id).await, ["1", "2", "3"].map(|t| Some(t.to_owned())));
    assert_eq!(latest(&*store, &id).await.unwrap().content(), Some("3"));
    let read = store.get(&id, known(receipt.tx_id)).await.unwrap().unwrap();
    assert_eq!(read.document.content(), Some("3"));
}

pub(super) async fn an_empty_transaction_writes_nothing(store: Arc<dyn Store>) {
    let receipt = write(&*store, Vec::new()).await;
    assert_eq!(receipt.written, Vec::<bool>::new());
    assert!(receipt.tx_id <= store.latest_tx().await.unwrap());
}

pub(super) async fn concurrent_writers_lose_nothing(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    let tasks = (0..8).map(|task| {
        let (store, filesystem) = (Arc::clone(&store), filesystem.clone());
        tokio::spawn(async move {
            for n in 0..10 {
                put(&*store, file_in(&filesystem, "/shared", Some(&format!("{task}/{n}")))).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let id = file_in(&filesystem, "/shared", None).id().clone();
    let history = store.history(&id).await.unwrap();
    assert_eq!(history.len(), 80);
    assert!(history.windows(2).all(|pair| pair[0].tx_id < pair[1].tx_id));
    for task in 0..8 {
        let mine: Vec<String> = history
            .iter()
            .filter_map(|v| v.document.content()?.strip_prefix(&format!("{task}/")).map(str::to_owned))
            .collect();
        assert_eq!(mine, (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

pub(super) async fn patches_give_the_whole_document(store: Arc<dyn Store>) {
    let session = session();
    let mut expected = Document::chat(&session);
    put(&*store, expected.clone()).await;
    for n in 1..=12 {
        let receipt = write(&*store, vec![Write::patch(ObjectId::chat(&session), turn(n))]).await;
        assert_eq!(receipt.written, [true]);
        expected = patch::apply(expected, [&turn(n)]).unwrap();
        let version = store.get(expected.id(), AsOf::default()).await.unwrap().unwrap();
        assert_eq!(version.document, expected);
        assert_eq!(version.tx_id, receipt.tx_id);
    }
    let history = store.history(expected.id()).await.unwrap();
    assert_eq!(history.len(), 13);
    assert_eq!(history[12].document, expected);
    assert_eq!(history[5].document.field("turn_count"), Some(&json!(5)));
}

pub(super) async fn patches_may_follow_a_write_in_the_same_transaction(store: Arc<dyn Store>) {
    let session = session();
    let chat = Document::chat(&session);
    let id = chat.id().clone();
    let writes =
        vec![Write::put(chat.clone()), Write::patch(id.clone(), turn(1)), Write::patch(id.clone(), turn(2))];
    assert_eq!(write(&*store, writes).await.written, [true, true, true]);
    assert_eq!(latest(&*store, &id).await, Some(patch::apply(chat, [&turn(1), &turn(2)]).unwrap()));
    assert_eq!(store.history(&id).await.unwrap().len(), 3);
}

pub(super) async fn refuses_patches_that_do_not_fit(store: Arc<dyn Store>) {
    let session = session();
    let id = ObjectId::chat(&session);
    put(&*store, Document::chat(&session)).await;
    write(&*store, vec![Write::patch(id.clone(), turn(1))]).await;
    let before = latest(&*store, &id).await;
    let mut bad = [Patch::new(), Patch::new(), Patch::new(), Patch::new(), Patch::new()];
    bad[0].remove(&["turns"], 2);
    bad[1].append(&["nowhere"], json!(1));
    bad[2].set(&["nothing"], json!(1));
    bad[3].append(&["turn_count"], json!(1));
    bad[4].put(&["identity_hash"], json!("x"));
    for patch in bad {
        let writes = vec![Write::patch(id.clone(), turn(2)), Write::patch(id.clone(), patch)];
        assert_eq!(refused(&*store, writes).await, ErrorCode::InvalidArgument);
        assert_eq!(latest(&*store, &id).await, before);
    }
    assert_eq!(store.history(&id).await.unwrap().len(), 2);
}

pub(super) async fn a_patch_of_an_unknown_object_is_refused(store: Arc<dyn Store>) {
    let id = ObjectId::new(unique("chat"));
    assert_eq!(refused(&*store, vec![Write::patch(id, turn(1))]).await, ErrorCode::InvalidArgument);
}

pub(super) async fn a_whole_write_after_patches_is_compared_with_the_result(store: Arc<dyn Store>) {
    let session = session();
    let chat = Document::chat(&session);
    put(&*store, chat.clone()).await;
    write(&*store, vec![Write::patch(chat.id().clone(), turn(1))]).await;
    let patched = patch::apply(chat.clone(), [&turn(1)]).unwrap();
    assert_eq!(put(&*store, patched).await.written, [false]);
    assert_eq!(put(&*store, chat.clone()).await.written, [true]);
    write(&*store, vec![Write::patch(chat.id().clone(), turn(7))]).await;
    let expected = patch::apply(chat.clone(), [&turn(7)]).unwrap();
    assert_eq!(latest(&*store, chat.id()).await, Some(expected));
}

pub(super) async fn deep_patches_are_checked(store: Arc<dyn Store>) {
    let session = session();
    let chat = Document::chat(&session);
    let id = chat.id().clone();
    put(&*store, chat.clone()).await;
    let mut good = turn(1);
    good.append(&["turns", "0", "toolcall_ids"], json!("call_9"));
    good.put(&["state"], json!({ "a": 1 }));
    good.put(&["state", "b"], json!([2]));
    good.set(&["content"], json!("rendered"));
    write(&*store, vec![Write::patch(id.clone(), good.clone())]).await;
    let mut bad = Patch::new();
    bad.append(&["turns", "5", "toolcall_ids"], json!("call_9"));
    assert_eq!(refused(&*store, vec![Write::patch(id.clone(), bad)]).await, ErrorCode::InvalidArgument);
    let mut bad = Patch::new();
    bad.set(&["state", "nothing"], json!(1));
    assert_eq!(refused(&*store, vec![Write::patch(id.clone(), bad)]).await, ErrorCode::InvalidArgument);
    write(&*store, vec![Write::patch(id.clone(), turn(2))]).await;
    let expected = patch::apply(chat, [&good, &turn(2)]).unwrap();
    assert_eq!(expected.content(), Some("rendered"));
    assert_eq!(latest(&*store, &id).await, Some(expected));
}

pub(super) async fn a_deletion_is_a_version(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    for text in [Some("text"), None, Some("text")] {
        assert_eq!(put(&*store, file_in(&filesystem, "/x", text)).await.written, [true]);
    }
    let id = file_in(&filesystem, "/x", None).id().clone();
    assert_eq!(contents(&*store, &id).await, [Some("text".to_owned()), None, Some("text".to_owned())]);
}

pub(super) async fn a_delayed_write_is_visible_at_once(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    let document = |text: &str| file_in(&filesystem, "/x", Some(text));
    let mut before = store.latest_tx().await.unwrap();
    for n in 0..20 {
        let text = format!("{n}");
        let transaction = Transaction { writes: vec![Write::put(document(&text))], expected: Vec::new() };
        let receipt = match n % 3 {
            0 => store.transact(transaction).await.unwrap(),
            _ => store.transact_deferred(transaction).await.unwrap(),
        };
        assert!(receipt.written == [true] && receipt.tx_id > before);
        before = receipt.tx_id;
        assert_eq!(latest(&*store, document(&text).id()).await, Some(document(&text)));
        if n % 4 == 0 {
            store.settle().await.unwrap();
        }
    }
    store.settle().await.unwrap();
    assert_eq!(store.history(document("").id()).await.unwrap().len(), 20);
}
