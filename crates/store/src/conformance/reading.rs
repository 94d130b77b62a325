//! Checks of reading.

use std::sync::Arc;

use context_model::error::ErrorCode;
use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::patch;
use context_model::time::{Timestamp, TxId};
use serde_json::{Value, json};

use super::given::{
    file_in, known, later, prompt, put, put_at, refused, session, toolcall, turn, unique, valid, write,
};
use super::searching::look_for;
use crate::{AsOf, Change, Filter, KnownAt, Store, Write};

pub(super) async fn an_unknown_object_is_none(store: Arc<dyn Store>) {
    let id = ObjectId::new(unique("absent"));
    assert_eq!(store.get(&id, AsOf::default()).await.unwrap(), None);
    assert_eq!(store.get(&id, known(TxId(u64::MAX))).await.unwrap(), None);
    assert_eq!(store.history(&id).await.unwrap(), []);
    assert_eq!(store.journal(&id).await.unwrap(), []);
    assert_eq!(store.outlines(std::slice::from_ref(&id)).await.unwrap(), [None]);
}

pub(super) async fn as_of_a_transaction(store: Arc<dyn Store>) {
    let session = session();
    let id = ObjectId::system_prompt(&session);
    let before = store.latest_tx().await.unwrap();
    let mut receipts = Vec::new();
    for n in 0..5 {
        let receipt = put(&*store, prompt(&session, &n.to_string())).await;
        later(&*store, receipt.tx_time).await;
        receipts.push(receipt);
    }
    for (n, receipt) in receipts.iter().enumerate() {
        let by_time = AsOf { valid_time: None, known: Some(KnownAt::Time(receipt.tx_time)) };
        for at in [known(receipt.tx_id), by_time] {
            let version = store.get(&id, at).await.unwrap().unwrap();
            assert_eq!(version.document.content(), Some(n.to_string().as_str()));
            assert_eq!(version.tx_id, receipt.tx_id);
        }
    }
    assert_eq!(store.get(&id, known(before)).await.unwrap(), None);
    let early = AsOf { valid_time: None, known: Some(KnownAt::Time(Timestamp::from_millis(0))) };
    assert_eq!(store.get(&id, early).await.unwrap(), None);
    let late = store.get(&id, known(TxId(u64::MAX))).await.unwrap().unwrap();
    assert_eq!(late.document.content(), Some("4"));
}

pub(super) async fn as_of_a_valid_time(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    let id = file_in(&filesystem, "/x", None).id().clone();
    for (text, millis) in [("a", 1_000), ("b", 2_000), ("c", 3_000)] {
        put_at(&*store, file_in(&filesystem, "/x", Some(text)), millis).await;
    }
    let expected =
        [(999, None), (1_000, Some("a")), (1_999, Some("a")), (2_500, Some("b")), (9_000, Some("c"))];
    for (millis, text) in expected {
        let version = store.get(&id, valid(millis)).await.unwrap();
        assert_eq!(version.as_ref().and_then(|v| v.document.content()), text, "at {millis}");
    }
}

pub(super) async fn a_back_dated_version_does_not_become_the_latest(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    let id = file_in(&filesystem, "/x", None).id().clone();
    let newer = put_at(&*store, file_in(&filesystem, "/x", Some("newer")), 2_000).await;
    let older = put_at(&*store, file_in(&filesystem, "/x", Some("older")), 1_000).await;
    let read = store.get(&id, AsOf::default()).await.unwrap().unwrap();
    assert_eq!((read.document.content(), read.tx_id), (Some("newer"), newer.tx_id));
    let read = store.get(&id, valid(1_500)).await.unwrap().unwrap();
    assert_eq!((read.document.content(), read.tx_id), (Some("older"), older.tx_id));
    let both = AsOf { known: Some(KnownAt::Tx(newer.tx_id)), ..valid(1_500) };
    assert_eq!(store.get(&id, both).await.unwrap(), None);
    // Dated ahead, as by a clock that runs fast.
    let far = 4_000_000_000_000;
    let ahead = put_at(&*store, file_in(&filesystem, "/x", Some("ahead")), far).await;
    assert_eq!(store.get(&id, valid(far - 1)).await.unwrap().unwrap().tx_id, newer.tx_id);
    assert_eq!(store.get(&id, known(ahead.tx_id)).await.unwrap().unwrap().tx_id, ahead.tx_id);
    assert_eq!(store.get(&id, known(older.tx_id)).await.unwrap().unwrap().tx_id, newer.tx_id);
    let history = store.history(&id).await.unwrap();
    assert_eq!(history.iter().map(|v| v.valid_time.millis()).collect::<Vec<_>>(), [1_000, 2_000, far]);
}

pub(super) async fn equal_content_is_compared_at_its_valid_time(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    let version = |text| file_in(&filesystem, "/x", Some(text));
    for (text, millis, written) in [
        ("a", 1_000, true),
        ("b", 2_000, true),
        ("a", 1_500, false),
        ("b", 1_500, true),
        ("a", 3_000, true),
        // The same history again, as in a repeated import.
        ("a", 1_000, false),
        ("b", 2_000, false),
        ("a", 3_000, false),
    ] {
        assert_eq!(put_at(&*store, version(text), millis).await.written, [written], "{text} at {millis}");
    }
}

pub(super) async fn patched_documents_are_read_as_of_any_point(store: Arc<dyn Store>) {
    let session = session();
    let chat = Document::chat(&session);
    let mut points = vec![(put(&*store, chat.clone()).await, chat.clone())];
    for n in 1..=6 {
        later(&*store, points[n - 1].0.tx_time).await;
        let receipt = write(&*store, vec![Write::patch(chat.id().clone(), turn(n))]).await;
        let document = patch::apply(points[n - 1].1.clone(), [&turn(n)]).unwrap();
        points.push((receipt, document));
    }
    for (receipt, document) in points {
        let at_time = AsOf { valid_time: Some(receipt.tx_time), known: None };
        for at in [known(receipt.tx_id), at_time] {
            assert_eq!(store.get(chat.id(), at).await.unwrap().unwrap().document, document);
        }
    }
}

pub(super) async fn a_patch_holds_from_its_valid_time_on(store: Arc<dyn Store>) {
    let session = session();
    let chat = Document::chat(&session);
    let id = chat.id().clone();
    let at = |n, millis| Write::Patch {
        id: id.clone(),
        patch: turn(n),
        valid_time: Some(Timestamp::from_millis(millis)),
    };
    put_at(&*store, chat.clone(), 1_000).await;
    write(&*store, vec![at(1, 2_000), at(2, 2_000)]).await;
    assert_eq!(refused(&*store, vec![at(3, 1_999)]).await, ErrorCode::InvalidArgument);
    let count = |version: Option<crate::Version>| version.unwrap().document.field("turn_count").cloned();
    assert_eq!(count(store.get(&id, valid(1_999)).await.unwrap()), Some(json!(0)));
    assert_eq!(count(store.get(&id, valid(2_000)).await.unwrap()), Some(json!(2)));
    // A patch never falls behind the version that it changes.
    let far = 4_000_000_000_000;
    write(&*store, vec![at(3, far), Write::patch(id.clone(), turn(4))]).await;
    let version = store.get(&id, AsOf::default()).await.unwrap().unwrap();
    assert_eq!((version.valid_time.millis(), count(Some(version))), (far, Some(json!(4))));
}

/// A history read in pages has all versions, and no transaction is split.
pub(super) async fn a_history_in_pages_is_the_whole_history(store: Arc<dyn Store>) {
    let session = session();
    let id = ObjectId::chat(&session);
    write(&*store, vec![Write::put(Document::chat(&session))]).await;
    for n in 1..=20 {
        write(&*store, vec![Write::patch(id.clone(), turn(n))]).await;
    }
    write(&*store, vec![Write::put(Document::chat(&session)), Write::patch(id.clone(), turn(21))]).await;
    write(&*store, vec![Write::patch(id.clone(), turn(22))]).await;
    let whole = store.history(&id).await.unwrap();
    for most in [1, 2, 7, 100] {
        let (mut pages, mut after) = (Vec::new(), TxId(0));
        loop {
            let page = store.history_page(&id, after, most).await.unwrap();
            let Some(last) = page.last() else { break };
            assert!(page.len() <= most + 1, "{} of {most}", page.len());
            after = last.tx_id;
            pages.extend(page);
        }
        assert_eq!(pages, whole, "{most} at a time");
    }
    assert_eq!(store.history_page(&ObjectId::new("none"), TxId(0), 9).await.unwrap(), []);
}

pub(super) async fn many_objects_come_in_the_order_asked_for(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    let documents: Vec<Document> =
        (0..50).map(|n| file_in(&filesystem, &format!("/{n}"), Some(&n.to_string()))).collect();
    write(&*store, documents.iter().cloned().map(Write::put).collect()).await;
    let mut ids: Vec<ObjectId> = documents.iter().rev().map(|d| d.id().clone()).collect();
    ids.insert(7, ObjectId::new(unique("absent")));
    ids.push(ids[0].clone());
    let read = store.get_many(&ids, AsOf::default()).await.unwrap();
    assert_eq!(read.len(), 52);
    assert_eq!(read[7], None);
    assert_eq!(read[0].as_ref().unwrap().document, documents[49]);
    assert_eq!(read[50].as_ref().unwrap().document, documents[0]);
    assert_eq!(read[51], read[0]);
    assert_eq!(store.get_many(&[], AsOf::default()).await.unwrap(), []);
}

pub(super) async fn outlines_have_no_content(store: Arc<dyn Store>) {
    let filesystem = unique("f");
    let (text, null) = (file_in(&filesystem, "/a.rs", Some("long text")), file_in(&filesystem, "/b", None));
    let receipt = write(&*store, vec![Write::put(text.clone()), Write::put(null.clone())]).await;
    let outlines = store.outlines(&[text.id().clone(), null.id().clone()]).await.unwrap();
    for (outline, document) in outlines.into_iter().zip([text, null]) {
        let outline = outline.unwrap();
        let mut payload = document.payload().clone();
        payload.remove("content");
        assert_eq!(outline.payload, payload);
        assert_eq!(outline.is_null, document.content().is_none());
        assert_eq!((&outline.id, outline.object_type), (document.id(), document.object_type()));
        assert_eq!(outline.source.as_ref(), document.source());
        assert_eq!((outline.tx_id, outline.valid_time), (receipt.tx_id, receipt.tx_time));
    }
}

pub(super) async fn outlines_of_patched_documents_have_the_scalar_fields(store: Arc<dyn Store>) {
    let session = session();
    let chat = Document::chat(&session);
    put(&*store, chat.clone()).await;
    let receipt = write(&*store, vec![Write::patch(chat.id().clone(), turn(3))]).await;
    let outline = store.outlines(&[chat.id().clone()]).await.unwrap().remove(0).unwrap();
    let Value::Object(expected) = json!({ "turn_count": 3, "session_ref": ObjectId::session(&session) })
    else {
        unreachable!()
    };
    assert_eq!(outline.payload, expected);
    assert_eq!((outline.is_null, outline.tx_id), (false, receipt.tx_id));
}

pub(super) async fn the_journal_has_every_write(store: Arc<dyn Store>) {
    let session = session();
    let chat = Document::chat(&session);
    put_at(&*store, chat.clone(), 1_000).await;
    let receipt = write(&*store, vec![Write::patch(chat.id().clone(), turn(1))]).await;
    let journal = store.journal(chat.id()).await.unwrap();
    assert_eq!(journal.len(), 2);
    assert_eq!(journal[0].change, Change::Document(chat.clone()));
    assert_eq!(journal[0].valid_time.millis(), 1_000);
    assert_eq!((journal[1].tx_id, journal[1].valid_time), (receipt.tx_id, receipt.tx_time));
    match &journal[1].change {
        Change::Patch(patch) => assert_eq!(*patch, turn(1)),
        Change::Document(whole) => assert_eq!(*whole, patch::apply(chat, [&turn(1)]).unwrap()),
    }
}

pub(super) async fn queries_filter_by_type_and_source(store: Arc<dyn Store>) {
    let (filesystem, other, session) = (unique("f"), unique("f"), session());
    let files = [
        file_in(&filesystem, "/src/b.rs", Some("b")),
        file_in(&filesystem, "/src/a.rs", Some("a")),
        file_in(&filesystem, "/src-old/a.rs", Some("a")),
        file_in(&filesystem, "/srcü/%_.rs", Some("a")),
        file_in(&other, "/src/a.rs", Some("a")),
    ];
    let written = write(&*store, files.iter().cloned().map(Write::put).collect()).await;
    later(&*store, written.tx_time).await;
    let call = toolcall(&unique("call"), &session, "x");
    let receipt = put(&*store, call.clone()).await;
    let ids = |indexes: &[usize]| indexes.iter().map(|i| files[*i].id().clone()).collect::<Vec<_>>();
    let within = |prefix: Option<&str>| Filter {
        filesystem_id: Some(filesystem.clone()),
        path_prefix: prefix.map(str::to_owned),
        ..Filter::default()
    };
    assert_eq!(store.query(&within(None)).await.unwrap(), ids(&[0, 1, 2, 3]));
    for (prefix, expected) in [
        ("/src", &[0, 1][..]),
        ("/src/", &[0, 1]),
        ("/src/a.rs", &[1]),
        ("/", &[0, 1, 2, 3]),
        ("", &[0, 1, 2, 3]),
        ("/srcü", &[3]),
        ("/nowhere", &[]),
    ] {
        assert_eq!(store.query(&within(Some(prefix))).await.unwrap(), ids(expected), "below {prefix}");
    }
    let calls = Filter { object_type: Some(ObjectType::Toolcall), ..Filter::default() };
    let found = store.query(&calls).await.unwrap();
    assert!(found.contains(call.id()) && !found.contains(files[0].id()));
    assert_eq!(
        store.query(&Filter { object_type: Some(ObjectType::Chat), ..within(None) }).await.unwrap(),
        []
    );
    put(&*store, file_in(&filesystem, "/src/b.rs", Some("changed"))).await;
    let since = Filter { since: Some(receipt.tx_time), ..within(None) };
    assert_eq!(store.query(&since).await.unwrap(), ids(&[0]));
}

pub(super) async fn changes_since_a_transaction(store: Arc<dyn Store>) {
    let session = session();
    let (chat, text) = (ObjectId::chat(&session), ObjectId::system_prompt(&session));
    let first = put(&*store, Document::chat(&session)).await;
    put(&*store, prompt(&session, "1")).await;
    let third = put(&*store, prompt(&session, "2")).await;
    let changes = store.changes_since(first.tx_id).await.unwrap();
    assert_eq!((changes.get(&text), changes.get(&chat)), (Some(&third.tx_id), None));
    let fourth = write(&*store, vec![Write::patch(chat.clone(), turn(1))]).await;
    let changes = store.changes_since(third.tx_id).await.unwrap();
    assert_eq!((changes.get(&text), changes.get(&chat)), (None, Some(&fourth.tx_id)));
    assert_eq!(store.changes_since(TxId(u64::MAX)).await.unwrap().len(), 0);
}

pub(super) async fn a_write_is_readable_at_once(store: Arc<dyn Store>) {
    let session = session();
    for n in 0..30 {
        let receipt = put(&*store, prompt(&session, &n.to_string())).await;
        let read = store.get(&ObjectId::system_prompt(&session), AsOf::default()).await.unwrap().unwrap();
        assert_eq!((read.tx_id, read.document.content()), (receipt.tx_id, Some(n.to_string().as_str())));
        assert!(store.latest_tx().await.unwrap() >= receipt.tx_id);
    }
}

pub(super) async fn local_values_keep_the_first_default(store: Arc<dyn Store>) {
    let name = unique("name");
    assert_eq!(store.local_value(&name, "first").await.unwrap(), "first");
    assert_eq!(store.local_value(&name, "second").await.unwrap(), "first");
    assert_eq!(store.local_value(&unique("name"), "third").await.unwrap(), "third");
}

pub(super) async fn an_intact_store_has_no_damage(store: Arc<dyn Store>) {
    let session = session();
    put(&*store, Document::chat(&session)).await;
    for n in 1..=3 {
        write(&*store, vec![Write::patch(ObjectId::chat(&session), turn(n))]).await;
    }
    put(&*store, file_in(&unique("f"), "/a", Some("text"))).await;
    store.flush().await.unwrap();
    assert_eq!(store.verify().await.unwrap(), []);
}

pub(super) async fn a_closed_store_says_so(store: Arc<dyn Store>) {
    let session = session();
    put(&*store, prompt(&session, "x")).await;
    store.close().await.unwrap();
    store.close().await.unwrap();
    let id = ObjectId::system_prompt(&session);
    assert_eq!(refused(&*store, vec![Write::put(prompt(&session, "y"))]).await, ErrorCode::Closed);
    assert_eq!(store.get(&id, AsOf::default()).await.unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(store.history(&id).await.unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(store.latest_tx().await.unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(store.search(&look_for("x")).await.unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(store.flush().await.unwrap_err().code(), ErrorCode::Closed);
}
