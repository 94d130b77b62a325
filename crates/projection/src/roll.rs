//! A decided roll.

use context_model::chat::{Receipt, RollReason};

/// What to replace with references, all in one change of the request.
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
    /// How many of these belong to the running turn.
    pub reasoning_running: usize,
    /// The rent that these items have paid, in fresh input tokens.
    pub rent: f64,
    /// What it costs once, in fresh input tokens: the cached tokens that have to be written again.
    pub cost: f64,
    /// What each later call saves, in fresh input tokens.
    pub gain: f64,
    /// Model calls until the savings exceed the cost; 0 if it is free, `None` if they never do.
    pub pays_back_after_calls: Option<u32>,
    /// Why.
    pub reason: RollReason,
}

impl Roll {
    /// The receipt of this roll.
    pub fn receipt(&self) -> Receipt {
        Receipt {
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

/// Calls after which `gain` per call exceeds `cost`.
pub(super) fn calls_to_pay_back(cost: f64, gain: f64) -> Option<u32> {
    if cost <= 0.0 {
        return Some(0);
    }
    let calls = (cost / gain).ceil();
    // Casting NaN or too large a number would give a wrong result.
    if calls <= f64::from(u32::MAX) { Some(calls as u32) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(0.0, 10.0, Some(0))]
    #[case(0.0, 0.0, Some(0))]
    #[case(10.0, 10.0, Some(1))]
    #[case(11.0, 10.0, Some(2))]
    #[case(11.0, 0.0, None)]
    #[case(1e300, 1e-300, None)]
    fn pay_back(#[case] cost: f64, #[case] gain: f64, #[case] calls: Option<u32>) {
        assert_eq!(calls_to_pay_back(cost, gain), calls);
    }

    #[test]
    fn after_how_many_calls_a_cost_is_back() {
        let cases = [(0.0, 0.0, Some(0)), (10.0, 4.0, Some(3)), (1.0, 0.0, None), (1e20, 1.0, None)];
        for (cost, gain, expected) in cases {
            assert_eq!(calls_to_pay_back(cost, gain), expected, "{cost} / {gain}");
        }
        assert_eq!(calls_to_pay_back(f64::NAN, 1.0), None);
    }
}
