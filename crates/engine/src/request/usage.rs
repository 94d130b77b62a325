//! Token accounting: the estimate of characters / 4, corrected by what the provider reports.
//!
//! Code has fewer characters per token than prose, and each model has its own tokenizer, so the estimate is off by a
//! factor that is nearly constant for a model and a session. Every answer's usage says what that factor is.

use std::collections::HashMap;

use serde_json::Value;

/// How much of each new observation enters the factor.
const WEIGHT: f64 = 0.3;

/// A factor outside this range means that the report counts something else (only new tokens, say).
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 0.4..=2.5;

/// The factor from estimated to reported tokens, for each model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounting {
    factors: HashMap<String, f64>,
}

impl Accounting {
    /// Learns from an answer how many tokens its request had.
    pub fn learn(&mut self, model: &str, estimated: u64, answer: &Value) {
        let Some(reported) = input_tokens(answer) else { return };
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

/// The request's tokens from an answer's usage, including cached ones.
fn input_tokens(answer: &Value) -> Option<u64> {
    let usage = answer.get("usage")?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(count("input") + count("cacheRead") + count("cacheWrite"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_factor_follows_the_reports_and_ignores_impossible_ones() {
        let mut accounting = Accounting::default();
        let answer = |input: u64| json!({ "usage": { "input": input, "cacheRead": 100, "cacheWrite": 0 } });
        accounting.learn("m", 1000, &answer(1300));
        assert_eq!(accounting.factor("m"), 1.4);
        accounting.learn("m", 1000, &answer(1400));
        assert!((accounting.factor("m") - 1.43).abs() < 1e-9);
        accounting.learn("m", 1000, &answer(0));
        accounting.learn("m", 0, &answer(5));
        accounting.learn("m", 1000, &json!({}));
        assert!((accounting.factor("m") - 1.43).abs() < 1e-9);
        assert_eq!(accounting.factor("other"), 1.0);
    }

    #[test]
    fn a_request_is_what_was_fresh_what_was_cached_and_what_was_written_to_the_cache() {
        let usage = json!({ "usage": { "input": 1, "output": 1_000, "cacheRead": 20, "cacheWrite": 300 } });
        assert_eq!(input_tokens(&usage), Some(321));
        assert_eq!(input_tokens(&json!({})), None);
        let mut accounting = Accounting::default();
        accounting.learn("m", 0, &json!({ "usage": {} }));
        accounting.learn("m", 100, &json!({ "usage": {} }));
        assert_eq!(accounting.factor("m"), 1.0, "neither says anything");
    }
}
