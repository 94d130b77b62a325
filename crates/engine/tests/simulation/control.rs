//! The tools by which a model controls its context, and what they leave in its hands.

use context_engine::{Edit, Plan};
use serde_json::{Value, json};

use crate::client::Client;
use crate::conversation::Output;
use crate::knowledge::{Held, Note};
use crate::steps::Tool;
use crate::tools::Said;
use crate::violation::{Kind, Outcome, violation};

/// Runs a tool by which the model controls its context; does nothing before the first output.
pub async fn control(client: &mut Client, tool: Tool) -> Outcome<Option<(&'static str, Value, Said)>> {
    let (Tool::Activate { output }
    | Tool::Deactivate { output }
    | Tool::Pin { output }
    | Tool::Unpin { output }) = tool
    else {
        unreachable!("other tools are not about outputs")
    };
    let output = client.outputs.iter().rev().nth(output).cloned();
    let Some(Output { object, text, notes }) = output else { return Ok(None) };
    let engine = client.engine.clone().unwrap();
    let faulty = client.store.is_faulty();
    let name = object.as_str();
    let (tool_name, change) = match tool {
        Tool::Activate { .. } => ("activate", engine.activate(name, None).await),
        Tool::Deactivate { .. } => ("deactivate", engine.deactivate(name).await),
        Tool::Pin { .. } => ("pin", engine.pin(name).await),
        _ => ("unpin", engine.unpin(name).await),
    };
    let args = json!({ "id": name });
    let change = match change {
        Ok(change) => change,
        Err(error) => {
            client.allow(faulty, tool_name, &error)?;
            let output = "the store is not available".to_owned();
            return Ok(Some((tool_name, args, Said { output, is_error: true, ..Said::default() })));
        }
    };
    if !change.ok {
        // An object that a branch has left behind is not known on it, or not active.
        return Ok(Some((
            tool_name,
            args,
            Said { output: change.message, is_error: true, ..Said::default() },
        )));
    }
    let mut output = change.message;
    let mut back = Vec::new();
    match tool {
        Tool::Activate { .. } => {
            if change.content.as_deref() != Some(&text) {
                return violation(Kind::Lost, format!("{name} has another text now: {:?}", change.content));
            }
            // Another call may have brought it back.
            if change.visible && !client.visible().any(|message| message.shows(&text)) {
                return violation(Kind::NotWhole, format!("{name} is said to be in sight, and is not"));
            }
            if !change.visible {
                output = text.clone();
                back = notes.iter().filter_map(Note::again).collect();
            }
            client.hold(Held { object, text, pinned: false, unsaved: false });
        }
        Tool::Pin { .. } if client.visible().any(|message| message.shows(&text)) => {
            client.hold(Held { object, text, pinned: true, unsaved: false });
        }
        Tool::Deactivate { .. } => client.held.retain(|held| held.object != object || held.pinned),
        Tool::Unpin { .. } => client.held.retain(|held| held.object != object || !held.pinned),
        _ => {}
    }
    Ok(Some((tool_name, args, Said { output, notes: back, ..Said::default() })))
}

impl Client {
    /// A text that a person has restored stays whole while it is active.
    pub fn hold_restored(&mut self, plan: &Plan) {
        for edit in &plan.edits {
            let Edit::Result { key, object, .. } = edit else { continue };
            let message = self.messages.iter().find(|message| message.key == *key);
            let Some(text) = message.map(|message| message.output.clone()) else { continue };
            if message.is_some_and(|message| message.is_whole()) {
                self.hold(Held { object: object.clone(), text, pinned: false, unsaved: true });
            }
        }
    }

    pub fn hold(&mut self, held: Held) {
        if !held.text.is_empty() {
            self.held.retain(|other| other.object != held.object || other.pinned != held.pinned);
            self.held.push(held);
        }
    }
}
