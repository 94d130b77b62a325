//! Answers as they count: each one shows that a model call was made with what was in sight before it.

use serde_json::Value;

use super::Request;
use super::messages::{input_tokens, text_of};
use crate::{Moment, Policy};

/// The way in which an answer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its request was one of this process, so that it is the model of the next call which has given it.
    pub is_own: bool,
    /// The report of its provider is learned from: its request had all that is in sight.
    pub teaches: bool,
    /// The provider had nothing of its request in its cache.
    pub cache_dead: bool,
    /// It is an answer that the session did not have.
    pub is_new: bool,
}

impl Request {
    /// Counts the model call that gave an answer, before the answer itself is appended.
    pub fn count(&mut self, answer: &Value, counted: Counted, now: Moment, policy: &Policy) {
        // JavaScript's times arrive as floating-point numbers.
        let stamp = answer.get("timestamp").and_then(Value::as_f64).map(|ms| ms as i64);
        let model = if counted.is_own {
            self.clock.answer(stamp, now);
            self.model.clone()
        } else {
            self.clock.answer_again(stamp, now);
            model_of(answer, &self.model)
        };
        if let Some(reported) = input_tokens(answer).filter(|_| counted.teaches) {
            self.accounting.learn(&model, self.segments.tokens(), reported);
        }
        let cache_dead = counted.cache_dead;
        let charge = self.segments.charge(&Policy { cache_dead, ..policy.clone() });
        // The next answer's request met another cache than this one's.
        (self.asked_dead, self.is_uncached) = (None, false);
        if counted.is_new {
            self.spent += charge.cost(&policy.prices);
            self.made += 1;
        }
        self.cached_model = model;
    }
}

/// The model that gave an answer before the process started. It is the next call's if the answer does not say, or names it
/// with or without its provider; some models have a slash in their own name.
fn model_of(answer: &Value, next: &str) -> String {
    match (text_of(answer, "provider"), text_of(answer, "model")) {
        ("", _) | (_, "") => next.to_owned(),
        (_, model) if model == next || !next.contains('/') => next.to_owned(),
        (provider, model) => format!("{provider}/{model}"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::Prices;

    /// A request of 100 tokens after an answer that counts like this.
    fn counted(counted: Counted) -> Request {
        let mut request = Request { model: "p/m".into(), asked_dead: Some(true), ..Request::default() };
        request.is_uncached = true;
        request.segments.push_fixed("a", 100);
        let usage = json!({ "input": 150, "cacheRead": 50 });
        let answer = json!({ "provider": "q", "model": "n", "timestamp": 5.0, "usage": usage });
        let policy = Policy::new(Prices::new(0.1, 1.25));
        request.count(&answer, counted, Moment { host: 9, own: 0 }, &policy);
        request
    }

    #[rstest]
    #[case::own_answer(true, true, "p/m")]
    #[case::answer_of_an_earlier_process(false, true, "q/n")]
    #[case::answer_to_a_shorter_request(false, false, "q/n")]
    fn answer_teaches_its_own_model(#[case] is_own: bool, #[case] teaches: bool, #[case] model: &str) {
        let request = counted(Counted { is_own, teaches, cache_dead: false, is_new: true });
        assert_eq!(request.cached_model, model);
        assert_eq!(request.accounting.factor(model), if teaches { 2.0 } else { 1.0 });
        assert_eq!((request.asked_dead, request.is_uncached), (None, false));
    }

    #[rstest]
    #[case::new(true, 1)]
    #[case::known(false, 0)]
    fn only_new_answer_costs_something(#[case] is_new: bool, #[case] made: u64) {
        let cost = |cache_dead| {
            let request = counted(Counted { is_own: true, teaches: false, cache_dead, is_new });
            assert_eq!(request.made, made);
            request.spent
        };
        assert_eq!(cost(false) > 0.0, is_new);
        assert!(cost(true) >= cost(false));
    }

    #[rstest]
    #[case::not_said("", "", "p/m", "p/m")]
    #[case::no_provider("", "n", "p/m", "p/m")]
    #[case::no_model("q", "", "p/m", "p/m")]
    #[case::named_with_its_provider("p", "p/m", "p/m", "p/m")]
    #[case::host_that_names_no_providers("p", "n", "m", "m")]
    #[case::another("q", "n", "p/m", "q/n")]
    fn model_of_an_earlier_answer(
        #[case] provider: &str,
        #[case] model: &str,
        #[case] next: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(model_of(&json!({ "provider": provider, "model": model }), next), expected);
    }
}
