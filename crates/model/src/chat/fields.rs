//! The fields of a chat's payload, and their readers: a field that is missing or has the wrong type is empty.

use serde_json::Value;

pub(super) const TURNS: &str = "turns";
pub(super) const TURN_COUNT: &str = "turn_count";
pub(super) const TOOLCALL_REFS: &str = "toolcall_refs";
pub(super) const USER: &str = "user";
pub(super) const ASSISTANT: &str = "assistant";
pub(super) const TOOLCALL_IDS: &str = "toolcall_ids";
pub(super) const ACTIVATED_IDS: &str = "activated_ids";
pub(super) const ROLLS: &str = "rolls";
pub(super) const NOTICES: &str = "notices";
pub(super) const SAID: &str = "said";
pub(super) const LISTED: &str = "listed";
pub(super) const EVIDENCE: &str = "evidence";
pub(super) const INSERTED: &str = "inserted";
pub(super) const OF: &str = "of";
pub(super) const ARRIVED: &str = "arrived";

/// The items of a list.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The texts of a list.
pub(super) fn texts<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    list(value, name).filter_map(Value::as_str)
}

/// A text.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}
