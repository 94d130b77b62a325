//! Messages of the harness on their way into the request.
//!
//! Architecture invariant: a message goes as a result does (`results.rs`), and nothing has to be read for it. `MessageKind`
//! decides what it is; what belongs to the chat is recorded; and the state takes it in, without waiting for anything. So after a
//! failure of the store the state is as if the message had not come, and the same message may come again.

use crate::session::client::Fsync;
use crate::session::error::Result;
use context_model::canonical::{MAX_DEPTH, flattened, is_deeper_than};
use context_projection::Policy;
use context_projection::request::messages::message_tokens;
use context_projection::request::plan::IncomingMessage;
use serde_json::Value;

use crate::engine::{Inner, State};
use crate::incoming::{AnswerFacts, MessageKind, Taking};

impl Inner {
    /// Takes in one message, and records it if that has not been done.
    ///
    /// # Errors
    /// Errors of the store; it is then as if the message had not come, except for a result's record.
    pub(crate) async fn take_in(
        &self,
        state: &mut State,
        IncomingMessage { key, message }: &IncomingMessage,
        policy: &Policy,
        taking: Taking,
    ) -> Result<()> {
        let flat = is_deeper_than(message, MAX_DEPTH).then(|| flattened(message, MAX_DEPTH));
        let message = flat.as_ref().unwrap_or(message);
        let kind = MessageKind::of(message);
        if kind == MessageKind::Result {
            return self.take_in_result(state, key, message, taking).await;
        }
        if kind.is_recorded(taking.arrival) {
            self.add_message(state, Fsync::WithSettle, message).await?;
        }
        self.apply_message(state, (key, message, kind), policy, taking);
        Ok(())
    }

    /// Takes a message other than a result into the state. Nothing is read here, so nothing can fail.
    fn apply_message(
        &self,
        state: &mut State,
        (key, message, kind): (&str, &Value, MessageKind),
        policy: &Policy,
        Taking { arrival, now, .. }: Taking,
    ) {
        if kind.is_recorded(arrival) {
            self.note_unrecorded(state, message);
            self.recalled().add_texts(message);
        }
        state.unsent.see(message);
        let is_new = arrival.is_recorded_now();
        let State { request, session, .. } = state;
        match kind {
            MessageKind::User => {
                // Its record would have begun the turn.
                if !is_new {
                    request.segments.start_turn(session);
                }
                request.push_user(key, message, is_new, session);
            }
            MessageKind::Answer | MessageKind::FailedAnswer => {
                let facts = AnswerFacts {
                    arrival,
                    is_shortened: request.segments.is_shortened(),
                    asked_dead: request.asked_dead,
                    cache_dead: policy.cache_dead,
                };
                request.count(message, facts.counted(), now, policy);
                if kind == MessageKind::Answer {
                    request.push_answer(key, message, &self.client.options.cwd, (is_new, session));
                }
            }
            MessageKind::System => request.segments.push_system(key, message_tokens(message)),
            MessageKind::Result | MessageKind::Other => {
                request.segments.push_fixed(key, message_tokens(message));
            }
        }
    }
}
