//! The cost of the reasoning behind a change, and the time for which a change waits for it.

use context_model::chat::RollReason;
use context_projection::{Binding, Curve, Item, Ledger, Need, Policy, PriceStep, PriceSteps};
use rstest::rstest;

use crate::{EXACT, rent};

#[rstest]
#[case::none("none", Some(Binding::None), false)]
#[case::keeps("keeps", Some(Binding::Keeps), false)]
#[case::drops("drops", Some(Binding::Drops), true)]
#[case::refuses("refuses", Some(Binding::Refuses), true)]
#[case::another_case("None", None, false)]
#[case::nothing("", None, false)]
fn names_of_bindings(#[case] name: &str, #[case] binding: Option<Binding>, #[case] is_strict: bool) {
    assert_eq!(Binding::named(name), binding);
    assert_eq!(binding.is_some_and(Binding::is_strict), is_strict);
}

/// A stale result on both sides of the reasoning of a turn with this many calls, and the one that a person's roll takes.
#[rstest]
#[case::not_checked(Binding::None, 1, Some(2))]
#[case::still_read(Binding::Keeps, 1, Some(2))]
#[case::dropped_in_a_turn_that_is_not_long(Binding::Drops, 99, Some(1))]
#[case::dropped_in_a_long_turn(Binding::Drops, 100, Some(2))]
#[case::refused_however_long(Binding::Refuses, 150, Some(1))]
fn changes_before_the_reasoning_of_a_turn(
    #[case] binding: Binding,
    #[case] calls: usize,
    #[case] items: Option<usize>,
) {
    let policy = Policy { binding, ..Policy::new(EXACT) };
    let mut ledger = Ledger::new(1_000);
    ledger.push(Item::fixed(50));
    (0..200).for_each(|_| _ = ledger.charge_call(&policy));
    ledger.start_turn();
    ledger.push(Item::new(1_000, 10));
    let reasoning = ledger.push(Item::new(100, 0));
    ledger.set_reasoning(reasoning, 400);
    ledger.push(Item::new(1_000, 10));
    (0..calls).for_each(|_| _ = ledger.charge_call(&policy));
    [1, 3].into_iter().for_each(|place| assert!(ledger.set_stale(place, true)));
    let taken = |ledger: &Ledger, policy: &Policy| ledger.asked(policy).map(|roll| roll.items.len());
    assert_eq!(taken(&ledger, &policy), items);
    let over = Policy { turn_is_over: true, ..policy.clone() };
    assert_eq!(taken(&ledger, &over), Some(2), "the turn is over");
    let full = Policy { context_window: 3_500, ..policy.clone() };
    let waits = if binding == Binding::Refuses { 1 } else { 2 };
    assert_eq!(taken(&ledger, &full), Some(waits), "a full window waits only for what would be refused");
    ledger.start_turn();
    assert_eq!(taken(&ledger, &policy), Some(2), "a new turn begins");
}

/// A stale result of 4,000 tokens with two pieces of reasoning behind it, of 100 and 50 tokens, and a result that stays.
struct Held {
    ledger: Ledger,
    /// The age of each piece in calls.
    age: u64,
}

fn held(calls: u64, policy: &Policy) -> Held {
    let mut ledger = Ledger::new(1_000);
    ledger.push(Item::new(4_000, 0));
    for (tokens, chars) in [(100, 400), (50, 200)] {
        let place = ledger.push(Item::new(tokens, 0));
        ledger.set_reasoning(place, chars);
    }
    ledger.push(Item::fixed(2_000));
    (0..calls).for_each(|_| _ = ledger.charge_call(policy));
    ledger.set_stale(0, true);
    Held { ledger, age: calls }
}

impl Held {
    /// Returns the value of the reasoning that is lost if the result leaves.
    fn lost(&self, lambda: f64) -> f64 {
        let need = Need { prices: EXACT, lambda, density: Need::USUAL_DENSITY };
        let of = |tokens, chars| need.loss(need.wanted(Curve::THINKING, chars), tokens, self.age);
        of(100, 400) + of(50, 200)
    }
}

/// Reasoning that leaves behind the cut counts as removed, and is not written again.
#[rstest]
#[case::not_checked(Binding::None, 4_000, 2_150)]
#[case::dropped(Binding::Drops, 4_150, 2_000)]
fn reasoning_leaves_with_its_context(#[case] binding: Binding, #[case] removed: u64, #[case] rewritten: u64) {
    let policy = Policy { binding, lambda: 4.0, turn_is_over: true, ..Policy::new(EXACT) };
    let roll = held(1, &policy).ledger.asked(&policy).unwrap();
    assert_eq!((roll.removed_tokens, roll.cost), (removed, rewritten as f64 * EXACT.rewrite()));
    let policy = Policy { cache_dead: true, ..policy };
    assert_eq!(held(1, &policy).ledger.asked(&policy).unwrap().cost, 0.0);
}

/// A roll waits until the rent pays for the reasoning, too; that of a running turn is worth 60 times as much.
#[rstest]
#[case::of_an_earlier_turn(true, 1.0)]
#[case::of_the_running_turn(false, 60.0)]
fn rent_pays_for_the_reasoning(#[case] turn_is_over: bool, #[case] weight: f64) {
    let policy = Policy { binding: Binding::Drops, lambda: 20.0, turn_is_over, ..Policy::new(EXACT) };
    let mut held = held(101, &policy);
    // The reasoning has just been written, as far as anybody knows.
    [1, 2].into_iter().zip([400, 200]).for_each(|(place, chars)| held.ledger.set_reasoning(place, chars));
    held.age = 0;
    let mut waited = 0;
    loop {
        let (paid, cost) = (rent(&held.ledger), held.ledger.asked(&policy).unwrap().cost);
        let roll = held.ledger.decide(&policy);
        let lost = weight * held.lost(20.0);
        assert_eq!(roll.is_some(), paid >= cost + lost, "{paid} for {cost} and {lost}");
        if let Some(roll) = roll {
            assert_eq!((roll.reason, roll.reasoning.len()), (RollReason::Pays, 2));
            break;
        }
        waited += 1;
        held.ledger.charge_call(&policy);
        held.age += 1;
    }
    assert!(waited > 1, "there was something to wait for");
}

/// With half the price asked, a roll that does not pay for the reasoning in full is one of pressure.
#[test]
fn pressure_asks_for_a_part_of_the_reasoning_too() {
    let policy = Policy { binding: Binding::Drops, lambda: 40.0, turn_is_over: true, ..Policy::new(EXACT) };
    let mut held = held(1, &policy);
    let half = Policy { context_window: 9_534, ..policy };
    let cost = held.ledger.asked(&half).unwrap().cost;
    let roll = loop {
        if let Some(roll) = held.ledger.decide(&half) {
            break roll;
        }
        held.ledger.charge_call(&half);
        held.age += 1;
    };
    let lost = held.lost(40.0);
    assert!((cost - lost..cost + lost).contains(&roll.rent), "{} for {cost} and {lost}", roll.rent);
    assert_eq!(roll.reason, RollReason::Pressure);
}

/// On a dead cache, what would be written again is saved at once; it may be worth less than the reasoning.
#[rstest]
#[case::little_is_lost(0.1, true)]
#[case::much_is_lost(1_000.0, false)]
fn a_dead_cache_does_not_pay_for_any_reasoning(#[case] lambda: f64, #[case] rolls: bool) {
    let policy = Policy {
        binding: Binding::Drops,
        lambda,
        turn_is_over: true,
        cache_dead: true,
        ..Policy::new(EXACT)
    };
    let held = held(1, &policy);
    let saved = 4_150.0 * EXACT.write;
    assert_eq!(saved >= held.lost(lambda), rolls);
    assert_eq!(held.ledger.decide(&policy).is_some(), rolls);
    // Neither is more at this weight, found by halving.
    let (mut low, mut high) = (0.1, 1_000.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        *(if held.lost(middle) < saved { &mut low } else { &mut high }) = middle;
    }
    for (part, rolls) in [(0.99, true), (1.01, false)] {
        let policy = Policy { lambda: low * part, ..policy.clone() };
        assert_eq!(held.ledger.decide(&policy).is_some(), rolls, "{part} of {low}");
    }
}

/// Two cuts are enough for a full window; the deeper one takes reasoning along.
#[test]
fn a_full_window_spares_the_reasoning_if_it_can() {
    let policy = Policy { binding: Binding::Drops, lambda: 4.0, ..Policy::new(EXACT) };
    let mut ledger = Ledger::new(0);
    for at in 0..3 {
        ledger.push(Item::new(3_000, 0));
        if at == 0 {
            let place = ledger.push(Item::new(100, 0));
            ledger.set_reasoning(place, 400);
        }
    }
    ledger.charge_call(&policy);
    ledger.break_at(0);
    [0, 2].into_iter().for_each(|place| assert!(ledger.set_stale(place, true)));
    let full = Policy { context_window: 10_000, ..policy };
    assert_eq!(ledger.decide(&full).unwrap().items, [2]);
}

/// Less than the price is asked in a window that fills, and below a step in the price, whatever rolls have cost before.
#[rstest]
#[case::no_reason(0, &[], false)]
#[case::a_window_that_fills(13_340, &[], true)]
#[case::a_step_in_the_price(0, &[(9_000, 20.0)], true)]
fn debts_do_not_hold_up_what_is_urgent(
    #[case] context_window: u64,
    #[case] steps: &[(u64, f64)],
    #[case] rolls: bool,
) {
    let step = |(input_tokens_above, factor): &(u64, f64)| PriceStep {
        input_tokens_above: *input_tokens_above,
        factor: *factor,
    };
    let plain = Policy { debt_cap: 0.0, ..Policy::new(EXACT) };
    let mut ledger = Ledger::new(1_000);
    ledger.push(Item::new(7_000, 0));
    ledger.push(Item::fixed(2_000));
    ledger.charge_call(&plain);
    ledger.set_stale(0, true);
    (0..4).for_each(|_| _ = ledger.charge_call(&plain));
    let price_steps = PriceSteps::new(steps.iter().map(step).collect());
    let policy = Policy { context_window, price_steps, ..plain };
    let roll = ledger.decide(&policy);
    assert_eq!(roll.is_some(), rolls);
    assert!(roll.is_none_or(|roll| roll.reason == RollReason::Pays));
}
