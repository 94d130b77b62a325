use rstest::rstest;

use super::*;
use crate::{Binding, Item, PriceStep, PriceSteps, Prices, Reach};

/// Ratios that binary floating point holds exactly.
const EXACT: Prices = Prices { read: 0.125, write: 1.25 };

fn steps(all: &[(u64, f64)]) -> PriceSteps {
    let step = |(input_tokens_above, factor): &(u64, f64)| PriceStep {
        input_tokens_above: *input_tokens_above,
        factor: *factor,
    };
    PriceSteps::new(all.iter().map(step).collect())
}

/// Ten calls that added 1,000 tokens each, as one turn or as turns of two calls.
fn ten_calls(system_tokens: u64, calls_a_turn: usize) -> Ledger {
    let mut ledger = Ledger::new(system_tokens);
    for call in 0..10 {
        if call % calls_a_turn == 0 {
            ledger.start_turn();
        }
        ledger.push(Item::new(1_000, 0));
        ledger.charge_call(&Policy::new(EXACT));
    }
    ledger
}

/// Checks the saving of removing some of 10,000 tokens behind a system part, in tokens that are read once more than without.
#[rstest]
#[case::no_step(&[], Binding::None, 0, 5_000, 0.0)]
#[case::a_step_that_it_stays_above(&[(4_000, 2.0)], Binding::None, 0, 5_000, 0.0)]
#[case::below_a_step_nothing_waits(&[(12_000, 2.0)], Binding::None, 0, 5_000, 0.0)]
#[case::at_a_step_nothing_waits(&[(10_000, 2.0)], Binding::None, 0, 5_000, 0.0)]
#[case::calls_until_it_is_back_at_the_step(&[(8_000, 2.0)], Binding::None, 0, 5_000, 3.0 * 5_000.0)]
#[case::a_part_of_a_call(&[(8_000, 2.0)], Binding::None, 0, 3_500, 1.5 * 6_500.0)]
#[case::at_least_the_next_call(&[(8_000, 2.0)], Binding::None, 0, 2_000, 8_000.0)]
#[case::a_steeper_step(&[(8_000, 3.5)], Binding::None, 0, 5_000, 2.5 * 3.0 * 5_000.0)]
#[case::on_top_of_a_lower_step(&[(1_000, 1.5), (8_000, 2.0)], Binding::None, 0, 5_000, 0.5 * 3.0 * 5_000.0)]
#[case::no_more_calls_than_there_were(&[(25_000, 2.0)], Binding::None, 20_000, 20_000, 10.0 * 10_000.0)]
#[case::of_a_turn_that_waits(&[(12_000, 2.0)], Binding::Drops, 0, 5_000, 5.0 * 5_000.0)]
#[case::from_the_step_on(&[(10_000, 2.0)], Binding::Drops, 0, 5_000, 5.0 * 5_000.0)]
#[case::less_than_a_call_below_the_step(&[(10_000, 2.0)], Binding::Drops, 0, 500, 0.5 * 9_500.0)]
#[case::the_turn_would_not_reach_it(&[(40_000, 2.0)], Binding::Refuses, 0, 5_000, 0.0)]
fn staying_below_a_step(
    #[case] all: &[(u64, f64)],
    #[case] binding: Binding,
    #[case] system_tokens: u64,
    #[case] removed: u64,
    #[case] saved: f64,
) {
    let ledger = ten_calls(system_tokens, 10);
    let policy = Policy { price_steps: steps(all), binding, ..Policy::new(EXACT) };
    assert_eq!(ledger.below_a_step(&policy, ledger.total_tokens(), removed), saved * EXACT.read);
}

/// A turn of two calls would go above the step in its last one.
#[test]
fn short_turn_counts_only_its_own_calls() {
    let policy =
        Policy { price_steps: steps(&[(11_000, 2.0)]), binding: Binding::Drops, ..Policy::new(EXACT) };
    assert_eq!(ten_calls(0, 2).below_a_step(&policy, 10_000, 5_000), 5_000.0 * EXACT.read);
}

/// The maximum cost of rolls now: an eighth of the cost of the client's own requests, less the excess of earlier rolls over
/// their savings.
#[rstest]
#[case::nothing_spent(&[], 0.0)]
#[case::fresh_tokens(&[Do::Call], 10_000.0 * 1.25 / 8.0)]
#[case::and_cached_ones(&[Do::Call, Do::Call], 10_000.0 * (1.25 + 0.125) / 8.0)]
#[case::on_a_dead_cache(&[Do::Call, Do::DeadCall], 10_000.0 * (1.25 + 1.25) / 8.0)]
#[case::above_a_step(&[Do::DearCall], 3.0 * 10_000.0 * 1.25 / 8.0)]
#[case::a_roll_was_paid(&[Do::Call, Do::Pay(500.0)], 10_000.0 * 1.25 / 8.0 - 500.0)]
#[case::two_were(&[Do::Call, Do::Pay(500.0), Do::Pay(300.0)], 10_000.0 * 1.25 / 8.0 - 800.0)]
#[case::it_saves_at_each_call(
    &[Do::Call, Do::Roll, Do::DeadCall, Do::Call, Do::Call],
    (10_000.0 * 1.25 + 10_000.0 * (1.25 + 2.0 * 0.125)) / 8.0 + 8_000.0 * (1.25 + 2.0 * 0.125)
)]
#[case::above_a_step_it_saves_more(
    &[Do::Call, Do::Roll, Do::DearCall],
    (10_000.0 * 1.25 + 3.0 * (2_000.0 * 1.25 + 8_000.0 * 0.125)) / 8.0 + 3.0 * 8_000.0 * 0.125
)]
#[case::a_roll_was_paid_and_charged(&[Do::Call, Do::Pay(500.0), Do::Call], (10_000.0 * (1.25 + 0.125) - 500.0) / 8.0 - 500.0)]
#[case::undone_it_saves_nothing(&[Do::Call, Do::Roll, Do::Undo, Do::DeadCall], 10_000.0 * (1.25 + 1.25) / 8.0)]
fn debt_cap_bounds_the_cost_of_rolls(#[case] all: &[Do], #[case] most: f64) {
    let mut ledger = Ledger::new(0);
    ledger.push(Item::new(10_000, 2_000));
    let policy = Policy { debt_cap: 0.125, ..Policy::new(EXACT) };
    for one in all {
        one.to(&mut ledger, &policy);
    }
    assert!(ledger.affords(most, &policy) && !ledger.affords(most + 1.0, &policy));
    let with_slack = Policy { slack: 700.0, ..policy.clone() };
    assert!(ledger.affords(most + 700.0, &with_slack) && !ledger.affords(most + 701.0, &with_slack));
    assert!(ledger.affords(0.0, &Policy { debt_cap: -1e9, ..policy.clone() }), "a free roll can be afforded");
    assert!(ledger.affords(1e9, &Policy { debt_cap: f64::INFINITY, ..policy }), "without a bound");
}

/// An event of a ledger with one item.
#[derive(Debug)]
enum Do {
    Call,
    DeadCall,
    /// A call above a step in the price.
    DearCall,
    Roll,
    Undo,
    Pay(f64),
}

impl Do {
    fn to(&self, ledger: &mut Ledger, policy: &Policy) {
        match self {
            Self::Call => _ = ledger.charge_call(policy),
            Self::DeadCall => _ = ledger.charge_call(&Policy { cache_dead: true, ..policy.clone() }),
            Self::DearCall => {
                _ = ledger.charge_call(&Policy { price_steps: steps(&[(1_000, 3.0)]), ..policy.clone() });
            }
            Self::Roll => ledger.replace(0, Item::new(2_000, 2_000)),
            Self::Undo => ledger.replace(0, Item::new(10_000, 2_000)),
            Self::Pay(cost) => {
                let cut =
                    Cut { place: 0, removed: 0, rent: 0.0, cost: *cost, most: *cost, lost: 0.0, gain: 0.0 };
                ledger.pay(&ledger.roll(policy, cut, RollReason::Asked));
            }
        }
    }
}

/// Tokens that a call adds, also those that a roll has removed since.
#[rstest]
#[case::no_call(&[], 10_000.0)]
#[case::one_call(&[Do::Call], 10_000.0)]
#[case::four_calls(&[Do::Call, Do::Call, Do::Call, Do::Call], 2_500.0)]
#[case::with_a_roll(&[Do::Call, Do::Roll, Do::Call], 5_000.0)]
fn growth_of_a_request(#[case] all: &[Do], #[case] growth: f64) {
    let mut ledger = Ledger::new(500);
    ledger.push(Item::new(10_000, 2_000));
    all.iter().for_each(|one| one.to(&mut ledger, &Policy::new(EXACT)));
    assert_eq!(ledger.growth(), growth);
}

#[test]
fn item_counts_as_it_is_shown() {
    let mut ledger = Ledger::new(500);
    ledger.push(Item::new(700, 20));
    assert_eq!([0, 1].map(|place| ledger.tokens_at(place)), [700, 0]);
    ledger.replace(0, Item::new(20, 20));
    assert_eq!(ledger.tokens_at(0), 20);
    assert_eq!(Ledger::new(3).growth(), 1.0, "a request that does not grow");
}

/// The rent that a stale item has paid, in tokens: 8,000 would leave.
#[rstest]
#[case::nothing(&[], 0.0)]
#[case::at_each_call(&[Do::Call, Do::Call], 2.0 * 8_000.0)]
#[case::more_above_a_step(&[Do::Call, Do::DearCall], 4.0 * 8_000.0)]
#[case::nothing_once_it_has_left(&[Do::Call, Do::Roll, Do::Call, Do::Undo], 0.0)]
fn rent_of_an_item(#[case] all: &[Do], #[case] tokens: f64) {
    let policy = Policy::new(EXACT);
    let mut ledger = Ledger::new(500);
    ledger.push(Item::new(10_000, 2_000));
    ledger.charge_call(&policy);
    ledger.set_stale(0, true);
    all.iter().for_each(|one| one.to(&mut ledger, &policy));
    assert_eq!(ledger.rollable().map(|(_, _, paid)| paid).sum::<f64>(), tokens * EXACT.read);
}

/// Reasoning with nothing left no longer depends on anything.
#[rstest]
#[case::all_of_it_left(0, 0)]
#[case::some_of_it_is_left(10, 1)]
fn reasoning_that_is_rolled(#[case] tokens_ref: u64, #[case] left: usize) {
    let mut ledger = Ledger::new(0);
    let place = ledger.push(Item::new(100, tokens_ref));
    ledger.set_reasoning(place, 400);
    ledger.replace(place, Item::new(tokens_ref, tokens_ref));
    assert_eq!(ledger.reasoning_from(0).count(), left);
}

/// Rewriting costs more above a step, and a request that no mark is set in is found as a whole or not at all.
#[rstest]
#[case::no_step(&[], Reach::AnyPrefix, 8_000.0)]
#[case::above_a_step(&[(2_000, 3.0)], Reach::AnyPrefix, 3.0 * 8_000.0)]
#[case::that_the_roll_goes_below(&[(10_500, 3.0)], Reach::AnyPrefix, 8_000.0)]
#[case::with_the_system_part(&[], Reach::Endings(1), 9_000.0 + 1_000.0)]
fn roll_pays_for_rewritten_tokens(#[case] all: &[(u64, f64)], #[case] reach: Reach, #[case] tokens: f64) {
    let mut ledger = ten_calls(1_000, 10);
    ledger.set_stale(1, true);
    let policy = Policy { price_steps: steps(all), reach, ..Policy::new(EXACT) };
    assert_eq!(ledger.asked(&policy).unwrap().cost, tokens * EXACT.rewrite());
}

#[rstest]
#[case(0.0, 10.0, Some(0))]
#[case(0.0, 0.0, Some(0))]
#[case(10.0, 10.0, Some(1))]
#[case(11.0, 10.0, Some(2))]
#[case(11.0, 0.0, None)]
#[case(1e300, 1e-300, None)]
fn pay_back(#[case] cost: f64, #[case] gain: f64, #[case] calls: Option<u32>) {
    assert_eq!(calls_to_pay_back(cost, gain), calls);
}

#[test]
fn after_how_many_calls_a_cost_is_back() {
    let cases = [(0.0, 0.0, Some(0)), (10.0, 4.0, Some(3)), (1.0, 0.0, None), (1e20, 1.0, None)];
    for (cost, gain, expected) in cases {
        assert_eq!(calls_to_pay_back(cost, gain), expected, "{cost} / {gain}");
    }
    assert_eq!(calls_to_pay_back(f64::NAN, 1.0), None);
}
