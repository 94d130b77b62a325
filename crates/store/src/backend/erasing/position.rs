//! Where in a payload people, models and tools speak, and where fields only give it structure.

use serde_json::Value;

/// Fields of arguments: all strings below them are somebody's words.
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
    pub fn of_field(self, name: &str) -> Self {
        match self {
            Self::Payload if name == "turns" => Self::Turns,
            Self::Payload if name == "content" => Self::Content,
            Self::Payload | Self::Turns if ARGUMENTS.contains(&name) => Self::Arguments,
            Self::Payload => Self::Structure,
            Self::Turns if STRUCTURE.contains(&name) => Self::Structure,
            other => other,
        }
    }

    /// The position of what an operation of a patch writes.
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        path.split('/').skip(1).fold(Self::Payload, Self::of_field)
    }

    /// Returns whether the strings here are somebody's words.
    pub fn is_said(self) -> bool {
        matches!(self, Self::Turns | Self::Arguments | Self::Content)
    }
}

/// Calls back with each string at this position or below that is somebody's words.
pub fn each_said(value: &Value, position: Position, use_it: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) if position.is_said() => use_it(text),
        Value::Array(items) => items.iter().for_each(|item| each_said(item, position, use_it)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| each_said(value, position.of_field(name), use_it));
        }
        _ => {}
    }
}

/// The same for the operations of a patch.
pub fn each_said_in_patch(operations: &Value, use_it: &mut impl FnMut(&str)) {
    for operation in operations.as_array().into_iter().flatten() {
        let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
        if let Some(value) = operation.get("value") {
            each_said(value, Position::of_path(path), use_it);
        }
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
}
