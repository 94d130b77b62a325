//! Results of calls that show lines of files, or have made files: what they say is noted as the model's knowledge.

use crate::files::index::display_of;
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::Result;
use crate::session::references::named_object;
use crate::session::{Session, refresh};
use context_evidence::{
    Arrival, Bytes, Content, EVIDENCE_FIELD, Evidence, FileStatement, LOOKED_BACK, Passage, ReadAt,
    ReadResult, ReadSearch, StatementKind, TakenResult, Way, first_line, passage_of, path_of, restores,
    unstored,
};
use context_model::id::ObjectId;
use context_model::object::Toolcall;
use context_model::time::TxId;
use context_projection::request::segment::{Carried, ShownLines};
use context_store::{AsOf, KnownAt};
use context_tools::{FilePatch, OutputOf};
use serde_json::Value;

use crate::engine::{Inner, State};
use crate::job::UnstoredRead;

/// The maximum number of reads without a stored version that are kept.
const UNREAD: usize = 16;

impl Inner {
    /// Returns the lines of a file in an output that restores an earlier read of it, or the file itself.
    pub(crate) async fn lines_carried(
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
        let (Some(hash), Some(text)) = (state.session.hash_of(object), self.newest_text(object).await?)
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

    /// Returns the lines of a file that a result shows, and notes what it says: the lines, the text that a write or an edit
    /// left, or the version that a difference leads to. The evidence comes from the records; only if they have none it is
    /// inferred, once.
    pub(crate) async fn note_file(
        &self,
        state: &mut State,
        call: &ObjectId,
        input: &Toolcall,
        output: &str,
        arrival: Arrival,
    ) -> Result<Option<ShownLines>> {
        let Some(tx) = state.session.catalog.get(call).map(|meta| meta.tx) else { return Ok(None) };
        let result = TakenResult { call, tx, input, output, arrival };
        let Some(path) = path_of(&input.tool, &input.args) else {
            self.note_several(state, result).await?;
            return Ok(None);
        };
        let Some(way) = self.way_of(&path) else { return Ok(None) };
        let is_shell = input.tool.eq_ignore_ascii_case("bash");
        let evidence = match self.evidence_of(call).await? {
            Some(evidence) => evidence,
            None if is_shell => None,
            None => {
                let found = self.infer(state, &way, result).await?;
                self.records().archive.found(call, found.clone());
                let is_met = state.session.catalog.get(&way.file).is_some();
                if found.is_none() && input.tool == "read" && (!is_met || self.is_lost(&way, output).await?) {
                    let (call, output) = (call.clone(), output.to_owned());
                    state.unread.push(UnstoredRead { call, input: input.clone(), output });
                }
                found
            }
        };
        let Some(evidence) = evidence else { return Ok(None) };
        let shown = self.note_evidence(state, way, result, &evidence).await?;
        if let Some(bytes) = evidence.bytes()
            && arrival.is_read_again()
            && input.tool == "read"
            && evidence.answers_a_read()
        {
            state.known.points(&bytes.file);
        }
        // A later read is not answered with a command's output.
        Ok(shown.filter(|_| !is_shell))
    }

    /// Notes the evidence of a call about several files, or about one that its path does not name.
    async fn note_several(&self, state: &mut State, result: TakenResult<'_>) -> Result<()> {
        let TakenResult { call, input, .. } = result;
        let evidence = match input.tool == "apply_patch" || FilePatch::among(&input.args).is_some() {
            true => self.evidence_of(call).await?.flatten(),
            false => self.records().archive.for_call(call).cloned().flatten(),
        };
        let Some(Evidence::Several(all)) = evidence else { return Ok(()) };
        for made in &all {
            let Some(bytes) = made.bytes() else { continue };
            let path = self.path_known(state, &bytes.file);
            let Some(way) = self.way_of(&path) else { continue };
            self.note_evidence(state, way, TakenResult { output: "", ..result }, made).await?;
        }
        Ok(())
    }

    /// Keeps the statements of a result that has left the model's sight: they count until a newer statement replaces them.
    ///
    /// # Errors
    /// Errors of the store.
    pub(crate) async fn note_left(
        &self,
        state: &mut State,
        call: &ObjectId,
        input: &Toolcall,
        arrival: Arrival,
    ) -> Result<()> {
        if path_of(&input.tool, &input.args).is_some()
            && let Some(output) = self.newest_text(call).await?
        {
            self.note_file(state, call, input, &output, arrival).await?;
        }
        Ok(())
    }

    /// Notes the statement of a result by its evidence. Returns the lines that the result shows.
    async fn note_evidence(
        &self,
        state: &mut State,
        way: Way,
        result: TakenResult<'_>,
        evidence: &Evidence,
    ) -> Result<Option<ShownLines>> {
        let Some(bytes) = evidence.bytes() else { return Ok(None) };
        let way = &Self::way_to(way, &bytes.file);
        let from = &*state;
        let said = self
            .decide(|records, seen| {
                let content = seen.content_of(bytes, result.tx)?;
                if content.tx.is_none() && matches!(evidence, Evidence::Made { .. }) {
                    let known = from.known_now(&way.file);
                    let known = known.map(|content| (from.known.home_of(&way.file, &content), content));
                    let call = (result.call, &result.input.args);
                    records.draft_again(&way.path, call, bytes.hash, known, seen)?;
                }
                let has_result = |call: &ObjectId| from.request.results.contains(call);
                let at = (way, &from.written);
                from.sight(records, seen).said(&result, at, (evidence, content), has_result)
            })
            .await?;
        let Some(said) = said else { return Ok(None) };
        state.known.uses(way);
        let from = &*state;
        let is_news = match &said {
            FileStatement::Lines(lines) => {
                let at = (&way.file, &from.written);
                self.decide(|records, seen| from.sight(records, seen).is_news(at, lines, result.arrival))
                    .await?
            }
            _ => false,
        };
        let State { known, written, .. } = state;
        let shown = known.take(&result, (way, written), said, is_news);
        Ok(shown.and_then(|lines| shown_lines(way.file.clone(), &lines, result.tx)))
    }

    /// Returns the evidence in a result about the file that its call names, for hosts that don't pass in the reads and writes
    /// of their tools; `None` if it says nothing of the file.
    async fn infer(&self, state: &State, way: &Way, result: TakenResult<'_>) -> Result<Option<Evidence>> {
        // The path of a call that is recorded late may have led elsewhere.
        let others = match result.arrival {
            Arrival::Late => self.files_shown_as(&state.session, way),
            Arrival::New | Arrival::Again => Vec::new(),
        };
        let found = self
            .decide(|records, seen| {
                state.sight(records, seen).infer(&result, &way.file, &others, &state.written)
            })
            .await?;
        self.records().passed_in.forget(&found.entries);
        Ok(found.evidence)
    }

    /// Returns the other files that the session knows under a path.
    fn files_shown_as(&self, session: &Session, way: &Way) -> Vec<ObjectId> {
        let is_it = |file: &&ObjectId| {
            **file != way.file
                && !session.is_toolcall(file)
                && display_of(&self.client, session, file) == *way.path
        };
        session.sets.index().iter().filter(is_it).cloned().collect()
    }

    /// Returns the recorded evidence of a call about a file: `None` without a record, `Some(None)` if the call says
    /// nothing of the file.
    pub(crate) async fn evidence_of(&self, call: &ObjectId) -> Result<Option<Option<Evidence>>> {
        {
            let records = self.records();
            if let Some(known) = records.archive.for_call(call) {
                return Ok(Some(known.clone()));
            }
            if records.archive.is_unknown(call) {
                return Ok(None);
            }
        }
        let recorded = self.store().get(call, AsOf::default()).await?;
        let evidence =
            recorded.and_then(|version| version.document.field(EVIDENCE_FIELD).and_then(Evidence::of));
        if evidence.is_some() {
            // Reading messages again requests the evidence of a result more than once.
            self.records().archive.recorded(call, evidence.as_ref());
        }
        Ok(evidence.map(Some))
    }

    /// Records the evidence found since the last time, and that of our answers. Evidence that can't be recorded now is recorded
    /// later.
    pub(crate) async fn keep_evidence(&self, state: &mut State) {
        let entries = self.records().archive.pending().to_vec();
        if entries.is_empty() {
            return;
        }
        let add = |_: &Session, work: &mut Work| Ok(work.chat.evidence(&entries));
        match self.commit(state, Fsync::WithSettle, add).await {
            Ok(true) => self.records().archive.kept(entries.len()),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "what results say of files is recorded later"),
        }
    }

    /// Returns the lines of a file shown by a recorded call whose result is not in the request: a read, or a call that restored
    /// one. With them comes the path that the read used, and the file that it leads to now.
    pub(crate) async fn lines_recorded(
        &self,
        state: &State,
        call: &ObjectId,
    ) -> Result<Option<(Passage, ObjectId, Option<Way>)>> {
        let session = &state.session;
        let mut call = call.clone();
        for _ in 0..LOOKED_BACK {
            let Some(result) = self.recorded(&call, AsOf::default()).await? else { break };
            let shown = match self.evidence_of(&call).await?.flatten() {
                Some(Evidence::Shows(lines)) => Some((lines.bytes.clone(), lines)),
                Some(Evidence::Unstored { lines, like }) => {
                    let hash = like.unwrap_or(lines.bytes.hash);
                    Some((Bytes { hash, ..lines.bytes.clone() }, lines))
                }
                _ => None,
            };
            let tool = result.document.text("tool").unwrap_or_default();
            let args = result.document.field("args").and_then(Value::as_object);
            let way = args.and_then(|args| path_of(tool, args)).and_then(|path| self.way_of(&path));
            if let Some((bytes, lines)) = shown {
                let content = self.decide(|_, seen| seen.content_of(&bytes, result.tx_id)).await?;
                return Ok(Some((Passage::recorded(&lines, content), bytes.file, way)));
            }
            let (Some(args), Some(output)) = (args, result.document.content()) else { break };
            if let Some(object) = named_object(session, tool, args) {
                let at = AsOf { known: Some(KnownAt::Tx(result.tx_id)), valid_time: None };
                let Some(version) = self.recorded(&object, at).await? else { break };
                let Some(text) = version.document.content().filter(|text| restores(output, text)) else {
                    break;
                };
                if !session.is_toolcall(&object) {
                    let content = Content::stored(version.document.source_hash(), version.tx_id);
                    let shown = passage_of(text, content, 1, output, OutputOf::Reader);
                    return Ok(shown.map(|(lines, _)| (lines, object, None)));
                }
                call = object;
                continue;
            }
            let Some(way) = way.filter(|_| tool == "read") else { break };
            let file = way.file.clone();
            let first = first_line(args);
            let (is_limited, is_bare, is_passed_in, at) = (false, false, false, ReadAt::default());
            let read = ReadResult { first, is_limited, output, is_bare, is_passed_in, at };
            let lines = self
                .decide(|_, seen| {
                    let mut search = ReadSearch::new(read);
                    seen.search(&file, result.tx_id, &mut search)?;
                    Ok(search.lines())
                })
                .await?;
            return Ok(lines.map(|(lines, _)| (lines, file, Some(way))));
        }
        Ok(None)
    }

    /// Looks again at reads whose version was unknown: another machine may have stored it later. A file that is gone is never
    /// stored.
    pub(crate) async fn note_unread(&self, state: &mut State, fsync: Fsync) -> Result<()> {
        for one in std::mem::take(&mut state.unread) {
            let Some(way) = path_of(&one.input.tool, &one.input.args).and_then(|path| self.way_of(&path))
            else {
                continue;
            };
            refresh::learn(&self.client, &mut state.session, [way.file.clone()]).await?;
            self.apply(state);
            let UnstoredRead { call, input, output } = &one;
            let (tx, arrival) = (self.client.newest(), Arrival::Late);
            let result = TakenResult { call, tx, input, output, arrival };
            let is_met = state.session.catalog.get(&way.file).is_some();
            let mut found = match is_met {
                true => self.infer(state, &way, result).await?,
                false => None,
            };
            if found.is_none() && self.is_lost(&way, output).await? && self.works_here(state).await? {
                found = unstored(&way.file, first_line(&input.args), output);
            }
            let Some(found) = found else {
                state.unread.extend((!is_met).then_some(one));
                continue;
            };
            self.records().archive.found(call, Some(found.clone()));
            let Some(bytes) = found.bytes() else { continue };
            let gone = Self::way_to(way.clone(), &bytes.file);
            self.note_evidence(state, way, result, &found).await?;
            if is_met {
                self.note_gone(state, fsync, &gone).await?;
            }
        }
        // Files that are never stored lead to nothing.
        let many = state.unread.len().saturating_sub(UNREAD);
        state.unread.drain(..many);
        Ok(())
    }
}

fn shown_lines(file: ObjectId, lines: &Passage, tx: TxId) -> Option<ShownLines> {
    let Passage { content, first, last, .. } = *lines;
    Some(ShownLines { file, hash: content.hash?, tx: content.tx.unwrap_or(tx), first, last })
}
