//! The places in a payload where people, models and tools speak, the fields that only give it structure, and the rest of a
//! payload whose object is erased as a whole.

use serde_json::{Map, Value, json};

use super::MARK;

/// Fields of arguments: all strings below them are conversation content.
const ARGUMENTS: [&str; 5] = ["args", "args_display", "arguments", "input", "outcome"];

/// Fields of turns and messages that refer to objects, name kinds, or say who made a message.
const STRUCTURE: [&str; 14] = [
    "toolcall_ids",
    "activated_ids",
    "rolls",
    "status",
    "meta",
    "type",
    "role",
    "id",
    "name",
    "toolCallId",
    "toolName",
    "mimeType",
    "thinkingSignature",
    "textSignature",
];

/// A place in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The payload itself.
    Payload,
    /// In the turns of a chat.
    Turns,
    /// In the arguments of a call.
    Arguments,
    /// The content.
    Content,
    /// Anywhere else.
    Structure,
}

impl Position {
    /// The position of a field at this position; indexes of lists change nothing.
    #[must_use]
    pub fn at_field(self, name: &str) -> Self {
        match self {
            Self::Payload if name == "turns" => Self::Turns,
            Self::Payload if name == "content" => Self::Content,
            Self::Payload | Self::Turns if ARGUMENTS.contains(&name) => Self::Arguments,
            Self::Payload => Self::Structure,
            Self::Turns if STRUCTURE.contains(&name) => Self::Structure,
            other => other,
        }
    }

    /// The position of the value that an operation of a patch writes.
    #[must_use]
    pub fn at_path(path: &str) -> Self {
        path.split('/').skip(1).fold(Self::Payload, Self::at_field)
    }

    /// True if strings at this position are conversation content.
    pub fn is_said(self) -> bool {
        matches!(self, Self::Turns | Self::Arguments | Self::Content)
    }
}

/// Calls back with each string at this position or below that is conversation content.
pub fn each_said(value: &Value, position: Position, use_it: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) if position.is_said() => use_it(text),
        Value::Array(items) => items.iter().for_each(|item| each_said(item, position, use_it)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| each_said(value, position.at_field(name), use_it));
        }
        _ => {}
    }
}

/// The same for the operations of a patch.
pub fn each_said_in_patch(operations: &Value, use_it: &mut impl FnMut(&str)) {
    for operation in operations.as_array().into_iter().flatten() {
        let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
        if let Some(value) = operation.get("value") {
            each_said(value, Position::at_path(path), use_it);
        }
    }
}

/// The fields of a turn that refer to objects; they are kept.
const KEPT: [&str; 4] = ["toolcall_ids", "activated_ids", "rolls", "status"];

/// A payload, or a patch of one, without its messages and arguments. References to objects stay.
pub fn stripped(json: &str) -> Option<String> {
    // A long string stored elsewhere is one of the texts being erased.
    let mut value: Value = serde_json::from_str(&json.replace('\u{1}', "")).ok()?;
    match &mut value {
        Value::Object(fields) => strip(fields),
        Value::Array(operations) => {
            for operation in operations {
                let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
                let is_said = path.starts_with("/turns") || path == "/content";
                if is_said && !path.split('/').any(|token| KEPT.contains(&token)) {
                    operation.get_mut("value").into_iter().for_each(mask);
                }
            }
        }
        _ => return None,
    }
    Some(value.to_string())
}

/// Removes the messages and arguments of a payload.
pub(super) fn strip(fields: &mut Map<String, Value>) {
    fields.remove("args_display");
    fields.remove("outcome");
    for (name, value) in fields.iter_mut() {
        match name.as_str() {
            "args" => *value = json!({}),
            "turns" => mask(value),
            _ => {}
        }
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::String(text) => MARK.clone_into(text),
        Value::Array(list) => list.iter_mut().for_each(mask),
        Value::Object(fields) => {
            fields
                .iter_mut()
                .filter(|(name, _)| !KEPT.contains(&name.as_str()))
                .for_each(|(_, value)| mask(value));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_told_from_structure() {
        let payload = json!({
            "tool": "a", "status": "b", "args": { "name": "1", "list": ["2"] }, "args_display": "3", "outcome": "8",
            "turns": [{ "user": [{ "type": "c", "text": "4" }], "toolcall_ids": ["d"], "assistant": [{ "meta": { "model": "e" },
                "content": [{ "type": "f", "thinking": "5" }, { "type": "g", "name": "h", "arguments": { "type": "6" } }] }] }],
        });
        let mut said = Vec::new();
        each_said(&payload, Position::Payload, &mut |text| said.push(text.to_owned()));
        said.sort();
        assert_eq!(said, ["1", "2", "3", "4", "5", "6", "8"]);
        let patch = json!([
            { "op": "add", "path": "/turns/3/assistant/-", "value": { "content": "7" } },
            { "op": "add", "path": "/turns/3/toolcall_ids/-", "value": "i" },
            { "op": "replace", "path": "/state", "value": "j" },
        ]);
        let mut said = Vec::new();
        each_said_in_patch(&patch, &mut |text| said.push(text.to_owned()));
        assert_eq!(said, ["7"]);
    }

    #[test]
    fn masks_content_and_keeps_references() {
        let body = json!({ "tool": "bash", "status": "ok", "args": { "command": "secret" }, "args_display": "secret", "outcome": "secret",
            "chat_ref": "chat:s", "turns": [{ "user": "secret", "toolcall_ids": ["a"], "n": 1 }] });
        let kept = json!({ "tool": "bash", "status": "ok", "args": {}, "chat_ref": "chat:s",
            "turns": [{ "user": "[erased]", "toolcall_ids": ["a"], "n": 1 }] });
        let strip =
            |value: &Value| serde_json::from_str::<Value>(&stripped(&value.to_string()).unwrap()).unwrap();
        assert_eq!(strip(&body), kept);
        let patch = json!([
            { "op": "add", "path": "/turns/-", "value": { "user": "secret", "messages": [{ "text": "secret" }] } },
            { "op": "add", "path": "/turns/0/toolcall_ids/-", "value": "call" },
            { "op": "replace", "path": "/turn_count", "value": 1 },
        ]);
        let stripped = strip(&patch);
        assert!(!stripped.to_string().contains("secret") && stripped.to_string().contains("call"));
    }
}
