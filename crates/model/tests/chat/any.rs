//! Any chat is read back as it was written.

use context_model::chat::Spending;

use super::*;

/// One thing that is added to a chat.
#[derive(Clone, Debug)]
enum Step {
    User(Value),
    Answer(Value, Value),
    Call(ObjectId),
    Activation(ObjectId),
    Roll(Box<RollEntry>),
}

fn id() -> impl Strategy<Value = ObjectId> {
    "[a-c]{1,2}(~[0-9])?|call/[~\"]".prop_map(|id| ObjectId::new(id.as_str()))
}

fn roll() -> impl Strategy<Value = RollEntry> {
    let list = || prop::collection::vec(id(), 0..3);
    let receipt = (0..9_usize, 0..9_u64, 0.0..1e6, 0.0..1e6, any::<Option<u32>>()).prop_map(
        |(items, removed_tokens, cost, gain, pays_back_after_calls)| {
            let reason = RollReason::Pressure;
            RollReceipt {
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
    let more = (list(), words, prop::collection::vec(list(), 0..3), (list(), list(), list()));
    let sum = || -1.0e9..1.0e9_f64;
    let spending = (any::<[u64; 2]>(), sum(), sum(), any::<i64>(), any::<bool>()).prop_map(
        |([answers, kept], untouched, debt, removed, dead)| Spending {
            answers,
            kept,
            untouched,
            debt,
            removed,
            dead,
        },
    );
    let costs = (prop::option::of(receipt), prop::option::of(spending));
    (list(), list(), more, costs, any::<[bool; 3]>()).prop_map(
        |(
            results,
            arguments,
            (old_texts, words, pages, (lines, changed, whole)),
            (receipt, spending),
            [bound, undone, anew],
        )| {
            RollEntry {
                results,
                arguments,
                old_texts,
                prose: words,
                call_digests: pages,
                lines,
                changed,
                whole,
                receipt,
                bound,
                undone,
                spending,
                anew,
            }
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
        roll().prop_map(|roll| Step::Roll(Box::new(roll))),
    ]
}

/// The contents of a chat, kept without a patch.
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
        Step::Roll(roll) => turn.rolls.push((**roll).clone()),
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
    fn added_turns_are_read_back(steps in prop::collection::vec(prop::collection::vec(step(), 0..4), 0..8)) {
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
    fn damaged_chat_is_read_in_part(turns in json_value()) {
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
