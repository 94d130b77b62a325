//! The outcome in a reference that replaces an output.

use context_engine::{Edit, Plan};
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench};
use crate::chat::Chat;

/// A test run with two failures, with enough noise to be worth replacing.
fn run() -> String {
    let noise: String = (1..=400).map(|n| format!("=== RUN   TestNumber{n}\n")).collect();
    format!("{noise}--- FAIL: TestBasket (0.00s)\n--- FAIL: TestPrice (0.01s)\n\nCommand exited with code 1")
}

fn references(plan: &Plan) -> Vec<(String, String)> {
    let texts = plan.edits.iter().filter_map(|edit| match edit {
        Edit::Result { key, text: Some(text), .. } => Some((key.clone(), text.clone())),
        _ => None,
    });
    texts.collect()
}

/// A session in which a read and a test run are rolled; the chat, and their replacements by the messages' keys.
async fn rolled(bench: &Bench) -> (Chat, Vec<(String, String)>) {
    let mut chat = Chat::new(bench.open("s").await);
    chat.user("look");
    let text: String = (1..=300).map(|n| format!("line {n} of the file\n")).collect();
    chat.run("read_1", "read", json!({ "path": "somewhere.txt", "offset": 11 }), &text).await;
    chat.run("test_1", "bash", json!({ "command": "go test ./..." }), &run()).await;
    let mut texts = Vec::new();
    while texts.len() < 2 {
        assert!(chat.messages.len() < 200, "{texts:?}");
        let id = format!("step_{}", chat.messages.len());
        chat.run(&id, "bash", json!({ "command": "make" }), "made").await;
        texts.extend(references(&chat.advance_after_a_pause().await));
    }
    (chat, texts)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn reference_has_the_outcome_of_its_output(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let (chat, texts) = rolled(&bench).await;
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    let (read, test) = ("tool=read status=ok -> lines 11-310", "tool=bash status=ok -> 2 failed: ");
    assert!(texts[0].starts_with("toolcall_ref id=") && texts[0].ends_with(read), "{texts:?}");
    assert!(texts[1].contains(test) && texts[1].ends_with("TestBasket, TestPrice (exit 1)"), "{texts:?}");
    let named = texts[1].split(['=', ' ']).nth(2).unwrap();
    assert_eq!(chat.engine.activate(named, None).await.unwrap().content, Some(run()));
}

/// A harness that keeps its raw messages gets the same bytes again, and one that keeps the references is left alone. So is
/// one whose references say nothing of the output.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_has_the_same_references(
    #[values("raw", "replaced", "plain")] kept: &str,
    #[values(Memory, Sqlite)] backend: Backend,
) {
    let mut bench = Bench::new(backend);
    let (mut chat, texts) = rolled(&bench).await;
    chat.engine.close().await.unwrap();
    bench.restart().await;
    for (key, text) in texts.iter().filter(|_| kept != "raw") {
        let message = &mut chat.messages.iter_mut().find(|one| one.key == *key).unwrap().message;
        let plain = text.split(" -> ").next().unwrap();
        let text = if kept == "plain" { plain } else { text.as_str() };
        message["content"] = json!([{ "type": "text", "text": text }]);
    }
    chat.restart(&bench).await;
    let again = chat.advance().await;
    assert_eq!(references(&again), if kept == "raw" { texts } else { Vec::new() });
}

/// If a file has changed by the time that its text leaves, the reference says so for good: it stays true later. An undone roll
/// removes that remark.
#[tokio::test(flavor = "multi_thread")]
async fn reference_says_that_its_file_has_changed() {
    let (bench, mut chat) = Chat::on(Sqlite).await;
    chat.user("look");
    let text: String = (1..=300).map(|n| format!("line {n} of the file\n")).collect();
    let paths = ["same.txt", "other.txt"].map(|name| bench.write(name, &text));
    for (n, path) in paths.iter().enumerate() {
        chat.read(&format!("read_{n}"), path, None).await;
    }
    chat.advance().await;
    std::fs::write(&paths[1], format!("{text}more\n")).unwrap();
    chat.engine.index_file(&paths[1], None, None).await.unwrap();
    chat.done();
    for turn in ["two", "three", "four"] {
        chat.asks(turn).await;
    }
    let plan = chat.engine.roll_now(&chat.call()).await.unwrap();
    let texts = references(&plan);
    assert!(texts[0].1.ends_with(" tool=read status=ok -> lines 1-300"), "{texts:?}");
    assert!(texts[1].1.ends_with(" tool=read status=ok -> lines 1-300, changed since"), "{texts:?}");

    // The same in a process that has only the raw messages, after any change in between.
    std::fs::write(&paths[0], "other").unwrap();
    chat.engine.index_file(&paths[0], None, None).await.unwrap();
    std::fs::write(&paths[1], &text).unwrap();
    chat.engine.index_file(&paths[1], None, None).await.unwrap();
    let engine = bench.open("s").await;
    engine.resync(chat.messages.clone(), chat.messages.len(), &chat.call()).await.unwrap();
    let again = engine.advance(Vec::new(), &chat.call()).await.unwrap();
    assert_eq!(references(&again), texts);

    chat.engine.undo_roll().await.unwrap();
    let undone = bench.open("s").await;
    undone.resync(chat.messages.clone(), chat.messages.len(), &chat.call()).await.unwrap();
    assert_eq!(references(&undone.advance(Vec::new(), &chat.call()).await.unwrap()), []);
}
