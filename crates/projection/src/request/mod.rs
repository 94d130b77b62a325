//! The visible contents of the model's request, and their changes. State and request are separate: the sets change at once, but
//! the visible text changes only at a roll, because changing a request breaks the provider's prefix cache.
//!
//! The engine records what is decided here.

mod aging;
pub mod answers;
mod arrivals;
pub mod counted;
mod digests;
mod forms;
mod held;
#[cfg(test)]
mod life_tests;
pub mod messages;
pub mod plan;
pub mod prose;
pub mod rolls;
mod schedule;
pub mod segment;
pub mod segments;
pub mod shape;
mod size;
mod visible;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use context_lines::marker;
use context_model::id::ObjectId;
use plan::{Call, Edit, Plan};
use rolls::Rolled;
use segments::Segments;
use shape::Shape;

use crate::{Accounting, CacheClock, Moment, Policy, Reach};

/// The request that is visible now, and what is needed to decide about it.
#[derive(Default)]
pub struct Request {
    /// The content that it shows, segment by segment.
    pub segments: Segments,
    /// The visible request's rolls that can still be undone, oldest first.
    pub rolls: Vec<Shape>,
    /// The rolls as the chat records them.
    pub rolled: Rolled,
    /// The number of visible texts that can be shortened, by their ID.
    pub shortenable: HashMap<String, usize>,
    /// Tags of the markers in this branch's collapsed arguments.
    pub issued: HashSet<String>,
    /// The segments that the harness does not yet show in their current form, for the next plan.
    pub pending: BTreeSet<usize>,
    /// Excerpts of outputs that are recorded but not yet in the request; `None` for those that are shown whole.
    pub gated: HashMap<ObjectId, Option<String>>,
    /// Large outputs that are shown whole, before the record says so.
    pub whole: Vec<ObjectId>,
    /// Objects of calls that were recorded before their results came as messages, by call ID.
    pub received: HashMap<String, VecDeque<ObjectId>>,
    /// Calls whose results are in the request in any form, as far as it was read again.
    pub results: HashSet<ObjectId>,
    /// The model of the next call.
    pub model: String,
    /// The model of the last call, whose cache holds the request.
    pub cached_model: String,
    /// The token accounting of each model.
    pub accounting: Accounting,
    /// The cost of this process's model calls, in fresh input tokens, without the answers.
    pub spent: f64,
    /// The model calls of the branch, also those whose messages have left the request.
    pub made: u64,
    /// When requests were sent and answered.
    pub clock: CacheClock,
    /// True if the cache was gone when the request that waits for its answer was decided; `None` if another process decided it.
    pub asked_dead: Option<bool>,
    /// True from a rebuild of a request that the provider has not cached until the next answer.
    pub is_uncached: bool,
}

impl Request {
    /// The circumstances of a call, in the form that the decision takes.
    pub fn policy(&mut self, call: &Call, now: Moment) -> Policy {
        let idle = self.clock.idle(now).is_some_and(|ms| ms > call.cache_ttl_ms);
        let kept = call.cache_kept.filter(|kept| kept.is_finite()).unwrap_or(1.0).clamp(0.0, 1.0);
        let switched = !self.cached_model.is_empty() && self.cached_model != call.model;
        self.model.clone_from(&call.model);
        let factor = self.accounting.factor(&call.model);
        self.segments.set_binding(call.binding, call.text_is_reasoning);
        Policy {
            price_steps: call.price_steps.scaled(factor),
            binding: call.binding,
            lambda: self.segments.lambda(),
            density: self.accounting.density(&call.model),
            reach: match (call.lookback_blocks, call.lookback_endings) {
                (Some(blocks), _) => Reach::Blocks(blocks),
                (None, Some(endings)) => Reach::Endings(endings),
                (None, None) => Reach::AnyPrefix,
            },
            debt_cap: self.segments.stays.debt_cap(),
            // The ledger counts estimated tokens, and the slack is of the model's own.
            slack: self.segments.stays.slack(call.binding, call.prices) / factor,
            times: self.segments.stays.times(),
            times_in_turn: self.segments.stays.times_in_turn(),
            turn_is_over: self.segments.turn_is_over,
            cache_dead: idle || switched || kept == 0.0 || self.is_uncached,
            kept,
            // The ledger counts estimated tokens, so the window is also measured in them.
            context_window: (call.context_window as f64 / factor) as u64,
            only_at_user_turn: call.only_at_user_turn,
            at_user_turn: call.at_user_turn,
            ..Policy::new(call.prices)
        }
    }

    /// Fills in the plan's figures for the request that it leads to.
    pub fn finish(&self, plan: &mut Plan) {
        let factor = self.accounting.factor(&self.model);
        plan.context_tokens = (self.segments.tokens() as f64 * factor) as u64;
        plan.stale_tokens = (self.segments.stale_tokens() as f64 * factor) as u64;
    }

    /// The edits that the harness does not have yet.
    pub fn missing_edits(&mut self) -> Vec<Edit> {
        let edits = self.segments.edits_of(std::mem::take(&mut self.pending));
        self.issue(&edits);
        edits
    }

    /// Notes that an earlier process or another branch sent what was rebuilt. `unchanged` is the number of first segments that the
    /// provider may still have cached as they are now.
    pub fn assume_sent(&mut self, unchanged: usize) {
        self.segments.assume_sent(unchanged);
        self.is_uncached = unchanged == 0;
    }

    /// Clears what is visible. The record of rolls stays.
    pub fn forget(&mut self) {
        self.segments = self.segments.renewed();
        self.rolls.clear();
        self.pending.clear();
        self.results.clear();
        self.issued.clear();
        self.shortenable.clear();
        self.clock.forget();
        self.asked_dead = None;
        self.is_uncached = false;
    }

    /// Notes a recorded call whose result will come as a message.
    pub fn expect(&mut self, call_id: &str, object: &ObjectId) {
        self.received.entry(call_id.to_owned()).or_default().push_back(object.clone());
    }

    /// Notes that the result of a call has come which was waited for.
    pub fn received_as(&mut self, call_id: &str, object: &ObjectId) {
        let Some(waiting) = self.received.get_mut(call_id) else { return };
        if let Some(at) = waiting.iter().position(|one| one == object) {
            waiting.remove(at);
        }
        if waiting.is_empty() {
            self.received.remove(call_id);
        }
    }

    /// True if the arguments of an object's call are collapsed in the visible request: by a roll of this
    /// process, or by an earlier one whose edit the harness kept.
    pub fn hides_arguments(&self, object: &ObjectId) -> bool {
        self.segments.hides_arguments(object) || self.rolled.hides_arguments(object)
    }

    /// Remembers the tags of the markers that edits put into the transcript.
    pub fn issue(&mut self, edits: &[Edit]) {
        for edit in edits {
            if let Edit::Message { calls, .. } = edit {
                self.issued.extend(calls.iter().flat_map(|call| marker::tags_in(&call.args)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Binding;

    use super::*;

    fn at(host: i64) -> Moment {
        Moment { host, own: 0 }
    }

    fn call() -> Call {
        Call {
            model: "m".into(),
            prices: crate::Prices::default(),
            lookback_blocks: Some(20),
            context_window: 200_000,
            cache_ttl_ms: 300_000,
            now_ms: 1_000_000,
            only_at_user_turn: true,
            at_user_turn: true,
            rolls: true,
            shortens: true,
            ..Call::default()
        }
    }

    #[test]
    fn circumstances_of_a_call() {
        let mut request = Request::default();
        request.clock.answer_again(Some(700_000), at(700_000));
        let policy = request.policy(&call(), at(1_000_000));
        assert_eq!(policy.context_window, 200_000);
        assert_eq!(policy.reach, Reach::Blocks(20));
        assert_eq!(policy.binding, Binding::None);
        assert!(policy.only_at_user_turn && policy.at_user_turn);
        assert!(!policy.cache_dead);
        request.clock.answer_again(Some(699_999), at(700_000));
        assert!(request.policy(&call(), at(1_000_000)).cache_dead, "the lifetime is over");
        request = Request { cached_model: "n".into(), ..Request::default() };
        assert!(request.policy(&call(), at(1_000_000)).cache_dead, "another model's cache");
        request.cached_model = "m".into();
        assert!(!request.policy(&call(), at(1_000_000)).cache_dead);
    }

    #[rstest::rstest]
    #[case::not_said(None, 1.0, false)]
    #[case::certain(Some(1.0), 1.0, false)]
    #[case::likely(Some(0.75), 0.75, false)]
    #[case::gone(Some(0.0), 0.0, true)]
    #[case::negative(Some(-0.5), 0.0, true)]
    #[case::too_much(Some(3.0), 1.0, false)]
    #[case::not_a_number(Some(f64::NAN), 1.0, false)]
    fn likelihood_that_the_cache_is_there(
        #[case] cache_kept: Option<f64>,
        #[case] kept: f64,
        #[case] dead: bool,
    ) {
        let policy = Request::default().policy(&Call { cache_kept, ..call() }, at(0));
        assert_eq!((policy.kept, policy.cache_dead), (kept, dead));
    }

    #[test]
    fn decision_respects_settings_of_host_and_person() {
        let mut request = learned();
        request.segments.stays =
            crate::Stays { weight: Some(7.0), debt_cap: Some(0.25), ..Default::default() };
        request.segments.turn_is_over = true;
        let step = |input_tokens_above| crate::PriceStep { input_tokens_above, factor: 2.0 };
        let call = Call {
            binding: Binding::Drops,
            price_steps: crate::PriceSteps::new(vec![step(1_000)]),
            lookback_blocks: None,
            lookback_endings: Some(3),
            ..call()
        };
        let expected = Policy {
            price_steps: crate::PriceSteps::new(vec![step(500)]),
            binding: Binding::Drops,
            lambda: 7.0,
            reach: Reach::Endings(3),
            debt_cap: 0.25,
            slack: crate::SLACK / 2.0,
            times: crate::TIMES,
            times_in_turn: crate::TIMES_IN_TURN,
            density: 2.0,
            context_window: 100_000,
            only_at_user_turn: true,
            at_user_turn: true,
            turn_is_over: true,
            ..Policy::new(call.prices)
        };
        assert_eq!(request.policy(&call, at(0)), expected);
    }

    #[test]
    fn rebuilt_request_keeps_only_the_record_of_rolls() {
        let mut request = Request::default();
        let objects = crate::objects::TestObjects::default();
        let long = "word ".repeat(1_000);
        request.push_user("m", &serde_json::json!({ "content": long }), true, &objects);
        request.pending.insert(0);
        request.results.insert(ObjectId::new("c"));
        request.issued.insert("tag".into());
        request.rolls.push(Shape::of(crate::Roll::of_test(0, Vec::new())));
        request.clock.answer_again(Some(1), at(1));
        request.asked_dead = Some(true);
        request.rolled.note(context_model::chat::RollEntry::default(), 0);
        request.segments.set_binding(Binding::Refuses, true);
        request.segments.stays.weight = Some(3.0);
        request.forget();
        assert!(request.segments.segments.is_empty() && request.segments.tokens() == 0);
        assert!(request.pending.is_empty() && request.rolls.is_empty());
        assert!(request.results.is_empty());
        assert!(request.issued.is_empty() && request.shortenable.is_empty());
        assert_eq!(
            (request.clock.idle(at(9)), request.asked_dead, request.rolled.entries().len()),
            (None, None, 1)
        );
        let segments = &request.segments;
        assert_eq!((segments.binding(), segments.text_is_reasoning), (Binding::Refuses, true));
        assert_eq!(segments.stays.weight, Some(3.0));
    }

    #[test]
    fn arguments_of_a_call_that_is_not_there_are_not_collapsed() {
        assert!(!Request::default().hides_arguments(&ObjectId::new("call")));
    }

    /// The request to a model that counts twice the estimated tokens.
    fn learned() -> Request {
        let mut request = Request::default();
        request.accounting.learn("m", 100, 200);
        request
    }

    #[test]
    fn window_and_figures_are_in_the_models_own_tokens() {
        let mut request = learned();
        assert_eq!(request.policy(&call(), at(1_000_000)).context_window, 100_000);
        request.segments.push_fixed("a", 300);
        request.segments.ledger.push(crate::Item::new(80, 10));
        request.segments.ledger.set_stale(1, true);
        let mut plan = Plan::default();
        request.finish(&mut plan);
        assert_eq!((plan.context_tokens, plan.stale_tokens), (760, 140));
    }

    #[test]
    fn result_that_has_come_is_no_longer_waited_for() {
        let mut request = Request::default();
        let [one, two] = ["one", "two"].map(ObjectId::new);
        request.expect("call", &one);
        request.expect("call", &two);
        request.expect("call", &one);
        request.received_as("call", &one);
        request.received_as("other", &two);
        assert_eq!(request.received["call"], [&two, &one].map(Clone::clone), "one result for each record");
        request.received_as("call", &one);
        request.received_as("call", &two);
        assert!(request.received.is_empty());
    }

    #[test]
    fn arguments_that_an_earlier_process_collapsed_are_hidden_too() {
        let mut request = Request::default();
        let id = ObjectId::new("call");
        let entry = context_model::chat::RollEntry { arguments: vec![id.clone()], ..Default::default() };
        request.rolled.note(entry, 0);
        assert!(request.hides_arguments(&id) && !request.hides_arguments(&ObjectId::new("other")));
    }

    #[test]
    fn markers_of_an_edit_are_issued() {
        let mut request = Request::default();
        let text = "long ".repeat(100);
        let args = serde_json::json!({ "path": "/a", "content": text });
        let collapsed = marker::collapse_args("write", args.as_object().unwrap(), "0a1b2c3d", "/").unwrap();
        let args = collapsed.args.clone();
        let call = segment::CollapsedCall { call_id: "c".into(), position: 0, args };
        request.issue(&[Edit::Message { key: "m".into(), calls: vec![call], texts: Vec::new() }]);
        let tags = marker::tags_in(&collapsed.args);
        assert_eq!(tags.len(), 1);
        assert!(request.issued.contains(&tags[0]));
    }
}
