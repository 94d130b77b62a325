//! Staleness by expected need: the ages of the usual sizes, and what holds at every price.

use context_model::pricing::{Curve, Need, Prices};
use proptest::prelude::*;
use rstest::rstest;

/// As many estimated tokens as so many chars are, all of them saved.
fn age(curve: Curve, chars: u64, cache_dead: bool) -> u64 {
    Need { lambda: 8.0, prices: Prices::UNKNOWN }.stale_age(curve, chars, chars / 4, cache_dead)
}

/// `30 calls * (n / 1000)^-0.42` of docs/economics.md, and half of that on a dead cache.
#[rstest]
#[case::a_line(200, 59, 29)]
#[case::a_screen(1_000, 30, 14)]
#[case::a_file(10_000, 11, 5)]
#[case::a_long_file(30_000, 7, 3)]
#[case::a_huge_log(10_000_000, 1, 1)]
fn long_outputs_leave_first(#[case] chars: u64, #[case] warm: u64, #[case] dead: u64) {
    assert_eq!((age(Curve::TOOL, chars, false), age(Curve::TOOL, chars, true)), (warm, dead));
}

#[rstest]
#[case::thinking(Curve::THINKING, 1_000, 22)]
#[case::long_thinking(Curve::THINKING, 10_000, 13)]
#[case::prose(Curve::PROSE, 1_000, 21)]
#[case::long_prose(Curve::PROSE, 10_000, 14)]
#[case::a_users_text(Curve::USER, 2_000, 9)]
fn each_kind_has_its_curve(#[case] curve: Curve, #[case] chars: u64, #[case] calls: u64) {
    assert_eq!(age(curve, chars, false), calls);
}

#[test]
fn what_saves_nothing_is_never_stale() {
    assert_eq!(Need::new(Prices::UNKNOWN).stale_age(Curve::TOOL, 5_000, 0, true), u64::MAX);
}

#[test]
fn a_use_that_weighs_more_keeps_text_longer() {
    let at =
        |lambda| Need { lambda, ..Need::new(Prices::UNKNOWN) }.stale_age(Curve::TOOL, 5_000, 1_250, false);
    assert!(at(4.0) < at(8.0) && at(8.0) < at(16.0));
}

proptest! {
    #[test]
    fn it_is_an_age_at_every_price(
        read: f64, write: f64, chars: u64, saved: u64, dead: bool, lambda in 0.0..1e9_f64,
    ) {
        let need = Need { lambda, ..Need::new(Prices::new(read, write)) };
        for curve in [Curve::TOOL, Curve::THINKING, Curve::PROSE, Curve::USER] {
            prop_assert!(need.stale_age(curve, chars, saved, dead) >= 1);
            prop_assert!(need.stale_age(curve, chars, saved, true) <= need.stale_age(curve, chars, saved, false));
        }
    }

    #[test]
    fn who_saves_more_leaves_no_later(read in 0.001..1.0_f64, chars: u64, saved in 0..u64::MAX / 2, more: u32) {
        let need = Need::new(Prices::new(read, 1.25));
        let of = |saved| need.stale_age(Curve::TOOL, chars, saved, false);
        prop_assert!(of(saved + u64::from(more)) <= of(saved));
    }

    #[test]
    fn of_whole_texts_the_longer_leaves_no_later(read in 0.001..1.0_f64, chars in 4..1_u64 << 40, more: u32) {
        let need = Need::new(Prices::new(read, 1.25));
        let of = |tokens: u64| need.stale_age(Curve::TOOL, tokens * 4, tokens, false);
        prop_assert!(of(chars + u64::from(more)) <= of(chars));
    }

    #[test]
    fn dearer_cached_tokens_leave_no_later(read in 0.001..0.5_f64, more in 0.0..0.5_f64, saved: u32) {
        let of = |read| Need::new(Prices::new(read, 1.25)).stale_age(Curve::TOOL, 4_000, saved.into(), false);
        prop_assert!(of(read + more) <= of(read));
    }
}
