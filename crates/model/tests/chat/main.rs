//! Turns of a chat: written as patches, read back, and read from a damaged document.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod any;

use context_model::chat::{
    Chat, ChatPatch, Message, RollEntry, RollReason, RollReceipt, adopt, is_said_id, said_id,
};
use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::{self, Patch};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

const GOLDEN: &str = include_str!("../../../../fixtures/golden/chat.json");

fn empty() -> Document {
    Document::chat(&SessionId::new("s").unwrap())
}

fn ids(names: &[&str]) -> Vec<ObjectId> {
    names.iter().map(|name| ObjectId::new(*name)).collect()
}

/// A chat with one turn that has these fields.
fn turn(fields: Value) -> Value {
    json!({ "turns": [fields] })
}

fn roll_of(entry: &Value) -> RollEntry {
    Chat::of_payload(&turn(json!({ "rolls": [entry] }))).rolls().next().unwrap()
}

#[test]
fn a_recorded_session_is_written_byte_for_byte() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let mut document = empty();
    for step in golden["steps"].as_array().unwrap() {
        let mut patch = ChatPatch::new(Chat::of(&document).len());
        let value = &step["value"];
        let id = || ObjectId::new(value.as_str().unwrap());
        match step["add"].as_str().unwrap() {
            "message" => patch.message(value).unwrap(),
            "toolcall" => patch.toolcall(&id()),
            "activation" => assert!(patch.activation(&id())),
            "roll" => assert!(patch.roll(&roll_of(value))),
            other => panic!("{other}"),
        }
        assert_eq!(json!(patch.patch()).to_string(), step["patch"].to_string());
        document = patch::apply(document, [patch.patch()]).unwrap();
        assert_eq!(patch.turns(), Chat::of(&document).len());
    }
    assert_eq!(Value::Object(document.to_json()).to_string(), golden["document"].to_string());
}

#[test]
fn a_recorded_session_is_read_back() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let chat = Chat::of_payload(&golden["document"]);
    let stays: Vec<(usize, ObjectId)> = chat.stays().collect();
    let expected = [(0, "call_early"), (1, "call_0"), (1, "call_1"), (2, "call_early")];
    assert_eq!(stays, expected.map(|(turn, id)| (turn, ObjectId::new(id))));

    let rolls: Vec<RollEntry> = chat.rolls().collect();
    assert_eq!((rolls.len(), &rolls[0].results), (3, &ids(&["call_0", "call_1"])));
    assert_eq!(rolls[1].receipt.as_ref().unwrap().reason, RollReason::Asked);
    let undone = RollEntry { arguments: ids(&["call_0"]), undone: true, ..RollEntry::default() };
    assert_eq!(rolls[2], undone);

    let users: Vec<Option<&Value>> = chat.turns().map(|turn| turn.user()).collect();
    let first = json!([{ "type": "text", "text": "first" }]);
    assert_eq!(users, [None, Some(&first), Some(&json!("second"))]);
    let turn = chat.turns().nth(1).unwrap();
    let answers: Vec<_> = turn.answers().collect();
    assert_eq!(answers[2].content(), &json!("done"));
    assert_eq!(answers[0].meta().unwrap()["usage"]["cost"], json!({ "total": 0.25 }));
    assert_eq!(answers[1].calls().collect::<Vec<_>>(), ["call_1"]);
    assert_eq!(
        turn.conversation(),
        [
            Message::User(&first),
            Message::Assistant(answers[0]),
            Message::Toolcall { id: "call_0", call_id: "call_0" },
            Message::Assistant(answers[1]),
            Message::Toolcall { id: "call_1", call_id: "call_1" },
            Message::Assistant(answers[2]),
        ]
    );
}

/// A message as deep as this: itself, and lists in its content.
fn nested(levels: usize) -> Value {
    let content = (1..levels).fold(json!("x"), |inner, _| json!([inner]));
    json!({ "role": "user", "content": content })
}

#[rstest]
#[case::tool_result(json!({ "role": "toolResult", "content": "x" }))]
#[case::no_role(json!({ "content": "x" }))]
#[case::role_of_another_type(json!({ "role": 1 }))]
#[case::no_object(json!("user"))]
#[case::too_deep(nested(101))]
fn message_without_a_turns_role_adds_nothing(#[case] message: Value) {
    let mut patch = ChatPatch::new(1);
    assert_eq!(patch.message(&message).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!((patch.is_empty(), patch.turns()), (true, 1));
}

#[test]
fn message_depth_is_limited_to_readable_depth() {
    ChatPatch::new(0).message(&nested(100)).unwrap();
}

#[test]
fn a_message_without_content_has_none() {
    let mut patch = ChatPatch::new(0);
    patch.message(&json!({ "role": "assistant" })).unwrap();
    let document = patch::apply(empty(), [&patch.into_patch()]).unwrap();
    let chat = Chat::of(&document);
    let answer = chat.turns().next().unwrap().answers().next().unwrap();
    assert_eq!((answer.content(), answer.meta().unwrap().len()), (&Value::Null, 0));
    assert_eq!(answer.calls().count(), 0);
}

#[test]
fn before_the_first_turn_there_is_nothing_to_note_an_activation_or_a_roll_with() {
    let mut patch = ChatPatch::new(0);
    assert!(!patch.activation(&ObjectId::new("a")) && !patch.roll(&RollEntry::default()));
    assert_eq!((patch.is_empty(), patch.turns(), patch.current_turn()), (true, 0, 0));
    patch.toolcall(&ObjectId::new("a"));
    assert!(patch.activation(&ObjectId::new("b")) && patch.roll(&RollEntry::default()));
    assert_eq!((patch.is_empty(), patch.turns(), patch.current_turn()), (false, 1, 0));
}

#[rstest]
#[case::one_each(&["a", "b"], &["a", "b"], &["a=a", "b=b"], &[])]
#[case::results_in_another_order(&["a", "b"], &["b", "a"], &["a=a", "b=b"], &[])]
#[case::the_same_call_id_twice(&["a", "a"], &["a", "a~0123456789abcdef"], &["a=a", "a=a~0123456789abcdef"], &[])]
#[case::a_call_id_of_an_earlier_turn(&["a"], &["a~0123456789abcdef"], &["a=a~0123456789abcdef"], &[])]
#[case::an_empty_call_id(&[""], &["toolcall:"], &["=toolcall:"], &[])]
#[case::no_result_yet(&["a", "b"], &["b"], &["b=b"], &[])]
#[case::no_answer_made_it(&["a"], &["x", "a", "y"], &["a=a"], &["x=x", "y=y"])]
#[case::a_tilde_without_a_number(&["a~", "b~x"], &["a~", "b~x"], &["a~=a~", "b~x=b~x"], &[])]
fn each_call_has_its_result(
    #[case] calls: &[&str],
    #[case] recorded: &[&str],
    #[case] answered: &[&str],
    #[case] others: &[&str],
) {
    let calls: Vec<Value> = calls.iter().map(|id| json!({ "type": "toolCall", "id": id })).collect();
    let answers = [json!({ "content": calls }), json!({ "content": "done" })];
    let payload = turn(json!({ "assistant": answers, "toolcall_ids": recorded }));
    let said = Chat::of_payload(&payload).turns().next().unwrap().conversation();
    let line = |said: &Message<'_>| match said {
        Message::User(_) => "user".to_owned(),
        Message::Assistant(answer) if answer.content().is_string() => "done".to_owned(),
        Message::Assistant(_) => "calls".to_owned(),
        Message::Toolcall { id, call_id } => format!("{call_id}={id}"),
    };
    let expected = [&["calls"], answered, &["done"], others].concat();
    assert_eq!(said.iter().map(line).collect::<Vec<_>>(), expected);
}

#[rstest]
#[case::not_undone(json!({ "undone": "yes" }), RollEntry::default())]
#[case::undone(json!({ "undone": true }), RollEntry { undone: true, ..RollEntry::default() })]
#[case::a_receipt_of_the_future(json!({ "receipt": { "sum": 1 } }), RollEntry::default())]
#[case::ids_and_something_else(json!({ "results": ["a", 1, null] }), RollEntry { results: ids(&["a"]), ..RollEntry::default() })]
#[case::no_lists(json!({ "excerpts": "a", "arguments": { "a": 1 } }), RollEntry::default())]
#[case::no_object(json!(7), RollEntry::default())]
fn damaged_roll_is_read_in_part(#[case] entry: Value, #[case] expected: RollEntry) {
    assert_eq!(roll_of(&entry), expected);
}

/// An entry without its file, its line or its path is not a notice; a hash that can't be one is left out.
#[rstest]
#[case::no_file(json!({ "file": null }), None)]
#[case::no_line(json!({ "line": "a" }), None)]
#[case::no_path(json!({ "path": 1 }), None)]
#[case::no_hash(json!({ "source_hash": "a" }), Some(None))]
#[case::a_field_of_the_future(json!({ "after": 1 }), Some(None))]
fn damaged_notice_is_read_in_part(#[case] fields: Value, #[case] hash: Option<Option<Digest>>) {
    let mut notice = json!({ "file": "a", "line": Digest::of(b"a"), "path": "/a" });
    fields.as_object().unwrap().iter().for_each(|(name, value)| notice[name] = value.clone());
    let payload = turn(json!({ "rolls": [{ "notices": [notice] }] }));
    assert_eq!(Chat::of_payload(&payload).notices().next().map(|notice| notice.hash), hash);
}

#[test]
fn text_is_found_by_its_id() {
    let blocks = json!([{ "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "so" }]);
    let mut patch = ChatPatch::new(0);
    patch.message(&json!({ "role": "user", "content": "go" })).unwrap();
    patch.message(&json!({ "role": "assistant", "content": blocks })).unwrap();
    let document = patch::apply(empty(), [&patch.into_patch()]).unwrap();
    for text in ["go", "hm", "so"] {
        let id = said_id(text);
        assert!(is_said_id(&id));
        assert_eq!(Chat::of(&document).said(&id), Some(text));
    }
    assert_eq!(Chat::of(&document).said(&said_id("other")), None);
    let id = said_id("go");
    for name in [id.to_uppercase().as_str(), &id[1..], &format!("{id}0"), "", &"g".repeat(id.len())] {
        assert!(!is_said_id(name) || name == id, "{name}");
    }
}

#[test]
fn a_fork_has_the_same_turns_under_its_own_name() {
    let mut patch = ChatPatch::new(0);
    patch.message(&json!({ "role": "user", "content": "hello" })).unwrap();
    let chat = patch::apply(empty(), [patch.patch()]).unwrap();
    let own = adopt(&SessionId::new("fork").unwrap(), &chat, &[&chat], &[]).unwrap();
    assert_eq!((own.id().as_str(), own.text("session_ref")), ("chat:fork", Some("session:fork")));
    assert_eq!(Chat::of(&own), Chat::of(&chat));
    assert_eq!(Chat::of(&own).len(), 1);
}

#[test]
fn a_patch_of_another_version_of_the_chat_does_not_fit() {
    let mut patch = ChatPatch::new(2);
    patch.toolcall(&ObjectId::new("a"));
    let patch: Patch = patch.into_patch();
    assert_eq!(patch::apply(empty(), [&patch]).unwrap_err().code(), ErrorCode::StoreCorrupt);
}
