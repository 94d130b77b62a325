//! Writes of tools that have not come as a result. What the model knows about them is already noted.

use std::collections::{HashMap, VecDeque};

use context_model::hash::Digest;
use context_model::id::ObjectId;
use serde_json::{Map, Value};

use crate::evidence::{Bytes, Evidence};
use crate::in_flight::Wrote;
use crate::known::Known;
use crate::statement::{Content, StatementKind};

/// The writes of tools to files, oldest first.
#[derive(Clone, Default)]
pub struct UnclaimedWrites(HashMap<ObjectId, VecDeque<Wrote>>);

impl UnclaimedWrites {
    /// Adds a tool's write.
    pub fn add(&mut self, file: ObjectId, wrote: Wrote) {
        self.0.entry(file).or_default().push_back(wrote);
    }

    /// True if a write of this file has not come as a result.
    #[must_use]
    pub fn has(&self, file: &ObjectId) -> bool {
        self.0.contains_key(file)
    }

    /// The write of a file that a call with this ID has made, or the only one; `None` if it is undetermined.
    #[must_use]
    pub fn of(&self, file: &ObjectId, call_id: &str) -> Option<&Wrote> {
        let all = self.0.get(file)?;
        let only = all.front().filter(|_| all.len() == 1);
        all.iter().find(|one| one.is_of(call_id)).or(only)
    }

    /// The content that the oldest write has left which may be of a call with these arguments.
    #[must_use]
    pub(crate) fn left_by(&self, file: &ObjectId, args: &Map<String, Value>) -> Option<Content> {
        let text = text_in(args);
        let mut all = self.0.get(file)?.iter();
        all.find(|wrote| text.is_none() || wrote.content.hash == text).map(|wrote| wrote.content)
    }

    /// Removes the write of a call that has come as a result, and those before it, which never came as one. Returns the content
    /// that the call left; `None` if the oldest write was removed because none is of this call.
    pub fn claim(
        &mut self,
        file: &ObjectId,
        (call, args): (&ObjectId, &Map<String, Value>),
        hash: Digest,
    ) -> Option<Content> {
        let waiting = self.0.get_mut(file)?;
        let text = text_in(args);
        let is_same_call = |wrote: &Wrote| {
            wrote.content.hash == Some(hash)
                || wrote.content.hash == text && text.is_some()
                || wrote.call.as_deref().is_some_and(|id| ObjectId::toolcall(id) == *call)
        };
        let place = waiting.iter().position(is_same_call);
        let content = place.and_then(|place| waiting.drain(..=place).next_back()).map(|wrote| wrote.content);
        if content.is_none() {
            waiting.pop_front();
        }
        if waiting.is_empty() {
            self.0.remove(file);
        }
        content
    }

    /// All writes, file by file.
    pub fn all(&self) -> impl Iterator<Item = (&ObjectId, &Wrote)> {
        self.0.iter().flat_map(|(file, all)| all.iter().map(move |wrote| (file, wrote)))
    }

    /// Removes all writes, in the same order.
    pub fn take(&mut self) -> impl Iterator<Item = (ObjectId, Wrote)> + use<> {
        let all = std::mem::take(&mut self.0);
        all.into_iter().flat_map(|(file, all)| all.into_iter().map(move |wrote| (file.clone(), wrote)))
    }

    /// Forgets all writes.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// The hash of the text that a call's arguments write.
fn text_in(args: &Map<String, Value>) -> Option<Digest> {
    args.get("content").and_then(Value::as_str).map(Bytes::hash_of)
}

impl Known {
    /// Makes the bytes of a write known to the model, unless the model has seen or written something else since.
    pub fn learns(&mut self, wrote: &Wrote, file: &ObjectId, hash: Digest) {
        let is_newest = self.get(file).is_some_and(|known| known.content.hash == wrote.content.hash);
        if is_newest && wrote.content.hash != Some(hash) {
            self.wrote(file, Content::lost(hash));
        }
    }

    /// Adds the statement of a write that never came as a result. `made` is its evidence.
    pub fn take_unclaimed(&mut self, file: &ObjectId, wrote: &Wrote, made: &Evidence) {
        let Evidence::Made { bytes, left } = made else { return };
        self.learns(wrote, file, bytes.hash);
        let is_all = wrote.content.hash == Some(bytes.hash);
        let content = if is_all { wrote.content } else { Content::lost(bytes.hash) };
        self.add_statement(file, None, None, StatementKind::All(content));
        if left.is_some() {
            self.add_statement(file, None, None, StatementKind::Other(*left));
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn content(text: &str) -> Content {
        Content::lost(Bytes::hash_of(text))
    }

    fn write(text: &str, call: Option<&str>) -> Wrote {
        Wrote { content: content(text), before: None, call: call.map(str::to_owned), path: "/f".into() }
    }

    /// Three writes of the texts a, b and c by the calls 1, 2 and 3: which of them a call claims, and how many are left.
    #[rstest]
    #[case::by_its_id("2", json!({}), "x", Some("b"), 1)]
    #[case::by_the_bytes_that_it_left("9", json!({}), "c", Some("c"), 0)]
    #[case::by_its_text("9", json!({ "content": "a" }), "x", Some("a"), 2)]
    #[case::none("9", json!({ "content": "x" }), "x", None, 2)]
    fn result_claims_a_write_and_those_before_it(
        #[case] call: &str,
        #[case] args: Value,
        #[case] left: &str,
        #[case] claimed: Option<&str>,
        #[case] rest: usize,
    ) {
        let (file, mut writes) = (ObjectId::new("f"), UnclaimedWrites::default());
        for (text, call) in [("a", "1"), ("b", "2"), ("c", "3")] {
            writes.add(file.clone(), write(text, Some(call)));
        }
        let args = args.as_object().unwrap();
        let hash = Bytes::hash_of(left);
        let found = writes.claim(&file, (&ObjectId::toolcall(call), args), hash);
        assert_eq!(found, claimed.map(content));
        assert_eq!(writes.has(&file), rest > 0);
        assert_eq!(writes.take().count(), rest);
    }

    #[rstest]
    #[case::of_the_call(&[Some("1"), Some("2")], "2", Some(1))]
    #[case::the_only_one(&[None], "2", Some(0))]
    #[case::one_of_several(&[None, Some("1")], "2", None)]
    fn write_of_a_call_is_found_by_its_id_or_alone(
        #[case] calls: &[Option<&str>],
        #[case] call: &str,
        #[case] expected: Option<usize>,
    ) {
        let (file, mut writes) = (ObjectId::new("f"), UnclaimedWrites::default());
        for (number, call) in calls.iter().enumerate() {
            writes.add(file.clone(), write(&number.to_string(), *call));
        }
        let found = writes.of(&file, call).map(|wrote| wrote.content);
        assert_eq!(found, expected.map(|number| content(&number.to_string())));
    }

    #[rstest]
    #[case::all_of_it("a", Some("a"))]
    #[case::another_text("b", Some("b"))]
    fn write_that_never_came_as_a_result_is_known(#[case] made: &str, #[case] known: Option<&str>) {
        let (file, mut all) = (ObjectId::new("f"), Known::default());
        let wrote = write("a", None);
        all.wrote(&file, wrote.content);
        let bytes = Bytes { file: file.clone(), hash: Bytes::hash_of(made) };
        all.take_unclaimed(&file, &wrote, &Evidence::Made { bytes, left: None });
        assert_eq!(all.get(&file).map(|known| known.content), known.map(content));
        assert_eq!(all.contents(&file).collect::<Vec<_>>(), [content(made)]);
    }
}
