//! Token accounting: the estimate of characters / 4, corrected by what the provider reports.
//!
//! Code has fewer characters per token than prose, and each model has its own tokenizer, so the estimate is off by a
//! factor that is nearly constant for a model and a session. Every answer's usage says what that factor is.

use std::collections::HashMap;

/// How much of each new observation enters the factor.
const WEIGHT: f64 = 0.3;

/// A factor outside this range means that the report counts something else (only new tokens, say).
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 0.4..=2.5;

/// The factor from estimated to reported tokens, for each model.
#[derive(Clone, Debug, Default)]
pub struct Accounting {
    factors: HashMap<String, f64>,
}

impl Accounting {
    /// Learns how many tokens a request had that was estimated: by an answer's usage, including cached ones.
    pub fn learn(&mut self, model: &str, estimated: u64, reported: u64) {
        // No plausible number if one of them is 0.
        let seen = reported as f64 / estimated as f64;
        if !PLAUSIBLE.contains(&seen) {
            return;
        }
        let factor = self.factors.entry(model.to_owned()).or_insert(seen);
        *factor += (seen - *factor) * WEIGHT;
    }

    /// The factor of a model; 1 while nothing was reported.
    pub fn factor(&self, model: &str) -> f64 {
        self.factors.get(model).copied().unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_follows_the_reports_and_ignores_impossible_ones() {
        let mut accounting = Accounting::default();
        accounting.learn("m", 1000, 1400);
        assert_eq!(accounting.factor("m"), 1.4);
        accounting.learn("m", 1000, 1500);
        assert!((accounting.factor("m") - 1.43).abs() < 1e-9);
        for (estimated, reported) in [(1000, 100), (0, 5), (0, 0), (100, 0)] {
            accounting.learn("m", estimated, reported);
        }
        assert!((accounting.factor("m") - 1.43).abs() < 1e-9);
        assert_eq!(accounting.factor("other"), 1.0);
    }
}
