//! The newest forms of a few patched documents, kept by their writer.
//!
//! A patch that reaches deep into a document can only be checked against the document. The document kept here is
//! changed in place, at the cost of the change, and is assembled only once.

use std::collections::VecDeque;

use context_model::id::ObjectId;
use serde::Deserialize;
use serde_json::Value;

use crate::Result;
use crate::backend::shape::{misfit, reserved};

/// How many documents are kept: the chats and sessions that one process works on.
const KEPT: usize = 8;

/// Payloads by object, each with the place of its version.
#[derive(Debug, Default)]
pub struct Heads(VecDeque<(ObjectId, u64, Value)>);

impl Heads {
    /// Takes a payload out, if it is the one of this version.
    pub fn take(&mut self, id: &ObjectId, place: u64) -> Option<Value> {
        let index = self.0.iter().position(|(kept, ..)| kept == id)?;
        let (_, kept, payload) = self.0.remove(index)?;
        (kept == place).then_some(payload)
    }

    /// Keeps the payload of an object's newest version.
    pub fn keep(&mut self, id: &ObjectId, place: u64, payload: Value) {
        self.0.push_back((id.clone(), place, payload));
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
    }

    /// Forgets everything: a transaction was rolled back.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Changes a payload in place.
///
/// # Errors
/// `INVALID_ARGUMENT` when the patch does not fit; the payload must then no longer be used.
pub fn change(payload: &mut Value, operations: &Value) -> Result<()> {
    let patch = json_patch::Patch::deserialize(operations).map_err(|_| misfit("it is no RFC 6902 patch"))?;
    // The variant that takes back what it did panics where it can't, as after a move of a value to its parent.
    json_patch::patch_unsafe(payload, &patch).map_err(|error| misfit(&error.to_string()))?;
    match payload.as_object() {
        Some(fields) => reserved(fields.keys()),
        None => Err(misfit("the payload would no longer be an object")),
    }
}
