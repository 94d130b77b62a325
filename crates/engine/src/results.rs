//! Results of tool calls on their way into the request: the object and the evidence of each.

use crate::session::Session;
use crate::session::catalog::is_handle_of;
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::Result;
use crate::session::references::named_object;
use context_evidence::{Arrival, restores, wraps};
use context_lines::Header;
use context_model::collapse::is_control;
use context_model::id::ObjectId;
use context_model::object::{Status, Toolcall};
use context_model::tokens;
use context_projection::Moment;
use context_projection::request::answers::first_excerpt;
use context_projection::request::messages::{has_image, message_tokens, result_text, text_of};
use context_projection::request::prose::is_rules_file;
use context_projection::request::segment::{Carried, Form, Output};
use context_secrets::is_content;
use context_store::AsOf;
use context_tools::{Placeholder, is_said_by};
use serde_json::{Map, Value};
use tracing::instrument;

use crate::engine::{Inner, State};
use crate::identity::UNKNOWN_TOOL;
use crate::job::names_of;
use crate::unsent::is_unsent;

/// The way in which messages are taken in.
#[derive(Clone, Copy)]
pub(crate) struct Taking {
    /// The moment: a result that is recorded now, or one that is read again.
    pub arrival: Arrival,
    /// Large outputs may be shown as excerpts. If nothing may collapse, new outputs are not cut either.
    pub excerpts: bool,
    pub now: Moment,
}

impl Inner {
    /// Takes in one result: records it if that has not been done, and finds its evidence.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn take_in_result(
        &self,
        state: &mut State,
        key: &str,
        message: &Value,
        taking: Taking,
    ) -> Result<()> {
        let (is_new, is_again) = (taking.arrival.is_recorded_now(), taking.arrival.is_read_again());
        let call_id = text_of(message, "toolCallId");
        let text = result_text(message);
        let input = input_of(state, &self.client.chat_id, message, &text);
        let recorded = message.get("recordedArguments").and_then(Value::as_object);
        // The record has the harness's names for the arguments where the engine has others.
        let translated = recorded.map(|args| Toolcall { args: args.clone(), ..input.clone() });
        let named = translated.as_ref().unwrap_or(&input);
        // A host's text in place of an output is neither an output nor a version of a file.
        let placeholder = Placeholder::of(&text).filter(|_| !has_image(message));
        let known = match placeholder {
            None => self.recorded_as(state, named, &text, taking.arrival).await?,
            Some(Placeholder::Cleared) => self.cleared_of(state, named).await?,
            Some(Placeholder::Unchanged) => None,
        };
        let object = match known {
            Some(object) => {
                if is_new && !state.session.stays.contains_key(&object) {
                    self.rejoin(state, &object).await?;
                }
                object
            }
            None if is_new && placeholder.is_none() => {
                let excerpt = first_excerpt(&input.tool, &input.content);
                let file = input.args.get("path").and_then(Value::as_str).and_then(|path| self.file_at(path));
                let before = file.as_ref().and_then(|file| state.known.get(file).copied());
                let id = self.record_now(state, input.clone(), is_again).await?;
                if let (Some(file), Some(before), true) = (file, before, is_again) {
                    // The disk no longer has the content that the call left.
                    state.known.put_back(file, before);
                }
                state.request.gated.insert(id.clone(), excerpt);
                id
            }
            None => {
                state.request.segments.push_fixed(key, message_tokens(message));
                return Ok(());
            }
        };
        if is_unsent(message) {
            state.unsent.objects.insert(object.clone());
        }
        let State { request, session, .. } = &mut *state;
        let is_ok = input.status == Status::Ok;
        request.segments.answer(call_id, &object, is_ok, session, &self.client.options.cwd);
        if is_again {
            state.request.results.insert(object.clone());
        }
        let is_reference = state.session.is_reference(&object, &text);
        let is_told = |outcome| is_said_by(outcome, &text);
        if !is_new
            && !is_reference
            && placeholder.is_none()
            && !state.session.outcome(&object).is_none_or(is_told)
        {
            state.session.catalog.clear_outcome(&object);
        }
        let reference = state.session.reference(&object);
        // After a reference there may be lines for calls that have left.
        if is_reference || placeholder.is_some() {
            if !is_new {
                self.note_left(state, &object, &input, taking.arrival).await?;
            }
            let State { request, session, .. } = state;
            let full_tokens = tokens::estimate(&text) as u64;
            // A long text of the host leaves, too, and does not stand again where the output had left.
            if is_reference || full_tokens <= tokens::estimate(&reference) as u64 {
                request.segments.push_fixed(key, message_tokens(message));
                return Ok(());
            }
            let segment = Output::masked(object.clone(), full_tokens, reference);
            let place = request.segments.push_result(key, segment, session);
            if !is_new {
                request.repeat_rolls(&object, place, &text, session);
            }
            return Ok(());
        }
        if has_image(message) {
            // It stays as it is. Its text is evidence about a file like that of any other result.
            let output = state.session.without_header(&object, &text).to_owned();
            self.note_file(state, &object, &input, &output, taking.arrival).await?;
            state.request.segments.push_pictured(key, message_tokens(message), object);
            return Ok(());
        }
        let excerpt = match state.request.gated.remove(&object) {
            Some(Some(_)) if is_new && !taking.excerpts => {
                state.request.whole.push(object.clone());
                None
            }
            Some(excerpt) => excerpt,
            None if is_new || state.request.rolled.was_whole(&object) => None,
            None => self.excerpt_of(&object, state.session.without_header(&object, &text)).await?,
        };
        let excerpt = excerpt.map(|excerpt| state.session.headed(&object, &excerpt));
        let full_tokens = tokens::estimate(excerpt.as_ref().unwrap_or(&text)) as u64;
        let earlier = state.request.segments.times(&object);
        let is_full = is_new || state.request.rolled.form_of(&object, earlier) == Form::Full;
        let is_gated = is_full && excerpt.as_ref().is_some_and(|excerpt| *excerpt != text);
        let output = state.session.without_header(&object, &text).to_owned();
        let named = output.len() < text.len();
        if taking.arrival == Arrival::Late && input.status == Status::Ok && is_control(&input.tool) {
            self.repeat_control(state, &input.tool, &input.args).await?;
        }
        let carries = self.carried(state, &input.tool, &input.args, &output).await?;
        let shown = match &carries {
            Some(carried) => self.lines_carried(state, &object, carried).await?,
            None => self.note_file(state, &object, &input, &output, taking.arrival).await?,
        };
        let is_rule =
            input.tool == "read" && input.args.get("path").and_then(Value::as_str).is_some_and(is_rules_file);
        let lines = Vec::new();
        let segment = Output {
            object: object.clone(),
            named,
            shown,
            carries,
            excerpt,
            masked: false,
            reference,
            had_changed: false,
            full_tokens,
            is_rule,
            lines,
        };
        let State { request, session, .. } = state;
        let place = request.segments.push_result(key, segment, session);
        if is_gated {
            request.pending.insert(place);
        }
        if !is_new {
            request.repeat_rolls(&object, place, &text, session);
        }
        Ok(())
    }

    /// Returns the excerpt of a recorded output that is shown as this text. If the text differs from the output, it is the
    /// excerpt, unless the tool has only added something to each line.
    async fn excerpt_of(&self, object: &ObjectId, shown: &str) -> Result<Option<String>> {
        let version = self.recorded(object, AsOf::default()).await?;
        let document = version.map(|version| version.document);
        let tool = document.as_ref().and_then(|document| document.text("tool")).unwrap_or_default();
        let content = document.as_ref().and_then(|document| document.content());
        let Some(content) = content else { return Ok(None) };
        // Text removed from the stored copy is still in the shown output.
        let is_shown = document.as_ref().is_some_and(|document| is_content(document, shown));
        let content = if is_shown { shown } else { content };
        let is_other = shown != content && !wraps(content, shown);
        Ok(first_excerpt(tool, content).or_else(|| is_other.then(|| shown.to_owned())))
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

    /// Returns the object whose text an output restores, if any.
    async fn carried(
        &self,
        state: &State,
        tool: &str,
        args: &Map<String, Value>,
        output: &str,
    ) -> Result<Option<Carried>> {
        let Some(object) = named_object(&state.session, tool, args) else { return Ok(None) };
        let Some(text) = self.newest_text(&object).await? else { return Ok(None) };
        let whole = restores(output, &text);
        let version = state.session.hash_of(&object);
        Ok(Some(Carried { object, whole, version }))
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
