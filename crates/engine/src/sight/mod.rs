//! What the model's request shows, and what becomes of it. State and sight are two things: the sets change at once,
//! what is visible lags behind until a roll, because changing a request breaks the provider's prefix cache.
//!
//! Nothing here writes: the engine records what is decided.

pub mod aging;
pub mod answers;
pub mod forms;
pub mod messages;
pub mod piece;
pub mod pieces;
pub mod plan;
pub mod rolled;
pub mod rolls;
pub mod schedule;
pub mod steps;
pub mod usage;
pub mod words;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use context_model::id::ObjectId;
use context_model::marker;
use context_model::pricing::Policy;
use serde_json::{Map, Value};

use crate::session::Session;
use crate::session::heard::Written;
use forms::Executed;
use piece::Excerpts;
use pieces::Pieces;
use plan::{Call, Edit, Plan};
use rolled::Rolled;
use usage::Accounting;

/// The request that is visible now, and what is needed to decide about it.
#[derive(Default)]
pub(crate) struct Sight {
    pub pieces: Pieces,
    /// The rolls of what is visible that can still be taken back, oldest first.
    pub rolls: Vec<Executed>,
    /// What is rolled, as the chat records it.
    pub rolled: Rolled,
    /// The IDs of visible words that can be shortened.
    pub said: HashSet<String>,
    /// Tags of the markers that stand in collapsed arguments of this branch.
    pub issued: HashSet<String>,
    /// The pieces that the harness does not show as they are, for the next plan.
    pub pending: BTreeSet<usize>,
    /// Excerpts of outputs that were recorded and have no place in the request yet.
    pub gated: HashMap<ObjectId, Excerpts>,
    /// Objects of calls that were recorded before their results came as messages, by call ID.
    pub received: HashMap<String, VecDeque<ObjectId>>,
    /// Arguments of calls by call ID, for results that no hook reports.
    pub open_calls: HashMap<String, Map<String, Value>>,
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
}

impl Sight {
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
        plan.context_tokens = (self.pieces.tokens() as f64 * factor) as u64;
        plan.stale_tokens = (self.pieces.stale_tokens() as f64 * factor) as u64;
    }

    /// The edits that the harness lacks.
    pub fn lacking(&mut self) -> Vec<Edit> {
        let edits = self.pieces.edits_of(std::mem::take(&mut self.pending));
        self.issue(&edits);
        edits
    }

    /// Begins anew with what is visible. The record of rolls stays.
    pub fn forget(&mut self) {
        self.pieces = self.pieces.renewed();
        self.rolls.clear();
        self.pending.clear();
        self.open_calls.clear();
        self.issued.clear();
        self.said.clear();
        self.last_call_ms = None;
    }

    /// Follows a transaction of the session's.
    pub fn follow(&mut self, written: &Written, session: &Session) {
        if written.starts_turn {
            self.pieces.start_turn(session);
        }
        for id in &written.touched {
            self.pieces.touch(id, session);
        }
        for id in &written.renewed {
            self.pieces.renew(id, session);
        }
    }

    /// Notes that a call was recorded whose result will come as a message.
    pub fn expect(&mut self, call_id: &str, object: &ObjectId) {
        self.received.entry(call_id.to_owned()).or_default().push_back(object.clone());
    }

    /// The object that was recorded first of those whose results have this call ID and have not come yet.
    pub fn expected(&mut self, call_id: &str) -> Option<ObjectId> {
        let waiting = self.received.get_mut(call_id)?;
        let object = waiting.pop_front();
        if waiting.is_empty() {
            self.received.remove(call_id);
        }
        object
    }

    /// Whether the arguments of an object's call are collapsed in what is visible: by a roll of this process, or by
    /// an earlier one, whose edit the harness has kept.
    pub fn hides_arguments(&self, object: &ObjectId) -> bool {
        self.pieces.hides_arguments(object) || self.rolled.hides_arguments(object)
    }

    /// Remembers the tags of the markers that edits put into the transcript.
    pub fn issue(&mut self, edits: &[Edit]) {
        for edit in edits {
            if let Edit::Message { calls, .. } = edit {
                self.issued.extend(calls.iter().flat_map(|call| marker::tags_in(&call.args)));
            }
        }
    }
}
