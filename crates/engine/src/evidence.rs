//! The evidence about files in results of tool calls.

use std::borrow::Cow;

use context_evidence::{
    Content, EVIDENCE_FIELD, Evidence, KnownVersion, Passage, StatementKind, Way, Wrote, patch_in,
};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Toolcall;
use context_model::observe::shown_by_shell;
use context_model::time::TxId;
use context_projection::request::segment::{Carried, ShownLines};
use context_session::Session;
use context_session::client::Fsync;
use context_session::commit::Work;
use context_session::error::Result;
use context_store::AsOf;
use serde_json::{Map, Value};

use crate::engine::{Inner, State, UnclaimedWrites};
use crate::job::UnstoredRead;
use crate::results::Taking;

impl Inner {
    /// Returns the lines of a file in an output that restores an earlier read of it, or the file itself.
    pub async fn lines_carried(
        &self,
        state: &mut State,
        call: &ObjectId,
        carried: &Carried,
    ) -> Result<Option<ShownLines>> {
        let Carried { object, whole: true, .. } = carried else { return Ok(None) };
        if state.session.is_toolcall(object) {
            let in_sight = state.request.segments.lines_of(object).map(|lines| lines.file.clone());
            let shown = in_sight.and_then(|file| Some((state.known.shown_by(&file, object)?, file)));
            let shown = shown.map(|(lines, file)| (lines, file, None));
            let shown = if shown.is_some() { shown } else { self.lines_recorded(state, object).await? };
            let Some((lines, file, way)) = shown else { return Ok(None) };
            // The model believes that the path has the text read here, wherever the path leads by now.
            let at = way
                .as_ref()
                .map_or_else(|| file.clone(), |way| state.known.recalls(way, &file, lines.content));
            if state.known.get(&at).is_none() {
                state.known.saw(&at, lines.content);
            }
            state.known.add_statement(
                &at,
                Some(call),
                way.as_ref().map(|way| &way.path),
                StatementKind::Again(lines),
            );
            return Ok(shown_lines(file, &lines, TxId(0)));
        }
        let (Some(hash), Some(text)) = (state.session.hash_of(object), self.text_at(object, None).await?)
        else {
            return Ok(None);
        };
        let tx = state.session.catalog.get(object).map_or(TxId(0), |meta| meta.tx);
        let content = Content::stored(Some(hash), tx);
        let lines = Passage { content, first: 1, last: text.split('\n').count(), whole: true };
        state.known.saw(object, content);
        state.known.add_statement(object, Some(call), None, StatementKind::Lines(lines));
        Ok(shown_lines(object.clone(), &lines, tx))
    }

    /// Returns the evidence about a file in a result: the lines that a read shows, the text that a write or an edit left, or
    /// the version that a difference leads to. It comes from the records; only if they have none it is inferred, once.
    pub async fn note_file(
        &self,
        state: &mut State,
        call: &ObjectId,
        input: &Toolcall,
        output: &str,
        taking: Taking,
    ) -> Result<Option<ShownLines>> {
        let args = &input.args;
        let Some(tx) = state.session.catalog.get(call).map(|meta| meta.tx) else { return Ok(None) };
        let Some(path) = path_of(&input.tool, args) else {
            self.note_several(state, (call, tx), input, taking).await?;
            return Ok(None);
        };
        let Some(way) = self.way_of(&path) else { return Ok(None) };
        let is_shell = input.tool.eq_ignore_ascii_case("bash");
        let evidence = match self.evidence_of(call).await? {
            Some(evidence) => evidence,
            None if is_shell => None,
            None => {
                let found = self.infer(state, &way, (call, tx), input, output, taking).await?;
                self.archive().found(call, found.clone());
                let is_met = state.session.catalog.get(&way.file).is_some();
                if found.is_none() && input.tool == "read" && (!is_met || self.is_lost(&way, output).await?) {
                    let (call, output) = (call.clone(), output.to_owned());
                    state.unread.push(UnstoredRead { call, input: input.clone(), output });
                }
                found
            }
        };
        let Some(evidence) = evidence else { return Ok(None) };
        let Some(bytes) = evidence.bytes() else { return Ok(None) };
        let way = Self::way_to(way, &bytes.file);
        let content = self.content_of(bytes, tx).await?;
        let shown =
            self.note_evidence(state, &way, (call, tx), (&evidence, content), (args, output), taking).await?;
        if taking.again && input.tool == "read" && evidence.answers_a_read() {
            state.known.points(&way.file);
        }
        // A later read is not answered with a command's output.
        Ok(shown.filter(|_| !is_shell))
    }

    /// Notes the evidence of a call about several files, or about one that its path does not name.
    async fn note_several(
        &self,
        state: &mut State,
        (call, tx): (&ObjectId, TxId),
        input: &Toolcall,
        taking: Taking,
    ) -> Result<()> {
        let args = &input.args;
        let evidence = match input.tool == "apply_patch" || patch_in(args).is_some() {
            true => self.evidence_of(call).await?.flatten(),
            false => self.archive().for_call(call).cloned().flatten(),
        };
        let Some(Evidence::Several(all)) = evidence else { return Ok(()) };
        for made in &all {
            let Some(bytes) = made.bytes() else { continue };
            let path = self.path_known(state, &bytes.file);
            let Some(way) = self.way_of(&path) else { continue };
            let way = Self::way_to(way, &bytes.file);
            let content = self.content_of(bytes, tx).await?;
            self.note_evidence(state, &way, (call, tx), (made, content), (args, ""), taking).await?;
        }
        Ok(())
    }

    /// Keeps the statements of a result that has left the model's sight: they count until a newer statement replaces them.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn note_left(
        &self,
        state: &mut State,
        call: &ObjectId,
        input: &Toolcall,
        taking: Taking,
    ) -> Result<()> {
        if path_of(&input.tool, &input.args).is_some()
            && let Some(output) = self.text_at(call, None).await?
        {
            self.note_file(state, call, input, &output, taking).await?;
        }
        Ok(())
    }

    /// Records what the model knows of a file after a result has shown it these lines.
    async fn note_lines(
        &self,
        state: &mut State,
        way: &Way,
        (call, tx): (&ObjectId, TxId),
        lines: Passage,
        taking: Taking,
    ) -> Result<Option<ShownLines>> {
        state.known.uses(way);
        let file = way.file.clone();
        if !is_past(state, &file, &lines, taking) && self.is_all_new(state, &file, &lines).await? {
            state.known.saw(&file, lines.content);
        } else {
            state.known.has_pointed(&file);
        }
        state.known.add_statement(&file, Some(call), Some(&way.path), StatementKind::Lines(lines));
        Ok(shown_lines(file, &lines, tx))
    }

    /// Returns the statement of a result by its recorded evidence.
    pub async fn note_evidence(
        &self,
        state: &mut State,
        way: &Way,
        (call, tx): (&ObjectId, TxId),
        (evidence, content): (&Evidence, Content),
        (args, output): (&Map<String, Value>, &str),
        taking: Taking,
    ) -> Result<Option<ShownLines>> {
        let (file, via) = (way.file.clone(), Some(&way.path));
        match evidence {
            Evidence::Refers { .. } | Evidence::Several(_) => Ok(None),
            Evidence::Made { bytes, left } => {
                if content.tx.is_none() {
                    self.draft_again(state, way, (call, args), bytes.hash).await?;
                }
                let noted = match taking.record {
                    true => claimed(&mut state.written, &file, (call, args), bytes.hash),
                    false => None,
                };
                let content = noted.filter(|noted| noted.hash == content.hash).unwrap_or(content);
                state.known.uses(way);
                if noted.is_none() || taking.again {
                    state.known.wrote(&file, content);
                }
                state.known.add_statement(&file, Some(call), via, StatementKind::All(content));
                if left.is_some() {
                    state.known.add_statement(&file, Some(call), via, StatementKind::Other(*left));
                }
                Ok(None)
            }
            Evidence::LedTo(_) => {
                state.known.uses(way);
                if taking.again {
                    state.known.wrote(&file, content);
                }
                state.known.rests_on_sight(&file, content);
                state.known.add_statement(&file, Some(call), via, StatementKind::All(content));
                Ok(None)
            }
            // A host has removed the lines from the conversation.
            Evidence::Points { at, .. } if taking.again && !state.request.results.contains(at) => Ok(None),
            Evidence::Points { lines, .. } => {
                self.note_pointed(state, way, call, Passage::recorded(lines, content), taking).await
            }
            Evidence::Shows(lines) => {
                let lines = self
                    .left_of(Passage::recorded(lines, content), (call, &lines.bytes.file), output, taking)
                    .await?;
                match lines {
                    Some(lines) => self.note_lines(state, way, (call, tx), lines, taking).await,
                    None => Ok(None),
                }
            }
            Evidence::Unstored { lines, like } => {
                let lines = Passage::recorded(lines, Content::lost(lines.bytes.hash));
                let Some(lines) = self.left_of(lines, (call, &file), output, taking).await? else {
                    return Ok(None);
                };
                state.known.uses(way);
                state.known.saw(&file, lines.content);
                state.known.add_statement(&file, Some(call), via, StatementKind::Lines(lines));
                let content = like.map_or(lines.content, |hash| Content::stored(Some(hash), tx));
                Ok(shown_lines(file, &Passage { content, ..lines }, tx))
            }
        }
    }

    /// Records what the model knows of a file after an answer named the result that has these lines.
    async fn note_pointed(
        &self,
        state: &mut State,
        way: &Way,
        call: &ObjectId,
        lines: Passage,
        taking: Taking,
    ) -> Result<Option<ShownLines>> {
        let file = &way.file;
        let is_known = if lines.whole {
            taking.again
        } else {
            !is_past(state, file, &lines, taking) && self.is_all_new(state, file, &lines).await?
        };
        state.known.uses(way);
        if is_known {
            state.known.saw_above(file, lines.content);
        }
        let kind =
            if lines.whole { StatementKind::All(lines.content) } else { StatementKind::Pointed(lines) };
        state.known.add_statement(file, Some(call), Some(&way.path), kind);
        Ok(None)
    }

    /// Returns the recorded evidence of a call about a file: `None` if there is no record, `Some(None)` if the call says
    /// nothing of the file.
    pub async fn evidence_of(&self, call: &ObjectId) -> Result<Option<Option<Evidence>>> {
        {
            let archive = self.archive();
            if let Some(known) = archive.for_call(call) {
                return Ok(Some(known.clone()));
            }
            if archive.is_unknown(call) {
                return Ok(None);
            }
        }
        let recorded = self.store().get(call, AsOf::default()).await?;
        let evidence =
            recorded.and_then(|version| version.document.field(EVIDENCE_FIELD).and_then(Evidence::of));
        if evidence.is_some() {
            // Reading messages again requests the evidence of a result more than once.
            self.archive().recorded(call, evidence.as_ref());
        }
        Ok(evidence.map(Some))
    }

    /// Records the evidence found since the last time, and that of our answers. Evidence that can't be recorded now is recorded
    /// later.
    pub async fn keep_evidence(&self, state: &mut State) {
        let entries = self.archive().pending().to_vec();
        if entries.is_empty() {
            return;
        }
        let add = |_: &mut Session, work: &mut Work| Ok(work.chat.evidence(&entries));
        match self.commit(state, Fsync::WithSettle, add).await {
            Ok(true) => self.archive().kept(entries.len()),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "what results say of files is recorded later"),
        }
    }

    /// Returns the text of bytes that the model knows of a file; `None` if they were never stored, or not as text.
    pub async fn text_known(
        &self,
        state: &State,
        file: &ObjectId,
        content: &Content,
    ) -> Result<Option<String>> {
        self.text_of(&state.known.home_of(file, content), content).await
    }

    /// True if the model knows a version of a file once it has seen these lines of it: it knew no other one, or sees all that
    /// is new. Content that was never stored cannot be compared.
    async fn is_all_new(&self, state: &State, file: &ObjectId, lines: &Passage) -> Result<bool> {
        let (Some(version), Some(known)) = (state.known.get(file), state.known_now(file)) else {
            return Ok(true);
        };
        let is_in_sight = !version.from_results
            || state.knowledge(file).contents.iter().any(|hash| *hash != lines.content.hash);
        if known.hash == lines.content.hash || !is_in_sight || !self.has_text(&known) {
            return Ok(true);
        }
        self.shows_all_new(state, file, &known, lines).await
    }
}

/// The path of the file that a call reads or writes.
pub(super) fn path_of<'a>(tool: &str, args: &'a Map<String, Value>) -> Option<Cow<'a, str>> {
    if matches!(tool, "read" | "write" | "edit") {
        return args.get("path").and_then(Value::as_str).map(Cow::Borrowed);
    }
    shown_by_shell(tool, args).map(|shown| Cow::Owned(shown.path))
}

/// The first line that a read asks for, counted from 1.
pub(super) fn first_line(args: &Map<String, Value>) -> usize {
    args.get("offset").and_then(Value::as_u64).map_or(1, |n| n as usize).max(1)
}

/// True if the model may have written or seen a newer version since these lines were read. Messages that are read again precede
/// everything noted.
fn is_past(state: &State, file: &ObjectId, lines: &Passage, taking: Taking) -> bool {
    let is_newer = |known: &KnownVersion| known.content.hash.is_some() && known.content.tx > lines.content.tx;
    !taking.again && state.written.contains_key(file) || state.known.get(file).is_some_and(is_newer)
}

/// Returns the noted write of a call; writes before it never came as a result.
fn claimed(
    written: &mut UnclaimedWrites,
    file: &ObjectId,
    (call, args): (&ObjectId, &Map<String, Value>),
    hash: Digest,
) -> Option<Content> {
    let waiting = written.get_mut(file)?;
    let text = args.get("content").and_then(Value::as_str).map(|text| Digest::of(text.as_bytes()));
    let is_same_call = |wrote: &Wrote| {
        wrote.content.hash == Some(hash)
            || wrote.content.hash == text && text.is_some()
            || wrote.call.as_deref().is_some_and(|id| ObjectId::toolcall(id) == *call)
    };
    let place = waiting.iter().position(is_same_call);
    let content = place.and_then(|place| waiting.drain(..=place).next_back()).map(|wrote| wrote.content);
    if content.is_none() {
        waiting.pop_front();
    }
    if waiting.is_empty() {
        written.remove(file);
    }
    content
}

fn shown_lines(file: ObjectId, lines: &Passage, tx: TxId) -> Option<ShownLines> {
    let Passage { content, first, last, .. } = *lines;
    Some(ShownLines { file, hash: content.hash?, tx: content.tx.unwrap_or(tx), first, last })
}
