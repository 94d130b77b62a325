//! Answers of reasoning alone, after a change before them.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::objects::TestObjects;
use crate::request::Request;
use crate::request::plan::{Edit, TextEdit};

/// A message of a conversation: a user's, the system's, or an answer with these blocks.
#[derive(Clone, Copy, Debug)]
enum Said<'b> {
    User,
    System,
    Answer(&'b [&'b str]),
}
use Said::{Answer, System, User};

const THOUGHT: Said<'_> = Answer(&["thinking"]);

fn thought(number: usize, at: usize) -> String {
    format!("thought {number} {at}, which is longer than what stands in for it")
}

/// The conversation in a request whose turn is over.
fn request(said: &[Said<'_>], binding: Binding) -> Request {
    let objects = TestObjects::default();
    let mut request = Request::default();
    request.segments.set_binding(binding, false);
    request.segments.set_shortens(true);
    for (number, one) in said.iter().enumerate() {
        let key = number.to_string();
        match one {
            User => request.push_user(&key, &json!({ "content": "go" }), true, &objects),
            System => request.segments.push_system(&key, 9),
            Answer(blocks) => {
                let block = |(at, kind): (usize, &&str)| match *kind {
                    "thinking" => {
                        json!({ "type": "thinking", "thinking": thought(number, at), "thinkingSignature": "s" })
                    }
                    text => json!({ "type": "text", "text": text }),
                };
                let content: Vec<Value> = blocks.iter().enumerate().map(block).collect();
                let message = json!({ "role": "assistant", "api": "anthropic-messages", "content": content });
                request.push_answer(&key, &message, "/", (true, &objects));
            }
        }
    }
    request
}

/// Lets all reasoning leave. Returns for each changed message whether it is gone, or its edited blocks.
fn left(request: &mut Request) -> Vec<(String, Option<Vec<TextEdit>>)> {
    let objects = TestObjects::default();
    let Some(shape) = request.segments.reasoning_roll(0, &objects) else { return Vec::new() };
    request.segments.apply(&shape, &objects);
    let edits = request.segments.edits_of(shape.places().collect::<Vec<_>>());
    let told = edits.into_iter().map(|edit| match edit {
        Edit::Gone { key, .. } => (key, None),
        Edit::Message { key, texts, .. } => (key, Some(texts)),
        Edit::Result { .. } => panic!("there are no results"),
    });
    told.collect()
}

fn text(block: usize, text: Option<&str>) -> TextEdit {
    TextEdit { block, text: text.map(str::to_owned) }
}

/// `None`: the message is gone.
#[rstest]
#[case::behind_a_user(&[User, THOUGHT, User], &[("1", None)])]
#[case::behind_the_system(&[User, System, THOUGHT, User], &[("2", Some(vec![text(0, Some("[...]"))]))])]
#[case::behind_two_of_the_system(&[User, System, System, THOUGHT, User], &[("3", Some(vec![text(0, Some("[...]"))]))])]
#[case::the_first_of_two(&[System, THOUGHT, THOUGHT, User], &[("1", Some(vec![text(0, Some("[...]"))])), ("2", None)])]
#[case::behind_a_user_behind_the_system(&[System, User, THOUGHT, User], &[("2", None)])]
#[case::of_two_blocks(&[System, Answer(&["thinking", "thinking"]), User], &[("1", Some(vec![text(0, Some("[...]")), text(1, None)]))])]
#[case::with_a_blank_text(&[User, Answer(&["thinking", " \n"]), User], &[("1", None)])]
#[case::with_a_blank_text_behind_the_system(&[System, Answer(&["", "thinking"]), User], &[("1", Some(vec![text(1, Some("[...]"))]))])]
#[case::with_a_text(&[System, Answer(&["thinking", "done"]), User], &[("1", Some(vec![text(0, None)]))])]
#[case::twice(&[System, THOUGHT, System, THOUGHT, User], &[("1", Some(vec![text(0, Some("[...]"))])), ("3", Some(vec![text(0, Some("[...]"))]))])]
fn reasoning_that_leaves_leaves_no_gap_behind_the_system(
    #[case] said: &[Said<'_>],
    #[case] expected: &[(&str, Option<Vec<TextEdit>>)],
    #[values(Binding::Refuses, Binding::Drops)] binding: Binding,
) {
    let left = left(&mut request(said, binding));
    let expected: Vec<_> = expected.iter().map(|(key, texts)| ((*key).to_owned(), texts.clone())).collect();
    assert_eq!(left, expected);
}

/// Reasoning of the turn under way stays where the provider drops it by itself.
#[test]
fn reasoning_of_the_turn_under_way_stays_where_it_is_dropped() {
    let said = [User, System, THOUGHT, User, System, THOUGHT];
    for (binding, is_over, expected) in [
        (Binding::Drops, false, &["2"][..]),
        (Binding::Drops, true, &["2", "5"]),
        (Binding::Refuses, false, &["2", "5"]),
    ] {
        let mut request = request(&said, binding);
        request.segments.turn_is_over = is_over;
        let keys: Vec<String> = left(&mut request).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, expected, "{binding:?}");
    }
}

/// The text that stands in for an answer is as long as it is, and comes again in a rebuilt request.
#[test]
fn text_that_stands_in_counts_and_comes_again() {
    let said = [User, System, THOUGHT, User];
    let mut first = request(&said, Binding::Refuses);
    let before = first.segments.tokens();
    left(&mut first);
    let kept = before - first.segments.tokens();
    let tokens = |text: &str| context_model::tokens::estimate(text) as u64;
    assert_eq!(kept, tokens(&thought(2, 0)) - tokens("[...]"));
    let objects = TestObjects::default();
    let mut again = Request::default();
    again.segments.set_shortens(true);
    let message = json!({ "role": "assistant", "api": "anthropic-messages", "content": [
        { "type": "thinking", "thinking": thought(2, 0), "thinkingSignature": "s" },
    ] });
    let id = context_model::chat::said_id(&thought(2, 0));
    again.rolled.note(context_model::chat::RollEntry { prose: vec![id], ..Default::default() }, 0);
    again.segments.push_system("system", 9);
    again.push_answer("answer", &message, "/", (false, &objects));
    let edits = again.missing_edits();
    let [Edit::Message { texts, .. }] = edits.as_slice() else { panic!("{edits:?}") };
    assert_eq!(texts, &[text(0, Some("[...]"))]);
}
