//! Erasing and removing, which only the owner of a store can do.

use std::sync::Arc;

use context_model::error::ErrorCode;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::session::Sets;
use serde_json::{Value, json};

use super::given::{file_in, later, prompt, put, put_at, session, toolcall, unique, valid, write};
use crate::sessions::Prune;
use crate::{AsOf, Erase, OwnedStore, Search, Store, Write, transfer};

/// A text that is nowhere else: one word, so that a search finds it.
fn secret(name: &str) -> String {
    unique(name).replace('-', "_")
}

/// Number of times that a search, histories, journals and an export of these objects show a text.
async fn readable(store: &Arc<dyn Store>, ids: &[ObjectId], text: &str) -> usize {
    let query = Search { text: text.into(), limit: 100, object_type: None, within: None };
    let mut found = store.search(&query).await.unwrap().len();
    for id in ids {
        for version in store.history(id).await.unwrap() {
            found += version
                .document
                .to_json()
                .values()
                .map(Value::to_string)
                .filter(|v| v.contains(text))
                .count();
        }
        found += usize::from(format!("{:?}", store.journal(id).await.unwrap()).contains(text));
        let now = store.get(id, AsOf::default()).await.unwrap();
        found += usize::from(format!("{now:?}").contains(text));
        found += usize::from(
            format!("{:?}", store.outlines(std::slice::from_ref(id)).await.unwrap()).contains(text),
        );
    }
    let mut export = Vec::new();
    transfer::export(&**store, ids, &mut export).await.unwrap();
    found + String::from_utf8(export).unwrap().matches(text).count()
}

pub(super) async fn is_intact(store: &Arc<dyn Store>, ids: &[ObjectId]) -> bool {
    let damages = store.verify().await.unwrap();
    damages.iter().all(|damage| !damage.id.as_ref().is_some_and(|id| ids.contains(id)))
}

/// A chat with two turns, as patches; the first has this text.
async fn chat(store: &Arc<dyn Store>, session: &SessionId, text: &str) -> ObjectId {
    let id = ObjectId::chat(session);
    put(&**store, Document::chat(session)).await;
    for (n, said) in [(1, format!("please use {text} here")), (2, "continue".to_owned())] {
        let mut turn = Patch::new();
        turn.append(&["turns"], json!({ "user": said, "toolcall_ids": [] }));
        turn.set(&["turn_count"], json!(n));
        write(&**store, vec![Write::patch(id.clone(), turn)]).await;
    }
    id
}

pub(super) async fn an_erased_object_keeps_its_times_and_says_why(owned: Arc<dyn OwnedStore>) {
    let store = Arc::clone(&owned) as Arc<dyn Store>;
    let (fs, text) = (unique("f"), secret("erased"));
    let id = file_in(&fs, "/a", None).id().clone();
    for n in 1..=3 {
        put_at(&*store, file_in(&fs, "/a", Some(&format!("{text} {n}"))), n * 1_000).await;
    }
    let before = store.history(&id).await.unwrap();
    assert!(readable(&store, std::slice::from_ref(&id), &text).await > 3);
    let count = owned.erase(vec![Erase::Object(id.clone())], "a reason").await.unwrap();
    assert_eq!((count.texts, count.versions), (3, 3));

    let after = store.history(&id).await.unwrap();
    assert_eq!(after.len(), 3);
    for (now, then) in after.iter().zip(&before) {
        assert_eq!(now.valid_time, then.valid_time);
        assert_eq!(now.document.source_hash(), then.document.source_hash());
        assert_eq!((now.document.content(), now.document.source()), (None, then.document.source()));
        assert_eq!(now.erased.as_ref().unwrap().why, "a reason");
    }
    for n in 1..=3 {
        let then = store.get(&id, valid(n * 1_000)).await.unwrap().unwrap();
        assert_eq!((then.valid_time.millis(), then.document.content()), (n * 1_000, None));
        assert_eq!(then.erased.unwrap().why, "a reason");
    }
    // Earlier versions no longer contain the text either.
    for then in &before {
        let known = store.get(&id, super::given::known(then.tx_id)).await.unwrap();
        assert!(known.is_none_or(|known| known.document.content().is_none() && known.erased.is_some()));
    }
    assert!(store.outlines(std::slice::from_ref(&id)).await.unwrap()[0].as_ref().unwrap().is_null);
    assert_eq!(readable(&store, std::slice::from_ref(&id), &text).await, 0);
    assert!(is_intact(&store, &[id]).await);
}

pub(super) async fn an_erased_text_is_gone_everywhere_and_the_rest_stays(owned: Arc<dyn OwnedStore>) {
    let store = Arc::clone(&owned) as Arc<dyn Store>;
    let (fs, text, session) = (unique("f"), secret("text"), session());
    let (one, two) =
        (file_in(&fs, "/one", Some(&format!("key {text}"))), file_in(&fs, "/two", Some("nothing")));
    let call = toolcall(&unique("call"), &session, &format!("KEY={text}\n"));
    let mut parts = call.clone().into_parts();
    parts.3.insert("args".into(), json!({ "command": format!("echo '{text}' \"quoted\"") }));
    let call = Document::new(parts.0, parts.1, parts.2, parts.3).unwrap();
    for document in [file_in(&fs, "/one", Some("before")), one.clone(), file_in(&fs, "/one", Some("after"))] {
        put(&*store, document).await;
    }
    put(&*store, two.clone()).await;
    put(&*store, call.clone()).await;
    let chat = chat(&store, &session, &text).await;
    let ids = [one.id().clone(), two.id().clone(), call.id().clone(), chat.clone()];
    let long = store.history(&chat).await.unwrap();
    let count = owned.erase(vec![Erase::Text(text.clone())], "keys").await.unwrap();
    // The file's version, the call, and the chat's two versions that have the turn.
    assert_eq!(count.texts, 2);
    assert!((3..=4).contains(&count.versions), "{count:?}");
    assert_eq!(readable(&store, &ids, &text).await, 0);

    let versions = store.history(one.id()).await.unwrap();
    let contents: Vec<_> = versions.iter().map(|v| (v.document.content(), v.erased.is_some())).collect();
    assert_eq!(contents, [(Some("before"), false), (None, true), (Some("after"), false)]);
    let other = store.get(two.id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!((other.document, other.erased), (two, None));
    let now = store.get(call.id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(now.document.field("args").unwrap()["command"], json!("echo '[erased]' \"quoted\""));
    let versions = store.history(&chat).await.unwrap();
    assert_eq!(
        versions.iter().map(|v| v.valid_time).collect::<Vec<_>>(),
        long.iter().map(|v| v.valid_time).collect::<Vec<_>>()
    );
    let turns = versions[2].document.field("turns").unwrap();
    assert_eq!(
        (&turns[0]["user"], &turns[1]["user"]),
        (&json!("please use [erased] here"), &json!("continue"))
    );
    assert_eq!((versions[0].erased.is_some(), versions[1].erased.is_some()), (false, true));
    assert!(is_intact(&store, &ids).await);

    // A second erasure finds nothing, and the chat continues.
    assert_eq!(owned.erase(vec![Erase::Text(text.clone())], "again").await.unwrap().versions, 0);
    let mut turn = Patch::new();
    turn.append(&["turns"], json!({ "user": "a third", "toolcall_ids": [] }));
    turn.set(&["turn_count"], json!(3));
    write(&*store, vec![Write::patch(chat.clone(), turn)]).await;
    let now = store.get(&chat, AsOf::default()).await.unwrap().unwrap();
    let turns = now.document.field("turns").unwrap().as_array().unwrap();
    assert_eq!((turns.len(), &turns[2]["user"]), (3, &json!("a third")));
    assert_eq!(store.history(&chat).await.unwrap().len(), 4);
    assert!(is_intact(&store, &ids).await);
}

pub(super) async fn an_erased_text_is_not_stored_again(owned: Arc<dyn OwnedStore>) {
    let store = Arc::clone(&owned) as Arc<dyn Store>;
    let (fs, text) = (unique("f"), secret("again"));
    let one = file_in(&fs, "/one", Some(&text));
    put_at(&*store, one.clone(), 1_000).await;
    owned.erase(vec![Erase::Object(one.id().clone())], "x").await.unwrap();
    // The same version, the same text as another file's, and another text of the same file.
    assert_eq!(put_at(&*store, one.clone(), 1_000).await.written, [false]);
    let copy = file_in(&fs, "/copy", Some(&text));
    put(&*store, copy.clone()).await;
    let now = store.get(copy.id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!((now.document.content(), now.erased.is_some()), (None, true));
    let new = file_in(&fs, "/one", Some("a new text"));
    assert_eq!(put(&*store, new.clone()).await.written, [true]);
    let now = store.get(new.id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!((now.document.content(), now.erased), (Some("a new text"), None));
    let ids = [one.id().clone(), copy.id().clone()];
    assert_eq!(readable(&store, &ids, &text).await, 0);
    assert_eq!(store.history(one.id()).await.unwrap().len(), 2);
    assert!(is_intact(&store, &ids).await);
}

/// Short texts are parts of payloads, without their own rows; they stay forgotten anyway.
pub(super) async fn short_messages_and_arguments_stay_forgotten(owned: Arc<dyn OwnedStore>) {
    let store = Arc::clone(&owned) as Arc<dyn Store>;
    let (own, other, name) = (session(), session(), unique("said").replace('-', ""));
    let said: Vec<String> =
        (1..=255).step_by(37).map(|length| format!("{name}{}", "x".repeat(length))).collect();
    let turn = |texts: &[String]| {
        let block = |text: &String| json!({ "type": "thinking", "thinking": format!("{text} thought") });
        json!({ "user": texts[0], "toolcall_ids": ["a call"], "assistant": [{ "meta": { "model": "m" },
            "content": texts.iter().map(block).chain([json!({ "type": "text", "text": texts[1] })]).collect::<Vec<_>>() }] })
    };
    let chat = async |session: &SessionId, n: u64| {
        let mut patch = Patch::new();
        patch.append(&["turns"], turn(&said));
        patch.set(&["turn_count"], json!(n));
        write(&*store, vec![Write::patch(ObjectId::chat(session), patch)]).await;
    };
    let call = |id: &str, session: &SessionId| {
        let mut parts = toolcall(id, session, &format!("output {id}")).into_parts();
        parts.3.insert("args".into(), json!({ "type": "text", "list": said }));
        Document::new(parts.0, parts.1, parts.2, parts.3).unwrap()
    };
    let (first, second) = (unique("call"), unique("call"));
    put(&*store, Document::chat(&own)).await;
    put(&*store, Document::chat(&other)).await;
    chat(&own, 1).await;
    put(&*store, call(&first, &own)).await;
    let whole = [ObjectId::chat(&own), ObjectId::new(&*first)].map(Erase::Object);
    owned.erase(whole.into(), "over").await.unwrap();

    // Said again in the same session, in another one, and as whole documents from elsewhere.
    chat(&own, 2).await;
    chat(&other, 1).await;
    put(&*store, call(&second, &other)).await;
    let third = session();
    let mut parts = Document::chat(&third).into_parts();
    parts.3.insert("turns".into(), json!([turn(&said)]));
    let imported = Document::new(parts.0, parts.1, parts.2, parts.3).unwrap();
    put(&*store, imported.clone()).await;
    assert_eq!(put(&*store, imported.clone()).await.written, [false], "it is the same version");
    let ids = [
        ObjectId::chat(&own),
        ObjectId::chat(&other),
        ObjectId::chat(&third),
        ObjectId::new(&*first),
        ObjectId::new(&*second),
    ];
    assert_eq!(readable(&store, &ids, &name).await, 0);
    for id in &ids[..3] {
        let now = store.get(id, AsOf::default()).await.unwrap().unwrap();
        let last = now.document.field("turns").unwrap().as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["user"], &last["toolcall_ids"]), (&json!("[erased]"), &json!(["a call"])));
        assert_eq!(last["assistant"][0]["content"][0]["type"], "thinking");
        assert!(now.erased.is_some());
    }
    let now = store.get(&ids[4], AsOf::default()).await.unwrap().unwrap();
    assert_eq!(now.document.field("tool"), call(&second, &other).field("tool"));
    assert!(is_intact(&store, &ids).await);
}

/// Checks that words shared with a remaining object reveal nothing about the erased ones.
pub(super) async fn words_of_others_are_not_forgotten_with_a_session(owned: Arc<dyn OwnedStore>) {
    let store = Arc::clone(&owned) as Arc<dyn Store>;
    let (own, other, text) = (session(), session(), unique("common"));
    for session in [&own, &other] {
        chat(&store, session, &text).await;
    }
    owned.erase(vec![Erase::Object(ObjectId::chat(&own))], "over").await.unwrap();
    let before = store.get(&ObjectId::chat(&other), AsOf::default()).await.unwrap().unwrap();
    let mut turn = Patch::new();
    turn.append(&["turns"], json!({ "user": "continue", "toolcall_ids": [] }));
    turn.set(&["turn_count"], json!(3));
    write(&*store, vec![Write::patch(ObjectId::chat(&other), turn)]).await;
    let now = store.get(&ObjectId::chat(&other), AsOf::default()).await.unwrap().unwrap();
    let turns = now.document.field("turns").unwrap();
    assert_eq!(turns[0], before.document.field("turns").unwrap()[0]);
    assert_eq!((&turns[2]["user"], now.erased), (&json!("continue"), None));
}

pub(super) async fn a_session_is_erased_with_the_objects_only_it_has_seen(owned: Arc<dyn OwnedStore>) {
    let store = Arc::clone(&owned) as Arc<dyn Store>;
    let (fs, text, own, other) = (unique("f"), secret("session"), session(), session());
    let (mine, shared) =
        (file_in(&fs, "/mine", Some(&format!("mine {text}"))), file_in(&fs, "/shared", Some("shared")));
    put(&*store, mine.clone()).await;
    put(&*store, shared.clone()).await;
    let chat = chat(&store, &own, &text).await;
    put(&*store, prompt(&own, &format!("be brief about {text}"))).await;
    for (session, index) in [(&own, vec![mine.id(), shared.id()]), (&other, vec![shared.id()])] {
        put(&*store, Sets::default().document(session)).await;
        let mut sets = Patch::new();
        sets.set(&["session_index"], json!(index));
        write(&*store, vec![Write::patch(ObjectId::session(session), sets)]).await;
    }
    let path = Erase::Session(own.clone());
    assert!(owned.erase(vec![path], "over").await.unwrap().versions >= 5);
    let ids = [mine.id().clone(), chat, ObjectId::system_prompt(&own), ObjectId::session(&own)];
    assert_eq!(readable(&store, &ids, &text).await, 0);
    let kept = store.get(shared.id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!((kept.document, kept.erased), (shared, None));
    assert!(is_intact(&store, &ids).await);
}

pub(super) async fn refuses_an_impossible_erasure_and_erases_nothing(owned: Arc<dyn OwnedStore>) {
    let store = Arc::clone(&owned) as Arc<dyn Store>;
    let (fs, name) = (unique("f"), unique("absent"));
    let one = file_in(&fs, "/one", Some("a text that stays"));
    put(&*store, one.clone()).await;
    for (wanted, words) in [
        (Erase::Object(ObjectId::new(name.clone())), format!("no object {name}")),
        (Erase::Path(format!("/{name}")), format!("no file /{name}")),
        (Erase::Session(SessionId::new(name.clone()).unwrap()), format!("no session {name}")),
        (Erase::Text("short".into()), "at least 6 bytes".into()),
    ] {
        let error = owned.erase(vec![Erase::Object(one.id().clone()), wanted], "x").await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert!(error.to_string().contains(&words), "{error}");
    }
    let now = store.get(one.id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!((now.document, now.erased), (one, None));
}

pub(super) async fn young_sessions_stay_and_a_removal_needs_a_condition(owned: Arc<dyn OwnedStore>) {
    let store = Arc::clone(&owned) as Arc<dyn Store>;
    let session = session();
    put(&*store, Document::chat(&session)).await;
    let last = put(&*store, Sets::default().document(&session)).await;
    later(&*store, last.tx_time).await;
    let error = owned.prune(Prune::default()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    let all =
        Prune { before: Some(context_model::time::Timestamp::from_millis(i64::MAX)), ..Prune::default() };
    for is_dry_run in [true, false] {
        let pruned = owned.prune(Prune { is_dry_run, ..all.clone() }).await.unwrap();
        assert!(pruned.sessions.iter().all(|one| one.id != session) && pruned.used_bytes > 0);
    }
    assert!(store.get(&ObjectId::session(&session), AsOf::default()).await.unwrap().is_some());
}
