//! Active outputs of earlier user turns: short in sight, whole in the state.

use context_engine::{Edit, Incoming, Plan};
use rstest::rstest;
use serde_json::json;

use crate::bench::{Backend, Bench};
use crate::chat::Chat;

fn output() -> String {
    (1..=200).map(|n| format!("line {n} of what the tool said\n")).collect()
}

fn text_of(plan: &Plan, id: &str) -> Option<Option<String>> {
    plan.edits.iter().find_map(|edit| match edit {
        Edit::Result { object, text, .. } if object.as_str() == id => Some(text.clone()),
        _ => None,
    })
}

/// A session whose first turn has one large output and one large write.
async fn first_turn(bench: &Bench) -> Chat {
    let mut chat = Chat::new(bench.open("s").await);
    chat.user("look");
    chat.run("call_1", "read", json!({ "path": "somewhere.txt" }), &output()).await;
    chat.run("call_2", "write", json!({ "path": "b.txt", "content": output() }), "written").await;
    chat.done();
    chat
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_active_output_is_whole_then_an_excerpt_then_a_reference(
    #[values(Backend::Memory, Backend::Sqlite)] backend: Backend,
) {
    let bench = Bench::new(backend);
    let mut chat = first_turn(&bench).await;
    chat.user("two");
    let plan = chat.advance_after_a_pause().await;
    let excerpt = text_of(&plan, "call_1").flatten().expect("an excerpt");
    assert!(excerpt.starts_with("id="), "{excerpt}");
    assert!(excerpt.contains("\nline 1 of") && excerpt.contains("line 200 of"), "{excerpt}");
    assert!(excerpt.contains("left out: lines 4-") && excerpt.len() < 700, "{excerpt}");
    assert!(plan.edits.iter().any(|edit| matches!(edit, Edit::Arguments { .. })), "the write's text");
    assert!(chat.is_active("call_1").await, "state and sight are two things");
    let brought = chat.engine.activate("call_1", None).await.unwrap();
    assert_eq!((brought.content, brought.visible), (Some(output()), false));

    // That was a use in turn two, so it stays through the turns after that one.
    for (turn, stays) in [("three", true), ("four", true), ("five", false)] {
        chat.done();
        chat.user(turn);
        let plan = chat.advance_after_a_pause().await;
        let text = text_of(&plan, "call_1").flatten();
        assert_eq!(text.is_none(), stays, "{turn}: {text:?}");
        assert!(stays || text.is_some_and(|text| text.starts_with("toolcall_ref ")));
        assert_eq!(chat.is_active("call_1").await, stays, "{turn}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pinned_stays_whole() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = first_turn(&bench).await;
    for id in ["call_1", "call_2"] {
        assert!(chat.engine.pin(id).await.unwrap().ok);
    }
    for turn in ["two", "three", "four", "five"] {
        chat.user(turn);
        assert_eq!(chat.advance_after_a_pause().await.edits, [], "{turn}");
        chat.done();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_activated_stays_whole_as_long_as_it_is_active() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = first_turn(&bench).await;
    chat.user("two");
    assert_eq!(chat.advance().await.edits, [], "one output does not pay yet");
    let again = chat.engine.activate("call_1", None).await.unwrap();
    assert!(again.visible, "it is in sight");
    chat.done();
    for turn in ["three", "four"] {
        assert_eq!(text_of(&chat.advance_after_a_pause().await, "call_1"), None, "{turn}");
        chat.user(turn);
        assert_eq!(text_of(&chat.advance_after_a_pause().await, "call_1"), None, "{turn}");
        chat.done();
    }
    chat.user("five");
    let text = text_of(&chat.advance_after_a_pause().await, "call_1");
    assert!(text.flatten().is_some_and(|text| text.starts_with("toolcall_ref ")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_stays_through_its_turn_unless_it_is_large() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = Chat::new(bench.open("s").await);
    chat.user("look");
    for (id, text) in [("small", output()), ("large", output().repeat(2))] {
        let path = bench.write(id, &text);
        chat.run(id, "read", json!({ "path": path }), &text).await;
    }
    for n in 0..5 {
        chat.run(&format!("call_{n}"), "bash", json!({ "command": "make" }), "made").await;
    }
    let plan = chat.advance_after_a_pause().await;
    assert_eq!((chat.is_active("small").await, chat.is_active("large").await), (false, false));
    assert_eq!(text_of(&plan, "small"), None);
    assert!(text_of(&plan, "large").flatten().is_some_and(|text| text.starts_with("toolcall_ref ")));
    chat.done();
    chat.user("go on");
    assert!(text_of(&chat.advance_after_a_pause().await, "small").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn small_outputs_stay_as_they_are_until_they_are_references() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = Chat::new(bench.open("s").await);
    chat.user("look");
    chat.run("call_1", "read", json!({ "path": "a" }), "five words are no burden\n").await;
    chat.run("call_2", "read", json!({ "path": "b" }), &"x y\n".repeat(60)).await;
    for turn in ["two", "three"] {
        chat.done();
        chat.user(turn);
        assert_eq!(chat.advance_after_a_pause().await.edits, [], "{turn}");
    }
    chat.done();
    chat.user("four");
    let plan = chat.advance_after_a_pause().await;
    assert!(text_of(&plan, "call_2").flatten().is_some_and(|text| text.starts_with("toolcall_ref ")));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rebuilt_request_has_the_same_excerpts(
    #[values(Backend::Memory, Backend::Sqlite)] backend: Backend,
    #[values(false, true)] stored: bool,
) {
    let bench = Bench::new(backend);
    let mut chat = first_turn(&bench).await;
    chat.user("two");
    let plan = chat.advance_after_a_pause().await;
    let excerpt = text_of(&plan, "call_1").flatten().expect("an excerpt");
    chat.done();
    let last = chat.advance().await;
    chat.engine.close().await.unwrap();

    chat.engine = bench.open("s").await;
    if stored {
        for Incoming { key, message } in &mut chat.messages {
            let edit = plan.edits.iter().find(|e| matches!(e, Edit::Result { key: k, .. } if k == key));
            if let Some(Edit::Result { text: Some(text), .. }) = edit {
                message["content"] = json!([{ "type": "text", "text": text }]);
            }
        }
    }
    let count = chat.messages.len();
    let rebuilt = chat.engine.resync(chat.messages.clone(), count, &chat.call()).await.unwrap();
    assert_eq!(rebuilt.edits, [], "they come with the next plan that may have any");
    assert_eq!(rebuilt.context_tokens, last.context_tokens);
    chat.say(json!({ "role": "custom", "content": "a notice" }));
    let plan = chat.advance().await;
    let expected = if stored { None } else { Some(Some(excerpt)) };
    assert_eq!(text_of(&plan, "call_1"), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_roll_that_is_taken_back_shows_all_of_it_again() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = first_turn(&bench).await;
    chat.user("two");
    let before = chat.advance().await;
    assert_eq!(before.edits, [], "one call in it does not pay");
    chat.done();
    chat.user("three");
    let rolled = chat.advance_after_a_pause().await;
    let back = chat.engine.undo_roll().await.unwrap();
    assert_eq!(text_of(&back, "call_1"), Some(None));
    assert_eq!(back.edits.len(), rolled.edits.len());
    assert!(back.context_tokens > rolled.context_tokens + 1_000);
    let count = chat.messages.len();
    let rebuilt = chat.engine.resync(chat.messages.clone(), count, &chat.call()).await.unwrap();
    assert_eq!(rebuilt.context_tokens, back.context_tokens, "also when it is built anew");
}
