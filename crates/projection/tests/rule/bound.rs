//! Rolls on models whose provider binds reasoning to what comes before it.

use context_model::chat::Spending;
use context_projection::{
    Binding, DEBT_CAP, Item, Ledger, Policy, PriceStep, PriceSteps, Prices, Reach, Roll, SLACK, TIMES,
    TIMES_IN_TURN,
};
use proptest::prelude::*;
use rstest::rstest;

use crate::{execute, reach};

/// A test's action on a ledger between two model calls.
#[derive(Debug, Clone)]
struct Step {
    thinks: bool,
    result: u64,
    stale: Vec<prop::sample::Index>,
    user_speaks: bool,
    cache_dead: bool,
    /// Another process continues the session before the step.
    resumes: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        any::<bool>(),
        20_u64..4_000,
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        0..6,
        0..12,
        0..5,
    );
    let step = step.prop_map(|(thinks, result, stale, user, dead, resumes)| Step {
        thinks,
        result,
        stale,
        user_speaks: user == 0,
        cache_dead: dead == 0,
        resumes: resumes == 0,
    });
    prop::collection::vec(step, 1..40)
}

/// Reasoning of one answer, signed as the strictest provider does: with everything before it that is not reasoning, and with
/// the block of reasoning before it.
#[derive(Debug, Clone)]
struct Signed {
    place: usize,
    before: Vec<(usize, bool)>,
    last: Option<usize>,
}

/// A request as a provider sees it: each item's place, and whether it is shortened. Reasoning that has left is not there.
struct Request {
    shown: Vec<(usize, bool)>,
    reasoning: Vec<Signed>,
}

impl Request {
    /// The first block of reasoning that the provider does not accept.
    fn first_refused(&self) -> Option<usize> {
        let mut last = None;
        for signed in &self.reasoning {
            let before: Vec<(usize, bool)> =
                self.shown.iter().copied().filter(|(at, _)| *at < signed.place).collect();
            if signed.before != before || last.is_some() && last != signed.last {
                return Some(signed.place);
            }
            last = Some(signed.place);
        }
        None
    }

    fn apply(&mut self, roll: &Roll) {
        self.reasoning
            .retain(|signed| !roll.items.contains(&signed.place) && !roll.reasoning.contains(&signed.place));
        for (at, short) in &mut self.shown {
            *short |= roll.items.contains(at);
        }
    }
}

proptest! {
    #[test]
    fn every_request_passes_the_strict_check(steps in steps()) {
        let mut ledger = Ledger::new(1_000);
        let mut request = Request { shown: Vec::new(), reasoning: Vec::new() };
        let mut turn = 0;
        for step in steps {
            if step.user_speaks {
                ledger.start_turn();
                turn = ledger.len();
                request.shown.push((ledger.push(Item::fixed(50)), false));
            }
            for at in &step.stale {
                // Reasoning of the running turn is not offered.
                let at = at.index(ledger.len().max(1));
                let is_running = request.reasoning.iter().any(|signed| signed.place == at && at >= turn);
                if !is_running {
                    ledger.set_stale(at, true);
                }
            }
            let policy = Policy {
                binding: Binding::Refuses,
                lambda: 4.0,
                cache_dead: step.cache_dead,
                ..Policy::new(Prices::new(0.05, 1.25))
            };
            if let Some(roll) = ledger.decide(&policy) {
                prop_assert_eq!(roll.reasoning_running, 0);
                let running: Vec<usize> = request.reasoning.iter().map(|s| s.place).filter(|at| *at >= turn).collect();
                execute(&mut ledger, &roll);
                request.apply(&roll);
                prop_assert!(running.iter().all(|at| request.reasoning.iter().any(|s| s.place == *at)));
            }
            prop_assert_eq!(request.first_refused(), None);
            ledger.charge_call(&policy);
            if step.thinks {
                let place = ledger.push(Item::new(120, 0));
                ledger.set_reasoning(place, 480);
                let (before, last) = (request.shown.clone(), request.reasoning.last().map(|signed| signed.place));
                request.reasoning.push(Signed { place, before, last });
            }
            request.shown.push((ledger.push(Item::new(step.result, 15)), false));
        }
    }
}

/// Ten calls of one turn, each with reasoning and a result; all results but the last three are stale and have paid long.
fn one_turn(policy: &Policy, calls: u64) -> Ledger {
    let mut ledger = Ledger::new(1_000);
    ledger.push(Item::fixed(50));
    for call in 0..calls {
        let place = ledger.push(Item::new(100, 0));
        ledger.set_reasoning(place, 400);
        ledger.push(Item::new(2_000, 15));
        if call + 3 < calls {
            ledger.set_stale(place + 1, true);
        }
        ledger.charge_call(policy);
    }
    (0..200).for_each(|_| {
        ledger.charge_call(policy);
    });
    ledger
}

#[rstest]
#[case::not_checked(Binding::None, true, 0)]
#[case::still_read(Binding::Keeps, true, 0)]
#[case::dropped(Binding::Drops, true, 7)]
#[case::refused(Binding::Refuses, false, 0)]
fn reasoning_of_a_running_turn(#[case] binding: Binding, #[case] rolls: bool, #[case] least_lost: usize) {
    let policy = Policy { binding, lambda: 4.0, ..Policy::new(Prices::new(0.05, 1.25)) };
    let roll = one_turn(&policy, 10).decide(&policy);
    assert_eq!(
        roll.is_some(),
        rolls,
        "after 200 calls of a turn, a provider that drops must not wait longer"
    );
    assert!(roll.map_or(0, |roll| roll.reasoning_running) >= least_lost);
}

#[test]
fn once_the_user_speaks_all_reasoning_behind_the_cut_leaves() {
    let policy = Policy { binding: Binding::Refuses, lambda: 4.0, ..Policy::new(Prices::new(0.05, 1.25)) };
    let mut ledger = one_turn(&policy, 10);
    ledger.start_turn();
    let roll = ledger.decide(&policy).unwrap();
    let behind = ledger.reasoning_from(roll.cut).map(|(at, _)| at).collect::<Vec<_>>();
    assert_eq!(roll.reasoning, behind);
    assert_eq!(
        (roll.reasoning.len(), roll.reasoning_running),
        (9, 0),
        "all but that before the first result"
    );
    execute(&mut ledger, &roll);
    assert_eq!(ledger.reasoning_from(roll.cut).count(), 0);
}

/// Reasoning that was written just now is worth more than the rent that a few calls have paid.
#[rstest]
#[case::old(60, true)]
#[case::new(0, false)]
fn young_reasoning_holds_a_roll_back(#[case] calls_since: u64, #[case] rolls: bool) {
    let policy = Policy { binding: Binding::Drops, lambda: 40.0, ..Policy::new(Prices::new(0.05, 1.25)) };
    let mut ledger = Ledger::new(0);
    let result = ledger.push(Item::new(3_000, 15));
    ledger.set_stale(result, true);
    for _ in 0..5 {
        ledger.charge_call(&policy);
    }
    for _ in 0..4 {
        let place = ledger.push(Item::new(100, 0));
        ledger.set_reasoning(place, 400);
    }
    for _ in 0..calls_since {
        ledger.charge_call(&policy);
    }
    ledger.start_turn();
    assert_eq!(ledger.decide(&policy).is_some(), rolls);
}

/// A roll that saves 3,000 of 12,000 tokens, before it has paid for itself.
#[rstest]
#[case::no_step(&[], false)]
#[case::a_step_far_above(&[(100_000, 5.0)], false)]
#[case::above_one_that_it_goes_below(&[(10_000, 5.0)], true)]
#[case::above_one_that_it_stays_above(&[(5_000, 5.0)], false)]
fn step_in_price_is_worth_staying_below(#[case] all: &[(u64, f64)], #[case] rolls: bool) {
    let step = |(input_tokens_above, factor): &(u64, f64)| PriceStep {
        input_tokens_above: *input_tokens_above,
        factor: *factor,
    };
    let price_steps = PriceSteps::new(all.iter().map(step).collect());
    let plain = Policy::new(Prices::new(0.1, 1.25));
    let mut ledger = Ledger::new(1_000);
    for at in 0..30 {
        ledger.push(if at == 20 { Item::new(3_000, 15) } else { Item::fixed(250) });
        ledger.charge_call(&plain);
    }
    ledger.set_stale(20, true);
    let policy = Policy { price_steps, ..plain };
    assert_eq!(ledger.decide(&policy).is_some(), rolls);
}

/// A roll that pays by its rent, in a session that has spent little.
#[rstest]
#[case::no_bound(f64::INFINITY, true)]
#[case::bound(0.05, false)]
fn debt_is_bounded_by_what_was_spent(#[case] debt_cap: f64, #[case] rolls: bool) {
    let policy = Policy { debt_cap, ..Policy::new(Prices::new(0.1, 1.25)) };
    let mut ledger = Ledger::new(0);
    let place = ledger.push(Item::new(10_000, 15));
    ledger.push(Item::fixed(10_000));
    ledger.charge_call(&policy);
    ledger.set_stale(place, true);
    (0..12).for_each(|_| {
        ledger.charge_call(&policy);
    });
    assert_eq!(ledger.decide(&policy).is_some(), rolls);
    assert!(ledger.asked(&policy).is_some(), "a person may ask for any roll");
    let full = Policy { context_window: 21_000, ..policy.clone() };
    assert!(ledger.decide(&full).is_some(), "the window is nearly full");
    let dead = Policy { cache_dead: true, ..policy };
    assert!(ledger.decide(&dead).is_some(), "a dead cache makes every cut free");
}

/// The ledger of a later process: one call for each item as it is shown now, text that is stale since some call, and what was
/// recorded with the rolls.
fn resumed(earlier: &Ledger, stale: &[(usize, u64)], recorded: &[Spending], policy: &Policy) -> Ledger {
    let policy = Policy { cache_dead: false, ..policy.clone() };
    let mut ledger = Ledger::new(1_000);
    ledger.rebuild();
    for place in 0..earlier.len() {
        ledger.push(*earlier.item(place).expect("each place below the length has an item"));
        ledger.charge_call(&policy);
    }
    for (place, since) in stale {
        ledger.set_stale_since(*place, *since);
    }
    ledger.assume_shown(usize::MAX);
    ledger.resume_spending(recorded, &[], earlier.len() as u64);
    ledger
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// No prefix of a session costs more than the share that is set beyond what the client's own requests would have cost, and
    /// the slack: whatever becomes stale and when, however the provider caches, and where the cache dies, loses what it had, others
    /// change the request, or another process continues the session.
    #[test]
    fn no_prefix_of_a_session_costs_more_than_the_bound(
        steps in steps(),
        reach in reach(5..40),
        read in prop_oneof![Just(0.1), 0.01..0.5_f64],
        debt_cap in prop_oneof![Just(DEBT_CAP), 0.0..0.3_f64],
        kept in prop_oneof![Just(1.0), 0.01..1.0_f64],
        slack in prop_oneof![Just(0.0), Just(SLACK), 0.0..2_000.0_f64],
        times in prop_oneof![Just(1.0), Just(TIMES), Just(TIMES_IN_TURN)],
    ) {
        let (mut ledger, mut untouched) = (Ledger::new(1_000), Ledger::new(1_000));
        let (mut ours, mut theirs) = (0.0, 0.0);
        let (mut stale, mut recorded) = (Vec::new(), Vec::new());
        for (calls, step) in steps.into_iter().enumerate() {
            let cache_dead = step.cache_dead;
            let policy = Policy { debt_cap, slack, times, times_in_turn: times, reach, cache_dead, kept, ..Policy::new(Prices::new(read, 1.25)) };
            if step.resumes {
                ledger = resumed(&ledger, &stale, &recorded, &policy);
            }
            for at in &step.stale {
                let place = at.index(ledger.len().max(1));
                if ledger.set_stale(place, true) {
                    stale.push((place, calls as u64));
                }
            }
            for own in [&mut ledger, &mut untouched] {
                // With endings, such a change also finds fewer of them after a roll, which no roll can know before.
                if step.user_speaks && reach == Reach::AnyPrefix {
                    own.break_at(step.result as usize % own.len().max(1));
                }
                own.push(Item::new(step.result, 15));
            }
            if let Some(roll) = ledger.decide(&policy) {
                recorded.push(ledger.spending_with(calls as u64, &roll));
                execute(&mut ledger, &roll);
            }
            ours += ledger.charge_call(&policy).cost(&policy.prices);
            theirs += untouched.charge_call(&policy).cost(&policy.prices);
            prop_assert!(ours <= (1.0 + debt_cap) * theirs + slack + 1e-6, "{ours} beside {theirs}");
        }
    }
}
