//! How long text stays: settings, harnesses that can't shorten, and the old text of edits.

use context_engine::{Edit, Stay, Stays};
use rstest::rstest;
use serde_json::json;

use crate::bench::{Backend, Bench, tool};
use crate::chat::arguments_of;
use crate::leaving::{after_a_pause, answer, chat, go_on_at_length, gone, leave, plan_text, thought};

/// Nothing but calls leaves, and at a fixed age.
const CALLS: Stays =
    Stays { thinking: Stay::Keep, calls: Stay::Calls(5), prose: Stay::Keep, weight: Some(8.0) };

#[rstest]
#[case::kept(Stays { thinking: Stay::Keep, calls: Stay::Keep, prose: Stay::Keep, weight: Some(8.0) }, 60, false)]
#[case::not_yet(Stays { thinking: Stay::Calls(30), calls: Stay::Keep, prose: Stay::Keep, weight: Some(8.0) }, 28, false)]
#[case::after_a_number_of_calls(Stays { thinking: Stay::Calls(5), calls: Stay::Keep, prose: Stay::Keep, weight: Some(8.0) }, 6, true)]
#[case::prose(Stays { thinking: Stay::Keep, calls: Stay::Keep, prose: Stay::Calls(3), weight: Some(8.0) }, 4, true)]
#[case::calls(Stays { thinking: Stay::Calls(1), calls: Stay::Calls(2), prose: Stay::Calls(1), weight: Some(8.0) }, 6, true)]
#[tokio::test(flavor = "multi_thread")]
async fn settings_say_how_long(#[case] stays: Stays, #[case] calls: usize, #[case] leaves: bool) {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, stays).await;
    chat.user("look");
    chat.advance().await;
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
    chat.user("look");
    chat.advance().await;
    let said =
        json!([{ "type": "thinking", "thinking": thought() }, { "type": "text", "text": plan_text() }]);
    answer(&mut chat, "call_1", said, json!({}), json!({ "path": "a" })).await;
    assert_eq!(leave(&mut chat, 80).await.edits, []);
    let edits = go_on_at_length(&mut chat, 60).await;
    let plan = after_a_pause(&mut chat, edits).await;
    assert!(!plan.edits.is_empty() && gone(&plan).is_empty(), "outputs leave, and no call does");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_loses_its_old_text_first() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, Stays { calls: Stay::Keep, weight: Some(8.0), ..Stays::default() }).await;
    chat.user("look");
    chat.advance().await;
    let (old, new) = ("the old line\n".repeat(200), "the new line\n".repeat(150));
    let args = json!({ "path": "a", "edits": [{ "oldText": old, "newText": new }] });
    answer(&mut chat, "call_1", json!([]), json!({}), args).await;
    let plan = leave(&mut chat, 2).await;
    let [call] = &arguments_of(&plan)[..] else { panic!("{:?}", plan.edits) };
    let edit = &call.args["edits"][0];
    assert!(edit["oldText"].as_str().unwrap().starts_with("[collapsed #"), "{edit}");
    assert_eq!(edit["newText"], new.as_str());
    // A resume shows the same, and the rest leaves later.
    let count = chat.messages.len();
    chat.engine.resync(chat.messages.clone(), count, &chat.call()).await.unwrap();
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
    let edits = go_on_at_length(&mut chat, 12).await;
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
    chat.user("look");
    chat.advance().await;
    let mut edits = go_on_at_length(&mut chat, 1).await;
    let of = |id: &str| json!({ "command": format!("make {id}") });
    let calls = ["first", "second", "third"];
    let blocks = calls.map(|id| json!({ "type": "toolCall", "id": id, "name": "bash", "arguments": of(id) }));
    chat.say(json!({ "role": "assistant", "timestamp": chat.now_ms, "content": blocks }));
    for id in ["third", "first", "second"] {
        let output = format!("the output of {id}. ").repeat(20);
        let birth = chat.engine.receive(tool(id, "bash", of(id), &output)).await.unwrap();
        let text = birth.header.map_or(output.clone(), |header| format!("{header}\n{output}"));
        let content = json!([{ "type": "text", "text": text }]);
        chat.say(json!({ "role": "toolResult", "toolCallId": id, "toolName": "bash", "content": content }));
    }
    edits.extend(go_on_at_length(&mut chat, 12).await);
    let plan = after_a_pause(&mut chat, edits).await;
    let lines = plan.edits.iter().rev().find_map(|edit| match edit {
        Edit::Result { key, text: Some(text), .. } if key == "m2" => Some(text.clone()),
        _ => None,
    });
    let lines = lines.unwrap();
    for id in calls {
        let handle = lines.lines().find_map(|line| line.strip_prefix(&format!("bash make {id} id=")));
        let back = chat.engine.activate(handle.unwrap_or_else(|| panic!("{lines}")), None).await.unwrap();
        assert!(back.content.unwrap().starts_with(&format!("the output of {id}. ")), "{lines}");
    }
}
