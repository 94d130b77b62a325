//! What a change of the request costs of the reasoning behind it, and where it has to wait.

use super::Binding;
use super::ledger::Ledger;
use super::need::{Curve, Need};
use super::policy::Policy;
use super::reasoning::Lost;

/// On a model that drops reasoning, a turn of this many calls is so long that its changes need not wait for the next one.
const LONG_TURN_CALLS: u64 = 100;

/// How much more the reasoning of a running turn is worth than that of earlier turns.
const RUNNING: f64 = 60.0;

impl Ledger {
    /// Notes that the item at a place is reasoning of this many UTF-16 units.
    pub fn set_reasoning(&mut self, place: usize, chars: u64) {
        let calls = self.calls;
        self.reasoning.blocks.insert(place, (chars, calls));
    }

    /// A user's turn begins after the items so far: their reasoning is no longer that of a running turn.
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

    /// Returns what is lost of the reasoning between two places, all of which a change at the first one takes along.
    pub(super) fn lost_between(&self, from: usize, to: usize, hit: usize, policy: &Policy) -> Lost {
        let mut lost = Lost::default();
        if !policy.binding.is_strict() {
            return lost;
        }
        let need = Need { prices: policy.prices, lambda: policy.lambda };
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
