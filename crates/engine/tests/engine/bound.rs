//! A provider that binds reasoning to the messages before it, and refuses a request in which they have changed.

use std::collections::HashMap;

use context_engine::{Call, IncomingMessage};
use context_model::hash::Digest;
use context_projection::Binding;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use crate::bench::{Backend, session};
use crate::edits::Message;
use crate::harness::{Harness, Step, call, step};
use crate::projection::runner;

/// The text with which the strictest provider signs each block of reasoning: everything before it that is not reasoning, and
/// the block of reasoning before it.
#[derive(Clone, Debug, Default)]
pub struct Provider {
    signed: HashMap<String, (Digest, Option<String>)>,
}

impl Provider {
    /// The model gives an answer, of this key, to these messages.
    pub fn sign(&mut self, messages: &[Message], key: &str, blocks: &Value) {
        if has_reasoning(blocks) {
            let last = messages.iter().rfind(|message| has_reasoning(&message.shown["content"]));
            let last = last.map(|message| message.key.clone());
            self.signed.insert(key.to_owned(), (before(messages), last));
        }
    }

    /// Checks a request: no block of reasoning follows another prefix than it was signed with, none is missing between two
    /// others, and all of the running turn are there.
    pub fn check(&self, messages: &[Message]) -> Result<(), TestCaseError> {
        let mut last = None;
        let turn = messages.iter().rposition(|message| message.raw["role"] == "user").unwrap_or(0);
        let is_over = messages.last().is_some_and(|message| is_final(&message.raw));
        for (place, message) in messages.iter().enumerate() {
            let Some((prefix, previous)) = self.signed.get(&message.key) else { continue };
            if !has_reasoning(&message.shown["content"]) {
                prop_assert!(
                    place < turn || is_over,
                    "reasoning of the running turn has left {}",
                    message.key
                );
                continue;
            }
            prop_assert_eq!(before(&messages[..place]), *prefix, "another prefix before {}", message.key);
            prop_assert!(last.is_none() || last == *previous, "reasoning is missing before {}", message.key);
            last = Some(message.key.clone());
        }
        Ok(())
    }
}

fn has_reasoning(content: &Value) -> bool {
    content.as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "thinking"))
}

/// True if a message is an answer without calls, so that a user speaks next.
fn is_final(message: &Value) -> bool {
    let blocks = message["content"].as_array();
    message["role"] == "assistant"
        && blocks.is_some_and(|blocks| blocks.iter().all(|block| block["type"] != "toolCall"))
}

/// The hash of messages as they are sent, without reasoning.
fn before(messages: &[Message]) -> Digest {
    let mut sent = String::new();
    for message in messages.iter().filter(|message| !message.shown.is_null()) {
        let mut shown = message.shown.clone();
        if let Some(blocks) = shown["content"].as_array_mut() {
            blocks.retain(|block| block["type"] != "thinking");
            if blocks.is_empty() {
                continue;
            }
        }
        sent.push_str(&shown.to_string());
    }
    Digest::of(sent.as_bytes())
}

/// Carries out steps before the strictest provider.
async fn passes(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut harness = Harness::bound().await;
    for (n, step) in steps.iter().enumerate() {
        if harness.needs_a_user(step) {
            harness.take(&Step::Ask).await?;
        }
        // A host that compacts changes the prefix itself.
        let step = if matches!(step, Step::Compact(_)) { &Step::Ask } else { step };
        harness.take(step).await?;
        if n % 16 == 15 {
            harness.check().await?;
        }
    }
    harness.check().await
}

#[test]
fn every_request_passes_the_strict_check() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let steps = prop::collection::vec(step(), 1..40);
    runner(16, 10_000).run(&steps, |steps| runtime.block_on(passes(&steps))).unwrap();
}

/// A thought that a roll would have taken by itself, but that has no shorter form, leaves with the rest of the roll: the text
/// before it has changed.
#[tokio::test]
async fn thought_among_what_a_roll_takes_leaves_with_the_rest() {
    use Step::{Ask, Busy, Idle, Prose, Work};
    let steps = [
        vec![Busy(8), Ask, Busy(7), Prose],
        vec![Work(vec![(0, 0, false), (0, 3, false), (0, 1, true)]), Work(vec![(0, 1, true), (2, 1, false)])],
        vec![Work(vec![(2, 1, false), (3, 3, true), (3, 3, false)]), Prose, Busy(8), Idle],
    ];
    passes(&steps.concat()).await.unwrap();
}

/// A turn of 80 calls with long outputs, and the next question. Which reasoning is in the request before it, and after it.
async fn turn_of_80_calls(binding: Binding) -> (usize, usize) {
    let (_bench, engine) = session(Backend::Memory).await;
    let call = |now: i64| Call { binding, ..call(now) };
    let mut left: Vec<String> = Vec::new();
    let mut before_the_question = 0;
    let (mut now, mut fresh) = (1_700_000_000_000_i64, vec![user("first", now_text())]);
    for n in 0..80 {
        now += 5_000;
        let plan = engine.advance(std::mem::take(&mut fresh), &call(now)).await.unwrap();
        left.extend(edited(&plan.edits));
        fresh = vec![
            IncomingMessage {
                key: format!("a{n}"),
                message: json!({ "role": "assistant", "model": "m", "stopReason": "toolUse", "timestamp": now,
                    "provider": "anthropic", "api": "anthropic-messages", "content": [
                    { "type": "thinking", "thinking": format!("thought {n}"), "thinkingSignature": "s" },
                    { "type": "toolCall", "id": format!("c{n}"), "name": "bash", "arguments": { "command": "x" } },
                ] }),
            },
            IncomingMessage {
                key: format!("r{n}"),
                message: json!({ "role": "toolResult", "toolCallId": format!("c{n}"), "toolName": "bash",
                    "isError": false, "timestamp": now,
                    "content": [{ "type": "text", "text": format!("output {n}\n{}", now_text()) }] }),
            },
        ];
        before_the_question = left.len();
    }
    fresh.push(user("second", "and now?".into()));
    let plan = engine.advance(fresh, &call(now + 5_000)).await.unwrap();
    left.extend(edited(&plan.edits));
    (before_the_question, left.len())
}

fn now_text() -> String {
    "lorem ipsum dolor sit amet\n".repeat(400)
}

fn user(key: &str, text: String) -> IncomingMessage {
    IncomingMessage { key: key.into(), message: json!({ "role": "user", "content": text, "timestamp": 1 }) }
}

fn edited(edits: &[context_engine::Edit]) -> Vec<String> {
    edits.iter().map(|edit| edit.key().to_owned()).collect()
}

#[tokio::test]
async fn bound_model_waits_for_the_user_and_another_does_not() {
    let (during, _) = turn_of_80_calls(Binding::None).await;
    assert!(during > 0, "outputs leave during the turn");
    for binding in [Binding::Drops, Binding::Refuses] {
        let (during, after) = turn_of_80_calls(binding).await;
        assert_eq!(during, 0, "{binding:?}: nothing changes before the reasoning of a running turn");
        assert!(
            after > 80,
            "{binding:?}: outputs and all reasoning behind them leave with the next question"
        );
    }
}
