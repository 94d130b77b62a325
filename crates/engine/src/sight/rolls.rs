//! How rolls are remembered.
//!
//! A roll is recorded with the turn in which it happened, together with its receipt. So a resumed session shows what
//! it showed before, even in a harness that keeps only its raw messages.

use context_model::chat::RollEntry;
use context_model::id::ObjectId;

use super::Sight;
use super::forms::Shape;
use super::piece::{Form, PieceKind};
use super::pieces::Pieces;
use crate::session::Session;

impl Sight {
    /// While the visible request is rebuilt: a call's result has just come at this place with this text. Rolls again
    /// what was rolled of that call.
    pub fn repeat_rolls(&mut self, object: &ObjectId, place: usize, text: &str, session: &Session) {
        if self.pieces.repeat(place, self.rolled.form_of(object), session)
            && self.pieces.text_at(place).is_none_or(|new| new != text)
        {
            self.pending.insert(place);
        }
        // Arguments were rolled together, so the last of their results brings them all.
        let form = self.rolled.arguments_of(object);
        for place in self.pieces.arguments_of(object) {
            if self.pieces.repeat(place, form, session) {
                self.pending.insert(place);
            }
        }
    }

    /// The same for calls that became lines, once all messages have come.
    pub fn repeat_pages(&mut self, session: &Session) {
        for entry in self.rolled.entries() {
            for page in &entry.pages {
                self.pending.extend(self.pieces.repeat_page(page, session));
            }
            for place in
                entry.lines.iter().flat_map(|object| self.pieces.results_of(object)).collect::<Vec<_>>()
            {
                if self.pieces.has_lines(place) && self.pieces.repeat(place, Form::Short, session) {
                    self.pending.insert(place);
                }
            }
        }
    }

    /// Once the visible request is rebuilt: what a person brought back by undoing a roll stays for the rest of `turns`
    /// user turns.
    pub fn bring_back_again(&mut self, turns: usize, session: &Session) {
        for (turn, entry) in self.rolled.undone() {
            let over = session.turns.saturating_sub(turn + 1);
            if over < turns.max(1) {
                let left = turns.max(1) - over;
                let places = self.pieces.places_of(entry);
                places.iter().for_each(|place| self.pieces.bring_back(*place, left));
                places.into_iter().for_each(|place| self.pieces.judge(place, session));
            }
        }
    }
}

/// A roll in the form that the chat records.
pub(crate) fn entry_of(pieces: &Pieces, shape: &Shape) -> RollEntry {
    let mut entry = RollEntry::default();
    for (place, form) in &shape.forms {
        match (pieces.kind(*place), form) {
            (PieceKind::Result(output), form) => match form {
                Form::Faded => entry.excerpts.push(output.object.clone()),
                Form::Reference => entry.results.push(output.object.clone()),
                Form::Short => entry.lines.push(output.object.clone()),
                Form::Born | Form::Gone => {}
            },
            (PieceKind::Arguments(arguments), Form::Faded | Form::Reference) => {
                let faded = *form == Form::Faded;
                let list = if faded { &mut entry.old_texts } else { &mut entry.arguments };
                list.extend(arguments.calls.iter().filter_map(|call| call.object.clone()));
            }
            (PieceKind::Words(words), Form::Reference) => entry.words.push(words.id.clone()),
            _ => {}
        }
    }
    entry.pages = shape.pages.iter().map(|page| pieces.first_calls(page)).collect();
    entry
}

impl Pieces {
    /// What a piece consists of.
    pub fn kind(&self, place: usize) -> &PieceKind {
        &self.pieces[place].kind
    }

    /// The text that now stands in place of an output.
    fn text_at(&self, place: usize) -> Option<String> {
        self.output_at(place)?.text_in(self.pieces[place].form)
    }

    fn has_lines(&self, place: usize) -> bool {
        self.output_at(place).is_some_and(|output| !output.lines.is_empty())
    }

    fn results_of(&self, object: &ObjectId) -> Vec<usize> {
        let places = self.places.get(object).into_iter().flatten().copied();
        places.filter(|place| self.output_at(*place).is_some()).collect()
    }

    fn arguments_of(&self, object: &ObjectId) -> Vec<usize> {
        let places = self.places.get(object).into_iter().flatten().copied();
        places.filter(|place| matches!(self.pieces[*place].kind, PieceKind::Arguments(_))).collect()
    }

    /// The pieces that a recorded roll is about.
    fn places_of(&self, entry: &RollEntry) -> Vec<usize> {
        let results = entry.results.iter().chain(&entry.excerpts).chain(&entry.lines);
        let arguments = entry.arguments.iter().chain(&entry.old_texts);
        let mut places: Vec<usize> = results.flat_map(|object| self.results_of(object)).collect();
        places.extend(arguments.flat_map(|object| self.arguments_of(object)));
        let steps = entry.pages.iter().flatten().filter_map(|object| self.step_of.get(object));
        places.extend(steps.filter_map(|number| self.steps[*number].range()).flatten());
        places.extend((0..self.pieces.len()).filter(|place| {
            matches!(&self.pieces[*place].kind, PieceKind::Words(words) if entry.words.contains(&words.id))
        }));
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The first call of each of these answers.
    fn first_calls(&self, page: &[usize]) -> Vec<ObjectId> {
        page.iter().filter_map(|number| self.steps[*number].calls.first()?.object.clone()).collect()
    }
}
