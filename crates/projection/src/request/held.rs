//! The segments of a request that are held back, for the user.

use super::schedule::Departure;
use super::segment::{Form, SegmentKind};
use super::segments::Segments;
use crate::{Because, Chance, HeldBack, Objects, Policy};

impl Segments {
    /// Returns the text that could leave the request and has not, with the reason and its next chance; `None` if there is
    /// nothing. `may_roll`: rolls may happen. Shown forms and decisions stay as they are.
    pub fn held_back(&mut self, policy: &Policy, may_roll: bool, objects: &dyn Objects) -> Option<HeldBack> {
        if !may_roll {
            let tokens = self.tokens_that_could_leave(objects);
            return (tokens > 0).then_some(HeldBack { tokens, because: Because::Off, chance: None });
        }
        self.ripen(policy, objects);
        let found = self.why_held(policy, objects);
        // Text that leaves on a dead cache only is not stale for the others.
        self.ripen(policy, objects);
        found
    }

    fn why_held(&mut self, policy: &Policy, objects: &dyn Objects) -> Option<HeldBack> {
        let (stale, young) = (self.stale_tokens(), self.young_tokens());
        if stale + young == 0 {
            return None;
        }
        if let Some(roll) = self.ledger.decide(policy) {
            let (tokens, chance) = (roll.removed_tokens, Some(Chance::Call));
            return Some(HeldBack { tokens, because: Because::Due, chance });
        }
        // The reason that holds for most of it.
        let is_young = stale < young / MOSTLY;
        let because = if is_young { Because::Young } else { self.ledger.obstacle(policy) };
        let tokens = if is_young { young } else { stale };
        Some(HeldBack { tokens, because, chance: self.chance(policy, is_young, objects) })
    }

    fn chance(&mut self, policy: &Policy, is_young: bool, objects: &dyn Objects) -> Option<Chance> {
        let prompt = Policy { turn_is_over: true, at_user_turn: true, ..policy.clone() };
        if self.ledger.decide(&prompt).is_some() {
            return Some(Chance::Prompt);
        }
        let calls = match is_young {
            true => self.schedule.first().map(|at| at.saturating_sub(self.calls).max(1)),
            false => self.ledger.calls_until_paid(policy).map(u64::from),
        };
        let soon = calls.and_then(|calls| u32::try_from(calls).ok()).filter(|_| !policy.binding.is_strict());
        if let Some(calls) = soon.filter(|_| !policy.only_at_user_turn) {
            return Some(Chance::Calls(calls));
        }
        let idle = Policy { cache_dead: true, ..prompt };
        self.ripen(&idle, objects);
        self.ledger.decide(&idle).map(|_| Chance::Pause)
    }

    /// Returns the tokens of outputs and arguments that nothing keeps. No age is computed, because it would count later.
    fn tokens_that_could_leave(&self, objects: &dyn Objects) -> u64 {
        let could = |place: &usize| {
            let is_text = !matches!(self.kind(*place), SegmentKind::Fixed | SegmentKind::Prose(_));
            is_text && !matches!(self.departure(*place, objects), Departure::Held)
        };
        (0..self.segments.len()).filter(could).map(|place| self.saves(place, Form::Reference)).sum()
    }

    /// Tokens that age would let leave later.
    fn young_tokens(&self) -> u64 {
        let all = self.schedule.places().filter(|place| !self.ledger.stale.contains_key(place));
        all.map(|place| self.saves(place, Form::Reference)).sum()
    }
}

/// If the share that is old enough is less than one part in this many, the rest is what a user has to know of.
const MOSTLY: u64 = 4;

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::objects::TestObjects;
    use crate::request::segment::Output;
    use crate::{Binding, Prices, Stay, Stays};

    fn policy() -> Policy {
        Policy { lambda: 3.0, ..Policy::new(Prices { read: 0.125, write: 1.25 }) }
    }

    /// An output of 4,000 tokens, a thought of the model, and 20,000 tokens that stay, in separate calls.
    fn long() -> (Segments, TestObjects) {
        let mut objects = TestObjects::default();
        objects.calls.insert(context_model::id::ObjectId::new("a"));
        let mut segments = Segments::new(Stays { thinking: Stay::Keep, ..Stays::default() });
        segments.set_shortens(true);
        segments.push_result("m", Output::of_test("a", 4_000), &objects);
        segments.charge(&policy());
        segments.push_fixed("t", 400);
        segments.ledger.set_reasoning(1, 1_600);
        segments.push_fixed("n", 20_000);
        segments.charge(&policy());
        segments.push_fixed("o", 9);
        segments.charge(&policy());
        (segments, objects)
    }

    fn strict() -> Policy {
        Policy { binding: Binding::Refuses, ..policy() }
    }

    /// The first output is stale, and would be written again with all behind it.
    #[rstest]
    #[case::too_dear(policy(), true, Because::Dear, Some(Chance::Calls(44)))]
    #[case::rolls_are_off(policy(), false, Because::Off, None)]
    #[case::the_cache_is_gone(Policy { cache_dead: true, ..policy() }, true, Because::Due, Some(Chance::Call))]
    #[case::only_when_the_user_speaks(
        Policy { only_at_user_turn: true, cache_dead: true, ..policy() }, true, Because::Turn, Some(Chance::Prompt)
    )]
    #[case::its_reasoning_is_bound(strict(), true, Because::Bound, Some(Chance::Pause))]
    #[case::and_the_cache_is_gone(
        Policy { cache_dead: true, ..strict() }, true, Because::Bound, Some(Chance::Prompt)
    )]
    #[case::of_an_earlier_turn(Policy { turn_is_over: true, ..strict() }, true, Because::Dear, Some(Chance::Pause))]
    #[case::reasoning_that_is_worth_more(
        Policy { turn_is_over: true, cache_dead: true, lambda: 1e6, ..strict() }, true, Because::Reasoning, None
    )]
    #[case::a_window_that_is_nearly_full(
        Policy { context_window: 28_000, ..policy() }, true, Because::Due, Some(Chance::Call)
    )]
    fn text_that_is_held_back(
        #[case] policy: Policy,
        #[case] may_roll: bool,
        #[case] because: Because,
        #[case] chance: Option<Chance>,
    ) {
        let (mut segments, objects) = long();
        segments.stays.weight = Some(0.001);
        segments.set_binding(policy.binding, false);
        let held = segments.held_back(&policy, may_roll, &objects).unwrap();
        assert_eq!((held.because, held.chance), (because, chance));
        assert!((3_900..4_010).contains(&held.tokens), "{held:?}");
        // The query decides nothing.
        segments.ripen(&policy, &objects);
        assert_eq!(segments.decide(&policy, &objects).is_some(), because == Because::Due);
    }

    #[test]
    fn text_that_is_too_young_has_its_chance_when_it_is_old_enough() {
        let (mut segments, objects) = long();
        let held = segments.held_back(&policy(), true, &objects).unwrap();
        let Some(Chance::Calls(calls)) = held.chance else { panic!("{held:?}") };
        assert_eq!(held.because, Because::Young);
        for left in (1..=calls).rev() {
            assert_eq!(
                segments.held_back(&policy(), true, &objects).unwrap().chance,
                Some(Chance::Calls(left))
            );
            segments.charge(&policy());
        }
        assert_ne!(segments.held_back(&policy(), true, &objects).unwrap().because, Because::Young);
    }

    /// A chance that is a number of calls comes true to the call, if nothing else happens.
    #[rstest]
    #[case::no_bound(f64::INFINITY, &[Because::Dear])]
    #[case::a_bound_that_is_used_up(0.05, &[Because::Dear, Because::Debt])]
    fn text_leaves_after_the_calls_that_were_told(#[case] debt_cap: f64, #[case] reasons: &[Because]) {
        let (mut segments, objects) = long();
        segments.stays.weight = Some(0.001);
        let policy = Policy { debt_cap, ..policy() };
        let held = segments.held_back(&policy, true, &objects).unwrap();
        let Some(Chance::Calls(calls)) = held.chance else { panic!("{held:?}") };
        let mut told = Vec::new();
        for _ in 0..calls {
            told.push(segments.held_back(&policy, true, &objects).unwrap().because);
            segments.charge(&policy);
        }
        told.dedup();
        let last = segments.held_back(&policy, true, &objects).unwrap();
        assert_eq!((told.as_slice(), last.because), (reasons, Because::Due));
    }

    #[test]
    fn nothing_is_held_back_of_a_request_without_text_that_could_leave() {
        let mut segments = Segments::default();
        segments.push_fixed("m", 5_000);
        assert_eq!(segments.held_back(&policy(), true, &TestObjects::default()), None);
        assert_eq!(segments.held_back(&policy(), false, &TestObjects::default()), None);
    }

    #[test]
    fn text_that_the_model_has_not_seen_has_to_be_seen_first() {
        let mut objects = TestObjects::default();
        let mut segments = Segments::default();
        segments.set_shortens(true);
        segments.push_result("m", Output::of_test("a", 4_000), &objects);
        objects.released.insert(context_model::id::ObjectId::new("a"));
        let held = segments.held_back(&policy(), true, &objects).unwrap();
        assert_eq!(held.because, Because::Unseen);
    }
}
