//! Answers with their calls, texts of users, and the lines that old answers become.

use rstest::rstest;
use serde_json::json;

use super::*;
use crate::objects::TestObjects;
use crate::request::Request;
use crate::request::segment::Output;
use crate::{Binding, Need, Prices};

/// Providers look back a limited number of blocks for a cached prefix, and each segment counts as one.
#[test]
fn long_text_is_one_segment() {
    let objects = TestObjects::default();
    let mut request = Request::default();
    let long = "word ".repeat(5000);
    request.push_user("a", &json!({ "role": "user", "content": long }), true, &objects);
    assert_eq!(request.segments.segments.len(), 1);
    let blocks =
        json!([{ "type": "text", "text": format!("other {long}") }, { "type": "text", "text": "short" }]);
    request.push_user("b", &json!({ "role": "user", "content": blocks }), true, &objects);
    assert_eq!(request.segments.segments.len(), 3);
    request.push_user("c", &json!({ "role": "user", "content": "" }), true, &objects);
    assert_eq!(request.segments.segments.len(), 4, "each message has one");
}

#[test]
fn plain_text_counts_like_a_text_block() {
    let objects = TestObjects::default();
    let long = "word ".repeat(500);
    let pushed = |content: Value| {
        let mut request = Request::default();
        request.push_answer("a", &json!({ "role": "assistant", "content": content }), "/", (true, &objects));
        let all = request.segments;
        let prose: Vec<String> = all
            .segments
            .iter()
            .filter_map(|one| match &one.kind {
                SegmentKind::Prose(prose) => Some(format!("{} {:?}", prose.block, prose.short)),
                _ => None,
            })
            .collect();
        (all.segments.len(), all.tokens(), prose)
    };
    for text in ["short", long.as_str()] {
        assert_eq!(pushed(json!(text)), pushed(json!([{ "type": "text", "text": text }])));
    }
    assert_eq!(pushed(json!(long)).1, 625);
    assert_eq!(
        prose::named_texts(&json!({ "role": "assistant", "content": long }))
            .into_iter()
            .map(|(_, text)| text)
            .collect::<Vec<_>>(),
        [long.as_str()]
    );
    assert_eq!(
        [json!(""), json!(null), json!([])].map(|content| pushed(content).0),
        [1; 3],
        "each has a place"
    );
}

/// Checks whether an answer can become lines, and how many of its calls have arguments that can be shortened.
#[test]
fn answer_with_signed_or_unnamed_calls_stays() {
    let objects = TestObjects::default();
    let long = "word ".repeat(200);
    let call = |id: &str, signature: Value| {
        let arguments = json!({ "path": "/a", "content": long });
        json!({ "type": "toolCall", "id": id, "name": "write", "arguments": arguments, "thoughtSignature": signature })
    };
    let text = json!({ "type": "text", "text": "x" });
    for (content, steps, shorter) in [
        (json!([text, call("a", Value::Null)]), 1, 1),
        (json!([call("a", Value::Null), call("b", Value::Null)]), 1, 2),
        (json!([call("a", json!("s"))]), 0, 0),
        (json!([call("a", Value::Null), call("b", json!("s"))]), 0, 1),
        (json!([call("", Value::Null)]), 0, 1),
        (json!([text]), 0, 0),
    ] {
        let mut request = Request::default();
        request.push_answer("m", &json!({ "content": content }), "/", (true, &objects));
        assert_eq!(request.segments.steps.len(), steps, "{content}");
        let calls = request.segments.segments.iter().find_map(|segment| match &segment.kind {
            super::super::segment::SegmentKind::Arguments(all) => Some(all.shorter().count()),
            _ => None,
        });
        assert_eq!(calls.unwrap_or(0), shorter, "{content}");
    }
}

#[test]
fn images_count_as_tokens() {
    let objects = TestObjects::default();
    let mut request = Request::default();
    let image = json!({ "type": "image" });
    request.push_answer("m", &json!({ "content": [image, image] }), "/", (true, &objects));
    assert_eq!((request.segments.segments.len(), request.segments.tokens()), (1, 2_400));
    request.push_answer(
        "n",
        &json!({ "content": [{ "type": "text", "text": "abcd" }] }),
        "/",
        (true, &objects),
    );
    assert_eq!(
        (request.segments.segments.len(), request.segments.tokens()),
        (2, 2_401),
        "nothing is left over"
    );
}

#[test]
fn first_of_equal_texts_is_shortened() {
    let objects = TestObjects::default();
    let mut request = Request::default();
    let long = "word ".repeat(5000);
    for key in ["a", "b"] {
        request.push_user(key, &json!({ "role": "user", "content": long }), true, &objects);
    }
    let is_whole = request.segments.segments.iter().map(|segment| match &segment.kind {
        super::super::segment::SegmentKind::Prose(prose) => prose.short == Short::Whole,
        _ => panic!("a long text"),
    });
    assert_eq!(is_whole.collect::<Vec<_>>(), [false, true]);
}

/// The text of an answer with calls stays as it is if it is part of its reasoning.
#[test]
fn text_that_belongs_to_the_reasoning_is_not_shortened() {
    let objects = TestObjects::default();
    let text = json!({ "type": "text", "text": "word ".repeat(500) });
    let call = json!({ "type": "toolCall", "id": "c", "name": "bash", "arguments": {} });
    for (content, is_reasoning, stays) in
        [(json!([text, call]), true, true), (json!([text, call]), false, false), (json!([text]), true, false)]
    {
        let mut request = Request::default();
        request.segments.text_is_reasoning = is_reasoning;
        request.push_answer("m", &json!({ "content": content }), "/", (true, &objects));
        let super::super::segment::SegmentKind::Prose(prose) = &request.segments.segments[0].kind else {
            panic!("prose")
        };
        assert_eq!(prose.short == Short::Whole, stays, "{content}, {is_reasoning}");
        assert_eq!(request.segments.turn_is_over, content.as_array().unwrap().len() == 1);
    }
}

#[test]
fn calls_are_known_by_their_position_tool_and_gist() {
    let objects = TestObjects::default();
    let mut request = Request::default();
    let call = |id: &str| {
        let arguments = json!({ "path": format!("/w/{id}"), "content": "word ".repeat(200) });
        json!({ "type": "toolCall", "id": id, "name": "write", "arguments": arguments })
    };
    let content = ["a", "b", "c"].map(call);
    request.push_answer("m", &json!({ "content": content }), "/w", (true, &objects));
    let super::super::segment::SegmentKind::Arguments(all) = &request.segments.segments[0].kind else {
        panic!("arguments")
    };
    assert_eq!(all.calls.iter().map(|call| call.position).collect::<Vec<_>>(), [0, 1, 2]);
    let calls = request.segments.calls_of(0).iter();
    let known = calls.map(|call| (call.call_id.as_str(), call.tool.as_str(), call.gist.as_str()));
    assert_eq!(known.collect::<Vec<_>>(), ["a", "b", "c"].map(|name| (name, "write", name)));
}

#[test]
fn large_output_is_an_excerpt_from_the_start() {
    let large = (0..5_000).map(|n| format!("line {n}\n")).collect::<String>();
    let excerpt = first_excerpt("bash", &large).unwrap();
    assert!(excerpt.contains("line 0\n") && excerpt.len() < large.len() / 2);
    assert_eq!([first_excerpt("bash", "line 0"), first_excerpt("read", &large)], [None, None]);
}

/// A user's message, and an answer with reasoning of 300 chars, prose, a call and its result: segments 1 to 4.
struct Answer {
    provider: &'static str,
    signature: &'static str,
    /// Another answer came after it.
    is_past: bool,
    /// A user has spoken since.
    is_earlier_turn: bool,
    binding: Binding,
    thinking: Stay,
    is_brought_back: bool,
    form: Form,
}

/// One whose reasoning may leave together with its calls.
const PAST: Answer = Answer {
    provider: "deepseek",
    signature: "s",
    is_past: true,
    is_earlier_turn: false,
    binding: Binding::None,
    thinking: Stay::Needed,
    is_brought_back: false,
    form: Form::Full,
};

impl Answer {
    fn segments(&self, objects: &TestObjects) -> Segments {
        let mut request = Request::default();
        request.segments.set_shortens(true);
        request.segments.stays.thinking = self.thinking;
        request.segments.need =
            Some(Need { prices: Prices::default(), lambda: 1.0, density: Need::USUAL_DENSITY });
        request.segments.set_binding(self.binding, false);
        request.segments.need =
            Some(Need { prices: Prices::default(), lambda: 1.0, density: Need::USUAL_DENSITY });
        request.push_user("u", &json!({ "content": "go" }), true, objects);
        let content = json!([
            { "type": "thinking", "thinking": "hm ".repeat(100), "thinkingSignature": self.signature },
            { "type": "text", "text": "word ".repeat(200) },
            { "type": "toolCall", "id": "c", "name": "write", "arguments": { "path": "a", "content": "x".repeat(2_000) } },
        ]);
        let message = json!({ "api": "anthropic-messages", "provider": self.provider, "content": content });
        request.push_answer("m", &message, "/", (true, objects));
        request.segments.answer("c", &ObjectId::new("c"), true, objects, "/");
        request.segments.push_result("r", Output::of_test("c", 500), objects);
        if self.is_past {
            request.push_answer(
                "n",
                &json!({ "content": [{ "type": "text", "text": "x" }] }),
                "/",
                (true, objects),
            );
        }
        if self.is_earlier_turn {
            request.push_user("v", &json!({ "content": "next." }), true, objects);
        }
        if self.is_brought_back {
            request.segments.bring_back(1, 2);
        }
        if self.form != Form::Full {
            (1..5).for_each(|place| request.segments.take_form(place, self.form));
        }
        request.segments
    }
}

/// The part of an answer's reasoning that leaves together with its calls; `None` if it has to stay, and the calls with it.
#[rstest]
#[case::older_than_the_newest_answer(PAST, Some(300))]
#[case::of_the_newest_answer(Answer { is_past: false, ..PAST }, None)]
#[case::that_a_person_keeps(Answer { thinking: Stay::Keep, ..PAST }, None)]
#[case::that_a_person_brought_back(Answer { is_brought_back: true, ..PAST }, None)]
#[case::that_a_person_keeps_for_some_calls(Answer { thinking: Stay::Calls(9), ..PAST }, Some(300))]
#[case::that_has_left_already(Answer { form: Form::Reference, ..PAST }, Some(0))]
#[case::bound_to_this_turn(Answer { binding: Binding::Refuses, ..PAST }, None)]
#[case::bound_to_an_earlier_turn(Answer { binding: Binding::Refuses, is_earlier_turn: true, ..PAST }, Some(300))]
#[case::claudes_of_this_turn(Answer { provider: "anthropic", ..PAST }, None)]
#[case::claudes_of_an_earlier_turn(Answer { provider: "anthropic", is_earlier_turn: true, ..PAST }, Some(300))]
#[case::claudes_that_was_brought_back(
    Answer { provider: "anthropic", is_earlier_turn: true, is_brought_back: true, ..PAST },
    None
)]
fn reasoning_that_leaves_with_its_calls(#[case] answer: Answer, #[case] chars: Option<u64>) {
    let objects = TestObjects::default();
    let leaves = answer.segments(&objects).leaves_with_step(1, &objects);
    assert_eq!(leaves, chars.map(|chars| (Curve::THINKING, chars)));
}

/// The others: of prose and arguments the line keeps 80 units.
#[rstest]
#[case::as_they_came(Form::Full, [920, 1_961, 2_000])]
#[case::shortened(Form::Reference, [0, 0, 0])]
fn drops_text_with_its_calls(#[case] form: Form, #[case] expected: [u64; 3]) {
    let objects = TestObjects::default();
    let segments = Answer { form, ..PAST }.segments(&objects);
    let all = [2, 3, 4].map(|place| segments.leaves_with_step(place, &objects).unwrap());
    assert_eq!([all[0].0, all[1].0, all[2].0], [Curve::PROSE, Curve::TOOL, Curve::TOOL]);
    assert_eq!([all[0].1, all[2].1], [expected[0], expected[2]]);
    assert!(all[1].1 <= expected[1] || form == Form::Reference && all[1].1 < 200, "{}", all[1].1);
}

/// A user's setting counts from when the text was last needed.
#[rstest]
#[case::nothing_set(Stay::Needed, Stay::Needed, [None, None])]
#[case::reasoning(Stay::Calls(7), Stay::Needed, [Some(9), None])]
#[case::prose(Stay::Needed, Stay::Calls(5), [None, Some(7)])]
#[case::for_good(Stay::Keep, Stay::Keep, [None, None])]
fn when_a_person_lets_text_leave(
    #[case] thinking: Stay,
    #[case] prose: Stay,
    #[case] expected: [Option<u64>; 2],
) {
    let objects = TestObjects::default();
    let mut segments = PAST.segments(&objects);
    (segments.stays.thinking, segments.stays.prose) = (thinking, prose);
    segments.segments.iter_mut().for_each(|segment| segment.since = 2);
    assert_eq!([1, 2].map(|place| segments.set_by_a_person(place)), expected);
    assert_eq!([3, 4].map(|place| segments.set_by_a_person(place)), [None, None]);
}

/// An answer leaves as a whole once everything in it may, in a harness that can leave out messages.
#[test]
fn when_an_answer_is_ready_to_become_lines() {
    let objects = TestObjects::default();
    let mut segments = Answer { thinking: Stay::Calls(50), ..PAST }.segments(&objects);
    let ready = segments.ready(0, &objects).unwrap();
    assert!((CALLS..50).contains(&ready.warm) || ready.warm == 50, "{}", ready.warm);
    assert_eq!((ready.warm, ready.dead), (50, 50), "what a user has set counts last");
    segments.shortens = false;
    assert!(segments.ready(0, &objects).is_none());
    segments.shortens = true;
    segments.steps[0].call_digest = Some(0);
    assert!(segments.ready(0, &objects).is_none(), "it is lines, or has some");
}

/// Anthropic and Gemini have results and a picture, or the next prompt, in one message of the user.
#[test]
fn answer_whose_results_share_their_message_with_the_user_is_never_ready() {
    let objects = TestObjects::default();
    for joined in [false, true] {
        let mut request = Request { segments: PAST.segments(&objects), ..Request::default() };
        let message = json!({ "role": "user", "content": "and this?", "joined": joined });
        request.push_user("u", &message, true, &objects);
        assert_eq!(request.segments.ready(0, &objects).is_none(), joined);
    }
}

/// The lines of an answer cost tokens; each call has a separate one.
#[test]
fn results_with_one_call_id_belong_to_calls_in_their_order() {
    let objects = TestObjects::default();
    let mut request = Request::default();
    let call = json!({ "type": "toolCall", "id": "c", "name": "bash", "arguments": { "command": "ls" } });
    request.push_answer("m", &json!({ "content": [call, call] }), "/", (true, &objects));
    let segments = &mut request.segments;
    for (number, name) in ["one", "two"].into_iter().enumerate() {
        segments.answer("c", &ObjectId::new(name), true, &objects, "/");
        segments.push_result(name, Output::of_test(name, 500), &objects);
        let SegmentKind::Arguments(arguments) = &segments.segments[0].kind else { panic!("arguments") };
        assert_eq!(arguments.line_tokens, (number as u64 + 1) * line_tokens(&ObjectId::new(name), &objects));
    }
    let calls = segments.calls_of(0);
    let of = |at: usize| (calls[at].object.as_ref().map(ObjectId::as_str), calls[at].result);
    assert_eq!([of(0), of(1)], [(Some("one"), Some(1)), (Some("two"), Some(2))]);
    assert!(segments.awaiting.is_empty());
}

#[test]
fn line_length_includes_the_outcome() {
    let id = ObjectId::new("one");
    let mut objects = TestObjects::default();
    assert_eq!(line_tokens(&id, &objects), LINE_TOKENS);
    objects.outcomes.insert(id.clone(), "x".repeat(40));
    assert_eq!(line_tokens(&id, &objects), LINE_TOKENS + 10);
}
