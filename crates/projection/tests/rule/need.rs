//! Staleness by expected need: the ages of the usual sizes, and what holds at every price.

use context_projection::{Curve, Need, Prices};
use proptest::prelude::*;
use rstest::rstest;

/// Returns the age at which text of this many chars is stale, if all of its estimated tokens are saved.
fn age(curve: Curve, chars: u64, cache_dead: bool) -> u64 {
    stale_age(&need_with(8.0, Prices::UNKNOWN), curve, chars, chars / 4, cache_dead)
}

fn stale_age(need: &Need, curve: Curve, chars: u64, saved: u64, cache_dead: bool) -> u64 {
    need.age_at(need.wanted(curve, chars), saved, cache_dead)
}

fn need_with(lambda: f64, prices: Prices) -> Need {
    Need { lambda, prices, density: Need::USUAL_DENSITY }
}

/// `30 calls * (n / 1000)^-0.42` of docs/economics.md, and a third of that on a dead cache.
#[rstest]
#[case::a_line(200, 59, 20)]
#[case::a_screen(1_000, 30, 10)]
#[case::a_file(10_000, 11, 3)]
#[case::a_long_file(30_000, 7, 2)]
#[case::a_huge_log(10_000_000, 1, 1)]
fn long_outputs_leave_first(#[case] chars: u64, #[case] warm: u64, #[case] dead: u64) {
    assert_eq!((age(Curve::TOOL, chars, false), age(Curve::TOOL, chars, true)), (warm, dead));
}

#[rstest]
#[case::thinking(Curve::THINKING, 1_000, 27)]
#[case::long_thinking(Curve::THINKING, 10_000, 15)]
#[case::prose(Curve::PROSE, 1_000, 25)]
#[case::long_prose(Curve::PROSE, 10_000, 18)]
#[case::a_users_text(Curve::USER, 2_000, 12)]
fn each_kind_has_its_curve(#[case] curve: Curve, #[case] chars: u64, #[case] calls: u64) {
    assert_eq!(age(curve, chars, false), calls);
}

/// Text of 1,000 chars costs more to keep, and leaves sooner, on a model that counts more tokens for it.
#[rstest]
#[case::three_as_usual(Need::USUAL_DENSITY, 30)]
#[case::two(2.0, 22)]
#[case::one_and_a_bit(3.6, 14)]
#[case::less_than_one(6.0, 9)]
fn ages_go_by_the_tokens_that_the_model_counts(#[case] density: f64, #[case] calls: u64) {
    let need = Need { density, ..need_with(8.0, Prices::UNKNOWN) };
    assert_eq!(stale_age(&need, Curve::TOOL, 1_000, 250, false), calls);
}

#[test]
fn text_that_saves_nothing_is_never_stale() {
    assert_eq!(stale_age(&need_with(8.0, Prices::UNKNOWN), Curve::TOOL, 5_000, 0, true), u64::MAX);
}

#[test]
fn texts_that_leave_together_are_wanted_together() {
    let need = need_with(8.0, Prices::UNKNOWN);
    let one = need.wanted(Curve::TOOL, 1_000);
    let [alone, both] =
        [one, one + need.wanted(Curve::PROSE, 400)].map(|wanted| need.age_at(wanted, 250, false));
    assert!(alone < both && need.age_at(one, 350, false) < alone);
}

#[test]
fn higher_weight_of_a_use_keeps_text_longer() {
    let at = |lambda| stale_age(&need_with(lambda, Prices::UNKNOWN), Curve::TOOL, 5_000, 1_250, false);
    assert!(at(4.0) < at(8.0) && at(8.0) < at(16.0));
}

proptest! {
    #[test]
    fn it_is_an_age_at_every_price(
        read: f64, write: f64, chars: u64, saved: u64, dead: bool, lambda in 0.0..1e9_f64, density in 1.0..6.0_f64,
    ) {
        let need = Need { density, ..need_with(lambda, Prices::new(read, write)) };
        for curve in [Curve::TOOL, Curve::THINKING, Curve::PROSE, Curve::USER] {
            prop_assert!(stale_age(&need, curve, chars, saved, dead) >= 1);
            prop_assert!(stale_age(&need, curve, chars, saved, true) <= stale_age(&need, curve, chars, saved, false));
        }
    }

    #[test]
    fn larger_saving_never_leaves_later(read in 0.001..1.0_f64, chars: u64, saved in 0..u64::MAX / 2, more: u32) {
        let need = need_with(8.0, Prices::new(read, 1.25));
        let of = |saved| stale_age(&need, Curve::TOOL, chars, saved, false);
        prop_assert!(of(saved + u64::from(more)) <= of(saved));
    }

    #[test]
    fn longer_text_never_leaves_later(read in 0.001..1.0_f64, chars in 4..1_u64 << 40, more: u32) {
        let need = need_with(8.0, Prices::new(read, 1.25));
        let of = |tokens: u64| stale_age(&need, Curve::TOOL, tokens * 4, tokens, false);
        prop_assert!(of(chars + u64::from(more)) <= of(chars));
    }

    #[test]
    fn dearer_cached_tokens_leave_no_later(read in 0.001..0.5_f64, more in 0.0..0.5_f64, saved: u32) {
        let of = |read| stale_age(&need_with(8.0, Prices::new(read, 1.25)), Curve::TOOL, 4_000, saved.into(), false);
        prop_assert!(of(read + more) <= of(read));
    }
}

/// Text that leaves before it is stale loses the need for it until then, less the rent. At these prices 300 tokens cost 50 a
/// call.
#[rstest]
#[case::just_written(1_000.0, 300, 0, 907.350_756)]
#[case::later(1_000.0, 300, 4, 99.935_413)]
#[case::nearly_stale(1_000.0, 300, 9, 0.0)]
#[case::long_stale(1_000.0, 300, 900, 0.0)]
#[case::text_that_saves_nothing_is_needed_for_good(1_000.0, 0, 3, 1_649.384_888)]
fn losing_text_before_it_is_stale(
    #[case] wanted: f64,
    #[case] saved: u64,
    #[case] age: u64,
    #[case] lost: f64,
) {
    let need = need_with(1.0, Prices { read: 0.125, write: 1.25 });
    let got = need.loss(wanted, saved, age);
    assert!((got - lost).abs() < 1e-3, "{got}");
}
