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
