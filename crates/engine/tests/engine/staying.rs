//! The time for which text stays: settings, harnesses that can't shorten, the old text of edits, and text that a person or the
//! model restores, pins or steers.

use context_engine::{Edit, Plan, Stay, Stays};
use context_model::id::ObjectId;
use context_model::object::Status;
use rstest::rstest;
use serde_json::json;

use crate::bench::{Backend, Bench, call, search, session, tool, user};
use crate::chat::arguments_of;
use crate::leaving::{
    after_a_pause, answer, answer_at_length, chat, gone, leave, lines_of, plan_text, thought,
};
use crate::truth;

/// Nothing but calls leaves, and at a fixed age.
const CALLS: Stays = Stays {
    thinking: Stay::Keep,
    calls: Stay::Calls(5),
    prose: Stay::Keep,
    weight: Some(8.0),
    debt_cap: None,
};

#[rstest]
#[case::kept(Stays { thinking: Stay::Keep, calls: Stay::Keep, prose: Stay::Keep, weight: Some(8.0), debt_cap: None }, 60, false)]
#[case::not_yet(Stays { thinking: Stay::Calls(30), calls: Stay::Keep, prose: Stay::Keep, weight: Some(8.0), debt_cap: None }, 28, false)]
#[case::after_a_number_of_calls(Stays { thinking: Stay::Calls(5), calls: Stay::Keep, prose: Stay::Keep, weight: Some(8.0), debt_cap: None }, 6, true)]
#[case::prose(Stays { thinking: Stay::Keep, calls: Stay::Keep, prose: Stay::Calls(3), weight: Some(8.0), debt_cap: None }, 4, true)]
#[case::calls(Stays { thinking: Stay::Calls(1), calls: Stay::Calls(2), prose: Stay::Calls(1), weight: Some(8.0), debt_cap: None }, 6, true)]
#[tokio::test(flavor = "multi_thread")]
async fn settings_say_how_long(#[case] stays: Stays, #[case] calls: usize, #[case] leaves: bool) {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, stays).await;
    chat.asks("look").await;
    let said =
        json!([{ "type": "thinking", "thinking": thought() }, { "type": "text", "text": plan_text() }]);
    answer(&mut chat, "call_1", said, json!({}), json!({ "path": "a" })).await;
    assert_eq!(!leave(&mut chat, calls).await.edits.is_empty(), leaves);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_outputs_and_arguments_leaves_where_the_harness_can_show_no_less() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, Stays::default()).await;
    chat.shortens = false;
    chat.asks("look").await;
    let said =
        json!([{ "type": "thinking", "thinking": thought() }, { "type": "text", "text": plan_text() }]);
    answer(&mut chat, "call_1", said, json!({}), json!({ "path": "a" })).await;
    assert_eq!(leave(&mut chat, 80).await.edits, []);
    let edits = answer_at_length(&mut chat, 60).await;
    let plan = after_a_pause(&mut chat, edits).await;
    assert!(!plan.edits.is_empty() && gone(&plan).is_empty(), "outputs leave, and no call does");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_loses_its_old_text_first() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, Stays { calls: Stay::Keep, weight: Some(8.0), ..Stays::default() }).await;
    chat.asks("look").await;
    let (old, new) = ("the old line\n".repeat(200), "the new line\n".repeat(150));
    let args = json!({ "path": "a", "edits": [{ "oldText": old, "newText": new }] });
    answer(&mut chat, "call_1", json!([]), json!({}), args).await;
    let plan = leave(&mut chat, 2).await;
    let [call] = &arguments_of(&plan)[..] else { panic!("{:?}", plan.edits) };
    let edit = &call.args["edits"][0];
    assert!(edit["oldText"].as_str().unwrap().starts_with("[collapsed #"), "{edit}");
    assert_eq!(edit["newText"], new.as_str());
    // A resume shows the same, and the rest leaves later.
    chat.reads_again().await;
    assert_eq!(arguments_of(&chat.advance().await).as_slice(), std::slice::from_ref(call));
    let plan = leave(&mut chat, 60).await;
    let [call] = &arguments_of(&plan)[..] else { panic!("{:?}", plan.edits) };
    assert!(call.args["edits"][0]["newText"].as_str().unwrap().starts_with("[collapsed #"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_calls_that_are_old_enough_become_lines() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, CALLS).await;
    chat.user("look");
    let edits = answer_at_length(&mut chat, 12).await;
    let plan = after_a_pause(&mut chat, edits).await;
    // The user's message is m0, and the first call, m1 with its result m2, carries the lines.
    let old: Vec<String> = (3..=14).map(|number| format!("m{number}")).collect();
    let mut gone = gone(&plan);
    gone.sort_by_key(|key| key[1..].parse::<usize>().unwrap());
    assert_eq!(gone, old);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_names_its_own_call_whichever_is_answered_first() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, CALLS).await;
    chat.asks("look").await;
    let mut edits = answer_at_length(&mut chat, 1).await;
    let of = |id: &str| json!({ "command": format!("make {id}") });
    let calls = ["first", "second", "third"];
    let blocks = calls.map(|id| json!({ "type": "toolCall", "id": id, "name": "bash", "arguments": of(id) }));
    chat.say(json!({ "role": "assistant", "timestamp": chat.now_ms, "content": blocks }));
    for id in ["third", "first", "second"] {
        let output = format!("the output of {id}. ").repeat(20);
        chat.reports(id, "bash", of(id), &output, Status::Ok).await;
    }
    edits.extend(answer_at_length(&mut chat, 12).await);
    let plan = after_a_pause(&mut chat, edits).await;
    let lines = lines_of(&plan);
    for id in calls {
        let handle = lines.lines().find_map(|line| line.strip_prefix(&format!("bash make {id} id=")));
        let back = chat.engine.activate(handle.unwrap_or_else(|| panic!("{lines}")), None).await.unwrap();
        assert!(back.content.unwrap().starts_with(&format!("the output of {id}. ")), "{lines}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_text_becomes_stale_again() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = truth::chat(&bench, "s").await;
    chat.user("look");
    for n in 0..7 {
        chat.run(&format!("call_{n}"), "custom", json!({}), &truth::lines("output", 100)).await;
    }
    for _ in 0..5 {
        chat.done();
        chat.user("on");
        assert_eq!(chat.advance().await.edits, []);
    }
    // A dead cache makes all of them stale.
    chat.now_ms += 300_001;
    let rolled = chat.engine.roll_now(&chat.call()).await.unwrap().edits.len();
    let undone = chat.engine.undo_roll().await.unwrap().edits.len();
    assert!(rolled == undone && rolled >= 5, "{rolled} {undone}");
    for turn in 0..2 {
        chat.done();
        chat.user("on");
        assert_eq!(chat.advance_after_a_pause().await.edits, [], "turn {turn}: a person wanted to see it");
    }
    let mut again = 0;
    for _ in 0..20 {
        chat.done();
        chat.user("on");
        again += chat.advance_after_a_pause().await.edits.len();
    }
    assert_eq!(again, rolled);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_steer_the_context_take_no_place_in_the_window() {
    let (_bench, engine) = session(Backend::Memory).await;
    engine.append_turn(user("u")).await.unwrap();
    for n in 0..5 {
        engine.record_toolcall(call(&format!("read_{n}"), "text")).await.unwrap();
    }
    for (n, name) in ["unpin", "unpin", "pin", "activate", "deactivate"].into_iter().enumerate() {
        engine.record_toolcall(tool(&format!("control_{n}"), name, json!({}), "done")).await.unwrap();
    }
    let reads: Vec<ObjectId> = (0..5).map(|n| ObjectId::new(format!("read_{n}"))).collect();
    let sets = engine.session_sets().await.unwrap();
    assert_eq!(sets.active_set.len(), 10, "their answers are there in their own turn");
    engine.append_turn(user("next")).await.unwrap();
    assert_eq!(engine.session_sets().await.unwrap().active_set, reads);
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_and_pinned_text_stays_whole() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = truth::chat(&bench, "s").await;
    chat.user("run");
    let output = truth::lines("a long output", 2_000);
    chat.run("big", "bash", json!({ "command": "run" }), &output).await;
    chat.done();
    // Shown as an excerpt only.
    assert_eq!(chat.advance().await.edits.len(), 1);
    chat.user("all of it");
    let whole = chat.engine.activate("big", None).await.unwrap();
    assert!(!whole.visible);
    let found = chat.engine.search(&search("long", Some("s"))).await.unwrap();
    let args = json!({ "id": found[0].handle });
    chat.run("again", "activate", args, &whole.content.unwrap()).await;
    chat.ends().await;
    assert!(chat.engine.pin("big").await.unwrap().ok);
    let has_gone = |plan: &Plan| {
        let mut edits = plan.edits.iter();
        edits.any(|edit| matches!(edit, Edit::Result { object, .. } if object.as_str() == "again"))
    };
    for turn in 0..8 {
        chat.user("on");
        assert!(!has_gone(&chat.advance_after_a_pause().await), "turn {turn}");
        assert!(chat.engine.activate("big", None).await.unwrap().visible, "turn {turn}");
        chat.done();
    }
    assert!(chat.engine.unpin("big").await.unwrap().ok);
    assert!(chat.engine.deactivate("big").await.unwrap().ok);
    chat.user("on");
    assert!(has_gone(&chat.advance_after_a_pause().await));
}
