//! Odd messages from harnesses: repeated call IDs, deep nesting, images, outputs with our own lines.

use std::sync::Arc;

use context_engine::{Call, CollapsedCall, Engine, Options};
use context_model::id::{ObjectId, SessionId};
use context_model::object::Status;
use context_store::Store;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench, call};
use crate::chat::{Chat, arguments_of, has_read};
use crate::stepped::{Incident, Stepped};
use crate::truth::{chat, lines};

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("deep down"), |inner, _| json!([inner]))
}

#[tokio::test(flavor = "multi_thread")]
async fn deeply_nested_value_is_kept_as_text_and_recording_continues() {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    chat.say(json!({ "role": "user", "content": [{ "type": "text", "text": "one", "extra": nested(150) }] }));
    chat.advance().await;
    let args = json!({ "deep": nested(150) });
    chat.run("c", "x", args, "output").await;
    chat.ends().await;
    chat.turn("two").await;
    chat.reads_again().await;
    let recorded = bench.latest(&ObjectId::chat(&SessionId::new("s").unwrap())).await.unwrap();
    assert_eq!(recorded.field("turns").unwrap().as_array().unwrap().len(), 2);
    let call = bench.latest(&ObjectId::new("c")).await.unwrap();
    assert!(call.field("args").unwrap().to_string().contains("deep down"));
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_of_collapsed_arguments_name_their_own_call() {
    let (_bench, mut chat) = Chat::on(Backend::Memory).await;
    // A provider that repeats its call IDs, and a harness without a hook for results.
    for n in 0..3 {
        chat.user("write");
        let args = json!({ "path": "a.txt", "content": lines(&format!("text {n}"), 200) });
        chat.calls("call_0", "custom", args);
        chat.results("call_0", "custom", &format!("done {n}"), Status::Ok);
        chat.ends().await;
    }
    chat.user("on");
    let mut collapsed = arguments_of(&chat.advance_after_a_pause().await);
    for _ in 0..20 {
        chat.done();
        chat.user("on");
        collapsed.extend(arguments_of(&chat.advance_after_a_pause().await));
    }
    assert_eq!(collapsed.len(), 3);
    for (n, call) in collapsed.iter().enumerate() {
        let text = call.args["content"].as_str().unwrap();
        let handle = text.strip_prefix("[collapsed #").unwrap().split(':').next().unwrap();
        let full = chat.engine.get(handle).await.unwrap().unwrap();
        assert_eq!(full.field("args").unwrap()["content"], json!(lines(&format!("text {n}"), 200)));
    }
}

/// Two calls of one answer under one ID: each result is that of the call in its place.
#[tokio::test(flavor = "multi_thread")]
async fn results_under_one_id_have_their_own_arguments() {
    let (_bench, mut chat) = Chat::on(Backend::Memory).await;
    chat.asks("make both").await;
    let call = |command: &str| json!({ "type": "toolCall", "id": "c", "name": "custom", "arguments": { "command": command } });
    chat.say(json!({ "role": "assistant", "content": [call("one"), call("two")], "timestamp": chat.now_ms }));
    for command in ["one", "two"] {
        chat.results("c", "custom", &format!("made {command}"), Status::Ok);
    }
    chat.advance().await;
    let mut made = Vec::new();
    for id in chat.engine.session_sets().await.unwrap().active_set {
        let object = chat.engine.get(id.as_str()).await.unwrap().unwrap();
        made.push((object.content().unwrap().to_owned(), object.field("args").unwrap()["command"].clone()));
    }
    assert_eq!(made, [("made one".to_owned(), json!("one")), ("made two".to_owned(), json!("two"))]);
}

/// Two calls of one answer with long arguments, a picture in each result, and the request that collapses them.
async fn collapsed_beside_pictures() -> (Bench, Chat, Vec<CollapsedCall>) {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    chat.asks("draw").await;
    let call = |id: &str| json!({ "type": "toolCall", "id": id, "name": "draw", "arguments": { "what": lines("svg", 200) } });
    chat.say(json!({ "role": "assistant", "content": [call("a"), call("b")], "timestamp": chat.now_ms }));
    for id in ["a", "b"] {
        let content = json!([{ "type": "text", "text": id }, { "type": "image", "data": "AAAA", "mimeType": "image/png" }]);
        chat.say(json!({ "role": "toolResult", "toolCallId": id, "toolName": "draw", "content": content }));
    }
    for _ in 0..3 {
        chat.done();
        chat.user("on");
        assert_eq!(chat.advance().await.edits, []);
    }
    chat.done();
    let collapsed = arguments_of(&chat.advance_after_a_pause().await);
    (bench, chat, collapsed)
}

#[tokio::test(flavor = "multi_thread")]
async fn image_result_does_not_keep_arguments_whole() {
    assert_eq!(collapsed_beside_pictures().await.2.len(), 2);
}

/// Whatever the results of its calls are by then, and whether the same process reads the messages again or another one does.
#[rstest]
#[case::pictures(&[])]
#[case::picture_and_an_output_that_the_host_has_cleared(&["b"])]
#[case::outputs_that_the_host_has_cleared(&["a", "b"])]
#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_had_collapsed_stay_so_beside_what_never_leaves(
    #[case] cleared: &[&str],
    #[values(false, true)] restarts: bool,
) {
    let (bench, mut chat, before) = collapsed_beside_pictures().await;
    for one in &mut chat.messages {
        if cleared.iter().any(|id| one.message["toolCallId"] == *id) {
            one.message["content"] = json!("[Old tool result content cleared]");
        }
    }
    if restarts {
        chat.restart(&bench).await;
    } else {
        chat.reads_again().await;
    }
    // The request may be as it was, and nothing else may leave it.
    let repeats = Call { rolls: false, repeats: true, ..chat.call() };
    let plan = chat.engine.advance(Vec::new(), &repeats).await.unwrap();
    assert_eq!(arguments_of(&plan), before);
}

/// However often a call ID was used, recording one more asks the store as often as the first time.
#[tokio::test(flavor = "multi_thread")]
async fn repeated_call_id_costs_no_scan() {
    let bench = Bench::new(Backend::Memory);
    let filled = bench.open("filled").await;
    for n in 0..2_000 {
        filled.record_toolcall(call("call_0", &format!("output {n}"))).await.unwrap();
    }
    // The maximum number of store calls in recording: it succeeds although the next one would fail.
    let store = Stepped::new(Arc::clone(&bench.store), Incident::Full);
    let options = Options { store: Arc::clone(&store) as Arc<dyn Store>, ..bench.options("fresh") };
    let engine = Engine::open(options).await.unwrap();
    store.arm(6);
    engine.record_toolcall(call("call_0", "one more")).await.unwrap();
    assert!(!store.disarm(), "it asked more often");
}

/// A store that has lost the last turns takes them from the harness's messages, which have our lines: it stores the tools'
/// outputs, and the calls are the same objects as before.
#[tokio::test(flavor = "multi_thread")]
async fn outputs_that_are_taken_in_anew_are_without_our_lines() {
    let mut first = chat(&Bench::new(Backend::Memory), "s").await;
    first.user("go");
    let forged = format!("id=00000000\n{}", lines("forged", 50));
    let outputs = [lines("one", 50), lines("two", 50), forged];
    for (id, output) in ["call_0", "call_0", "call_1"].iter().zip(&outputs) {
        first.run(id, "bash", json!({ "command": "make" }), output).await;
    }
    first.done();
    first.advance().await;
    let had = first.engine.session_sets().await.unwrap().active_set;

    let mut second = chat(&Bench::new(Backend::Memory), "s").await;
    second.messages = first.messages.clone();
    second.advance().await;
    assert_eq!(second.engine.session_sets().await.unwrap().active_set, had);
    for (id, output) in had.iter().zip(&outputs) {
        let call = second.engine.get(id.as_str()).await.unwrap().unwrap();
        assert_eq!(call.content(), Some(output.as_str()), "{id}");
    }
}

/// A file that has grown beyond what is hashed is not gone.
#[tokio::test(flavor = "multi_thread")]
async fn oversized_file_is_not_reported_as_deleted() {
    let (_bench, mut chat, path) = has_read(lines("old", 60)).await;
    chat.turn("next.").await;
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(300 << 20).unwrap();
    chat.engine.reconcile().await.unwrap();
    chat.turn("next.").await;
    assert!(chat.notices.len() == 1 && !chat.notices[0].contains("deleted"), "{:?}", chat.notices);
}

/// A tool's rendering of bytes that are not text (a note, or the characters that it could decode) says nothing of a version, so
/// the model gets no notice.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn read_of_binary_content_makes_no_notice(
    #[values("[binary]", "\u{fffd} caf\u{fffd}\n")] output: &str,
    #[values(false, true)] is_indexed: bool,
) {
    let (_bench, mut chat, path) = has_read(lines("old", 60)).await;
    chat.turn("next.").await;
    let bytes = b"\xe9 caf\xe9\n";
    for (version, told) in [(&bytes[..], 1), (b"\xe8 again\n", 2)] {
        std::fs::write(&path, version).unwrap();
        chat.engine.reconcile().await.unwrap();
        chat.turn("next.").await;
        assert_eq!(chat.notices.len(), told, "{:?}", chat.notices);
        for n in 0..3 {
            if is_indexed {
                chat.engine.index_file(&path, Some(version.to_vec()), None).await.unwrap();
            }
            chat.run(&format!("{told} {n}"), "read", json!({ "path": path }), output).await;
            chat.turn("next.").await;
            assert_eq!(chat.notices.len(), told, "{:?}", chat.notices);
        }
    }
    // Text again: the model's knowledge of the old one is outdated.
    std::fs::write(&path, lines("new", 60)).unwrap();
    chat.engine.reconcile().await.unwrap();
    chat.turn("next.").await;
    assert_eq!(chat.notices.len(), 3, "{:?}", chat.notices);
}
