//! Lines that replace answers with calls.
//!
//! Architecture invariant: a line follows the result of an answer, its carrier, only while the answer that the line replaces is
//! hidden as a whole, and directly follows the carrier or another answer whose lines the carrier has. So lines never describe
//! calls that are shown or gone, and always keep the order of the calls. [`Segments::follows`] is the only place that knows
//! this rule.

use context_lines::call_line;
use context_model::id::ObjectId;
use context_tools::subject;

use super::segment::{Form, Line, SegmentKind};
use super::segments::Segments;
use crate::Objects;

/// The line of a text of an answer from this length on, in UTF-16 units, stays: it is a plan or a finding, and the line is all that still
/// names it.
const LONG: usize = 2_000;

impl Segments {
    /// True if an answer with calls directly follows another one: all results of both are there, and nothing else lies
    /// between them.
    pub(super) fn follows(&self, before: usize, number: usize) -> bool {
        let end = self.range_of(before).map(|range| range.end() + 1);
        before + 1 == number && self.range_of(number).is_some_and(|range| end == Some(*range.start()))
    }

    /// The answer whose last result this one's lines follow: the one that carries the previous answer's lines, or the previous
    /// answer itself if it may also become lines.
    pub(super) fn carrier_of(&self, number: usize) -> Option<usize> {
        let before = number.checked_sub(1).filter(|before| self.follows(*before, number))?;
        let step = &self.steps[before];
        step.call_digest.or(step.is_ripe.then_some(before))
    }

    /// Writes the lines of answers after the first one's last result, below any lines already there.
    pub(super) fn write_lines(&mut self, call_digest: &[usize], objects: &dyn Objects) {
        let mut lines = Vec::new();
        for number in &call_digest[1..] {
            let step = &self.steps[*number];
            for place in &step.answer {
                if let SegmentKind::Prose(prose) = &self.segments[*place].kind {
                    let stays = prose.chars >= LONG;
                    lines.extend(prose.line.clone().map(|text| Line { text, stays, of: *number }));
                }
            }
            for call in self.calls_of(*number) {
                let Some(object) = &call.object else { continue };
                let (gist, outcome) = (subject(&call.gist), objects.outcome(object));
                let (has_failed, handle) = (objects.has_failed(object), objects.handle(object));
                let text = call_line(&call.tool, &gist, has_failed, outcome, &handle);
                lines.push(Line { text, stays: call.has_effect, of: *number });
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

    /// While the visible request is rebuilt: shows answers as lines again that an earlier roll turned into lines, given the
    /// first call of each answer. Returns the places that changed.
    ///
    /// A host may have removed, inserted or exchanged messages since. Then the lines are those of the answers that still follow one
    /// another, in the order that they have now. An answer that follows none of them becomes a carrier itself. `arrivals`: the number of
    /// arrivals before the roll. An answer with text of a later one does not become a line: no request has had that text.
    pub fn repeat_call_digest(
        &mut self,
        call_digest: &[ObjectId],
        arrivals: usize,
        objects: &dyn Objects,
    ) -> Vec<usize> {
        if !self.shortens {
            return Vec::new();
        }
        let (recorded, mut numbers) = self.numbers_of(call_digest);
        numbers.sort_unstable();
        numbers.dedup();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for number in numbers {
            let step = &self.steps[number];
            if self.range_of(number).is_none() || step.call_digest.is_some() || step.arrival > arrivals {
                continue;
            }
            let before = number.checked_sub(1).filter(|before| self.follows(*before, number));
            let carrier = before.and_then(|before| self.steps[before].call_digest);
            match (groups.last_mut(), carrier) {
                // The carrier was shown and never a line, so it does not become one of a carrier before it.
                (None, _) if recorded == Some(number) => groups.push(vec![number]),
                (Some(group), _) if group.last().copied() == before => group.push(number),
                (_, Some(carrier)) => groups.push(vec![carrier, number]),
                _ => groups.push(vec![number]),
            }
        }
        let mut changed = Vec::new();
        for group in groups.into_iter().filter(|group| group.len() > 1 || recorded != Some(group[0])) {
            changed.extend(self.repeat_group(&group, recorded == Some(group[0]), objects));
        }
        changed
    }

    /// The answers that a recorded group names by their first calls: the carrier, if it is there, and all that are. The very same call
    /// made several times is one object, so that its name may mean each of these answers: it means those of which most follow one
    /// another behind the lines that the carrier has, and in doubt the earliest.
    pub(super) fn numbers_of(&self, call_digest: &[ObjectId]) -> (Option<usize>, Vec<usize>) {
        let named = |object: &ObjectId| self.step_of.get(object).map_or(&[][..], Vec::as_slice);
        let Some((first, others)) = call_digest.split_first() else { return (None, Vec::new()) };
        let candidates = named(first);
        let is_carrier =
            |number: &&usize| self.steps[**number].call_digest.is_none_or(|carrier| carrier == **number);
        let alone = if let [only] = candidates { Some(only) } else { None };
        let carriers = candidates.iter().filter(is_carrier).chain(alone).map(|number| Some(*number));
        let groups = carriers.chain(candidates.is_empty().then_some(None)).map(|carrier| {
            let mut numbers: Vec<usize> = carrier.into_iter().collect();
            let has_lines_of =
                |number: &usize| carrier.is_some() && self.steps[*number].call_digest == carrier;
            let mut before = carrier.map(|carrier| {
                (carrier..self.steps.len())
                    .take_while(|number| *number == carrier || has_lines_of(number))
                    .last()
                    .unwrap_or(carrier)
            });
            let mut following = 0;
            for object in others {
                let is_left =
                    |number: &usize| self.steps[*number].call_digest.is_none() && !numbers.contains(number);
                let found = match named(object) {
                    [only] => Some(*only),
                    several => {
                        let behind =
                            several.iter().filter(|number| Some(**number) > before).copied().find(is_left);
                        behind.or_else(|| several.iter().copied().find(is_left))
                    }
                };
                let Some(number) = found else { continue };
                following += usize::from(before.is_some_and(|before| self.follows(before, number)));
                before = Some(number);
                numbers.push(number);
            }
            (following, carrier, numbers)
        });
        // Of equal ones, this takes the first.
        let best = groups.reduce(|best, one| if one.0 > best.0 { one } else { best });
        best.map_or((None, Vec::new()), |(_, carrier, numbers)| (carrier, numbers))
    }

    /// The same for answers that follow one another, the first of which carries the lines of the others. If a roll had also
    /// turned that one into a line, all of it that has a shorter form takes it.
    fn repeat_group(&mut self, group: &[usize], was_carrier: bool, objects: &dyn Objects) -> Vec<usize> {
        let carrier = group[0];
        let last = self.last_of(carrier);
        let mut changed = Vec::new();
        if !was_carrier && self.steps[carrier].call_digest.is_none() {
            let others = self.range_of(carrier).into_iter().flatten().filter(|place| Some(*place) != last);
            let others: Vec<usize> = others.collect();
            changed.extend(others.into_iter().filter(|place| self.repeat(*place, Form::Reference, objects)));
        }
        self.write_lines(group, objects);
        let behind = group[1..].iter().flat_map(|number| self.range_of(*number).into_iter().flatten());
        let forms: Vec<(usize, Form)> = last
            .map(|last| (last, Form::Reference))
            .into_iter()
            .chain(behind.map(|place| (place, Form::Removed)))
            .collect();
        for (place, form) in forms {
            self.take_form(place, form);
            changed.push(place);
        }
        self.judge_all(changed.iter().copied(), objects);
        changed
    }
}

#[cfg(test)]
#[path = "digests_tests.rs"]
mod tests;
