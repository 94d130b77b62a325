use rstest::rstest;
use serde_json::json;

use super::*;
use crate::objects::TestObjects;
use crate::request::Request;
use crate::request::segment::Output;

/// Answers with a text, a call and its result each, so that a segment's place divided by 3 is its answer's number; `user` is a user's
/// message between them, and the other words are answers without calls.
fn answers(ids: &[&str], objects: &TestObjects) -> Segments {
    let mut request = Request::default();
    request.segments.set_shortens(true);
    for id in ids {
        if *id == "user" {
            request.push_user(id, &json!({ "role": "user", "content": "next." }), true, objects);
            continue;
        }
        let said = match *id {
            "text" => Some(json!("I think.")),
            "block" => Some(json!([{ "type": "text", "text": "I think." }])),
            "empty" => Some(json!("")),
            "none" => Some(json!(null)),
            "other" => Some(json!([{ "type": "redacted_thinking" }])),
            _ => None,
        };
        if let Some(content) = said {
            let answer = json!({ "role": "assistant", "content": content });
            request.push_answer(id, &answer, "/", (true, objects));
            continue;
        }
        let call = json!({ "type": "toolCall", "id": id, "name": "bash", "arguments": { "command": id } });
        let content = json!([{ "type": "text", "text": format!("I look at {id}.") }, call]);
        request.push_answer(id, &json!({ "role": "assistant", "content": content }), "/", (true, objects));
        let object = ObjectId::new(*id);
        request.segments.answer(id, &object, true, objects, "/");
        request.segments.push_result(&format!("result of {id}"), Output::of_test(id, 1_000), objects);
    }
    request.segments
}

fn objects(ids: &[&str]) -> Vec<ObjectId> {
    ids.iter().map(|id| ObjectId::new(*id)).collect()
}

/// Returns the answers in the request, in order: the name of each one shown, and in brackets those that its lines replace.
fn shown(segments: &Segments) -> String {
    let mut all = Vec::new();
    for number in 0..segments.steps.len() {
        let places: Vec<usize> = segments.range_of(number).unwrap().collect();
        let removed = places.iter().filter(|place| segments.segments[**place].form == Form::Removed).count();
        let SegmentKind::Result(output) = segments.kind(*places.last().unwrap()) else { panic!("a result") };
        if removed > 0 {
            assert_eq!(removed, places.len(), "an answer is hidden as a whole");
            continue;
        }
        let mut lines: Vec<usize> = output.lines.iter().map(|line| line.of).collect();
        lines.dedup();
        let of = |number: &usize| segments.calls_of(*number)[0].call_id.clone();
        let lines = lines.iter().map(of).collect::<Vec<_>>().join(" ");
        let name = of(&number);
        all.push(if lines.is_empty() { name } else { format!("{name}[{lines}]") });
    }
    all.join(" ")
}

/// A recorded group is shown in a conversation that the host has changed since.
#[rstest]
#[case::as_it_was("a b c d", "a[b c d]")]
#[case::with_more_behind("a b c d e", "a[b c d] e")]
#[case::one_redacted_in_between("a b x c d", "a[b] x c[d]")]
#[case::one_inserted_behind_the_carrier("a x b c d", "a x b[c d]")]
#[case::one_gone("a b d", "a[b d]")]
#[case::several_gone("a d", "a[d]")]
#[case::carrier_gone("b c d", "b[c d]")]
#[case::carrier_redacted("x b c d", "x b[c d]")]
#[case::last_one_redacted("a b c x", "a[b c] x")]
#[case::neighbours_exchanged("a c b d", "a[c b d]")]
#[case::the_carrier_exchanged("b a c d", "b[a c d]")]
#[case::last_one_first("d a b c", "d[a b c]")]
#[case::a_user_between("a b user c d", "a[b] c[d]")]
#[case::a_user_before_the_last("a b c user d", "a[b c] d")]
#[case::an_answer_that_is_one_text_between("a b text c d", "a[b] c[d]")]
#[case::an_answer_with_a_block_between("a block b c d", "a b[c d]")]
#[case::an_empty_answer_between("a b empty c d", "a[b] c[d]")]
#[case::an_answer_without_content_between("a b c none d", "a[b c] d")]
#[case::an_answer_that_only_its_provider_reads_between("a b other c d", "a[b] c[d]")]
#[case::one_apart("a x b x2 c x3 d", "a x b x2 c x3 d")]
#[case::only_one_left("x c y", "x c y")]
#[case::none_left("x y", "x y")]
fn lines_stand_for_hidden_answers_that_follow_in_order(#[case] now: &str, #[case] expected: &str) {
    let test = TestObjects::default();
    let ids: Vec<&str> = now.split(' ').collect();
    let mut segments = answers(&ids, &test);
    let changed = segments.repeat_call_digest(&objects(&["a", "b", "c", "d"]), usize::MAX, &test);
    assert_eq!(shown(&segments), expected);
    let mut once = changed.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), changed.len(), "each place is named once");
    let results = |id: &str| segments.results_of(&ObjectId::new(id)).into_iter();
    for id in ids.iter().filter(|id| ["b", "c", "d"].contains(id)) {
        for place in results(id) {
            assert!(segments.segments[place].form >= Form::Reference, "what was hidden stays hidden");
        }
    }
    let of = |form| (0..segments.segments.len()).filter(move |place| segments.segments[*place].form == form);
    assert!(of(Form::Removed).all(|place| changed.contains(&place)));
}

/// Groups of later rolls continue where the earlier ones end, also where a host has split these.
#[rstest]
#[case::as_it_was("a b c d e", "a[b c d e]")]
#[case::split_before_it("a b x c d e", "a[b] x c[d e]")]
#[case::split_within_it("a b c d x e", "a[b c d] x e")]
#[case::carrier_gone("b c d e", "b[c d e]")]
fn groups_of_several_rolls(#[case] now: &str, #[case] expected: &str) {
    let test = TestObjects::default();
    let ids: Vec<&str> = now.split(' ').collect();
    let mut segments = answers(&ids, &test);
    for group in [&["a", "b"][..], &["a", "c", "d"], &["a", "e"]] {
        segments.repeat_call_digest(&objects(group), usize::MAX, &test);
    }
    assert_eq!(shown(&segments), expected);
    for group in [&["a", "b"][..], &["a", "c", "d"], &["a", "e"]] {
        assert_eq!(segments.repeat_call_digest(&objects(group), usize::MAX, &test), [0; 0], "once is enough");
    }
}

#[test]
fn answers_become_lines_again_after_the_answer_that_carried_them() {
    let test = TestObjects::default();
    let mut segments = answers(&["one", "two", "three"], &test);
    segments.set_shortens(false);
    assert_eq!(
        segments.repeat_call_digest(&objects(&["one", "two"]), usize::MAX, &test),
        [0; 0],
        "the harness can't leave out messages"
    );
    segments.set_shortens(true);
    assert_eq!(
        segments.repeat_call_digest(&objects(&["one"]), usize::MAX, &test),
        [0; 0],
        "there are no others"
    );
    assert_eq!(segments.repeat_call_digest(&objects(&["one", "two"]), usize::MAX, &test), [2, 3, 4, 5]);
    assert_eq!(segments.repeat_call_digest(&objects(&["two", "three"]), usize::MAX, &test), [2, 6, 7, 8]);
    assert_eq!(shown(&segments), "one[two three]", "the lines of the second are the first's");
    // An answer that carries lines itself does not become one.
    let mut segments = answers(&["one", "two", "three"], &test);
    segments.repeat_call_digest(&objects(&["two", "three"]), usize::MAX, &test);
    assert_eq!(segments.repeat_call_digest(&objects(&["one", "two"]), usize::MAX, &test), [0; 0]);
    assert_eq!(shown(&segments), "one two[three]");
}
