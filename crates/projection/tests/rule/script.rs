//! Sessions as a cost model sees them, under the rule, left alone, and with the future known.

use context_projection::{Item, Ledger, Policy};
use proptest::prelude::*;

use crate::{check_roll, execute};

/// A session as a cost model sees it: at each call new items come, and some of the old ones turn stale.
#[derive(Debug, Clone)]
pub struct Script {
    pub calls: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, Copy)]
pub struct Piece {
    pub tokens: u64,
    /// Calls after which it is stale; `None` stays.
    pub needed: Option<usize>,
}

pub fn script(calls: impl Into<prop::collection::SizeRange>, tokens: u64) -> impl Strategy<Value = Script> {
    let piece = (20..tokens, prop::option::weighted(0.7, 1_usize..6))
        .prop_map(|(tokens, needed)| Piece { tokens, needed });
    prop::collection::vec(prop::collection::vec(piece, 0..3), calls).prop_map(|calls| Script { calls })
}

pub const REF: u64 = 15;
pub const SYSTEM: u64 = 3_000;

impl Script {
    /// Returns the same session in which only this many pieces ever turn stale, to bound what hindsight has to try.
    pub fn with_at_most(mut self, stale: usize) -> Self {
        let turning = self.calls.iter_mut().flatten().filter(|piece| piece.needed.is_some());
        turning.skip(stale).for_each(|piece| piece.needed = None);
        self
    }

    /// Cost of the session under the rule, or left alone; and the largest ratio of the two at any call.
    pub fn run(&self, policy: &Policy) -> (f64, f64, usize) {
        let (mut ledger, mut alone) = (Ledger::new(SYSTEM), Ledger::new(SYSTEM));
        let (mut cost, mut cost_alone, mut rolls) = (0.0, 0.0, 0);
        let mut due: Vec<(usize, usize)> = Vec::new();
        for (call, pieces) in self.calls.iter().enumerate() {
            for (_, place) in due.extract_if(.., |(at, _)| *at == call) {
                ledger.set_stale(place, true);
            }
            for piece in pieces {
                let place = ledger.push(Item::new(piece.tokens, REF));
                alone.push(Item::new(piece.tokens, REF));
                due.extend(piece.needed.map(|calls| (call + calls, place)));
            }
            if let Some(roll) = ledger.decide(policy) {
                check_roll(&ledger, &roll);
                execute(&mut ledger, &roll);
                rolls += 1;
            }
            cost += ledger.charge_call(policy).cost(&policy.prices);
            cost_alone += alone.charge_call(policy).cost(&policy.prices);
        }
        (cost, cost_alone, rolls)
    }

    /// The least any sequence of rolls could have cost, had the future been known: every set of rolled items
    /// is tried at every call.
    pub fn hindsight(&self, policy: &Policy) -> f64 {
        let mut pieces: Vec<(usize, Piece, Option<u32>)> = Vec::new();
        let mut bits = 0;
        for (call, new) in self.calls.iter().enumerate() {
            for piece in new {
                let dies = piece.needed.is_some_and(|n| call + n < self.calls.len()) && piece.tokens > REF;
                pieces.push((call, *piece, dies.then_some(bits)));
                bits += u32::from(dies);
            }
        }
        let tokens = |piece: &(usize, Piece, Option<u32>), rolled: u32| match piece.2 {
            Some(bit) if rolled & (1 << bit) != 0 => REF,
            _ => piece.1.tokens,
        };
        let mut least = std::collections::BTreeMap::from([(0_u32, 0.0_f64)]);
        for call in 0..self.calls.len() {
            let can =
                |piece: &(usize, Piece, Option<u32>)| piece.1.needed.is_some_and(|n| piece.0 + n <= call);
            let stale: u32 = pieces.iter().filter(|p| can(p)).filter_map(|p| p.2).map(|bit| 1 << bit).sum();
            let mut next = std::collections::BTreeMap::new();
            for (rolled, cost) in &least {
                let free = stale & !rolled;
                let mut more = free;
                loop {
                    let now = rolled | more;
                    let mut total =
                        SYSTEM as f64 * if call == 0 { policy.prices.write } else { policy.prices.read };
                    let mut same = true;
                    for piece in pieces.iter().filter(|p| p.0 <= call) {
                        same &= piece.0 < call && piece.2.is_none_or(|bit| more & (1 << bit) == 0);
                        let price = if same { policy.prices.read } else { policy.prices.write };
                        total += tokens(piece, now) as f64 * price;
                    }
                    let entry = next.entry(now).or_insert(f64::INFINITY);
                    *entry = f64::min(*entry, cost + total);
                    if more == 0 {
                        break;
                    }
                    more = (more - 1) & free;
                }
            }
            least = next;
        }
        least.into_values().fold(f64::INFINITY, f64::min)
    }
}
