//! The inputs of a decision besides the ledger.

use super::prices::Prices;
use super::{Binding, Need, PriceSteps, Reach};

/// The inputs of a decision besides the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Prices of the model in use.
    pub prices: Prices,
    /// Sizes from which on the whole request costs more, in the ledger's tokens.
    pub price_steps: PriceSteps,
    /// The provider's treatment of reasoning behind a change.
    pub binding: Binding,
    /// The weight of a missed use ([`crate::Need::lambda`]); decides what reasoning behind a cut is worth.
    pub lambda: f64,
    /// The tokens that the model counts for each token that the ledger estimates ([`crate::Need::density`]).
    pub density: f64,
    /// The distance within which the provider finds a cached prefix.
    pub reach: Reach,
    /// The share of what the client's own requests would have cost that rolls may have cost more than they have saved
    /// ([`DEBT_CAP`](crate::DEBT_CAP)); infinite for no bound.
    pub debt_cap: f64,
    /// The cost beyond that share that is allowed, in fresh input tokens ([`SLACK`](crate::SLACK)).
    pub slack: f64,
    /// The number of times its price that the text of a roll must have paid ([`TIMES`](crate::TIMES)).
    pub times: f64,
    /// The same in the middle of a turn ([`TIMES_IN_TURN`](crate::TIMES_IN_TURN)).
    pub times_in_turn: f64,
    /// The provider's cache is gone: idle for too long, another model, a compaction by the host, a rebuilt request. Everything
    /// stale can leave for free.
    pub cache_dead: bool,
    /// The likelihood that the provider still has the last request in its cache, from 0 to 1: what a cut writes again is lost with this
    /// probability only.
    pub kept: f64,
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
    /// The last answer has no calls, so that a user speaks next: no reasoning belongs to a running turn.
    pub turn_is_over: bool,
}

impl Policy {
    /// The rule at these prices, without pressure.
    pub fn new(prices: Prices) -> Self {
        Self {
            prices,
            price_steps: PriceSteps::default(),
            binding: Binding::None,
            lambda: 0.0,
            density: Need::USUAL_DENSITY,
            reach: Reach::AnyPrefix,
            debt_cap: f64::INFINITY,
            slack: 0.0,
            times: 1.0,
            times_in_turn: 1.0,
            cache_dead: false,
            kept: 1.0,
            context_window: 0,
            soft: 0.65,
            hard: 0.85,
            only_at_user_turn: false,
            at_user_turn: false,
            turn_is_over: false,
        }
    }

    /// The number of times its price that the text of a roll must have paid now.
    pub(super) fn asked_times(&self) -> f64 {
        if self.at_user_turn || self.turn_is_over { self.times } else { self.times_in_turn }
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
