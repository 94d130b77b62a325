//! Records of the agent's actions: tool calls, files, and the turns of the chat.
//!
//! Architecture invariant: calls that share a write have the outcome that each would have had alone, in the order of arrival.
//! If one of a group writes an object that another one touches, or one of them fails, they run one by one.

use crate::files::index::{FileEntry, FileReader, IndexResult, prepare};
use crate::files::observed::{Observed, ObservedFile};
use crate::files::reading::FileState;
use crate::session::Session;
use crate::session::catalog::Meta;
use crate::session::client::{Client, Fsync};
use crate::session::commit::{Intent, Work};
use crate::session::error::{EngineError, Result};
use crate::session::paths::Disk;
use crate::session::refresh;
use context_evidence::{Content, Evidence, passage_of};
use context_model::canonical::{MAX_DEPTH, flattened, is_deeper_than};
use context_model::chat::RollEntry;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Document, Toolcall};
use context_store::{AsOf, StoreError};
use context_tools::OutputOf;
use serde_json::Value;
use tokio::sync::oneshot::Receiver;
use tracing::instrument;

use crate::engine::{Engine, Inner, State};
use crate::identity::object_of;
use crate::job::{CallObject, Job, Reply, abandoned, answered, correct, depend, outcome_of};

impl Engine {
    /// Records a tool call: a `toolcall` object in index, pool and active set, part of the current turn. Objects that the
    /// window collapses become inactive; files that the call read, wrote or named are indexed.
    ///
    /// A call already recorded with the same ID, tool, arguments, content and status is the same object.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a call without a tool name; errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn record_toolcall(&self, input: Toolcall) -> Result<ObjectId> {
        if input.args.values().any(|value| is_deeper_than(value, MAX_DEPTH)) {
            let wrong = format!("a tool call's arguments must be nested at most {MAX_DEPTH} levels deep");
            return Err(EngineError::Invalid(wrong));
        }
        self.inner.record(input, Fsync::Now).await
    }

    /// Starts a turn with a user's message, or adds the assistant's answer to the current one. The message is kept
    /// unchanged: content, and for an answer also provider, model, usage and stop reason.
    ///
    /// Returns the number of turns.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a message whose role is neither `user` nor `assistant`, or whose content is neither text nor
    /// blocks; errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn append_turn(&self, message: Value) -> Result<usize> {
        let is_user = message.get("role").and_then(Value::as_str) == Some("user");
        let has_content = match message.get("content") {
            Some(Value::String(_) | Value::Array(_) | Value::Object(_)) => true,
            Some(Value::Null) => !is_user,
            _ => false,
        };
        if message.is_object() && !has_content {
            return Err(EngineError::Invalid("a message must have a content: a text, or blocks".into()));
        }
        let mut state = self.inner.lock().await?;
        if is_user {
            self.inner.refresh_at_turn(&mut state).await?;
        }
        self.inner.add_message(&mut state, Fsync::Now, &message).await?;
        Ok(state.session.turns)
    }

    /// Records the system prompt; the same text again writes nothing.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn set_system_prompt(&self, text: &str) -> Result<()> {
        let mut state = self.inner.lock().await?;
        let session = self.inner.client.session_id();
        if !self.inner.client.options.is_new {
            // A journal then has the version that this one replaces, and dates it after that, also if another machine's clock runs
            // ahead.
            match self.inner.store().get(&ObjectId::system_prompt(session), AsOf::default()).await {
                Ok(_) | Err(StoreError::Unavailable(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let add = |_: &Session, work: &mut Work| {
            work.documents.push(Document::system_prompt(session, text));
            Ok(())
        };
        self.inner.commit(&mut state, Fsync::Now, add).await
    }
}

impl Inner {
    /// Records a tool call together with the jobs that are waiting.
    pub(crate) async fn record(&self, input: Toolcall, fsync: Fsync) -> Result<ObjectId> {
        self.check_open()?;
        let (job, answer) = self.toolcall_job(input, false).await?;
        self.perform(job, answer, fsync).await
    }

    /// The same for a caller that already holds the state. `is_late`: the disk no longer has the content that the call left.
    pub(crate) async fn record_now(
        &self,
        state: &mut State,
        input: Toolcall,
        is_late: bool,
    ) -> Result<ObjectId> {
        let (mut job, answer) = self.toolcall_job(input, is_late).await?;
        let done = self.perform_now(state, Fsync::WithSettle, &mut job).await;
        job.reply(done);
        answer.await.unwrap_or_else(|_| Err(abandoned()))
    }

    /// The indexing protocol for files that were looked at, all in one transaction.
    pub(crate) async fn index(&self, seen: Vec<ObservedFile>, entry: FileEntry) -> Result<Vec<IndexResult>> {
        let (reply, answer) = Reply::new();
        self.perform(Job::Files(seen, entry, reply), answer, Fsync::Now).await
    }

    /// Adds a user's or an assistant's message to the chat.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for one that is neither, or too deeply nested; errors of the store.
    pub(crate) async fn add_message(&self, state: &mut State, fsync: Fsync, message: &Value) -> Result<()> {
        let window = self.client.options.window;
        let is_user = message.get("role").and_then(Value::as_str) == Some("user");
        let anew = state.is_anew.then(|| RollEntry { anew: true, ..RollEntry::default() });
        let add = |session: &Session, work: &mut Work| {
            if let Some(anew) = &anew {
                work.chat.roll(anew);
            }
            work.chat.message(message)?;
            if is_user {
                session.collapse(window, work.chat.current_turn(), work);
            }
            Ok(())
        };
        self.commit(state, fsync, add).await?;
        if let Some(anew) = anew {
            let turn = state.session.turns.saturating_sub(1);
            state.request.rolled.note(anew, turn);
            state.is_anew = false;
        }
        state.compared = 0;
        Ok(())
    }

    /// Takes a recorded call into the current turn if the restored state does not have it: the process ended between
    /// the call's result and the end of its turn.
    pub(crate) async fn rejoin(&self, state: &mut State, id: &ObjectId) -> Result<()> {
        let window = self.client.options.window;
        let join = |session: &Session, work: &mut Work| {
            session.join_turn(id, window, work);
            Ok(())
        };
        self.commit(state, Fsync::WithSettle, join).await
    }

    async fn toolcall_job(
        &self,
        mut input: Toolcall,
        is_late: bool,
    ) -> Result<(Job, Receiver<Result<ObjectId>>)> {
        if input.tool.is_empty() {
            return Err(EngineError::Invalid("a tool call must name its tool".into()));
        }
        for value in input.args.values_mut().filter(|value| is_deeper_than(value, MAX_DEPTH)) {
            *value = flattened(value, MAX_DEPTH);
        }
        let Toolcall { tool, args, content, status, .. } = &input;
        let mut observed = self.file_reader().observe(tool, args, content, *status).await?;
        observed.evidence = self.evidence_for(&input, &observed).await?;
        self.leave_known(&mut observed, content, is_late).await?;
        observed.is_late = is_late;
        observed.outcome = outcome_of(&input, observed.evidence.as_ref());
        let (reply, answer) = Reply::new();
        // The job checks when it records whether the store has this object, or another call under this ID.
        let object = CallObject { id: ObjectId::toolcall(&input.id), is_new: true };
        Ok((Job::Toolcall(Box::new(input), observed, object, reply), answer))
    }

    /// Takes a call's text of a file in a sandbox only without a better source: the host passed in the bytes, or the output
    /// shows the stored text. A late call has an old text, which counts if it is the only one.
    async fn leave_known(&self, observed: &mut Observed, output: &str, is_late: bool) -> Result<()> {
        let is_passed_in = observed.evidence.is_some();
        for (seen, entry) in &mut observed.files {
            if seen.place.disk != Disk::Inside || seen.state.text().is_none() {
                continue;
            }
            let stored = if is_passed_in { None } else { self.newest_text(&seen.id).await? };
            let is_shown = |text: &String| {
                let content = Content::lost(Digest::of(text.as_bytes()));
                let shown = passage_of(text, content, 1, output, OutputOf::Reader);
                *entry == FileEntry::Read && shown.is_some_and(|(lines, _)| lines.whole)
            };
            if is_passed_in || stored.is_some_and(|text| is_late || is_shown(&text)) {
                *seen = ObservedFile::discovered(seen.place.clone());
                *entry = FileEntry::Discovered;
            }
        }
        Ok(())
    }

    /// Runs a job together with the others that are waiting.
    ///
    /// # Errors
    /// The job's own: `CLOSED`, `INVALID_ARGUMENT`, errors of the store.
    async fn perform<T>(&self, job: Job, mut answer: Receiver<Result<T>>, fsync: Fsync) -> Result<T> {
        self.queue.push(job, fsync);
        // Callers get the state in order of arrival, and the first one does the work of those behind it.
        let mut state = match self.lock().await {
            Ok(state) => state,
            Err(closed) => {
                self.queue.clear();
                // If the instance was closed in between, the job may have run before that.
                return answer.try_recv().unwrap_or(Err(closed));
            }
        };
        loop {
            if let Some(result) = answered(&mut answer) {
                return result;
            }
            let group = self.queue.take();
            let is_now = group.iter().any(|one| one.fsync == Fsync::Now);
            let fsync = if is_now { Fsync::Now } else { Fsync::WithSettle };
            self.perform_all(&mut state, fsync, group.into_iter().map(|one| one.job).collect()).await;
        }
    }

    async fn perform_all(&self, state: &mut State, fsync: Fsync, mut jobs: Vec<Job>) {
        if jobs.len() > 1 && self.carry_out(state, fsync, &mut jobs).await.is_ok_and(|is_done| is_done) {
            jobs.into_iter().for_each(|job| job.reply(Ok(())));
            return;
        }
        for mut job in jobs {
            let done = self.perform_now(state, fsync, &mut job).await;
            job.reply(done);
        }
    }

    /// Runs one job in its own transaction.
    pub(crate) async fn perform_now(&self, state: &mut State, fsync: Fsync, job: &mut Job) -> Result<()> {
        // One job depends on no other.
        self.carry_out(state, fsync, std::slice::from_mut(job)).await.map(drop)
    }

    /// Runs jobs in one transaction. False if they depend on each other; then, as after an error, the state is as before.
    async fn carry_out(&self, state: &mut State, fsync: Fsync, jobs: &mut [Job]) -> Result<bool> {
        let file_reader = self.file_reader();
        let mut recording = Recording { file_reader: &file_reader, jobs };
        let Ok(((), written)) = self.transact(state, fsync, &mut recording).await? else {
            return Ok(false);
        };
        correct(jobs, &written);
        for job in &*jobs {
            if let Job::Toolcall(_, observed, _, Reply { outcome: Some(id), .. }) = job {
                self.records().archive.recorded(id, observed.evidence.as_ref());
            }
        }
        for job in &*jobs {
            for seen in job.seen() {
                if let Disk::At(path) = &seen.place.disk {
                    if seen.state == FileState::Discovered {
                        self.tracking.track_unread(path, &seen.place.source);
                    } else {
                        self.tracking.track(path, &seen.place.source);
                    }
                    if !job.is_tracked() {
                        self.tracking.pending_reads().seen(path, seen.answers());
                    }
                }
            }
            if let Job::Toolcall(input, observed, object, _) = job {
                self.note_written(state, input, observed, &object.id).await;
            }
        }
        Ok(true)
    }
}

impl State {
    /// Notes that the model knows the text that it wrote itself.
    pub(crate) fn wrote(&mut self, file: &ObjectId) {
        if let Some(meta) = self.session.catalog.get(file) {
            let content = Content::stored(self.session.hash_of(file), meta.tx);
            self.known.wrote(file, content);
        }
    }
}

/// Jobs on their way into one transaction.
struct Recording<'a> {
    file_reader: &'a FileReader,
    jobs: &'a mut [Job],
}

/// The jobs depend on each other.
struct Dependent;

impl Intent for Recording<'_> {
    type Outcome = ();
    type Refusal = Dependent;

    async fn ask(&mut self, client: &Client, session: &mut Session) -> Result<()> {
        if self.jobs.iter().any(|job| job.seen().next().is_some()) {
            refresh::refresh(client, session).await?;
            let ids: Vec<ObjectId> =
                self.jobs.iter().flat_map(Job::seen).map(|seen| seen.id.clone()).collect();
            refresh::learn(client, session, ids).await?;
            self.file_reader.read_anew(session, self.jobs.iter_mut().flat_map(Job::seen_mut)).await?;
            let seen = self.jobs.iter().flat_map(Job::seen);
            let read = seen.filter(|seen| seen.state.hash().is_some()).map(|seen| &seen.id);
            refresh::recall_lost(client, session, read).await?;
        }
        for job in &mut *self.jobs {
            if let Job::Toolcall(input, _, object, _) = job {
                *object = object_of(client, session, input).await?;
            }
        }
        Ok(())
    }

    fn decide(
        &mut self,
        client: &Client,
        session: &Session,
        work: &mut Work,
    ) -> Result<std::result::Result<(), Dependent>> {
        for job in &mut *self.jobs {
            match job {
                Job::Toolcall(input, observed, object, reply) => {
                    add_toolcall(client, session, input, observed, object, work);
                    reply.outcome = Some(object.id.clone());
                }
                Job::Files(seen, entry, reply) => {
                    let done = seen.iter().map(|one| prepare(client, session, one, *entry, work)).collect();
                    reply.outcome = Some(done);
                }
            }
        }
        Ok(if self.jobs.len() > 1 && depend(self.jobs, work) { Err(Dependent) } else { Ok(()) })
    }
}

/// Adds a tool call to a transaction under construction, with its observed files and its effect on the sets.
fn add_toolcall(
    client: &Client,
    session: &Session,
    input: &Toolcall,
    observed: &Observed,
    CallObject { id, is_new }: &CallObject,
    work: &mut Work,
) {
    let mut file_refs = observed.add(client, session, work);
    for file in &input.file_refs {
        if !file_refs.contains(file) {
            file_refs.push(file.clone());
        }
    }
    if *is_new {
        work.expected.entry(id.clone()).or_insert(None);
        let call = Toolcall { file_refs, ..input.clone() };
        let evidence = observed.evidence.as_ref().map(Evidence::to_value);
        let outcome = observed.outcome.as_deref();
        let document = Document::toolcall_with(id.clone(), &client.chat_id, call, evidence, outcome);
        if let Some(meta) = Meta::from_document(&document, session.seen) {
            work.ahead.insert(id.clone(), meta);
        }
        work.documents.push(document);
    } else if session.sets.after(&work.change).is_indexed(id) {
        return;
    }
    if input.parent.is_some() {
        session.sets.encounter(id, &mut work.change);
    } else {
        session.join_turn(id, client.options.window, work);
    }
}
