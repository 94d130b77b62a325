//! Changes of growing documents, as JSON Patch (RFC 6902).
//!
//! A chat gains turns and a session gains IDs at every step. Writing the whole document each time would cost
//! the square of the session's length, so a version may be stored as the patch that made it; reading gives
//! the whole document back.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ModelError;
use crate::object::Document;

/// A list of operations on a document's payload, applied together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patch(json_patch::Patch);

impl Patch {
    /// A patch that changes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(json_patch::Patch(Vec::new()))
    }

    /// Appends a value to the list at the path, for instance `["turns"]`.
    pub fn append(&mut self, path: &[&str], value: Value) {
        let path = pointer(path.iter().copied().chain(["-"]));
        self.0.0.push(PatchOperation::Add(AddOperation { path, value }));
    }

    /// Sets the value at the path, which exists already.
    pub fn set(&mut self, path: &[&str], value: Value) {
        let path = pointer(path.iter().copied());
        self.0.0.push(PatchOperation::Replace(ReplaceOperation { path, value }));
    }

    /// Adds or replaces the member at the path of an object.
    pub fn put(&mut self, path: &[&str], value: Value) {
        let path = pointer(path.iter().copied());
        self.0.0.push(PatchOperation::Add(AddOperation { path, value }));
    }

    /// Removes the element with this index from the list at the path.
    pub fn remove(&mut self, path: &[&str], index: usize) {
        let path = pointer(path.iter().copied().chain([index.to_string().as_str()]));
        self.0.0.push(PatchOperation::Remove(RemoveOperation { path }));
    }

    /// Adds the operations of another patch after these.
    pub fn extend(&mut self, other: Self) {
        self.0.0.extend(other.0.0);
    }

    /// Changes a payload in place.
    ///
    /// # Errors
    /// `STORE_CORRUPT` when the patch does not fit; the payload is of no use any more then.
    pub fn change(&self, payload: &mut Value) -> Result<(), ModelError> {
        // The variant that takes back what it did panics where it can't, as after a move of a value to its parent.
        json_patch::patch_unsafe(payload, &self.0.0).map_err(|e| ModelError::Patch(e.to_string()))
    }

    /// The paths that the operations change, as JSON pointers.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.0.iter().map(|operation| operation.path().as_str())
    }

    /// Whether the patch has no operation.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }
}

/// The document that results from applying patches in their order.
///
/// # Errors
/// `STORE_CORRUPT` when a patch does not fit; the chain was damaged or put together wrongly.
pub fn apply<'a>(
    base: Document,
    patches: impl IntoIterator<Item = &'a Patch>,
) -> Result<Document, ModelError> {
    let (id, object_type, source, payload) = base.into_parts();
    let mut value = Value::Object(payload);
    for patch in patches {
        patch.change(&mut value)?;
    }
    match value {
        Value::Object(payload) => Document::new(id, object_type, source, payload),
        _ => Err(ModelError::Patch("the payload is no longer an object".into())),
    }
}

fn pointer<'a>(tokens: impl Iterator<Item = &'a str>) -> PointerBuf {
    PointerBuf::from_tokens(tokens)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::id::SessionId;

    #[test]
    fn a_patched_document_equals_one_written_whole() {
        let chat = Document::chat(&SessionId::new("s").unwrap());
        let mut one = Patch::new();
        one.append(&["turns"], json!({"user": "a", "toolcall_ids": []}));
        one.set(&["turn_count"], json!(1));
        let mut two = Patch::new();
        two.append(&["turns", "0", "toolcall_ids"], json!("call_1"));
        two.append(&["toolcall_refs"], json!("call_1"));
        two.append(&["toolcall_refs"], json!("call_2"));
        two.remove(&["toolcall_refs"], 0);

        let patched = apply(chat.clone(), [&one, &two]).unwrap();

        let (id, kind, source, mut payload) = chat.into_parts();
        payload.insert("turns".into(), json!([{"user": "a", "toolcall_ids": ["call_1"]}]));
        payload.insert("turn_count".into(), json!(1));
        payload.insert("toolcall_refs".into(), json!(["call_2"]));
        assert_eq!(patched, Document::new(id, kind, source, payload).unwrap());
    }

    #[test]
    fn a_patch_that_does_not_fit_is_an_error() {
        let mut patch = Patch::new();
        patch.remove(&["turns"], 3);
        let chat = Document::chat(&SessionId::new("s").unwrap());
        assert_eq!(apply(chat, [&patch]).unwrap_err().code(), crate::error::ErrorCode::StoreCorrupt);
    }

    #[test]
    fn a_patch_that_can_t_be_taken_back_is_an_error_too() {
        let patch: Patch = serde_json::from_value(json!([
            { "op": "move", "from": "/turns/0", "path": "/turns" },
            { "op": "remove", "path": "/turns" },
            { "op": "replace", "path": "/turns", "value": 1 },
        ]))
        .unwrap();
        assert!(patch.change(&mut json!({ "turns": [{ "a": [1] }] })).is_err());
    }

    #[test]
    fn the_stored_form_is_rfc_6902() {
        let mut patch = Patch::new();
        assert!(patch.is_empty());
        patch.append(&["a/b"], json!(1));
        assert!(!patch.is_empty());
        assert_eq!(
            serde_json::to_value(&patch).unwrap(),
            json!([{"op": "add", "path": "/a~1b/-", "value": 1}])
        );
    }
}
