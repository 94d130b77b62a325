//! Applies a plan's edits to a harness's messages.

use context_engine::{CollapsedCall, Edit, IncomingMessage, Plan, TextEdit};
use serde_json::{Value, json};

/// A message as the harness keeps it, and as the model is shown it.
#[derive(Clone, Debug)]
pub struct Message {
    pub key: String,
    pub raw: Value,
    pub shown: Value,
}

pub fn incoming(messages: &[Message], raw: bool) -> Vec<IncomingMessage> {
    let message = |m: &Message| if raw { m.raw.clone() } else { m.shown.clone() };
    let there = messages.iter().filter(|m| raw || !m.shown.is_null());
    there.map(|m| IncomingMessage { key: m.key.clone(), message: message(m) }).collect()
}

pub fn apply(messages: &mut [Message], plan: &Plan) {
    for edit in &plan.edits {
        let message = messages.iter_mut().find(|message| message.key == edit.key()).unwrap();
        message.shown = message.raw.clone();
        match edit {
            Edit::Result { text: Some(text), .. } => {
                message.shown["content"] = json!([{ "type": "text", "text": text }]);
            }
            Edit::Result { text: None, .. } => {}
            Edit::Message { calls, texts, .. } => edit_message(&mut message.shown, calls, texts),
            Edit::Gone { .. } => message.shown = Value::Null,
        }
    }
}

fn edit_message(message: &mut Value, calls: &[CollapsedCall], texts: &[TextEdit]) {
    if let Value::String(content) = &mut message["content"] {
        if let [TextEdit { block: 0, text: Some(text) }] = texts {
            content.clone_from(text);
        }
        return;
    }
    let (mut position, mut kept) = (0, Vec::new());
    for (number, block) in message["content"].as_array().unwrap().iter().enumerate() {
        let mut block = block.clone();
        if block["type"] == "toolCall" {
            if let Some(call) = calls.iter().find(|call| call.position == position) {
                assert_eq!(block["id"], call.call_id.as_str(), "another call's arguments");
                block["arguments"] = Value::Object(call.args.clone());
            }
            position += 1;
        }
        match texts.iter().find(|edit| edit.block == number) {
            None => kept.push(block),
            Some(TextEdit { text: None, .. }) => {}
            Some(TextEdit { text: Some(text), .. }) => {
                block["text"] = json!(text);
                kept.push(block);
            }
        }
    }
    assert!(!kept.is_empty(), "a message became empty");
    message["content"] = Value::Array(kept);
}
