//! Text of the past that no request has had.

use std::collections::HashSet;

use context_model::chat::Arrived;
use context_model::id::ObjectId;
use context_projection::request::prose::named_texts;
use serde_json::Value;

/// Text that the harness has put into the past, or changed there, since the last request.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    /// The IDs of the texts.
    pub texts: HashSet<String>,
    /// The calls.
    pub objects: HashSet<ObjectId>,
}

impl Unsent {
    /// Takes in the texts of a message.
    pub(crate) fn see(&mut self, message: &Value) {
        if is_unsent(message) {
            self.texts.extend(named_texts(message).into_iter().map(|(id, _)| id));
        }
    }

    /// The record of it, after this many of the session's answers; `None` if there is none.
    pub(crate) fn arrived(&self, made: u64) -> Option<Arrived> {
        if self.texts.is_empty() && self.objects.is_empty() {
            return None;
        }
        let mut said: Vec<String> = self.texts.iter().cloned().collect();
        let mut calls: Vec<ObjectId> = self.objects.iter().cloned().collect();
        said.sort_unstable();
        calls.sort_unstable();
        Some(Arrived { made, said, calls, ..Arrived::default() })
    }
}

/// True if the harness says of a message in its past that no request had it.
pub(crate) fn is_unsent(message: &Value) -> bool {
    message.get("unsent") == Some(&Value::Bool(true))
}
