//! Answers with calls, together with the results of these: what becomes one line for each call once all of it is old.

use context_model::id::ObjectId;
use context_model::pricing::Curve;

use super::piece::{Form, PieceKind, Said, Short, StepCall};
use super::pieces::Pieces;
use super::schedule::{Due, Standing};
use crate::ground::stay::Stay;
use crate::session::Session;

/// A call becomes a line no sooner than after so many calls.
const CALLS: u64 = 12;

/// The same on a dead cache.
const CALLS_ON_A_DEAD_CACHE: u64 = 5;

impl Pieces {
    /// The calls of the answer that came last.
    pub fn set_step_calls(&mut self, calls: Vec<StepCall>) {
        let number = self.steps.len().saturating_sub(1);
        if let Some(step) = self.steps.last_mut() {
            self.unanswered.extend(calls.iter().map(|call| (call.call_id.clone(), number)));
            step.calls = calls;
        }
    }

    /// A piece belongs to the answer that came last, if that has calls.
    pub(super) fn join_step(&mut self, place: usize) {
        let number = self.steps.len().wrapping_sub(1);
        if let Some(step) = self.steps.last_mut().filter(|step| step.first == self.newest_answer) {
            step.answer.push(place);
            self.pieces[place].step = Some(number);
        }
    }

    /// Tells which object a call became.
    pub(super) fn name_in_step(&mut self, call_id: &str, object: &ObjectId) {
        let Some(number) = self.unanswered.get(call_id).copied() else { return };
        let mut open =
            self.steps[number].calls.iter_mut().filter(|c| c.call_id == call_id && c.object.is_none());
        if let Some(call) = open.next() {
            call.object = Some(object.clone());
        }
        if open.next().is_none() {
            self.unanswered.remove(call_id);
        }
        self.step_of.insert(object.clone(), number);
    }

    /// The result of a call is at a place.
    pub(super) fn answer_step(&mut self, place: usize, object: &ObjectId) {
        let Some(number) = self.step_of.get(object).copied() else { return };
        let calls = &mut self.steps[number].calls;
        let named =
            calls.iter_mut().find(|call| call.object.as_ref() == Some(object) && call.result.is_none());
        if let Some(call) = named {
            call.result = Some(place);
            self.pieces[place].step = Some(number);
        }
    }

    /// Decides whether an answer with calls may become lines.
    pub(super) fn judge_step(&mut self, number: usize, session: &Session) {
        let ready = self.ready(number, session);
        let is_ripe = ready.is_some_and(|due| due.warm <= self.calls);
        let was_ripe = std::mem::replace(&mut self.steps[number].is_ripe, is_ripe);
        self.ripening.set(number, ready.filter(|due| due.warm > self.calls));
        let all = self.steps[number].range().into_iter().flatten();
        if is_ripe {
            for place in all {
                self.aim(place, Form::Gone);
                self.ledger.set_stale(place, true);
            }
        } else if was_ripe {
            all.for_each(|place| self.judge_alone(place, session));
        }
    }

    /// The calls from which on an answer with calls may become lines: it is some calls old, and each piece of it has its
    /// shortest form or may take it.
    fn ready(&self, number: usize, session: &Session) -> Option<Due> {
        let step = &self.steps[number];
        if !self.shortens || step.is_paged || self.need.is_none() {
            return None;
        }
        let (warm, dead) = match self.stays.calls {
            Stay::Keep => return None,
            Stay::Needed => (CALLS, CALLS_ON_A_DEAD_CACHE),
            Stay::Calls(calls) => (calls, calls),
        };
        let mut ready = Due { warm: step.since.saturating_add(warm), dead: step.since.saturating_add(dead) };
        for place in step.range()? {
            let due = self.shortest_at(place, session)?;
            ready = Due { warm: ready.warm.max(due.warm), dead: ready.dead.max(due.dead) };
        }
        Some(ready)
    }

    /// From which call on a piece may take its shortest form; `None`: never.
    fn shortest_at(&self, place: usize, session: &Session) -> Option<Due> {
        let standing = match &self.pieces[place].kind {
            // What its provider lets leave only together with its calls is needed like what may leave alone.
            PieceKind::Words(words)
                if words.what == Said::Thinking && words.short == Short::Whole && self.is_past(place) =>
            {
                match self.stays.thinking {
                    Stay::Keep => return None,
                    Stay::Needed => self.ages_to(place, words.chars as u64, Curve::THINKING, Form::Gone),
                    Stay::Calls(calls) => {
                        let at = self.pieces[place].since.saturating_add(calls);
                        return Some(Due { warm: at, dead: at });
                    }
                }
            }
            _ => self.standing(place, session),
        };
        match standing {
            Standing::Held => None,
            Standing::Last => Some(Due { warm: 0, dead: 0 }),
            Standing::Ages(forms) => {
                forms.iter().find(|(form, _)| *form == Form::Reference).map(|(_, due)| *due)
            }
        }
    }
}
