//! The rule itself: which roll, if any, pays now.

use context_model::chat::RollReason;

use super::ledger::Ledger;
use super::policy::Policy;
use super::roll::{Roll, calls_to_pay_back};

/// At the hard threshold, a roll must free at least one part in this many of the remaining space, so that a context full of
/// text that can't be rolled does not cause a roll at every call.
const RELIEF: u64 = 8;

/// A cut at one stale item, with everything stale after it.
#[derive(Debug, Clone, Copy)]
struct Cut {
    place: usize,
    removed: u64,
    rent: f64,
    cost: f64,
}

impl Ledger {
    /// The roll to execute before the next call, if one pays. Changes nothing. Call this after everything that the next request
    /// will show has been pushed, because the depth of an edit is counted from its end.
    pub fn decide(&self, policy: &Policy) -> Option<Roll> {
        let total = self.total_tokens();
        let part = policy.asked_part(total);
        let hard = part <= 0.0;
        if policy.only_at_user_turn && !policy.at_user_turn && !hard {
            return None;
        }
        if hard && let Some(roll) = self.relieve(policy, total) {
            return Some(roll);
        }
        // Even beyond the hard threshold, a roll that frees too little must pay for itself.
        let part = if hard { 1.0 } else { part };
        let worth = |cut: &Cut| cut.rent - cut.cost * part;
        let best = self.best(policy, worth)?;
        if worth(&best) < 0.0 {
            return None;
        }
        let reason = match best {
            Cut { cost, .. } if cost <= 0.0 => RollReason::Free,
            Cut { cost, rent, .. } if rent >= cost => RollReason::Pays,
            _ => RollReason::Pressure,
        };
        Some(self.roll(policy, best, reason))
    }

    /// The roll of everything stale that the model has seen, whatever it costs: a person asked for it.
    pub fn asked(&self, policy: &Policy) -> Option<Roll> {
        let all = self.best(policy, |cut| cut.removed as f64)?;
        Some(self.roll(policy, all, RollReason::Asked))
    }

    /// The roll that brings the context below the soft threshold, or as close as possible.
    fn relieve(&self, policy: &Policy, total: u64) -> Option<Roll> {
        let target = (policy.soft * policy.context_window as f64) as u64;
        let need = total.saturating_sub(target);
        // If no cut is enough, all are worth the same, and the earliest removes most.
        let cut = self
            .best(policy, |cut| if cut.removed >= need { cut.rent - cut.cost } else { f64::NEG_INFINITY })?;
        let room = policy.context_window.saturating_sub(total);
        if cut.removed < room / RELIEF {
            return None;
        }
        let reason = if cut.cost <= 0.0 { RollReason::Free } else { RollReason::Hard };
        Some(self.roll(policy, cut, reason))
    }

    /// The most valuable cut. Of equal ones the earliest, which removes most.
    fn best(&self, policy: &Policy, worth: impl Fn(&Cut) -> f64) -> Option<Cut> {
        let mut best: Option<(Cut, f64)> = None;
        for cut in self.cuts(policy) {
            let value = worth(&cut);
            if best.is_none_or(|(_, most)| value >= most) {
                best = Some((cut, value));
            }
        }
        best.map(|(cut, _)| cut)
    }

    /// Every cut worth considering, from the last to the first.
    fn cuts<'a>(&'a self, policy: &'a Policy) -> impl Iterator<Item = Cut> + 'a {
        let hit = if policy.cache_dead { 0 } else { self.hit(policy.lookback_blocks) };
        let hit_tokens = self.tokens.prefix(hit);
        let (mut removed, mut removed_cached, mut rent) = (0, 0, 0.0);
        self.rollable().map(move |(place, saving, paid)| {
            removed += saving;
            rent += paid;
            let mut rewritten = 0;
            if place < hit {
                removed_cached += saving;
                let kept = self.hit_before(place, policy.lookback_blocks);
                rewritten = hit_tokens - self.tokens.prefix(kept) - removed_cached;
            }
            Cut { place, removed, rent, cost: rewritten as f64 * policy.prices.rewrite() }
        })
    }

    fn roll(&self, policy: &Policy, cut: Cut, reason: RollReason) -> Roll {
        let mut items: Vec<usize> =
            self.rollable().map(|(place, ..)| place).take_while(|place| *place >= cut.place).collect();
        items.reverse();
        let gain = cut.removed as f64 * policy.prices.read;
        Roll {
            cut: cut.place,
            items,
            removed_tokens: cut.removed,
            rent: cut.rent,
            cost: cut.cost,
            gain,
            pays_back_after_calls: calls_to_pay_back(cut.cost, gain),
            reason,
        }
    }
}
