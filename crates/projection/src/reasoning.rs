//! The reasoning that a request shows: its places and its turns.

use std::collections::BTreeMap;

/// The reasoning that a request shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Reasoning {
    /// The length of each block in UTF-16 units, and the number of calls that were made before it, by place.
    pub(super) blocks: BTreeMap<usize, (u64, u64)>,
    /// The place where the running turn begins.
    pub(super) turn: usize,
    /// Calls that were made before it.
    pub(super) calls_before_turn: u64,
    /// The number of calls in each turn before it, in ascending order.
    pub(super) turns: Vec<u64>,
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
