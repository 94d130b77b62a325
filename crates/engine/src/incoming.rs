//! A message as it comes, and what can be said of it and of a result in it without reading anything.

use crate::session::Session;
use crate::session::catalog::is_handle_of;
use context_evidence::{Arrival, RecordedCall, ResultFacts};
use context_lines::Header;
use context_model::collapse::is_control;
use context_model::id::ObjectId;
use context_model::object::{Status, Toolcall};
use context_model::tokens;
use context_projection::Moment;
use context_projection::request::counted::Counted;
use context_projection::request::messages::{has_image, result_text, text_of};
use context_projection::request::prose::is_rules_file;
use context_tools::Placeholder;
use serde_json::Value;

use crate::engine::State;
use crate::identity::{FoundCall, UNKNOWN_TOOL};
use crate::job::names_of;
use crate::shown::ShownResult;

/// The way in which messages are taken in.
#[derive(Clone, Copy)]
pub(crate) struct Taking {
    /// The moment: a result that is recorded now, or one that is read again.
    pub arrival: Arrival,
    /// Large outputs may be shown as excerpts. If nothing may collapse, new outputs are not cut either.
    pub excerpts: bool,
    pub now: Moment,
}

/// The kind of a message. It decides how the message is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// A user's message.
    User,
    /// An answer of the model.
    Answer,
    /// An answer that failed or was stopped. It cost a call, and the request does not have it.
    FailedAnswer,
    /// The result of a call; [`ResultFacts`] decides its kind.
    Result,
    /// A message of the system among the others.
    System,
    /// A message of any other role, which always stays.
    Other,
}

/// The facts that decide how an answer counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerFacts {
    pub arrival: Arrival,
    /// Text has left the request that is in sight.
    pub is_shortened: bool,
    /// The cache was gone when the answer's request was decided, if this process decided it.
    pub asked_dead: Option<bool>,
    /// The cache was gone when the answer came.
    pub cache_dead: bool,
}

/// A result on its way into the request.
pub(crate) struct IncomingResult<'a> {
    /// The harness's name for the message.
    pub key: &'a str,
    pub message: &'a Value,
    /// Its text.
    pub text: String,
    /// Its call, with the output that the tool returned.
    pub input: Toolcall,
    /// A host's text in place of the output.
    pub placeholder: Option<Placeholder>,
    has_image: bool,
    pub taking: Taking,
}

impl MessageKind {
    /// The kind of a message.
    pub(crate) fn of(message: &Value) -> Self {
        match (text_of(message, "role"), text_of(message, "stopReason")) {
            ("user", _) => Self::User,
            ("assistant", "error" | "aborted") => Self::FailedAnswer,
            ("assistant", _) => Self::Answer,
            ("toolResult", _) => Self::Result,
            ("system", _) => Self::System,
            _ => Self::Other,
        }
    }

    /// True for a message that is part of the chat and is recorded now.
    pub(crate) fn is_recorded(self, arrival: Arrival) -> bool {
        matches!(self, Self::User | Self::Answer | Self::FailedAnswer) && arrival.is_recorded_now()
    }
}

impl AnswerFacts {
    /// Returns how the answer counts.
    pub(crate) fn counted(self) -> Counted {
        let is_own = !self.arrival.is_read_again();
        Counted {
            is_own,
            // An earlier answer's request had text that has left since.
            teaches: is_own || !self.is_shortened,
            // It was priced by the cache that its request met, which says nothing about that of the next one.
            cache_dead: self.asked_dead.unwrap_or(self.cache_dead && is_own),
            is_new: self.arrival.is_recorded_now(),
        }
    }
}

impl<'a> IncomingResult<'a> {
    pub(crate) fn of(
        state: &State,
        chat: &ObjectId,
        (key, message): (&'a str, &'a Value),
        taking: Taking,
    ) -> Self {
        let (text, has_image) = (result_text(message), has_image(message));
        let input = input_of(state, chat, message, &text);
        let placeholder = Placeholder::of(&text).filter(|_| !has_image);
        Self { key, message, text, input, placeholder, has_image, taking }
    }

    /// The facts that decide its kind.
    pub(crate) fn facts(&self, session: &Session, call: Option<&FoundCall>) -> ResultFacts {
        let call = call.map(|FoundCall { object, is_joined, .. }| RecordedCall {
            is_joined: *is_joined,
            is_reference: session.is_reference(object, &self.text),
            is_longer: self.placeholder.is_some()
                && tokens::estimate(&self.text) > tokens::estimate(&session.reference(object)),
        });
        let Self { placeholder, has_image, taking: Taking { arrival, .. }, .. } = *self;
        ResultFacts { arrival, placeholder, has_image, call }
    }

    /// The same with the output that the message shows.
    pub(crate) fn shown<'s>(&'s self, output: &'s str) -> ShownResult<'s> {
        ShownResult { input: &self.input, output, arrival: self.taking.arrival }
    }

    /// True for a call that has changed the context, which the session has returned from since.
    pub(crate) fn repeats_control(&self) -> bool {
        let Toolcall { tool, status, .. } = &self.input;
        self.taking.arrival == Arrival::Late && *status == Status::Ok && is_control(tool)
    }

    /// True for the read of a rules file.
    pub(crate) fn reads_rules(&self) -> bool {
        let Toolcall { tool, args, .. } = &self.input;
        tool == "read" && args.get("path").and_then(Value::as_str).is_some_and(is_rules_file)
    }
}

/// A result as a tool call: its arguments are those of the call that it answers.
fn input_of(state: &State, chat: &ObjectId, message: &Value, text: &str) -> Toolcall {
    let call_id = text_of(message, "toolCallId");
    let mut input = Toolcall {
        status: if message.get("isError") == Some(&Value::Bool(true)) { Status::Fail } else { Status::Ok },
        ..Toolcall::new(
            call_id.to_owned(),
            match text_of(message, "toolName") {
                "" => UNKNOWN_TOOL.to_owned(),
                name => name.to_owned(),
            },
            state.request.segments.args_of(call_id).cloned().unwrap_or_default(),
            text.to_owned(),
        )
    };
    // If the store has lost the call, the harness's copy of the output still has our line.
    if let Some(Header { id: handle, rest }) = Header::of(text) {
        rest.clone_into(&mut input.content);
        if !names_of(&input, chat).iter().any(|id| is_handle_of(handle, id)) {
            text.clone_into(&mut input.content);
        }
    }
    input
}

#[cfg(test)]
#[path = "incoming_tests.rs"]
mod tests;
