//! A roll that was decided: what it replaces, and what that costs and saves.

use context_model::chat::{RollReason, RollReceipt};

/// The items to replace with references, all in one change of the request.
///
/// Valid for the ledger that decided it, until that ledger changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Roll {
    /// Place of the first item that changes; everything before it stays byte-identical.
    pub cut: usize,
    /// Places of the items to replace, ascending; the first is `cut`.
    pub items: Vec<usize>,
    /// Tokens that leave the request.
    pub removed_tokens: u64,
    /// Places of reasoning that is not stale but depends on what changes, ascending: it leaves with them, or the provider drops
    /// it.
    pub reasoning: Vec<usize>,
    /// The number of these that belong to the running turn.
    pub reasoning_running: usize,
    /// The rent that these items have paid, in fresh input tokens.
    pub rent: f64,
    /// The expected cost, paid once, in fresh input tokens: the cached tokens that have to be written again, times the
    /// probability that the provider still has them.
    pub cost: f64,
    /// The cost if it still has them.
    pub most: f64,
    /// The saving of each later call, in fresh input tokens.
    pub gain: f64,
    /// Model calls until the savings exceed the cost; 0 if it is free, `None` if they never do.
    pub pays_back_after_calls: Option<u32>,
    /// The reason for the roll.
    pub reason: RollReason,
    /// It was decided on a dead cache.
    pub cache_dead: bool,
}

impl Roll {
    /// The receipt of this roll.
    pub fn receipt(&self) -> RollReceipt {
        RollReceipt {
            items: self.items.len(),
            reasoning_lost: self.reasoning.len(),
            reasoning_lost_running: self.reasoning_running,
            removed_tokens: self.removed_tokens,
            cost: self.cost,
            gain: self.gain,
            pays_back_after_calls: self.pays_back_after_calls,
            reason: self.reason,
        }
    }
}

#[cfg(test)]
impl Roll {
    /// A roll that costs nothing and removes nothing.
    pub(crate) fn of_test(cut: usize, items: Vec<usize>) -> Self {
        Self {
            reasoning: Vec::new(),
            reasoning_running: 0,
            cut,
            items,
            removed_tokens: 0,
            rent: 0.0,
            cost: 0.0,
            most: 0.0,
            gain: 0.0,
            pays_back_after_calls: None,
            reason: RollReason::Pays,
            cache_dead: false,
        }
    }
}
