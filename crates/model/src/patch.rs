//! Changes of growing documents, as JSON Patch (RFC 6902).
//!
//! A chat gains turns and a session gains IDs at every step. If the whole document were written each time, the total would
//! grow with the square of the session's length. So a version may be stored as the patch that made it, and reading returns
//! the whole document.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

    /// The patch that turns one payload into another. It is short if the second has grown out of the first, because common
    /// elements at both ends of lists are left alone.
    #[must_use]
    pub fn between(old: &Map<String, Value>, new: &Map<String, Value>) -> Self {
        let mut patch = Self::new();
        patch.fields(&mut PointerBuf::new(), old, new);
        patch
    }

    fn fields(&mut self, path: &mut PointerBuf, old: &Map<String, Value>, new: &Map<String, Value>) {
        for (name, value) in new {
            path.push_back(name);
            match old.get(name) {
                Some(before) => self.values(path, before, value),
                None => self
                    .0
                    .0
                    .push(PatchOperation::Add(AddOperation { path: path.clone(), value: value.clone() })),
            }
            path.pop_back();
        }
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            path.push_back(name);
            self.0.0.push(PatchOperation::Remove(RemoveOperation { path: path.clone() }));
            path.pop_back();
        }
    }

    fn values(&mut self, path: &mut PointerBuf, old: &Value, new: &Value) {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => self.fields(path, old, new),
            (Value::Array(old), Value::Array(new)) => self.elements(path, old, new),
            _ if old == new => {}
            _ => self
                .0
                .0
                .push(PatchOperation::Replace(ReplaceOperation { path: path.clone(), value: new.clone() })),
        }
    }

    fn elements(&mut self, path: &mut PointerBuf, old: &[Value], new: &[Value]) {
        let same = |(a, b): &(&Value, &Value)| a == b;
        let start = old.iter().zip(new).take_while(same).count();
        let (old, new) = (&old[start..], &new[start..]);
        let end = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
        let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
        let common = old.len().min(new.len());
        for (at, (old, new)) in old.iter().zip(new).enumerate() {
            path.push_back(start + at);
            self.values(path, old, new);
            path.pop_back();
        }
        for _ in common..old.len() {
            path.push_back(start + common);
            self.0.0.push(PatchOperation::Remove(RemoveOperation { path: path.clone() }));
            path.pop_back();
        }
        for (at, value) in new.iter().enumerate().skip(common) {
            path.push_back(start + at);
            self.0.0.push(PatchOperation::Add(AddOperation { path: path.clone(), value: value.clone() }));
            path.pop_back();
        }
    }

    /// Appends a value to the list at the path, for instance `["turns"]`.
    pub fn append(&mut self, path: &[&str], value: Value) {
        let path = pointer(path.iter().copied().chain(["-"]));
        self.0.0.push(PatchOperation::Add(AddOperation { path, value }));
    }

    /// Sets the value at the path, which must exist.
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
    /// `STORE_CORRUPT` if the patch can't be applied; the payload must then no longer be used.
    pub fn change(&self, payload: &mut Value) -> Result<(), ModelError> {
        // The variant that rolls back on failure panics if it can't, for instance after moving a value to its parent.
        json_patch::patch_unsafe(payload, &self.0.0).map_err(|e| ModelError::Patch(e.to_string()))
    }

    /// True if the patch only adds, removes and replaces, at most this many levels deep. Other operations can
    /// copy values, so a short text could create a document of any length.
    pub fn is_plain(&self, most_levels: usize) -> bool {
        self.0.0.iter().all(|operation| {
            let plain = matches!(
                operation,
                PatchOperation::Add(_) | PatchOperation::Remove(_) | PatchOperation::Replace(_)
            );
            plain && operation.path().count() <= most_levels
        })
    }

    /// The paths that the operations change, as JSON pointers.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.0.iter().map(|operation| operation.path().as_str())
    }

    /// True if the patch has no operation.
    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }
}

/// The document that results from applying patches in order.
///
/// # Errors
/// `STORE_CORRUPT` if a patch can't be applied, because the chain is damaged or incomplete.
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
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::id::SessionId;

    fn fields(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("an object") };
        map
    }

    fn payload() -> impl Strategy<Value = Map<String, Value>> {
        let leaf =
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..3).prop_map(Value::from)];
        let name = prop::sample::select(vec!["a", "b", "", "/", "~", "0", "-"]);
        let value = leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..4).prop_map(|map| map
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect::<Map<_, _>>()
                    .into()),
            ]
        });
        let name = prop::sample::select(vec!["turns", "refs", "x/y"]);
        prop::collection::btree_map(name, value, 0..4)
            .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    }

    proptest! {
        #[test]
        fn a_patch_between_two_payloads_makes_one_of_the_other(old in payload(), new in payload()) {
            let patch = Patch::between(&old, &new);
            let mut value = Value::Object(old.clone());
            patch.change(&mut value).unwrap();
            prop_assert_eq!(value, Value::Object(new.clone()));
            prop_assert_eq!(patch.is_empty(), old == new);
        }
    }

    #[test]
    fn paths_of_a_patch_follow_its_operations() {
        let mut patch = Patch::new();
        assert_eq!(patch.paths().next(), None);
        patch.append(&["turns"], json!({}));
        patch.put(&["b", "c/d"], json!(1));
        patch.set(&["a~"], json!(2));
        patch.remove(&["turns"], 3);
        assert_eq!(patch.paths().collect::<Vec<_>>(), ["/turns/-", "/b/c~1d", "/a~0", "/turns/3"]);
    }

    #[test]
    fn put_adds_or_replaces_a_field() {
        let mut patch = Patch::new();
        patch.put(&["a"], json!(2));
        patch.put(&["b", "c/d"], json!([]));
        let mut value = json!({ "a": 1, "b": {} });
        patch.change(&mut value).unwrap();
        assert_eq!(value, json!({ "a": 2, "b": { "c/d": [] } }));
    }

    #[rstest]
    #[case::appended(json!({"l": [1, 2]}), json!({"l": [1, 2, 3]}), json!([{"op": "add", "path": "/l/2", "value": 3}]))]
    #[case::taken_from_the_front(json!({"l": [1, 2, 3]}), json!({"l": [2, 3]}), json!([{"op": "remove", "path": "/l/0"}]))]
    #[case::deep(
        json!({"l": [{"a": [1], "b": 1}, 2]}), json!({"l": [{"a": [1, 2], "b": 1}, 2]}),
        json!([{"op": "add", "path": "/l/0/a/1", "value": 2}])
    )]
    #[case::fields(
        json!({"a": 1, "b": 2}), json!({"b": 3, "c~": 4}),
        json!([{"op": "replace", "path": "/b", "value": 3}, {"op": "add", "path": "/c~0", "value": 4}, {"op": "remove", "path": "/a"}])
    )]
    fn patch_between_is_as_long_as_the_change(
        #[case] old: Value,
        #[case] new: Value,
        #[case] expected: Value,
    ) {
        let patch = Patch::between(&fields(old), &fields(new));
        assert_eq!(serde_json::to_value(patch).unwrap(), expected);
    }

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
    fn patch_without_its_target_is_an_error() {
        let mut patch = Patch::new();
        patch.remove(&["turns"], 3);
        let chat = Document::chat(&SessionId::new("s").unwrap());
        assert_eq!(apply(chat, [&patch]).unwrap_err().code(), crate::error::ErrorCode::StoreCorrupt);
    }

    #[test]
    fn irreversible_patch_is_an_error() {
        let patch: Patch = serde_json::from_value(json!([
            { "op": "move", "from": "/turns/0", "path": "/turns" },
            { "op": "remove", "path": "/turns" },
            { "op": "replace", "path": "/turns", "value": 1 },
        ]))
        .unwrap();
        assert!(patch.change(&mut json!({ "turns": [{ "a": [1] }] })).is_err());
    }

    #[test]
    fn copying_or_deep_patch_is_not_plain() {
        let patch = |value| serde_json::from_value::<Patch>(value).unwrap();
        let deep = json!([{ "op": "add", "path": "/a/b/c", "value": 1 }]);
        assert!(patch(deep.clone()).is_plain(3) && !patch(deep).is_plain(2));
        assert!(!patch(json!([{ "op": "copy", "from": "/turns", "path": "/turns/-" }])).is_plain(9));
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

    #[test]
    fn operations_of_another_patch_come_after_these() {
        let put = |value: i32| {
            let mut patch = Patch::default();
            patch.put(&["a"], json!(value));
            patch
        };
        let mut both = put(1);
        both.extend(put(2));
        let mut payload = json!({});
        both.change(&mut payload).unwrap();
        assert_eq!(payload, json!({ "a": 2 }));
    }
}
