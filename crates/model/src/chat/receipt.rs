//! The receipt of a roll, as its turn records it and a person sees it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a roll happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RollReason {
    /// Nothing after the cut is cached, so changing it costs nothing.
    Free,
    /// The rent that was paid has reached the price.
    Pays,
    /// The context fills the window beyond the soft threshold, which lowers the required price.
    Pressure,
    /// The context fills the window beyond the hard threshold.
    Hard,
    /// A user or a program asked for it.
    Asked,
}

/// What a roll removed, what it cost, and when it has paid for itself. For the user and never for the chat, because a price
/// in the transcript would be text that changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// How many items were replaced with references.
    pub items: usize,
    /// Blocks of reasoning that were not stale but depended on what changed: they left too, or the provider drops them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_lost: usize,
    /// Those of them that belonged to the turn in which the roll happened.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_lost_running: usize,
    /// Tokens that left the request.
    pub removed_tokens: u64,
    /// What it cost once, in fresh input tokens.
    pub cost: f64,
    /// What each later call saves, in fresh input tokens.
    pub gain: f64,
    /// Model calls until it has paid for itself; 0 if it was free, `None` if it never does.
    pub pays_back_after_calls: Option<u32>,
    /// Why it happened.
    pub reason: RollReason,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.items == 1 { "" } else { "s" };
        write!(f, "{} item{plural}, -{} tokens", self.items, self.removed_tokens)?;
        match self.reasoning_lost {
            0 => {}
            1 => f.write_str(", reasoning of 1 step lost")?,
            steps => write!(f, ", reasoning of {steps} steps lost")?,
        }
        if self.cost <= 0.0 {
            return f.write_str(", free");
        }
        write!(f, ", cost {:.0} input tokens", self.cost)?;
        match self.pays_back_after_calls {
            Some(1) => f.write_str(", pays back in 1 call"),
            Some(calls) => write!(f, ", pays back in {calls} calls"),
            None => f.write_str(", does not pay back"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(
        12,
        61_000,
        9_000.4,
        Some(7),
        0,
        "12 items, -61000 tokens, cost 9000 input tokens, pays back in 7 calls"
    )]
    #[case(1, 900, 80.0, Some(1), 0, "1 item, -900 tokens, cost 80 input tokens, pays back in 1 call")]
    #[case(3, 900, 0.0, Some(0), 0, "3 items, -900 tokens, free")]
    #[case(3, 900, 5.0, None, 0, "3 items, -900 tokens, cost 5 input tokens, does not pay back")]
    #[case(
        3,
        900,
        5.0,
        Some(1),
        1,
        "3 items, -900 tokens, reasoning of 1 step lost, cost 5 input tokens, pays back in 1 call"
    )]
    #[case(3, 900, 0.0, Some(0), 14, "3 items, -900 tokens, reasoning of 14 steps lost, free")]
    fn receipt_reads_as_a_sentence(
        #[case] items: usize,
        #[case] removed_tokens: u64,
        #[case] cost: f64,
        #[case] pays_back_after_calls: Option<u32>,
        #[case] reasoning_lost: usize,
        #[case] sentence: &str,
    ) {
        let receipt = Receipt {
            items,
            reasoning_lost,
            reasoning_lost_running: 0,
            removed_tokens,
            cost,
            gain: 1.0,
            pays_back_after_calls,
            reason: RollReason::Pays,
        };
        assert_eq!(receipt.to_string(), sentence);
    }
}
