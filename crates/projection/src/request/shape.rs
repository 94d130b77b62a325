//! The effect of a roll on a request: the segments that take another form, and the answers that become lines.

use std::cmp::Reverse;

use context_model::chat::{RollReason, RollReceipt};
use context_model::id::ObjectId;

use super::schedule::Departure;
use super::segment::{Form, Line, RestOfAnswer, SegmentKind, Short, ShownLines};
use super::segments::Segments;
use super::size::size_in;
use crate::{Binding, Objects, Policy, Roll};

/// A decided roll with its changes, and the earlier state for undoing them. Valid until a segment takes another form.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The decision.
    pub(super) roll: Roll,
    /// The forms that segments take, by their places in order.
    pub(super) forms: Vec<(usize, Form)>,
    /// Answers with calls that become lines, by number. The lines of all but the first follow the first's last result, after
    /// any lines already there.
    pub(super) call_digests: Vec<Vec<usize>>,
    /// The results, among those that become references, whose file has other bytes now.
    pub(super) changed: Vec<usize>,
    /// The forms that the segments had.
    pub(super) before: Vec<(usize, Form)>,
    /// The lines that followed results, by place.
    pub(super) lines: Vec<(usize, Vec<Line>)>,
}

impl Shape {
    /// A roll that changes nothing yet.
    pub(super) fn of(roll: Roll) -> Self {
        let (forms, before) = (Vec::new(), Vec::new());
        let (call_digests, changed, lines) = (Vec::new(), Vec::new(), Vec::new());
        Self { roll, forms, call_digests, changed, before, lines }
    }

    /// The places of the segments that change.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        self.forms.iter().map(|(place, _)| *place)
    }

    /// True if the segment that takes this one of the forms was a reference before.
    pub(super) fn was_reference(&self, number: usize) -> bool {
        self.before.get(number).is_some_and(|(_, form)| *form >= Form::Reference)
    }

    /// The roll's receipt.
    pub fn receipt(&self) -> RollReceipt {
        self.roll.receipt()
    }

    /// False if it only takes reasoning along: a user could not undo that as a roll.
    pub fn is_roll(&self) -> bool {
        !self.roll.items.is_empty()
    }
}

impl Segments {
    /// The roll to execute before the next call, if one pays.
    pub fn decide(&self, policy: &Policy, objects: &dyn Objects) -> Option<Shape> {
        self.ledger.decide(policy).map(|roll| self.shape(roll, objects))
    }

    /// The roll of everything stale, because a user asked for it.
    pub fn asked(&self, policy: &Policy, objects: &dyn Objects) -> Option<Shape> {
        self.ledger.asked(policy).map(|roll| self.shape(roll, objects))
    }

    /// The calls whose outputs a roll collapses.
    pub fn outputs_of<'a>(&'a self, roll: &'a Shape) -> impl Iterator<Item = &'a ObjectId> {
        let collapses = |(place, form): &&(usize, Form)| {
            *form >= Form::Reference && self.segments[*place].form < Form::Reference
        };
        let output = |(place, _): &(usize, Form)| self.output_at(*place).map(|output| &output.object);
        roll.forms.iter().filter(collapses).filter_map(output)
    }

    /// The roll that takes all reasoning from a place on out of the request, because it no longer fits what is before it.
    pub fn reasoning_roll(&self, from: usize, objects: &dyn Objects) -> Option<Shape> {
        let reasoning: Vec<usize> = self.ledger.reasoning_from(from).map(|(place, _)| place).collect();
        let items = || reasoning.iter().filter_map(|place| self.ledger.item(*place));
        let roll = Roll {
            cut: *reasoning.first()?,
            items: Vec::new(),
            removed_tokens: items().map(|item| item.tokens_full).sum(),
            reasoning,
            reasoning_running: 0,
            rent: 0.0,
            cost: 0.0,
            most: 0.0,
            gain: 0.0,
            pays_back_after_calls: Some(0),
            reason: RollReason::Free,
            cache_dead: false,
        };
        Some(self.shape(roll, objects))
    }

    /// Returns what a roll makes of each segment.
    pub(super) fn shape(&self, roll: Roll, objects: &dyn Objects) -> Shape {
        let mut shape = Shape::of(roll);
        let mut last = None;
        for place in &shape.roll.items.clone() {
            let segment = &self.segments[*place];
            let call_digest = segment.step.filter(|_| segment.next == Form::Removed);
            let whole = call_digest
                .filter(|number| self.steps[*number].first >= shape.roll.cut && self.is_aimed_away(*number));
            match whole {
                None if segment.next == Form::Removed => shape.forms.extend(self.alone(*place, objects)),
                None => shape.forms.push((*place, segment.next)),
                Some(number) if last != Some(number) => {
                    last = Some(number);
                    let carries_on = |call_digest: &&mut Vec<usize>| {
                        call_digest.last().is_some_and(|last| self.follows(*last, number))
                    };
                    match shape.call_digests.last_mut().filter(carries_on) {
                        Some(call_digest) => call_digest.push(number),
                        None => shape
                            .call_digests
                            .push(self.carrier_of(number).into_iter().chain([number]).collect()),
                    }
                }
                Some(_) => {}
            }
        }
        shape.forms.extend(self.reasoning_that_leaves(&shape.roll).map(|place| (place, Form::Reference)));
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
        self.note_before(&mut shape);
        shape
    }

    /// Completes the changes of a roll with the state that undoing them needs.
    pub(super) fn note_before(&self, shape: &mut Shape) {
        shape.before = shape.places().map(|place| (place, self.segments[place].form)).collect();
        let carriers = shape.call_digests.iter().filter_map(|call_digest| self.last_of(call_digest[0]));
        let is_compacted = |(_, form): &&(usize, Form)| *form == Form::Compact;
        let compacted = shape.forms.iter().filter(is_compacted).map(|(place, _)| *place);
        let lines_at =
            |place| (place, self.output_at(place).map_or(Vec::new(), |output| output.lines.clone()));
        shape.lines = carriers.chain(compacted).map(lines_at).collect();
    }

    /// True if a result is still shown as it came, and the file that it shows has other bytes now.
    fn has_changed(&self, place: usize, objects: &dyn Objects) -> bool {
        self.output_at(place).is_some_and(|output| {
            let is_other = |lines: &ShownLines| objects.hash_of(&lines.file) != Some(lines.hash);
            let says_lines = objects.outcome(&output.object).is_some();
            self.segments[place].form < Form::Reference
                && says_lines
                && output.shown.as_ref().is_some_and(is_other)
        })
    }

    /// True if the next roll removes the whole answer with its calls.
    fn is_aimed_away(&self, number: usize) -> bool {
        let range = self.range_of(number);
        range.is_some_and(|mut all| all.all(|place| self.segments[place].next == Form::Removed))
    }

    fn shape_call_digest(&self, shape: &mut Shape, call_digest: Vec<usize>, objects: &dyn Objects) {
        let range = |number: &usize| self.range_of(*number).into_iter().flatten();
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
    pub(super) fn alone(&self, place: usize, objects: &dyn Objects) -> Option<(usize, Form)> {
        let segment = &self.segments[place];
        let saves = size_in(segment, Form::Reference) < size_in(segment, segment.form);
        let ages = matches!(self.departure(place, objects), Departure::Ages(_));
        (saves && ages).then_some((place, Form::Reference))
    }

    /// Returns the reasoning that leaves with a roll because it depends on what the roll changes, also where the roll would
    /// leave it. The provider drops the rest: that of the running turn, and what it accepts only together with its calls.
    fn reasoning_that_leaves(&self, roll: &Roll) -> impl Iterator<Item = usize> {
        let may_leave = |place: &usize| {
            let SegmentKind::Prose(prose) = &self.segments[*place].kind else { return false };
            let is_open = self.is_in_newest_turn(*place) && !self.turn_is_over;
            // An answer of reasoning alone leaves whole: nothing is left that its provider could refuse.
            let may_leave = prose.short != Short::Whole || prose.rest != RestOfAnswer::Some;
            self.binding == Binding::Refuses || may_leave && !is_open
        };
        let behind = self.binding.is_strict().then(|| self.ledger.reasoning_from(roll.cut));
        behind.into_iter().flatten().map(|(place, _)| place).filter(may_leave)
    }
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
