//! The canonical view of the specification: four sections in fixed order, byte for byte the same for the same state.

pub(crate) mod sections;

use std::ops::Range;
use std::sync::Arc;

use crate::session::catalog::MetaKind;
use context_lines::{CallInText, Reference};
use context_model::chat::{Message, Turn};
use context_model::id::ObjectId;
use context_model::object::Status;
use serde_json::{Value, json};

/// The four sections, each a part of one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    pub(crate) text: String,
    /// The places of the first, second and fourth sections in the text.
    pub(crate) prompt: Range<usize>,
    pub(crate) pool: Range<usize>,
    pub(crate) active: Range<usize>,
    /// The messages of each turn.
    pub(crate) turns: Vec<Arc<[Value]>>,
    /// The objects of the fourth section, and where their contents are in it.
    pub(crate) blocks: Arc<[(ObjectId, Range<usize>)]>,
}

/// One block of section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The object.
    pub id: &'a ObjectId,
    /// Its content, verbatim.
    pub content: &'a str,
}

impl Assembled {
    /// All four sections as one text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Section 1.
    pub fn system_prompt(&self) -> &str {
        &self.text[self.prompt.clone()]
    }

    /// Section 2: one line per object of the pool, in the order in which they entered it.
    pub fn metadata_pool(&self) -> &str {
        &self.text[self.pool.clone()]
    }

    /// Section 3 as messages, with `toolcall_ref` lines in place of outputs.
    pub fn chat(&self) -> impl Iterator<Item = &Value> {
        self.turns.iter().flat_map(|turn| turn.iter())
    }

    /// Section 4: one block per object of the active set, in the order of activation.
    pub fn active_content(&self) -> &str {
        &self.text[self.active.clone()]
    }

    /// The blocks of section 4 for callers who must not parse: contents are verbatim and could look like the
    /// beginning of a block.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let section = self.active_content();
        self.blocks.iter().map(|(id, place)| Block { id, content: &section[place.clone()] })
    }
}

/// The messages of one turn: the user's, each answer, and after it one reference for each of its calls.
pub(crate) fn render_turn(turn: Turn<'_>, kind: impl Fn(&ObjectId) -> Option<MetaKind>) -> Vec<Value> {
    let messages = turn.conversation().into_iter();
    messages
        .filter_map(|message| match message {
            Message::User(content) => Some(json!({ "role": "user", "content": content })),
            Message::Assistant(answer) => Some(json!({ "role": "assistant", "content": answer.content() })),
            Message::Toolcall { id, call_id } => reference(id, call_id, &kind),
        })
        .collect()
}

fn reference(id: &str, call_id: &str, kind: impl Fn(&ObjectId) -> Option<MetaKind>) -> Option<Value> {
    let id = ObjectId::new(id);
    let Some(MetaKind::Toolcall { tool, status, .. }) = kind(&id) else { return None };
    Some(json!({
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": tool,
        "content": [{ "type": "text", "text": Reference::to(id.as_str(), &tool, Some(status)).to_string() }],
        "isError": status == Status::Fail,
    }))
}

/// Messages as text: one paragraph each, tool calls and their references on lines of their own.
pub(crate) fn chat_text(messages: &[Value]) -> String {
    let mut paragraphs = Vec::new();
    for message in messages {
        let content = message.get("content").unwrap_or(&Value::Null);
        let body = match content {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => blocks.iter().filter_map(block_text).collect::<Vec<_>>().join("\n"),
            _ => String::new(),
        };
        match message.get("role").and_then(Value::as_str) {
            Some("toolResult") | None => paragraphs.push(body),
            Some(role) => paragraphs.push(format!("{role}: {body}")),
        }
    }
    paragraphs.join("\n\n")
}

fn block_text(block: &Value) -> Option<String> {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    match text("type")? {
        "text" => text("text").map(str::to_owned),
        "toolCall" => {
            let args = block.get("arguments").cloned().unwrap_or(Value::Null);
            let (id, tool) = (text("id").unwrap_or_default(), text("name").unwrap_or_default());
            let args = args.to_string().into();
            Some(CallInText { id: id.into(), tool: tool.into(), args }.to_string())
        }
        "image" => Some("[image]".to_owned()),
        _ => None,
    }
}
