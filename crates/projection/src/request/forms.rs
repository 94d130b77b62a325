//! The forms that segments take: executing rolls, undoing them, and repeating them in a rebuilt request.

use super::prose::STAND_IN;
use super::segment::{Form, RestOfAnswer, SegmentKind, Short, TextKind};
use super::segments::Segments;
use super::shape::Shape;
use super::size::size_in;
use crate::{Item, Objects, Roll};

impl Segments {
    /// Notes whether the file of a result had changed when the result became a reference.
    pub(super) fn set_changed(&mut self, place: usize, had_changed: bool) {
        if let SegmentKind::Result(output) = &mut self.segments[place].kind {
            output.had_changed = had_changed;
        }
    }

    /// The place of an answer's last result.
    pub(super) fn last_of(&self, number: usize) -> Option<usize> {
        self.range_of(number).map(|range| *range.end())
    }

    /// Executes a roll, and notes its cost.
    pub fn apply(&mut self, shape: &Shape, objects: &dyn Objects) {
        for call_digest in &shape.call_digests {
            self.write_lines(call_digest, objects);
        }
        if !self.binding.is_strict() {
            self.unbound = self.unbound.into_iter().chain(shape.places().min()).min();
        }
        shape.changed.iter().for_each(|place| self.set_changed(*place, true));
        for (place, form) in &shape.forms {
            self.take_form(*place, *form);
        }
        let changed: Vec<usize> = shape.places().collect();
        self.judge_all(changed, objects);
        self.ledger.pay(&shape.roll);
        self.drop_reasoning(&shape.roll);
    }

    /// Undoes a roll. The restored segments then stay for `turns` user turns.
    pub fn undo(&mut self, shape: &Shape, turns: usize, objects: &dyn Objects) {
        for (place, lines) in &shape.lines {
            if let SegmentKind::Result(output) = &mut self.segments[*place].kind {
                output.lines.clone_from(lines);
            }
        }
        for number in shape.call_digests.iter().flatten() {
            let last = self.last_of(*number);
            let has_lines =
                last.and_then(|last| self.output_at(last)).is_some_and(|output| !output.lines.is_empty());
            if !has_lines {
                self.steps[*number].call_digest = None;
            }
        }
        shape.changed.iter().for_each(|place| self.set_changed(*place, false));
        for (place, form) in &shape.before {
            self.bring_back(*place, turns);
            self.segments[*place].since = self.calls;
            self.take_form(*place, *form);
        }
        self.judge_all(shape.before.iter().map(|(place, _)| *place), objects);
        for call_digest in &shape.call_digests {
            // The first one could not be aimed while it had lines, and it may have been about to become one itself.
            let after = call_digest.last().map(|last| last + 1);
            for number in call_digest.first().copied().into_iter().chain(after) {
                self.aim_step(number, objects);
            }
        }
    }

    /// Shows a segment in a form.
    pub(super) fn take_form(&mut self, place: usize, form: Form) {
        let segment = &mut self.segments[place];
        let form = match &mut segment.kind {
            SegmentKind::Result(output) if form == Form::Compact => {
                output.lines.retain(|line| line.stays);
                Form::Reference
            }
            _ => form,
        };
        if let (Form::Reference, SegmentKind::Prose(prose)) = (form, &mut segment.kind)
            && prose.what == TextKind::Thinking
        {
            let stands_in = prose.rest == RestOfAnswer::StandIn;
            prose.short = if stands_in { Short::Text(STAND_IN.to_owned()) } else { Short::Nothing };
        }
        segment.form = form;
        segment.next = form;
        let tokens = match form {
            Form::Removed => 0,
            form => size_in(segment, form),
        };
        let reasoning = match &segment.kind {
            SegmentKind::Prose(prose) if prose.what == TextKind::Thinking && form == Form::Full => {
                Some(prose.chars)
            }
            _ => None,
        };
        self.ledger.replace(place, Item::new(tokens, tokens));
        if let Some(chars) = reasoning {
            self.ledger.set_reasoning(place, chars as u64);
        }
    }

    /// The reasoning that the provider drops after a roll although it is still in the request costs nothing any more.
    fn drop_reasoning(&mut self, roll: &Roll) {
        for place in &roll.reasoning {
            if self.segments[*place].form == Form::Full {
                self.ledger.replace(*place, Item::new(0, 0));
            }
        }
    }

    /// While the visible request is rebuilt: shows a segment in the form that it had. Returns true if that changes
    /// anything.
    pub fn repeat(&mut self, place: usize, form: Form, objects: &dyn Objects) -> bool {
        let segment = &self.segments[place];
        let is_shorter = match &segment.kind {
            SegmentKind::Fixed => false,
            SegmentKind::Result(output) => output.text_in(form).is_some(),
            SegmentKind::Arguments(arguments) => {
                arguments.is_answered() && arguments.units_in(form) < arguments.units
            }
            SegmentKind::Prose(prose) => prose.short != Short::Whole && self.shortens,
        };
        if !is_shorter || form <= segment.form {
            return false;
        }
        self.take_form(place, form);
        self.judge(place, objects);
        true
    }
}

#[cfg(test)]
#[path = "forms_tests.rs"]
mod tests;
