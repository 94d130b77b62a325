//! Whole conversations: the text that leaves, its record in the chat, and a later process's use of that record.

use context_model::chat::RollEntry;
use context_model::hash::Digest;
use context_model::time::TxId;
use rstest::rstest;
use serde_json::{Value, json};

use super::rolls::entry_of;
use super::segment::{Form, Output, ShownLines};
use super::shape::Shape;
use super::*;
use crate::objects::TestObjects;
use crate::{Binding, Prices, Stays};

/// The number of user turns for which restored text stays.
const TURNS_BACK: usize = 2;

/// A conversation, and its visible part.
struct Talk {
    request: Request,
    objects: TestObjects,
    call: Call,
    said: Vec<Said>,
    turn: usize,
}

enum Said {
    User(Value),
    Answer(Value),
    Result(Box<Output>),
}

impl Talk {
    fn new(binding: Binding, stays: Stays) -> Self {
        let request = Request { segments: segments::Segments::new(stays), ..Request::default() };
        let prices = Prices::new(0.1, 1.25);
        let call =
            Call { model: "m".into(), prices, binding, rolls: true, shortens: true, ..Call::default() };
        Self { request, objects: TestObjects::default(), call, said: Vec::new(), turn: 0 }
    }

    fn now(&self) -> Moment {
        Moment { host: self.call.now_ms, own: self.call.now_ms }
    }

    fn policy(&mut self) -> Policy {
        let now = self.now();
        self.request.policy(&self.call, now)
    }

    fn say(&mut self, said: Said) {
        self.take(&said, self.said.len(), true);
        self.said.push(said);
    }

    /// Takes in a message, for the first time or again.
    fn take(&mut self, said: &Said, number: usize, is_new: bool) {
        let (policy, key) = (self.policy(), number.to_string());
        let Self { request, objects, turn, .. } = self;
        match said {
            Said::User(message) => {
                *turn += 1;
                request.segments.start_turn(objects);
                request.push_user(&key, message, is_new, objects);
            }
            Said::Answer(message) => {
                request.segments.charge(&policy);
                request.made += u64::from(is_new);
                request.push_answer(&key, message, "/w", (is_new, objects));
            }
            Said::Result(output) => {
                let id = output.object.clone();
                request.segments.answer(id.as_str(), &id, !objects.failed.contains(&id), objects, "/w");
                let place = request.segments.push_result(&key, (**output).clone(), objects);
                if !is_new {
                    request.repeat_rolls(&id, place, "as it came", objects);
                    request.repeat_arguments(&id, objects);
                }
            }
        }
    }

    /// Rolls what is due before the next call. Returns the edits.
    fn next(&mut self) -> Vec<Edit> {
        let policy = self.policy();
        self.request.segments.set_shortens(true);
        self.request.segments.ripen(&policy, &self.objects);
        let roll = self.request.segments.decide(&policy, &self.objects);
        roll.map_or(Vec::new(), |roll| self.execute(roll))
    }

    fn execute(&mut self, roll: Shape) -> Vec<Edit> {
        let Self { request, objects, turn, .. } = self;
        let receipt = roll.is_roll().then(|| roll.receipt());
        request.rolled.note(RollEntry { receipt, ..entry_of(request, &roll) }, *turn);
        request.segments.apply(&roll, objects);
        let edits = request.segments.edits_of(roll.places());
        request.rolls.push(roll);
        edits
    }

    fn undo(&mut self) {
        let Self { request, objects, turn, .. } = self;
        let roll = request.rolls.pop().unwrap();
        let entry = request.undoing().unwrap();
        request.rolled.note(entry, *turn);
        request.segments.undo(&roll, TURNS_BACK, objects);
    }

    /// The same conversation in a later process, from the messages as they came and the record of the rolls.
    fn again(&self) -> Self {
        let mut again = Self::new(self.call.binding, self.request.segments.stays);
        again.request.rolled = self.request.rolled.clone();
        again.objects.clone_from(&self.objects);
        again.call = self.call.clone();
        again.request.made = self.request.made;
        again.request.forget();
        again.request.segments.set_shortens(true);
        for (number, said) in self.said.iter().enumerate() {
            again.take(said, number, false);
        }
        let Self { request, objects, turn, .. } = &mut again;
        request.segments.count_calls(request.made);
        request.repeat_call_digests(objects);
        request.note_unbound();
        request.keep_what_was_brought_back(*turn, TURNS_BACK, objects);
        request.assume_sent(usize::MAX);
        request.repeat_spending();
        again
    }

    /// All messages in their present form.
    fn edits(&self) -> Vec<Edit> {
        self.request.segments.edits_of(0..self.request.segments.segments.len())
    }

    /// Returns the form in which each segment is shown, and the form that the next roll gives it if it is stale, but
    /// for answers that are lines or have some.
    fn forms(&mut self) -> Vec<(usize, Form, Option<Form>)> {
        let policy = self.policy();
        self.request.segments.ripen(&policy, &self.objects);
        let segments = &self.request.segments;
        let is_line = |place: usize| {
            segments.segments[place].step.is_some_and(|step| segments.steps[step].call_digest.is_some())
        };
        let is_stale = |place: usize| segments.ledger.stale.contains_key(&place) && !is_line(place);
        let next = |place: usize| is_stale(place).then(|| segments.segments[place].next);
        segments
            .segments
            .iter()
            .enumerate()
            .map(|(place, segment)| (place, segment.form, next(place)))
            .collect()
    }
}

fn prose(number: usize, chars: usize) -> String {
    format!("{number} {}", "word ".repeat(chars / 5))
}

/// One answer with a call, and its result. All kinds take turns, and the files of reads change after some time.
fn round(talk: &mut Talk, number: usize) {
    let id = format!("call {number}");
    let path = format!("/w/{}.rs", number % 5);
    let (tool, args) = match number % 4 {
        0 => ("read", json!({ "path": path })),
        1 => {
            ("edit", json!({ "path": path, "oldText": prose(number, 1_500), "newText": prose(number, 900) }))
        }
        2 => ("write", json!({ "path": path, "content": prose(number, 2_000) })),
        _ => ("bash", json!({ "command": format!("make {number}") })),
    };
    let content = json!([
        { "type": "thinking", "thinking": prose(number, 1_200), "thinkingSignature": "s" },
        { "type": "text", "text": prose(number, 1_000) },
        { "type": "toolCall", "id": id, "name": tool, "arguments": args },
    ]);
    talk.say(Said::Answer(json!({
        "role": "assistant", "api": "anthropic-messages", "provider": "anthropic", "content": content
    })));
    let file = ObjectId::new(path);
    let hash = Digest::of(&[u8::from(number > 20)]);
    talk.objects.hashes.insert(file.clone(), hash);
    talk.objects.outcomes.insert(ObjectId::new(id.as_str()), format!("{number} lines"));
    let first = 1 + number * 10;
    let shown = (tool == "read").then(|| ShownLines { file, hash, tx: TxId(1), first, last: first + 9 });
    let tokens = if tool == "edit" { 30 } else { 900 };
    talk.say(Said::Result(Box::new(Output { shown, ..Output::of_test(&id, tokens) })));
}

fn user(talk: &mut Talk) {
    let content = prose(talk.turn, 4_000);
    talk.say(Said::User(json!({ "role": "user", "content": content })));
}

/// Everything leaves soon, and whatever that costs.
fn hasty(weight: f64) -> Stays {
    Stays { weight: Some(weight), debt_cap: Some(f64::INFINITY), ..Stays::default() }
}

/// A later process shows what this one shows, and takes away the same next.
#[rstest]
fn later_process_continues_where_this_one_was(
    #[values(Binding::None, Binding::Drops, Binding::Refuses)] binding: Binding,
) {
    let mut left = [0; 7];
    let mut undone = 0;
    for weight in [0.06, 0.2, 0.3, 0.5] {
        let (kinds, count) = lasting_talk(binding, hasty(weight));
        left.iter_mut().zip(kinds).for_each(|(sum, count)| *sum += count);
        undone += count;
    }
    assert!(undone > 0 || binding != Binding::None);
    assert!(left.iter().all(|count| *count > 0), "something of each kind left: {left:?}");
}

/// Checks a long talk again and again. Returns how much of each kind has left, and the number of undone rolls.
fn lasting_talk(binding: Binding, stays: Stays) -> ([usize; 7], usize) {
    let mut talk = Talk::new(binding, stays);
    let mut undone = 0;
    for number in 0..120 {
        if number % 9 == 0 {
            user(&mut talk);
        }
        let before = talk.edits();
        let edits = talk.next();
        if binding == Binding::None && number % 20 == 19 && !edits.is_empty() {
            talk.undo();
            assert_eq!(talk.edits(), before, "undone after call {number}");
            undone += 1;
        }
        if number % 8 == 7 || number % 20 == 19 {
            let again = talk.again();
            assert_eq!(again.edits(), talk.edits(), "call {number}");
            let tokens = |talk: &Talk| talk.request.segments.tokens();
            assert_eq!(tokens(&again), tokens(&talk), "call {number}");
            assert_eq!(again.request.segments.unbound, talk.request.segments.unbound, "call {number}");
            for reach in [Reach::Blocks(20), Reach::Endings(3)] {
                let hits = |talk: &Talk| -> Vec<usize> {
                    let ledger = &talk.request.segments.ledger;
                    (0..ledger.len()).map(|place| ledger.hit_before(place, reach)).collect()
                };
                assert_eq!(hits(&again), hits(&talk), "call {number}, {reach:?}");
            }
            let spending =
                |talk: &Talk| talk.request.segments.ledger.spending(talk.request.made, usize::MAX, 0.0, 0);
            let (one, other) = (spending(&again), spending(&talk));
            assert_eq!(one.removed, other.removed, "call {number}");
            // The record does not say which calls between two rolls found nothing cached.
            let near = |a: f64, b: f64| (a - b).abs() <= 0.02 * other.untouched;
            assert!(
                near(one.untouched, other.untouched) && near(one.debt, other.debt),
                "call {number}: {one:?}, {other:?}"
            );
            let incremental = talk.forms();
            talk.request.segments.set_binding(Binding::Keeps, false);
            talk.request.segments.set_binding(binding, false);
            assert_eq!(talk.forms(), incremental, "call {number}, with everything judged again");
        }
        round(&mut talk, number);
    }
    let entries = talk.request.rolled.entries();
    let count = |of: fn(&RollEntry) -> usize| entries.iter().map(of).sum::<usize>();
    let all = [
        count(|entry| entry.results.len()),
        count(|entry| entry.arguments.len()),
        count(|entry| entry.old_texts.len()),
        count(|entry| entry.prose.len()),
        count(|entry| entry.call_digests.len()),
        count(|entry| entry.lines.len()),
        count(|entry| entry.changed.len()),
    ];
    assert!(entries.iter().all(|entry| entry.bound == binding.is_strict()));
    (all, undone)
}

/// The newest message of a user can't leave, so it pays nothing before the next one comes, in any process.
#[test]
fn newest_message_pays_from_the_next_one_on_in_a_later_process_too() {
    let mut talk = Talk::new(Binding::None, Stays { weight: Some(0.3), ..Stays::default() });
    talk.request.segments.set_shortens(true);
    user(&mut talk);
    round(&mut talk, 3);
    user(&mut talk);
    let place = talk.request.segments.segments.len() - 1;
    let rent = |talk: &mut Talk| {
        let policy = talk.policy();
        talk.request.segments.ripen(&policy, &talk.objects);
        talk.request.segments.ledger.rollable().find(|(at, ..)| *at == place).map(|(.., rent)| rent.round())
    };
    for number in 0..20 {
        round(&mut talk, 4 * number + 3);
        assert_eq!(rent(&mut talk), None);
    }
    user(&mut talk);
    round(&mut talk, 83);
    let (mut again, own) = (talk.again(), rent(&mut talk));
    assert!(own.is_some());
    assert_eq!(rent(&mut again), own);
}
