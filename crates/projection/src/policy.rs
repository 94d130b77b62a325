//! Everything besides the ledger that a decision depends on.

use super::prices::Prices;

/// How many content blocks before a breakpoint Anthropic's API looks for a cached prefix
/// (platform.claude.com/docs/en/build-with-claude/prompt-caching).
pub const ANTHROPIC_LOOKBACK_BLOCKS: u32 = 20;

/// Everything besides the ledger that a decision depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Prices of the model in use.
    pub prices: Prices,
    /// `None`: the provider reuses any common prefix. `Some(n)`: it looks at most n blocks back from the end
    /// of the request for the end of an earlier one, so a deeper edit re-bills everything after the system
    /// part ([`ANTHROPIC_LOOKBACK_BLOCKS`]).
    pub lookback_blocks: Option<u32>,
    /// The provider's cache is gone: idle for too long, another model, a compaction by the host, a rebuilt request. Everything
    /// stale can leave for free.
    pub cache_dead: bool,
    /// The model's context window in tokens; 0 if unknown, which switches pressure off.
    pub context_window: u64,
    /// Share of the window from which on rolls need less than the full price, down to nothing at `hard`.
    pub soft: f64,
    /// Share of the window from which on as much as necessary is rolled.
    pub hard: f64,
    /// Roll only when a user's turn starts, for models whose reasoning depends on an unchanged prefix. The hard threshold and a
    /// user's request still roll immediately.
    pub only_at_user_turn: bool,
    /// A user's turn starts here.
    pub at_user_turn: bool,
}

impl Policy {
    /// The rule at these prices, without pressure.
    pub fn new(prices: Prices) -> Self {
        Self {
            prices,
            lookback_blocks: None,
            cache_dead: false,
            context_window: 0,
            soft: 0.65,
            hard: 0.85,
            only_at_user_turn: false,
            at_user_turn: false,
        }
    }

    /// The required fraction of the price at this fill: 1 up to `soft`, 0 from `hard` on, linear in between.
    pub(super) fn asked_part(&self, total_tokens: u64) -> f64 {
        if self.context_window == 0 {
            return 1.0;
        }
        let fill = total_tokens as f64 / self.context_window as f64;
        if fill >= self.hard { 0.0 } else { ((self.hard - fill) / (self.hard - self.soft)).min(1.0) }
    }
}
