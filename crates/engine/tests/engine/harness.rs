//! A harness that does anything, and applies the plans as they come.

use crate::bench::{Backend, Bench};
use crate::bound::Provider;
use crate::edits::{Message, apply, incoming};
use crate::forms;
use context_engine::{Call, Edit, Engine, Plan};
use context_model::error::ErrorCode;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Toolcall;
use context_model::time::TxId;
use context_projection::{Binding, Prices};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

/// The circumstances of a call that rolls whatever pays.
pub fn call(now_ms: i64) -> Call {
    Call {
        model: "m".into(),
        prices: Prices::new(0.1, 1.25),
        cache_ttl_ms: 300_000,
        now_ms,
        system_tokens: 1_000,
        rolls: true,
        shortens: true,
        ..Call::default()
    }
}

/// The output of a tool: the object and its whole text.
#[derive(Clone, Debug)]
struct Output {
    id: ObjectId,
    text: String,
}

/// A harness that keeps a conversation, and applies plans as one does.
pub struct Harness {
    bench: Bench,
    engine: Engine,
    messages: Vec<Message>,
    /// The number of them that the engine has.
    sent: usize,
    made: usize,
    now: i64,
    points: Vec<(usize, TxId)>,
    outputs: Vec<Output>,
    /// The extent of the last plan besides the effects of a roll: everything, after a rebuild.
    rebuilt: bool,
    /// The provider, if it checks what reasoning was bound to.
    provider: Option<Provider>,
}

#[derive(Clone, Debug)]
pub enum Step {
    /// A user's message.
    Ask,
    /// An answer with calls, each with a tool, a size of its output, and whether the harness reports it at once.
    Work(Vec<(usize, usize, bool)>),
    Prose,
    /// So many answers with one short call each.
    Busy(usize),
    Deactivate(usize),
    Pin(usize),
    Unpin(usize),
    Activate(usize),
    RollNow,
    Undo,
    /// A long pause: the provider has forgotten the prefix.
    Idle,
    /// Back to an earlier point: what comes after it is cut off.
    Branch(usize),
    /// The harness puts a summary in place of the first messages.
    Compact(usize),
    /// Another process takes over.
    Reopen,
}

pub fn step() -> impl Strategy<Value = Step> {
    let n = 0..8_usize;
    let calls = prop::collection::vec((0..4_usize, 0..6_usize, any::<bool>()), 1..4);
    prop_oneof![
        3 => Just(Step::Ask),
        8 => calls.prop_map(Step::Work),
        1 => Just(Step::Prose),
        3 => (1..9_usize).prop_map(Step::Busy),
        2 => n.clone().prop_map(Step::Deactivate),
        1 => n.clone().prop_map(Step::Pin),
        1 => n.clone().prop_map(Step::Unpin),
        1 => n.clone().prop_map(Step::Activate),
        1 => Just(Step::RollNow),
        1 => Just(Step::Undo),
        1 => Just(Step::Idle),
        1 => n.clone().prop_map(Step::Branch),
        1 => n.prop_map(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

/// The length of an output in lines: some are shown as excerpts, some are shorter than a reference.
const LINES: [usize; 6] = [0, 1, 20, 60, 400, 2_000];
const TOOLS: [&str; 4] = ["bash", "custom", "write", "read"];

fn text_of_lines(name: &str, lines: usize) -> String {
    (0..lines).map(|n| format!("{name} line {n}: lorem ipsum dolor sit amet\n")).collect()
}

impl Harness {
    pub async fn new() -> Self {
        let bench = Bench::new(Backend::Memory);
        for name in ["a", "b"] {
            bench.write(name, text_of_lines(name, 60));
        }
        let engine = bench.open("s").await;
        let points = vec![(0, engine.point().await.unwrap())];
        Self {
            bench,
            engine,
            messages: Vec::new(),
            sent: 0,
            made: 0,
            now: 1_700_000_000_000,
            points,
            outputs: Vec::new(),
            rebuilt: true,
            provider: None,
        }
    }

    /// One whose provider refuses reasoning that it finds behind another prefix than before.
    pub async fn bound() -> Self {
        Self { provider: Some(Provider::default()), ..Self::new().await }
    }

    fn call(&self) -> Call {
        let binding = if self.provider.is_some() { Binding::Refuses } else { Binding::None };
        Call { binding, ..call(self.now) }
    }

    /// True if a user has to speak before this step: an answer follows a question or a result.
    pub fn needs_a_user(&self, step: &Step) -> bool {
        let answers = matches!(step, Step::Work(_) | Step::Busy(_) | Step::Prose);
        let last = self.messages.last().map(|message| &message.raw["role"]);
        answers && last.is_none_or(|role| role == "assistant")
    }

    fn quiet(&self) -> Call {
        Call { only_at_user_turn: true, ..self.call() }
    }

    fn push(&mut self, raw: Value) {
        self.made += 1;
        self.messages.push(Message { key: format!("m{}", self.made), shown: raw.clone(), raw });
    }

    fn answer(&mut self, blocks: Value, reason: &str) {
        self.now += 5_000;
        if let Some(provider) = &mut self.provider {
            provider.sign(&self.messages, &format!("m{}", self.made + 1), &blocks);
        }
        self.push(json!({
            "role": "assistant", "content": blocks, "timestamp": self.now, "stopReason": reason, "model": "m",
        }));
    }

    pub async fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Ask => {
                let long = text_of_lines("question", [0, 0, 50][self.made % 3]);
                self.push(json!({ "role": "user", "content": format!("question {}\n{long}", self.made) }));
            }
            Step::Prose => {
                let long = text_of_lines("answer", [0, 20][self.made % 2]);
                let text = format!("so it is {}\n{long}", self.made);
                self.answer(json!([{ "type": "text", "text": text }]), "stop");
            }
            Step::Work(calls) => self.work(calls).await,
            Step::Busy(count) => {
                for n in 0..*count {
                    self.work(&[(n % TOOLS.len(), n % 3, n % 2 == 0)]).await;
                    self.advance().await?;
                }
            }
            Step::Deactivate(n) => drop(self.engine.deactivate(&self.name(*n)).await.unwrap()),
            Step::Pin(n) => {
                self.engine.pin(&self.name(*n)).await.unwrap();
                // No roll happens, so the next steps are as if the caller had not asked.
                self.engine.preview_roll(&self.call()).await.unwrap();
                self.engine.held_back(&self.call()).await.unwrap();
            }
            Step::Unpin(n) => drop(self.engine.unpin(&self.name(*n)).await.unwrap()),
            Step::Activate(n) => drop(self.engine.activate(&self.name(*n), None).await.unwrap()),
            Step::RollNow => {
                let preview = self.engine.preview_roll(&self.call()).await.unwrap();
                let plan = self.engine.roll_now(&self.call()).await.unwrap();
                let told = preview.as_ref().map(|preview| &preview.receipt);
                prop_assert_eq!(plan.receipt.as_ref(), told, "what a person was told before");
                let collapsed = |one: &ObjectId| {
                    plan.edits.iter().any(|edit| match edit {
                        Edit::Result { object, text: Some(_), .. } => object == one,
                        Edit::Gone { .. } => true,
                        _ => false,
                    })
                };
                prop_assert!(preview.iter().flat_map(|preview| &preview.outputs).all(collapsed));
                self.apply(&plan, 0)?;
            }
            Step::Undo => match self.engine.undo_roll().await {
                Ok(plan) => apply(&mut self.messages, &plan),
                Err(error) => {
                    prop_assert_eq!(error.code(), ErrorCode::InvalidArgument);
                    prop_assert!(self.provider.is_some(), "{}", error);
                }
            },
            Step::Idle => self.now += 3_600_000,
            Step::Branch(n) => self.branch(*n).await,
            Step::Compact(n) => self.compact(*n).await,
            Step::Reopen => {
                self.engine = self.bench.open("s").await;
                self.rebuild(self.sent).await;
            }
        }
        self.advance().await
    }

    /// An object of the session, or a name that it does not have.
    fn name(&self, n: usize) -> String {
        self.outputs.iter().rev().nth(n).map_or("nothing".into(), |output| output.id.to_string())
    }

    async fn work(&mut self, calls: &[(usize, usize, bool)]) {
        let first = self.made;
        let (mut blocks, mut results) = (Vec::new(), Vec::new());
        if first.is_multiple_of(2) {
            let thought = text_of_lines(&format!("thought {first}"), 1 + first % 40);
            let signature = ["", "signed"][first / 2 % 2];
            blocks.push(json!({ "type": "thinking", "thinking": thought, "thinkingSignature": signature }));
        }
        let prose = text_of_lines(&format!("plan {first}"), first % 5);
        blocks.push(json!({ "type": "text", "text": format!("let me see\n{prose}") }));
        for (place, (tool, size, reported)) in calls.iter().enumerate() {
            let (tool, lines) = (TOOLS[*tool], LINES[*size]);
            let (id, file) = (format!("call_{first}_{place}"), ["a", "b"][size % 2]);
            let long = text_of_lines("argument", lines.min(80));
            let args = match tool {
                "write" => json!({ "path": format!("out{place}"), "content": long }),
                "read" => json!({ "path": file }),
                "bash" => json!({ "command": format!("show {id}") }),
                _ => json!({ "what": long, "n": size }),
            };
            let text = match tool {
                "read" => std::fs::read_to_string(self.bench.path(file)).unwrap(),
                "write" => "written".to_owned(),
                _ => text_of_lines(&id, lines),
            };
            blocks.push(json!({ "type": "toolCall", "id": id, "name": tool, "arguments": args }));
            results.push((id, tool, args, text, *reported));
        }
        self.answer(Value::Array(blocks), "toolUse");
        for (id, tool, args, text, reported) in results {
            let mut shown = text.clone();
            if reported {
                let birth = self
                    .engine
                    .receive(Toolcall::new(id.clone(), tool, args.as_object().unwrap().clone(), text.clone()))
                    .await
                    .unwrap();
                if let Some(header) = birth.header {
                    shown = format!("{header}\n{text}");
                }
            }
            self.outputs.push(Output { id: ObjectId::new(id.as_str()), text });
            self.push(json!({
                "role": "toolResult", "toolCallId": id, "toolName": tool, "isError": false,
                "content": [{ "type": "text", "text": shown }], "timestamp": self.now,
            }));
        }
    }

    async fn branch(&mut self, n: usize) {
        let (length, tx) = self.points[n % self.points.len()];
        self.points.retain(|(_, point)| *point <= tx);
        self.messages.truncate(length);
        restore(&self.engine, tx).await;
        let kept: Vec<&Value> = self.messages.iter().map(|message| &message.raw).collect();
        self.outputs.retain(|output| kept.iter().any(|raw| raw["toolCallId"] == output.id.as_str()));
        self.rebuild(length).await;
    }

    async fn compact(&mut self, n: usize) {
        // A call and its results are not torn apart.
        let users = self.messages.iter().enumerate().filter(|(_, m)| m.raw["role"] == "user");
        let Some((cut, _)) = users.skip(1).nth(n % 3) else { return };
        let summary = json!({ "role": "compactionSummary", "summary": format!("{cut} messages") });
        self.made += 1;
        let summary = Message { key: format!("m{}", self.made), raw: summary.clone(), shown: summary };
        self.messages.splice(..cut, [summary]);
        self.points.clear();
        self.rebuild(self.messages.len()).await;
        self.points.push((self.messages.len(), self.engine.point().await.unwrap()));
    }

    /// Acts as a harness that stores no edits: all its messages are handed over as they are.
    async fn rebuild(&mut self, recorded: usize) {
        for message in &mut self.messages {
            message.shown = message.raw.clone();
        }
        let plan = self.engine.resync(incoming(&self.messages, true), recorded, &self.quiet()).await.unwrap();
        assert_eq!(plan.edits, []);
        (self.sent, self.rebuilt) = (self.messages.len(), true);
    }

    async fn advance(&mut self) -> Result<(), TestCaseError> {
        let fresh = incoming(&self.messages[self.sent..], true);
        let first = std::mem::replace(&mut self.sent, self.messages.len());
        let plan = self.engine.advance(fresh, &self.call()).await.unwrap();
        if self.rebuilt {
            apply(&mut self.messages, &plan);
            self.rebuilt = false;
        } else {
            self.apply(&plan, first)?;
        }
        self.points.push((self.messages.len(), self.engine.point().await.unwrap()));
        self.provider.iter().try_for_each(|provider| provider.check(&self.messages))
    }

    /// Applies a plan whose new messages begin at a place: messages that were sent before change by a roll alone, and unsent
    /// ones are not collapsed.
    fn apply(&mut self, plan: &Plan, first: usize) -> Result<(), TestCaseError> {
        for edit in &plan.edits {
            let place = self.messages.iter().position(|message| message.key == edit.key());
            prop_assert!(place.is_some(), "an edit of a message that is not there: {edit:?}");
            if place < Some(first) {
                prop_assert!(plan.receipt.is_some(), "a sent message changes without a roll: {edit:?}");
            } else if let Edit::Result { text: Some(text), .. } = edit {
                prop_assert!(first == 0 || !text.starts_with("toolcall_ref"), "collapsed unseen: {text}");
            }
        }
        apply(&mut self.messages, plan);
        Ok(())
    }

    /// Another process that knows nothing but the store and the messages, edited or not, shows the same.
    pub async fn check(&self) -> Result<(), TestCaseError> {
        for raw in [true, false] {
            let engine = self.bench.open("s").await;
            let mut messages = self.messages.clone();
            if raw {
                messages.iter_mut().for_each(|message| message.shown = message.raw.clone());
            }
            engine.resync(incoming(&messages, raw), messages.len(), &self.quiet()).await.unwrap();
            let plan = engine.advance(Vec::new(), &self.quiet()).await.unwrap();
            prop_assert!(raw || plan.edits.is_empty(), "edits that are there already: {:?}", plan.edits);
            apply(&mut messages, &plan);
            for (rebuilt, mine) in messages.iter().zip(&self.messages) {
                prop_assert_eq!(rebuilt.shown.to_string(), mine.shown.to_string(), "raw: {}", raw);
            }
            let sent: Vec<(&Value, &Value)> = self.messages.iter().map(|m| (&m.raw, &m.shown)).collect();
            forms::check_request(&engine, &sent).await?;
            prop_assert_eq!(engine.assemble().await.unwrap(), self.engine.assemble().await.unwrap());
        }
        Ok(())
    }

    /// Whatever was collapsed can be had again, byte for byte.
    pub async fn check_outputs(&self) -> Result<(), TestCaseError> {
        for output in &self.outputs {
            let change = self.engine.activate(output.id.as_str(), None).await.unwrap();
            prop_assert_eq!(change.content.as_ref(), Some(&output.text));
        }
        Ok(())
    }
}

async fn restore(engine: &Engine, tx: TxId) {
    engine.restore(&SessionId::new("s").unwrap(), tx, None).await.unwrap();
}
