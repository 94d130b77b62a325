//! Text leaves the model's sight by its age in model calls and its length, in any state of the sets.

use context_engine::{Call, Edit, Engine, IncomingMessage, Options, Plan, Stays};
use context_model::id::SessionId;
use context_model::object::Status;
use context_model::tokens;
use context_projection::{Curve, Need, Prices};
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench};
use crate::chat::{Chat, arguments_of};

fn output() -> String {
    (1..=200).map(|n| format!("line {n} of what the tool said\n")).collect()
}

fn text_of(plan: &Plan, id: &str) -> Option<Option<String>> {
    plan.edits.iter().find_map(|edit| match edit {
        Edit::Result { object, text, .. } if object.as_str() == id => Some(text.clone()),
        _ => None,
    })
}

fn is_reference(plan: &Plan, id: &str) -> bool {
    text_of(plan, id).flatten().is_some_and(|text| text.starts_with("toolcall_ref "))
}

/// The age from which on an output may leave on a dead cache.
fn dead_age(output: &str) -> u64 {
    dead_age_at(output, Need::USUAL_DENSITY)
}

/// The same on a model that counts `density` tokens for each estimated one.
fn dead_age_at(output: &str, density: f64) -> u64 {
    let tokens = |text: &str| tokens::estimate(text) as u64;
    let whole = tokens(&format!("id=01234567\n{output}"));
    let saved = whole - tokens("toolcall_ref id=01234567 tool=read status=ok");
    let need = Need { lambda: Need::LAMBDA * Need::OF_OUTPUTS, prices: Prices::new(0.1, 1.25), density };
    need.age_at(need.wanted(Curve::TOOL, whole * 4), saved, true)
}

/// A session whose first turn has one long output and one long write.
async fn first_turn(bench: &Bench) -> Chat {
    first_turn_of(bench.open("s").await).await
}

async fn first_turn_of(engine: Engine) -> Chat {
    let mut chat = Chat::new(engine);
    chat.user("look");
    chat.run("call_1", "read", json!({ "path": "somewhere.txt" }), &output()).await;
    chat.run("call_2", "write", json!({ "path": "b.txt", "content": output() }), "written").await;
    chat
}

/// Makes short calls, each with a separate answer.
async fn make_calls(chat: &mut Chat, calls: u64) {
    for _ in 0..calls {
        let id = format!("step_{}", chat.messages.len());
        chat.run(&id, "bash", json!({ "command": "make" }), "made").await;
    }
}

/// The first turn, and enough calls that all its long texts may leave.
async fn long_ago(bench: &Bench) -> Chat {
    let mut chat = first_turn(bench).await;
    make_calls(&mut chat, dead_age(&output()) + 1).await;
    chat
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn output_is_whole_until_it_is_old_and_then_a_reference(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let mut chat = first_turn(&bench).await;
    // The next request would be the second one that shows it.
    let mut age = 1;
    let plan = loop {
        let plan = chat.advance_after_a_pause().await;
        if !plan.edits.is_empty() {
            break plan;
        }
        make_calls(&mut chat, 1).await;
        age += 1;
    };
    assert_eq!(age, dead_age(&output()));
    assert!(is_reference(&plan, "call_1"));
    let brought = chat.engine.activate("call_1", None).await.unwrap();
    assert_eq!((brought.content, brought.visible), (Some(output()), false));

    make_calls(&mut chat, 1).await;
    let plan = chat.advance_after_a_pause().await;
    let [write] = &arguments_of(&plan)[..] else { panic!("{:?}", plan.edits) };
    assert!(write.args["content"].as_str().unwrap().starts_with("[collapsed #"), "{:?}", write.args);
}

/// Makes a call; its answer reports this many times the tokens that its request is estimated to have.
async fn run_counted(chat: &mut Chat, id: &str, output: &str, times: u64) {
    let reported = times * chat.advance().await.context_tokens;
    let call = json!({ "type": "toolCall", "id": id, "name": "read", "arguments": { "path": id } });
    let usage = json!({ "input": reported, "cacheRead": 0, "cacheWrite": 0 });
    chat.say(json!({ "role": "assistant", "content": [call], "timestamp": chat.now_ms, "usage": usage }));
    chat.reports(id, "read", json!({ "path": id }), output, Status::Ok).await;
}

#[rstest]
#[case::dense(3, 3.0)]
#[case::sparse(1, Need::USUAL_DENSITY)]
#[case::implausible(7, Need::USUAL_DENSITY)]
#[tokio::test(flavor = "multi_thread")]
async fn output_leaves_sooner_where_the_model_counts_more_tokens(#[case] times: u64, #[case] density: f64) {
    let bench = Bench::new(Memory);
    let mut chat = Chat::new(bench.open("s").await);
    chat.user("look");
    run_counted(&mut chat, "call_1", &output(), times).await;
    let mut age = 0;
    while !is_reference(&chat.advance_after_a_pause().await, "call_1") {
        make_calls(&mut chat, 1).await;
        age += 1;
    }
    assert_eq!(age, dead_age_at(&output(), density));
}

/// Earlier requests had the output that has left since, so that their tokens say nothing of what is visible now.
#[tokio::test(flavor = "multi_thread")]
async fn resumed_session_counts_tokens_as_before() {
    let bench = Bench::new(Memory);
    let mut chat = Chat::new(bench.open("s").await);
    chat.user(&output());
    run_counted(&mut chat, "call_1", &output(), 2).await;
    for number in 2.. {
        run_counted(&mut chat, &format!("call_{number}"), "made", 1).await;
        if is_reference(&chat.advance_after_a_pause().await, "call_1") {
            break;
        }
    }
    chat.done();
    let last = chat.advance().await.context_tokens;
    chat.engine.close().await.unwrap();
    chat.engine = bench.open("s").await;
    let again = chat.reads_again().await.context_tokens;
    assert!(last.abs_diff(again) * 20 < last, "{last} and {again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_the_window_nor_the_turns_take_anything_out_of_sight() {
    let bench = Bench::new(Memory);
    let stays = Stays { weight: Some(8.0), ..Stays::default() };
    let mut chat = first_turn_of(Engine::open(Options { stays, ..bench.options("s") }).await.unwrap()).await;
    for turn in ["two", "three", "four"] {
        chat.user(turn);
        assert_eq!(chat.advance_after_a_pause().await.edits, [], "{turn}");
    }
    assert!(!chat.is_active("call_1").await, "state and sight are two things");
}

#[tokio::test(flavor = "multi_thread")]
async fn deactivated_output_leaves_at_once() {
    let bench = Bench::new(Memory);
    let mut chat = first_turn(&bench).await;
    chat.advance().await;
    chat.done();
    assert!(chat.engine.deactivate("call_1").await.unwrap().ok);
    assert!(is_reference(&chat.advance_after_a_pause().await, "call_1"));
    // A reference would be longer than the first of these.
    chat.run("call_3", "bash", json!({ "command": "make" }), "made").await;
    chat.run("call_4", "bash", json!({ "command": "make" }), &output()).await;
    chat.advance().await;
    chat.done();
    for id in ["call_3", "call_4"] {
        assert!(chat.engine.deactivate(id).await.unwrap().ok);
    }
    let plan = chat.advance_after_a_pause().await;
    assert!(is_reference(&plan, "call_4"));
    assert_eq!(text_of(&plan, "call_3"), None);

    // Also what the window has let go before.
    let mut chat = Chat::new(bench.open("t").await);
    chat.user("look");
    chat.run("other", "read", json!({ "path": "c.txt" }), &output()).await;
    for turn in ["two", "three", "four"] {
        chat.done();
        chat.asks(turn).await;
    }
    chat.done();
    assert!(!chat.engine.deactivate("other").await.unwrap().ok, "it is not active");
    assert!(is_reference(&chat.advance_after_a_pause().await, "other"));
}

#[tokio::test(flavor = "multi_thread")]
async fn activated_output_stays_whole_while_active_and_ages_anew() {
    let (_bench, mut chat) = Chat::on(Memory).await;
    chat.user("look");
    chat.run("call_1", "read", json!({ "path": "somewhere.txt" }), &output()).await;
    make_calls(&mut chat, 1).await;
    let again = chat.engine.activate("call_1", None).await.unwrap();
    assert!(again.visible, "it is in sight");
    for turn in ["two", "three"] {
        chat.user(turn);
        make_calls(&mut chat, 2).await;
    }
    assert_eq!(text_of(&chat.advance_after_a_pause().await, "call_1"), None, "it is active");
    chat.user("four");
    assert!(is_reference(&chat.advance_after_a_pause().await, "call_1"), "it is not, and old");
}

#[tokio::test(flavor = "multi_thread")]
async fn activation_restores_arguments_that_have_left() {
    let bench = Bench::new(Memory);
    let mut chat = first_turn(&bench).await;
    chat.advance().await;
    assert_eq!(chat.engine.activate("call_2", None).await.unwrap().arguments, None, "they are in sight");
    assert!(chat.engine.deactivate("call_2").await.unwrap().ok);
    chat.rolls = false;
    make_calls(&mut chat, 100).await;
    chat.rolls = true;
    assert_eq!(arguments_of(&chat.advance_after_a_pause().await).len(), 1);
    let back = chat.engine.activate("call_2", None).await.unwrap();
    let arguments = json!({ "path": "b.txt", "content": output() });
    assert_eq!(back.arguments.as_ref(), arguments.as_object());
    assert_eq!(chat.engine.activate("call_1", None).await.unwrap().arguments, None, "these never left");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rebuilt_request_has_the_same_forms(
    #[values(Memory, Sqlite)] backend: Backend,
    #[values(false, true)] stored: bool,
) {
    let bench = Bench::new(backend);
    let mut chat = long_ago(&bench).await;
    let plan = chat.advance_after_a_pause().await;
    let reference = text_of(&plan, "call_1").flatten().expect("a reference");
    chat.done();
    let last = chat.advance().await;
    chat.engine.close().await.unwrap();

    chat.engine = bench.open("s").await;
    if stored {
        for IncomingMessage { key, message } in &mut chat.messages {
            let edit = plan.edits.iter().find(|e| matches!(e, Edit::Result { key: k, .. } if k == key));
            if let Some(Edit::Result { text: Some(text), .. }) = edit {
                message["content"] = json!([{ "type": "text", "text": text }]);
            }
        }
    }
    let rebuilt = chat.reads_again().await;
    assert_eq!(rebuilt.edits, [], "they come with the next plan that may have any");
    assert_eq!(rebuilt.context_tokens, last.context_tokens);
    chat.say(json!({ "role": "custom", "content": "a notice" }));
    let plan = chat.advance().await;
    let expected = if stored { None } else { Some(Some(reference)) };
    assert_eq!(text_of(&plan, "call_1"), expected);
}

/// As in the process that undid the roll: for three user turns, with that of the undoing.
#[tokio::test(flavor = "multi_thread")]
async fn undone_roll_survives_the_end_of_the_process() {
    let bench = Bench::new(Memory);
    let mut chat = long_ago(&bench).await;
    chat.advance_after_a_pause().await;
    let back = chat.engine.undo_roll().await.unwrap();
    assert_eq!(text_of(&back, "call_1"), Some(None));
    let (tx, times) = (chat.engine.point().await.unwrap(), chat.engine.point_times().await.unwrap());
    let engine = bench.open("s").await;
    engine.restore(&SessionId::new("s").unwrap(), tx, Some(times)).await.unwrap();
    chat.engine = engine;
    assert_eq!(chat.reads_again().await.edits, []);
    for turn in ["one", "two"] {
        assert_eq!(chat.advance_after_a_pause().await.edits, [], "{turn}");
        chat.done();
        chat.user(turn);
    }
    assert_eq!(chat.advance_after_a_pause().await.edits, []);
    chat.done();
    chat.user("three");
    assert!(is_reference(&chat.advance_after_a_pause().await, "call_1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn person_can_roll_inactive_young_outputs() {
    let bench = Bench::new(Memory);
    let mut chat = first_turn(&bench).await;
    chat.advance().await;
    chat.done();
    assert_eq!(chat.advance().await.edits, []);
    assert_eq!(chat.engine.roll_now(&chat.call()).await.unwrap().edits, [], "all is active");
    for turn in ["two", "three", "four"] {
        chat.user(turn);
        assert_eq!(chat.advance().await.edits, [], "{turn}");
    }
    // A preview of the cost changes nothing.
    let preview = chat.engine.preview_roll(&chat.call()).await.unwrap();
    assert_eq!((chat.advance().await.edits, chat.advance().await.stale_tokens), (Vec::new(), 0));
    let plan = chat.engine.roll_now(&chat.call()).await.unwrap();
    let preview = preview.unwrap();
    assert_eq!(plan.receipt, Some(preview.receipt));
    assert_eq!(preview.outputs.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["call_1"]);
    assert!(is_reference(&plan, "call_1"));
    assert_eq!(arguments_of(&plan).len(), 1);
}

/// A session that is resumed with another model finds nothing in that model's cache.
#[rstest]
#[case::the_same("p/a", false)]
#[case::another("p/b", true)]
#[case::of_another_provider("q/a", true)]
#[case::not_named_as_the_messages_name_it("a", false)]
#[case::a_slash_in_its_own_name("x/a", false)]
#[tokio::test(flavor = "multi_thread")]
async fn cache_of_another_model_is_cold_after_a_resume(#[case] model: &str, #[case] leaves: bool) {
    let bench = Bench::new(Memory);
    let mut chat = long_ago(&bench).await;
    for one in chat.messages.iter_mut().filter(|one| one.message["role"] == "assistant") {
        one.message["provider"] = json!("p");
        one.message["model"] = json!(if model.starts_with('x') { model } else { "a" });
    }
    let engine = bench.open("s").await;
    let call = Call { model: model.into(), ..chat.call() };
    engine.resync(chat.messages.clone(), chat.messages.len(), &call).await.unwrap();
    let plan = engine.advance(Vec::new(), &call).await.unwrap();
    assert_eq!(is_reference(&plan, "call_1"), leaves);
}

/// A host whose messages have no times says itself when an earlier process sent them in the form that the record gives.
#[rstest]
#[case::just_now(Some(0), true)]
#[case::longer_ago_than_the_provider_keeps_it(Some(300_001), false)]
#[case::unknown(None, false)]
#[tokio::test]
async fn form_that_an_earlier_process_sent_counts_as_cached(
    #[case] ago: Option<i64>,
    #[case] cached: bool,
    #[values(false, true)] is_answered_since: bool,
) {
    let (bench, mut chat) = Chat::on(Memory).await;
    chat.user("go");
    for n in 0..12 {
        chat.run(&format!("c{n}"), "bash", json!({ "command": n }), &"a line of an output\n".repeat(400))
            .await;
    }
    chat.user("and on");
    let rolled = chat.advance_after_a_pause().await;
    assert!(rolled.receipt.is_some());
    for one in &mut chat.messages {
        one.message.as_object_mut().unwrap().remove("timestamp");
    }
    let engine = bench.open("s").await;
    let call = Call { sent_ms: ago.map(|ms| chat.now_ms - ms), ..chat.call() };
    engine.resync(chat.messages.clone(), chat.messages.len(), &call).await.unwrap();
    // The answer to that request, in which the host waited for its user, is new to the record.
    let new = |key: &str, role: &str| IncomingMessage {
        key: key.into(),
        message: json!({ "role": role, "content": [{ "type": "text", "text": "next." }] }),
    };
    let news =
        if is_answered_since { vec![new("new_1", "assistant"), new("new_2", "user")] } else { Vec::new() };
    let plan = engine.advance(news, &chat.call()).await.unwrap();
    // An answer without a time tells that its request was sent, and not that it was long ago.
    let cached = cached || (is_answered_since && ago.is_none());
    assert_eq!(plan.rewrite_cost > 0.0, cached, "{}", plan.rewrite_cost);
    assert!(plan.edits.len() >= rolled.edits.len(), "what has collapsed stays so");
}
