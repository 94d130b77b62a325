//! The rolls, as the chat records them.
//!
//! A roll is recorded with the turn in which it happened, together with its receipt. So a resumed session shows what it showed
//! before, even in a harness that keeps only its raw messages.

use std::collections::{HashMap, HashSet};

use context_model::chat::{Arrived, Chat, Noted, RollEntry, RollReceipt, Spending, Turn};
use context_model::id::ObjectId;

use super::Request;
use super::segment::{Form, Segment, SegmentKind};
use super::segments::Segments;
use super::shape::Shape;
use crate::Objects;

/// The rolls in the visible part of the conversation, with the receipts.
#[derive(Clone, Debug, Default)]
pub struct Rolled {
    /// The rolls that are in effect, oldest first.
    entries: Vec<RollEntry>,
    /// For each of these, the number of arrivals before it.
    arrivals: Vec<usize>,
    /// The messages that came earlier or later than their places say, oldest first.
    arrived: Vec<Arrived>,
    /// The number of those that are of a conversation before this one.
    earlier: usize,
    sets: RolledSets,
    receipts: Vec<RollReceipt>,
    /// The rolls that a user undid, and the number of the user turn in which that was.
    undone: Vec<(RollEntry, usize)>,
    /// The costs up to each change that has a record of them, oldest first.
    spendings: Vec<Spending>,
}

/// The same by object. The very same call made several times is one object, so these count how many of them it is: the oldest ones,
/// because they age first.
#[derive(Clone, Debug, Default)]
struct RolledSets {
    results: HashMap<ObjectId, usize>,
    /// Calls whose arguments are collapsed.
    arguments: HashMap<ObjectId, usize>,
    /// Edits without their old text.
    old_texts: HashMap<ObjectId, usize>,
    /// Prose that are shortened or left out, by their names.
    prose: HashSet<String>,
    /// Calls whose file had changed by the time their results became references.
    changed: HashSet<ObjectId>,
    /// Calls whose large results were sent whole.
    whole: HashSet<ObjectId>,
}

impl RolledSets {
    fn take_in(&mut self, entry: &RollEntry) {
        let counts = [&mut self.results, &mut self.arguments, &mut self.old_texts];
        for (counts, ids) in counts.into_iter().zip([&entry.results, &entry.arguments, &entry.old_texts]) {
            ids.iter().for_each(|id| *counts.entry(id.clone()).or_default() += 1);
        }
        self.prose.extend(entry.prose.iter().cloned());
        self.changed.extend(entry.changed.iter().cloned());
        self.whole.extend(entry.whole.iter().cloned());
    }
}

impl Rolled {
    /// Reads what is rolled from a chat's turns.
    pub fn of(chat: Chat<'_>) -> Self {
        let mut rolled = Self::default();
        for (turn, noted) in chat.turns().map(Turn::noted).enumerate() {
            noted.for_each(|one| match one {
                Noted::Roll(entry) => rolled.note(*entry, turn),
                Noted::Arrived(arrived) => rolled.note_arrival(arrived),
            });
        }
        rolled
    }

    /// The receipts of the rolls that are in effect, oldest first.
    pub fn receipts(&self) -> &[RollReceipt] {
        &self.receipts
    }

    /// Returns what rolls have made of a call's result. `earlier`: the number of results of the very same call before it.
    pub fn form_of(&self, object: &ObjectId, earlier: usize) -> Form {
        if earlier < count_of(&self.sets.results, object) { Form::Reference } else { Form::Full }
    }

    /// Returns what rolls have made of the arguments of a call. `earlier`: the number of answers with the very same call before it.
    pub fn arguments_of(&self, object: &ObjectId, earlier: usize) -> Form {
        if earlier < count_of(&self.sets.arguments, object) {
            Form::Reference
        } else if earlier < count_of(&self.sets.old_texts, object) {
            Form::WithoutOldText
        } else {
            Form::Full
        }
    }

    /// True if rolls have shortened the arguments of an object's call.
    pub fn hides_arguments(&self, object: &ObjectId) -> bool {
        self.arguments_of(object, 0) != Form::Full
            || self.entries().iter().flat_map(|entry| &entry.call_digests).flatten().any(|id| id == object)
    }

    /// True if rolls have shortened prose or left them out.
    pub fn hides_prose(&self, name: &str) -> bool {
        self.sets.prose.contains(name)
    }

    /// True if a call's file had changed by the time its result became a reference.
    pub fn had_changed(&self, object: &ObjectId) -> bool {
        self.sets.changed.contains(object)
    }

    /// True if a call's large result was sent whole when it came, and not as an excerpt.
    pub fn was_whole(&self, object: &ObjectId) -> bool {
        self.sets.whole.contains(object)
    }

    /// The rolls of this conversation that are in effect, oldest first.
    pub fn entries(&self) -> &[RollEntry] {
        &self.entries[self.earlier..]
    }

    /// The messages that came earlier or later than their places say, oldest first.
    pub fn arrived(&self) -> &[Arrived] {
        &self.arrived
    }

    /// Takes in messages that came at another time than their places say.
    pub fn note_arrival(&mut self, arrived: Arrived) {
        self.arrived.push(arrived);
    }

    /// The rolls that a user undid less than `turns` user turns before this one, and for how many more their text
    /// stays.
    pub fn brought_back(&self, turn: usize, turns: usize) -> impl Iterator<Item = (&RollEntry, usize)> {
        let left = move |at: &usize| turns.max(1).saturating_sub(turn.saturating_sub(*at));
        self.undone.iter().map(move |(entry, at)| (entry, left(at))).filter(|(_, left)| *left > 0)
    }

    /// The costs up to the changes that were made when the conversation had at most this many answers, as far as they are recorded,
    /// oldest first.
    fn spendings(&self, answers: u64) -> &[Spending] {
        let later = self.spendings.iter().rposition(|spending| spending.answers <= answers);
        &self.spendings[..later.map_or(0, |last| last + 1)]
    }

    /// Returns the entries that lead from these rolls to those of a conversation that has gone further: which were
    /// undone, the last one first, and which were added.
    pub fn towards(&self, later: &Self) -> Vec<RollEntry> {
        let same = self.entries.iter().zip(&later.entries).take_while(|(one, other)| one == other).count();
        let undone = self.entries[same..].iter().rev().filter(|entry| entry.receipt.is_some());
        let undone = undone.map(|entry| RollEntry { undone: true, spending: None, ..entry.clone() });
        undone.chain(later.entries[same..].iter().cloned()).collect()
    }

    /// Takes in the latest roll, or that it was undone, and the number of the user turn in which that was.
    pub fn note(&mut self, entry: RollEntry, turn: usize) {
        self.spendings.extend(entry.spending);
        if entry.anew {
            (self.earlier, self.sets) = (self.entries.len(), RolledSets::default());
            self.undone.clear();
            return;
        }
        if !entry.undone {
            self.sets.take_in(&entry);
            self.receipts.extend(entry.receipt.clone());
            self.entries.push(entry);
            self.arrivals.push(self.arrived.len());
            return;
        }
        self.undone.push((entry, turn));
        // A roll that only took reasoning along stays in effect.
        if let Some(last) = self.entries().iter().rposition(|entry| entry.receipt.is_some()) {
            self.entries.remove(self.earlier + last);
            self.arrivals.remove(self.earlier + last);
            self.receipts.pop();
        }
        self.sets = RolledSets::default();
        for entry in &self.entries[self.earlier..] {
            self.sets.take_in(entry);
        }
    }
}

impl Request {
    /// While the visible request is rebuilt: a call's result has just come at this place with this text. Rolls again
    /// what was rolled of it.
    pub fn repeat_rolls(&mut self, object: &ObjectId, place: usize, text: &str, objects: &dyn Objects) {
        self.segments.set_changed(place, self.rolled.had_changed(object));
        let earlier = self.segments.results_of(object).iter().filter(|one| **one < place).count();
        if self.segments.repeat(place, self.rolled.form_of(object, earlier), objects)
            && self.segments.text_at(place).is_none_or(|new| new != text)
        {
            self.pending.insert(place);
        }
    }

    /// The same for the call's arguments, also if its result never leaves. They were rolled together with those of the other calls
    /// of their answer, so the last result brings them all.
    pub fn repeat_arguments(&mut self, object: &ObjectId, objects: &dyn Objects) {
        for (earlier, place) in self.segments.arguments_of(object).into_iter().enumerate() {
            if self.segments.repeat(place, self.rolled.arguments_of(object, earlier), objects) {
                self.pending.insert(place);
            }
        }
    }

    /// The same for calls that became lines, once all messages have come. A roll is not of what a host put into the past after it.
    pub fn repeat_call_digests(&mut self, objects: &dyn Objects) {
        for (entry, arrivals) in
            self.rolled.entries().iter().zip(&self.rolled.arrivals[self.rolled.earlier..])
        {
            for call_digest in &entry.call_digests {
                self.pending.extend(self.segments.repeat_call_digest(call_digest, *arrivals, objects));
            }
            for object in &entry.lines {
                let mut places = self.segments.results_of(object).into_iter();
                // Of several results of the very same call, those that the record names first have lost theirs.
                if let Some(place) = places.find(|place| self.segments.has_passing_lines(*place))
                    && self.segments.repeat(place, Form::Compact, objects)
                {
                    self.pending.insert(place);
                }
            }
        }
    }

    /// Once the visible request is rebuilt and its answers are counted: what it has cost so far is what the record says, and what the
    /// calls since then have cost. The provider has nothing cached that ends where a change has come later.
    pub fn repeat_spending(&mut self) {
        let together = self.rolled.arrived.iter().filter(|one| one.dead);
        let dead: Vec<(u64, u64)> =
            together.map(|one| (one.made.saturating_sub(one.answers), one.made)).collect();
        self.segments.ledger.resume_spending(self.rolled.spendings(self.made), &dead, self.made);
    }

    /// The entry that undoes the latest roll, before that happens; `None` if there is none. What the roll cost stays spent.
    pub fn undoing(&self) -> Option<RollEntry> {
        let last = self.rolled.entries().iter().rfind(|entry| entry.receipt.is_some())?;
        let removed = last.receipt.as_ref().map_or(0, |receipt| receipt.removed_tokens.cast_signed());
        let place = self.rolls.last().map_or(0, |roll| roll.roll.cut);
        let spending = self.segments.ledger.spending(self.made, place, 0.0, -removed);
        Some(RollEntry { undone: true, receipt: None, spending: Some(spending), ..last.clone() })
    }

    /// Once the visible request is rebuilt: notes the first change of a roll that left the reasoning behind it.
    pub fn note_unbound(&mut self) {
        if self.rolled.entries().iter().all(|entry| entry.bound) {
            return;
        }
        self.segments.unbound = self.segments.first_changed();
    }

    /// Once the visible request is rebuilt: keeps what a user brought back by undoing a roll for the rest of `turns` user
    /// turns.
    pub fn keep_what_was_brought_back(&mut self, turn: usize, turns: usize, objects: &dyn Objects) {
        for (entry, left) in self.rolled.brought_back(turn, turns) {
            self.segments.bring_back_again(entry, left, objects);
        }
    }
}

/// Adds the call at one of an object's places to those that an entry names, and all before it that no entry names, because they have
/// left together with their answers. `counts`: the number of names in the entries before.
fn add(
    named: &mut Vec<ObjectId>,
    object: &ObjectId,
    places: &[usize],
    place: usize,
    counts: &HashMap<ObjectId, usize>,
) {
    let until = places.iter().filter(|one| **one <= place).count();
    let so_far = count_of(counts, object) + named.iter().filter(|id| *id == object).count();
    named.extend(std::iter::repeat_n(object.clone(), until.saturating_sub(so_far)));
}

fn count_of(counts: &HashMap<ObjectId, usize>, object: &ObjectId) -> usize {
    counts.get(object).copied().unwrap_or_default()
}

/// A roll in the form that the chat records, before it is executed.
pub fn entry_of(request: &Request, shape: &Shape) -> RollEntry {
    let Request { segments, rolled, made, .. } = request;
    let mut entry = RollEntry {
        bound: segments.binding().is_strict(),
        spending: Some(segments.ledger.spending_with(*made, &shape.roll)),
        ..RollEntry::default()
    };
    for (number, (place, form)) in shape.forms.iter().enumerate() {
        match (segments.kind(*place), form) {
            (SegmentKind::Result(output), form) => match form {
                // The record already has a reference that gets lines.
                Form::Reference if shape.was_reference(number) => {}
                Form::Reference => {
                    let object = &output.object;
                    add(
                        &mut entry.results,
                        object,
                        &segments.results_of(object),
                        *place,
                        &rolled.sets.results,
                    );
                }
                Form::Compact => entry.lines.push(output.object.clone()),
                Form::Full | Form::WithoutOldText | Form::Removed => {}
            },
            (SegmentKind::Arguments(arguments), Form::WithoutOldText | Form::Reference) => {
                let (list, counts) = if *form == Form::Reference {
                    (&mut entry.arguments, &rolled.sets.arguments)
                } else {
                    (&mut entry.old_texts, &rolled.sets.old_texts)
                };
                for object in arguments.shorter().filter_map(|call| call.object.as_ref()) {
                    add(list, object, &segments.arguments_of(object), *place, counts);
                }
            }
            (SegmentKind::Prose(prose), Form::Reference) => entry.prose.push(prose.name()),
            _ => {}
        }
    }
    entry.changed = segments.calls_at(shape.changed.iter().copied()).cloned().collect();
    entry.call_digests =
        shape.call_digests.iter().map(|call_digest| segments.first_calls(call_digest)).collect();
    entry
}

impl Segments {
    /// True if rolls have made the request shorter than it came.
    pub fn is_shortened(&self) -> bool {
        self.ledger.is_shortened()
    }

    /// Returns what a segment consists of.
    pub(super) fn kind(&self, place: usize) -> &SegmentKind {
        &self.segments[place].kind
    }

    /// The first segment that is not shown as it came.
    fn first_changed(&self) -> Option<usize> {
        self.segments.iter().position(|segment| segment.form != Form::Full)
    }

    /// The text that now stands in place of an output.
    fn text_at(&self, place: usize) -> Option<String> {
        self.output_at(place)?.text_in(self.segments[place].form)
    }

    /// True if a result has lines that leave with the next roll of its lines.
    fn has_passing_lines(&self, place: usize) -> bool {
        self.output_at(place).is_some_and(|output| output.lines.iter().any(|line| !line.stays))
    }

    /// Keeps what a roll had replaced for `turns` user turns.
    fn bring_back_again(&mut self, entry: &RollEntry, turns: usize, objects: &dyn Objects) {
        let results = entry.results.iter().chain(&entry.lines);
        let mut places: Vec<usize> = results.flat_map(|object| self.results_of(object)).collect();
        let arguments = entry.arguments.iter().chain(&entry.old_texts);
        places.extend(arguments.flat_map(|object| self.arguments_of(object)));
        let is_among = |segment: &Segment| matches!(&segment.kind, SegmentKind::Prose(prose) if entry.prose.contains(&prose.name()));
        places.extend((0..self.segments.len()).filter(|place| is_among(&self.segments[*place])));
        for call_digest in &entry.call_digests {
            let (_, numbers) = self.numbers_of(call_digest);
            let steps = numbers.into_iter().filter_map(|number| self.range_of(number));
            places.extend(
                steps
                    .enumerate()
                    .flat_map(|(n, range)| if n == 0 { *range.end()..=*range.end() } else { range }),
            );
        }
        for place in &places {
            self.bring_back(*place, turns);
            self.segments[*place].since = self.calls;
        }
        self.judge_all(places, objects);
    }

    /// The first call of each of these answers.
    fn first_calls(&self, call_digest: &[usize]) -> Vec<ObjectId> {
        call_digest.iter().filter_map(|number| self.calls_of(*number).first()?.object.clone()).collect()
    }
}

#[cfg(test)]
#[path = "rolls_tests.rs"]
mod tests;
