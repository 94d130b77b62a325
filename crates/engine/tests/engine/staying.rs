//! How long text stays: settings, harnesses that can't shorten, and the old text of edits.

use context_engine::{Stay, Stays};
use rstest::rstest;
use serde_json::json;

use crate::bench::{Backend, Bench};
use crate::chat::arguments_of;
use crate::leaving::{answer, chat, leave, plan_text, thought};

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
