//! Finds the evidence in a result by comparing its text with the versions of the file: for hosts that don't pass in the reads
//! and writes of their tools. This happens once, and is recorded (see `evidence`).

use std::borrow::Cow;

use context_evidence::{
    Bytes, Content, Evidence, InFlight, InFlightKind, LOOKED_BACK, Leaves, Passage, ReadAt, ReadResult,
    ReadSearch, Shows, Tool::Reader, Way, WriteSearch, common_lines, is_all_new_within, lines_in_sight,
    passage_of, restores, unstored, wrapped_lines, wraps,
};
use context_files::index::display_of;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::{Status, Toolcall};
use context_model::time::TxId;
use context_projection::Moment;
use context_session::client::Fsync;
use context_session::error::Result;
use context_session::references::named_object;
use context_session::{Session, refresh};
use context_store::{AsOf, KnownAt, Version};
use serde_json::{Map, Value};

use crate::engine::{Inner, State, UnclaimedWrites};
use crate::evidence::{first_line, path_of};
use crate::job::UnstoredRead;
use crate::results::Taking;

impl Inner {
    /// Returns the evidence in a result about the file that its call names; `None` if it says nothing of the file.
    pub(super) async fn infer(
        &self,
        state: &State,
        way: &Way,
        (call, tx): (&ObjectId, TxId),
        input: &Toolcall,
        output: &str,
        taking: Taking,
    ) -> Result<Option<Evidence>> {
        let args = &input.args;
        let (tool, is_ok) = (input.tool.as_str(), input.status == Status::Ok);
        // The path of a call that is recorded late may have led elsewhere.
        let is_late = taking.is_late();
        let before = if is_late { self.files_shown_as(&state.session, way) } else { Vec::new() };
        if tool != "read" && is_ok {
            // Arguments may have collapsed since; the record has them whole.
            let recorded = if taking.again { self.recorded(call, AsOf::default()).await? } else { None };
            let recorded = recorded.as_ref().and_then(|version| version.document.field("args")?.as_object());
            let args = recorded.unwrap_or(args);
            let mut made = None;
            for file in std::iter::once(&way.file).chain(&before) {
                let Some(content) = self.written(state, file, tx, args, taking).await? else { continue };
                let Some(hash) = content.hash.filter(|_| made.is_none() || content.tx.is_some()) else {
                    continue;
                };
                made = Some(Bytes { file: file.clone(), hash });
                if content.tx.is_some() {
                    break;
                }
            }
            // It may have been gone before it was stored.
            let lost = || match args.get("content") {
                Some(Value::String(text)) => Bytes::hash_of(text),
                _ => Bytes::hash_of(call.as_str()),
            };
            let bytes = made.unwrap_or_else(|| Bytes { file: way.file.clone(), hash: lost() });
            return Ok(Some(Evidence::Made { bytes, left: None }));
        }
        if tool != "read" || !is_ok {
            return Ok(None);
        }
        let first = first_line(args);
        let is_limited = first > 1 || args.get("limit").is_some_and(|limit| !limit.is_null());
        let found = self.read(state, &way.file, (call, tx), (first, is_limited), output, taking).await?;
        for file in before.iter().filter(|_| !matches!(found, Some(Evidence::Shows(_)))) {
            let shown = self.read(state, file, (call, tx), (first, is_limited), output, taking).await?;
            if matches!(shown, Some(Evidence::Shows(_))) {
                return Ok(shown);
            }
        }
        Ok(found)
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

    /// Returns the evidence of a read of a file from a line on.
    async fn read(
        &self,
        state: &State,
        file: &ObjectId,
        (call, tx): (&ObjectId, TxId),
        (first, is_limited): (usize, bool),
        output: &str,
        taking: Taking,
    ) -> Result<Option<Evidence>> {
        let (output, is_bare) = self.given(call, output, taking).await?;
        let output = &*output;
        // A result that is recorded already was not passed in just now.
        let is_passed_in = taking.record && self.in_flight().iter().any(|one| one.is_read_of(file));
        let passed_in = match is_passed_in {
            true => self.lines_passed_in(file, tx, first, output).await?,
            false => None,
        };
        let at = ReadAt {
            likely: state.known.spoken_of(file),
            late: taking.is_late(),
            before: state.known.get(file).and_then(|known| known.content.tx),
        };
        let read = ReadResult { first, is_limited, output, is_bare, is_passed_in, at };
        let mut search = ReadSearch::new(read);
        match &passed_in {
            None => self.search(file, tx, &mut search).await?,
            // The evidence then depends only on whether the newest version has text.
            Some(lines) if read.may_be_of_another(lines) => {
                self.walk(file, tx, |version| {
                    search.look(content_in(&version), version.document.content());
                    true
                })
                .await?;
            }
            Some(_) => {}
        }
        Ok(search.evidence(file, passed_in))
    }

    /// Searches the versions of a file, from the newest after a transaction on.
    async fn search(&self, file: &ObjectId, tx: TxId, search: &mut ReadSearch<'_>) -> Result<()> {
        self.walk(file, tx, |version| !search.look(content_in(&version), version.document.content())).await
    }

    /// Returns the content that a call left, if that is noted already; else the version that a search finds.
    async fn written(
        &self,
        state: &State,
        file: &ObjectId,
        tx: TxId,
        args: &Map<String, Value>,
        taking: Taking,
    ) -> Result<Option<Content>> {
        if taking.record
            && let Some(content) = waiting(&state.written, file, args)
        {
            return Ok(Some(content));
        }
        let known = match state.known_now(file) {
            Some(known) => self.text_known(state, file, &known).await?,
            None => None,
        };
        let mut search = WriteSearch::new(Leaves::of(args), known.as_deref(), taking.is_late());
        let mut version = self.version_at(file, tx).await?;
        for _ in 0..LOOKED_BACK {
            let Some(after) = version else { break };
            let before = self.version_at(file, TxId(after.tx_id.0.saturating_sub(1))).await?;
            let text = before.as_ref().and_then(|before| before.document.content());
            if !search.look(content_in(&after), after.document.content(), text) {
                break;
            }
            version = before;
        }
        Ok(search.content())
    }
}

/// Returns the noted write of a call.
fn waiting(written: &UnclaimedWrites, file: &ObjectId, args: &Map<String, Value>) -> Option<Content> {
    let text = args.get("content").and_then(Value::as_str).map(|text| Digest::of(text.as_bytes()));
    let mut waiting = written.get(file)?.iter();
    waiting.find(|wrote| text.is_none() || wrote.content.hash == text).map(|wrote| wrote.content)
}

impl Inner {
    /// Returns the lines of a file shown by a recorded call whose result is not in the request: a read, or a call that restored
    /// one. With them comes the path that the read used, and the file that it leads to now.
    pub async fn lines_recorded(
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
                let content = self.content_of(&bytes, result.tx_id).await?;
                return Ok(Some((Passage::recorded(&lines, content), bytes.file, way)));
            }
            let (Some(args), Some(output)) = (args, result.document.content()) else { break };
            if let Some(object) = named_object(session, tool, args) {
                let Some(version) = self.version_at(&object, result.tx_id).await? else { break };
                if !version.document.content().is_some_and(|text| restores(output, text)) {
                    break;
                }
                if !session.is_toolcall(&object) {
                    return Ok(passage_in(&version, 1, output).map(|(lines, _)| (lines, object, None)));
                }
                call = object;
                continue;
            }
            let Some(way) = way.filter(|_| tool == "read") else { break };
            let file = way.file.clone();
            let first = first_line(args);
            let (is_limited, is_bare, is_passed_in, at) = (false, false, false, ReadAt::default());
            let read = ReadResult { first, is_limited, output, is_bare, is_passed_in, at };
            let mut search = ReadSearch::new(read);
            self.search(&file, result.tx_id, &mut search).await?;
            return Ok(search.lines().map(|(lines, _)| (lines, file, Some(way))));
        }
        Ok(None)
    }

    /// Returns the lines in an output of a file that a tool passed in. Results come in a different order from the tools' reads,
    /// and some do not show the text that was read, so the oldest of the best matches is taken.
    pub async fn lines_passed_in(
        &self,
        file: &ObjectId,
        tx: TxId,
        first: usize,
        output: &str,
    ) -> Result<Option<Passage>> {
        let waiting: Vec<InFlight> =
            self.in_flight().iter().filter(|one| one.is_read_of(file)).cloned().collect();
        let mut best: Option<(u64, Passage, Shows)> = None;
        for one in waiting {
            let InFlightKind::Read { content, text } = one.what else { continue };
            let shown = match text {
                Some(text) => passage_of(&text, content, first, output, Reader),
                None => {
                    let content = Content { tx: content.tx.or(Some(tx)), ..content };
                    self.passage_read(file, content, first, output).await?
                }
            };
            if let Some((lines, shows)) = shown.filter(|(_, shows)| *shows != Shows::More)
                && best.as_ref().is_none_or(|(.., so_far)| shows > *so_far)
            {
                best = Some((one.number, lines, shows));
            }
        }
        if let Some((number, ..)) = &best {
            self.in_flight().retain(|one| one.number != *number);
        }
        Ok(best.map(|(_, lines, _)| lines))
    }

    /// Returns the part of a passage that is still in the shown output of a recorded result.
    pub async fn left_of(
        &self,
        lines: Passage,
        (call, file): (&ObjectId, &ObjectId),
        output: &str,
        taking: Taking,
    ) -> Result<Option<Passage>> {
        let (text, _) = self.given(call, output, taking).await?;
        let text = &*text;
        if text != output
            && let Some(version) = self.text_of(file, &lines.content).await?
            && common_lines(&version, lines.first, text).is_none()
        {
            // A host has put other lines around them.
            let left = wrapped_lines(&version, lines.first, output, Reader);
            return Ok(left.map(|(_, last)| Passage { last: last.min(lines.last), whole: false, ..lines }));
        }
        Ok(lines_in_sight(lines, text, output))
    }

    /// Returns the text that a tool gave for the shown part of a message, which may be less. Also returns whether the tool
    /// wrapped the lines: then the record has them with numbers, and the message the lines alone, which are taken.
    async fn given<'a>(
        &self,
        call: &ObjectId,
        shown: &'a str,
        taking: Taking,
    ) -> Result<(Cow<'a, str>, bool)> {
        let recorded = if taking.record { None } else { self.text_at(call, None).await? };
        let is_bare = recorded.as_deref().is_some_and(|recorded| wraps(recorded, shown));
        Ok((recorded.filter(|_| !is_bare).map_or(Cow::Borrowed(shown), Cow::Owned), is_bare))
    }

    /// True if these lines show all differences between a version and theirs.
    pub async fn shows_all_new(
        &self,
        state: &State,
        file: &ObjectId,
        old: &Content,
        lines: &Passage,
    ) -> Result<bool> {
        if !self.has_text(old) || !self.has_text(&lines.content) {
            return Ok(false);
        }
        let old = self.text_known(state, file, old).await?.unwrap_or_default();
        let new = self.text_known(state, file, &lines.content).await?.unwrap_or_default();
        Ok(is_all_new_within(&old, &new, lines.first, lines.last))
    }

    /// Looks at the versions of a file, from the newest after a transaction on, until `look` returns that it is done.
    pub async fn walk(
        &self,
        file: &ObjectId,
        mut tx: TxId,
        mut look: impl FnMut(Version) -> bool + Send,
    ) -> Result<()> {
        for _ in 0..LOOKED_BACK {
            let Some(version) = self.version_at(file, tx).await? else { break };
            tx = TxId(version.tx_id.0.saturating_sub(1));
            if look(version) {
                break;
            }
        }
        Ok(())
    }

    /// The version of a file that was newest after a transaction.
    pub async fn version_at(&self, file: &ObjectId, tx: TxId) -> Result<Option<Version>> {
        let at = AsOf { known: Some(KnownAt::Tx(tx)), valid_time: None };
        self.recorded(file, at).await
    }
}

/// As [`passage_of`], for a stored version.
pub(crate) fn passage_in(version: &Version, first: usize, output: &str) -> Option<(Passage, Shows)> {
    passage_of(version.document.content()?, content_in(version), first, output, Reader)
}

/// Returns the content of a stored version.
pub(crate) fn content_in(version: &Version) -> Content {
    Content::stored(version.document.source_hash(), version.tx_id)
}

/// The maximum number of them that are kept.
const UNREAD: usize = 16;

impl Inner {
    /// Looks again at reads whose version was unknown: another machine may have stored it later. A file that is gone is never
    /// stored.
    pub async fn note_unread(&self, state: &mut State, fsync: Fsync) -> Result<()> {
        for one in std::mem::take(&mut state.unread) {
            let Some(way) = path_of(&one.input.tool, &one.input.args).and_then(|path| self.way_of(&path))
            else {
                continue;
            };
            refresh::learn(&self.client, &mut state.session, [way.file.clone()]).await?;
            self.apply(state);
            let UnstoredRead { call, input, output } = &one;
            let at = (call, self.client.newest());
            let taking = Taking { record: true, again: true, excerpts: false, now: Moment::default() };
            let is_met = state.session.catalog.get(&way.file).is_some();
            let mut found = match is_met {
                true => self.infer(state, &way, at, input, output, taking).await?,
                false => None,
            };
            if found.is_none() && self.is_lost(&way, output).await? && self.works_here(state).await? {
                found = unstored(&way.file, first_line(&input.args), output);
            }
            let Some(found) = found else {
                state.unread.extend((!is_met).then_some(one));
                continue;
            };
            self.archive().found(call, Some(found.clone()));
            let Some(bytes) = found.bytes() else { continue };
            let way = Self::way_to(way, &bytes.file);
            let content = self.content_of(bytes, at.1).await?;
            self.note_evidence(state, &way, at, (&found, content), (&input.args, output), taking).await?;
            if is_met {
                self.note_gone(state, fsync, &way).await?;
            }
        }
        // Files that are never stored lead to nothing.
        let many = state.unread.len().saturating_sub(UNREAD);
        state.unread.drain(..many);
        Ok(())
    }
}
