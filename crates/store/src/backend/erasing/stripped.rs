//! What a payload keeps if its object is erased as a whole.

use serde_json::{Map, Value, json};

use super::mark::MARK;

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
    use super::*;

    #[test]
    fn what_was_said_goes_and_what_refers_stays() {
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
