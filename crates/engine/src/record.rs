//! Recording what the agent does: tool calls and the turns of the chat (SSOT 2.5, 5.7).

use context_model::canonical::{self, MAX_DEPTH, is_deeper_than};
use context_model::error::ModelError;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Document, Status, Toolcall};
use context_model::patch::Patch;
use context_store::AsOf;
use serde_json::{Map, Value, json};

use crate::catalog::Meta;
use crate::engine::{Engine, Inner};
use crate::error::{EngineError, Result};
use crate::group::{Done, Job};
use crate::observed::Observed;
use crate::state::{Chat, State, Work, empty_turn};

/// How many objects may share one call ID before the library gives up telling them apart.
const MAX_SAME_CALL_ID: usize = 100_000;

/// A tool execution as the harness reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolcallInput {
    /// The harness's call ID, verbatim; may be empty or repeated.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments as the model gave them.
    pub args: Map<String, Value>,
    /// A short form of the arguments for people.
    pub args_display: Option<String>,
    /// The complete output text.
    pub content: String,
    /// Whether the tool succeeded.
    pub status: Status,
    /// File objects that the caller knows to be concerned; the engine adds those it finds itself.
    pub file_refs: Vec<ObjectId>,
}

impl Engine {
    /// Records a tool call: a `toolcall` object in index, pool and active set, part of the current turn; what
    /// the window lets go becomes inactive; files that it read, wrote or named are indexed (SSOT 5.6, 5.7).
    ///
    /// A call that was recorded before with equal tool, arguments, content and status is the same object.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a call without a tool name; what the store reports.
    pub async fn record_toolcall(&self, input: ToolcallInput) -> Result<ObjectId> {
        self.record_as(input, false).await
    }

    /// As [`Engine::record_toolcall`]; `soon` leaves the sync to [`Engine::settle`].
    pub(crate) async fn record_as(&self, input: ToolcallInput, soon: bool) -> Result<ObjectId> {
        self.inner.check_open()?;
        if input.tool.is_empty() {
            return Err(EngineError::Invalid("a tool call names its tool".into()));
        }
        if input.args.values().any(|value| is_deeper_than(value, MAX_DEPTH)) {
            let wrong = format!("a tool call's arguments are nested at most {MAX_DEPTH} levels deep");
            return Err(EngineError::Invalid(wrong));
        }
        let observed = self.inner.observe(&input).await?;
        recorded(self.inner.perform(Job::Toolcall(input, observed), soon).await?)
    }

    /// Starts a turn with a user's message, or adds the assistant's answer to the current one. The message is
    /// kept as it is: content, and for an answer provider, model, usage and stop reason.
    ///
    /// Returns the number of turns.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a message whose role is neither `user` nor `assistant`; what the store reports.
    pub async fn append_turn(&self, message: Value) -> Result<usize> {
        let mut state = self.inner.lock().await?;
        if message.get("role").and_then(Value::as_str) == Some("user") {
            self.inner.refresh_at_turn(&mut state).await?;
        }
        for attempt in 0.. {
            let mut work = Work::default();
            self.inner.add_message(&mut state, &message, &mut work)?;
            match self.inner.save(&mut state, work).await {
                Ok(_) => break,
                Err(error) => self.inner.retry(&mut state, attempt, error).await?,
            }
        }
        Ok(state.chat.turns)
    }

    /// Records the system prompt; the same text again writes nothing.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn set_system_prompt(&self, text: &str) -> Result<()> {
        let mut state = self.inner.lock().await?;
        let document = Document::system_prompt(&self.inner.options.session_id, text);
        let work = Work { documents: vec![document], ..Work::default() };
        self.inner.save(&mut state, work).await?;
        Ok(())
    }
}

impl Inner {
    /// As [`Engine::record_toolcall`] for a caller that has the state already.
    pub(crate) async fn record(
        &self,
        state: &mut State,
        input: ToolcallInput,
        observed: Observed,
    ) -> Result<ObjectId> {
        recorded(self.perform_now(state, &mut Job::Toolcall(input, observed)).await?)
    }

    /// Adds a tool call to a transaction in the making, and what its arrival does to the sets.
    pub(crate) async fn add_toolcall(
        &self,
        state: &mut State,
        input: &ToolcallInput,
        mut file_refs: Vec<ObjectId>,
        work: &mut Work,
    ) -> Result<ObjectId> {
        for id in &input.file_refs {
            if !file_refs.contains(id) {
                file_refs.push(id.clone());
            }
        }
        let call = Toolcall {
            tool: input.tool.clone(),
            args: input.args.clone(),
            args_display: input.args_display.clone(),
            content: input.content.clone(),
            status: input.status,
            chat_ref: self.chat_id.clone(),
            file_refs,
        };
        let (id, is_new) = self.toolcall_id(state, &input.call_id, &call).await?;
        if is_new {
            work.expected.push((id.clone(), None));
            work.documents.push(Document::toolcall(id.clone(), call));
        } else if state.sets.index().contains(&id) {
            return Ok(id);
        }
        self.join_turn(state, &id, work);
        if is_new {
            // The window decides over this call too, so it must be known before it is saved.
            let kind = crate::catalog::Kind::Toolcall { tool: input.tool.clone(), status: input.status };
            state.catalog.put(&id, Meta { kind, is_null: false, tx: state.seen });
            work.ahead.push(id.clone());
        }
        let turn = work.chat_after.unwrap_or(state.chat).current_turn();
        state.collapse(self, turn, &mut work.change);
        Ok(id)
    }

    /// Makes a recorded call part of the current turn, and active.
    fn join_turn(&self, state: &mut State, id: &ObjectId, work: &mut Work) {
        let mut chat = work.chat_after.unwrap_or(state.chat);
        if chat.turns == 0 {
            start_turn(&mut chat, Value::Null, &mut work.chat);
        }
        let turn = chat.current_turn().to_string();
        work.chat.append(&["turns", &turn, "toolcall_ids"], json!(id));
        work.chat.append(&["toolcall_refs"], json!(id));
        work.chat_after = Some(chat);
        state.sets.activate(id, &mut work.change);
        state.stay(id, chat.current_turn(), work);
    }

    /// Takes a recorded call into the current turn, where the state that was restored does not have it: the
    /// process ended between the call's result and the end of its turn.
    pub(crate) async fn rejoin(&self, state: &mut State, id: &ObjectId) -> Result<()> {
        for attempt in 0.. {
            let mut work = Work::default();
            self.join_turn(state, id, &mut work);
            let turn = work.chat_after.unwrap_or(state.chat).current_turn();
            state.collapse(self, turn, &mut work.change);
            match self.save(state, work).await {
                Ok(_) => break,
                Err(error) => self.retry(state, attempt, error).await?,
            }
        }
        Ok(())
    }

    /// The object ID of a call, and whether it is to be created: the harness's ID verbatim, unless the store
    /// has another call under it.
    async fn toolcall_id(
        &self,
        state: &mut State,
        call_id: &str,
        call: &Toolcall,
    ) -> Result<(ObjectId, bool)> {
        let start = state.repeated.get(call_id).copied().unwrap_or(0);
        if start > 0 {
            let what = fingerprint(&call.tool, &call.args, &call.content, call.status.as_str());
            if let Some(id) = state.same_calls.get(&(call_id.to_owned(), what)).cloned() {
                self.learn(state, std::iter::once(id.clone())).await?;
                return Ok((id, false));
            }
        }
        for n in start..MAX_SAME_CALL_ID {
            let id = ObjectId::toolcall(call_id, n);
            // The cheap question first: most calls are new.
            if self.store().outlines(std::slice::from_ref(&id)).await? == [None] {
                return Ok((id, true));
            }
            let Some(stored) = self.store().get(&id, AsOf::default()).await? else {
                return Ok((id, true));
            };
            let document = &stored.document;
            let same = document.content() == Some(&call.content)
                && document.text("tool") == Some(&call.tool)
                && document.text("status") == Some(call.status.as_str())
                && document.field("args").and_then(Value::as_object) == Some(&call.args);
            if same {
                if let Some(meta) = Meta::of_document(document, stored.tx_id) {
                    state.catalog.put(&id, meta);
                }
                return Ok((id, false));
            }
            if let Some(args) = document.field("args").and_then(Value::as_object) {
                let text = |name: &str| document.text(name).unwrap_or_default();
                let what = fingerprint(text("tool"), args, text("content"), text("status"));
                state.same_calls.insert((call_id.to_owned(), what), id);
            }
            state.repeated.insert(call_id.to_owned(), n + 1);
        }
        Err(EngineError::Invalid(format!("more than {MAX_SAME_CALL_ID} different tool calls share one ID")))
    }

    /// Adds a message to the chat in a transaction in the making.
    pub(crate) fn add_message(&self, state: &mut State, message: &Value, work: &mut Work) -> Result<()> {
        if is_deeper_than(message, MAX_DEPTH) {
            return Err(EngineError::Invalid(format!("a message is nested at most {MAX_DEPTH} levels deep")));
        }
        let mut chat = work.chat_after.unwrap_or(state.chat);
        let content = message.get("content").cloned().unwrap_or(Value::Null);
        match message.get("role").and_then(Value::as_str) {
            Some("user") => {
                start_turn(&mut chat, content, &mut work.chat);
                state.collapse(self, chat.current_turn(), &mut work.change);
            }
            Some("assistant") => {
                if chat.turns == 0 {
                    start_turn(&mut chat, Value::Null, &mut work.chat);
                }
                let turn = chat.current_turn().to_string();
                let answer = json!({ "content": content, "meta": assistant_meta(message) });
                work.chat.append(&["turns", &turn, "assistant"], answer);
            }
            _ => {
                let wrong = "a turn has messages with the role user or assistant".to_owned();
                return Err(ModelError::Invalid(wrong).into());
            }
        }
        work.chat_after = Some(chat);
        Ok(())
    }
}

fn recorded(done: Done) -> Result<ObjectId> {
    match done {
        Done::Toolcall(id) => Ok(id),
        Done::Files(_) => unreachable!("a tool call was handed over"),
    }
}

/// What tells two calls with the same ID apart.
fn fingerprint(tool: &str, args: &Map<String, Value>, content: &str, status: &str) -> Digest {
    let what = json!({ "tool": tool, "args": args, "content": content, "status": status });
    Digest::of(canonical::to_string(&what).as_bytes())
}

fn start_turn(chat: &mut Chat, user: Value, patch: &mut Patch) {
    patch.append(&["turns"], empty_turn(user));
    chat.turns += 1;
    patch.set(&["turn_count"], json!(chat.turns));
}

/// Everything that the harness says of an answer besides its role and content.
fn assistant_meta(message: &Value) -> Value {
    let Value::Object(fields) = message else { return json!({}) };
    let kept = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "role" | "content"));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}
