//! Text that leaves besides outputs and arguments: reasoning, old calls, prose, and long texts of users.

use std::collections::BTreeMap;

use context_engine::{Edit, Engine, Options, Plan, Stay, Stays, TextEdit};
use context_model::chat::said_id;
use context_model::object::Status;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench};
use crate::chat::Chat;

pub fn thought() -> String {
    "I wonder what the second line of the third file says about this. ".repeat(60)
}

pub fn plan_text() -> String {
    "First I read the file, then I change it, and at last I run the tests. ".repeat(8)
}

pub async fn open(bench: &Bench, stays: Stays) -> Engine {
    Engine::open(Options { stays, ..bench.options("s") }).await.unwrap()
}

pub async fn chat(bench: &Bench, stays: Stays) -> Chat {
    Chat { shortens: true, ..Chat::new(open(bench, stays).await) }
}

/// A session in which a user has asked something.
async fn looking(stays: Stays) -> (Bench, Chat) {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, stays).await;
    chat.asks("look").await;
    (bench, chat)
}

/// An answer of these blocks and more fields, whose one call is made and answered. Gives the answer's key.
pub async fn answer(chat: &mut Chat, id: &str, blocks: Value, fields: Value, args: Value) -> String {
    let mut blocks = blocks.as_array().unwrap().clone();
    blocks.push(json!({ "type": "toolCall", "id": id, "name": "edit", "arguments": args }));
    let mut message = json!({ "role": "assistant", "timestamp": chat.now_ms, "content": blocks });
    message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let key = format!("m{}", chat.messages.len());
    chat.say(message);
    chat.reports(id, "edit", args, "done", Status::Ok).await;
    key
}

/// Calls without a word from the user. Gives all that plans have edited meanwhile.
async fn make_calls(chat: &mut Chat, calls: usize) -> Vec<Edit> {
    answer_with(chat, calls, "made").await
}

/// The same with outputs that are longer than a line.
pub async fn answer_at_length(chat: &mut Chat, calls: usize) -> Vec<Edit> {
    answer_with(chat, calls, &"made it. ".repeat(40)).await
}

async fn answer_with(chat: &mut Chat, calls: usize, output: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    for _ in 0..calls {
        let id = format!("step_{}", chat.messages.len());
        edits.extend(chat.advance().await.edits);
        let args = json!({ "command": format!("make {id}") });
        chat.answered(&id, "bash", args, output, Status::Ok).await;
    }
    edits
}

/// The same, and a request that finds nothing in the provider's cache.
pub async fn leave(chat: &mut Chat, calls: usize) -> Plan {
    let edits = make_calls(chat, calls).await;
    after_a_pause(chat, edits).await
}

/// Adds to these edits those of a request that finds nothing in the provider's cache.
pub async fn after_a_pause(chat: &mut Chat, mut edits: Vec<Edit>) -> Plan {
    let plan = chat.advance_after_a_pause().await;
    edits.extend(plan.edits);
    Plan { edits, ..plan }
}

fn texts_of<'a>(plan: &'a Plan, key: &str) -> Option<&'a [TextEdit]> {
    plan.edits.iter().rev().find_map(|edit| match edit {
        Edit::Message { key: own, texts, .. } if own == key => Some(texts.as_slice()),
        _ => None,
    })
}

/// Returns the present form of the first call's result.
pub fn lines_of(plan: &Plan) -> String {
    let lines = plan.edits.iter().rev().find_map(|edit| match edit {
        Edit::Result { key, text: Some(text), .. } if key == "m2" => Some(text.clone()),
        _ => None,
    });
    lines.unwrap()
}

pub fn gone(plan: &Plan) -> Vec<&str> {
    plan.edits
        .iter()
        .filter_map(|edit| if let Edit::Gone { key, .. } = edit { Some(key.as_str()) } else { None })
        .collect()
}

/// Calls stay, so that nothing but words leaves.
const WORDS: Stays = Stays {
    thinking: Stay::Needed,
    calls: Stay::Keep,
    prose: Stay::Needed,
    weight: Some(8.0),
    debt_cap: None,
};

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_leaves_whole_and_prose_to_its_beginning() {
    let (_bench, mut chat) = looking(WORDS).await;
    let said =
        json!([{ "type": "thinking", "thinking": thought() }, { "type": "text", "text": plan_text() }]);
    let key = answer(&mut chat, "call_1", said, json!({}), json!({ "path": "a" })).await;
    assert_eq!(chat.advance_after_a_pause().await.edits, [], "the newest answer is whole");
    let plan = leave(&mut chat, 60).await;
    let [gone, shortened] = texts_of(&plan, &key).unwrap() else { panic!("{:?}", plan.edits) };
    assert_eq!((gone.block, gone.text.as_ref()), (0, None));
    let text = shortened.text.as_ref().unwrap();
    assert!(text.starts_with(&plan_text()[..80]) && text.len() < 130, "{text}");
    assert!(text.ends_with(&format!("id={}]", said_id(&plan_text()))), "{text}");
    for whole in [thought(), plan_text()] {
        let back = chat.engine.activate(&said_id(&whole), None).await.unwrap();
        assert_eq!(back.content, Some(whole));
    }
    assert!(!chat.engine.activate("0123456789a", None).await.unwrap().ok);

    while chat.engine.receipts().await.unwrap().len() > 1 {
        chat.engine.undo_roll().await.unwrap();
    }
    let back = chat.engine.undo_roll().await.unwrap();
    assert_eq!(texts_of(&back, &key), Some(&[][..]), "as the harness has it");
    assert_eq!(leave(&mut chat, 20).await.edits, [], "a person wanted to see it");
}

/// When reasoning may leave an answer with a call, which stays.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaves {
    Soon,
    AfterUser,
    Never,
}

const ENCRYPTED: &str = "[{\"type\":\"reasoning.encrypted\"}]";

#[rstest]
#[case::unsigned(json!({}), "", Leaves::Soon)]
#[case::anthropic(json!({ "api": "anthropic-messages" }), "EqQBCkYIARgC", Leaves::AfterUser)]
#[case::a_recording_of_anthropic(json!({ "provider": "anthropic" }), "EqQBCkYIARgC", Leaves::AfterUser)]
#[case::claude_elsewhere(json!({ "api": "anthropic-messages", "provider": "gateway", "model": "claude-opus-4-5" }), "EqQBCkYIARgC", Leaves::AfterUser)]
#[case::a_copy_of_anthropic(json!({ "api": "anthropic-messages", "provider": "kimi-coding", "model": "k2" }), "", Leaves::Never)]
#[case::completions(json!({ "api": "openai-completions" }), "reasoning_content", Leaves::Never)]
#[case::encrypted_completions(json!({ "api": "openai-completions" }), ENCRYPTED, Leaves::Never)]
#[case::responses(json!({ "api": "openai-responses" }), "{\"type\":\"reasoning\",\"id\":\"rs_1\"}", Leaves::Never)]
#[case::google(json!({ "api": "google-generative-ai" }), "CpcBAdHtim9", Leaves::Never)]
#[case::unknown(json!({}), "signed", Leaves::Never)]
#[tokio::test(flavor = "multi_thread")]
async fn reasoning_leaves_an_answer_where_its_provider_takes_that(
    #[case] fields: Value,
    #[case] signature: &str,
    #[case] leaves: Leaves,
) {
    let (_bench, mut chat) = looking(WORDS).await;
    let said = json!([{ "type": "thinking", "thinking": thought(), "thinkingSignature": signature }]);
    let key = answer(&mut chat, "call_1", said, fields, json!({ "path": "a" })).await;
    let plan = leave(&mut chat, 40).await;
    assert_eq!(texts_of(&plan, &key).is_some(), leaves == Leaves::Soon, "while calls of the turn continue");
    chat.user("next.");
    let plan = chat.advance_after_a_pause().await;
    assert_eq!(texts_of(&plan, &key).is_some(), leaves == Leaves::AfterUser, "once a user has spoken");
}

#[rstest]
#[case::completions(json!({ "api": "openai-completions" }), "reasoning_content", true)]
#[case::encrypted_completions(json!({ "api": "openai-completions" }), ENCRYPTED, false)]
#[case::a_copy_of_anthropic(json!({ "api": "anthropic-messages", "provider": "kimi-coding", "model": "k2" }), "", true)]
#[case::responses(json!({ "api": "openai-responses" }), "{\"type\":\"reasoning\",\"id\":\"rs_1\"}", false)]
#[tokio::test(flavor = "multi_thread")]
async fn reasoning_before_a_last_word_leaves_where_its_provider_takes_that(
    #[case] fields: Value,
    #[case] signature: &str,
    #[case] leaves: bool,
) {
    let (_bench, mut chat) = looking(WORDS).await;
    let content = json!([
        { "type": "thinking", "thinking": thought(), "thinkingSignature": signature },
        { "type": "text", "text": "It is done." },
    ]);
    let mut message = json!({ "role": "assistant", "timestamp": chat.now_ms, "content": content });
    message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let key = format!("m{}", chat.messages.len());
    chat.say(message);
    assert_eq!(leave(&mut chat, 40).await.edits, [], "no user has spoken");
    chat.user("next.");
    let plan = chat.advance_after_a_pause().await;
    assert_eq!(texts_of(&plan, &key).is_some(), leaves);
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_of_reasoning_alone_keeps_it() {
    let (_bench, mut chat) = looking(WORDS).await;
    let only = json!([{ "type": "thinking", "thinking": thought() }, { "type": "text", "text": " " }]);
    chat.say(json!({ "role": "assistant", "timestamp": chat.now_ms, "content": only }));
    chat.user("and?");
    assert_eq!(leave(&mut chat, 60).await.edits, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_of_a_user_is_shortened_but_the_first_the_newest_and_rules_are_not() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, WORDS).await;
    let long = |name: &str| format!("{name}\n{}", "the log says that it could not\n".repeat(100));
    let texts = ["first", "second", "<skill name=\"x\">", "# AGENTS.md", "last"].map(long);
    let mut edits = Vec::new();
    for text in &texts {
        chat.user(text);
        edits.extend(make_calls(&mut chat, 30).await);
        chat.done();
    }
    edits.extend(leave(&mut chat, 60).await.edits);
    let plan = Plan { edits, ..Plan::default() };
    let users = chat.messages.iter().filter(|one| one.message["role"] == "user");
    let shortened: Vec<&str> = users
        .filter(|one| texts_of(&plan, &one.key).is_some())
        .map(|one| one.message["content"].as_str().unwrap().lines().next().unwrap())
        .collect();
    assert_eq!(shortened, ["second"]);
    let mut shown = plan.edits.iter().filter_map(|edit| match edit {
        Edit::Message { texts, .. } => texts.first()?.text.clone(),
        _ => None,
    });
    let text = shown.next().unwrap();
    assert!(text.starts_with(&texts[1][..600]) && text.len() < 660, "{text}");
}

/// Everything leaves soon.
const SOON: Stays = Stays {
    thinking: Stay::Needed,
    calls: Stay::Needed,
    prose: Stay::Needed,
    weight: Some(1.0),
    debt_cap: None,
};

#[tokio::test(flavor = "multi_thread")]
async fn old_calls_become_lines_behind_the_first_of_them() {
    let (bench, mut chat) = looking(SOON).await;
    let said = json!([{ "type": "text", "text": "I change it." }]);
    let args = json!({ "path": format!("{}/src/a.rs", bench.options("s").cwd), "edits": [] });
    let mut edits = answer_at_length(&mut chat, 2).await;
    let edit = answer(&mut chat, "call_1", said, json!({}), args).await;
    edits.extend(answer_at_length(&mut chat, 20).await);
    let plan = after_a_pause(&mut chat, edits).await;
    let gone = gone(&plan);
    // The first two messages after the user's are the call that carries the lines.
    assert!(!gone.contains(&"m1") && !gone.contains(&"m2") && gone.contains(&edit.as_str()), "{gone:?}");
    assert!(gone.len() >= 16 && gone.len().is_multiple_of(2), "calls leave with their results: {gone:?}");
    let lines = lines_of(&plan);
    let mut lines = lines.lines();
    assert!(lines.next().unwrap().starts_with("toolcall_ref id="));
    assert!(lines.next().unwrap().starts_with("bash make step_3 id="));
    let line = format!("said: I change it. id={}", said_id("I change it."));
    assert_eq!(lines.next(), Some(&*line));
    let line = lines.next().unwrap();
    let id = line.strip_prefix("edit src/a.rs id=").unwrap_or_else(|| panic!("{line}"));
    assert_eq!(chat.engine.activate(id, None).await.unwrap().content.as_deref(), Some("done"));

    // The same after a resume.
    assert_eq!(chat.reads_again().await.edits, []);
    let again = chat.advance().await;
    let shown: BTreeMap<&str, &Edit> = plan.edits.iter().map(|edit| (edit.key(), edit)).collect();
    let rebuilt: BTreeMap<&str, &Edit> = again.edits.iter().map(|edit| (edit.key(), edit)).collect();
    assert_eq!(rebuilt, shown);

    // After 40 more calls only the line of the call stays that has changed something.
    let edits = answer_at_length(&mut chat, 45).await;
    let later = after_a_pause(&mut chat, edits).await;
    let text = lines_of(&later);
    let (_, left) = text.split_once('\n').unwrap();
    assert_eq!(left, line);

    // Once that roll is undone, all of them are there again.
    let again = lines_of(&chat.engine.undo_roll().await.unwrap());
    assert!(again.lines().count() > 10 && again.contains("\nbash make step_3 id="), "{again}");
}

/// Claude's API wants all reasoning of the turn under way; an answer that left with it would be a gap in it.
#[rstest]
#[case::claude(json!({ "api": "anthropic-messages" }), "EqQBCkYIARgC", false)]
#[case::completions(json!({ "api": "openai-completions" }), "reasoning_content", true)]
#[case::responses(json!({ "api": "openai-responses" }), "{\"type\":\"reasoning\",\"id\":\"rs_1\"}", true)]
#[tokio::test(flavor = "multi_thread")]
async fn answers_with_reasoning_become_lines_where_their_provider_takes_that(
    #[case] fields: Value,
    #[case] signature: &str,
    #[case] leaves: bool,
) {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, SOON).await;
    chat.user("look");
    let mut edits = Vec::new();
    for n in 0..24 {
        edits.extend(chat.advance().await.edits);
        let said = json!([{ "type": "thinking", "thinking": format!("{n} {}", thought()), "thinkingSignature": signature }]);
        answer(&mut chat, &format!("call_{n}"), said, fields.clone(), json!({ "path": "a" })).await;
    }
    let plan = after_a_pause(&mut chat, edits).await;
    assert_eq!(!gone(&plan).is_empty(), leaves, "while calls of the turn continue");
    chat.user("next.");
    chat.done();
    let plan = after_a_pause(&mut chat, plan.edits).await;
    assert!(!gone(&plan).is_empty(), "once a user has spoken");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_became_lines_come_back_with_their_roll() {
    let bench = Bench::new(Backend::Memory);
    let mut chat = chat(&bench, SOON).await;
    chat.user("look");
    answer_at_length(&mut chat, 20).await;
    let plan = chat.advance_after_a_pause().await;
    assert!(!gone(&plan).is_empty());
    let back = chat.engine.undo_roll().await.unwrap();
    assert_eq!(back.edits.len(), plan.edits.len());
    for edit in &back.edits {
        let is_whole = match edit {
            Edit::Result { text, .. } => text.is_none(),
            Edit::Message { calls, texts, .. } => calls.is_empty() && texts.is_empty(),
            Edit::Gone { .. } => false,
        };
        assert!(is_whole, "{edit:?}");
    }
    assert_eq!(chat.reads_again().await.context_tokens, back.context_tokens, "also when it is built anew");

    // Another process knows that a person wanted to see it, too, for the same time.
    let rebuilt = chat.resync(open(&bench, SOON).await, chat.messages.len()).await;
    assert_eq!(rebuilt.context_tokens, back.context_tokens);
    let wanted: Vec<&str> = back.edits.iter().map(Edit::key).collect();
    for prompt in ["and then", "and then"] {
        chat.user(prompt);
        let plan = chat.advance_after_a_pause().await;
        assert!(plan.edits.iter().all(|edit| !wanted.contains(&edit.key())), "{:?}", plan.edits);
        chat.done();
    }
    chat.user("and at last");
    answer_at_length(&mut chat, 6).await;
    let plan = chat.advance_after_a_pause().await;
    assert!(plan.edits.iter().any(|edit| wanted.contains(&edit.key())), "{:?}", plan.edits);
}
