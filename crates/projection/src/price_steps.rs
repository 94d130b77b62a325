//! Steps in a model's price: above a size, the whole request costs more.

use serde::{Deserialize, Serialize};

/// One step: a request of more input tokens than this costs `factor` times as much, on all of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PriceStep {
    /// Input tokens, cached ones included.
    pub input_tokens_above: u64,
    /// What the whole request costs then, as a multiple of its price below the first step.
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

    /// Returns what a request of this many input tokens costs, as a multiple of its price below the first step.
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
    use super::*;
    use rstest::rstest;

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
