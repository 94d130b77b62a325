//! The beginning of a chat: what it was before a part of its conversation.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::fields::{ASSISTANT, TOOLCALL_IDS, TOOLCALL_REFS, TURN_COUNT, TURNS, list};
use super::{Chat, Turn};
use crate::error::ModelError;
use crate::id::{ObjectId, unmarked};
use crate::object::Document;

/// Returns a chat with only its first messages of users and the model, and the calls of these answers. All that is noted in their
/// turns stays.
///
/// # Errors
/// `INVALID_ARGUMENT` if the document can't be a chat.
pub fn beginning_of(chat: &Document, messages: usize) -> Result<Document, ModelError> {
    let (id, object_type, source, mut payload) = chat.clone().into_parts();
    let mut left = messages;
    let mut turns = Vec::new();
    for turn in Chat::of(chat).turns() {
        if left == 0 {
            break;
        }
        let users = usize::from(turn.user().is_some());
        let answers = turn.answers().count();
        let kept = answers.min(left.saturating_sub(users));
        left -= (users + kept).min(left);
        turns.push(if kept < answers { cut(turn, kept) } else { turn.0.clone() });
    }
    let calls: Vec<Value> = turns.iter().flat_map(|turn| list(turn, TOOLCALL_IDS)).cloned().collect();
    payload.insert(TURN_COUNT.into(), json!(turns.len()));
    payload.insert(TOOLCALL_REFS.into(), Value::Array(calls));
    payload.insert(TURNS.into(), Value::Array(turns));
    Document::new(id, object_type, source, payload)
}

/// A turn with only its first answers, and their calls.
fn cut(turn: Turn<'_>, answers: usize) -> Value {
    let mut value = turn.0.clone();
    let calls: HashSet<ObjectId> =
        turn.answers().take(answers).flat_map(|answer| answer.calls()).map(ObjectId::toolcall).collect();
    if let Some(all) = value.get_mut(ASSISTANT).and_then(Value::as_array_mut) {
        all.truncate(answers);
    }
    if let Some(ids) = value.get_mut(TOOLCALL_IDS).and_then(Value::as_array_mut) {
        ids.retain(|id| id.as_str().is_some_and(|id| calls.contains(&ObjectId::new(unmarked(id)))));
    }
    value
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::chat::ChatPatch;
    use crate::id::SessionId;
    use crate::patch;

    /// Three turns; the second has two answers with calls, of which one has a mark.
    fn chat() -> Document {
        let said = |role: &str, content: Value| json!({ "role": role, "content": content });
        let asks = |id: &str| json!([{ "type": "toolCall", "id": id }]);
        let mut patch = ChatPatch::new(0);
        patch.message(&said("user", json!("one"))).unwrap();
        patch.message(&said("assistant", json!("yes"))).unwrap();
        patch.message(&said("user", json!("two"))).unwrap();
        patch.message(&said("assistant", asks("a"))).unwrap();
        patch.toolcall(&ObjectId::new("a"));
        patch.message(&said("assistant", asks("b"))).unwrap();
        patch.toolcall(&ObjectId::repeated_toolcall("b", &crate::hash::Digest::of(b"b")));
        patch.message(&said("user", json!("three"))).unwrap();
        patch::apply(Document::chat(&SessionId::new("s").unwrap()), [patch.patch()]).unwrap()
    }

    #[rstest]
    #[case::nothing(0, &[], 0)]
    #[case::a_prompt(1, &[(true, 0)], 0)]
    #[case::a_turn(2, &[(true, 1)], 0)]
    #[case::a_prompt_without_its_answers(3, &[(true, 1), (true, 0)], 0)]
    #[case::one_of_two_answers(4, &[(true, 1), (true, 1)], 1)]
    #[case::both_of_them(5, &[(true, 1), (true, 2)], 2)]
    #[case::all_of_it(6, &[(true, 1), (true, 2), (true, 0)], 2)]
    #[case::more_than_there_is(99, &[(true, 1), (true, 2), (true, 0)], 2)]
    fn first_messages_and_their_calls_stay(
        #[case] messages: usize,
        #[case] turns: &[(bool, usize)],
        #[case] calls: usize,
    ) {
        let beginning = beginning_of(&chat(), messages).unwrap();
        let read = Chat::of(&beginning);
        let found: Vec<_> =
            read.turns().map(|turn| (turn.user().is_some(), turn.answers().count())).collect();
        assert_eq!(found, turns);
        assert_eq!(read.turns().flat_map(Turn::toolcalls).count(), calls);
        let count = |name| beginning.field(name).cloned();
        assert_eq!(count(TURN_COUNT), Some(json!(turns.len())));
        assert_eq!(count(TOOLCALL_REFS).and_then(|all| Some(all.as_array()?.len())), Some(calls));
    }
}
