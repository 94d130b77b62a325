//! What a store knows of a patched document without reading it: its scalar fields and the lengths of its lists.
//!
//! With it a patch of top-level fields and lists is checked at the price of the patch, and an outline is given
//! without putting the document together.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{Result, StoreError};

/// The fields of the envelope, which a patch can't touch.
const ENVELOPE: [&str; 4] = ["xt/id", "type", "source", "identity_hash"];

/// The outer form of a payload; `content` and `content_hash` are not part of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    /// The fields that are neither lists nor objects.
    pub scalars: Map<String, Value>,
    /// The lengths of the lists; `None` for an object.
    pub nested: BTreeMap<String, Option<usize>>,
    /// Whether there is a `content` field that is text.
    pub has_text: bool,
}

/// What [`Shape::apply`] found.
#[derive(Debug, PartialEq)]
pub(crate) enum Fit {
    /// The patch fits, and leaves the content as it was or sets it.
    Fits(Content),
    /// The patch reaches deeper than the shape knows; the shape is of no more use.
    Deep,
}

/// What a patch does to the content.
#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    /// Nothing.
    Kept,
    /// It sets the text, or takes it away.
    Set(Option<String>),
}

impl Shape {
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
    /// `INVALID_ARGUMENT` when the patch does not fit.
    pub fn apply(&mut self, operations: &Value) -> Result<Fit> {
        let mut content = Content::Kept;
        for operation in operations.as_array().into_iter().flatten() {
            let text = |name| operation.get(name).and_then(Value::as_str);
            let (Some(op), Some(path)) = (text("op"), text("path")) else { return Ok(Fit::Deep) };
            let path: Vec<String> = path.split('/').skip(1).map(unescape).collect();
            let null = Value::Null;
            let value = operation.get("value").unwrap_or(&null);
            match (op, path.as_slice()) {
                ("add" | "replace" | "remove", [name]) => {
                    if op != "add" && !self.has(name) {
                        return Err(misfit(&format!("there is no field {name}")));
                    }
                    if ENVELOPE.contains(&name.as_str()) {
                        return Err(misfit(&format!("the payload can't have a field named {name}")));
                    }
                    if op == "remove" {
                        self.clear(name);
                    } else {
                        self.set(name, value);
                    }
                    if name == "content" {
                        let text = if op == "remove" { None } else { value.as_str() };
                        content = Content::Set(text.map(str::to_owned));
                    }
                }
                ("add" | "replace" | "remove", [name, key]) => match self.nested.get_mut(name) {
                    Some(Some(length)) => element(op, key, length)?,
                    Some(None) if op == "add" => {}
                    Some(None) => return Ok(Fit::Deep),
                    None => return Err(misfit(&format!("{name} is no list"))),
                },
                _ => return Ok(Fit::Deep),
            }
        }
        Ok(Fit::Fits(content))
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

pub(crate) fn misfit(what: &str) -> StoreError {
    StoreError::Invalid(format!("the patch does not fit the latest version: {what}"))
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}
