//! Results of tool calls on their way into the request: the object and the evidence of each.
//!
//! Architecture invariant: a result goes four steps. Its call is looked for; `ResultFacts::kind` decides what it is, and a call
//! without a record is recorded; what the result needs besides is read; and the state takes it in, without waiting for anything.
//! So after a failure of the store the state is as if the result had not come, and the same result may come again.

use crate::session::Session;
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::Result;
use crate::session::references::named_object;
use context_evidence::{ResultKind, wraps};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Status, Toolcall};
use context_model::tokens;
use context_projection::request::answers::first_excerpt;
use context_projection::request::messages::{message_tokens, text_of};
use context_projection::request::segment::{Carried, Form, Output, ShownLines};
use context_secrets::{is_content, is_redacted};
use context_store::AsOf;
use context_tools::{Placeholder, is_said_by};
use serde_json::{Map, Value};
use tracing::instrument;

use crate::engine::{Inner, State};
use crate::identity::FoundCall;
use crate::incoming::{IncomingResult, Taking};
use crate::restored::Restored;
use crate::shown::Statements;
use crate::unsent::is_unsent;

/// The facts that were read for a result, before the state takes it in.
#[derive(Default)]
struct Gathered {
    /// Its statements about files.
    said: Statements,
    /// The object whose text it restores.
    restored: Option<Restored>,
    /// The excerpt that stands in its place, by the recorded output.
    excerpt: Option<String>,
}

impl Inner {
    /// Takes in one result: records it if that has not been done, and finds its evidence. What it needs is read between the
    /// record and the state's change; if that fails, it is as if the result had not come, except for its record.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn take_in_result(
        &self,
        state: &mut State,
        key: &str,
        message: &Value,
        taking: Taking,
    ) -> Result<()> {
        let one = IncomingResult::of(state, &self.client.chat_id, (key, message), taking);
        let mut found = self.call_of(state, &one).await?;
        let kind = loop {
            match (one.facts(&state.session, found.as_ref()).kind(), &mut found) {
                (ResultKind::Unrecorded, _) => {
                    found = Some(FoundCall::recorded(self.record_result(state, &one).await?));
                }
                (ResultKind::Unjoined, Some(call)) => {
                    self.rejoin(state, &call.object).await?;
                    call.is_joined = true;
                }
                (kind, _) => break kind,
            }
        };
        let Some(call) = found else {
            state.request.segments.push_fixed(key, message_tokens(message));
            return Ok(());
        };
        if kind == ResultKind::Output && one.repeats_control() {
            self.repeat_control(state, &one.input.tool, &one.input.args).await?;
        }
        let gathered = self.gather_result(state, &one, &call.object, kind).await?;
        self.apply_result(state, &one, &call, kind, gathered);
        Ok(())
    }

    /// The recorded call of a result.
    async fn call_of(&self, state: &mut State, one: &IncomingResult<'_>) -> Result<Option<FoundCall>> {
        let recorded = one.message.get("recordedArguments").and_then(Value::as_object);
        // The record has the harness's names for the arguments where the engine has others.
        let translated = recorded.map(|args| Toolcall { args: args.clone(), ..one.input.clone() });
        let named = translated.as_ref().unwrap_or(&one.input);
        match one.placeholder {
            None => self.recorded_as(state, named, &one.text, one.taking.arrival).await,
            Some(Placeholder::Cleared) => self.cleared_of(state, named).await,
            Some(Placeholder::Unchanged) => Ok(None),
        }
    }

    /// Records the call of a result, and notes what is known only now.
    async fn record_result(&self, state: &mut State, one: &IncomingResult<'_>) -> Result<ObjectId> {
        let excerpt = first_excerpt(&one.input.tool, &one.input.content);
        let id = self.record_now(state, one.input.clone(), one.taking.arrival.is_read_again()).await?;
        state.request.gated.insert(id.clone(), excerpt);
        Ok(id)
    }

    /// Reads what a result needs. The state stays as it is.
    async fn gather_result(
        &self,
        state: &State,
        one: &IncomingResult<'_>,
        object: &ObjectId,
        kind: ResultKind,
    ) -> Result<Gathered> {
        let IncomingResult { input, text, taking: Taking { arrival, .. }, .. } = one;
        let mut gathered = Gathered::default();
        // After a reference there may be lines for calls that have left.
        if kind.is_in_its_place() {
            if !arrival.is_recorded_now() {
                gathered.said = self.said_before(state, object, input, *arrival).await?;
            }
            return Ok(gathered);
        }
        let output = state.session.without_header(object, text);
        if kind == ResultKind::Output {
            let State { request, .. } = state;
            let is_known = arrival.is_recorded_now()
                || request.gated.contains_key(object)
                || request.rolled.was_whole(object);
            if !is_known {
                gathered.excerpt = self.excerpt_of(&state.session, object, output).await?;
            }
            gathered.restored = self.restored(state, input, output).await?;
        }
        if gathered.restored.is_none() {
            // The text beside a picture is evidence about a file like that of any other result.
            gathered.said = self.said_in(state, object, one.shown(output)).await?;
        }
        Ok(gathered)
    }

    /// Takes a result into the state. Nothing is read here, so nothing can fail.
    fn apply_result(
        &self,
        state: &mut State,
        one: &IncomingResult<'_>,
        call: &FoundCall,
        kind: ResultKind,
        gathered: Gathered,
    ) {
        let IncomingResult { message, text, input, taking, .. } = one;
        let (call_id, object) = (text_of(message, "toolCallId"), &call.object);
        let (is_new, is_again) = (taking.arrival.is_recorded_now(), taking.arrival.is_read_again());
        state.claim(&input.id, call);
        if is_unsent(message) {
            state.unsent.objects.insert(object.clone());
        }
        let State { request, session, .. } = &mut *state;
        request.segments.answer(
            call_id,
            object,
            input.status == Status::Ok,
            session,
            &self.client.options.cwd,
        );
        if is_again {
            request.results.insert(object.clone());
        }
        let is_told = |outcome| is_said_by(outcome, text);
        if !is_new && !kind.is_in_its_place() && !session.outcome(object).is_none_or(is_told) {
            session.catalog.clear_outcome(object);
        }
        let Gathered { said, restored, excerpt } = gathered;
        let output = state.session.without_header(object, text).to_owned();
        let shown = match &restored {
            Some(restored) => state.note_restored(object, restored),
            None => self.note_said(state, object, one.shown(&output), said),
        };
        let carries = restored.map(|restored| restored.carried);
        let is_named = output.len() < text.len();
        state.place(one, object, kind, Parts { is_named, shown, carries, excerpt });
        let State { request, session, .. } = state;
        if !is_new {
            request.repeat_arguments(object, session);
        }
    }

    /// Returns the excerpt of a recorded output that is shown as this text. If the text differs from the output, it is the
    /// excerpt, unless the tool has only added something to each line.
    async fn excerpt_of(&self, session: &Session, object: &ObjectId, shown: &str) -> Result<Option<String>> {
        let digest = Digest::of(shown.as_bytes());
        if self.recalled().is_whole(session, object, digest) {
            return Ok(None);
        }
        let version = self.recorded(object, AsOf::default()).await?;
        let document = version.map(|version| version.document);
        let tool = document.as_ref().and_then(|document| document.text("tool")).unwrap_or_default();
        let content = document.as_ref().and_then(|document| document.content());
        let Some(content) = content else { return Ok(None) };
        // Text removed from the stored copy is still in the shown output.
        let is_shown = document.as_ref().is_some_and(|document| is_content(document, shown));
        let content = if is_shown { shown } else { content };
        let is_other = shown != content && !wraps(content, shown);
        let excerpt = first_excerpt(tool, content).or_else(|| is_other.then(|| shown.to_owned()));
        // A text without its secrets may be known with them later.
        if excerpt.is_none() && document.as_ref().is_some_and(|document| !is_redacted(document)) {
            self.recalled().note_whole(session, object, digest);
        }
        Ok(excerpt)
    }

    /// Repeats the effect of a call that controls the context, from after the point to which the session has returned.
    async fn repeat_control(&self, state: &mut State, tool: &str, args: &Map<String, Value>) -> Result<()> {
        let Some(id) = named_object(&state.session, "activate", args) else { return Ok(()) };
        let drops = args.get("drop").and_then(Value::as_bool).unwrap_or_default();
        let control = |session: &Session, work: &mut Work| {
            let change = &mut work.change;
            match tool {
                "activate" => session.activate(&id, work),
                "pin" => session.sets.pin(&id, change),
                "unpin" => {
                    session.sets.unpin(&id, change);
                }
                _ => {
                    if drops {
                        session.sets.demote(&id, change);
                    } else {
                        session.sets.deactivate(&id, change);
                    }
                    work.dropped.push(id.clone());
                }
            }
            Ok(())
        };
        self.commit(state, Fsync::WithSettle, control).await
    }
}

/// The parts of an output that gets its place in the request.
struct Parts {
    /// Its first line names the object.
    is_named: bool,
    shown: Option<ShownLines>,
    carries: Option<Carried>,
    /// The excerpt by the recorded output.
    excerpt: Option<String>,
}

/// The excerpt in the place of an output.
struct Excerpt {
    /// Its text, under its header; `None` if the output is shown whole.
    text: Option<String>,
    /// The harness does not have it yet.
    is_gated: bool,
}

impl State {
    /// Gives a result its place in the request.
    fn place(&mut self, one: &IncomingResult<'_>, object: &ObjectId, kind: ResultKind, parts: Parts) {
        let IncomingResult { key, message, text, taking, .. } = one;
        let reference = self.session.reference(object);
        let mut is_gated = false;
        let segment = match kind {
            ResultKind::Output => {
                let excerpt = self.excerpt_in_place(one, object, parts.excerpt);
                is_gated = excerpt.is_gated;
                let in_place = excerpt.text.as_ref().unwrap_or(text);
                Output {
                    object: object.clone(),
                    named: parts.is_named,
                    shown: parts.shown,
                    carries: parts.carries,
                    full_tokens: tokens::estimate(in_place) as u64,
                    excerpt: excerpt.text,
                    masked: false,
                    reference,
                    had_changed: false,
                    is_rule: one.reads_rules(),
                    lines: Vec::new(),
                }
            }
            // A long text of the host leaves, too, and does not stand again where the output had left.
            ResultKind::LongPlaceholder => {
                Output::masked(object.clone(), tokens::estimate(text) as u64, reference)
            }
            ResultKind::Picture => {
                return self.request.segments.push_pictured(key, message_tokens(message), object.clone());
            }
            ResultKind::Reference
            | ResultKind::Placeholder
            | ResultKind::Unknown
            | ResultKind::Unrecorded
            | ResultKind::Unjoined => {
                return self.request.segments.push_fixed(key, message_tokens(message));
            }
        };
        let Self { request, session, .. } = self;
        let place = request.segments.push_result(key, segment, session);
        if is_gated {
            request.pending.insert(place);
        }
        if !taking.arrival.is_recorded_now() {
            request.repeat_rolls(object, place, text, session);
        }
    }

    /// Returns the excerpt in the place of an output: the one that its record had made, or by the recorded output.
    fn excerpt_in_place(
        &mut self,
        one: &IncomingResult<'_>,
        object: &ObjectId,
        recorded: Option<String>,
    ) -> Excerpt {
        let Self { request, session, .. } = self;
        let is_new = one.taking.arrival.is_recorded_now();
        let text = match request.gated.remove(object) {
            Some(Some(_)) if is_new && !one.taking.excerpts => {
                request.whole.push(object.clone());
                None
            }
            Some(excerpt) => excerpt,
            None => recorded,
        };
        let text = text.map(|excerpt| session.headed(object, &excerpt));
        let earlier = request.segments.times(object);
        let is_full = is_new || request.rolled.form_of(object, earlier) == Form::Full;
        let is_gated = is_full && text.as_ref().is_some_and(|text| *text != one.text);
        Excerpt { text, is_gated }
    }
}
