//! Rolls: when they happen, what they replace, and how they are remembered.
//!
//! A roll is recorded with the turn in which it happened, together with its receipt. So a resumed session shows
//! what it showed before, also in a harness that keeps only its raw messages.

use std::collections::HashSet;

use context_model::id::ObjectId;
use context_model::marker;
use context_model::pricing::{Policy, Receipt, Roll};
use serde_json::{Value, json};

use crate::engine::{Engine, Inner};
use crate::error::Result;
use crate::piece::{Form, Piece, PieceKind};
use crate::project::{Call, Edit, Plan};
use crate::sight::Sight;
use crate::state::{State, Work};

/// What was rolled in the part of the conversation that is visible, and the receipts of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rolled {
    results: HashSet<ObjectId>,
    /// Calls whose results are short excerpts.
    excerpts: HashSet<ObjectId>,
    /// Calls whose arguments are collapsed.
    arguments: HashSet<ObjectId>,
    receipts: Vec<Receipt>,
}

impl Engine {
    /// Rolls everything that is stale now, because a person asked for it.
    ///
    /// # Errors
    /// What the store reports; nothing is rolled then.
    pub async fn roll_now(&self, call: &Call) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut state = self.inner.lock().await?;
        let policy = state.policy(call);
        if let Some(roll) = state.sight.asked(&policy) {
            self.inner.execute(&mut state, &roll, &mut plan).await?;
        }
        state.finish(&mut plan);
        Ok(plan)
    }

    /// Takes back the latest roll of this process: its messages are to be shown in full again, until a later
    /// roll takes them once more.
    ///
    /// # Errors
    /// What the store reports; nothing is taken back then.
    pub async fn undo_roll(&self) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut state = self.inner.lock().await?;
        if let Some(roll) = state.rolls.last().cloned() {
            let mut entry = objects_of(state.sight.pieces_of(&roll), |piece| piece.form);
            entry["undone"] = Value::Bool(true);
            self.inner.note_roll(&mut state, &entry).await?;
            state.rolls.pop();
            state.sight.undo(&roll);
            plan.edits = state.sight.pieces_of(&roll).filter_map(restored).collect();
        }
        state.finish(&mut plan);
        Ok(plan)
    }

    /// The receipts of the session's rolls that are in effect, oldest first.
    ///
    /// # Errors
    /// `CLOSED`.
    pub async fn receipts(&self) -> Result<Vec<Receipt>> {
        Ok(self.inner.lock().await?.rolled.receipts.clone())
    }
}

impl Inner {
    /// Executes a roll: records it, and adds its edits to a plan.
    pub async fn execute(&self, state: &mut State, roll: &Roll, plan: &mut Plan) -> Result<()> {
        let receipt = roll.receipt();
        let mut entry = objects_of(state.sight.pieces_of(roll), |piece| piece.next);
        entry["receipt"] = json!(receipt);
        self.note_roll(state, &entry).await?;
        let edits: Vec<Edit> = state.sight.apply(roll).into_iter().filter_map(replaced).collect();
        state.issue(&edits);
        plan.edits.extend(edits);
        plan.receipt = Some(receipt);
        state.rolls.push(roll.clone());
        Ok(())
    }

    async fn note_roll(&self, state: &mut State, entry: &Value) -> Result<()> {
        if state.chat.turns > 0 {
            for attempt in 0.. {
                let mut work = Work::default();
                let turn = state.chat.current_turn().to_string();
                work.chat.append(&["turns", &turn, "rolls"], entry.clone());
                match self.save(state, work).await {
                    Ok(_) => break,
                    Err(error) => self.retry(state, attempt, error).await?,
                }
            }
        }
        state.rolled.note(entry);
        Ok(())
    }
}

impl Rolled {
    /// Reads what is rolled from a chat's turns.
    pub fn of_turns<'a>(turns: impl Iterator<Item = &'a Value>) -> Self {
        let mut rolled = Self::default();
        for turn in turns {
            for entry in list(turn, "rolls") {
                rolled.note(entry);
            }
        }
        rolled
    }

    /// How many rolls are in effect.
    pub fn count(&self) -> usize {
        self.receipts.len()
    }

    /// What rolls have made of a call's result.
    pub fn form_of(&self, object: &ObjectId) -> Form {
        match object {
            id if self.results.contains(id) => Form::Reference,
            id if self.excerpts.contains(id) => Form::Faded,
            _ => Form::Born,
        }
    }

    fn note(&mut self, entry: &Value) {
        let undone = entry.get("undone") == Some(&Value::Bool(true));
        for id in list(entry, "results").filter_map(Value::as_str).map(ObjectId::new) {
            self.excerpts.remove(&id);
        }
        let sets = [
            ("results", &mut self.results),
            ("excerpts", &mut self.excerpts),
            ("arguments", &mut self.arguments),
        ];
        for (name, set) in sets {
            for id in list(entry, name).filter_map(Value::as_str).map(ObjectId::new) {
                if undone {
                    set.remove(&id);
                } else {
                    set.insert(id);
                }
            }
        }
        if undone {
            self.receipts.pop();
        } else if let Some(receipt) = entry.get("receipt")
            && let Ok(receipt) = serde_json::from_value(receipt.clone())
        {
            self.receipts.push(receipt);
        }
    }
}

impl State {
    /// The circumstances of a call as the decision wants them.
    pub fn policy(&mut self, call: &Call) -> Policy {
        let idle = self.last_call_ms.is_some_and(|last| call.now_ms.saturating_sub(last) > call.cache_ttl_ms);
        let switched = !self.cached_model.is_empty() && self.cached_model != call.model;
        self.model.clone_from(&call.model);
        Policy {
            lookback_blocks: call.lookback_blocks,
            cache_dead: idle || switched,
            // The ledger counts estimated tokens, so the window is measured in them too.
            context_window: (call.context_window as f64 / self.accounting.factor(&call.model)) as u64,
            only_at_user_turn: call.only_at_user_turn,
            at_user_turn: call.at_user_turn,
            ..Policy::new(call.prices)
        }
    }

    /// Adds to a plan what it leads to.
    pub fn finish(&self, plan: &mut Plan) {
        let factor = self.accounting.factor(&self.model);
        plan.context_tokens = (self.sight.tokens() as f64 * factor) as u64;
        plan.stale_tokens = (self.sight.stale_tokens() as f64 * factor) as u64;
    }

    /// Begins anew with what is visible. The record of rolls stays.
    pub fn forget_sight(&mut self) {
        self.sight = Sight::default();
        self.rolls.clear();
        self.pending.clear();
        self.open_calls.clear();
        self.issued.clear();
        self.last_call_ms = None;
    }

    /// Whether the arguments of an object's call are collapsed in what is visible: by a roll of this process, or by
    /// an earlier one, whose edit the harness has kept.
    pub fn hides_arguments(&self, object: &ObjectId) -> bool {
        self.sight.hides_arguments(object) || self.rolled.arguments.contains(object)
    }

    /// Remembers the tags of the markers that edits put into the transcript.
    fn issue(&mut self, edits: &[Edit]) {
        for edit in edits {
            if let Edit::Arguments { calls, .. } = edit {
                self.issued.extend(calls.iter().flat_map(|call| marker::tags_in(&call.args)));
            }
        }
    }

    /// While what is visible is rebuilt: rolls again what was rolled of a call whose result has just come by, as
    /// this text.
    pub fn repeat_rolls(&mut self, object: &ObjectId, text: &str) {
        let result = self.rolled.form_of(object);
        let hidden = self.rolled.arguments.contains(object);
        let arguments = if hidden { Form::Reference } else { Form::Born };
        let pieces = self.sight.roll_again(object, result, arguments);
        let mut edits: Vec<Edit> = pieces.into_iter().filter_map(replaced).collect();
        edits.retain(|edit| !matches!(edit, Edit::Result { text: Some(new), .. } if new == text));
        self.issue(&edits);
        self.pending.extend(edits);
    }
}

/// The calls of a roll as the chat records them: whose results are references, whose results are short excerpts,
/// and whose arguments are collapsed.
fn objects_of<'a>(pieces: impl Iterator<Item = &'a Piece>, form: impl Fn(&Piece) -> Form) -> Value {
    let (mut results, mut excerpts, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        match &piece.kind {
            PieceKind::Fixed => {}
            PieceKind::Result { object, .. } => {
                let faded = form(piece) == Form::Faded;
                if faded { &mut excerpts } else { &mut results }.push(object.clone());
            }
            PieceKind::Arguments { calls } => {
                arguments.extend(calls.iter().filter_map(|call| call.object.clone()));
            }
        }
    }
    json!({ "results": results, "excerpts": excerpts, "arguments": arguments })
}

fn replaced(piece: &Piece) -> Option<Edit> {
    Some(match &piece.kind {
        PieceKind::Fixed => return None,
        PieceKind::Result { object, excerpts, reference, .. } => {
            let text = match piece.form {
                Form::Born => excerpts.born.clone(),
                Form::Faded => excerpts.faded.clone(),
                Form::Reference => Some(reference.clone()),
            };
            Edit::Result { key: piece.key.clone(), object: object.clone(), text }
        }
        PieceKind::Arguments { calls } => Edit::Arguments { key: piece.key.clone(), calls: calls.clone() },
    })
}

/// What shows a piece as it was before any roll: what was an excerpt is one again.
fn restored(piece: &Piece) -> Option<Edit> {
    match &piece.kind {
        PieceKind::Arguments { .. } => Some(Edit::Arguments { key: piece.key.clone(), calls: Vec::new() }),
        _ => replaced(piece),
    }
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}
