//! The price of a cached token in units of a fresh one, and the sizes from which on a whole request costs more.

use serde::{Deserialize, Serialize};

/// The price of one prompt token, relative to a fresh, uncached input token (which is 1).
///
/// Always finite, with `0 < read <= 1` and `write >= read`. Build it with [`Prices::from_catalogue`] or [`Prices::new`], which
/// supply values that a catalogue leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// A token that the provider reads from its prompt cache.
    pub read: f64,
    /// A token that is not in the cache: sent fresh and, where the provider charges for it, written to the
    /// cache.
    pub write: f64,
}

impl Prices {
    /// Assumed if the catalogue says nothing: a cached token costs a tenth, and writing as much as at the usual provider that
    /// charges for it, so that neither a roll nor a saving looks better than it is (`[unknown]` in models.toml, which a test
    /// compares). Also used for local models and subscriptions, whose price is time or quota in similar proportions.
    pub const UNKNOWN: Self = Self { read: 0.1, write: 1.25 };

    /// A catalogue with prices that lists none for writing: the provider charges nothing for it.
    const FREE_WRITE: f64 = 1.0;

    /// No provider charges more than twice the input price for a write. A ratio above this is a mistake in the catalogue.
    const MAX_WRITE: f64 = 10.0;

    /// A model that caches nothing. Every token is fresh at every call, so a roll costs nothing.
    pub const UNCACHED: Self = Self { read: 1.0, write: 1.0 };

    /// Prices from the two ratios. A read ratio that is not a positive finite number is replaced by that of
    /// [`Prices::UNKNOWN`], such a write ratio by 1; a read ratio above 1 becomes 1; a write ratio below 1 becomes 1, because a
    /// catalogue that lists a smaller one lists a surcharge, not the price of the token; one above 10 becomes 10.
    pub fn new(read: f64, write: f64) -> Self {
        let read = if is_price(read) { read.min(1.0) } else { Self::UNKNOWN.read };
        let write = if is_price(write) { write.clamp(1.0, Self::MAX_WRITE) } else { Self::FREE_WRITE };
        Self { read, write }
    }

    /// Prices from a host's catalogue entry, in any currency per any number of tokens.
    ///
    /// Many entries are zero or missing (pass those as 0):
    /// - `caches == Some(false)`: the model is known to cache nothing, [`Prices::UNCACHED`].
    /// - `input` or `cache_read` zero, negative, NaN or infinite: [`Prices::UNKNOWN`].
    /// - `cache_write` zero, negative, NaN or infinite: writing costs what a fresh token costs.
    pub fn from_catalogue(input: f64, cache_read: f64, cache_write: f64, caches: Option<bool>) -> Self {
        if caches == Some(false) {
            return Self::UNCACHED;
        }
        if !is_price(input) || !is_price(cache_read / input) {
            return Self::UNKNOWN;
        }
        Self::new(cache_read / input, cache_write / input)
    }

    /// Returns the cost of getting text back, in fresh input tokens: one more call with its cached context, and its answer.
    /// 5,000 where a cached token costs a tenth.
    pub fn fetch_tokens(&self) -> f64 {
        ANSWER_TOKENS + CONTEXT_TOKENS * self.read
    }

    /// Returns the extra cost of a cached token that has to be written again: `w - r`, never negative.
    pub fn rewrite(&self) -> f64 {
        (self.write - self.read).max(0.0)
    }
}

/// The cost of the answer of a call that gets text back, with the text, in fresh input tokens.
const ANSWER_TOKENS: f64 = 1_300.0;

/// Tokens of the context that such a call reads from the cache.
const CONTEXT_TOKENS: f64 = 37_000.0;

impl Default for Prices {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

fn is_price(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// One step: a request of more input tokens than this costs `factor` times as much, on all of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PriceStep {
    /// Input tokens, cached ones included.
    pub input_tokens_above: u64,
    /// The cost of the whole request then, as a multiple of its price below the first step.
    pub factor: f64,
}

/// The steps of a model, in ascending order. The highest one that a request exceeds applies to all of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PriceSteps(Vec<PriceStep>);

impl PriceSteps {
    /// The steps of a catalogue entry. A step whose factor is not a finite number above 1 is left out, and so is one that
    /// does not cost more than a lower one.
    #[must_use]
    pub fn new(mut steps: Vec<PriceStep>) -> Self {
        steps.retain(|step| step.factor.is_finite() && step.factor > 1.0);
        steps.sort_by_key(|step| step.input_tokens_above);
        let mut most = 1.0;
        steps.retain(|step| {
            let is_dearer = step.factor > most;
            most = step.factor.max(most);
            is_dearer
        });
        Self(steps)
    }

    /// Returns the price of a request of this many input tokens, as a multiple of its price below the first step.
    pub fn factor_at(&self, tokens: u64) -> f64 {
        self.0.iter().rev().find(|step| tokens > step.input_tokens_above).map_or(1.0, |step| step.factor)
    }

    /// The first step that a request of this many tokens does not exceed.
    pub fn next_after(&self, tokens: u64) -> Option<PriceStep> {
        self.0.iter().find(|step| tokens <= step.input_tokens_above).copied()
    }

    /// The same steps in another unit: each size divided by `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let scale = |step: &PriceStep| PriceStep {
            input_tokens_above: (step.input_tokens_above as f64 / factor) as u64,
            ..*step
        };
        Self(self.0.iter().map(scale).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::classic(3.0, 0.3, 3.75, None, 0.1, 1.25)]
    #[case::wide_gap(4.0, 0.2, 5.0, None, 0.05, 1.25)]
    #[case::free_write(1.25, 0.125, 0.0, None, 0.1, 1.0)]
    #[case::write_listed_as_input(2.0, 0.5, 2.0, None, 0.25, 1.0)]
    #[case::write_listed_as_surcharge(1.5, 0.15, 0.083333, None, 0.1, 1.0)]
    #[case::no_cached_read(0.3, 0.0, 0.0, None, 0.1, 1.25)]
    #[case::no_cached_read_but_write(0.3, 0.0, 0.375, None, 0.1, 1.25)]
    #[case::local_model(0.0, 0.0, 0.0, None, 0.1, 1.25)]
    #[case::no_input_price(0.0, 0.3, 3.75, None, 0.1, 1.25)]
    #[case::no_discount(30.0, 30.0, 0.0, None, 1.0, 1.0)]
    #[case::dearer_cached(1.0, 2.0, 0.0, None, 1.0, 1.0)]
    #[case::caches_nothing(3.0, 0.3, 3.75, Some(false), 1.0, 1.0)]
    #[case::known_to_cache(3.0, 0.3, 3.75, Some(true), 0.1, 1.25)]
    #[case::negative(-1.0, 0.3, 3.75, None, 0.1, 1.25)]
    #[case::both_negative(-1.0, -0.3, 1.0, None, 0.1, 1.25)]
    #[case::negative_read(1.0, -0.3, 1.25, None, 0.1, 1.25)]
    #[case::negative_write(1.0, 0.1, -1.25, None, 0.1, 1.0)]
    #[case::not_a_number(f64::NAN, f64::NAN, f64::NAN, None, 0.1, 1.25)]
    #[case::infinite(f64::INFINITY, 0.3, 3.75, None, 0.1, 1.25)]
    #[case::vanishing_input(f64::MIN_POSITIVE, 1e10, 1e10, None, 0.1, 1.25)]
    #[case::vanishing_input_and_read(1e-300, 1e-301, 1.0, None, 0.1, 10.0)]
    #[case::underflow(1e300, 1e-300, 1e-300, None, 0.1, 1.25)]
    fn catalogue(
        #[case] input: f64,
        #[case] read: f64,
        #[case] write: f64,
        #[case] caches: Option<bool>,
        #[case] expected_read: f64,
        #[case] expected_write: f64,
    ) {
        let prices = Prices::from_catalogue(input, read, write, caches);
        assert!((prices.read - expected_read).abs() < 1e-9, "{prices:?}");
        assert!((prices.write - expected_write).abs() < 1e-9, "{prices:?}");
    }

    #[rstest]
    #[case::a_tenth(0.1, 5_000.0)]
    #[case::a_twentieth(0.05, 3_150.0)]
    #[case::a_fortieth(0.025, 2_225.0)]
    #[case::nothing_is_cached(1.0, 38_300.0)]
    fn getting_text_back_follows_the_price_of_a_cached_token(#[case] read: f64, #[case] tokens: f64) {
        assert!((Prices::new(read, 1.25).fetch_tokens() - tokens).abs() < 1e-6);
    }

    #[test]
    fn unknown_prices_are_those_of_the_table_of_models() {
        let table: toml::Table = include_str!("../../../models.toml").parse().unwrap();
        let number = |name: &str| table["unknown"][name].as_float().unwrap();
        assert_eq!(Prices::UNKNOWN, Prices { read: number("read"), write: number("write") });
    }

    proptest! {
        #[test]
        fn always_usable(input: f64, read: f64, write: f64, caches: Option<bool>) {
            let prices = Prices::from_catalogue(input, read, write, caches);
            prop_assert!(prices.read.is_finite() && prices.write.is_finite());
            prop_assert!(prices.read > 0.0 && prices.read <= 1.0 && prices.write >= prices.read);
            prop_assert!(prices.rewrite().is_finite() && prices.rewrite() >= 0.0);
        }
    }

    fn steps(all: &[(u64, f64)]) -> PriceSteps {
        let step = |(input_tokens_above, factor): &(u64, f64)| PriceStep {
            input_tokens_above: *input_tokens_above,
            factor: *factor,
        };
        PriceSteps::new(all.iter().map(step).collect())
    }

    #[rstest]
    #[case::none(&[], 1_000_000, 1.0)]
    #[case::at_the_step(&[(100_000, 5.0)], 100_000, 1.0)]
    #[case::above_it(&[(100_000, 5.0)], 100_001, 5.0)]
    #[case::the_highest_counts(&[(256_000, 3.0), (32_000, 1.5)], 300_000, 3.0)]
    #[case::between_two(&[(256_000, 3.0), (32_000, 1.5)], 40_000, 1.5)]
    #[case::cheaper_ones_are_no_steps(&[(10, 0.5), (20, f64::NAN), (30, 1.0)], 40, 1.0)]
    #[case::a_lower_price_above_a_higher_one(&[(10, 3.0), (20, 2.0)], 40, 3.0)]
    fn price_of_a_request(#[case] all: &[(u64, f64)], #[case] tokens: u64, #[case] factor: f64) {
        assert_eq!(steps(all).factor_at(tokens), factor);
    }

    #[test]
    fn next_step_is_the_first_not_exceeded() {
        let steps = steps(&[(10, 2.0), (20, 3.0)]);
        let next = |tokens| steps.next_after(tokens).map(|step| step.input_tokens_above);
        assert_eq!([next(0), next(10), next(11), next(21)], [Some(10), Some(10), Some(20), None]);
        assert_eq!(steps.scaled(2.0).next_after(0).map(|step| step.input_tokens_above), Some(5));
    }
}
