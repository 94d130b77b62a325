//! Documents whose secrets were taken out when they were recorded.

use context_model::object::Document;
use serde_json::Value;

/// The payload field with the number of secrets that were taken out of a document, by rule.
pub const FIELD: &str = "redacted";

/// True if a document says that secrets were taken out of its content, and the content has their marks.
#[must_use]
pub fn has_marks(document: &Document) -> bool {
    let (Some(counts), Some(text)) = (document.field(FIELD).and_then(Value::as_object), document.content())
    else {
        return false;
    };
    let has = |(rule, count): (&String, &Value)| {
        count.as_u64() == Some(text.matches(&format!("[redacted: {rule}]")).count() as u64)
    };
    !counts.is_empty() && counts.iter().all(has)
}
