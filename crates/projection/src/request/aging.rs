//! The time when each segment becomes stale, and its form after a roll. A call's cost depends on the segments that become stale
//! at it, never on the history.

use std::collections::BTreeSet;

use context_model::id::ObjectId;

use super::schedule::{Departure, RipeAt};
use super::segment::{Form, Prose, Segment, SegmentKind, Short, TextKind};
use super::segments::Segments;
use super::size::size_in;
use crate::need::Stay;
use crate::{Curve, Need, Objects, Policy, Prices};

/// The old text of an edit shows the file before it, and has no use once the edit has succeeded.
const OLD_TEXT_CALLS: u64 = 2;

/// After this many calls, calls that only looked at something have no line left.
pub(super) const LINE_CALLS: u64 = 40;

/// The ledger's estimate.
const CHARS_PER_TOKEN: u64 = 4;

impl Segments {
    /// Judges the segments that become stale at the next call. When prices change, every due time is computed again.
    pub fn ripen(&mut self, policy: &Policy, objects: &dyn Objects) {
        let early = std::mem::take(&mut self.early);
        self.judge_all(early, objects);
        let factor = policy.price_steps.factor_at(self.tokens());
        let Prices { read, write } = policy.prices;
        // Above a step in the price, keeping text costs more.
        let prices = Prices { read: read * factor, write: write * factor };
        let need = Need { prices, lambda: self.lambda(), density: policy.density };
        if self.need.replace(need) != Some(need) {
            self.judge_all(0..self.segments.len(), objects);
        }
        let due = self.schedule.due(self.calls);
        self.judge_all(due, objects);
        for step in self.ripening.due(self.calls) {
            self.judge_step(step, objects);
        }
        if policy.cache_dead {
            self.ripen_on_a_dead_cache(objects);
        }
        self.ripened = self.calls;
    }

    fn ripen_on_a_dead_cache(&mut self, objects: &dyn Objects) {
        for place in self.schedule.due_on_a_dead_cache(self.calls) {
            let Departure::Ages(forms) = self.departure(place, objects) else { continue };
            let next = forms.iter().rev().find(|(_, due)| due.dead <= self.calls);
            if let Some((form, _)) = next {
                self.make_stale_early(place, *form);
            }
        }
        for step in self.ripening.due_on_a_dead_cache(self.calls) {
            self.steps[step].is_ripe = true;
            self.early.extend(self.range_of(step).into_iter().flatten());
            self.aim_step(step, objects);
            self.aim_step(step + 1, objects);
        }
    }

    /// Makes everything outside the active set stale, because a user asked for a roll.
    pub fn release_inactive(&mut self, objects: &dyn Objects) {
        let is_inactive = |id: &ObjectId| objects.is_inactive(id);
        for place in 0..self.segments.len() {
            let all = match &self.segments[place].kind {
                SegmentKind::Result(output) => is_inactive(&output.object),
                SegmentKind::Arguments(all) => {
                    all.shorter().all(|call| call.object.as_ref().is_some_and(is_inactive))
                }
                SegmentKind::Fixed | SegmentKind::Prose(_) => false,
            };
            let form = self.segments[place].form;
            let may = all && form < Form::Reference && self.segments[place].next != Form::Removed;
            if may && matches!(self.departure(place, objects), Departure::Ages(_)) {
                self.make_stale_early(place, Form::Reference);
            }
        }
    }

    /// Makes a segment stale that has been so since a call. One that was not at the last look, although its time had come by then,
    /// has become due by other prices: it begins now.
    pub(super) fn make_stale_since(&mut self, place: usize, call: u64) {
        let since = if call > self.ripened { call } else { self.calls };
        self.ledger.set_stale_since(place, since.saturating_sub(self.uncounted));
    }

    fn make_stale_early(&mut self, place: usize, form: Form) {
        self.aim(place, form);
        self.ledger.set_stale(place, true);
        self.early.push(place);
    }

    /// Notes that newer messages take the place of those texts that could not leave before.
    pub(super) fn end_newest(&mut self, places: &[usize], has_waited: impl Fn(&Self, &Prose) -> bool) {
        for place in places {
            if matches!(&self.segments[*place].kind, SegmentKind::Prose(prose) if has_waited(self, prose)) {
                self.segments[*place].newest_until = self.calls;
            }
        }
    }

    /// Decides whether a segment is stale, or when it will be, and its form after a roll.
    pub(super) fn judge(&mut self, place: usize, objects: &dyn Objects) {
        self.judge_alone(place, objects);
        if let Some(step) = self.segments[place].step {
            self.judge_step(step, objects);
        }
    }

    /// As [`Self::judge`], for several segments: each of their answers is judged once, however many calls it has.
    pub(super) fn judge_all(&mut self, places: impl IntoIterator<Item = usize>, objects: &dyn Objects) {
        let mut steps = BTreeSet::new();
        for place in places {
            self.judge_alone(place, objects);
            steps.extend(self.segments[place].step);
        }
        for step in steps {
            self.judge_step(step, objects);
        }
    }

    /// As [`Self::judge`], without judging the answer that the segment belongs to.
    pub(super) fn judge_alone(&mut self, place: usize, objects: &dyn Objects) {
        let Departure::Ages(forms) = self.departure(place, objects) else {
            self.ledger.set_stale(place, false);
            self.schedule.set(place, None);
            return;
        };
        match forms.iter().rev().find(|(_, due)| due.warm <= self.calls) {
            Some((form, due)) => {
                self.aim(place, *form);
                let Segment { since, newest_until, .. } = self.segments[place];
                self.make_stale_since(place, due.warm.max(self.first_shown(since)).max(newest_until));
            }
            None => _ = self.ledger.set_stale(place, false),
        }
        let later = forms.iter().map(|(_, due)| *due).find(|due| due.warm > self.calls);
        self.schedule.set(place, later);
    }

    /// Returns what decides when a segment leaves.
    pub(super) fn departure(&self, place: usize, objects: &dyn Objects) -> Departure {
        let segment = &self.segments[place];
        if self.is_brought_back(place) {
            return Departure::Held;
        }
        let is_dropped = |id: &ObjectId| objects.is_released(id);
        match &segment.kind {
            SegmentKind::Fixed => Departure::Held,
            SegmentKind::Result(output) => {
                if segment.form >= Form::Reference {
                    return self.departure_of_lines(place);
                }
                // The host has taken the output out: the reference says as much in fewer words.
                if output.masked {
                    return self.at_once(place);
                }
                let carried = output.carries.as_ref().map(|carried| &carried.object);
                // A later read of the file covers these lines, but this text is the one that was activated.
                let is_carrier = |id: &ObjectId| !segment.superseded || self.carries(place, id, objects);
                let carries = carried.is_some_and(|id| is_carrier(id) && !objects.is_inactive(id));
                let held = objects.keeps_whole(&output.object)
                    || carries
                    || output.is_rule
                    || self.is_pointed_at(place)
                    || output.shown.as_ref().is_some_and(|lines| objects.is_pinned(&lines.file));
                if held {
                    Departure::Held
                } else if is_dropped(&output.object) || carried.is_some_and(is_dropped) {
                    self.at_once(place)
                } else if segment.superseded {
                    self.once_sent(place)
                } else {
                    self.ages(place, self.chars_at(place), Curve::TOOL)
                }
            }
            SegmentKind::Arguments(arguments) => {
                let named = || arguments.shorter().map(|call| call.object.as_ref());
                if named().any(|id| id.is_none_or(|id| objects.is_pinned(id))) {
                    return Departure::Held;
                }
                if named().flatten().all(is_dropped) {
                    return self.at_once(place);
                }
                let later = self.ages(place, arguments.units_in(segment.form) as u64, Curve::TOOL);
                if segment.form != Form::Full || !arguments.has_old_text() {
                    return later;
                }
                let at = segment.since.saturating_add(OLD_TEXT_CALLS);
                let mut forms = vec![(Form::WithoutOldText, RipeAt { warm: at, dead: at })];
                if let Departure::Ages(more) = later {
                    forms.extend(more);
                }
                forms.sort_by_key(|(_, due)| due.warm);
                Departure::Ages(forms)
            }
            SegmentKind::Prose(prose) => {
                let (what, chars) = (prose.what, prose.chars as u64);
                if !self.shortens || self.words_are_held(place, what) || self.unrecorded.contains(&prose.id) {
                    return Departure::Held;
                }
                if segment.form >= Form::Reference || prose.short == Short::Whole {
                    return Departure::Last;
                }
                if self.waits_for_user(prose) && self.is_in_newest_turn(place) {
                    return Departure::Last;
                }
                let (stay, curve) = match what {
                    TextKind::Thinking => (self.stays.thinking, Curve::THINKING),
                    TextKind::Prose => (self.stays.prose, Curve::PROSE),
                    TextKind::User => (self.stays.prose, Curve::USER),
                };
                match stay {
                    Stay::Keep => Departure::Held,
                    Stay::Needed => self.ages(place, chars, curve),
                    Stay::Calls(calls) => {
                        let at = segment.since.saturating_add(calls);
                        Departure::Ages(vec![(Form::Reference, RipeAt { warm: at, dead: at })])
                    }
                }
            }
        }
    }

    /// True if the newest text of an output that was brought back is in this segment.
    fn carries(&self, place: usize, object: &ObjectId, objects: &dyn Objects) -> bool {
        objects.is_toolcall(object)
            && self.carriers.get(object).is_some_and(|carriers| carriers.contains(&place))
    }

    /// The user's first and newest messages stay, and so does the model's reasoning before the newest results.
    fn words_are_held(&self, place: usize, what: TextKind) -> bool {
        match what {
            TextKind::Thinking => !self.is_past(place),
            TextKind::Prose => false,
            TextKind::User => self.users.is_none_or(|(first, newest)| {
                place >= newest || self.segments[place].key == self.segments[first].key
            }),
        }
    }

    /// True for a text of an answer that can leave only once the next turn has begun.
    pub(super) fn waits_for_user(&self, prose: &Prose) -> bool {
        prose.short == Short::NothingAfterUser || prose.what == TextKind::Thinking && self.binding.is_strict()
    }

    /// True if no user has spoken since.
    pub(super) fn is_in_newest_turn(&self, place: usize) -> bool {
        self.users.is_none_or(|(_, newest)| newest <= place)
    }

    /// Lines of calls that only looked at something leave once all such lines are old.
    fn departure_of_lines(&self, place: usize) -> Departure {
        let segment = &self.segments[place];
        let lines = self.output_at(place).map_or(&[][..], |output| &output.lines);
        if segment.form != Form::Reference || lines.iter().all(|line| line.stays) {
            return Departure::Last;
        }
        let at = segment.since.saturating_add(LINE_CALLS);
        Departure::Ages(vec![(Form::Compact, RipeAt { warm: at, dead: at })])
    }

    fn at_once(&self, place: usize) -> Departure {
        self.leaves_at(place, 0)
    }

    /// A text that no request has had yet, such as a read that the host has put before a later one, is sent first.
    fn once_sent(&self, place: usize) -> Departure {
        let since = self.segments[place].since;
        self.leaves_at(place, if since < self.calls { 0 } else { since.saturating_add(1) })
    }

    fn leaves_at(&self, place: usize, call: u64) -> Departure {
        if self.saves(place, Form::Reference) > 0 {
            Departure::Ages(vec![(Form::Reference, RipeAt { warm: call, dead: call })])
        } else {
            Departure::Last
        }
    }

    /// True if a segment of reasoning is older than the model's newest answer.
    pub(super) fn is_past(&self, place: usize) -> bool {
        place < self.newest_answer
    }

    /// The calls from which a segment of `chars` UTF-16 units is stale.
    fn ages(&self, place: usize, chars: u64, curve: Curve) -> Departure {
        let saved = self.saves(place, Form::Reference);
        let Some(need) = self.need.filter(|_| saved > 0) else { return Departure::Last };
        let since = self.segments[place].since;
        let at = |dead| since.saturating_add(need.age_at(need.wanted(curve, chars), saved, dead));
        Departure::Ages(vec![(Form::Reference, RipeAt { warm: at(false), dead: at(true) })])
    }

    /// The length of the shown text, in UTF-16 units, as the ledger counts it.
    pub(super) fn chars_at(&self, place: usize) -> u64 {
        self.ledger.item(place).map_or(0, |item| item.tokens_full * CHARS_PER_TOKEN)
    }

    /// Tokens that a form would save.
    pub(super) fn saves(&self, place: usize, form: Form) -> u64 {
        let shown = self.ledger.item(place).map_or(0, |item| item.tokens_full);
        shown.saturating_sub(size_in(&self.segments[place], form))
    }

    /// Sets a segment's form after a roll.
    pub(super) fn aim(&mut self, place: usize, next: Form) {
        self.segments[place].next = next;
        self.ledger.retarget(place, size_in(&self.segments[place], next));
    }
}

#[cfg(test)]
#[path = "ripening_tests.rs"]
mod ripening;

#[cfg(test)]
#[path = "aging_tests.rs"]
mod tests;
