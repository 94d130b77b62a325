//! The chat object and the window over its turns.

use context_engine::{Engine, Options};
use context_model::collapse::Window;
use context_model::id::ObjectId;
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench, answer, call, ids, session, user};

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn chat_is_one_document_with_a_version_for_each_step(#[values(Memory, Sqlite)] backend: Backend) {
    let (bench, engine) = session(backend).await;
    assert_eq!(engine.append_turn(user("first")).await.unwrap(), 1);
    let said = json!({
        "role": "assistant",
        "content": [
            { "type": "text", "text": "I look." },
            { "type": "toolCall", "id": "call_1", "name": "custom", "arguments": { "a": 1 } },
        ],
        "provider": "p", "model": "m", "usage": { "input": 10, "output": 2 }, "stopReason": "toolUse", "timestamp": 5,
    });
    assert_eq!(engine.append_turn(said.clone()).await.unwrap(), 1);
    engine.record_toolcall(call("call_1", "output")).await.unwrap();
    engine.append_turn(answer("Done.")).await.unwrap();
    assert_eq!(engine.append_turn(user("second")).await.unwrap(), 2);

    let chat = ObjectId::chat(engine.session_id());
    let versions = bench.versions(&chat).await;
    assert_eq!(versions.len(), 6, "the empty one, and one for each step");
    let turns = versions[5].field("turns").unwrap();
    let meta = json!({
        "provider": "p", "model": "m", "usage": { "input": 10, "output": 2 }, "stopReason": "toolUse", "timestamp": 5,
    });
    assert_eq!(turns[0]["user"], "first");
    assert_eq!(turns[0]["assistant"][0], json!({ "content": said["content"], "meta": meta }));
    assert_eq!(turns[0]["assistant"][1]["content"], answer("Done.")["content"]);
    assert_eq!(turns[0]["toolcall_ids"], json!(["call_1"]));
    assert_eq!(turns[1]["user"], "second");
    assert_eq!(versions[5].field("turn_count"), Some(&json!(2)));
    assert_eq!(versions[5].field("toolcall_refs"), Some(&json!(["call_1"])));
    assert_eq!(versions[5].text("session_ref"), Some("session:s"));

    // Outputs are in the chat as references only.
    let view = engine.assemble().await.unwrap();
    let roles: Vec<&str> = view.chat().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant", "user"]);
    assert_eq!(
        view.chat().nth(2).unwrap()["content"][0]["text"],
        "toolcall_ref id=call_1 tool=custom status=ok"
    );
    assert_eq!(view.chat().nth(2).unwrap()["toolCallId"], "call_1");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_and_calls_before_any_user_message_have_a_turn_of_their_own() {
    let (_bench, engine) = session(Memory).await;
    engine.record_toolcall(call("call_1", "x")).await.unwrap();
    assert_eq!(engine.append_turn(answer("Hello.")).await.unwrap(), 1);
    assert_eq!(engine.append_turn(user("Hi")).await.unwrap(), 2);
    let view = engine.assemble().await.unwrap();
    let roles: Vec<&str> = view.chat().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["assistant", "toolResult", "user"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn system_prompt_has_a_version_for_each_change() {
    let bench = Bench::new(Memory);
    let options = Options { system_prompt: Some("one".into()), ..bench.options("s") };
    let engine = Engine::open(options.clone()).await.unwrap();
    engine.set_system_prompt("two").await.unwrap();
    let tx = bench.latest_tx().await;
    engine.set_system_prompt("two").await.unwrap();
    assert_eq!(bench.latest_tx().await, tx);
    let id = ObjectId::system_prompt(engine.session_id());
    let texts = |list: &[&str]| list.iter().map(|t| Some((*t).to_owned())).collect::<Vec<_>>();
    assert_eq!(bench.contents(&id).await, texts(&["one", "two"]));
    // Resuming without one keeps it.
    bench.open("s").await;
    assert_eq!(bench.contents(&id).await.len(), 2);
    Engine::open(options).await.unwrap();
    assert_eq!(bench.contents(&id).await, texts(&["one", "two", "one"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_in_the_first_prompt_is_redacted_like_any_other() {
    let bench = Bench::new(Memory);
    // In parts, so that this file has no key.
    let prompt = |n: usize| format!("the key is {}_{n}kQ8vT3mZ5xR1wB7nC4yL9dF2gH6jP0sUaEo", "ghp");
    let options = Options { system_prompt: Some(prompt(1)), redact: true, ..bench.options("s") };
    let engine = Engine::open(options).await.unwrap();
    engine.set_system_prompt(&prompt(2)).await.unwrap();
    let redacted = Some("the key is [redacted: github-pat]".to_owned());
    assert_eq!(bench.contents(&ObjectId::system_prompt(engine.session_id())).await[0], redacted);
}

async fn active(engine: &Engine) -> Vec<ObjectId> {
    engine.session_sets().await.unwrap().active_set
}

async fn record(engine: &Engine, names: &[&str]) {
    for name in names {
        engine.record_toolcall(call(name, &format!("output of {name}"))).await.unwrap();
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn sixth_call_of_a_turn_deactivates_the_first(#[values(Memory, Sqlite)] backend: Backend) {
    let (_bench, engine) = session(backend).await;
    engine.append_turn(user("u")).await.unwrap();
    record(&engine, &["a", "b", "c", "d", "e"]).await;
    assert_eq!(active(&engine).await, ids(["a", "b", "c", "d", "e"]));
    record(&engine, &["f"]).await;
    assert_eq!(active(&engine).await, ids(["b", "c", "d", "e", "f"]));
    let sets = engine.session_sets().await.unwrap();
    assert_eq!(sets.metadata_pool, ids(["a", "b", "c", "d", "e", "f"]), "its metadata stays");
    assert!(!engine.assemble().await.unwrap().active_content().contains("output of a"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn calls_go_when_their_turn_is_three_turns_back_and_files_and_pins_stay(
    #[values(Memory, Sqlite)] backend: Backend,
) {
    let (mut bench, mut engine) = session(backend).await;
    let file = engine.index_file(&bench.write("a.rs", "x"), None, None).await.unwrap().id;
    engine.append_turn(user("1")).await.unwrap();
    record(&engine, &["a", "b", "c"]).await;
    engine.pin("b").await.unwrap();
    engine.append_turn(user("2")).await.unwrap();
    record(&engine, &["d"]).await;
    engine.append_turn(user("3")).await.unwrap();
    assert_eq!(active(&engine).await, [vec![file.clone()], ids(["a", "b", "c", "d"])].concat());
    // Activated again, a call counts from now on; also after a restart.
    engine.activate("a", None).await.unwrap();
    engine.close().await.unwrap();
    bench.restart().await;
    engine = bench.open("s").await;
    engine.append_turn(user("4")).await.unwrap();
    assert_eq!(active(&engine).await, [vec![file.clone()], ids(["b", "d", "a"])].concat());
    engine.append_turn(user("5")).await.unwrap();
    assert_eq!(active(&engine).await, [vec![file.clone()], ids(["b", "a"])].concat());
    engine.append_turn(user("6")).await.unwrap();
    assert_eq!(active(&engine).await, [vec![file.clone()], ids(["b"])].concat());
    // Without its pin it goes with the next step.
    engine.unpin("b").await.unwrap();
    engine.append_turn(user("7")).await.unwrap();
    assert_eq!(active(&engine).await, [file]);
}

#[rstest]
#[case::none_at_all(0, 3, &["a", "b"], &[])]
#[case::one_per_turn(1, 3, &["a", "b"], &["b"])]
#[case::no_turn(5, 0, &["a"], &[])]
#[tokio::test(flavor = "multi_thread")]
async fn the_window_is_the_harnesses(
    #[case] per_turn: usize,
    #[case] turns_back: usize,
    #[case] calls: &[&str],
    #[case] stay: &[&str],
) {
    let bench = Bench::new(Memory);
    let options = Options { window: Window { per_turn, turns_back }, ..bench.options("s") };
    let engine = Engine::open(options).await.unwrap();
    engine.append_turn(user("u")).await.unwrap();
    record(&engine, calls).await;
    let left: Vec<String> = active(&engine).await.iter().map(ToString::to_string).collect();
    assert_eq!(left, stay);
}
