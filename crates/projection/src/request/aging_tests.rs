use context_model::hash::Digest;
use context_model::time::TxId;
use serde_json::json;

use super::*;
use crate::Prices;
use crate::objects::TestObjects;
use crate::request::Request;
use crate::request::schedule::Schedule;
use crate::request::segment::{Carried, Line, Output, ShownLines};

pub(super) fn id(name: &str) -> ObjectId {
    ObjectId::new(name)
}

fn lines(first: usize, last: usize) -> ShownLines {
    ShownLines { file: id("file"), hash: Digest::of(b"a"), tx: TxId(1), first, last }
}

/// Segments that were judged, in a harness that can shorten texts.
pub(super) fn judged() -> Segments {
    let mut segments = Segments::default();
    segments.set_shortens(true);
    segments.need = Some(Need { prices: Prices::default(), lambda: 1.0, density: Need::USUAL_DENSITY });
    segments
}

/// Objects of which these are tool calls.
pub(super) fn objects(calls: &[&str]) -> TestObjects {
    TestObjects { calls: calls.iter().copied().map(id).collect(), ..TestObjects::default() }
}

fn name(departure: &Departure) -> &'static str {
    match departure {
        Departure::Held => "held",
        Departure::Last => "last",
        Departure::Ages(_) => "ages",
    }
}

pub(super) fn departure(segments: &Segments, place: usize, objects: &TestObjects) -> &'static str {
    name(&segments.departure(place, objects))
}

#[test]
fn output_shorter_than_its_reference_has_no_shorter_form() {
    let mut objects = objects(&["a", "b"]);
    let mut segments = judged();
    let reference = Output::of_test("a", 0).reference.len().div_ceil(4) as u64;
    segments.push_result("a", Output::of_test("a", reference), &objects);
    segments.push_result("b", Output::of_test("b", reference + 1), &objects);
    assert_eq!([0, 1].map(|place| departure(&segments, place, &objects)), ["last", "ages"]);
    objects.released.extend([id("a"), id("b")]);
    assert_eq!([0, 1].map(|place| departure(&segments, place, &objects)), ["last", "ages"]);
    let Departure::Ages(forms) = segments.departure(1, &objects) else { panic!("it was released") };
    assert_eq!(forms, [(Form::Reference, RipeAt { warm: 0, dead: 0 })]);
}

/// A restored object stays where its newest text is, also if a later read of the file covers that.
#[test]
fn carrier_of_an_active_object_is_held() {
    let mut objects = objects(&["a", "read", "later"]);
    let carries = |object: &str| Some(Carried { object: id(object), whole: true, version: None });
    let mut segments = judged();
    segments.push_result(
        "m",
        Output { carries: carries("a"), shown: Some(lines(1, 5)), ..Output::of_test("read", 900) },
        &objects,
    );
    assert_eq!(departure(&segments, 0, &objects), "ages", "the object is not active");
    objects.active.insert(id("a"));
    assert_eq!(departure(&segments, 0, &objects), "held");
    segments.push_result("n", Output { shown: Some(lines(1, 9)), ..Output::of_test("later", 900) }, &objects);
    assert!(segments.segments[0].superseded);
    assert_eq!(departure(&segments, 0, &objects), "held", "a tool call's text is not in the file");
    segments.carriers.clear();
    assert_eq!(departure(&segments, 0, &objects), "ages", "another result carries it");

    // A file's text is in its later read.
    let mut segments = judged();
    objects.active.insert(id("file"));
    segments.push_result("m", Output { carries: carries("file"), ..Output::of_test("read", 900) }, &objects);
    assert_eq!(departure(&segments, 0, &objects), "held");
    segments.segments[0].superseded = true;
    assert_eq!(departure(&segments, 0, &objects), "ages");
}

/// A host's text in place of an output is not the output, so nothing that keeps the output keeps it.
#[test]
fn text_of_the_host_in_place_of_an_output_leaves_at_once() {
    let mut objects = objects(&["a", "b"]);
    objects.active.insert(id("a"));
    let mut segments = judged();
    for (name, tokens) in [("a", 900), ("b", 5)] {
        let reference = Output::of_test(name, tokens).reference;
        segments.push_result(name, Output::masked(id(name), tokens, reference), &objects);
    }
    let Departure::Ages(forms) = segments.departure(0, &objects) else { panic!("it saves tokens") };
    assert_eq!(forms, [(Form::Reference, RipeAt { warm: 0, dead: 0 })]);
    assert_eq!(departure(&segments, 1, &objects), "last", "the reference is as long");
    assert!(!segments.shows(&id("a")));
}

#[test]
fn read_is_covered_by_a_later_one_of_all_its_lines() {
    let objects = objects(&[]);
    let mut segments = judged();
    for (n, (first, last)) in [(3, 6), (1, 5), (4, 9), (3, 7)].into_iter().enumerate() {
        segments.push_result(
            "m",
            Output { shown: Some(lines(first, last)), ..Output::of_test(&format!("read {n}"), 900) },
            &objects,
        );
    }
    let covered: Vec<bool> = segments.segments.iter().map(|segment| segment.superseded).collect();
    assert_eq!(covered, [true, false, false, false]);
    assert_eq!(segments.lines_of(&id("read 1")), Some(&lines(1, 5)));
    assert_eq!(segments.lines_of(&id("read 9")), None);
}

/// A host may put a read before a later one of the same lines: its text has to be sent first.
#[test]
fn covered_read_leaves_once_it_was_sent() {
    let objects = objects(&[]);
    let mut segments = judged();
    for (name, shown) in [("first", lines(3, 6)), ("second", lines(1, 9))] {
        segments.push_result("m", Output { shown: Some(shown), ..Output::of_test(name, 900) }, &objects);
    }
    let due = |segments: &Segments| match segments.departure(0, &objects) {
        Departure::Ages(forms) => forms[0].1.warm,
        _ => panic!("it saves tokens"),
    };
    assert_eq!(due(&segments), segments.calls + 1);
    segments.calls += 1;
    assert_eq!(due(&segments), 0);
}

#[test]
fn arguments_without_a_shorter_form_have_none_however_old() {
    let objects = objects(&["one", "two"]);
    let mut request = Request { segments: judged(), ..Request::default() };
    let long = "word ".repeat(500);
    for (name, args) in
        [("one", json!({ "command": "ls" })), ("two", json!({ "path": "/a", "content": long }))]
    {
        let tool = if name == "one" { "bash" } else { "write" };
        let call = json!({ "type": "toolCall", "id": name, "name": tool, "arguments": args });
        request.push_answer(name, &json!({ "content": [call] }), "/", (true, &objects));
        assert_eq!(
            departure(&request.segments, request.segments.segments.len() - 1, &objects),
            if name == "one" { "last" } else { "held" }
        );
        request.segments.answer(name, &id(name), true, &objects, "/");
    }
    let segments = &mut request.segments;
    assert_eq!([0, 1].map(|place| departure(segments, place, &objects)), ["last", "ages"]);
    segments.take_form(1, Form::Reference);
    assert_eq!(departure(segments, 1, &objects), "last");
}

#[test]
fn words_without_a_shorter_form_have_none_and_neither_have_shortened_ones() {
    let objects = objects(&[]);
    let mut request = Request { segments: judged(), ..Request::default() };
    let long = "word ".repeat(500);
    for text in [long.as_str(), "short"] {
        request.push_answer(
            text,
            &json!({ "content": [{ "type": "text", "text": text }] }),
            "/",
            (true, &objects),
        );
    }
    assert_eq!([0, 1].map(|place| departure(&request.segments, place, &objects)), ["ages", "last"]);
    request.segments.take_form(0, Form::Reference);
    assert_eq!(departure(&request.segments, 0, &objects), "last");
    request.segments.stays.prose = Stay::Calls(3);
    assert_eq!([0, 1].map(|place| departure(&request.segments, place, &objects)), ["last", "last"]);
}

#[test]
fn lines_leave_while_some_of_them_are_of_calls_that_only_looked() {
    let objects = objects(&["a"]);
    let mut segments = judged();
    segments.push_result("a", Output::of_test("a", 900), &objects);
    let set = |segments: &mut Segments, all: &[bool]| {
        if let SegmentKind::Result(output) = &mut segments.segments[0].kind {
            output.lines =
                all.iter().map(|stays| Line { text: "line".into(), stays: *stays, of: 0 }).collect();
        }
    };
    segments.take_form(0, Form::Reference);
    for (all, expected) in
        [(&[][..], "last"), (&[true], "last"), (&[true, false], "ages"), (&[false], "ages")]
    {
        set(&mut segments, all);
        assert_eq!(departure(&segments, 0, &objects), expected, "{all:?}");
    }
    segments.take_form(0, Form::Removed);
    assert_eq!(departure(&segments, 0, &objects), "last", "its lines are gone with it");
}

#[test]
fn segments_are_past_before_the_newest_answer_and_older_before_the_newest_question() {
    let objects = objects(&[]);
    let mut segments = Segments::default();
    segments.push_fixed("a", 1);
    assert!(segments.is_in_newest_turn(0), "no user has spoken");
    segments.begin_user(&objects);
    segments.push_fixed("b", 1);
    segments.begin_answer(false, &objects);
    segments.push_fixed("c", 1);
    assert_eq!([0, 1, 2].map(|place| segments.is_past(place)), [true, true, false]);
    assert_eq!([0, 1, 2].map(|place| segments.is_in_newest_turn(place)), [false, true, true]);
}

#[test]
fn result_pointed_to_is_needed_until_the_users_next_turn() {
    let objects = objects(&["a"]);
    let mut segments = judged();
    segments.push_result("a", Output::of_test("a", 900), &objects);
    segments.calls = 7;
    segments.push_fixed("b", 1);
    assert_eq!(segments.calls_at(0..3).collect::<Vec<_>>(), [&id("a")]);
    assert!(segments.knows(&id("a")) && !segments.knows(&id("b")));
    assert!(segments.shows(&id("a")) && !segments.shows(&id("b")));
    segments.renew(&id("b"), &objects);
    assert_eq!(segments.segments[0].since, 0);
    segments.renew(&id("a"), &objects);
    assert_eq!((segments.segments[0].since, segments.is_pointed_at(0)), (7, false));
    segments.calls = 9;
    segments.point_to(&id("a"), &objects);
    assert_eq!((segments.segments[0].since, departure(&segments, 0, &objects)), (9, "held"));
    segments.start_turn(&objects);
    assert_eq!((segments.is_pointed_at(0), departure(&segments, 0, &objects)), (false, "ages"));
    segments.take_form(0, Form::Reference);
    assert!(segments.knows(&id("a")) && !segments.shows(&id("a")));
}

#[test]
fn calls_whose_messages_have_left_count_in_a_rebuilt_request() {
    let objects = objects(&["a"]);
    let mut segments = judged();
    segments.calls = 7;
    segments.push_result("a", Output::of_test("a", 900), &objects);
    segments.calls = 9;
    segments.count_calls(50);
    assert_eq!((segments.calls, segments.segments[0].since, segments.uncounted), (50, 48, 41));
    segments.count_calls(3);
    assert_eq!(segments.calls, 50, "what is visible has been called");
}

#[test]
fn a_call_is_named_by_its_own_result() {
    let objects = objects(&["one", "two"]);
    let mut request = Request { segments: judged(), ..Request::default() };
    let long = "word ".repeat(500);
    let calls = ["one", "two"].map(|name| {
        json!({ "type": "toolCall", "id": name, "name": "write", "arguments": { "path": name, "content": long } })
    });
    request.push_answer("m", &json!({ "content": calls }), "/", (true, &objects));
    let named = |segments: &Segments| match &segments.segments[0].kind {
        SegmentKind::Arguments(all) => all.calls.iter().map(|call| call.object.clone()).collect::<Vec<_>>(),
        _ => panic!("arguments alone"),
    };
    let segments = &mut request.segments;
    segments.answer("two", &id("two"), true, &objects, "/");
    assert_eq!(named(segments), [None, Some(id("two"))]);
    segments.answer("one", &id("one"), true, &objects, "/");
    assert_eq!(named(segments), [Some(id("one")), Some(id("two"))]);
    assert!(!segments.hides_arguments(&id("one")));
    segments.take_form(0, Form::Reference);
    assert!(segments.hides_arguments(&id("one")) && !segments.hides_arguments(&id("three")));
}

/// An answer with these calls and an output of 60 tokens for each.
fn answered(names: &[&str], objects: &TestObjects) -> Segments {
    let mut request = Request { segments: judged(), ..Request::default() };
    let call = |name: &&str| json!({ "type": "toolCall", "id": name, "name": "bash", "arguments": { "command": "ls" } });
    let calls: Vec<_> = names.iter().map(call).collect();
    request.push_answer("m", &json!({ "content": calls }), "/", (true, objects));
    for name in names {
        request.segments.answer(name, &id(name), true, objects, "/");
        request.segments.push_result(name, Output::of_test(name, 60), objects);
    }
    request.segments
}

/// An answer with calls leaves behind a line for each of them.
#[test]
fn answer_becomes_lines_once_they_cost_less_than_its_expected_need() {
    let names = ["a", "b", "c", "d"];
    let objects = objects(&names);
    let mut segments = answered(&names, &objects);
    let need = Need { lambda: 20.0, ..segments.need.unwrap() };
    segments.need = Some(need);
    let shown: u64 = (0..5).map(|place| segments.ledger.item(place).unwrap().tokens_full).sum();
    let wanted: f64 = (1..5).map(|place| need.wanted(Curve::TOOL, segments.chars_at(place))).sum();
    let age = |lines| need.age_at(wanted, shown - lines, false);
    assert!(age(15 * 4) > age(15 + 4) && age(15 / 4) > 12, "{}", age(15 * 4));
    assert_eq!(segments.ready(0, &objects).unwrap().warm, age(15 * 4));
}

#[test]
fn answer_that_may_become_lines_waits_for_no_call() {
    let objects = objects(&["a"]);
    let mut segments = answered(&["a"], &objects);
    segments.stays.calls = Stay::Calls(3);
    for (calls, waits) in [(2, true), (3, false), (4, false)] {
        segments.calls = calls;
        segments.judge_step(0, &objects);
        assert_eq!(segments.ripening.due(u64::MAX), if waits { vec![0] } else { Vec::new() });
        assert_eq!(segments.steps[0].is_ripe, !waits);
    }
}

#[test]
fn only_due_segments_ripen_at_a_call() {
    let mut schedule = Schedule::default();
    schedule.set(0, Some(RipeAt { warm: 9, dead: 4 }));
    schedule.set(1, Some(RipeAt { warm: 5, dead: 2 }));
    schedule.set(2, Some(RipeAt { warm: 5, dead: 5 }));
    assert!(schedule.due(4).is_empty());
    assert_eq!(schedule.due_on_a_dead_cache(4), [1, 0]);
    assert_eq!(schedule.due(5), [1, 2]);
    schedule.set(1, Some(RipeAt { warm: 20, dead: 10 }));
    schedule.set(2, None);
    schedule.set(2, None);
    assert_eq!((schedule.due(9), schedule.due_on_a_dead_cache(9)), (vec![0], vec![0]));
}
