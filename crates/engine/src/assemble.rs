//! The canonical view of SSOT 4.1: four sections in their order, byte for byte the same for the same state.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::object::Status;
use context_model::render;
use serde_json::{Value, json};

use crate::catalog::Kind;
use crate::engine::Engine;
use crate::error::Result;

/// The four sections, each a part of one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    pub(crate) text: String,
    /// Where the first, second and fourth section stand in the text.
    pub(crate) prompt: Range<usize>,
    pub(crate) pool: Range<usize>,
    pub(crate) active: Range<usize>,
    /// The messages of each turn.
    pub(crate) turns: Vec<Arc<[Value]>>,
    /// The objects of the fourth section, and where their contents stand in it.
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
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Section 1.
    #[must_use]
    pub fn system_prompt(&self) -> &str {
        &self.text[self.prompt.clone()]
    }

    /// Section 2: one line per object of the pool, in the order in which they entered it.
    #[must_use]
    pub fn metadata_pool(&self) -> &str {
        &self.text[self.pool.clone()]
    }

    /// Section 3 as messages, with `toolcall_ref` lines in place of outputs.
    pub fn chat(&self) -> impl Iterator<Item = &Value> {
        self.turns.iter().flat_map(|turn| turn.iter())
    }

    /// Section 4: one block per object of the active set, in the order of activation.
    #[must_use]
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

impl Engine {
    /// Renders the session's state as SSOT 4.1 says, for conformance, audit, export, and models without a prefix
    /// cache. Costs a copy of the view; only what has changed since the last time is read and rendered.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn assemble(&self) -> Result<Assembled> {
        let inner = &self.inner;
        let mut state = inner.lock().await?;
        inner.refresh_at_turn(&mut state).await?;
        inner.complete_view(&mut state).await?;
        Ok(state.view.assembled())
    }
}

/// The messages of one turn: the user's, each answer, and after it one reference for each of its calls.
pub(crate) fn render_turn(turn: &Value, kind: impl Fn(&ObjectId) -> Option<Kind>, messages: &mut Vec<Value>) {
    match turn.get("user") {
        None | Some(Value::Null) => {}
        Some(content) => messages.push(json!({ "role": "user", "content": content })),
    }
    // Objects keep the harness's call ID, except where that would not be unique; see ObjectId::toolcall.
    let mut recorded: HashMap<&str, Vec<&str>> = HashMap::new();
    let ids: Vec<&str> = list(turn, "toolcall_ids").filter_map(Value::as_str).collect();
    for id in ids.iter().rev() {
        recorded.entry(call_of(id)).or_default().push(id);
    }
    let mut answered: Vec<&str> = Vec::new();
    for answer in list(turn, "assistant") {
        let content = answer.get("content").cloned().unwrap_or(Value::Null);
        messages.push(json!({ "role": "assistant", "content": content }));
        for call in list(answer, "content").filter(|b| b.get("type") == Some(&json!("toolCall"))) {
            let call_id = call.get("id").and_then(Value::as_str).unwrap_or_default();
            let base = ObjectId::toolcall(call_id, 0);
            let Some(id) = recorded.get_mut(base.as_str()).and_then(Vec::pop) else { continue };
            answered.push(id);
            messages.extend(reference(id, call_id, &kind));
        }
    }
    // Calls that a harness recorded without an answer that made them still belong to the conversation.
    for id in ids.into_iter().filter(|id| !answered.contains(id)) {
        messages.extend(reference(id, id, &kind));
    }
}

fn reference(id: &str, call_id: &str, kind: impl Fn(&ObjectId) -> Option<Kind>) -> Option<Value> {
    let id = ObjectId::new(id);
    let Some(Kind::Toolcall { tool, status }) = kind(&id) else { return None };
    Some(json!({
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": tool,
        "content": [{ "type": "text", "text": render::toolcall_ref(&id, &tool, status) }],
        "isError": status == Status::Fail,
    }))
}

/// The object ID without the mark that told it apart from others of the same call ID.
fn call_of(id: &str) -> &str {
    match id.rsplit_once('~') {
        Some((base, n)) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => id,
    }
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
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
            let name = render::word(text("name").unwrap_or_default());
            Some(format!(
                "tool_call id={} tool={name} args={args}",
                render::word(text("id").unwrap_or_default())
            ))
        }
        "image" => Some("[image]".to_owned()),
        _ => None,
    }
}
