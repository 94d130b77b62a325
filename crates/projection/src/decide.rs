//! The rule itself: which roll, if any, pays now.

use context_model::chat::RollReason;

use super::ledger::Ledger;
use super::policy::Policy;
use super::roll::Roll;

/// Calls after which `gain` per call exceeds `cost`.
pub(super) fn calls_to_pay_back(cost: f64, gain: f64) -> Option<u32> {
    if cost <= 0.0 {
        return Some(0);
    }
    let calls = (cost / gain).ceil();
    // Casting NaN or too large a number would give a wrong result.
    if calls <= f64::from(u32::MAX) { Some(calls as u32) } else { None }
}

/// At the hard threshold, a roll must free at least one part in this many of the remaining space, so that a context full of
/// text that can't be rolled does not cause a roll at every call.
const RELIEF: u64 = 8;

/// A cut at one stale item, with everything stale after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) place: usize,
    pub(super) removed: u64,
    pub(super) rent: f64,
    /// The expected cost of the tokens that have to be written again, in fresh input tokens.
    pub(super) cost: f64,
    /// The cost if the provider still has it.
    pub(super) most: f64,
    /// The worth of the reasoning that it takes along.
    pub(super) lost: f64,
    /// The saving at once or soon besides its rent: text that a dead cache would write again, and the higher price
    /// above a step.
    pub(super) gain: f64,
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
        let is_free = part < 1.0;
        let worth = |cut: &Cut| {
            let affords = is_free || cut.gain > 0.0 || self.affords(cut.most, policy);
            if affords {
                cut.rent + cut.gain - (policy.asked_times() * cut.cost + cut.lost) * part
            } else {
                f64::NEG_INFINITY
            }
        };
        let best = self.best(policy, worth)?;
        if worth(&best) < 0.0 {
            return None;
        }
        let reason = match best {
            Cut { cost, .. } if cost <= 0.0 => RollReason::Free,
            Cut { cost, rent, lost, gain, .. } if rent + gain >= policy.asked_times() * cost + lost => {
                RollReason::Pays
            }
            _ => RollReason::Pressure,
        };
        Some(self.roll(policy, best, reason))
    }

    /// Returns the roll of everything stale that the model has seen, at any cost: a user asked for it. If a provider binds
    /// reasoning, text that the reasoning of the running turn depends on stays.
    pub fn asked(&self, policy: &Policy) -> Option<Roll> {
        let all = self.best(policy, |cut| cut.removed as f64)?;
        Some(self.roll(policy, all, RollReason::Asked))
    }

    /// The roll that brings the context below the soft threshold, or as close as possible.
    fn relieve(&self, policy: &Policy, total: u64) -> Option<Roll> {
        let target = (policy.soft * policy.context_window as f64) as u64;
        let need = total.saturating_sub(target);
        // If no cut is enough, all are worth the same, and the earliest removes most.
        let cut = self.best(policy, |cut| {
            if cut.removed >= need { cut.rent - cut.cost - cut.lost } else { f64::NEG_INFINITY }
        })?;
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
    pub(super) fn cuts<'a>(&'a self, policy: &'a Policy) -> impl Iterator<Item = Cut> + 'a {
        let hit = if policy.cache_dead { 0 } else { self.hit(policy.reach) };
        let total = self.total_tokens();
        let system = if policy.reach.marks_system() { 0 } else { self.system_tokens };
        let hit_tokens = self.tokens.prefix(hit);
        let bound = self.bound_before(policy, policy.asked_part(total) <= 0.0);
        let (mut removed, mut removed_cached, mut rent, mut lost) = (0, 0, 0.0, 0.0);
        let mut behind = self.len();
        self.rollable().take_while(move |(place, ..)| *place >= bound).map(move |(place, saving, paid)| {
            let reasoning = self.lost_between(place, behind, hit, policy);
            behind = place;
            removed += saving + reasoning.tokens;
            removed_cached += reasoning.cached;
            rent += paid;
            lost += reasoning.worth;
            let mut rewritten = 0;
            if place < hit {
                removed_cached += saving;
                let kept = self.hit_before(place, policy.reach);
                rewritten = hit_tokens - self.tokens.prefix(kept) - removed_cached;
                rewritten += if kept == 0 { system } else { 0 };
            }
            let factor = policy.price_steps.factor_at(total.saturating_sub(removed));
            let most = rewritten as f64 * policy.prices.rewrite() * factor;
            let unwritten = if policy.cache_dead { removed as f64 * policy.prices.write } else { 0.0 };
            let gain = unwritten + self.below_a_step(policy, total, removed);
            Cut { place, removed, rent, cost: most * policy.kept, most, lost, gain }
        })
    }

    /// Returns the saving of keeping the next calls below a step in the price by removing this many tokens. If text must wait
    /// for the user's turn, the calls of such a turn count; otherwise those of a request that is already too large, at most as
    /// many as there were so far.
    fn below_a_step(&self, policy: &Policy, total: u64, removed: u64) -> f64 {
        let after = total.saturating_sub(removed);
        let (steps, growth) = (&policy.price_steps, self.growth());
        let Some(step) = steps.next_after(after) else { return 0.0 };
        let waits = policy.binding.is_strict();
        if !waits && total <= step.input_tokens_above {
            return 0.0;
        }
        let most = if waits { self.reasoning.calls_a_turn(self.calls) } else { self.calls.max(1) } as f64;
        let calls_until =
            |tokens: u64| (step.input_tokens_above.saturating_sub(tokens) as f64 / growth).min(most);
        let calls = (calls_until(after) - calls_until(total)).max(0.0);
        let calls = if total > step.input_tokens_above { calls.max(1.0) } else { calls };
        calls * after as f64 * policy.prices.read * (step.factor - steps.factor_at(after))
    }

    fn roll(&self, policy: &Policy, cut: Cut, reason: RollReason) -> Roll {
        let mut items: Vec<usize> =
            self.rollable().map(|(place, ..)| place).take_while(|place| *place >= cut.place).collect();
        items.reverse();
        let reasoning: Vec<(usize, bool)> = match policy.binding.is_strict() {
            true => self.reasoning_from(cut.place).filter(|(at, _)| !items.contains(at)).collect(),
            false => Vec::new(),
        };
        let gain = cut.removed as f64 * policy.prices.read;
        Roll {
            cut: cut.place,
            items,
            reasoning_running: reasoning
                .iter()
                .filter(|(_, running)| *running && !policy.turn_is_over)
                .count(),
            reasoning: reasoning.into_iter().map(|(at, _)| at).collect(),
            removed_tokens: cut.removed,
            rent: cut.rent,
            cost: cut.cost,
            most: cut.most,
            gain,
            pays_back_after_calls: calls_to_pay_back(cut.cost, gain),
            reason,
            cache_dead: policy.cache_dead,
        }
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
