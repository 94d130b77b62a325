//! The projection: what a harness's messages become on their way to the provider.
//!
//! The harness hands over each message once. What comes back is a plan: which messages to replace and what to
//! say, never the history. Between two rolls a plan has no edits for messages that were sent before, so each
//! request extends the last one byte for byte.

use context_model::id::ObjectId;
use context_model::pricing::{Prices, Receipt};
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use crate::engine::Engine;
use crate::error::Result;
use crate::piece::CollapsedCall;
use crate::record::ToolcallInput;
use crate::taking::{Taking, excerpts};

/// What other machines wrote is not asked for again before that many milliseconds are over.
const PULL_AGE_MS: i64 = 1_000;

/// The same at the start of a user's turn, at which a harness may call twice.
const USER_TURN_PULL_AGE_MS: i64 = 100;

/// A message of the harness that the engine has not seen yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// The harness's own name for the message; it comes back in the plan.
    pub key: String,
    /// The message as pi-ai shapes it.
    pub message: Value,
}

/// The circumstances of the model call that comes next.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The model's name; another one than before has a cold cache.
    pub model: String,
    /// Prices relative to fresh input.
    pub prices: Prices,
    /// How far back the provider looks for a cached prefix; see [`context_model::pricing::Policy::lookback_blocks`].
    pub lookback_blocks: Option<u32>,
    /// The context window in tokens; 0 when unknown.
    pub context_window: u64,
    /// How long the provider keeps a prefix, in milliseconds.
    pub cache_ttl_ms: i64,
    /// The harness's clock, in milliseconds since the epoch.
    pub now_ms: i64,
    /// Estimated tokens of system prompt and tool declarations.
    pub system_tokens: u64,
    /// Roll only where a user's turn starts, for models whose reasoning depends on an unchanged prefix.
    pub only_at_user_turn: bool,
    /// Whether the next call begins a user's turn.
    pub at_user_turn: bool,
    /// Whether anything may collapse now: rolls, and excerpts of large new outputs; the person's switch.
    pub rolls: bool,
}

/// What to do before the next model call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Messages to replace in what the model sees.
    pub edits: Vec<Edit>,
    /// Lines to add at the end of what the model sees.
    pub notices: Vec<String>,
    /// The receipt of the roll among the edits, if there was one.
    pub receipt: Option<Receipt>,
    /// Estimated tokens of the next request.
    pub context_tokens: u64,
    /// Estimated tokens of what could be rolled.
    pub stale_tokens: u64,
    /// What it would cost to change the next request at its very start, in fresh input tokens: the part of it
    /// that is cached, written again. 0 on a dead cache. Only [`Engine::advance`] says it, as [`Plan::spent`].
    pub rewrite_cost: f64,
    /// What this process's model calls have cost so far, in fresh input tokens, without the answers.
    pub spent: f64,
    /// The point to come back to with [`Engine::restore`], and the times that it is known by; as `spent`.
    pub point: Option<(TxId, [Timestamp; 2])>,
}

/// One message to replace.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// A tool result's text.
    Result {
        /// The message.
        key: String,
        /// The object behind it.
        object: ObjectId,
        /// Its new text; `None` puts back the message as the harness has it.
        text: Option<String>,
    },
    /// The arguments of an answer's calls.
    Arguments {
        /// The message.
        key: String,
        /// The calls; none puts back the message as the harness has it.
        calls: Vec<CollapsedCall>,
    },
}

/// What a tool result shall show when it enters the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// The object.
    pub id: ObjectId,
    /// Its short name.
    pub handle: String,
    /// The line to put before the output, by which the model can name it; `None` for an output so short that a
    /// reference would not be shorter.
    pub header: Option<String>,
}

impl Engine {
    /// Records a tool result before the harness stores it, and says what to put before it. It survives the end of the
    /// process then, and a loss of power after [`Engine::settle`].
    ///
    /// # Errors
    /// As [`Engine::record_toolcall`].
    pub async fn receive(&self, input: ToolcallInput) -> Result<Birth> {
        let excerpts = excerpts(&input.tool, &input.content);
        let length = input.content.len();
        let id = self.record_as(input, true).await?;
        let mut state = self.inner.lock().await?;
        let handle = state.handle(&id);
        let header = (length > 2 * state.reference(&id).len()).then(|| state.header(&id));
        state.gated.insert(id.clone(), excerpts);
        Ok(Birth { id, handle, header })
    }

    /// Takes in the messages that are new since the last call, records what is not recorded yet, and decides
    /// what the next model call shall see. What it records survives the end of the process then, and a loss of power
    /// after [`Engine::settle`].
    ///
    /// # Errors
    /// What the store reports. The harness's own messages then go out as they are.
    pub async fn advance(&self, incoming: Vec<Incoming>, call: &Call) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut state = self.inner.lock().await?;
        state.soon = true;
        let policy = state.policy(call);
        state.sight.set_system_tokens(call.system_tokens);
        // After an answer without calls the next thing is a user's message, and what others write until then counts.
        let is_over = incoming.last().is_some_and(|one| one.message["role"] == "assistant");
        let begins = incoming.iter().any(|one| one.message["role"] == "user");
        for one in incoming {
            self.inner.take_in(&mut state, &one, &policy, Taking::new(call), &mut plan).await?;
        }
        let age = if begins { USER_TURN_PULL_AGE_MS } else { PULL_AGE_MS };
        if is_over || (0..age).contains(&call.now_ms.saturating_sub(state.pulled_ms)) {
            self.inner.refresh(&mut state).await?;
        } else {
            state.pulled_ms = call.now_ms;
            self.inner.refresh_at_turn(&mut state).await?;
        }
        plan.notices = self.inner.notices(&mut state).await?;
        if call.rolls {
            plan.edits.append(&mut state.pending);
            // An answer among the messages has warmed the cache again.
            let policy = state.policy(call);
            if let Some(roll) = state.sight.decide(&policy) {
                self.inner.execute(&mut state, &roll, &mut plan).await?;
            }
        }
        let policy = state.policy(call);
        plan.rewrite_cost = state.sight.rewrite_cost(&policy);
        plan.spent = state.spent;
        plan.point = Some((state.point, self.inner.times().await?));
        state.finish(&mut plan);
        Ok(plan)
    }

    /// Rebuilds what is visible from the messages of the branch that the harness is on now, with earlier edits
    /// already in them. The first `recorded` messages are part of the recorded session; later ones are taken
    /// in as by [`Engine::advance`]. Messages that were replaced once and stand there in full again (the process
    /// ended before the harness had stored the edit, or the harness stores none) are replaced by the next
    /// [`Engine::advance`] that may.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn resync(&self, incoming: Vec<Incoming>, recorded: usize, call: &Call) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut state = self.inner.lock().await?;
        state.soon = true;
        state.forget_sight();
        let policy = state.policy(call);
        state.sight.guess_system_tokens(call.system_tokens);
        let unchanged = is_as_sent(&incoming);
        for (number, one) in incoming.into_iter().enumerate() {
            let taking = Taking { record: number >= recorded, excerpts: false };
            self.inner.take_in(&mut state, &one, &policy, taking, &mut plan).await?;
        }
        let is_cached = unchanged && state.pending.is_empty();
        state.sight.assume_sent(is_cached);
        state.finish(&mut plan);
        Ok(plan)
    }
}

/// Whether the messages before the last answer are those that it answers: nothing among them is newer, as the
/// summary of a compaction would be.
fn is_as_sent(messages: &[Incoming]) -> bool {
    let at = |one: &Incoming| one.message.get("timestamp").and_then(Value::as_f64);
    let Some(last) = messages.iter().rposition(|one| one.message["role"] == "assistant") else {
        return false;
    };
    at(&messages[last]).is_some_and(|sent| !messages[..last].iter().any(|one| at(one) > Some(sent)))
}
