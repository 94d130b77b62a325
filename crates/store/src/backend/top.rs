//! The top of a document, which an outline is made of: it is updated with each patch, so that nobody has to assemble
//! a growing document to know how long it is.

use context_model::object::{Document, ObjectType};
use context_model::source::Source;
use serde_json::{Map, Value};

/// What an outline says about a version besides its times.
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

    /// Of a version that was written as a patch.
    pub fn of_patch(mut self) -> Self {
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
