use rstest::rstest;
use serde_json::json;

use super::*;

const ARRIVALS: [Arrival; 3] = [Arrival::New, Arrival::Late, Arrival::Again];

/// A row for each role and end, with the moments at which it is recorded.
#[rstest]
#[case::user("user", "", MessageKind::User, [true, true, false])]
#[case::answer("assistant", "", MessageKind::Answer, [true, true, false])]
#[case::answer_with_calls("assistant", "toolUse", MessageKind::Answer, [true, true, false])]
#[case::answer_that_failed("assistant", "error", MessageKind::FailedAnswer, [true, true, false])]
#[case::answer_that_was_stopped("assistant", "aborted", MessageKind::FailedAnswer, [true, true, false])]
#[case::result("toolResult", "", MessageKind::Result, [false; 3])]
#[case::system("system", "", MessageKind::System, [false; 3])]
#[case::summary("compactionSummary", "", MessageKind::Other, [false; 3])]
#[case::user_with_an_end("user", "error", MessageKind::User, [true, true, false])]
#[case::without_a_role("", "", MessageKind::Other, [false; 3])]
fn kind_of_a_message(
    #[case] role: &str,
    #[case] end: &str,
    #[case] kind: MessageKind,
    #[case] is_recorded: [bool; 3],
) {
    assert_eq!(MessageKind::of(&json!({ "role": role, "stopReason": end })), kind);
    assert_eq!(ARRIVALS.map(|arrival| kind.is_recorded(arrival)), is_recorded);
}

/// A row for each moment and each request that its answer may have had; with the cache gone now or not.
#[rstest]
#[case::new(Arrival::New, false, None, (true, true, [true, false], true))]
#[case::new_asked_with_a_cache(Arrival::New, false, Some(false), (true, true, [false, false], true))]
#[case::new_asked_without_one(Arrival::New, false, Some(true), (true, true, [true, true], true))]
#[case::new_and_shortened(Arrival::New, true, None, (true, true, [true, false], true))]
#[case::late(Arrival::Late, false, None, (false, true, [false, false], true))]
#[case::late_asked_without_a_cache(Arrival::Late, false, Some(true), (false, true, [true, true], true))]
#[case::late_and_shortened(Arrival::Late, true, None, (false, false, [false, false], true))]
#[case::again(Arrival::Again, false, None, (false, true, [false, false], false))]
#[case::again_asked_without_a_cache(Arrival::Again, false, Some(true), (false, true, [true, true], false))]
#[case::again_and_shortened(Arrival::Again, true, None, (false, false, [false, false], false))]
fn answer_counts_by_its_request(
    #[case] arrival: Arrival,
    #[case] is_shortened: bool,
    #[case] asked_dead: Option<bool>,
    #[case] (is_own, teaches, dead, is_new): (bool, bool, [bool; 2], bool),
) {
    for (now, cache_dead) in [true, false].into_iter().zip(dead) {
        let facts = AnswerFacts { arrival, is_shortened, asked_dead, cache_dead: now };
        assert_eq!(facts.counted(), Counted { is_own, teaches, cache_dead, is_new });
    }
}
