//! A hand-over of messages under way: what it has done, for the same hand-over once more after a failure, and for the plan that
//! it leads to.

use context_evidence::Untold;
use context_model::chat::RollReceipt;
use context_projection::Policy;
use context_projection::request::plan::{Edit, IncomingMessage, Plan};

/// The messages of a hand-over that has not led to a plan yet.
#[derive(Default)]
pub(crate) struct Handed {
    /// Those that were taken in.
    messages: Vec<IncomingMessage>,
    /// The circumstances in which the first of them came. Those of the others are the same, also if they come in a second call.
    policy: Option<Policy>,
}

/// The parts of the next plan that are decided and recorded, and that no plan has carried yet.
#[derive(Default)]
pub(crate) struct Pending {
    pub edits: Vec<Edit>,
    pub receipt: Option<RollReceipt>,
    pub notices: Vec<Untold>,
}

impl Handed {
    /// True for a message that was taken in.
    pub(crate) fn has(&self, message: &IncomingMessage) -> bool {
        self.messages.contains(message)
    }

    /// Notes a message that was taken in in these circumstances.
    pub(crate) fn add(&mut self, message: IncomingMessage, policy: &Policy) {
        self.policy.get_or_insert_with(|| policy.clone());
        self.messages.push(message);
    }

    /// The circumstances of its first message; these, if none was taken in.
    pub(crate) fn policy(&self, now: Policy) -> Policy {
        self.policy.clone().unwrap_or(now)
    }
}

impl Pending {
    /// Moves the edits and their receipt into a plan.
    pub(crate) fn give(&mut self, plan: &mut Plan) {
        plan.edits = std::mem::take(&mut self.edits);
        plan.receipt = self.receipt.take();
    }
}
