//! The rule "rent = price": tables, and properties against a plain reference that visits everything.

mod bound;
mod need;
mod plain;
mod properties;
mod script;
mod tables;
mod threshold;
mod waits;

use context_projection::{Item, Ledger, Policy, Prices, Reach, Roll};
use proptest::prelude::*;

/// Ratios that binary floating point holds exactly, so that two orders of summing agree to the last bit.
pub const EXACT: Prices = Prices { read: 0.125, write: 1.25 };

/// Any kind of cache, that looks so far back.
pub fn reach(far: std::ops::Range<u32>) -> impl Strategy<Value = Reach> {
    prop_oneof![Just(Reach::AnyPrefix), far.clone().prop_map(Reach::Blocks), far.prop_map(Reach::Endings)]
}

/// Checks the properties of any roll that a ledger decides.
pub fn check_roll(ledger: &Ledger, roll: &Roll) {
    assert_eq!(roll.items.first(), Some(&roll.cut));
    assert!(roll.items.windows(2).all(|pair| pair[0] < pair[1]));
    let stale = ledger.asked(&Policy::new(EXACT)).map_or_else(Vec::new, |all| all.items);
    for at in &roll.items {
        assert!(stale.contains(at), "item {at} is needed or was never sent, and is rolled");
        assert!(ledger.item(*at).is_some_and(|item| !item.fixed && item.saving() > 0));
    }
    assert!(roll.cost.is_finite() && roll.cost >= 0.0 && roll.rent.is_finite() && roll.gain > 0.0);
}

/// Replaces an item with its reference. Returns the tokens by which the request is shorter.
pub fn refer(ledger: &mut Ledger, place: usize) -> u64 {
    let Some(item) = ledger.item(place).copied() else { return 0 };
    ledger.replace(place, Item::new(item.tokens_ref, item.tokens_ref));
    item.saving()
}

/// Executes a roll as a request does. Returns the tokens by which the request is shorter, without those of reasoning.
pub fn execute(ledger: &mut Ledger, roll: &Roll) -> u64 {
    ledger.pay(roll);
    roll.reasoning.iter().for_each(|place| ledger.replace(*place, Item::new(0, 0)));
    roll.items.iter().map(|place| refer(ledger, *place)).sum()
}

/// The rent that all stale items have paid.
pub fn rent(ledger: &Ledger) -> f64 {
    ledger.asked(&Policy::new(EXACT)).map_or(0.0, |all| all.rent)
}

/// 200 calls, each with a result of 800 tokens that is stale three calls later and 200 tokens that stay.
/// Returns rolls and calls.
pub fn steady(policy: &Policy) -> (usize, usize) {
    let mut ledger = Ledger::new(4_000);
    let mut rolls = 0;
    for call in 0..200 {
        if call >= 3 {
            ledger.set_stale((call - 3) * 2, true);
        }
        if let Some(roll) = ledger.decide(policy) {
            check_roll(&ledger, &roll);
            assert!(roll.receipt().to_string().is_ascii() && !roll.receipt().to_string().contains("NaN"));
            execute(&mut ledger, &roll);
            rolls += 1;
        }
        ledger.push(Item::new(800, 15));
        ledger.push(Item::fixed(200));
        assert!(ledger.charge_call(policy).cost(&policy.prices).is_finite());
    }
    (rolls, 200)
}
