//! Turns of a chat: written as patches, read back, and what a damaged document still tells.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use context_model::chat::{Chat, ChatPatch, Message, RollEntry, adopt, is_said_id, said_id};
use context_model::chat::{Receipt, RollReason};
use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::{self, Patch};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

const GOLDEN: &str = include_str!("../../../fixtures/golden/chat.json");

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
fn a_message_that_is_no_turn_is_refused_and_nothing_is_added(#[case] message: Value) {
    let mut patch = ChatPatch::new(1);
    assert_eq!(patch.message(&message).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!((patch.is_empty(), patch.turns()), (true, 1));
}

#[test]
fn a_message_may_be_as_deep_as_what_is_stored_can_be_read() {
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
fn a_roll_is_read_as_far_as_it_goes(#[case] entry: Value, #[case] expected: RollEntry) {
    assert_eq!(roll_of(&entry), expected);
}

/// What lacks its file, its line or its path is no notice; a hash that can't be one is none.
#[rstest]
#[case::no_file(json!({ "file": null }), None)]
#[case::no_line(json!({ "line": "a" }), None)]
#[case::no_path(json!({ "path": 1 }), None)]
#[case::no_hash(json!({ "source_hash": "a" }), Some(None))]
#[case::a_field_of_the_future(json!({ "after": 1 }), Some(None))]
fn a_notice_is_read_as_far_as_it_goes(#[case] fields: Value, #[case] hash: Option<Option<Digest>>) {
    let mut notice = json!({ "file": "a", "line": Digest::of(b"a"), "path": "/a" });
    fields.as_object().unwrap().iter().for_each(|(name, value)| notice[name] = value.clone());
    let payload = turn(json!({ "rolls": [{ "notices": [notice] }] }));
    assert_eq!(Chat::of_payload(&payload).notices().next().map(|notice| notice.hash), hash);
}

#[test]
fn what_was_said_is_found_by_its_id() {
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

/// One thing that is added to a chat.
#[derive(Clone, Debug)]
enum Step {
    User(Value),
    Answer(Value, Value),
    Call(ObjectId),
    Activation(ObjectId),
    Roll(RollEntry),
}

fn id() -> impl Strategy<Value = ObjectId> {
    "[a-c]{1,2}(~[0-9])?|call/[~\"]".prop_map(|id| ObjectId::new(id.as_str()))
}

fn roll() -> impl Strategy<Value = RollEntry> {
    let list = || prop::collection::vec(id(), 0..3);
    let receipt = (0..9_usize, 0..9_u64, 0.0..1e6, 0.0..1e6, any::<Option<u32>>()).prop_map(
        |(items, removed_tokens, cost, gain, pays_back_after_calls)| {
            let reason = RollReason::Pressure;
            Receipt {
                items,
                reasoning_lost: items % 3,
                reasoning_lost_running: 0,
                removed_tokens,
                cost,
                gain,
                pays_back_after_calls,
                reason,
            }
        },
    );
    let words = prop::collection::vec("[0-9a-f]{11}", 0..3);
    let more = (list(), words, prop::collection::vec(list(), 0..3), (list(), list()));
    (list(), list(), more, prop::option::of(receipt), any::<[bool; 2]>()).prop_map(
        |(results, arguments, (old_texts, words, pages, (lines, changed)), receipt, [bound, undone])| {
            RollEntry { results, arguments, old_texts, words, pages, lines, changed, receipt, bound, undone }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let content = || prop_oneof![any::<String>().prop_map(Value::from), Just(json!([{ "type": "text" }]))];
    prop_oneof![
        content().prop_map(Step::User),
        (content(), any::<u8>()).prop_map(|(content, n)| Step::Answer(content, json!({ "usage": n }))),
        id().prop_map(Step::Call),
        id().prop_map(Step::Activation),
        roll().prop_map(Step::Roll),
    ]
}

/// What a chat holds, kept without a patch.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    user: Option<Value>,
    answers: Vec<(Value, Value)>,
    calls: Vec<ObjectId>,
    activated: Vec<ObjectId>,
    rolls: Vec<RollEntry>,
}

fn add(patch: &mut ChatPatch, step: &Step) {
    match step {
        Step::User(content) => patch.message(&json!({ "role": "user", "content": content })).unwrap(),
        Step::Answer(content, meta) => {
            let mut message = meta.clone();
            message["role"] = "assistant".into();
            message["content"] = content.clone();
            patch.message(&message).unwrap();
        }
        Step::Call(id) => patch.toolcall(id),
        Step::Activation(id) => drop(patch.activation(id)),
        Step::Roll(roll) => drop(patch.roll(roll)),
    }
}

fn expect(turns: &mut Vec<Expected>, step: &Step) {
    match step {
        Step::User(content) => turns.push(Expected { user: Some(content.clone()), ..Expected::default() }),
        Step::Answer(..) | Step::Call(_) if turns.is_empty() => turns.push(Expected::default()),
        _ => {}
    }
    let Some(turn) = turns.last_mut() else { return };
    match step {
        Step::User(_) => {}
        Step::Answer(content, meta) => turn.answers.push((content.clone(), meta.clone())),
        Step::Call(id) => turn.calls.push(id.clone()),
        Step::Activation(id) => turn.activated.push(id.clone()),
        Step::Roll(roll) => turn.rolls.push(roll.clone()),
    }
}

fn read(chat: Chat<'_>) -> Vec<Expected> {
    let turns = chat.turns().map(|turn| Expected {
        user: turn.user().cloned(),
        answers: turn.answers().map(|a| (a.content().clone(), json!(a.meta()))).collect(),
        calls: turn.toolcalls().map(ObjectId::new).collect(),
        activated: turn.activated().map(ObjectId::new).collect(),
        rolls: turn.rolls().collect(),
    });
    turns.collect()
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        "[a~]{0,3}".prop_map(Value::from)
    ];
    let name = "user|assistant|toolcall_ids|activated_ids|rolls|content|type|id|receipt|results";
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_added_is_read_back(steps in prop::collection::vec(prop::collection::vec(step(), 0..4), 0..8)) {
        let mut document = empty();
        let mut expected = Vec::new();
        for steps in &steps {
            let mut patch = ChatPatch::new(Chat::of(&document).len());
            for step in steps {
                add(&mut patch, step);
                expect(&mut expected, step);
            }
            prop_assert_eq!(patch.turns(), expected.len());
            document = patch::apply(document, [patch.patch()]).unwrap();
        }
        let chat = Chat::of(&document);
        prop_assert_eq!(read(chat), &expected[..]);
        prop_assert_eq!(document.field("turn_count"), Some(&json!(expected.len())));
        let calls: Vec<&ObjectId> = expected.iter().flat_map(|turn| &turn.calls).collect();
        prop_assert_eq!(document.field("toolcall_refs"), Some(&json!(calls)));
        let rolls: Vec<RollEntry> = expected.iter().flat_map(|turn| turn.rolls.clone()).collect();
        prop_assert_eq!(chat.rolls().collect::<Vec<_>>(), rolls);
        let activated: Vec<ObjectId> = expected.iter().flat_map(|turn| turn.activated.clone()).collect();
        prop_assert_eq!(chat.activated().collect::<Vec<_>>(), activated);
        let stays = expected.iter().enumerate();
        let stays = stays.flat_map(|(n, turn)| turn.calls.iter().chain(&turn.activated).map(move |id| (n, id.clone())));
        prop_assert_eq!(chat.stays().collect::<Vec<_>>(), stays.collect::<Vec<_>>());
    }

    #[test]
    fn fields_of_the_future_stay(steps in prop::collection::vec(step(), 1..6)) {
        let (id, kind, source, mut payload) = empty().into_parts();
        let known = json!({ "user": "x", "assistant": [], "toolcall_ids": [], "activated_ids": [], "rolls": [], "mood": 1 });
        payload.insert("turns".into(), json!([known]));
        payload.insert("weather".into(), json!({ "sun": true }));
        let document = Document::new(id, kind, source, payload).unwrap();
        let mut patch = ChatPatch::new(1);
        for step in &steps {
            add(&mut patch, step);
        }
        let document = patch::apply(document, [&patch.into_patch()]).unwrap();
        prop_assert_eq!(document.field("weather"), Some(&json!({ "sun": true })));
        prop_assert_eq!(&document.field("turns").unwrap()[0]["mood"], &json!(1));
    }

    #[test]
    fn a_damaged_chat_is_read_as_far_as_it_goes(turns in json_value()) {
        let payload = json!({ "turns": turns });
        let chat = Chat::of_payload(&payload);
        let listed = payload["turns"].as_array().map_or(0, Vec::len);
        prop_assert_eq!((chat.len(), chat.is_empty()), (listed, listed == 0));
        prop_assert_eq!(read(chat).len(), listed);
        let calls: usize = chat.turns().map(|turn| turn.toolcalls().count() + turn.activated().count()).sum();
        prop_assert_eq!(chat.stays().count(), calls);
        for turn in chat.turns() {
            let referenced = turn.conversation();
            let referenced = referenced.iter().filter(|said| matches!(said, Message::Toolcall { .. })).count();
            prop_assert!(referenced <= turn.toolcalls().count());
        }
    }
}

#[test]
fn a_patch_of_another_version_of_the_chat_does_not_fit() {
    let mut patch = ChatPatch::new(2);
    patch.toolcall(&ObjectId::new("a"));
    let patch: Patch = patch.into_patch();
    assert_eq!(patch::apply(empty(), [&patch]).unwrap_err().code(), ErrorCode::StoreCorrupt);
}
