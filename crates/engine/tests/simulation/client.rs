//! A harness: it keeps a conversation, hands over what is new, and applies plans.

use std::collections::BTreeSet;
use std::sync::Arc;

use context_engine::{Call, CollapsedCall, Edit, Engine, EngineError, IncomingMessage, Plan, TextEdit};
use context_model::id::{ObjectId, SessionId};
use context_model::time::{Timestamp, TxId};
use context_projection::Prices;
use serde_json::{Value, json};

use crate::conversation::{Compaction, Message, Open, Output, Point, Pointer};
use crate::faults::Faulty;
use crate::knowledge::{Heard, Held, Note, Rebuilt};
use crate::listener::Listener;
use crate::violation::{Kind, Outcome, violation};
use crate::wire::Wire;
use crate::world::World;

/// The way in which a harness keeps the edits and notices of plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As Pi: edits and notices are stored with the conversation, and handed over with it.
    Stores,
    /// As `transformContext`: the conversation stays as it is, and a rebuild begins without edits and notices.
    Raw,
}

pub struct Client {
    pub session: String,
    pub style: Style,
    /// On which machine it runs.
    pub machine: usize,
    pub store: Arc<Faulty>,
    pub wire: Arc<Wire>,
    /// None after the process has ended.
    pub engine: Option<Engine>,
    /// The listener on this engine.
    pub listener: Listener,
    pub messages: Vec<Message>,
    /// The number of them that the engine has.
    pub sent: usize,
    pub points: Vec<Point>,
    /// The host's summaries on this branch, one after the other; the last one counts.
    pub compactions: Vec<Compaction>,
    /// Calls of the answer that the model is giving.
    pub open: Vec<Open>,
    /// Notices that came while the model was answering; they follow the answer's results.
    pub waiting: Vec<(String, Vec<Note>)>,
    /// The engine may lack something: the conversation has to be handed over again.
    pub doubt: bool,
    pub rebuilt: Rebuilt,
    /// The conversation was handed over again: a process's notes beside its messages are lost.
    pub recovered: bool,
    /// A write may have been made and reported as failed, so that the engine's state is behind its store's.
    pub unsure: bool,
    /// An event was delivered while its store could not be used: the next flush sees to it.
    pub owed: bool,
    /// This client has heard of all changes on the disk.
    pub clean: bool,
    /// Files without a link at their path when the client last used it or heard of it. Only an event can report a later link:
    /// the engine asks the disk about paths through links alone.
    pub plain: BTreeSet<usize>,
    /// The outputs that the engine has acknowledged.
    pub outputs: Vec<Output>,
    pub held: Vec<Held>,
    pub now: i64,
    made: usize,
}

impl Client {
    pub fn new(session: &str, style: Style, machine: usize, store: Arc<Faulty>) -> Self {
        let session_id = SessionId::new(session).unwrap();
        let start = Point { length: 0, compactions: 0, session: session_id, tx: TxId(0), times: None };
        Self {
            session: session.to_owned(),
            style,
            machine,
            store,
            wire: Arc::default(),
            engine: None,
            listener: Listener::default(),
            messages: Vec::new(),
            sent: 0,
            points: vec![start],
            compactions: Vec::new(),
            open: Vec::new(),
            waiting: Vec::new(),
            doubt: false,
            rebuilt: Rebuilt::new(),
            recovered: false,
            unsure: false,
            owed: false,
            clean: true,
            plain: BTreeSet::new(),
            outputs: Vec::new(),
            held: Vec::new(),
            now: 1_700_000_000_000,
            made: 0,
        }
    }

    /// The circumstances of the next call.
    pub fn call(&self, at_user_turn: bool) -> Call {
        Call {
            model: "m".into(),
            prices: Prices::new(0.1, 1.25),
            cache_ttl_ms: 300_000,
            now_ms: self.now,
            system_tokens: 1_000,
            at_user_turn,
            rolls: true,
            shortens: true,
            ..Call::default()
        }
    }

    /// A number that no other message or call of this conversation has.
    pub fn fresh(&mut self) -> usize {
        self.made += 1;
        self.made
    }

    /// Leaves out this many numbers.
    pub fn skip(&mut self, count: usize) {
        self.made += count;
    }

    pub fn push(&mut self, raw: Value) -> &mut Message {
        let key = format!("m{}", self.fresh());
        self.messages.push(Message {
            key,
            shown: raw.clone(),
            raw,
            is_notice: false,
            gone: false,
            notes: Vec::new(),
            object: None,
            output: String::new(),
            pointers: Vec::new(),
        });
        self.messages.last_mut().unwrap()
    }

    pub fn say(&mut self, role: &str, text: &str) {
        self.now += 5_000;
        let stamp = self.now;
        self.push(match role {
            "user" => json!({ "role": "user", "content": text, "timestamp": stamp }),
            _ => json!({
                "role": "assistant", "content": [{ "type": "text", "text": text }], "timestamp": stamp,
                "stopReason": "stop", "model": "m",
            }),
        });
    }

    /// The model's answer ends: it and the results of its calls become messages.
    pub fn close_answer(&mut self) {
        if self.open.is_empty() {
            return;
        }
        self.now += 5_000;
        let stamp = self.now;
        let open = std::mem::take(&mut self.open);
        let mut blocks = vec![json!({ "type": "text", "text": "let me see" })];
        blocks.extend(open.iter().map(
            |one| json!({ "type": "toolCall", "id": one.call_id, "name": one.tool, "arguments": one.args }),
        ));
        self.push(json!({
            "role": "assistant", "content": blocks, "timestamp": stamp, "stopReason": "toolUse", "model": "m",
        }));
        for one in open {
            let (object, header) = one.born.map_or((None, None), |(object, header)| (Some(object), header));
            let text = header.map_or_else(|| one.output.clone(), |line| format!("{line}\n{}", one.output));
            let message = self.push(json!({
                "role": "toolResult", "toolCallId": one.call_id, "toolName": one.tool,
                "isError": one.is_error, "content": [{ "type": "text", "text": text }], "timestamp": stamp,
            }));
            message.object = object;
            message.output = one.output;
            message.notes = one.notes;
            message.pointers = one.pointers;
        }
        for (text, notes) in std::mem::take(&mut self.waiting) {
            self.notice(text, notes);
        }
    }

    /// Lines about files become part of the request, behind the results that are on their way.
    pub fn notice(&mut self, text: String, notes: Vec<Note>) {
        if !self.open.is_empty() {
            self.waiting.push((text, notes));
            return;
        }
        let message = self.push(json!({ "role": "custom", "content": text }));
        message.is_notice = true;
        message.notes = notes;
    }

    /// The place of the first message that is in the request.
    pub fn cut(&self) -> usize {
        self.compactions.last().map_or(0, |compaction| compaction.first)
    }

    /// The messages that are in the request.
    pub fn visible(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().skip(self.cut())
    }

    /// The host summarizes the messages before one, as Pi does: any but a result may be the first that stays. `false` if it
    /// cannot.
    pub fn compact(&mut self, keep: usize) -> bool {
        let may_be_first = |place: &usize| self.messages[*place].role() != "toolResult";
        let first: Vec<usize> = (self.cut() + 1..self.messages.len()).filter(may_be_first).collect();
        let Some(first) = first.iter().rev().nth(keep % first.len().max(1)).copied() else { return false };
        self.now += 5_000;
        let key = format!("c{}", self.fresh());
        self.compactions.push(Compaction { first, key, now: self.now });
        true
    }

    /// Returns the messages for the engine: those from a place on, after the summary of those before them.
    pub fn incoming(&self, from: usize) -> Vec<IncomingMessage> {
        let summary = self.compactions.last().filter(|_| from == 0).map(|compaction| {
            let Compaction { key, now, .. } = compaction;
            let message = json!({ "role": "compactionSummary", "summary": "so far", "timestamp": now });
            IncomingMessage { key: key.clone(), message }
        });
        summary.into_iter().chain(self.handed(from.max(self.cut()), self.messages.len())).collect()
    }

    /// The messages between two places as they are handed over.
    pub fn handed(&self, from: usize, to: usize) -> Vec<IncomingMessage> {
        let all = self.messages.iter().take(to).skip(from);
        let is_raw = self.style == Style::Raw;
        let left = |message: &&Message| message.gone || !is_raw && message.shown.is_null();
        let handed = all.filter(|message| !(left(message) || message.is_notice && is_raw));
        handed
            .map(|message| {
                let kept = if self.style == Style::Raw { &message.raw } else { &message.shown };
                IncomingMessage { key: message.key.clone(), message: kept.clone() }
            })
            .collect()
    }

    /// Returns the number of incoming messages before a place.
    pub fn recorded(&self, length: usize) -> usize {
        self.incoming(0).len() - self.incoming(length).len()
    }

    /// The process ends.
    pub fn crash(&mut self, keep: bool) {
        self.engine = None;
        self.doubt = true;
        if keep {
            self.close_answer();
        } else {
            self.open.clear();
            self.waiting.clear();
            // Objects that were activated or restored since the last point are gone with it.
            self.held.retain(|held| held.pinned);
            let (length, compactions) =
                self.points.last().map_or((0, 0), |point| (point.length, point.compactions));
            self.messages.truncate(length);
            self.compactions.truncate(compactions);
        }
    }

    /// Returns the statements of the request about files, one message after the other; those on their way come last.
    pub fn heard(&self) -> Vec<Heard> {
        let sent = self.visible().filter(|message| !message.gone);
        // An answer whose lines a compaction has removed says so, and nothing else.
        let has = |pointer: &Pointer| self.visible().any(|one| one.object.as_ref() == Some(&pointer.object));
        let sent = sent.map(|message| Heard {
            notes: if message.pointers.iter().all(has) { message.notes.clone() } else { Vec::new() },
            whole: message.is_whole(),
            open: false,
        });
        let open = self.open.iter().map(|one| &one.notes);
        let open = open.chain(self.waiting.iter().map(|(_, notes)| notes));
        let open = open.map(|notes| Heard { notes: notes.clone(), whole: true, open: true });
        sent.chain(open).collect()
    }

    /// Shows messages as a plan says. Returns the keys that it names and that are not there.
    pub fn apply(&mut self, plan: &Plan) -> Vec<String> {
        let mut unknown = Vec::new();
        let cut = self.cut();
        for edit in &plan.edits {
            let Some(message) = self.messages.iter_mut().skip(cut).find(|message| message.key == edit.key())
            else {
                unknown.push(edit.key().to_owned());
                continue;
            };
            // The arguments that an earlier process has collapsed are a part of the message that was handed over.
            let is_more = matches!(edit, Edit::Message { calls, .. } if !calls.is_empty());
            if !is_more || message.shown.is_null() {
                message.shown = message.raw.clone();
            }
            match edit {
                Edit::Result { text: Some(text), object, .. } => {
                    message.object = Some(object.clone());
                    message.shown["content"] = json!([{ "type": "text", "text": text }]);
                }
                Edit::Result { text: None, .. } => {}
                Edit::Message { calls, texts, .. } => collapse(&mut message.shown, calls, texts),
                Edit::Gone { .. } => message.shown = Value::Null,
            }
        }
        unknown
    }

    /// Notes that some files were just used, or mentioned.
    pub fn uses(&mut self, world: &World, files: impl IntoIterator<Item = usize>) {
        for file in files {
            if world.is_behind_link(file) {
                self.plain.remove(&file);
            } else {
                self.plain.insert(file);
            }
        }
    }

    /// All that is in the request was handed over again.
    pub fn read_again(&mut self, world: &World) {
        let files = world.files.len();
        self.uses(world, 0..files);
        self.sent = self.messages.len();
        self.recovered = true;
        let held = std::mem::take(&mut self.held);
        // A restored text is in another result, which need not be the one that has the same text by chance.
        let has = |held: &Held| {
            let is_own = |one: &Message| one.object.as_ref() == Some(&held.object);
            let is_unique = self.outputs.iter().filter(|output| output.text.contains(&held.text)).count() < 2;
            self.visible().any(|one| (is_unique || is_own(one)) && one.shows(&held.text))
        };
        self.held = held.into_iter().filter(has).collect();
        self.rebuilt = (0..files).collect();
    }

    /// The harness notes where it is.
    pub fn point(&mut self, session: SessionId, tx: TxId, times: [Timestamp; 2]) {
        let (length, compactions) = (self.sent, self.compactions.len());
        self.points.push(Point { length, compactions, session, tx, times: Some(times) });
    }

    /// An error is right where something was wrong with the store.
    pub fn allow(&self, faulty: bool, call: &str, error: &EngineError) -> Outcome {
        if faulty { Ok(()) } else { violation(Kind::Failed, format!("{call} of {}: {error}", self.session)) }
    }

    pub fn document(&self, kind: &str) -> ObjectId {
        ObjectId::new(format!("{kind}:{}", self.session))
    }
}

fn collapse(message: &mut Value, calls: &[CollapsedCall], texts: &[TextEdit]) {
    assert_eq!(texts, [], "these clients say nothing long");
    let blocks = message["content"].as_array_mut().unwrap();
    let made = blocks.iter_mut().filter(|block| block["type"] == "toolCall");
    for (position, block) in made.enumerate() {
        if let Some(call) = calls.iter().find(|call| call.position == position) {
            block["arguments"] = Value::Object(call.args.clone());
        }
    }
}
