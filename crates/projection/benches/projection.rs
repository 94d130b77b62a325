//! The figure of the ledger beside its bound: `cargo bench -p context-projection`.

use std::hint::black_box;

use context_projection::{Item, Ledger, Policy, Prices};

use crate::figure::{Figure, Words, asked, median, timed};

#[path = "../../../benches/figure.rs"]
mod figure;

fn main() {
    if asked("ledger") {
        decisions();
    }
}

/// The ledger over a long session: each call pushes a call and its result, the result becomes stale twelve calls later, and
/// the roll is executed if one pays. The time of one call, beside the bound, at 200 and at 10,000 items.
fn decisions() {
    let policy = Policy { context_window: 200_000, ..Policy::new(Prices::UNKNOWN) };
    let mut ledger = Ledger::new(3_000);
    let mut sizes = Words(8);
    let (mut small, mut large, mut rolls) = (Vec::new(), Vec::new(), 0);
    while ledger.len() < 12_000 {
        let result = sizes.next(3_000) as u64 + 60;
        let (calls, time) = timed(|| {
            ledger.push(Item::fixed(50));
            let place = ledger.push(Item::new(result, 40));
            ledger.set_stale(place.saturating_sub(24), true);
            let roll = black_box(ledger.decide(&policy));
            if let Some(roll) = &roll {
                ledger.pay(roll);
                roll.items.iter().for_each(|place| ledger.replace(*place, Item::new(40, 40)));
            }
            ledger.charge_call(&policy);
            u64::from(roll.is_some())
        });
        rolls += calls;
        match ledger.len() {
            200..1_200 => small.push(time),
            10_000.. => large.push(time),
            _ => {}
        }
    }
    let note = format!("from 200 items on {:.3}; {rolls} rolls", median(small) * 1e3);
    let (what, peer) = ("a decision from 10,000 items on", "the bound");
    Figure::new("ledger", what, median(large) * 1e3, "µs")
        .beside(peer, 2.0)
        .bounds(1.0, 0.5)
        .note(note)
        .print();
}
