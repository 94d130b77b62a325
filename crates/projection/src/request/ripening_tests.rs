use crate::Prices;
use rstest::rstest;
use serde_json::json;

use super::tests::{departure, id, judged, objects};
use super::*;
use crate::objects::TestObjects;
use crate::request::Request;
use crate::request::segment::{Line, Output};

/// A dead cache writes everything again, so what is nearly stale leaves now or not before its time.
#[test]
fn on_a_dead_cache_text_leaves_sooner() {
    let objects = objects(&["a"]);
    let mut segments = judged();
    segments.stays.weight = Some(1.0);
    segments.push_result("a", Output::of_test("a", 900), &objects);
    let policy = |cache_dead| Policy { cache_dead, ..Policy::new(Prices::default()) };
    segments.ripen(&policy(false), &objects);
    let Departure::Ages(forms) = segments.departure(0, &objects) else { panic!("it ages") };
    let due = forms[0].1;
    assert!(0 < due.dead && due.dead < due.warm, "{due:?}");
    for (calls, cache_dead, is_stale) in [
        (due.dead - 1, true, false),
        (due.dead, false, false),
        (due.dead, true, true),
        (due.dead, false, false),
        (due.warm - 1, false, false),
        (due.warm, false, true),
    ] {
        segments.calls = calls;
        segments.ripen(&policy(cache_dead), &objects);
        assert_eq!(segments.stale_tokens() > 0, is_stale, "call {calls}, dead: {cache_dead}");
        assert!(segments.segments[0].next == Form::Reference);
    }
}

/// True if the next roll removes all of an answer.
fn leaves(segments: &Segments, step: usize) -> bool {
    let mut range = segments.range_of(step).unwrap();
    range.all(|place| {
        segments.segments[place].next == Form::Removed && segments.ledger.stale.contains_key(&place)
    })
}

/// An answer leaves once it and the one before it may, whichever of them may first.
#[rstest]
#[case::in_order(0, 3)]
#[case::the_later_one_first(3, 0)]
fn answers_leave_one_after_another(#[case] first: u64, #[case] second: u64) {
    let objects = objects(&["a", "b", "c"]);
    let mut segments = answered_each(&["a", "b", "c"], &objects);
    segments.stays.calls = Stay::Calls(4);
    let since = [first, second, 90];
    since.into_iter().enumerate().for_each(|(at, since)| segments.steps[at].since = since);
    for calls in [4, 6, 7, 8] {
        segments.calls = calls;
        segments.ripen(&Policy::new(Prices::default()), &objects);
        let all = [0, 1, 2].map(|step| leaves(&segments, step));
        assert_eq!(all, [false, calls >= 7, false], "call {calls}");
    }
    // Nor does the second one once the first one is needed again.
    segments.steps[0].since = 50;
    segments.judge_step(0, &objects);
    assert!(!leaves(&segments, 1));
}

#[rstest]
#[case::in_order(0, 3)]
#[case::the_later_one_first(3, 0)]
fn on_a_dead_cache_answers_leave_sooner(#[case] first: u64, #[case] second: u64) {
    let objects = objects(&["a", "b", "c"]);
    let mut segments = answered_each(&["a", "b", "c"], &objects);
    segments.stays.weight = Some(0.01);
    let since = [first, second, 90];
    since.into_iter().enumerate().for_each(|(at, since)| segments.steps[at].since = since);
    for (calls, cache_dead, expected) in [
        (7, true, false),
        (8, false, false),
        (8, true, true),
        (8, false, false),
        (14, false, false),
        (15, false, true),
    ] {
        segments.calls = calls;
        segments.ripen(&Policy { cache_dead, ..Policy::new(Prices::default()) }, &objects);
        let all = [0, 1, 2].map(|step| leaves(&segments, step));
        assert_eq!(all, [false, expected, false], "call {calls}, dead: {cache_dead}");
    }
}

/// Answers with a call each: segments 0 and 1, 2 and 3, and so on.
fn answered_each(names: &[&str], objects: &TestObjects) -> Segments {
    let mut request = Request { segments: judged(), ..Request::default() };
    for name in names {
        let args = json!({ "command": "make ".repeat(40) });
        let call = json!({ "type": "toolCall", "id": name, "name": "bash", "arguments": args });
        request.push_answer(name, &json!({ "content": [call] }), "/", (true, objects));
        request.segments.answer(name, &id(name), true, objects, "/");
        request.segments.push_result(name, Output::of_test(name, 300), objects);
    }
    request.segments
}

/// Above a step in the price, keeping text costs more.
#[test]
fn need_is_weighed_at_the_price_of_the_request() {
    let objects = objects(&["a"]);
    let mut segments = judged();
    segments.push_result("a", Output::of_test("a", 900), &objects);
    let step = crate::PriceStep { input_tokens_above: 500, factor: 2.0 };
    let policy = Policy {
        price_steps: crate::PriceSteps::new(vec![step]),
        ..Policy::new(Prices { read: 0.125, write: 1.25 })
    };
    segments.ripen(&policy, &objects);
    assert_eq!(segments.need.unwrap().prices, Prices { read: 0.25, write: 2.5 });
}

/// A user's roll takes, besides what is stale, what is not active, as far as it has a shorter form.
#[test]
fn person_releases_inactive_objects() {
    let mut objects = objects(&["old", "active", "pinned", "lines", "leaves"]);
    objects.active.insert(id("active"));
    objects.pinned.insert(id("pinned"));
    let mut request = Request { segments: judged(), ..Request::default() };
    for name in ["old", "active", "pinned", "lines", "leaves"] {
        request.segments.push_result(name, Output::of_test(name, 900), &objects);
    }
    let long = "word ".repeat(500);
    for (message, calls) in [("m", ["old 1", "old 2"]), ("n", ["old 3", "active"])] {
        let calls = calls.map(|name| {
            json!({ "type": "toolCall", "id": name, "name": "write", "arguments": { "path": name, "content": long } })
        });
        request.push_answer(message, &json!({ "content": calls }), "/", (true, &objects));
    }
    let segments = &mut request.segments;
    for name in ["old 1", "old 2", "old 3", "active"] {
        segments.answer(name, &id(name), true, &objects, "/");
    }
    segments.push_fixed("o", 900);
    segments.take_form(3, Form::Reference);
    let SegmentKind::Result(output) = &mut segments.segments[3].kind else { panic!("a result") };
    output.lines = vec![Line { text: "looked".into(), stays: false, of: 0 }];
    segments.segments[4].next = Form::Removed;
    segments.release_inactive(&objects);
    let stale: Vec<usize> = segments.ledger.stale.keys().copied().collect();
    assert_eq!(stale, [0, 5], "the result and the arguments of calls none of which is active");
    assert!(stale.iter().all(|place| segments.segments[*place].next == Form::Reference));
    assert_eq!(segments.segments[4].next, Form::Removed);
    // Only for this call.
    segments.ripen(&Policy::new(Prices::default()), &objects);
    assert_eq!(segments.stale_tokens(), 0);
}

/// The first and the newest message of the user stay, however long they are.
#[test]
fn first_and_newest_texts_of_users_stay() {
    let objects = objects(&[]);
    let mut request = Request { segments: judged(), ..Request::default() };
    for key in ["first", "second", "third"] {
        request.push_user(
            key,
            &json!({ "content": format!("{key} {}", "word ".repeat(900)) }),
            true,
            &objects,
        );
    }
    let segments = &request.segments;
    assert_eq!([0, 1, 2].map(|place| departure(segments, place, &objects)), ["held", "ages", "held"]);
}

/// The forms that arguments take one after the other.
#[rstest]
#[case::an_edit("edit", Form::Full, &[Form::WithoutOldText, Form::Reference])]
#[case::without_its_old_text("edit", Form::WithoutOldText, &[Form::Reference])]
#[case::nothing_to_leave_out("write", Form::Full, &[Form::Reference])]
fn forms_of_arguments(#[case] tool: &str, #[case] form: Form, #[case] expected: &[Form]) {
    let objects = objects(&["c"]);
    let mut request = Request { segments: judged(), ..Request::default() };
    let long = "word ".repeat(500);
    let args = json!({ "path": "/a", "oldText": long, "newText": long, "content": long });
    let call = json!({ "type": "toolCall", "id": "c", "name": tool, "arguments": args });
    request.push_answer("m", &json!({ "content": [call] }), "/", (true, &objects));
    request.segments.answer("c", &id("c"), true, &objects, "/");
    if form != Form::Full {
        request.segments.take_form(0, form);
    }
    let Departure::Ages(forms) = request.segments.departure(0, &objects) else { panic!("it ages") };
    assert_eq!(forms.iter().map(|(form, _)| *form).collect::<Vec<_>>(), expected);
}
