//! Results of calls that show lines of files, or have made files: what they say is noted as the model's knowledge.
//!
//! [`Inner::said_in`] reads and decides, and changes nothing of the state; [`Inner::note_said`] notes it, and reads nothing.

use std::collections::HashSet;
use std::sync::Arc;

use crate::files::index::display_of;
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::Result;
use crate::session::{Session, refresh};
use context_evidence::{
    Arrival, EVIDENCE_FIELD, Evidence, FileStatement, Inferred, Known, Passage, Sight, TakenResult,
    UnclaimedWrites, Way, first_line, path_of, unstored,
};
use context_model::id::ObjectId;
use context_model::object::Toolcall;
use context_model::time::TxId;
use context_projection::request::segment::ShownLines;
use context_store::AsOf;
use context_tools::FilePatch;

use crate::engine::{Inner, State};
use crate::job::UnstoredRead;

/// A result as its message has it.
#[derive(Clone, Copy)]
pub(crate) struct ShownResult<'a> {
    /// The call.
    pub input: &'a Toolcall,
    /// The output that the message shows, or the recorded one if it has left.
    pub output: &'a str,
    /// The moment at which it is taken in.
    pub arrival: Arrival,
}

/// The statements of a result about files, before they are noted.
#[derive(Default)]
pub(crate) struct Statements {
    /// The evidence that was inferred, with the entries of tools that belong to it.
    found: Option<Inferred>,
    /// It is a read whose version is not stored yet.
    unread: Option<UnstoredRead>,
    /// Its statements, in order.
    of_files: Vec<SaidOfFile>,
    /// The file to whose lines in another result it points.
    points: Option<ObjectId>,
    /// No later read is answered with its lines.
    hides_lines: bool,
}

/// The statement of a result about one file.
struct SaidOfFile {
    way: Way,
    /// The transaction that recorded the call.
    tx: TxId,
    statement: FileStatement,
    /// The model knows the version of the lines.
    is_news: bool,
}

/// The maximum number of reads without a stored version that are kept.
const UNREAD: usize = 16;

impl Inner {
    /// Returns what a result says of files: the lines that it shows, the text that a write or an edit left, or the version that a
    /// difference leads to. The evidence comes from the records; only if they have none it is inferred, once. The state stays as
    /// it is until [`Inner::note_said`].
    pub(crate) async fn said_in(
        &self,
        state: &State,
        call: &ObjectId,
        result: ShownResult<'_>,
    ) -> Result<Statements> {
        let Some(tx) = state.session.catalog.get(call).map(|meta| meta.tx) else {
            return Ok(Statements::default());
        };
        let ShownResult { input, output, arrival } = result;
        let result = TakenResult { call, tx, input, output, arrival };
        let Some(path) = path_of(&input.tool, &input.args) else {
            return self.said_of_several(state, result).await;
        };
        let Some(way) = self.way_of(&path) else { return Ok(Statements::default()) };
        let is_shell = input.tool.eq_ignore_ascii_case("bash");
        // A later read is not answered with a command's output.
        let mut said = Statements { hides_lines: is_shell, ..Statements::default() };
        let evidence = match self.evidence_at(call, tx).await? {
            Some(evidence) => evidence,
            None if is_shell => None,
            None => {
                let found = self.infer(state, &way, result).await?;
                let is_met = state.session.catalog.get(&way.file).is_some();
                if found.evidence.is_none()
                    && input.tool == "read"
                    && (!is_met || self.is_lost(&way, output).await?)
                {
                    let (call, output) = (call.clone(), output.to_owned());
                    said.unread = Some(UnstoredRead { call, input: input.clone(), output });
                }
                let evidence = found.evidence.clone();
                said.found = Some(found);
                evidence
            }
        };
        let Some(evidence) = evidence else { return Ok(said) };
        let known = (&state.known, &state.written);
        said.of_files.extend(self.said_of(state, known, way, result, &evidence).await?);
        if let Some(bytes) = evidence.bytes()
            && arrival.is_read_again()
            && input.tool == "read"
            && evidence.answers_a_read()
        {
            said.points = Some(bytes.file.clone());
        }
        Ok(said)
    }

    /// Returns what a call says of several files, or of one that its path does not name.
    async fn said_of_several(&self, state: &State, result: TakenResult<'_>) -> Result<Statements> {
        let TakenResult { call, input, .. } = result;
        let evidence = match input.tool == "apply_patch" || FilePatch::among(&input.args).is_some() {
            true => self.evidence_of(call).await?.flatten(),
            false => self.records().archive.for_call(call).cloned().flatten(),
        };
        let mut said = Statements { hides_lines: true, ..Statements::default() };
        let Some(Evidence::Several(all)) = evidence else { return Ok(said) };
        let result = TakenResult { output: "", ..result };
        // Of one file, or on a path that leads elsewhere now, the next one depends on the knowledge after the last one.
        let is_mixed = self.is_mixed(state, &all);
        let mut ahead: Option<(Known, UnclaimedWrites)> = None;
        for made in &all {
            let (known, written) =
                ahead.as_ref().map_or((&state.known, &state.written), |(known, written)| (known, written));
            let Some(way) = made.bytes().and_then(|bytes| self.way_known(state, known, &bytes.file)) else {
                continue;
            };
            let Some(one) = self.said_of(state, (known, written), way, result, made).await? else { continue };
            if is_mixed {
                let (known, written) =
                    ahead.get_or_insert_with(|| (state.known.clone(), state.written.clone()));
                one.note(&result, known, written);
            }
            said.of_files.push(one);
        }
        Ok(said)
    }

    /// True if evidence is of one file or path twice, or of a path that leads to another file now.
    fn is_mixed(&self, state: &State, all: &[Evidence]) -> bool {
        let mut used: HashSet<ObjectId> = HashSet::new();
        let mut paths: HashSet<Arc<str>> = HashSet::new();
        all.iter().filter_map(Evidence::bytes).any(|bytes| {
            let way = self.way_known(state, &state.known, &bytes.file);
            let is_moved = way.as_ref().is_some_and(|way| state.known.leads_elsewhere(way));
            is_moved || !used.insert(bytes.file.clone()) || way.is_some_and(|way| !paths.insert(way.path))
        })
    }

    /// Returns the path by which the model knows a file, as leading to that file.
    fn way_known(&self, state: &State, known: &Known, file: &ObjectId) -> Option<Way> {
        let path = self.path_among(&state.session, known, file);
        self.way_of(&path).map(|way| Self::way_to(way, file))
    }

    /// Returns the statements of a result that has left the model's sight: they count until a newer statement replaces them.
    ///
    /// # Errors
    /// Errors of the store.
    pub(crate) async fn said_before(
        &self,
        state: &State,
        call: &ObjectId,
        input: &Toolcall,
        arrival: Arrival,
    ) -> Result<Statements> {
        if path_of(&input.tool, &input.args).is_some()
            && let Some(output) = self.newest_text(call).await?
        {
            return self.said_in(state, call, ShownResult { input, output: &output, arrival }).await;
        }
        Ok(Statements::default())
    }

    /// Returns the statement of a result about a file by its evidence, and by what the model knows.
    async fn said_of(
        &self,
        state: &State,
        (known, written): (&Known, &UnclaimedWrites),
        way: Way,
        result: TakenResult<'_>,
        evidence: &Evidence,
    ) -> Result<Option<SaidOfFile>> {
        let Some(bytes) = evidence.bytes() else { return Ok(None) };
        let way = Self::way_to(way, &bytes.file);
        let said = self
            .decide(|records, seen| {
                let content = seen.content_of(bytes, result.tx)?;
                if content.tx.is_none() && matches!(evidence, Evidence::Made { .. }) {
                    let before = known.now(&way.file, state.in_sight());
                    let before = before.map(|content| (known.home_of(&way.file, &content), content));
                    let call = (result.call, &result.input.args);
                    records.draft_again(&way.path, call, bytes.hash, before, seen)?;
                }
                // Its own result is about to be in the request.
                let has_result =
                    |call: &ObjectId| call == result.call || state.request.results.contains(call);
                let sight = Sight { known, in_sight: state.in_sight(), records, seen };
                sight.said(&result, (&way, written), (evidence, content), has_result)
            })
            .await?;
        let Some(statement) = said else { return Ok(None) };
        let is_news = match &statement {
            FileStatement::Lines(lines) => {
                let known = &*known.after_use(&way);
                self.decide(|records, seen| {
                    let sight = Sight { known, in_sight: state.in_sight(), records, seen };
                    sight.is_news((&way.file, written), lines, result.arrival)
                })
                .await?
            }
            _ => false,
        };
        Ok(Some(SaidOfFile { way, tx: result.tx, statement, is_news }))
    }

    /// Notes what a result says of files. Returns the lines of a file that it shows.
    pub(crate) fn note_said(
        &self,
        state: &mut State,
        call: &ObjectId,
        result: ShownResult<'_>,
        said: Statements,
    ) -> Option<ShownLines> {
        let Statements { found, unread, of_files, points, hides_lines } = said;
        if let Some(Inferred { evidence, entries }) = found {
            let mut records = self.records();
            records.passed_in.forget(&entries);
            records.archive.found(call, evidence);
        }
        state.unread.extend(unread.map(Arc::new));
        let ShownResult { input, output, arrival } = result;
        let mut shown = None;
        for one in of_files {
            let result = TakenResult { call, tx: one.tx, input, output, arrival };
            shown = one.note(&result, &mut state.known, &mut state.written);
        }
        if let Some(file) = &points {
            state.known.points(file);
        }
        shown.filter(|_| !hides_lines)
    }

    /// Returns the evidence in a result about the file that its call names, for hosts that don't pass in the reads and writes
    /// of their tools. The evidence is `None` if the result says nothing of the file.
    async fn infer(&self, state: &State, way: &Way, result: TakenResult<'_>) -> Result<Inferred> {
        // The path of a call that is recorded late may have led elsewhere.
        let others = match result.arrival {
            Arrival::Late => self.files_shown_as(&state.session, way),
            Arrival::New | Arrival::Again => Vec::new(),
        };
        self.decide(|records, seen| {
            state.sight(records, seen).infer(&result, &way.file, &others, &state.written)
        })
        .await
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

    /// The same for a call whose newest version has this transaction.
    async fn evidence_at(&self, call: &ObjectId, tx: TxId) -> Result<Option<Option<Evidence>>> {
        let is_known = self.records().archive.for_call(call).is_some();
        if !is_known && self.recalled().is_silent(call, tx) {
            return Ok(None);
        }
        let evidence = self.evidence_of(call).await?;
        if evidence.is_none() {
            self.recalled().note_silent(call, tx);
        }
        Ok(evidence)
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

    /// Looks again at reads whose version was unknown: another machine may have stored it later. A file that is gone is never
    /// stored.
    pub(crate) async fn note_unread(&self, state: &mut State, fsync: Fsync) -> Result<()> {
        let mut kept = 0;
        // Each read stays until what it says is noted.
        while let Some(one) = state.unread.get(kept).map(Arc::clone) {
            if self.still_unread(state, fsync, &one).await? {
                kept += 1;
            } else {
                state.unread.remove(kept);
            }
        }
        // Files that are never stored lead to nothing.
        let many = state.unread.len().saturating_sub(UNREAD);
        state.unread.drain(..many);
        Ok(())
    }

    /// Looks again at a read whose version was unknown, and notes what it says. True if its version is unknown still.
    async fn still_unread(&self, state: &mut State, fsync: Fsync, one: &UnstoredRead) -> Result<bool> {
        let UnstoredRead { call, input, output } = one;
        let Some(way) = path_of(&input.tool, &input.args).and_then(|path| self.way_of(&path)) else {
            return Ok(false);
        };
        refresh::learn(&self.client, &mut state.session, [way.file.clone()]).await?;
        self.apply(state);
        let (tx, arrival) = (self.client.newest(), Arrival::Late);
        let result = TakenResult { call, tx, input, output, arrival };
        let is_met = state.session.catalog.get(&way.file).is_some();
        let mut inferred = match is_met {
            true => self.infer(state, &way, result).await?,
            false => Inferred::default(),
        };
        if inferred.evidence.is_none() && self.is_lost(&way, output).await? && self.works_here(state).await? {
            inferred.evidence = unstored(&way.file, first_line(&input.args), output);
        }
        let Some(found) = inferred.evidence.clone() else {
            self.records().passed_in.forget(&inferred.entries);
            return Ok(!is_met);
        };
        let gone = found.bytes().map(|bytes| Self::way_to(way.clone(), &bytes.file));
        let said = self.said_of(state, (&state.known, &state.written), way, result, &found).await?;
        if let Some(gone) = gone.filter(|_| is_met) {
            self.note_gone(state, fsync, &gone).await?;
        }
        let said = Statements {
            found: Some(inferred),
            of_files: said.into_iter().collect(),
            ..Statements::default()
        };
        self.note_said(state, call, ShownResult { input, output, arrival }, said);
        Ok(false)
    }
}

impl SaidOfFile {
    /// Notes the statement. Returns the lines that the result shows.
    fn note(
        &self,
        result: &TakenResult<'_>,
        known: &mut Known,
        written: &mut UnclaimedWrites,
    ) -> Option<ShownLines> {
        known.uses(&self.way);
        let lines = known.take(result, (&self.way, written), self.statement, self.is_news)?;
        shown_lines(self.way.file.clone(), &lines, self.tx)
    }
}

pub(crate) fn shown_lines(file: ObjectId, lines: &Passage, tx: TxId) -> Option<ShownLines> {
    let Passage { content, first, last, .. } = *lines;
    Some(ShownLines { file, hash: content.hash?, tx: content.tx.unwrap_or(tx), first, last })
}
