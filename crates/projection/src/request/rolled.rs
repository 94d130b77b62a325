//! What was rolled, as the chat records it.

use std::collections::HashSet;

use context_model::chat::Receipt;
use context_model::chat::{Chat, RollEntry, Turn};
use context_model::id::ObjectId;

use super::segment::Form;

/// What was rolled in the visible part of the conversation, with the receipts.
#[derive(Clone, Debug, Default)]
pub struct Rolled {
    /// The rolls that are in effect, oldest first.
    entries: Vec<RollEntry>,
    sets: Sets,
    receipts: Vec<Receipt>,
    /// The rolls that a person undid, and the number of the user turn in which that was.
    undone: Vec<(RollEntry, usize)>,
}

/// The same by object.
#[derive(Clone, Debug, Default)]
struct Sets {
    results: HashSet<ObjectId>,
    /// Calls whose arguments are collapsed.
    arguments: HashSet<ObjectId>,
    /// Edits without their old text.
    old_texts: HashSet<ObjectId>,
    /// Words that are shortened or left out, by their ID.
    words: HashSet<String>,
    /// Calls whose file had changed by the time their results became references.
    changed: HashSet<ObjectId>,
}

impl Sets {
    fn take_in(&mut self, entry: &RollEntry) {
        self.results.extend(entry.results.iter().cloned());
        self.arguments.extend(entry.arguments.iter().cloned());
        self.old_texts.extend(entry.old_texts.iter().cloned());
        self.words.extend(entry.words.iter().cloned());
        self.changed.extend(entry.changed.iter().cloned());
    }
}

impl Rolled {
    /// Reads what is rolled from a chat's turns.
    pub fn of(chat: Chat<'_>) -> Self {
        let mut rolled = Self::default();
        for (turn, rolls) in chat.turns().map(Turn::rolls).enumerate() {
            rolls.for_each(|entry| rolled.note(entry, turn));
        }
        rolled
    }

    /// The receipts of the rolls that are in effect, oldest first.
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// Returns what rolls have made of a call's result.
    pub fn form_of(&self, object: &ObjectId) -> Form {
        if self.sets.results.contains(object) { Form::Reference } else { Form::Full }
    }

    /// Returns what rolls have made of the arguments of a call.
    pub fn arguments_of(&self, object: &ObjectId) -> Form {
        match object {
            id if self.sets.arguments.contains(id) => Form::Reference,
            id if self.sets.old_texts.contains(id) => Form::WithoutOldText,
            _ => Form::Full,
        }
    }

    /// Returns whether rolls have shortened the arguments of an object's call.
    pub fn hides_arguments(&self, object: &ObjectId) -> bool {
        self.arguments_of(object) != Form::Full
            || self.entries.iter().flat_map(|entry| &entry.pages).flatten().any(|id| id == object)
    }

    /// Returns whether rolls have shortened words or left them out.
    pub fn hides_words(&self, id: &str) -> bool {
        self.sets.words.contains(id)
    }

    /// Returns whether a call's file had changed by the time its result became a reference.
    pub fn had_changed(&self, object: &ObjectId) -> bool {
        self.sets.changed.contains(object)
    }

    /// The rolls that are in effect, oldest first.
    pub fn entries(&self) -> &[RollEntry] {
        &self.entries
    }

    /// The rolls that a person undid less than `turns` user turns before this one, and for how many more their text
    /// stays.
    pub fn brought_back(&self, turn: usize, turns: usize) -> impl Iterator<Item = (&RollEntry, usize)> {
        let left = move |at: &usize| turns.max(1).saturating_sub(turn.saturating_sub(*at));
        self.undone.iter().map(move |(entry, at)| (entry, left(at))).filter(|(_, left)| *left > 0)
    }

    /// What leads from these rolls to those of a conversation that has gone further: which were undone, the last one first,
    /// and which were added.
    pub fn towards(&self, later: &Self) -> Vec<RollEntry> {
        let same = self.entries.iter().zip(&later.entries).take_while(|(one, other)| one == other).count();
        let undone = self.entries[same..].iter().rev().filter(|entry| entry.receipt.is_some());
        let undone = undone.map(|entry| RollEntry { undone: true, ..entry.clone() });
        undone.chain(later.entries[same..].iter().cloned()).collect()
    }

    /// Takes in the latest roll, or that it was undone, and the number of the user turn in which that was.
    pub fn note(&mut self, entry: RollEntry, turn: usize) {
        if !entry.undone {
            self.sets.take_in(&entry);
            self.receipts.extend(entry.receipt.clone());
            self.entries.push(entry);
            return;
        }
        self.undone.push((entry, turn));
        // What only took reasoning along stays in effect.
        if let Some(last) = self.entries.iter().rposition(|entry| entry.receipt.is_some()) {
            self.entries.remove(last);
            self.receipts.pop();
        }
        self.sets = Sets::default();
        for entry in &self.entries {
            self.sets.take_in(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<ObjectId> {
        names.iter().map(|name| ObjectId::new(*name)).collect()
    }

    fn receipt() -> Receipt {
        Receipt {
            items: 1,
            reasoning_lost: 0,
            reasoning_lost_running: 0,
            removed_tokens: 1,
            cost: 0.0,
            gain: 0.0,
            pays_back_after_calls: None,
            reason: context_model::chat::RollReason::Free,
        }
    }

    fn entry() -> RollEntry {
        RollEntry {
            results: ids(&["result"]),
            arguments: ids(&["arguments"]),
            old_texts: ids(&["old", "arguments"]),
            words: vec!["word".into()],
            pages: vec![ids(&["first", "second"])],
            receipt: Some(receipt()),
            ..RollEntry::default()
        }
    }

    #[test]
    fn what_a_roll_has_made_of_each_thing() {
        let mut rolled = Rolled::default();
        rolled.note(entry(), 0);
        let of = |form: &dyn Fn(&ObjectId) -> Form, names: &[&str]| {
            ids(names).iter().map(form).collect::<Vec<_>>()
        };
        assert_eq!(of(&|id| rolled.form_of(id), &["result", "other"]), [Form::Reference, Form::Full]);
        let names = ["arguments", "old", "second", "other"];
        assert_eq!(
            of(&|id| rolled.arguments_of(id), &names),
            [Form::Reference, Form::WithoutOldText, Form::Full, Form::Full]
        );
        let hides: Vec<bool> = ids(&names).iter().map(|id| rolled.hides_arguments(id)).collect();
        assert_eq!(hides, [true, true, true, false]);
        assert!(rolled.hides_words("word") && !rolled.hides_words("other"));
        assert_eq!(rolled.entries(), [entry()]);
        // And nothing of it once it is undone.
        rolled.note(RollEntry { undone: true, ..entry() }, 1);
        assert_eq!(of(&|id| rolled.form_of(id), &["result"]), [Form::Full]);
        assert!(!rolled.hides_words("word") && rolled.entries().is_empty());
        // But for reasoning that a change had taken along.
        let along = RollEntry { words: vec!["thought".into()], bound: true, ..RollEntry::default() };
        rolled.note(entry(), 2);
        rolled.note(along.clone(), 2);
        rolled.note(RollEntry { undone: true, ..entry() }, 3);
        assert!(rolled.hides_words("thought") && !rolled.hides_words("word"));
        assert_eq!(rolled.entries(), [along]);
    }

    #[test]
    fn from_the_rolls_of_one_point_to_those_of_another() {
        let named = |name: &str| RollEntry {
            results: ids(&[name]),
            receipt: Some(receipt()),
            ..RollEntry::default()
        };
        let of = |names: &[&str]| {
            let mut rolled = Rolled::default();
            names.iter().for_each(|name| rolled.note(named(name), 0));
            rolled
        };
        let cases = [
            (&["a"][..], &["a", "b"][..], 1),
            (&[], &["a", "b"], 2),
            (&["a", "b"], &["a", "b"], 0),
            (&["a", "b", "c"], &["a", "d"], 3),
            (&["a"], &[], 1),
        ];
        for (from, to, steps) in cases {
            let (mut point, later) = (of(from), of(to));
            assert_eq!(point.towards(&later).len(), steps, "{from:?} to {to:?}");
            assert_eq!(later.receipts().len(), to.len());
            for entry in point.towards(&later) {
                point.note(entry, 1);
            }
            assert_eq!(point.entries(), later.entries(), "{from:?} to {to:?}");
        }
    }

    #[test]
    fn what_a_person_brought_back_stays_for_some_turns() {
        let mut rolled = Rolled::default();
        rolled.note(entry(), 3);
        rolled.note(RollEntry { undone: true, ..entry() }, 4);
        let left = |turn, turns| rolled.brought_back(turn, turns).map(|(_, left)| left).collect::<Vec<_>>();
        assert_eq!([left(4, 3), left(5, 3), left(6, 3), left(7, 3)], [vec![3], vec![2], vec![1], vec![]]);
        assert_eq!([left(4, 0), left(5, 0)], [vec![1], vec![]], "for this turn at least");
    }
}
