//! The reason why text that could leave a request is still there, and its next chance. They use the same figures as
//! [`Ledger::decide`], so that a user reads the actual reason and not a guess.

use super::decide::Cut;
use super::ledger::Ledger;
use super::policy::Policy;

/// Text that could leave the request and is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBack {
    /// Estimated tokens that would leave.
    pub tokens: u64,
    /// The reason why they stay.
    pub because: Because,
    /// The time when they may leave; `None` if that is unknown, such as only once the window fills up.
    pub chance: Option<Chance>,
}

/// The reason why text stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// Nothing may leave now: the user's switch, or the model can't bring text back.
    Off,
    /// It leaves with the next call.
    Due,
    /// Most of it is still likely to be needed.
    Young,
    /// The model has to see it first.
    Unseen,
    /// The user's setting lets text leave only where a user's turn starts.
    Turn,
    /// The model's reasoning of the running turn depends on it.
    Bound,
    /// The model would lose reasoning that is worth more than what it saves.
    Reasoning,
    /// Keeping it has cost less so far than writing the text after it to the cache again.
    Dear,
    /// Rolls have cost more than they have saved so far, up to their limit.
    Debt,
}

/// The time when text may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chance {
    /// With the next call.
    Call,
    /// When the user speaks next.
    Prompt,
    /// After about this many calls.
    Calls(u32),
    /// When the user speaks after a pause that is longer than the provider keeps its cache.
    Pause,
}

/// A chance after more calls than this is not reported.
const MOST_CALLS: f64 = 200.0;

impl Ledger {
    /// Returns the reason why [`Ledger::decide`] leaves all stale text in place.
    pub(super) fn obstacle(&self, policy: &Policy) -> Because {
        let total = self.total_tokens();
        let part = policy.asked_part(total);
        let hard = part <= 0.0;
        if policy.only_at_user_turn && !policy.at_user_turn && !hard {
            return Because::Turn;
        }
        let Some((last, ..)) = self.rollable().next() else { return Because::Unseen };
        // Text before the reasoning of the running turn waits, at any cost.
        let bound = self.bound_before(policy, hard);
        let before: u64 = self.rollable().filter(|(place, ..)| *place < bound).map(|one| one.1).sum();
        if last < bound || 2 * before > self.stale_tokens() {
            return Because::Bound;
        }
        let pays = |lost: fn(&Cut) -> f64| {
            self.cuts(policy)
                .any(|cut| cut.rent + cut.gain >= (policy.asked_times() * cut.cost + lost(&cut)) * part)
        };
        match () {
            () if pays(|cut| cut.lost) => Because::Debt,
            () if pays(|_| 0.0) => Because::Reasoning,
            () => Because::Dear,
        }
    }

    /// Returns the calls until stale text has paid for a roll, if nothing else changes; `None` if that takes too long.
    pub(super) fn calls_until_paid(&self, policy: &Policy) -> Option<u32> {
        let total = self.total_tokens();
        let part = policy.asked_part(total);
        let price = policy.prices.read * policy.price_steps.factor_at(total);
        let calls = self.cuts(policy).filter_map(|cut| {
            let missing = (policy.asked_times() * cut.cost + cut.lost) * part - cut.rent - cut.gain;
            let affordable = self.calls_until_affordable(cut.most, policy)?;
            Some((missing / (cut.removed as f64 * price)).max(affordable).ceil().max(1.0))
        });
        calls.min_by(f64::total_cmp).filter(|calls| *calls <= MOST_CALLS).map(|calls| calls as u32)
    }
}
