//! Answers with calls, together with the results. Once all of it is old, it becomes one line for each call.

use context_model::id::ObjectId;

use super::aging::{Departure, Due};
use super::forms::line_tokens;
use super::segment::{Form, SegmentKind, Short, StepCall, TextKind};
use super::segments::Segments;
use super::words::KEPT;
use crate::need::Stay;
use crate::{Curve, Objects};

/// A call becomes a line after this many calls at the earliest.
const CALLS: u64 = 12;

/// The same on a dead cache.
const CALLS_ON_A_DEAD_CACHE: u64 = 5;

impl Segments {
    /// The calls of the answer that came last.
    pub(super) fn set_step_calls(&mut self, calls: Vec<StepCall>) {
        let number = self.steps.len().saturating_sub(1);
        if let Some(step) = self.steps.last_mut() {
            self.unanswered.extend(calls.iter().map(|call| (call.call_id.clone(), number)));
            step.calls = calls;
        }
    }

    /// Joins a segment to the last answer, if that has calls.
    pub(super) fn join_step(&mut self, place: usize) {
        let number = self.steps.len().wrapping_sub(1);
        if let Some(step) = self.steps.last_mut().filter(|step| step.first == self.newest_answer) {
            step.answer.push(place);
            self.segments[place].step = Some(number);
        }
    }

    /// Records which object a call became.
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

    /// Counts what a call's line will take, at the answer that made the call.
    pub(super) fn price_line(&mut self, object: &ObjectId, objects: &dyn Objects) {
        let step = self.step_of.get(object).map(|number| &self.steps[*number]);
        let Some(place) = step.and_then(|step| step.answer.last()).copied() else { return };
        if let SegmentKind::Arguments(arguments) = &mut self.segments[place].kind {
            arguments.line_tokens += line_tokens(object, objects);
        }
    }

    /// Records the place of a call's result.
    pub(super) fn answer_step(&mut self, place: usize, object: &ObjectId) {
        let Some(number) = self.step_of.get(object).copied() else { return };
        let calls = &mut self.steps[number].calls;
        let named =
            calls.iter_mut().find(|call| call.object.as_ref() == Some(object) && call.result.is_none());
        if let Some(call) = named {
            call.result = Some(place);
            self.segments[place].step = Some(number);
        }
    }

    /// Decides whether an answer with calls may become lines.
    pub(super) fn judge_step(&mut self, number: usize, objects: &dyn Objects) {
        let ready = self.ready(number, objects);
        let is_ripe = ready.is_some_and(|due| due.warm <= self.calls);
        let was_ripe = std::mem::replace(&mut self.steps[number].is_ripe, is_ripe);
        self.ripening.set(number, ready.filter(|due| due.warm > self.calls));
        if is_ripe || was_ripe {
            self.aim_step(number, objects);
        }
        if is_ripe != was_ripe {
            self.aim_step(number + 1, objects);
        }
    }

    /// An answer that may become lines leaves as a whole if there is a place for the lines before it.
    pub(super) fn aim_step(&mut self, number: usize, objects: &dyn Objects) {
        let Some(step) = self.steps.get(number).filter(|step| step.page.is_none()) else { return };
        let leaves = step.is_ripe && self.carrier_of(number).is_some();
        let since = self.ready(number, objects).map_or(self.calls, |due| due.warm);
        for place in step.range().into_iter().flatten() {
            if leaves {
                self.aim(place, Form::Removed);
                self.ledger.set_stale_since(place, since.saturating_sub(self.uncounted));
            } else if self.segments[place].next == Form::Removed {
                self.judge_alone(place, objects);
            }
        }
    }

    /// The answer whose last result this one's lines follow: the one that carries the previous answer's lines, or the
    /// previous answer itself if it may become lines too.
    pub(super) fn carrier_of(&self, number: usize) -> Option<usize> {
        let before = number.checked_sub(1)?;
        let step = &self.steps[before];
        let is_next = step.range().is_some_and(|range| range.end() + 1 == self.steps[number].first);
        if is_next { step.page.or(step.is_ripe.then_some(before)) } else { None }
    }

    /// The calls from which an answer with calls may become lines: it is old enough, and everything that leaves with
    /// it costs more than its expected need.
    pub(super) fn ready(&self, number: usize, objects: &dyn Objects) -> Option<Due> {
        let step = &self.steps[number];
        let need = self.need?;
        if !self.shortens || step.page.is_some() {
            return None;
        }
        let (warm, dead) = match self.stays.calls {
            Stay::Keep => return None,
            Stay::Needed => (CALLS, CALLS_ON_A_DEAD_CACHE),
            Stay::Calls(calls) => (calls, calls),
        };
        let mut ready = Due { warm: step.since.saturating_add(warm), dead: step.since.saturating_add(dead) };
        let (mut wanted, mut shown, mut since) = (0.0, 0, step.since);
        for place in step.range()? {
            let (curve, chars) = self.leaves_with_step(place, objects)?;
            wanted += need.wanted(curve, chars);
            shown += self.ledger.item(place).map_or(0, |item| item.tokens_full);
            since = since.max(self.segments[place].since);
            if let Some(at) = self.set_by_a_person(place) {
                ready = Due { warm: ready.warm.max(at), dead: ready.dead.max(at) };
            }
        }
        if self.stays.calls == Stay::Needed {
            let lines = step.calls.iter().filter_map(|call| call.object.as_ref());
            let saved = shown.saturating_sub(lines.map(|object| line_tokens(object, objects)).sum());
            let at = |dead| since.saturating_add(need.age_at(wanted, saved, dead));
            ready = Due { warm: ready.warm.max(at(false)), dead: ready.dead.max(at(true)) };
        }
        Some(ready)
    }

    /// How much of a segment leaves together with its answer, in UTF-16 units, and how fast the need for that fades;
    /// `None` if it has to stay.
    fn leaves_with_step(&self, place: usize, objects: &dyn Objects) -> Option<(Curve, u64)> {
        let segment = &self.segments[place];
        // What may leave only together with its calls is needed just like what may leave alone.
        let may = match &segment.kind {
            SegmentKind::Words(words)
                if words.what == TextKind::Thinking
                    && self.binding.is_strict()
                    && self.is_in_newest_turn(place) =>
            {
                false
            }
            SegmentKind::Words(words) if words.what == TextKind::Thinking => match words.short {
                Short::Whole => {
                    self.is_past(place) && self.stays.thinking != Stay::Keep && !self.is_brought_back(place)
                }
                Short::NothingAfterUser if self.is_in_newest_turn(place) => false,
                _ => !matches!(self.departure(place, objects), Departure::Held),
            },
            _ => !matches!(self.departure(place, objects), Departure::Held),
        };
        let is_short = segment.form >= Form::Reference;
        may.then(|| match &segment.kind {
            SegmentKind::Result(_) if is_short => (Curve::TOOL, 0),
            SegmentKind::Result(_) | SegmentKind::Fixed => (Curve::TOOL, self.chars_at(place)),
            // Its line keeps the path, or the beginning of the command.
            SegmentKind::Arguments(all) => {
                (Curve::TOOL, all.units_in(segment.form).saturating_sub(KEPT) as u64)
            }
            SegmentKind::Words(words) => {
                let chars = if is_short { 0 } else { words.chars as u64 };
                match words.what {
                    TextKind::Thinking => (Curve::THINKING, chars),
                    TextKind::Prose | TextKind::User => (Curve::PROSE, chars.saturating_sub(KEPT as u64)),
                }
            }
        })
    }

    /// The call at which a person's setting lets a segment leave.
    fn set_by_a_person(&self, place: usize) -> Option<u64> {
        let SegmentKind::Words(words) = &self.segments[place].kind else { return None };
        let stay = if words.what == TextKind::Thinking { self.stays.thinking } else { self.stays.prose };
        if let Stay::Calls(calls) = stay {
            Some(self.segments[place].since.saturating_add(calls))
        } else {
            None
        }
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
