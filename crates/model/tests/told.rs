//! A chat records notices and evidence, and an adopted chat keeps them.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use context_model::chat::{
    Arrived, Chat, ChatPatch, Noted, Notice, RollEntry, RollReason, RollReceipt, Spending, adopt, said_id,
};
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch;
use serde_json::json;

fn empty() -> Document {
    Document::chat(&SessionId::new("s").unwrap())
}

#[test]
fn notices_are_read_back_and_are_no_rolls() {
    let notice =
        |file: &str, hash, line| Notice { file: ObjectId::new(file), hash, line, path: format!("/{file}") };
    let [a, b] = [b"a", b"b"].map(|text| Digest::of(text));
    let told = [notice("a", Some(a), b), notice("b", None, a)];
    let mut patch = ChatPatch::new(0);
    assert!(!patch.notices(&told, None, None), "the chat has no turn yet");
    patch.message(&json!({ "role": "user", "content": "hello" })).unwrap();
    assert!(
        patch.notices(&told[..1], Some(("here", &["a line".to_owned()])), None)
            && patch.notices(&told[1..], None, Some("one\ntwo"))
    );
    let document = patch::apply(empty(), [patch.patch()]).unwrap();
    let chat = Chat::of(&document);
    assert_eq!(chat.notices().collect::<Vec<_>>(), told);
    assert_eq!(chat.rolls().count(), 0);
    assert_eq!(chat.said(&said_id("one\ntwo")), Some("one\ntwo"));
    let said = |entry: usize| document.field("turns").unwrap()[0]["rolls"][entry].get("said").cloned();
    assert_eq!([said(0), said(1)], [Some(json!({ "place": "here", "lines": ["a line"] })), None]);
}

#[test]
fn evidence_is_read_back_and_is_no_roll() {
    let entries = [json!({ "call": "a", "evidence": null }), json!({ "call": "b" }), json!(1)];
    let mut patch = ChatPatch::new(0);
    assert!(!patch.evidence(&entries), "the chat has no turn yet");
    patch.message(&json!({ "role": "user", "content": "hello" })).unwrap();
    assert!(patch.evidence(&entries[..1]) && patch.evidence(&entries[1..]));
    let document = patch::apply(empty(), [patch.patch()]).unwrap();
    let chat = Chat::of(&document);
    assert_eq!(chat.evidence().cloned().collect::<Vec<_>>(), entries);
    assert_eq!((chat.rolls().count(), chat.notices().count()), (0, 0));
}

#[test]
fn inserted_texts_are_read_back_with_the_first_call_of_their_answer() {
    let texts = [("of a call", Some("call_1")), ("alone", None)];
    let mut patch = ChatPatch::new(0);
    assert!(!patch.inserted(&texts), "the chat has no turn yet");
    patch.message(&json!({ "role": "user", "content": "hello" })).unwrap();
    assert!(patch.inserted(&texts));
    let document = patch::apply(empty(), [patch.patch()]).unwrap();
    assert_eq!(Chat::of(&document).texts().collect::<Vec<_>>(), ["hello", "of a call", "alone"]);
    let entry = &document.field("turns").unwrap()[0]["rolls"][0];
    assert_eq!(*entry, json!({ "inserted": ["of a call", "alone"], "of": ["call_1", null] }));
    assert_eq!(Chat::of(&document).rolls().count(), 0);
}

/// A roll is of nothing that came into the past after it, so their order counts.
#[test]
fn rolls_and_arrivals_are_read_back_in_their_order() {
    let [before, after] =
        [2, 5].map(|made| Arrived { made, said: vec!["0123".into()], ..Arrived::default() });
    let roll = RollEntry { arguments: vec![ObjectId::new("a")], ..RollEntry::default() };
    let mut patch = ChatPatch::new(0);
    patch.message(&json!({ "role": "user", "content": "hello" })).unwrap();
    assert!(patch.arrived(&before) && patch.evidence(&[json!(1)]));
    patch.roll(&roll);
    assert!(patch.arrived(&after));
    let document = patch::apply(empty(), [patch.patch()]).unwrap();
    let noted: Vec<Noted> = Chat::of(&document).turns().flat_map(|turn| turn.noted()).collect();
    assert_eq!(noted, [Noted::Arrived(before), Noted::Roll(Box::new(roll)), Noted::Arrived(after)]);
}

/// A user who goes back in a conversation keeps the notices beyond that point: its messages may be there still.
#[test]
fn adopted_chat_takes_along_what_others_tell() {
    let session = SessionId::new("s").unwrap();
    let told = |name: &str| Notice {
        file: ObjectId::new(name),
        hash: None,
        line: Digest::of(name.as_bytes()),
        path: format!("/{name}"),
    };
    let mut patch = ChatPatch::new(0);
    patch.message(&json!({ "role": "user", "content": "hello" })).unwrap();
    patch.notices(&[told("a")], None, None);
    let earlier = patch::apply(empty(), [patch.patch()]).unwrap();
    let mut more = ChatPatch::new(1);
    more.message(&json!({ "role": "user", "content": "later" })).unwrap();
    more.notices(&[told("b")], None, None);
    more.evidence(&[json!({ "call": "c" })]);
    more.roll(&RollEntry::default());
    let later = patch::apply(earlier.clone(), [more.patch()]).unwrap();
    let own = adopt(&session, &earlier, &[&later, &earlier, &later], &[]).unwrap();
    let chat = Chat::of(&own);
    assert_eq!((chat.len(), chat.rolls().count()), (1, 0));
    assert_eq!(chat.notices().collect::<Vec<_>>(), [told("a"), told("b")]);
    assert_eq!(chat.evidence().collect::<Vec<_>>(), [&json!({ "call": "c" })]);
    let none = adopt(&session, &empty(), &[&later], &[]).unwrap();
    assert_eq!(Chat::of(&none).notices().count(), 0, "the chat has no turn for it");
}

fn spending() -> Spending {
    Spending { answers: 1, kept: 1, untouched: 2_000.5, debt: -3.25, removed: 4, dead: true }
}

fn receipt() -> RollReceipt {
    RollReceipt {
        items: 2,
        reasoning_lost: 0,
        reasoning_lost_running: 0,
        removed_tokens: 900,
        cost: 1.0,
        gain: 2.0,
        pays_back_after_calls: Some(1),
        reason: RollReason::Pays,
    }
}

/// A session that goes back keeps the effects of a later roll on the messages that stay, and nothing of the messages that it
/// left.
#[test]
fn rolls_stay_with_what_is_before_them() {
    let call = |names: &[&str]| names.iter().map(|name| ObjectId::new(*name)).collect::<Vec<_>>();
    let mut patch = ChatPatch::new(0);
    patch.message(&json!({ "role": "user", "content": "first" })).unwrap();
    call(&["a", "b"]).iter().for_each(|id| patch.toolcall(id));
    let earlier = patch::apply(empty(), [patch.patch()]).unwrap();
    let mut more = ChatPatch::new(1);
    more.message(&json!({ "role": "user", "content": "later" })).unwrap();
    more.toolcall(&ObjectId::new("c"));
    let later = patch::apply(earlier.clone(), [more.patch()]).unwrap();
    let roll = RollEntry {
        results: call(&["a", "c"]),
        arguments: call(&["b", "c"]),
        old_texts: call(&["a", "c"]),
        lines: call(&["b", "c"]),
        changed: call(&["c", "a"]),
        whole: call(&["b", "c"]),
        receipt: Some(receipt()),
        undone: true,
        prose: ["first", "later", "a text that was redacted"].map(said_id).to_vec(),
        call_digests: vec![call(&["a", "b", "c"]), call(&["b", "c"])],
        bound: true,
        spending: Some(spending()),
        anew: false,
    };
    let gone = RollEntry { results: call(&["c"]), bound: true, ..RollEntry::default() };
    let rolls = Chat::of(&earlier).rolls_before(Chat::of(&later), &[roll, gone]);
    let kept = RollEntry {
        results: call(&["a"]),
        arguments: call(&["b"]),
        old_texts: call(&["a"]),
        lines: call(&["b"]),
        changed: call(&["a"]),
        whole: call(&["b"]),
        receipt: Some(receipt()),
        undone: true,
        prose: ["first", "a text that was redacted"].map(said_id).to_vec(),
        call_digests: vec![call(&["a", "b"])],
        bound: true,
        spending: Some(spending()),
        anew: false,
    };
    assert_eq!(rolls, std::slice::from_ref(&kept));
    let session = SessionId::new("s").unwrap();
    let own = adopt(&session, &earlier, &[], &rolls).unwrap();
    assert_eq!(Chat::of(&own).rolls().collect::<Vec<_>>(), [kept]);
}
