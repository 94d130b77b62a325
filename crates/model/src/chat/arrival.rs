//! Messages that came at another time than their places in the conversation say.

use serde_json::{Value, json};

use super::fields::texts;
use crate::id::ObjectId;

/// Messages that no request had before a model call, although other calls follow them in the conversation: a conversation that a
/// harness passed in as a whole, or text that it has put into the past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// The number of the session's answers when it came.
    pub made: u64,
    /// The number of the last of these answers that came together with it; all between them were in no request before.
    pub answers: u64,
    /// The IDs of texts in the past, by [`super::said_id`].
    pub said: Vec<String>,
    /// Calls in the past.
    pub calls: Vec<ObjectId>,
    /// The provider had nothing of these answers cached when they came.
    pub dead: bool,
}

impl Arrived {
    pub(super) fn of(entry: &Value) -> Self {
        let count = |name| entry.get(name).and_then(Value::as_u64).unwrap_or_default();
        Self {
            made: count("made"),
            answers: count("answers"),
            said: texts(entry, "said").map(str::to_owned).collect(),
            calls: texts(entry, "calls").map(ObjectId::new).collect(),
            dead: entry.get("dead") == Some(&Value::Bool(true)),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let Self { made, answers, said, calls, dead } = self;
        let mut entry = json!({ "made": made, "answers": answers, "said": said, "calls": calls });
        if *dead {
            entry["dead"] = Value::Bool(true);
        }
        entry
    }
}
