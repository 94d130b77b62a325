use context_model::id::ObjectId;
use rstest::rstest;
use serde_json::json;

use super::super::segment::{Line, ShownLines};
use super::*;
use crate::Binding;
use crate::objects::TestObjects;
use crate::request::Request;
use crate::request::plan::Edit;
use crate::request::segment::Output;
use crate::{Need, Prices};

/// Two answers with a call each: their segments are 0 to 2 and 3 to 5, a text, arguments and a result.
fn two_answers(objects: &TestObjects) -> Segments {
    answers(&["one", "two"], objects)
}

fn answers(ids: &[&str], objects: &TestObjects) -> Segments {
    let mut request = Request::default();
    for id in ids {
        let call = json!({ "type": "toolCall", "id": id, "name": "bash", "arguments": { "command": id } });
        let content = json!([{ "type": "text", "text": "I look." }, call]);
        request.push_answer(id, &json!({ "role": "assistant", "content": content }), "/", (true, objects));
        let object = ObjectId::new(*id);
        request.segments.answer(id, &object, true, objects, "/");
        request.segments.push_result(&format!("result of {id}"), Output::of_test(id, 1_000), objects);
    }
    request.segments
}

fn roll_from(cut: usize) -> Roll {
    Roll::of_test(cut, (cut..6).collect())
}

/// A call never leaves without its result, nor a result without its call.
#[rstest]
#[case::both_answers(0..6, 0, Some(vec![3, 4, 5]))]
#[case::a_part_of_the_second(4..6, 4, None)]
#[case::the_second_from_its_middle_on(3..6, 4, None)]
#[case::the_second_without_its_text(4..6, 0, None)]
fn answer_leaves_as_a_whole(
    #[case] aimed: std::ops::Range<usize>,
    #[case] cut: usize,
    #[case] gone: Option<Vec<usize>>,
) {
    let objects = TestObjects::default();
    let mut segments = two_answers(&objects);
    assert_eq!(segments.segments.len(), 6);
    segments.steps[0].is_ripe = true;
    for place in aimed {
        segments.segments[place].next = Form::Removed;
    }
    let shape = segments.shape(roll_from(cut), &objects);
    let left = shape.forms.iter().filter(|(_, form)| *form == Form::Removed);
    assert_eq!(left.map(|(place, _)| *place).collect::<Vec<_>>(), gone.clone().unwrap_or_default());
    assert_eq!(shape.call_digests.len(), usize::from(gone.is_some()));
}

#[test]
fn message_has_one_edit_for_all_its_segments() {
    let objects = TestObjects::default();
    let mut segments = two_answers(&objects);
    for place in 0..6 {
        segments.segments[place].form = Form::Removed;
    }
    let edits = segments.edits_of([4, 0, 1, 3, 5]);
    assert_eq!(edits.iter().map(Edit::key).collect::<Vec<_>>(), ["one", "two", "result of two"]);
}

#[test]
fn arguments_that_have_no_shorter_form_are_not_shortened_again() {
    let objects = TestObjects::default();
    let mut segments = two_answers(&objects);
    assert!(matches!(segments.kind(1), SegmentKind::Arguments(_)));
    assert!(!segments.repeat(1, Form::Reference, &objects));
    assert_eq!(segments.segments[1].form, Form::Full);
}

#[test]
fn arguments_are_answered_once_all_their_calls_are() {
    let objects = TestObjects::default();
    let mut request = Request::default();
    let content = "long ".repeat(500);
    let calls = ["one", "two"].map(|id| {
        json!({ "type": "toolCall", "id": id, "name": "write", "arguments": { "path": id, "content": content } })
    });
    request.push_answer("m", &json!({ "role": "assistant", "content": calls }), "/", (true, &objects));
    let is_answered = |segments: &Segments| match segments.kind(0) {
        SegmentKind::Arguments(arguments) => arguments.is_answered(),
        _ => panic!("the arguments come first"),
    };
    assert!(!is_answered(&request.segments));
    for (id, all) in [("one", false), ("two", true)] {
        assert!(!request.segments.repeat(0, Form::Reference, &objects));
        request.segments.answer(id, &ObjectId::new(id), true, &objects, "/");
        assert_eq!(is_answered(&request.segments), all);
    }
    assert!(request.segments.repeat(0, Form::Reference, &objects));
}

#[test]
fn segment_in_its_form_is_not_rolled() {
    let objects = TestObjects::default();
    let mut segments = two_answers(&objects);
    for place in 0..6 {
        segments.segments[place].next = segments.segments[place].form;
    }
    segments.segments[2].next = Form::Reference;
    assert_eq!(segments.shape(roll_from(0), &objects).forms, [(2, Form::Reference)]);
}

/// By itself a segment becomes a reference if that is shorter, and no object needs the whole.
#[test]
fn segment_becomes_a_shorter_reference_by_itself() {
    let objects = TestObjects::default();
    let mut segments = two_answers(&objects);
    assert_eq!(segments.alone(2, &objects), None, "nothing was judged yet");
    segments.need = Some(Need { prices: Prices::default(), lambda: 0.0, density: Need::USUAL_DENSITY });
    assert_eq!(segments.alone(2, &objects), Some((2, Form::Reference)));
    assert_eq!(segments.alone(1, &objects), None, "the arguments are short");
    let reference = size_in(&segments.segments[2], Form::Reference);
    for (born, is_longer) in [(reference, false), (reference + 1, true)] {
        if let SegmentKind::Result(output) = &mut segments.segments[2].kind {
            output.full_tokens = born;
        }
        assert_eq!(segments.alone(2, &objects).is_some(), is_longer);
    }
    let mut wanted = TestObjects::default();
    wanted.pinned.insert(ObjectId::new("two"));
    assert_eq!(segments.alone(5, &wanted), None, "it is pinned");
    segments.take_form(5, Form::Reference);
    assert_eq!(segments.alone(5, &objects), None, "it is one already");
}

/// Only the lines of answers that the undone roll had made lines leave again.
#[test]
fn undone_roll_takes_back_its_own_lines() {
    let objects = TestObjects::default();
    let mut segments = answers(&["one", "two", "three"], &objects);
    let roll = |segments: &mut Segments, call_digest: [usize; 2], last: usize| {
        let mut shape = Shape::of(roll_from(0));
        shape.forms = std::iter::once((last, Form::Reference))
            .chain((call_digest[1] * 3..call_digest[1] * 3 + 3).map(|p| (p, Form::Removed)))
            .collect();
        shape.call_digests = vec![call_digest.to_vec()];
        segments.note_before(&mut shape);
        segments.apply(&shape, &objects);
        shape
    };
    let call_digests =
        |segments: &Segments| segments.steps.iter().map(|step| step.call_digest).collect::<Vec<_>>();
    let lines = |segments: &Segments| segments.output_at(2).unwrap().lines.len();
    let first = roll(&mut segments, [0, 1], 2);
    assert_eq!((call_digests(&segments), lines(&segments)), (vec![Some(0), Some(0), None], 2));
    let second = roll(&mut segments, [0, 2], 2);
    assert_eq!((call_digests(&segments), lines(&segments)), (vec![Some(0), Some(0), Some(0)], 4));
    segments.undo(&second, 1, &objects);
    assert_eq!((call_digests(&segments), lines(&segments)), (vec![Some(0), Some(0), None], 2));
    assert!(segments.segments[6..].iter().all(|segment| segment.form == Form::Full));
    // The third answer could become lines after the first one only while the second has become some.
    segments.steps[2].is_ripe = true;
    segments.aim_step(2, &objects);
    assert!(segments.segments[6..].iter().all(|segment| segment.next == Form::Removed));
    assert!(segments.stale_tokens() > 900);
    segments.undo(&first, 1, &objects);
    assert_eq!((call_digests(&segments), lines(&segments)), (vec![None; 3], 0));
    assert_eq!(segments.stale_tokens(), 0);
}

#[test]
fn lines_of_calls_that_only_looked_leave_and_the_reference_stays() {
    let objects = TestObjects::default();
    let mut segments = two_answers(&objects);
    segments.take_form(2, Form::Reference);
    if let SegmentKind::Result(output) = &mut segments.segments[2].kind {
        output.lines = [("looked", false), ("changed", true)]
            .map(|(text, stays)| Line { text: text.into(), stays, of: 0 })
            .into();
    }
    segments.take_form(2, Form::Compact);
    assert_eq!((segments.segments[2].form, segments.segments[2].next), (Form::Reference, Form::Reference));
    let output = segments.output_at(2).unwrap();
    assert_eq!(output.text_in(Form::Reference).unwrap(), "toolcall_ref id=one\nchanged");
}

#[test]
fn words_are_shortened_again_only_in_a_harness_that_can() {
    let objects = TestObjects::default();
    let mut request = Request::default();
    let long = "word ".repeat(5_000);
    for text in [long.as_str(), "short"] {
        let content = json!([{ "type": "text", "text": text }]);
        request.push_answer(text, &json!({ "role": "assistant", "content": content }), "/", (true, &objects));
    }
    let segments = &mut request.segments;
    assert!(!segments.repeat(0, Form::Reference, &objects));
    segments.set_shortens(true);
    assert!(!segments.repeat(1, Form::Reference, &objects), "it has no shorter form");
    assert!(segments.repeat(0, Form::Reference, &objects));
    assert!(!segments.repeat(0, Form::Reference, &objects), "it has it already");
}

#[test]
fn a_result_has_one_edit() {
    let objects = TestObjects::default();
    let segments = two_answers(&objects);
    let keys = |places: &[usize]| {
        let edits = segments.edits_of(places.iter().copied());
        edits.iter().map(|edit| edit.key().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&[2, 2, 5]), ["result of one", "result of two"]);
    assert_eq!(keys(&[2, 3]), ["result of one", "two"]);
}

/// A result says that its file has changed since, if it has by the time when a reference replaces it.
#[rstest]
#[case::other_bytes(Some(b"b"), true, Form::Full, true)]
#[case::gone(None, true, Form::Full, true)]
#[case::the_same_bytes(Some(b"a"), true, Form::Full, false)]
#[case::that_says_nothing_of_its_lines(Some(b"b"), false, Form::Full, false)]
#[case::a_reference_already(Some(b"b"), true, Form::Reference, false)]
fn whether_a_file_has_changed_since(
    #[case] now: Option<&[u8; 1]>,
    #[case] says_lines: bool,
    #[case] form: Form,
    #[case] changed: bool,
) {
    let (id, file) = (ObjectId::new("read"), ObjectId::new("file"));
    let digest = context_model::hash::Digest::of;
    let mut objects = TestObjects::default();
    objects.hashes.extend(now.map(|bytes| (file.clone(), digest(bytes))));
    if says_lines {
        objects.outcomes.insert(id, "9 lines".into());
    }
    let mut segments = Segments::default();
    let shown = ShownLines { file, hash: digest(b"a"), tx: context_model::time::TxId(1), first: 1, last: 9 };
    segments.push_result("m", Output { shown: Some(shown), ..Output::of_test("read", 900) }, &objects);
    segments.push_result("n", Output::of_test("other", 900), &objects);
    if form != Form::Full {
        segments.take_form(0, form);
        let SegmentKind::Result(output) = &mut segments.segments[0].kind else { panic!("a result") };
        output.lines = vec![Line { text: "looked".into(), stays: false, of: 0 }];
        segments.segments[0].next = Form::Compact;
    }
    let shape = segments.shape(Roll::of_test(0, vec![0, 1]), &objects);
    assert_eq!(shape.changed, if changed { vec![0] } else { vec![] });
    segments.apply(&shape, &objects);
    let says = |segments: &Segments| {
        [0, 1].map(|place| segments.output_at(place).unwrap().text_in(Form::Reference).unwrap())
    };
    let since = if changed { ", changed since" } else { "" };
    assert_eq!(says(&segments), [format!("toolcall_ref id=read{since}"), "toolcall_ref id=other".into()]);
    segments.undo(&shape, 1, &objects);
    assert!(says(&segments)[0].starts_with("toolcall_ref id=read\nlooked") || form == Form::Full);
    assert!(!says(&segments)[0].contains("changed since"));
}

/// Checks which reasoning behind a change leaves with it, if the reasoning came in this turn or an earlier one.
#[rstest]
#[case::not_bound(Binding::None, "s", true, false, false)]
#[case::still_read(Binding::Keeps, "s", true, false, false)]
#[case::of_an_earlier_turn(Binding::Drops, "s", true, false, true)]
#[case::of_this_turn(Binding::Drops, "s", false, false, false)]
#[case::of_this_turn_that_is_over(Binding::Drops, "s", false, true, true)]
#[case::that_stays_with_its_calls(Binding::Drops, "", true, false, false)]
#[case::that_would_be_refused(Binding::Refuses, "", false, false, true)]
fn reasoning_behind_a_change(
    #[case] binding: Binding,
    #[case] signature: &str,
    #[case] user_speaks: bool,
    #[case] is_over: bool,
    #[case] leaves: bool,
) {
    let objects = TestObjects::default();
    let mut request = Request::default();
    let segments = &mut request.segments;
    segments.set_binding(binding, false);
    segments.set_shortens(true);
    segments.push_result("m", Output::of_test("before", 900), &objects);
    let block = json!({ "type": "thinking", "thinking": "hm ".repeat(99), "thinkingSignature": signature });
    // Without a signature, a copy of Claude's API wants its reasoning back.
    let provider = if signature.is_empty() { "deepseek" } else { "anthropic" };
    let call = json!({ "type": "toolCall", "id": "c", "name": "bash", "arguments": {} });
    let message = json!({ "api": "anthropic-messages", "provider": provider, "content": [block, call] });
    request.push_answer("n", &message, "/", (true, &objects));
    if user_speaks {
        request.push_user("o", &json!({ "content": "next." }), true, &objects);
    }
    let segments = &mut request.segments;
    segments.turn_is_over = is_over;
    assert_eq!(segments.has_running_reasoning(0), !user_speaks && !is_over);
    assert_eq!(segments.binding(), binding);
    let all = segments.reasoning_roll(0, &objects).unwrap().roll;
    assert_eq!((all.cut, all.reasoning.as_slice(), all.removed_tokens), (1, &[1][..], 75));
    assert_eq!(segments.reasoning_roll(2, &objects), None);
    let roll = Roll { reasoning: vec![1], ..Roll::of_test(0, vec![0]) };
    let shape = segments.shape(roll, &objects);
    assert_eq!(shape.forms.contains(&(1, Form::Reference)), leaves);
    let before = segments.tokens();
    let saved = 900 - size_in(&segments.segments[0], Form::Reference);
    segments.apply(&shape, &objects);
    assert_eq!(segments.unbound, (!binding.is_strict()).then_some(0));
    // Reasoning that is still in the request but dropped by the provider costs nothing either.
    assert_eq!(segments.tokens(), before - saved - 75);
    assert_eq!(segments.ledger.reasoning_from(0).count(), 0);
    segments.undo(&shape, 1, &objects);
    let again = usize::from(leaves);
    assert_eq!(segments.ledger.reasoning_from(0).count(), again, "restored text is reasoning again");
    assert_eq!(segments.tokens(), if leaves { before } else { before - 75 });
}

/// The line of a call that left, and the one of the model's text before it.
#[test]
fn line_of_a_call_has_its_outcome() {
    let mut objects = TestObjects::default();
    objects.failed.insert(ObjectId::new("two"));
    objects.outcomes.insert(ObjectId::new("three"), "2 lines".into());
    let mut segments = answers(&["one", "two", "three"], &objects);
    segments.write_lines(&[0, 1, 2], &objects);
    let lines = segments.output_at(2).unwrap().lines.iter().map(|line| line.text.as_str());
    let said = format!("said: I look. id={}", context_model::chat::said_id("I look."));
    let expected = [&*said, "bash two failed id=two", &*said, "bash three -> 2 lines id=three"];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

/// Answers between which a user has spoken do not become lines after the same result.
#[rstest]
#[case::in_a_row(false, vec![vec![0, 1, 2, 3]])]
#[case::a_user_spoke(true, vec![vec![0, 1], vec![2, 3]])]
fn answers_in_a_row_share_their_place_for_lines(
    #[case] user_speaks: bool,
    #[case] call_digests: Vec<Vec<usize>>,
) {
    let objects = TestObjects::default();
    let mut request = Request::default();
    for (number, id) in ["one", "two", "three", "four"].into_iter().enumerate() {
        if user_speaks && number == 2 {
            request.push_user("u", &json!({ "content": "next." }), true, &objects);
        }
        let call = json!({ "type": "toolCall", "id": id, "name": "bash", "arguments": { "command": id } });
        request.push_answer(id, &json!({ "content": [call] }), "/", (true, &objects));
        request.segments.answer(id, &ObjectId::new(id), true, &objects, "/");
        request.segments.push_result(id, Output::of_test(id, 1_000), &objects);
    }
    let mut segments = request.segments;
    let places: Vec<usize> =
        (0..segments.segments.len()).filter(|at| segments.segments[*at].step.is_some()).collect();
    segments.steps.iter_mut().for_each(|step| step.is_ripe = true);
    let leave = |step: usize| step > 0 && !(user_speaks && step == 2);
    for place in &places {
        if leave(segments.segments[*place].step.unwrap()) {
            segments.segments[*place].next = Form::Removed;
        }
    }
    let shape = segments.shape(Roll::of_test(0, places), &objects);
    assert_eq!(shape.call_digests, call_digests);
}
