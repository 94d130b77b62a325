//! The forms that segments take: what a roll makes of them.

use std::cmp::Reverse;

use context_model::chat::RollReason;
use context_model::id::ObjectId;
use context_model::outcome::subject;
use context_model::{render, tokens};

use super::aging::Departure;
use super::segment::{Form, Line, Segment, SegmentKind, Short, ShownLines, TextKind};
use super::segments::{Segments, size};
use crate::{Binding, Item, Objects, Roll};

/// The changes that a roll makes: the forms that segments take, by their places in order, and which answers become
/// lines.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    pub(super) forms: Vec<(usize, Form)>,
    /// Answers with calls, by number. The lines of all but the first follow the first's last result, after any lines
    /// already there.
    pub(super) call_digests: Vec<Vec<usize>>,
    /// Of what becomes a reference, the results whose file has other bytes now.
    pub(super) changed: Vec<usize>,
}

/// An executed roll, with what is needed to undo it.
#[derive(Clone, Debug, Default)]
pub struct Executed {
    /// The changes that it made.
    pub shape: Shape,
    before: Vec<(usize, Form)>,
    /// The lines that followed results before it, by place.
    lines: Vec<(usize, Vec<Line>)>,
}

impl Executed {
    /// The segments that changed.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        self.before.iter().map(|(place, _)| *place)
    }
}

/// Tokens of a segment in a form.
pub(super) fn size_in(segment: &Segment, form: Form) -> u64 {
    match &segment.kind {
        SegmentKind::Fixed => 0,
        SegmentKind::Result(output) => match form {
            Form::Full => output.full_tokens,
            form => output.text_in(form).map_or(0, |text| size(&text)),
        },
        SegmentKind::Arguments(arguments) => {
            let in_form = |form| tokens::of_chars(arguments.units_in(form)) as u64;
            match form {
                // Its lines are elsewhere; a call digest always saves something of each segment.
                Form::Removed => arguments.line_tokens.min(in_form(segment.form).saturating_sub(1)),
                form => in_form(form),
            }
        }
        SegmentKind::Prose(prose) => match (form, &prose.short) {
            (Form::Full, _) | (Form::WithoutOldText | Form::Reference | Form::Compact, Short::Whole) => {
                tokens::of_chars(prose.chars) as u64
            }
            (Form::Reference, Short::Text(text)) => size(text),
            _ => 0,
        },
    }
}

impl Segments {
    /// Returns what a roll makes of each segment.
    pub fn shape(&self, roll: &Roll, objects: &dyn Objects) -> Shape {
        let mut shape = Shape::default();
        let mut last = None;
        for place in &roll.items {
            let segment = &self.segments[*place];
            let call_digest = segment.step.filter(|_| segment.next == Form::Removed);
            let whole = call_digest
                .filter(|number| self.steps[*number].first >= roll.cut && self.is_aimed_away(*number));
            match whole {
                None if segment.next == Form::Removed => shape.forms.extend(self.alone(*place, objects)),
                None => shape.forms.push((*place, segment.next)),
                Some(number) if last != Some(number) => {
                    last = Some(number);
                    let start = Some(self.steps[number].first);
                    let end = |number: usize| self.steps[number].range().map(|range| range.end() + 1);
                    match shape
                        .call_digests
                        .last_mut()
                        .filter(|call_digest| call_digest.last().and_then(|last| end(*last)) == start)
                    {
                        Some(call_digest) => call_digest.push(number),
                        None => shape
                            .call_digests
                            .push(self.carrier_of(number).into_iter().chain([number]).collect()),
                    }
                }
                Some(_) => {}
            }
        }
        shape.forms.extend(self.reasoning_that_leaves(roll).map(|place| (place, Form::Reference)));
        for call_digest in std::mem::take(&mut shape.call_digests) {
            self.shape_call_digest(&mut shape, call_digest, objects);
        }
        let carriers: Vec<usize> =
            shape.call_digests.iter().filter_map(|call_digest| self.last_of(call_digest[0])).collect();
        shape.forms.retain(|(place, form)| *form > self.segments[*place].form || carriers.contains(place));
        // The first answer of a call digest may also be stale by itself.
        shape.forms.sort_by_key(|(place, form)| (*place, Reverse(*form)));
        shape.forms.dedup_by_key(|(place, _)| *place);
        let becomes =
            shape.forms.iter().filter(|(_, form)| *form == Form::Reference).map(|(place, _)| *place);
        shape.changed = becomes.filter(|place| self.has_changed(*place, objects)).collect();
        shape
    }

    /// Returns whether a result is still shown as it came, and the file that it shows has other bytes now.
    fn has_changed(&self, place: usize, objects: &dyn Objects) -> bool {
        self.output_at(place).is_some_and(|output| {
            let is_other = |lines: &ShownLines| objects.hash_of(&lines.file) != Some(lines.hash);
            let says_lines = objects.outcome(&output.object).is_some();
            self.segments[place].form < Form::Reference
                && says_lines
                && output.shown.as_ref().is_some_and(is_other)
        })
    }

    /// Notes whether the file of a result had changed by the time it became a reference.
    pub(super) fn set_changed(&mut self, place: usize, had_changed: bool) {
        if let SegmentKind::Result(output) = &mut self.segments[place].kind {
            output.had_changed = had_changed;
        }
    }

    /// Returns whether the next roll removes the whole answer with its calls.
    fn is_aimed_away(&self, number: usize) -> bool {
        let range = self.steps[number].range();
        range.is_some_and(|mut all| all.all(|place| self.segments[place].next == Form::Removed))
    }

    /// The place of an answer's last result.
    fn last_of(&self, number: usize) -> Option<usize> {
        self.steps[number].range().map(|range| *range.end())
    }

    fn shape_call_digest(&self, shape: &mut Shape, call_digest: Vec<usize>, objects: &dyn Objects) {
        let range = |number: &usize| self.steps[*number].range().into_iter().flatten();
        let Some((first, others)) = call_digest.split_first() else { return };
        if self.steps[*first].call_digest.is_none() {
            shape.forms.extend(range(first).filter_map(|place| self.alone(place, objects)));
        }
        if others.is_empty() {
            return;
        }
        if let Some(last) = self.last_of(*first) {
            shape.forms.retain(|(place, _)| *place != last);
            shape.forms.push((last, Form::Reference));
        }
        shape.forms.extend(others.iter().flat_map(range).map(|place| (place, Form::Removed)));
        shape.call_digests.push(call_digest);
    }

    /// The shortest form that a segment takes by itself.
    fn alone(&self, place: usize, objects: &dyn Objects) -> Option<(usize, Form)> {
        let segment = &self.segments[place];
        let saves = size_in(segment, Form::Reference) < size_in(segment, segment.form);
        let ages = matches!(self.departure(place, objects), Departure::Ages(_));
        (saves && ages).then_some((place, Form::Reference))
    }

    /// Executes a roll. Returns what is needed to undo it.
    pub fn apply(&mut self, shape: Shape, objects: &dyn Objects) -> Executed {
        let carriers = shape.call_digests.iter().filter_map(|call_digest| self.last_of(call_digest[0]));
        let shortened =
            shape.forms.iter().filter(|(_, form)| *form == Form::Compact).map(|(place, _)| *place);
        let lines_at =
            |place| (place, self.output_at(place).map_or(Vec::new(), |output| output.lines.clone()));
        let lines = carriers.chain(shortened).map(lines_at).collect();
        for call_digest in &shape.call_digests {
            self.write_lines(call_digest, objects);
        }
        if !self.binding.is_strict() {
            let first = shape.forms.iter().map(|(place, _)| *place).min();
            self.unbound = self.unbound.into_iter().chain(first).min();
        }
        let mut before = Vec::new();
        shape.changed.iter().for_each(|place| self.set_changed(*place, true));
        for (place, form) in &shape.forms {
            before.push((*place, self.segments[*place].form));
            self.take_form(*place, *form);
        }
        for (place, _) in &shape.forms {
            self.judge(*place, objects);
        }
        Executed { shape, before, lines }
    }

    /// Undoes a roll. What it had replaced then stays for `turns` user turns.
    pub fn undo(&mut self, executed: &Executed, turns: usize, objects: &dyn Objects) {
        for (place, lines) in &executed.lines {
            if let SegmentKind::Result(output) = &mut self.segments[*place].kind {
                output.lines.clone_from(lines);
            }
        }
        for number in executed.shape.call_digests.iter().flatten() {
            let last = self.last_of(*number);
            let has_lines =
                last.and_then(|last| self.output_at(last)).is_some_and(|output| !output.lines.is_empty());
            if !has_lines {
                self.steps[*number].call_digest = None;
            }
        }
        executed.shape.changed.iter().for_each(|place| self.set_changed(*place, false));
        for (place, form) in &executed.before {
            self.bring_back(*place, turns);
            self.segments[*place].since = self.calls;
            self.take_form(*place, *form);
        }
        for (place, _) in &executed.before {
            self.judge(*place, objects);
        }
        for call_digest in &executed.shape.call_digests {
            call_digest.last().into_iter().for_each(|last| self.aim_step(last + 1, objects));
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
            prose.short = Short::Nothing;
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

    /// Of the reasoning that depends on what a roll changes, what leaves with it, also where the roll would leave it by itself.
    /// The provider drops the rest: that of the running turn, and what it accepts only together with its calls.
    fn reasoning_that_leaves(&self, roll: &Roll) -> impl Iterator<Item = usize> {
        let may_leave = |place: &usize| {
            let SegmentKind::Prose(prose) = &self.segments[*place].kind else { return false };
            let is_open = self.is_in_newest_turn(*place) && !self.turn_is_over;
            self.binding == Binding::Refuses || prose.short != Short::Whole && !is_open
        };
        let behind = self.binding.is_strict().then(|| self.ledger.reasoning_from(roll.cut));
        behind.into_iter().flatten().map(|(place, _)| place).filter(may_leave)
    }

    /// The reasoning that the provider drops after a roll although it is still in the request costs nothing any more.
    pub fn drop_reasoning(&mut self, roll: &Roll) {
        for place in &roll.reasoning {
            if self.segments[*place].form == Form::Full {
                self.ledger.replace(*place, Item::new(0, 0));
            }
        }
    }

    /// The roll that takes all reasoning from a place on out of the request, because it no longer fits what is before it.
    pub fn reasoning_roll(&self, from: usize) -> Option<Roll> {
        let reasoning: Vec<usize> = self.ledger.reasoning_from(from).map(|(place, _)| place).collect();
        let items = || reasoning.iter().filter_map(|place| self.ledger.item(*place));
        Some(Roll {
            cut: *reasoning.first()?,
            items: Vec::new(),
            removed_tokens: items().map(|item| item.tokens_full).sum(),
            reasoning,
            reasoning_running: 0,
            rent: 0.0,
            cost: 0.0,
            gain: 0.0,
            pays_back_after_calls: Some(0),
            reason: RollReason::Free,
        })
    }

    /// Writes the lines of answers after the first one's last result, below any lines already there.
    pub(super) fn write_lines(&mut self, call_digest: &[usize], objects: &dyn Objects) {
        let mut lines = Vec::new();
        for number in &call_digest[1..] {
            let step = &self.steps[*number];
            for place in &step.answer {
                if let SegmentKind::Prose(prose) = &self.segments[*place].kind {
                    lines.extend(prose.line.clone().map(|text| Line { text, stays: false }));
                }
            }
            for call in &step.calls {
                let Some(object) = &call.object else { continue };
                let stays = matches!(call.tool.to_ascii_lowercase().as_str(), "edit" | "write");
                let failed = if objects.has_failed(object) { " failed" } else { "" };
                let handle = objects.handle(object);
                let told = objects.outcome(object);
                let gist = if told.is_some() { subject(&call.gist) } else { call.gist.clone() };
                let gist = if gist.is_empty() { gist } else { format!(" {gist}") };
                let outcome = told.map(|told| format!(" -> {told}")).unwrap_or_default();
                let tool = render::word(&call.tool);
                let text = format!("{tool}{gist}{failed}{outcome} id={}", render::word(&handle));
                lines.push(Line { text, stays });
            }
        }
        for number in call_digest {
            self.steps[*number].call_digest = Some(call_digest[0]);
            self.ripening.set(*number, None);
        }
        let newest = call_digest.last().map_or(0, |last| self.steps[*last].since);
        let Some(last) = self.last_of(call_digest[0]) else { return };
        self.segments[last].since = newest;
        if let SegmentKind::Result(output) = &mut self.segments[last].kind {
            output.lines.extend(lines);
        }
    }

    /// While the visible request is rebuilt: shows a segment in the form that it had. Returns whether that changes
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

    /// The same for answers that became lines, given the first call of each. Returns the places that changed.
    pub fn repeat_call_digest(&mut self, call_digest: &[ObjectId], objects: &dyn Objects) -> Vec<usize> {
        let found = call_digest.iter().map(|object| self.step_of.get(object).copied());
        let found: Vec<Option<usize>> = found
            .map(|number| number.filter(|n| self.steps[*n].range().is_some()))
            .enumerate()
            .map(|(at, number)| {
                number.filter(|n| {
                    self.steps[*n].call_digest.is_none_or(|call_digest| at == 0 && call_digest == *n)
                })
            })
            .collect();
        let Some(Some(_)) = found.first() else { return Vec::new() };
        let call_digest: Vec<usize> = found.into_iter().flatten().collect();
        if call_digest.len() < 2 || !self.shortens {
            return Vec::new();
        }
        let mut changed = Vec::new();
        self.write_lines(&call_digest, objects);
        if let Some(last) = self.last_of(call_digest[0]) {
            self.take_form(last, Form::Reference);
            changed.push(last);
        }
        for place in
            call_digest[1..].iter().flat_map(|number| self.steps[*number].range().into_iter().flatten())
        {
            changed.push(place);
        }
        for place in &changed[1..] {
            self.take_form(*place, Form::Removed);
        }
        for place in &changed {
            self.judge(*place, objects);
        }
        changed
    }
}

#[cfg(test)]
#[path = "forms_tests.rs"]
mod tests;
