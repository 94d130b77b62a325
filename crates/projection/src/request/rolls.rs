//! How rolls are remembered.
//!
//! A roll is recorded with the turn in which it happened, together with its receipt. So a resumed session shows what
//! it showed before, even in a harness that keeps only its raw messages.

use context_model::chat::RollEntry;
use context_model::id::ObjectId;

use super::Request;
use super::forms::Shape;
use super::segment::{Form, Segment, SegmentKind};
use super::segments::Segments;
use crate::Objects;

impl Request {
    /// While the visible request is rebuilt: a call's result has just come at this place with this text. Rolls again
    /// what was rolled of that call.
    pub fn repeat_rolls(&mut self, object: &ObjectId, place: usize, text: &str, objects: &dyn Objects) {
        self.segments.set_changed(place, self.rolled.had_changed(object));
        if self.segments.repeat(place, self.rolled.form_of(object), objects)
            && self.segments.text_at(place).is_none_or(|new| new != text)
        {
            self.pending.insert(place);
        }
        // Arguments were rolled together, so the last of their results brings them all.
        let form = self.rolled.arguments_of(object);
        for place in self.segments.arguments_of(object) {
            if self.segments.repeat(place, form, objects) {
                self.pending.insert(place);
            }
        }
    }

    /// The same for calls that became lines, once all messages have come.
    pub fn repeat_pages(&mut self, objects: &dyn Objects) {
        for entry in self.rolled.entries() {
            for page in &entry.pages {
                self.pending.extend(self.segments.repeat_page(page, objects));
            }
            for place in
                entry.lines.iter().flat_map(|object| self.segments.results_of(object)).collect::<Vec<_>>()
            {
                if self.segments.has_lines(place) && self.segments.repeat(place, Form::Compact, objects) {
                    self.pending.insert(place);
                }
            }
        }
    }

    /// Once the visible request is rebuilt: notes the first change of a roll that left the reasoning behind it.
    pub fn note_unbound(&mut self) {
        if self.rolled.entries().iter().all(|entry| entry.bound) {
            return;
        }
        self.segments.unbound = self.segments.first_changed();
    }

    /// Once the visible request is rebuilt: keeps what a person brought back by undoing a roll for the rest of `turns` user
    /// turns.
    pub fn keep_what_was_brought_back(&mut self, turn: usize, turns: usize, objects: &dyn Objects) {
        for (entry, left) in self.rolled.brought_back(turn, turns) {
            self.segments.bring_back_again(entry, left, objects);
        }
    }
}

/// A roll in the form that the chat records.
pub fn entry_of(segments: &Segments, shape: &Shape) -> RollEntry {
    let mut entry = RollEntry { bound: segments.binding().is_strict(), ..RollEntry::default() };
    for (place, form) in &shape.forms {
        match (segments.kind(*place), form) {
            (SegmentKind::Result(output), form) => match form {
                Form::Reference => entry.results.push(output.object.clone()),
                Form::Compact => entry.lines.push(output.object.clone()),
                Form::Full | Form::WithoutOldText | Form::Removed => {}
            },
            (SegmentKind::Arguments(arguments), Form::WithoutOldText | Form::Reference) => {
                let whole = *form == Form::Reference;
                let list = if whole { &mut entry.arguments } else { &mut entry.old_texts };
                list.extend(arguments.calls.iter().filter_map(|call| call.object.clone()));
            }
            (SegmentKind::Words(words), Form::Reference) => entry.words.push(words.id.clone()),
            _ => {}
        }
    }
    entry.changed = segments.calls_at(shape.changed.iter().copied()).cloned().collect();
    entry.pages = shape.pages.iter().map(|page| segments.first_calls(page)).collect();
    entry
}

impl Segments {
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

    fn has_lines(&self, place: usize) -> bool {
        self.output_at(place).is_some_and(|output| !output.lines.is_empty())
    }

    fn results_of(&self, object: &ObjectId) -> Vec<usize> {
        let places = self.places.get(object).into_iter().flatten().copied();
        places.filter(|place| self.output_at(*place).is_some()).collect()
    }

    fn arguments_of(&self, object: &ObjectId) -> Vec<usize> {
        let places = self.places.get(object).into_iter().flatten().copied();
        places.filter(|place| matches!(self.segments[*place].kind, SegmentKind::Arguments(_))).collect()
    }

    /// Keeps what a roll had replaced for `turns` user turns.
    fn bring_back_again(&mut self, entry: &RollEntry, turns: usize, objects: &dyn Objects) {
        let results = entry.results.iter().chain(&entry.lines);
        let mut places: Vec<usize> = results.flat_map(|object| self.results_of(object)).collect();
        let arguments = entry.arguments.iter().chain(&entry.old_texts);
        places.extend(arguments.flat_map(|object| self.arguments_of(object)));
        let is_among = |segment: &Segment| matches!(&segment.kind, SegmentKind::Words(words) if entry.words.contains(&words.id));
        places.extend((0..self.segments.len()).filter(|place| is_among(&self.segments[*place])));
        for page in &entry.pages {
            let steps = page.iter().filter_map(|object| self.steps[*self.step_of.get(object)?].range());
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
        for place in places {
            self.judge(place, objects);
        }
    }

    /// The first call of each of these answers.
    fn first_calls(&self, page: &[usize]) -> Vec<ObjectId> {
        page.iter().filter_map(|number| self.steps[*number].calls.first()?.object.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::Prices;

    use super::*;
    use crate::objects::TestObjects;
    use crate::request::segment::{Line, Output};

    /// A result whose reference has these lines after it.
    fn result(name: &str, lines: &[bool]) -> Output {
        let line = |stays: &bool| Line { text: format!("stays: {stays}"), stays: *stays };
        Output { lines: lines.iter().map(line).collect(), ..Output::of_test(name, 900) }
    }

    #[test]
    fn lines_that_had_left_leave_again_where_there_are_any() {
        let objects = TestObjects::default();
        let mut request = Request::default();
        for (name, lines) in [("a", &[true, false][..]), ("b", &[]), ("c", &[false])] {
            let place = request.segments.push_result(name, result(name, lines), &objects);
            request.segments.take_form(place, Form::Reference);
        }
        let lines = ["a", "b"].map(ObjectId::new).to_vec();
        request.rolled.note(RollEntry { lines, ..RollEntry::default() }, 0);
        request.repeat_pages(&objects);
        assert_eq!(request.pending.iter().copied().collect::<Vec<_>>(), [0]);
        let text = |place| request.segments.text_at(place).unwrap();
        assert_eq!(text(0), "toolcall_ref id=a\nstays: true");
        assert_eq!(text(2), "toolcall_ref id=c\nstays: false");
    }

    #[test]
    fn what_a_person_brought_back_is_held_in_a_later_process_too() {
        let objects = TestObjects::default();
        let mut request = Request::default();
        request.segments.need = Some(crate::Need { prices: Prices::default(), lambda: 1.0 });
        for name in ["a", "b"] {
            request.segments.push_result(name, result(name, &[]), &objects);
        }
        let entry = RollEntry { results: vec![ObjectId::new("b")], ..RollEntry::default() };
        request.rolled.note(entry.clone(), 0);
        request.rolled.note(RollEntry { undone: true, ..entry }, 0);
        request.keep_what_was_brought_back(0, 3, &objects);
        assert_eq!([0, 1].map(|place| request.segments.is_brought_back(place)), [false, true]);
    }

    /// Two results, and two answers with a call each: prose and an edit's arguments, then those of a write.
    fn of_each_kind(objects: &TestObjects) -> Request {
        let mut request = Request::default();
        request.segments.set_shortens(true);
        request.segments.push_result("r", result("r", &[]), objects);
        request.segments.push_result("l", result("l", &[true, false]), objects);
        let long = "word ".repeat(500);
        let call = |id: &str, tool: &str, args: serde_json::Value| serde_json::json!({ "type": "toolCall", "id": id, "name": tool, "arguments": args });
        let text = serde_json::json!({ "type": "text", "text": long });
        let edit = call("e", "edit", serde_json::json!({ "path": "/a", "oldText": long, "newText": long }));
        let write = call("w", "write", serde_json::json!({ "path": "/b", "content": long }));
        for (id, content) in [("e", vec![text, edit]), ("w", vec![write])] {
            request.push_answer(id, &serde_json::json!({ "content": content }), "/", (true, objects));
            let object = ObjectId::new(id);
            request.segments.answer(id, &object, true, objects, "/");
            request.segments.push_result(id, result(id, &[]), objects);
        }
        request
    }

    fn ids(names: &[&str]) -> Vec<ObjectId> {
        names.iter().map(|name| ObjectId::new(*name)).collect()
    }

    /// The roll of everything that [`of_each_kind`] has.
    fn of_everything(pages: &[&[&str]]) -> RollEntry {
        RollEntry {
            results: ids(&["r"]),
            lines: ids(&["l"]),
            words: vec![context_model::chat::said_id(&"word ".repeat(500))],
            old_texts: ids(&["e"]),
            arguments: ids(&["w"]),
            changed: ids(&["r"]),
            pages: pages.iter().map(|page| ids(page)).collect(),
            ..RollEntry::default()
        }
    }

    #[test]
    fn the_record_of_a_roll_names_what_it_changed() {
        use super::super::plan::Edit;
        let objects = TestObjects::default();
        for binding in [crate::Binding::None, crate::Binding::Drops] {
            let mut request = of_each_kind(&objects);
            request.segments.set_binding(binding, false);
            let forms = vec![
                (0, Form::Reference),
                (1, Form::Compact),
                (2, Form::Reference),
                (3, Form::WithoutOldText),
                (4, Form::Removed),
                (5, Form::Reference),
            ];
            let shape = Shape { forms, pages: vec![vec![0, 1]], changed: vec![0] };
            let entry = RollEntry { bound: binding.is_strict(), ..of_everything(&[&["e", "w"]]) };
            assert_eq!(entry_of(&request.segments, &shape), entry);
        }
        let gone = of_each_kind(&objects).segments.edits_of([4]);
        assert!(matches!(gone.as_slice(), [Edit::Result { text: None, .. }]), "nothing was applied");
    }

    /// The host may have kept an edit of an earlier process.
    #[test]
    fn what_was_rolled_is_replaced_again_unless_the_host_has_kept_that() {
        let objects = TestObjects::default();
        let texts = ["as it came", "toolcall_ref id=r, changed since", "toolcall_ref id=r"];
        for (text, pending) in texts.into_iter().zip([true, false, true]) {
            let mut request = of_each_kind(&objects);
            request.rolled.note(of_everything(&[]), 0);
            request.repeat_rolls(&ObjectId::new("r"), 0, text, &objects);
            assert_eq!(request.pending.contains(&0), pending, "{text}");
            assert_eq!(request.segments.text_at(0).unwrap(), texts[1]);
            for (name, place) in [("e", 4), ("w", 6), ("l", 1)] {
                request.repeat_rolls(&ObjectId::new(name), place, "as it came", &objects);
            }
            let forms = request.segments.segments.iter().map(|segment| segment.form).collect::<Vec<_>>();
            let [full, without, short] = [Form::Full, Form::WithoutOldText, Form::Reference];
            assert_eq!(forms, [short, full, full, without, full, short, full]);
            assert_eq!((request.pending.contains(&3), request.pending.contains(&5)), (true, true));
            assert!([1, 2, 4, 6].iter().all(|place| !request.pending.contains(place)));
        }
    }

    /// Reasoning behind a change stays only on a model that does not bind it.
    #[test]
    fn the_first_change_that_left_reasoning_behind_it() {
        let objects = TestObjects::default();
        for (changes, bound, expected) in [
            (&[3, 5][..], &[false][..], Some(3)),
            (&[0], &[true, false], Some(0)),
            (&[3], &[true], None),
            (&[], &[false], None),
        ] {
            let mut request = of_each_kind(&objects);
            for bound in bound {
                request.rolled.note(RollEntry { bound: *bound, ..RollEntry::default() }, 0);
            }
            changes.iter().for_each(|place| request.segments.take_form(*place, Form::Reference));
            request.note_unbound();
            assert_eq!(request.segments.unbound, expected, "{changes:?}, {bound:?}");
        }
    }

    /// Of an answer that carried lines only the result comes back: nothing else of it had left.
    #[test]
    fn what_an_undone_roll_had_replaced_is_brought_back() {
        let objects = TestObjects::default();
        let cases: [(RollEntry, &[usize]); 3] = [
            (of_everything(&[]), &[0, 1, 2, 3, 5]),
            (RollEntry { pages: vec![ids(&["e", "w"])], ..RollEntry::default() }, &[4, 5, 6]),
            (RollEntry { pages: vec![ids(&["other"])], ..RollEntry::default() }, &[]),
        ];
        for (entry, expected) in cases {
            let mut request = of_each_kind(&objects);
            request.segments.calls = 9;
            request.rolled.note(RollEntry { undone: true, ..entry }, 3);
            request.keep_what_was_brought_back(4, 2, &objects);
            let kept: Vec<usize> = (0..7).filter(|place| request.segments.is_brought_back(*place)).collect();
            assert_eq!(kept, expected);
            assert!(kept.iter().all(|place| request.segments.segments[*place].since == 9));
            // One user turn is left of two.
            request.segments.start_turn(&objects);
            assert!((0..7).all(|place| !request.segments.is_brought_back(place)));
        }
    }
}
