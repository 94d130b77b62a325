//! How long text stays in sight, as set by a person.

use crate::{Binding, DEBT_CAP, Need};

/// How long text of one kind stays in sight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stay {
    /// As long as keeping it costs less than the expected cost of needing it back; see [`Need`].
    #[default]
    Needed,
    /// For good.
    Keep,
    /// For this many model calls.
    Calls(u64),
}

/// How long text stays in sight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stays {
    /// The model's reasoning, where its provider lets it leave.
    pub thinking: Stay,
    /// Calls: once their outputs and arguments are old they become one line.
    pub calls: Stay,
    /// The model's prose, and long texts of users.
    pub prose: Stay,
    /// What a missed use weighs, [`Need::lambda`]. Larger numbers keep everything longer, and cost more. Default:
    /// [`Need::LAMBDAS`], or a [part](Need::OF_OUTPUTS) of it if only outputs and arguments can leave.
    pub weight: Option<f64>,
    /// The share of what the session has spent that rolls may have cost beyond what they have saved. Infinite: no bound.
    /// Default: [`DEBT_CAP`].
    pub debt_cap: Option<f64>,
}

impl Stays {
    /// Returns what a missed use weighs after `calls` calls, in a harness that can shorten texts, or can't.
    pub(crate) fn weight(&self, shortens: bool, calls: u64, binding: Binding) -> f64 {
        let keeps = [self.thinking, self.calls, self.prose].iter().all(|stay| *stay == Stay::Keep);
        let part = if shortens && !keeps { 1.0 } else { Need::OF_OUTPUTS };
        self.weight.unwrap_or_else(|| Need::lambda_after(calls, binding) * part)
    }

    /// The bound on what rolls may have cost beyond what they have saved.
    pub(crate) fn debt_cap(&self) -> f64 {
        self.debt_cap.unwrap_or(DEBT_CAP)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KEEP: Stay = Stay::Keep;
    const NEEDED: Stay = Stay::Needed;

    /// In a session of 40 calls a missed use weighs 6.8.
    #[rstest]
    #[case::everything_can_leave([NEEDED, NEEDED, NEEDED], true, None, 6.8)]
    #[case::only_outputs_and_arguments([NEEDED, NEEDED, NEEDED], false, None, 0.42 * 6.8)]
    #[case::a_person_keeps_all_else([KEEP, KEEP, KEEP], true, None, 0.42 * 6.8)]
    #[case::but_for_calls([KEEP, Stay::Calls(9), KEEP], true, None, 6.8)]
    #[case::set_by_a_person([KEEP, KEEP, KEEP], false, Some(2.0), 2.0)]
    fn what_a_missed_use_weighs(
        #[case] all: [Stay; 3],
        #[case] shortens: bool,
        #[case] weight: Option<f64>,
        #[case] expected: f64,
    ) {
        let [thinking, calls, prose] = all;
        let stays = Stays { thinking, calls, prose, weight, debt_cap: None };
        assert_eq!(stays.weight(shortens, 40, Binding::None), expected);
    }

    #[test]
    fn the_bound_on_what_rolls_may_cost() {
        let of = |debt_cap| Stays { debt_cap, ..Stays::default() }.debt_cap();
        assert_eq!([of(None), of(Some(0.5))], [DEBT_CAP, 0.5]);
    }
}
