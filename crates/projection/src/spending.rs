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

    /// The costs of the conversation up to a roll that has just been decided, for its record. `answers` is the number of the
    /// conversation's answers so far.
    pub fn spending_with(&self, answers: u64, roll: &Roll) -> Spending {
        let spending = self.spending(answers, roll.cut, roll.most, roll.removed_tokens.cast_signed());
        let kept = if roll.cache_dead { 0 } else { spending.kept };
        Spending { kept, dead: roll.cache_dead, ..spending }
    }

    /// The costs of the conversation, for its record, if a change from a place on has just been decided that costs this much and
    /// removes this many tokens. `answers` is the number of its answers so far.
    pub fn spending(&self, answers: u64, place: usize, cost: f64, removed: i64) -> Spending {
        // A host may have changed the request before that place since the last call.
        let same = place.min(self.cached);
        let behind = self.charged.len() - self.charged.partition_point(|call| call.end <= same);
        Spending {
            answers,
            kept: answers.saturating_sub(behind as u64),
            untouched: self.untouched(),
            debt: self.debt + cost,
            removed: self.removed + removed,
            dead: false,
        }
    }

    /// Once the contents are rebuilt, and the conversation has this many answers: continues from what was recorded with its changes,
    /// oldest first. Since the last one, each call has saved what the changes had removed. `dead`: the calls that found nothing cached,
    /// besides those of the changes, as the number of answers before the first of each row and with its last one.
    pub fn resume_spending(&mut self, recorded: &[Spending], dead: &[(u64, u64)], answers: u64) {
        for change in recorded {
            let [first, gone] = [change.kept, change.answers].map(|then| self.charged_by(then, answers).end);
            self.ends.retain(|end| *end <= first || *end > gone);
        }
        for (_, last) in dead {
            let gone = self.charged_by(last.saturating_sub(1), answers).end;
            self.ends.retain(|end| *end > gone);
        }
        let last = recorded.last();
        let since = last.map_or(0, |last| last.answers);
        let before = self.charged_by(since, answers);
        let removed = last.map_or(self.removed, |last| last.removed) as f64;
        let (mut saved, mut spent) = (removed * (self.clock - before.clock), self.spent - before.spent);
        // The rebuilt ledger has read the cache in these calls, and they wrote all that was left.
        let own = last.filter(|last| last.dead).map(|last| (last.answers, last.answers + 1));
        for (first, last) in dead.iter().copied().chain(own) {
            for call in first.max(since)..last.min(answers) {
                let [start, end] = [call, call + 1].map(|then| self.charged_by(then, answers));
                saved += removed * (end.write - (end.clock - start.clock));
                spent += end.fresh - (end.spent - start.spent);
            }
        }
        let Some(last) = last else {
            self.spent = before.spent + spent;
            return;
        };
        self.debt = last.debt - saved;
        self.unspent = 0.0;
        self.spent = last.untouched + last.debt + spent;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, Prices, Reach};

    fn policy(cache_dead: bool) -> Policy {
        Policy { cache_dead, debt_cap: 0.1, ..Policy::new(Prices::new(0.1, 1.25)) }
    }

    /// Calls with one item more each, on a living cache.
    fn after_calls(sizes: &[u64]) -> Ledger {
        let mut ledger = Ledger::new(500);
        for size in sizes {
            ledger.push(Item::new(*size, 15));
            ledger.charge_call(&policy(false));
        }
        ledger
    }

    /// A later process' ledger, from the items as they are shown now and what was recorded.
    fn resumed(earlier: &Ledger, recorded: &[Spending], dead: &[(u64, u64)]) -> Ledger {
        let mut ledger = Ledger::new(500);
        ledger.rebuild();
        for place in 0..earlier.len() {
            ledger.push(*earlier.item(place).expect("each place below the length has an item"));
            ledger.charge_call(&policy(false));
        }
        ledger.assume_shown(usize::MAX);
        ledger.resume_spending(recorded, dead, earlier.len() as u64);
        ledger
    }

    fn hits(ledger: &Ledger) -> Vec<usize> {
        (0..ledger.len()).map(|place| ledger.hit_before(place, Reach::Endings(20))).collect()
    }

    /// A roll at the third of four items, in requests that the provider has cached up to some item.
    #[rstest::rstest]
    #[case::after_no_other_change(4, 2)]
    #[case::after_a_hosts_change_behind_it(3, 2)]
    #[case::after_a_hosts_change_before_it(1, 1)]
    #[case::after_a_hosts_change_of_the_first_item(0, 0)]
    fn record_names_the_requests_that_are_still_cached(#[case] unchanged: usize, #[case] kept: u64) {
        let mut ledger = after_calls(&[100, 2_000, 2_000, 100]);
        ledger.break_at(unchanged);
        assert_eq!(ledger.spending(4, 2, 0.0, 0).kept, kept);
    }

    #[rstest::rstest]
    #[case::living(false)]
    #[case::dead(true)]
    fn later_process_has_the_costs_of_a_roll_on_any_cache(#[case] cache_dead: bool) {
        let mut ledger = after_calls(&[100, 3_000, 3_000, 3_000, 100, 100]);
        ledger.set_stale_since(2, 3);
        ledger.set_stale_since(3, 4);
        let policy_of_roll = policy(cache_dead);
        let roll = ledger.asked(&policy_of_roll).expect("two items are stale");
        let recorded = [ledger.spending_with(6, &roll)];
        assert_eq!((recorded[0].dead, recorded[0].kept), (cache_dead, if cache_dead { 0 } else { 2 }));
        for place in &roll.items {
            let item = *ledger.item(*place).expect("it is stale");
            ledger.replace(*place, Item { tokens_full: item.tokens_ref, ..item });
        }
        ledger.pay(&roll);
        for (calls, dead) in [(1, cache_dead), (2, false), (3, false)] {
            ledger.push(Item::new(50 * calls, 15));
            ledger.charge_call(&policy(dead));
            let again = resumed(&ledger, &recorded, &[]);
            let near = |one: f64, other: f64| (one - other).abs() < 1e-6;
            assert!(near(again.debt, ledger.debt), "{} and {} after {calls}", again.debt, ledger.debt);
            assert!(near(again.spent, ledger.spent), "{} and {} after {calls}", again.spent, ledger.spent);
            assert_eq!(hits(&again), hits(&ledger), "after {calls}");
        }
    }

    /// A conversation comes as a whole, and the provider has nothing of it.
    #[test]
    fn later_process_knows_which_answers_came_on_a_dead_cache() {
        let mut ledger = Ledger::new(500);
        for size in [100, 3_000, 3_000, 100] {
            ledger.push(Item::new(size, 15));
            ledger.charge_call(&policy(true));
        }
        for _ in 0..2 {
            ledger.push(Item::new(200, 15));
            ledger.charge_call(&policy(false));
        }
        let again = resumed(&ledger, &[], &[(0, 4)]);
        assert!((again.spent - ledger.spent).abs() < 1e-6, "{} and {}", again.spent, ledger.spent);
        assert_eq!(hits(&again), hits(&ledger));
        assert_ne!(hits(&resumed(&ledger, &[], &[])), hits(&ledger));
    }
}
