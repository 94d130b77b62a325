//! The costs of a session's requests, the costs and savings of its rolls, and so the most that the next roll may cost. Recorded with each
//! change, for later processes.

use context_model::chat::Spending;

use super::ledger::{Charged, Ledger};
use super::policy::Policy;
use super::roll::Roll;

impl Ledger {
    /// Notes the cost of an executed roll, if the provider still has the tokens that it writes again.
    pub fn pay(&mut self, roll: &Roll) {
        self.debt += roll.most;
        self.unspent += roll.most;
    }

    /// The costs of the conversation, for its record, if a change from a place on has just been decided that costs this much and
    /// removes this many tokens. `answers` is the number of its answers so far.
    pub fn spending(&self, answers: u64, place: usize, cost: f64, removed: i64) -> Spending {
        let behind = self.charged.len() - self.charged.partition_point(|call| call.end <= place);
        Spending {
            answers,
            kept: answers.saturating_sub(behind as u64),
            untouched: self.untouched(),
            debt: self.debt + cost,
            removed: self.removed + removed,
        }
    }

    /// Once the contents are rebuilt, and the conversation has this many answers: continues from what was recorded with its changes,
    /// oldest first. Since the last one, each call has saved what the changes had removed.
    pub fn resume_spending(&mut self, recorded: &[Spending], answers: u64) {
        for change in recorded {
            let [first, gone] = [change.kept, change.answers].map(|then| self.charged_by(then, answers).end);
            self.ends.retain(|end| *end <= first || *end > gone);
        }
        let Some(last) = recorded.last() else { return };
        let before = self.charged_by(last.answers, answers);
        let saved = last.removed as f64 * (self.clock - before.clock);
        self.debt = last.debt - saved;
        self.unspent = 0.0;
        self.spent = last.untouched + last.debt + (self.spent - before.spent);
        // A host that keeps what was replaced shows only the references.
        if self.removed == 0 {
            self.removed = last.removed;
        }
    }

    /// The sums by the time of this many answers, if there are `answers` now; zeros if the contents begin behind that.
    fn charged_by(&self, then: u64, answers: u64) -> Charged {
        let since = usize::try_from(answers.saturating_sub(then)).unwrap_or(usize::MAX);
        let last = self.charged.len().saturating_sub(since).checked_sub(1);
        last.map_or(Charged::default(), |call| self.charged[call])
    }

    /// The cost so far of the client's own requests, had nothing left them: the session's, without the cost of rolls and with
    /// their savings.
    fn untouched(&self) -> f64 {
        self.spent + self.unspent - self.debt
    }

    /// The cost of rolls that is allowed now, if the session is never to cost more than `1 + debt_cap` times the client's own
    /// requests and the slack, whatever comes.
    fn room(&self, policy: &Policy) -> f64 {
        policy.debt_cap * self.untouched() + policy.slack - self.debt
    }

    /// True if a roll may cost this much now.
    pub(super) fn affords(&self, cost: f64, policy: &Policy) -> bool {
        cost <= 0.0 || policy.debt_cap.is_infinite() || cost <= self.room(policy)
    }

    /// The calls until rolls may cost this much, if nothing else changes; `None` if they never may.
    pub(super) fn calls_until_affordable(&self, cost: f64, policy: &Policy) -> Option<f64> {
        if self.affords(cost, policy) {
            return Some(0.0);
        }
        let total = self.total_tokens();
        let price = policy.prices.read * policy.price_steps.factor_at(total);
        let saved = self.removed as f64 * price;
        let nearer = saved + policy.debt_cap * (total as f64 * price + saved);
        (nearer > 0.0).then(|| (cost - self.room(policy)) / nearer)
    }
}
