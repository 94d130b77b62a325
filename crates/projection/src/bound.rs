//! What a change of the request loses of the reasoning behind it, and the changes that have to wait for it.

use super::ledger::Ledger;
use super::need::{Curve, Need};
use super::policy::Policy;
use super::provider::Binding;

/// The effect of a cut on the reasoning behind it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lost {
    /// The worth of the reasoning that is not stale, in fresh input tokens.
    pub worth: f64,
    /// Its tokens.
    pub tokens: u64,
    /// Those of them that are cached.
    pub cached: u64,
}

/// On a model that drops reasoning, a turn of this many calls is so long that its changes need not wait for the next one.
const LONG_TURN_CALLS: u64 = 100;

/// The factor by which the reasoning of a running turn is worth more than that of earlier turns.
const RUNNING: f64 = 60.0;

impl Ledger {
    /// Notes that the item at a place is reasoning of this many UTF-16 units.
    pub fn set_reasoning(&mut self, place: usize, chars: u64) {
        let calls = self.calls;
        self.reasoning.blocks.insert(place, (chars, calls));
    }

    /// A user's turn begins after the items so far, which ends the turn that their reasoning ran in.
    pub fn start_turn(&mut self) {
        let (calls, place) = (self.calls, self.len());
        let reasoning = &mut self.reasoning;
        if reasoning.turn == place {
            return;
        }
        let length = calls.saturating_sub(reasoning.calls_before_turn);
        if length > 0 {
            let at = reasoning.turns.partition_point(|other| *other < length);
            reasoning.turns.insert(at, length);
        }
        (reasoning.turn, reasoning.calls_before_turn) = (place, calls);
    }

    /// The places of reasoning from a place on, and whether each belongs to the running turn.
    pub fn reasoning_from(&self, place: usize) -> impl Iterator<Item = (usize, bool)> + '_ {
        let turn = self.reasoning.turn;
        self.reasoning.blocks.range(place..).map(move |(at, _)| (*at, *at >= turn))
    }

    /// The place before which nothing may change now, because reasoning of the running turn depends on it; 0 if anything may
    /// change.
    pub(super) fn bound_before(&self, policy: &Policy, hard: bool) -> usize {
        let is_bound = match policy.binding {
            Binding::None | Binding::Keeps => false,
            Binding::Drops => {
                !hard && self.calls.saturating_sub(self.reasoning.calls_before_turn) < LONG_TURN_CALLS
            }
            Binding::Refuses => true,
        };
        if !is_bound || policy.turn_is_over {
            return 0;
        }
        let running = self.reasoning.blocks.range(self.reasoning.turn..);
        running.last().map_or(0, |(place, _)| *place)
    }

    /// Returns the loss of the reasoning between two places, all of which leaves with a change at the first one.
    pub(super) fn lost_between(&self, from: usize, to: usize, hit: usize, policy: &Policy) -> Lost {
        let mut lost = Lost::default();
        if !policy.binding.is_strict() {
            return lost;
        }
        let need = Need { prices: policy.prices, lambda: policy.lambda, density: policy.density };
        for (place, (chars, since)) in self.reasoning.blocks.range(from..to) {
            if self.stale.contains_key(place) {
                continue;
            }
            let tokens = self.tokens_at(*place);
            let is_running = *place >= self.reasoning.turn && !policy.turn_is_over;
            let weight = if is_running { RUNNING } else { 1.0 };
            let wanted = need.wanted(Curve::THINKING, *chars);
            lost.worth += weight * need.loss(wanted, tokens, self.calls.saturating_sub(*since));
            lost.tokens += tokens;
            lost.cached += if *place < hit { tokens } else { 0 };
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::{Ledger, Policy, Prices};

    /// Turns with these numbers of calls; the last turn is still running.
    #[rstest]
    #[case::nothing_yet(&[0], 1)]
    #[case::the_first_counts_while_it_runs(&[5], 5)]
    #[case::in_any_order(&[1, 2, 3, 4, 0], 3)]
    #[case::from_the_longest_on(&[4, 3, 2, 1, 0], 3)]
    #[case::of_equal_ones(&[2, 7, 7, 2, 2, 0], 2)]
    #[case::the_running_one_does_not_count(&[2, 90], 2)]
    #[case::two_messages_in_a_row_are_one_turn(&[0, 0, 0, 6, 0, 0, 8, 9, 0], 8)]
    fn median_of_the_turns(#[case] turns: &[u64], #[case] median: u64) {
        let mut ledger = Ledger::new(0);
        for (number, calls) in turns.iter().enumerate() {
            if number > 0 {
                ledger.start_turn();
            }
            ledger.push(crate::Item::fixed(1));
            (0..*calls).for_each(|_| _ = ledger.charge_call(&Policy::new(Prices::UNKNOWN)));
        }
        assert_eq!(ledger.reasoning.calls_a_turn(ledger.calls), median);
    }
}
