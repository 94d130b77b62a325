//! When is text stale? Once keeping it costs more than the expected cost of needing it again.
//!
//! Keeping text in a request costs `r` (the price of a cached token) for each token and call. Removing it has an expected
//! cost, too: the probability that the model needs it at the next call, times the cost of that, which is one more call
//! ([`Prices::fetch_tokens`]). On recorded sessions this probability is a power of age and length,
//!
//! ```text
//! h = a * (n / 1000)^c * (age + 1)^-b        n in chars, age in model calls
//! ```
//!
//! with `c` far below 1: text of four times the length is needed less than twice as often. So a token of a long text
//! is needed less than one of a short text, and long texts leave first. Text of `n` chars whose next form saves `s`
//! tokens is stale as soon as `lambda * h * F <= r * s`:
//!
//! ```text
//! age + 1 >= (lambda * a * (n / 1000)^c * F / (r * s))^(1/b)
//! ```
//!
//! A token is one that the model counts: [`Need::density`] of them for each that the ledger estimates.
//!
//! `lambda` weighs a missed use against a token: it costs a user who waits, and a model that continues from memory.

use super::{Binding, DEBT_CAP, LONG_SLACK, Prices, SLACK, TIMES, TIMES_IN_TURN};

/// The factor by which a token costs more with a dead cache, where it is written again and not read.
pub const DEAD_CACHE: f64 = 4.0;

/// The exponent with which use falls with age: the same for all kinds.
pub(crate) const FADING: f64 = 1.3;

/// The frequency with which text of one kind is used again, fitted to recorded sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// Uses per call, for 1,000 chars at the first call.
    pub a: f64,
    /// The exponent of the length.
    pub c: f64,
}

/// The model's and the users' own prose count as needed 1.3 times as often as fitted: unlike a file, they can't be read
/// again, and the fit does not see paraphrases.
impl Curve {
    /// Outputs of tools and arguments of calls.
    pub const TOOL: Self = Self { a: 0.07, c: 0.45 };
    /// The model's reasoning.
    pub const THINKING: Self = Self { a: 0.061, c: 0.7 };
    /// The model's prose.
    pub const PROSE: Self = Self { a: 0.057, c: 0.8 };
    /// The text that a user wrote.
    pub const USER: Self = Self { a: 0.026, c: 0.7 };
}

/// The weighing of forgetting at a model's prices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Need {
    /// Prices of the model in use.
    pub prices: Prices,
    /// The weight of a missed use, as a multiple of the cost of getting the text back. Larger numbers keep text longer.
    pub lambda: f64,
    /// The tokens that the model counts for each token that the ledger estimates.
    pub density: f64,
}

impl Need {
    /// The weight of a missed use if outputs, arguments, calls, reasoning and prose can leave. docs/economics.md shows what this
    /// value and its neighbours cost and hide.
    pub const LAMBDA: f64 = 4.0;

    /// The density while a model has reported nothing: code and the output of tools have about 3 chars a token, and the ledger's
    /// estimate has 4.
    pub const USUAL_DENSITY: f64 = 4.0 / 3.0;

    /// The fraction of it if only outputs and arguments can leave: for the same cost, these have to leave sooner.
    pub const OF_OUTPUTS: f64 = 0.42;

    /// The expected cost of needing text of `chars` chars (UTF-16 units) again at the first call that shows it, in fresh input
    /// tokens. For several texts that leave together, add them up.
    pub fn wanted(&self, curve: Curve, chars: u64) -> f64 {
        self.lambda * curve.a * (chars as f64 / 1_000.0).powf(curve.c) * self.prices.fetch_tokens()
    }

    /// The age, in model calls, from which on text is stale, given how much it is [`wanted`](Self::wanted) and that its next
    /// form saves `saved_tokens` (estimated). The age is 0 at the first call that shows it. The result is at least 1, and
    /// `u64::MAX` if nothing is saved.
    pub fn age_at(&self, wanted: f64, saved_tokens: u64, cache_dead: bool) -> u64 {
        if saved_tokens == 0 {
            return u64::MAX;
        }
        let price = self.prices.read * if cache_dead { DEAD_CACHE } else { 1.0 };
        let rent = price * saved_tokens as f64 * self.density;
        let calls = (wanted / rent).powf(1.0 / FADING).ceil();
        // Converting a float to an integer saturates, and gives 0 for NaN.
        (calls as u64).saturating_sub(1).max(1)
    }

    /// Returns the loss, in fresh input tokens as the ledger estimates them, if text of this [age](Self::age_at) leaves before
    /// it is stale: its expected need until then, less the cost of keeping it.
    pub fn loss(&self, wanted: f64, saved_tokens: u64, age: u64) -> f64 {
        let stale = self.age_at(wanted, saved_tokens, false);
        if age >= stale {
            return 0.0;
        }
        // The sum of (k + 1)^-b over the ages in between, as an integral.
        let left = |age: u64| (age.saturating_add(1) as f64).powf(1.0 - FADING) / (FADING - 1.0);
        let needed = wanted * (left(age) - if stale == u64::MAX { 0.0 } else { left(stale) });
        let rent = self.prices.read
            * saved_tokens as f64
            * if saved_tokens == 0 { 0.0 } else { (stale - age) as f64 };
        (needed / self.density - rent).max(0.0)
    }
}

/// The time for which text of one kind stays in sight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stay {
    /// As long as keeping it costs less than the expected cost of needing it back; see [`Need`].
    #[default]
    Needed,
    /// Without an end.
    Keep,
    /// For this many model calls.
    Calls(u64),
}

/// The time for which text stays in sight, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stays {
    /// The model's reasoning, where its provider lets it leave.
    pub thinking: Stay,
    /// Calls: once their outputs and arguments are old they become one line.
    pub calls: Stay,
    /// The model's prose, and long texts of users.
    pub prose: Stay,
    /// The weight of a missed use, [`Need::lambda`]. Larger numbers keep everything longer, and cost more. Default:
    /// [`Need::LAMBDA`], or a [part](Need::OF_OUTPUTS) of it if only outputs and arguments can leave.
    pub weight: Option<f64>,
    /// The share of what the client's own requests would have cost that rolls may have cost beyond what they have saved, and
    /// [`SLACK`]; 0: nothing at all, slack included. Infinite: no bound. Default: [`DEBT_CAP`].
    pub debt_cap: Option<f64>,
}

impl Stays {
    /// Returns the weight of a missed use in a harness that can shorten texts, or can't.
    pub(crate) fn weight(&self, shortens: bool) -> f64 {
        let keeps = [self.thinking, self.calls, self.prose].iter().all(|stay| *stay == Stay::Keep);
        let part = if shortens && !keeps { 1.0 } else { Need::OF_OUTPUTS };
        self.weight.unwrap_or(Need::LAMBDA * part)
    }

    /// The bound on what rolls may have cost beyond what they have saved.
    pub(crate) fn debt_cap(&self) -> f64 {
        self.debt_cap.unwrap_or(DEBT_CAP)
    }

    /// The number of times its price that the text of a roll must have paid: once without a bound.
    pub(crate) fn times(&self) -> f64 {
        if self.debt_cap().is_infinite() { 1.0 } else { TIMES }
    }

    /// The same in the middle of a turn.
    pub(crate) fn times_in_turn(&self) -> f64 {
        if self.debt_cap().is_infinite() { 1.0 } else { TIMES_IN_TURN }
    }

    /// The cost of rolls beyond that share that is allowed, in fresh input tokens.
    pub(crate) fn slack(&self, binding: Binding, prices: Prices) -> f64 {
        let is_long = binding.is_strict() && prices.write >= LONG_WRITE;
        match self.debt_cap() {
            0.0 => 0.0,
            _ if is_long => LONG_SLACK,
            _ => SLACK,
        }
    }
}

/// From this price on, a written token is one that is kept for an hour.
const LONG_WRITE: f64 = 1.9;

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KEEP: Stay = Stay::Keep;
    const NEEDED: Stay = Stay::Needed;

    #[rstest]
    #[case::everything_can_leave([NEEDED, NEEDED, NEEDED], true, None, Need::LAMBDA)]
    #[case::only_outputs_and_arguments([NEEDED, NEEDED, NEEDED], false, None, 0.42 * Need::LAMBDA)]
    #[case::a_person_keeps_all_else([KEEP, KEEP, KEEP], true, None, 0.42 * Need::LAMBDA)]
    #[case::but_for_calls([KEEP, Stay::Calls(9), KEEP], true, None, Need::LAMBDA)]
    #[case::set_by_a_person([KEEP, KEEP, KEEP], false, Some(2.0), 2.0)]
    fn missed_use_is_weighed_by_what_can_leave(
        #[case] all: [Stay; 3],
        #[case] shortens: bool,
        #[case] weight: Option<f64>,
        #[case] expected: f64,
    ) {
        let [thinking, calls, prose] = all;
        let stays = Stays { thinking, calls, prose, weight, debt_cap: None };
        assert_eq!(stays.weight(shortens), expected);
    }

    #[test]
    fn debt_cap_has_a_default() {
        let of = |debt_cap| Stays { debt_cap, ..Stays::default() }.debt_cap();
        assert_eq!([of(None), of(Some(0.5))], [DEBT_CAP, 0.5]);
        let times = |debt_cap| {
            let stays = Stays { debt_cap, ..Stays::default() };
            (stays.times(), stays.times_in_turn())
        };
        let usual = (TIMES, TIMES_IN_TURN);
        assert_eq!([times(None), times(Some(0.0)), times(Some(f64::INFINITY))], [usual, usual, (1.0, 1.0)]);
    }

    #[rstest]
    #[case::usual(None, Binding::None, 1.25, SLACK)]
    #[case::an_hour(None, Binding::Keeps, 2.0, SLACK)]
    #[case::bound(None, Binding::Drops, 1.25, SLACK)]
    #[case::bound_on_an_hour(None, Binding::Refuses, 2.0, LONG_SLACK)]
    #[case::set_by_a_person(Some(0.5), Binding::Drops, 2.0, LONG_SLACK)]
    #[case::nothing_at_all(Some(0.0), Binding::Drops, 2.0, 0.0)]
    fn the_slack_beyond_the_bound(
        #[case] debt_cap: Option<f64>,
        #[case] binding: Binding,
        #[case] write: f64,
        #[case] slack: f64,
    ) {
        let stays = Stays { debt_cap, ..Stays::default() };
        assert_eq!(stays.slack(binding, Prices::new(0.1, write)), slack);
    }
}
