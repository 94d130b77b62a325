//! Taking in the harness's messages: what each becomes in the record, and what of it is visible.

use context_model::excerpt::{Gate, excerpt};
use context_model::id::ObjectId;
use context_model::marker;
use context_model::object::Status;
use context_model::pricing::Policy;
use context_model::{render, tokens};
use context_store::AsOf;
use serde_json::{Map, Value};

use crate::catalog::Kind;
use crate::engine::Inner;
use crate::error::Result;
use crate::messages::{block_units, has_image, message_tokens, result_text, text_of};
use crate::piece::{CollapsedCall, Excerpts, Form, NewResult};
use crate::project::{Call, Edit, Incoming, Plan};
use crate::record::ToolcallInput;
use crate::state::{State, Work};

/// Arguments of calls that wait for their result, by call ID.
pub(crate) type OpenCalls = std::collections::HashMap<String, Map<String, Value>>;

/// How messages are taken in.
#[derive(Clone, Copy)]
pub(crate) struct Taking {
    /// They are not part of the record yet.
    pub record: bool,
    /// Large outputs may be shown as excerpts.
    pub excerpts: bool,
}

impl Taking {
    /// New messages. Where nothing may collapse nothing is cut at birth either.
    pub fn new(call: &Call) -> Self {
        Self { record: true, excerpts: call.rolls }
    }
}

impl Inner {
    pub async fn take_in(
        &self,
        state: &mut State,
        incoming: &Incoming,
        policy: &Policy,
        taking: Taking,
        plan: &mut Plan,
    ) -> Result<()> {
        let Incoming { key, message } = incoming;
        match text_of(message, "role") {
            "user" => {
                if taking.record {
                    self.add_to_chat(state, message).await?;
                } else {
                    let State { sight, sets, .. } = state;
                    sight.start_turn(sets);
                }
                state.sight.push_fixed(key, message_tokens(message));
            }
            "assistant" => {
                if taking.record {
                    self.add_to_chat(state, message).await?;
                }
                // JavaScript's times arrive as floating-point numbers.
                state.last_call_ms = message.get("timestamp").and_then(Value::as_f64).map(|ms| ms as i64);
                // The call that gave this answer was made with what was visible before it.
                let estimated = state.sight.tokens();
                state.accounting.learn(&state.model, estimated, message);
                let charge = state.sight.charge(policy);
                if taking.record {
                    state.spent += charge.cost(&policy.prices);
                }
                state.cached_model = state.model.clone();
                if matches!(text_of(message, "stopReason"), "error" | "aborted") {
                    return Ok(());
                }
                state.push_answer(key, message, &self.options.cwd);
            }
            "toolResult" => self.take_in_result(state, key, message, taking, plan).await?,
            _ => state.sight.push_fixed(key, message_tokens(message)),
        }
        Ok(())
    }

    async fn add_to_chat(&self, state: &mut State, message: &Value) -> Result<()> {
        for attempt in 0.. {
            let mut work = Work::default();
            self.add_message(state, message, &mut work)?;
            match self.save(state, work).await {
                Ok(_) => break,
                Err(error) => self.retry(state, attempt, error).await?,
            }
        }
        Ok(())
    }

    async fn take_in_result(
        &self,
        state: &mut State,
        key: &str,
        message: &Value,
        taking: Taking,
        plan: &mut Plan,
    ) -> Result<()> {
        let call_id = text_of(message, "toolCallId");
        let text = result_text(message);
        let known = state.object_of(call_id, &text).or_else(|| state.expected_object(call_id));
        let object = match known {
            Some(object) => {
                if taking.record && !state.stays.contains_key(&object) {
                    self.rejoin(state, &object).await?;
                }
                object
            }
            None if taking.record => {
                let input = self.input_of(state, message, &text);
                let observed = self.observe(&input).await?;
                let excerpts = excerpts(&input.tool, &input.content);
                let id = self.record(state, input, observed).await?;
                state.gated.insert(id.clone(), excerpts);
                id
            }
            None => {
                state.sight.push_fixed(key, message_tokens(message));
                return Ok(());
            }
        };
        state.sight.answer(call_id, &object);
        let reference = state.reference(&object);
        if text == reference || has_image(message) {
            state.sight.push_fixed(key, message_tokens(message));
            return Ok(());
        }
        let mut size = tokens::estimate(&text) as u64;
        let mut excerpts = match state.gated.remove(&object) {
            Some(excerpts) => excerpts,
            None if taking.record => Excerpts::default(),
            None => self.excerpts_of(&object).await?,
        };
        if taking.record && !taking.excerpts {
            excerpts.born = None;
        }
        for excerpt in [&mut excerpts.born, &mut excerpts.faded].into_iter().flatten() {
            *excerpt = state.headed(&object, excerpt);
        }
        if let Some(excerpt) = &excerpts.born {
            size = tokens::estimate(excerpt) as u64;
            let is_born = taking.record || state.rolled.form_of(&object) == Form::Born;
            if is_born && *excerpt != text {
                let edits = if taking.record { &mut plan.edits } else { &mut state.pending };
                let text = Some(excerpt.clone());
                edits.push(Edit::Result { key: key.to_owned(), object: object.clone(), text });
            }
        }
        let args = state.open_calls.remove(call_id).unwrap_or_default();
        let shown = match args.get("path").and_then(Value::as_str) {
            Some(path) if text_of(message, "toolName") == "read" => {
                let offset = args.get("offset").and_then(Value::as_u64).map(|n| n as usize);
                let output = state.without_header(&object, &text);
                self.lines_shown(state, &object, path, offset, output).await?
            }
            _ => None,
        };
        if let Some(lines) = &shown
            && state.hash_of(&lines.file) == Some(lines.hash)
        {
            state.know(&lines.file, lines.hash);
        }
        let State { sight, sets, .. } = state;
        let result = NewResult { object: object.clone(), shown, excerpts, reference, tokens: size };
        sight.push_result(key, result, sets);
        if !taking.record {
            state.repeat_rolls(&object, &text);
        }
        Ok(())
    }

    /// The excerpts of a recorded output.
    async fn excerpts_of(&self, object: &ObjectId) -> Result<Excerpts> {
        let version = self.store().get(object, AsOf::default()).await?;
        let document = version.map(|version| version.document);
        let tool = document.as_ref().and_then(|document| document.text("tool")).unwrap_or_default();
        let content = document.as_ref().and_then(|document| document.content());
        Ok(content.map(|content| excerpts(tool, content)).unwrap_or_default())
    }

    /// A result that no hook has reported, as a tool call: its arguments are those of its call.
    fn input_of(&self, state: &State, message: &Value, text: &str) -> ToolcallInput {
        let call_id = text_of(message, "toolCallId");
        ToolcallInput {
            call_id: call_id.to_owned(),
            tool: match text_of(message, "toolName") {
                "" => "unknown".to_owned(),
                name => name.to_owned(),
            },
            args: state.open_calls.get(call_id).cloned().unwrap_or_default(),
            args_display: None,
            content: text.to_owned(),
            status: if message.get("isError") == Some(&Value::Bool(true)) {
                Status::Fail
            } else {
                Status::Ok
            },
            file_refs: Vec::new(),
        }
    }
}

impl State {
    fn push_answer(&mut self, key: &str, message: &Value, cwd: &str) {
        let blocks = message.get("content").and_then(Value::as_array);
        let (mut prose, mut full, mut collapsed) = (0, 0, 0);
        let mut calls = Vec::new();
        let mut position = 0;
        for block in blocks.into_iter().flatten() {
            if text_of(block, "type") != "toolCall" {
                prose += block_units(block);
                continue;
            }
            position += 1;
            let call_id = text_of(block, "id");
            let args = block.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
            let units = block_units(block);
            full += units;
            let signed = block.get("thoughtSignature").is_some_and(|s| !s.is_null());
            let short =
                if signed { None } else { self.collapsed(call_id, text_of(block, "name"), &args, cwd) };
            match short {
                Some(marker::Collapsed { args, saved_chars, .. }) => {
                    collapsed += units.saturating_sub(saved_chars);
                    let position = position - 1;
                    calls.push(CollapsedCall { call_id: call_id.to_owned(), position, object: None, args });
                }
                None => collapsed += units,
            }
            self.open_calls.insert(call_id.to_owned(), args);
        }
        self.sight.push_fixed(key, tokens::of_chars(prose) as u64);
        if calls.is_empty() {
            self.sight.push_fixed(key, tokens::of_chars(full) as u64);
        } else {
            let (full, collapsed) = (tokens::of_chars(full) as u64, tokens::of_chars(collapsed) as u64);
            self.sight.push_arguments(key, calls, full, collapsed);
        }
    }

    /// The collapsed form of a call's arguments, where it is shorter.
    fn collapsed(
        &mut self,
        call_id: &str,
        tool: &str,
        args: &Map<String, Value>,
        cwd: &str,
    ) -> Option<marker::Collapsed> {
        self.issued.extend(marker::tags_in(args));
        let object = ObjectId::toolcall(call_id, self.repeated.get(call_id).copied().unwrap_or(0));
        let handle = self.catalog.handle_of(&object);
        marker::collapse_args(tool, args, &handle, cwd)
    }

    /// The line before an output: the name under which it can be had again. The call above it says the rest.
    pub fn header(&self, id: &ObjectId) -> String {
        format!("id={}", render::word(self.handle(id).as_str()))
    }

    /// An excerpt under its object's header.
    pub fn headed(&self, id: &ObjectId, excerpt: &str) -> String {
        format!("{}\n{excerpt}", self.header(id))
    }

    /// An output as the tool gave it, without the line that was put before it.
    fn without_header<'a>(&self, id: &ObjectId, text: &'a str) -> &'a str {
        text.strip_prefix(self.header(id).as_str()).and_then(|rest| rest.strip_prefix('\n')).unwrap_or(text)
    }

    /// The line that stands in place of an object's output, under its handle.
    pub fn reference(&self, id: &ObjectId) -> String {
        match self.catalog.get(id).map(|meta| &meta.kind) {
            Some(Kind::Toolcall { tool, status }) => {
                render::toolcall_ref(&ObjectId::new(self.handle(id)), tool, *status)
            }
            _ => String::new(),
        }
    }

    pub fn handle(&self, id: &ObjectId) -> String {
        self.catalog.handle(id).unwrap_or(id.as_str()).to_owned()
    }

    /// The object that a result's first line names: its header, or the reference that replaced it. An output can
    /// say anything, so only an object of this very call is believed.
    fn object_of(&self, call_id: &str, text: &str) -> Option<ObjectId> {
        let first = text.lines().next()?;
        let rest = first.strip_prefix("toolcall_ref ").unwrap_or(first);
        let handle = rest.strip_prefix("id=")?.split(' ').next()?;
        let id = self.catalog.find(handle)?;
        (id.is_toolcall(call_id) && (self.header(&id) == first || self.reference(&id) == first)).then_some(id)
    }

    /// The object of a call that was recorded and has no place in the request yet.
    fn expected_object(&self, call_id: &str) -> Option<ObjectId> {
        let last = self.repeated.get(call_id).copied().unwrap_or(0);
        let id = ObjectId::toolcall(call_id, last);
        (self.sets.index().contains(&id) && !self.sight.knows(&id)).then_some(id)
    }
}

/// What is shown of an output in place of all of it, without a header.
pub(crate) fn excerpts(tool: &str, content: &str) -> Excerpts {
    let text = |gate: Gate| excerpt(content, &gate).map(|excerpt| excerpt.text);
    Excerpts { born: Gate::for_tool(tool).and_then(text), faded: text(Gate::fading(tool)) }
}
