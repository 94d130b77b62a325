//! What a harness passes in and gets back: messages, the circumstances of a model call, and plans.
//!
//! The harness passes in each message once. A plan says which messages to replace and what to say, never the history.
//! Between two rolls a plan has no edits for messages that were sent before, so each request extends the last one
//! byte for byte.

use context_model::chat::Receipt;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::segment::CollapsedCall;
use crate::{Binding, PriceSteps, Prices};

/// A message of the harness that the engine has not seen yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// The harness's own name for the message; it comes back in the plan.
    pub key: String,
    /// The message as pi-ai shapes it.
    pub message: Value,
}

/// The circumstances of the next model call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// The model's name. A different model than before has a cold cache.
    pub model: String,
    /// Prices relative to fresh input.
    pub prices: Prices,
    /// At which sizes the whole request costs more.
    pub price_steps: PriceSteps,
    /// What the provider does with reasoning after something before it has changed.
    pub binding: Binding,
    /// Text of an answer with calls is part of its reasoning.
    pub text_is_reasoning: bool,
    /// How far back the provider looks for a cached prefix; see [`crate::Policy::reach`].
    pub lookback_blocks: Option<u32>,
    /// How many endings of earlier requests the provider looks back for a cached prefix; `None` if it has no such rule.
    pub lookback_endings: Option<u32>,
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
    /// True if the next call begins a user's turn.
    pub at_user_turn: bool,
    /// True if anything may collapse now, by rolls or as excerpts of large new outputs: the person's switch.
    pub rolls: bool,
    /// True if the harness can leave out messages and shorten texts: edits with texts, and [`Edit::Gone`].
    pub shortens: bool,
    /// When an earlier process sent the messages that `Engine::resync` gets, in milliseconds since the
    /// epoch; `None` unless they were sent in the form that the record gives them.
    pub sent_ms: Option<i64>,
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
    /// Estimated tokens of what a roll could remove.
    pub stale_tokens: u64,
    /// What changing the next request at its very start would cost, in fresh input tokens: writing its cached part
    /// again. 0 on a dead cache. Only `Engine::advance` sets this and [`Plan::spent`].
    pub rewrite_cost: f64,
    /// What this process's model calls have cost so far, in fresh input tokens, without the answers.
    pub spent: f64,
    /// The point to return to with `Engine::restore`, and the times that identify it; set as `spent` is.
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
        /// Its new text; `None` restores the harness's own message.
        text: Option<String>,
    },
    /// Parts of an answer, or of a user's message; with no parts, the harness's own message is restored. An edit
    /// lists every difference from the message as it was passed in.
    Message {
        /// The message.
        key: String,
        /// Calls whose arguments are shortened.
        calls: Vec<CollapsedCall>,
        /// Texts that are shortened or left out.
        texts: Vec<TextEdit>,
    },
    /// The message is left out: a line in another message names its calls.
    Gone {
        /// The message.
        key: String,
    },
}

impl Edit {
    /// The message.
    pub fn key(&self) -> &str {
        match self {
            Self::Result { key, .. } | Self::Message { key, .. } | Self::Gone { key } => key,
        }
    }
}

/// A block of a message that is shortened or left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEdit {
    /// The block, counted from 0 in the message as it was passed in; 0 if the content is a single text.
    pub block: usize,
    /// Its new text; `None` leaves the block out.
    pub text: Option<String>,
}

/// What a tool result should show when it enters the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The object.
    pub id: ObjectId,
    /// Its short name.
    pub handle: String,
    /// The line to put before the output, so that the model can name it; `None` if the output is so short that a
    /// reference would not be shorter.
    pub header: Option<String>,
}

/// Returns whether the messages before the last answer are those that it answers: none of them is newer, as a
/// compaction's summary would be.
pub fn is_as_sent(messages: &[Incoming]) -> bool {
    let at = |one: &Incoming| one.message.get("timestamp").and_then(Value::as_f64);
    let Some(last) = messages.iter().rposition(|one| one.message["role"] == "assistant") else {
        return false;
    };
    at(&messages[last]).is_some_and(|sent| !messages[..last].iter().any(|one| at(one) > Some(sent)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::in_order(&[("user", Some(1)), ("assistant", Some(2)), ("user", Some(3))], true)]
    #[case::at_the_same_time(&[("user", Some(2)), ("assistant", Some(2))], true)]
    #[case::a_summary_came_later(&[("user", Some(5)), ("assistant", Some(2)), ("assistant", Some(4))], false)]
    #[case::what_follows_does_not_count(&[("user", Some(1)), ("assistant", Some(2)), ("toolResult", Some(9))], true)]
    #[case::without_times(&[("user", None), ("assistant", None)], false)]
    #[case::of_the_others_without_times(&[("user", None), ("assistant", Some(2))], true)]
    #[case::no_answer(&[("user", Some(1))], false)]
    fn messages_as_they_were_sent(#[case] messages: &[(&str, Option<u64>)], #[case] expected: bool) {
        let incoming = |(role, at): &(&str, Option<u64>)| Incoming {
            key: String::new(),
            message: json!({ "role": role, "timestamp": at }),
        };
        assert_eq!(is_as_sent(&messages.iter().map(incoming).collect::<Vec<_>>()), expected);
    }
}
