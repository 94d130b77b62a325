//! A store's knowledge of a patched document without reading it: its scalar fields and the lengths of its lists.
//!
//! With it, a patch of top-level fields and lists is checked in time proportional to the patch, and an outline needs no
//! assembled document.

use std::collections::BTreeMap;

use context_model::object::{Document, ObjectType};
use context_model::source::Source;
use serde_json::{Map, Value};

use crate::{Result, StoreError};

/// The fields of the envelope, which a patch can't touch.
const ENVELOPE: [&str; 4] = ["xt/id", "type", "source", "identity_hash"];

/// The outer form of a payload; `content` and `content_hash` are not part of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PayloadShape {
    /// The fields that are neither lists nor objects.
    pub scalars: Map<String, Value>,
    /// The lengths of the lists; `None` for an object.
    pub nested: BTreeMap<String, Option<usize>>,
    /// True if there is a `content` field that is text.
    pub has_text: bool,
}

/// The outcome of [`PayloadShape::apply`].
#[derive(Debug, PartialEq)]
pub enum PatchFit {
    /// The patch can be applied, and leaves the content unchanged or sets it.
    Fits(ContentChange),
    /// The patch reaches deeper than the shape knows; the shape is no longer usable.
    Deep,
}

/// The effect of a patch on the content.
#[derive(Debug, PartialEq)]
pub enum ContentChange {
    /// Nothing.
    Kept,
    /// It sets the text or removes it.
    Set(Option<String>),
}

impl PayloadShape {
    /// The shape of a payload.
    pub fn of(payload: &Map<String, Value>) -> Self {
        let mut shape = Self::default();
        for (name, value) in payload {
            shape.set(name, value);
        }
        shape
    }

    /// Applies the operations of an RFC 6902 patch.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the patch can't be applied.
    pub fn apply(&mut self, operations: &Value) -> Result<PatchFit> {
        let mut content = ContentChange::Kept;
        for operation in operations.as_array().into_iter().flatten() {
            let text = |name| operation.get(name).and_then(Value::as_str);
            let (Some(op), Some(path)) = (text("op"), text("path")) else { return Ok(PatchFit::Deep) };
            let path: Vec<String> = path.split('/').skip(1).map(unescape).collect();
            let null = Value::Null;
            let value = operation.get("value").unwrap_or(&null);
            match (op, path.as_slice()) {
                ("add" | "replace" | "remove", [name]) => {
                    if op != "add" && !self.has(name) {
                        return Err(misfit(&format!("there is no field {name}")));
                    }
                    if op == "remove" {
                        self.clear(name);
                    } else {
                        self.set(name, value);
                    }
                    if name == "content" {
                        let text = if op == "remove" { None } else { value.as_str() };
                        content = ContentChange::Set(text.map(str::to_owned));
                    }
                }
                ("add" | "replace" | "remove", [name, key]) => match self.nested.get_mut(name) {
                    Some(Some(length)) => element(op, key, length)?,
                    Some(None) if op == "add" => {}
                    Some(None) => return Ok(PatchFit::Deep),
                    None => return Err(misfit(&format!("{name} is not a list"))),
                },
                _ => return Ok(PatchFit::Deep),
            }
        }
        reserved(self.scalars.keys().chain(self.nested.keys()))?;
        Ok(PatchFit::Fits(content))
    }

    fn has(&self, name: &str) -> bool {
        match name {
            "content_hash" => true,
            "content" if self.has_text => true,
            _ => self.scalars.contains_key(name) || self.nested.contains_key(name),
        }
    }

    fn clear(&mut self, name: &str) {
        self.scalars.remove(name);
        self.nested.remove(name);
        if name == "content" {
            self.has_text = false;
        }
    }

    fn set(&mut self, name: &str, value: &Value) {
        self.clear(name);
        match value {
            _ if name == "content_hash" => {}
            Value::String(_) if name == "content" => self.has_text = true,
            Value::Array(list) => {
                self.nested.insert(name.to_owned(), Some(list.len()));
            }
            Value::Object(_) => {
                self.nested.insert(name.to_owned(), None);
            }
            scalar => {
                self.scalars.insert(name.to_owned(), scalar.clone());
            }
        }
    }
}

fn element(op: &str, key: &str, length: &mut usize) -> Result<()> {
    if op == "add" && key == "-" {
        *length += 1;
        return Ok(());
    }
    let plain = key == "0" || (!key.starts_with('0') && key.bytes().all(|b| b.is_ascii_digit()));
    let index = key.parse::<usize>().ok().filter(|_| plain);
    let limit = if op == "add" { *length + 1 } else { *length };
    if index.is_none_or(|index| index >= limit) {
        return Err(misfit(&format!("a list of {length} has no place {key}")));
    }
    match op {
        "add" => *length += 1,
        "remove" => *length -= 1,
        _ => {}
    }
    Ok(())
}

/// The error of a patch that does not fit.
pub fn misfit(what: &str) -> StoreError {
    StoreError::Invalid(format!("the patch can't be applied to the latest version: {what}"))
}

/// Refuses names of the envelope's fields.
pub fn reserved<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<()> {
    match names.into_iter().find(|name| ENVELOPE.contains(&name.as_str())) {
        Some(name) => Err(misfit(&format!("the payload can't have a field named {name}"))),
        None => Ok(()),
    }
}

/// True if a patch may change the content.
pub fn touches_content(operations: &Value) -> bool {
    let touches = |path: &Value| path.as_str().is_some_and(|path| path.is_empty() || path == "/content");
    let parts =
        |operation: &Value| ["path", "from"].iter().any(|part| operation.get(part).is_some_and(touches));
    operations.as_array().into_iter().flatten().any(parts)
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// The parts of a version's outline besides its times.
#[derive(Clone)]
pub struct Top {
    /// The object's type.
    pub object_type: ObjectType,
    /// The source binding.
    pub source: Option<Source>,
    /// The payload's fields but `content`.
    pub fields: Map<String, Value>,
    /// True if the version has no content text.
    pub is_null: bool,
}

impl Top {
    /// The top of a whole document.
    pub fn of(document: Document) -> Self {
        let (_, object_type, source, mut fields) = document.into_parts();
        let is_null = !fields.remove("content").is_some_and(|content| content.is_string());
        Self { object_type, source, fields, is_null }
    }

    /// For a version that was written as a patch.
    pub fn from_patch(mut self) -> Self {
        self.fields.retain(|name, value| name != "content_hash" && !value.is_array() && !value.is_object());
        self
    }

    /// Applies a patch to the top; changes below a top-level field have no effect here.
    pub fn change(&mut self, operations: &Value) {
        for operation in operations.as_array().into_iter().flatten() {
            let path = operation["path"].as_str().unwrap_or_default();
            let Some(name) = path.strip_prefix('/').filter(|rest| !rest.contains('/')) else { continue };
            let name = name.replace("~1", "/").replace("~0", "~");
            let value = operation.get("value");
            if name == "content" {
                self.is_null = !value.is_some_and(Value::is_string);
                continue;
            }
            self.fields.remove(&name);
            if let Some(value) = value.filter(|value| !value.is_array() && !value.is_object()) {
                self.fields.insert(name, value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::backend;

    fn operation() -> impl Strategy<Value = Value> {
        let names = prop_oneof![
            Just("turns"),
            Just("refs"),
            Just("count"),
            Just("state"),
            Just("content"),
            Just("none"),
            Just("type"),
            Just("a~1b"),
            Just(""),
        ];
        let key = prop_oneof![
            Just("-"),
            Just("0"),
            Just("1"),
            Just("2"),
            Just("3"),
            Just("01"),
            Just("x"),
            Just("")
        ];
        let path =
            (names, proptest::option::of(key), prop::bool::weighted(0.2)).prop_map(|(name, key, deeper)| {
                let key = key.map(|key| format!("/{key}")).unwrap_or_default();
                format!("/{name}{key}{}", if deeper { "/0" } else { "" })
            });
        let value = prop_oneof![
            Just(json!(1)),
            Just(json!("text")),
            Just(json!(null)),
            Just(json!([1, 2])),
            Just(json!({ "x": 1 })),
        ];
        let op = prop_oneof![3 => Just("add"), 2 => Just("replace"), 2 => Just("remove"), 1 => Just("move"), 1 => Just("test")];
        (op, path.clone(), path, value).prop_map(|(op, path, from, value)| match op {
            "remove" => json!({ "op": op, "path": path }),
            "move" => json!({ "op": op, "path": path, "from": from }),
            _ => json!({ "op": op, "path": path, "value": value }),
        })
    }

    fn payload() -> Map<String, Value> {
        let payload = json!({
            "turns": [{ "a": [1] }, { "a": [] }], "refs": [], "count": 2, "content": "text", "a/b": [1],
            "state": { "x": { "0": 1 } }, "content_hash": "0",
        });
        payload.as_object().cloned().unwrap_or_default()
    }

    /// A content that is not text is part of the payload like any other field.
    fn text_of(payload: &Value) -> Option<String> {
        payload.get("content").and_then(Value::as_str).map(str::to_owned)
    }

    proptest! {
        /// The shape's verdict on a patch equals that of applying it to the whole payload.
        #[test]
        fn a_shape_agrees_with_the_whole_payload(
            patches in proptest::collection::vec(proptest::collection::vec(operation(), 1..4), 1..4)
        ) {
            let mut payload = Value::Object(payload());
            let mut shape = PayloadShape::of(payload.as_object().unwrap());
            for patch in patches {
                let patch = Value::Array(patch);
                let before = text_of(&payload);
                let mut next = shape.clone();
                let said = next.apply(&patch);
                let mut after = payload.clone();
                match (said, backend::change(&mut after, &patch)) {
                    (Ok(PatchFit::Deep), Ok(())) => next = PayloadShape::of(after.as_object().unwrap()),
                    (Ok(PatchFit::Deep), Err(_)) => continue,
                    (Ok(PatchFit::Fits(change)), Ok(())) => {
                        match change {
                            ContentChange::Kept => prop_assert_eq!(&before, &text_of(&after)),
                            ContentChange::Set(set) => prop_assert_eq!(set, text_of(&after)),
                        }
                        prop_assert!(touches_content(&patch) || before == text_of(&after));
                    }
                    (Err(_), Err(_)) => continue,
                    (said, shown) => prop_assert!(false, "{:?} but {:?}: {}", said, shown, patch),
                }
                prop_assert_eq!(&next, &PayloadShape::of(after.as_object().unwrap()));
                (payload, shape) = (after, next);
            }
        }
    }
}
