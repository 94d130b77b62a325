//! A session's state in memory, and how it is saved.
//!
//! Architecture invariant: memory never runs ahead of the store. A change is made in memory, written in one
//! transaction, and taken back when the write fails.

use std::collections::{HashMap, HashSet};

use context_model::collapse::{Stay, collapsing};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::patch::Patch;
use context_model::pricing::Roll;
use context_model::session::{Change, Sets};
use context_model::time::TxId;
use context_store::{Receipt, Transaction, Write};
use serde_json::{Value, json};

use crate::catalog::{Catalog, Kind, Meta};
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::piece::Excerpts;
use crate::project::Edit;
use crate::rolls::Rolled;
use crate::sight::Sight;
use crate::taking::OpenCalls;
use crate::usage::Accounting;
use crate::versions::KnownVersion;
use crate::view::View;

/// What a session holds in memory.
#[derive(Default)]
pub(crate) struct State {
    pub sets: Sets,
    pub catalog: Catalog,
    pub chat: Chat,
    /// The turn in which each tool call of the active set was made or last activated.
    pub stays: HashMap<ObjectId, usize>,
    /// What the model's request shows at the moment.
    pub sight: Sight,
    /// The transaction of the session document that `sets` equals.
    pub session_tx: Option<TxId>,
    /// The transaction of the chat document that `chat` describes.
    pub chat_tx: Option<TxId>,
    /// This session's newest own transaction: the point to come back to.
    pub point: TxId,
    /// Up to where other clients' writes have been taken in.
    pub seen: TxId,
    /// When other machines' writes were asked for last, in the harness's milliseconds.
    pub pulled_ms: i64,
    /// The version of each file that the model knows.
    pub known: HashMap<ObjectId, KnownVersion>,
    /// Files with a new version that no notice has been considered for yet.
    pub changed: HashSet<ObjectId>,
    /// The rolls of what is visible that can still be taken back, oldest first.
    pub rolls: Vec<Roll>,
    /// What is rolled, as the chat records it.
    pub rolled: Rolled,
    /// Tags of the markers that stand in collapsed arguments of this branch.
    pub issued: HashSet<String>,
    /// Edits that the harness lacks, for the next plan.
    pub pending: Vec<Edit>,
    /// Excerpts of outputs that were recorded and have no place in the request yet.
    pub gated: HashMap<ObjectId, Excerpts>,
    /// Arguments of calls by call ID, for results that no hook reports.
    pub open_calls: OpenCalls,
    /// The model of the next call.
    pub model: String,
    /// The model of the last call, whose cache holds the request.
    pub cached_model: String,
    /// What a token is for each model.
    pub accounting: Accounting,
    /// What this process's model calls have cost, in fresh input tokens, without the answers.
    pub spent: f64,
    /// When the last answer came, in milliseconds since the epoch.
    pub last_call_ms: Option<i64>,
    /// For call IDs that come again: from which candidate on to look for a free object ID.
    pub repeated: HashMap<String, usize>,
    /// The objects of calls whose ID came again, by call ID and what the call is.
    pub same_calls: HashMap<(String, Digest), ObjectId>,
    /// What was assembled last, as far as it still holds.
    pub view: View,
    /// Whether the session document has a `display_paths` field.
    pub has_displays: bool,
    /// Whether who has the state leaves the sync of what it writes to [`crate::Engine::settle`].
    pub soon: bool,
    pub closed: bool,
}

/// The shape of the chat object, without its texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chat {
    pub turns: usize,
}

impl Chat {
    /// The current turn, counted from 0.
    pub fn current_turn(self) -> usize {
        self.turns.saturating_sub(1)
    }
}

/// One transaction in the making.
#[derive(Default)]
pub(crate) struct Work {
    pub documents: Vec<Document>,
    pub chat: Patch,
    pub change: Change,
    /// Fields of the session document beside the sets.
    pub session: Patch,
    pub expected: Vec<(ObjectId, Option<TxId>)>,
    /// Taken over once the write is durable.
    pub chat_after: Option<Chat>,
    /// How the agent named files; taken over once the write is durable.
    pub displays: Vec<(ObjectId, String)>,
    /// The stays that were changed, with what they were before.
    pub stays_before: Vec<(ObjectId, Option<usize>)>,
    /// Objects that the catalog knows before the store does.
    pub ahead: Vec<ObjectId>,
}

impl State {
    /// Fails once the instance is closed.
    pub fn open(&self) -> Result<()> {
        if self.closed { Err(EngineError::Closed) } else { Ok(()) }
    }

    /// Goes on to a transaction of this client's own, unless another client wrote before it.
    pub fn saw_own(&mut self, tx: TxId) {
        if tx.0 == self.seen.0 + 1 {
            self.seen = tx;
        }
    }

    /// Notes in which turn a tool call was made or last activated, as part of a transaction in the making.
    pub fn stay(&mut self, id: &ObjectId, turn: usize, work: &mut Work) {
        work.stays_before.push((id.clone(), self.stays.insert(id.clone(), turn)));
    }

    /// Takes back what a transaction that was not written has changed in memory.
    pub fn take_back(&mut self, work: Work) {
        self.sets.undo(work.change);
        for (id, before) in work.stays_before.into_iter().rev() {
            match before {
                Some(turn) => self.stays.insert(id, turn),
                None => self.stays.remove(&id),
            };
        }
        for id in work.ahead {
            self.catalog.forget(&id);
        }
    }

    /// Deactivates what the window of SSOT 4.3 lets go, as part of a change.
    pub fn collapse(&mut self, inner: &Inner, turn: usize, change: &mut Change) -> Vec<ObjectId> {
        let active: Vec<Stay> = self
            .sets
            .active()
            .iter()
            .filter(|id| self.catalog.get(id).is_some_and(|m| matches!(m.kind, Kind::Toolcall { .. })))
            .map(|id| Stay { id: id.clone(), turn: self.stays.get(id).copied().unwrap_or(0) })
            .collect();
        let leaving = collapsing(&active, turn, inner.options.window, |id| self.sets.pinned().contains(id));
        for id in &leaving {
            self.sets.deactivate(id, change);
        }
        leaving
    }
}

impl Inner {
    /// Writes a transaction and takes its documents into the catalog; on failure all is as before.
    /// `None` when there was nothing to write.
    pub(crate) async fn save(&self, state: &mut State, mut work: Work) -> Result<Option<Receipt>> {
        let mut session_patch = work.change.patch().clone();
        session_patch.extend(work.session.clone());
        let changes_session = !session_patch.is_empty();
        let changes_chat = !work.chat.is_empty() || work.documents.iter().any(|d| *d.id() == self.chat_id);
        let mut expected = work.expected.clone();
        let new: Vec<(ObjectId, ObjectType, Option<Meta>)> = work
            .documents
            .iter()
            .map(|d| (d.id().clone(), d.object_type(), Meta::of_document(d, TxId(0))))
            .collect();
        // Given away and not copied: their texts may be long.
        let mut writes: Vec<Write> = work.documents.drain(..).map(Write::put).collect();
        if !work.chat.is_empty() {
            writes.push(Write::Patch {
                id: self.chat_id.clone(),
                patch: work.chat.clone(),
                valid_time: None,
            });
        }
        if changes_chat {
            // A patch names its turn by number, which another process with the same session may have moved.
            expected.push((self.chat_id.clone(), state.chat_tx));
        }
        if changes_session {
            writes.push(Write::Patch {
                id: self.session_object.clone(),
                patch: session_patch,
                valid_time: None,
            });
            expected.push((self.session_object.clone(), state.session_tx));
        }
        if writes.is_empty() {
            return Ok(None);
        }
        let transaction = Transaction { writes, expected };
        let written = match state.soon {
            true => self.store().transact_soon(transaction).await,
            false => self.store().transact(transaction).await,
        };
        match written {
            Ok(receipt) => {
                self.heard_of(receipt.tx_id);
                if changes_session {
                    state.session_tx = Some(receipt.tx_id);
                }
                if changes_chat {
                    state.chat_tx = Some(receipt.tx_id);
                }
                state.saw_own(receipt.tx_id);
                state.view.after(&work, new.iter().map(|(id, ..)| id), &self.chat_id, &self.prompt_id);
                for ((id, object_type, meta), written) in new.into_iter().zip(&receipt.written) {
                    if *written && object_type == ObjectType::File {
                        state.changed.insert(id.clone());
                    }
                    if let Some(meta) = meta.filter(|_| *written || state.catalog.get(&id).is_none()) {
                        state.catalog.put(&id, Meta { tx: receipt.tx_id, ..meta });
                    }
                }
                for (id, path) in &work.displays {
                    state.has_displays = true;
                    state.catalog.set_display(id, path);
                }
                if let Some(chat) = work.chat_after {
                    let next_turn = chat.turns != state.chat.turns;
                    state.chat = chat;
                    if next_turn {
                        state.sight.start_turn(&state.sets);
                    }
                }
                for id in work.change.touched() {
                    state.sight.touch(id, &state.sets);
                }
                for (id, _) in &work.stays_before {
                    state.sight.renew(id, &state.sets);
                }
                state.point = receipt.tx_id;
                Ok(Some(receipt))
            }
            Err(error) => {
                state.take_back(work);
                Err(error.into())
            }
        }
    }
}

/// A turn before anything was answered.
pub(crate) fn empty_turn(user: Value) -> Value {
    json!({ "user": user, "assistant": [], "toolcall_ids": [], "activated_ids": [], "rolls": [] })
}
