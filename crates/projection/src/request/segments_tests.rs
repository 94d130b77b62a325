use rstest::rstest;
use serde_json::json;

use super::*;
use crate::objects::TestObjects;
use crate::request::Request;
use crate::request::segment::ShownLines;
use crate::{Prices, Stay};

fn id(name: &str) -> ObjectId {
    ObjectId::new(name)
}

fn policy() -> Policy {
    Policy::new(Prices { read: 0.125, write: 1.25 })
}

/// A provider counts a run of results as one.
#[test]
fn results_in_a_row_are_one_block() {
    let objects = TestObjects::default();
    let mut segments = Segments::default();
    for name in ["a", "b"] {
        segments.push_result(name, Output::of_test(name, 900), &objects);
    }
    segments.push_fixed("m", 9);
    segments.push_result("c", Output::of_test("c", 900), &objects);
    assert_eq!([0, 1, 2, 3].map(|place| segments.ledger.item(place).unwrap().blocks), [1, 0, 1, 1]);
}

#[test]
fn request_is_charged_for_its_calls() {
    let objects = TestObjects::default();
    let mut segments = Segments::default();
    segments.set_system_tokens(1_000);
    segments.push_pictured("m", 3_000, id("a"));
    assert!(segments.shows(&id("a")) && !segments.shows(&id("b")));
    assert_eq!((segments.tokens(), segments.rewrite_cost(&policy())), (4_000, 0.0), "nothing is cached");
    assert_eq!(segments.charge(&policy()), Charge { read_tokens: 0, written_tokens: 4_000 });
    assert_eq!((segments.calls, segments.rewrite_cost(&policy())), (1, 4_000.0 * 1.125));
    segments.push_result("n", Output::of_test("c", 500), &objects);
    assert_eq!(segments.charge(&policy()), Charge { read_tokens: 4_000, written_tokens: 500 });
    assert_eq!(segments.calls, 2);
    segments.set_system_tokens(1_001);
    assert_eq!(segments.rewrite_cost(&policy()), 0.0, "it has changed from its very start");
    // The size of the system part was only guessed, so another size is not a change.
    segments.charge(&policy());
    segments.guess_system_tokens(2_000);
    segments.set_system_tokens(3_000);
    assert_eq!(segments.rewrite_cost(&policy()), 6_500.0 * 1.125);
}

/// A roll that is paid for counts against the next ones.
#[test]
fn rolls_cost_no_more_than_the_bound() {
    let objects = TestObjects::default();
    let mut segments = Segments::default();
    segments.push_result("m", Output::of_test("a", 4_000), &objects);
    segments.push_fixed("n", 1_000);
    segments.charge(&policy());
    assert!(segments.ledger.set_stale(0, true));
    (0..20).for_each(|_| _ = segments.charge(&policy()));
    let policy = Policy { debt_cap: 0.1, ..policy() };
    let shape = segments.decide(&policy, &objects).unwrap();
    assert_eq!(
        segments.asked(&policy, &objects).map(|asked| asked.roll.items),
        Some(shape.roll.items.clone())
    );
    (0..5).for_each(|_| segments.ledger.pay(&shape.roll));
    assert_eq!(segments.decide(&policy, &objects), None);
}

/// A rebuilt request is cached as far as it was sent, or not at all.
#[rstest]
#[case::as_it_was_sent(usize::MAX, 4_000.0)]
#[case::otherwise(0, 0.0)]
fn rebuilt_request_is_in_the_cache(#[case] unchanged: usize, #[case] tokens: f64) {
    let mut segments = Segments::default().renewed();
    segments.push_fixed("m", 4_000);
    segments.charge(&policy());
    segments.assume_sent(unchanged);
    assert_eq!(segments.rewrite_cost(&policy()), tokens * 1.125);
    // From then on, a change breaks it.
    segments.ledger.replace(0, Item::fixed(5));
    assert_eq!(segments.rewrite_cost(&policy()), 0.0);
}

#[test]
fn text_and_answers_count_from_the_call_before_them() {
    let objects = TestObjects::default();
    let mut request = Request::default();
    let call = |name: &str| json!({ "type": "toolCall", "id": name, "name": "bash", "arguments": {} });
    for name in ["a", "b"] {
        request.segments.charge(&policy());
        request.push_answer(name, &json!({ "content": [call(name)] }), "/", (true, &objects));
    }
    let since = |segments: &Segments| segments.steps.iter().map(|step| step.since).collect::<Vec<_>>();
    assert_eq!(since(&request.segments), [1, 2]);
    request.segments.count_calls(10);
    assert_eq!(since(&request.segments), [9, 10], "8 calls came before what the transcript has");
}

/// A new place of an object in a set changes when its text leaves, wherever that is.
#[test]
fn touched_object_is_judged_again_everywhere() {
    let mut objects = TestObjects::default();
    let mut segments = Segments::default();
    let lines = ShownLines {
        file: id("file"),
        hash: context_model::hash::Digest::of(b"a"),
        tx: context_model::time::TxId(1),
        first: 1,
        last: 9,
    };
    let carries = Some(Carried { object: id("a"), whole: true, version: None });
    segments.push_result("m", Output::of_test("a", 900), &objects);
    segments.push_result("n", Output { carries, ..Output::of_test("b", 900) }, &objects);
    segments.push_result("o", Output { shown: Some(lines), ..Output::of_test("c", 900) }, &objects);
    segments.ripen(&policy(), &objects);
    segments.calls = 1_000;
    segments.ripen(&policy(), &objects);
    let stale = |segments: &Segments| segments.ledger.stale.keys().copied().collect::<Vec<_>>();
    assert_eq!(stale(&segments), [0, 1, 2]);
    for (name, left) in [("a", &[2][..]), ("file", &[])] {
        objects.pinned.insert(id(name));
        segments.touch(&id(name), &objects);
        assert_eq!(stale(&segments), left, "{name} is pinned");
    }
}

/// The settings of a host and a provider decide what can leave, so everything is judged again when they change.
#[test]
fn another_setting_has_everything_judged_again() {
    let objects = TestObjects::default();
    let mut segments = Segments::new(Stays { prose: Stay::Keep, ..Stays::default() });
    let is_judged = |segments: &mut Segments| {
        let was = segments.need.is_some();
        segments.ripen(&policy(), &objects);
        was
    };
    assert!(!is_judged(&mut segments) && is_judged(&mut segments));
    segments.set_shortens(true);
    assert!(!is_judged(&mut segments));
    segments.set_shortens(true);
    assert!(is_judged(&mut segments));
    segments.set_binding(Binding::Drops, true);
    assert!(!is_judged(&mut segments) && segments.text_is_reasoning);
    segments.set_binding(Binding::Drops, false);
    assert!(is_judged(&mut segments) && !segments.text_is_reasoning);
    assert_eq!(segments.binding(), Binding::Drops);
    let renewed = segments.renewed();
    assert_eq!((renewed.binding(), renewed.stays, renewed.calls), (Binding::Drops, segments.stays, 0));
}

/// Texts that a user restored stay for some user turns, each separately.
#[test]
fn user_turns_for_which_text_stays() {
    let objects = TestObjects::default();
    let mut segments = Segments::default();
    for (place, turns) in [(0, 0), (1, 1), (2, 3)] {
        segments.push_result("m", Output::of_test("a", 900), &objects);
        segments.bring_back(place, turns);
    }
    let kept = |segments: &Segments| [0, 1, 2].map(|place| segments.is_brought_back(place));
    assert_eq!(kept(&segments), [true; 3]);
    segments.ripen(&policy(), &objects);
    segments.calls = 1_000;
    for expected in [[false, false, true], [false, false, true], [false; 3], [false; 3]] {
        segments.start_turn(&objects);
        assert_eq!(kept(&segments), expected);
        assert_eq!(
            [0, 1, 2].map(|place| !segments.ledger.stale.contains_key(&place)),
            expected,
            "what is over leaves"
        );
    }
}
