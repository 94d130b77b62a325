//! Reasoning in the request: where it stands, and in which turn.

use std::collections::BTreeMap;

/// The reasoning that a request shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Reasoning {
    /// The length of each block in UTF-16 units, and the number of calls that were made before it, by place.
    pub(super) blocks: BTreeMap<usize, (u64, u64)>,
    /// Where the running turn begins.
    pub(super) turn: usize,
    /// Calls that were made before it.
    pub(super) calls_before_turn: u64,
    /// How many calls each turn before it had, in ascending order.
    pub(super) turns: Vec<u64>,
}

/// What a cut does to the reasoning behind it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lost {
    /// What the reasoning that is not stale is worth, in fresh input tokens.
    pub worth: f64,
    /// Its tokens.
    pub tokens: u64,
    /// Those of them that are cached.
    pub cached: u64,
}

impl Reasoning {
    pub(super) fn forget(&mut self, place: usize) {
        self.blocks.remove(&place);
    }

    /// The median of the calls of the turns so far, with this many calls in all.
    pub(super) fn calls_a_turn(&self, calls: u64) -> u64 {
        let running = calls.saturating_sub(self.calls_before_turn);
        self.turns.get(self.turns.len() / 2).copied().unwrap_or(running).max(1)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::{Ledger, Policy, Prices};

    /// Turns of so many calls, of which the last one goes on.
    #[rstest]
    #[case::nothing_yet(&[0], 1)]
    #[case::the_first_counts_while_it_runs(&[5], 5)]
    #[case::in_any_order(&[1, 2, 3, 4, 0], 3)]
    #[case::from_the_longest_on(&[4, 3, 2, 1, 0], 3)]
    #[case::of_equal_ones(&[2, 7, 7, 2, 2, 0], 2)]
    #[case::the_running_one_does_not_count(&[2, 90], 2)]
    #[case::two_messages_in_a_row_are_one_turn(&[0, 0, 0, 6, 0, 0, 8, 9, 0], 8)]
    fn the_median_of_the_turns(#[case] turns: &[u64], #[case] median: u64) {
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
