//! Rules that all backends share. For implementations of [`Store`](crate::Store), not for their callers.

pub mod erasing;
pub mod pruning;
pub mod shape;
pub mod words;

use std::collections::VecDeque;

use context_model::id::ObjectId;
use context_model::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use shape::{misfit, reserved};

use crate::{Result, StoreError};

/// True if a path is this prefix or lies below it, at a segment border.
pub fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The error of a write whose envelope is not the stored one.
pub fn envelope_differs(id: &ObjectId) -> StoreError {
    StoreError::Invalid(format!("object {id} exists with another type or source, which never change"))
}

/// The error of a patch of an object that does not exist.
pub fn unknown(id: &ObjectId) -> StoreError {
    StoreError::Invalid(format!("object {id} does not exist; write it whole before patching it"))
}

/// The valid time of a patch: never earlier than that of the version that it changes.
pub fn patch_time(wanted: Option<Timestamp>, tx_time: Timestamp, latest: Timestamp) -> Result<Timestamp> {
    match wanted {
        None => Ok(tx_time.max(latest)),
        Some(time) if time >= latest => Ok(time),
        Some(_) => Err(StoreError::Invalid(
            "a patch can't have an earlier valid time than the version that it changes; write a whole document".into(),
        )),
    }
}

/// Number of documents kept: the chats and sessions that one process works on.
const KEPT: usize = 8;

/// The newest forms of a few patched documents, kept by their writer: payloads by object, each with the place of its version. A
/// patch that reaches deep into a document can only be checked against the document. The one kept here is changed in place, at the
/// cost of the change, and is assembled only once.
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
    let patch =
        json_patch::Patch::deserialize(operations).map_err(|_| misfit("it is not an RFC 6902 patch"))?;
    // The variant that rolls back its changes panics where it can't, as after a move of a value to its parent.
    json_patch::patch_unsafe(payload, &patch).map_err(|error| misfit(&error.to_string()))?;
    match payload.as_object() {
        Some(fields) => reserved(fields.keys()),
        None => Err(misfit("the payload would no longer be an object")),
    }
}
