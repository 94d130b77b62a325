//! Which lines of which version of a file the output of a read shows.

use context_knowledge::difference::{common_lines, is_all_new_within};
use context_knowledge::evidence::{Bytes, Evidence};
use context_knowledge::in_flight::{InFlight, Taken};
use context_knowledge::known::Way;
use context_knowledge::passage::{
    Shows, adorns, beginning, brings_back, lines_in_sight, nothing_of, passage_of,
};
use context_knowledge::statement::{Content, Passage};
use context_knowledge::wrapped::Tool::Reader;
use context_knowledge::wrapped::wrapped_lines;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;
use context_session::error::Result;
use context_session::references::named_object;
use context_store::{AsOf, Known as Bound, Version};
use serde_json::Value;

use crate::engine::{Inner, State};
use crate::evidence::{first_line, path_of};
use crate::results::Taking;

/// How many versions of a file are searched for the one that an output shows.
pub(crate) const LOOKED_BACK: usize = 8;

/// What is known of the time of a read.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReadAt {
    /// The version that the request mentioned last.
    pub likely: Option<Digest>,
    /// It is recorded after its process has ended.
    pub late: bool,
    /// The transaction of the version that the model knew before it.
    pub before: Option<TxId>,
}

impl Inner {
    /// The lines of a file shown by a recorded call whose result is not in the request: a read, or a call that
    /// brought one back. With them comes the path that the read used, and where it leads now.
    pub async fn lines_recorded(
        &self,
        state: &State,
        call: &ObjectId,
    ) -> Result<Option<(Passage, ObjectId, Option<Way>)>> {
        let session = &state.session;
        let mut call = call.clone();
        for _ in 0..LOOKED_BACK {
            let Some(read) = self.recorded(&call, AsOf::default()).await? else { break };
            let shown = match self.evidence_of(&call).await?.flatten() {
                Some(Evidence::Shows(lines)) => Some((lines.bytes.clone(), lines)),
                Some(Evidence::Unstored { lines, like }) => {
                    let hash = like.unwrap_or(lines.bytes.hash);
                    Some((Bytes { hash, ..lines.bytes.clone() }, lines))
                }
                _ => None,
            };
            let tool = read.document.text("tool").unwrap_or_default();
            let args = read.document.field("args").and_then(Value::as_object);
            let way = args.and_then(|args| path_of(tool, args)).and_then(|path| self.way_of(&path));
            if let Some((bytes, lines)) = shown {
                let content = self.content_of(&bytes, read.tx_id).await?;
                return Ok(Some((Passage::recorded(&lines, content), bytes.file, way)));
            }
            let (Some(args), Some(output)) = (args, read.document.content()) else { break };
            if let Some(object) = named_object(session, tool, args) {
                let Some(version) = self.version_at(&object, read.tx_id).await? else { break };
                if !version.document.content().is_some_and(|text| brings_back(output, text)) {
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
            let shown = self.passage_shown(&file, read.tx_id, ReadAt::default(), first, output).await?;
            return Ok(shown.map(|(lines, _)| (lines, file, Some(way))));
        }
        Ok(None)
    }

    /// The lines that an output shows of what a tool has passed in. Results come in a different order from the tools'
    /// reads, and some show nothing of what was read, so the oldest of the best matches is taken.
    pub async fn passage_handed(
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
            let Taken::Read { content, text } = one.what else { continue };
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

    /// The lines that an output shows from line `first` on, taken from the versions that were newest when the call
    /// was recorded or shortly before: the file may have changed during the call. If several versions match, the
    /// likely one is taken, else the newest. Of a call that is recorded late it is the oldest that is no older than what
    /// the request said `before`: what came after the call must not count as seen. If none matches and the newest has no
    /// text, all of it is shown. Also returns whether nothing else is shown.
    pub async fn passage_shown(
        &self,
        file: &ObjectId,
        mut tx: TxId,
        read: ReadAt,
        first: usize,
        output: &str,
    ) -> Result<Option<(Passage, bool)>> {
        let ReadAt { likely, late, before } = read;
        let mut best: Option<(Passage, Shows, bool)> = None;
        let newest = tx;
        for _ in 0..LOOKED_BACK {
            let Some(version) = self.version_at(file, tx).await? else { break };
            tx = TxId(version.tx_id.0.saturating_sub(1));
            let Some((lines, shows)) = passage_in(&version, first, output) else { continue };
            let is_likely = likely.is_some() && likely == lines.content.hash;
            let is_before = before.is_some_and(|before| version.tx_id < before);
            let rank = |lines: &Passage, shows: Shows, is_likely| (shows, lines.last, is_likely);
            if best.as_ref().is_none_or(|(most, so_far, was_likely)| {
                let (one, other) = (rank(&lines, shows, is_likely), rank(most, *so_far, *was_likely));
                one > other || (late && !is_before && one == other)
            }) {
                best = Some((lines, shows, is_likely));
            }
            if shows == Shows::All && (is_likely || likely.is_none()) && !late {
                break;
            }
        }
        if best.is_some() || first > 1 {
            return Ok(best.map(|(lines, shows, _)| (lines, shows != Shows::More)));
        }
        let version = self.version_at(file, newest).await?;
        let nothing =
            |version: &Version| nothing_of(version.document.content()?, content_in(version), output);
        Ok(version.as_ref().and_then(nothing).map(|lines| (lines, true)))
    }

    /// Returns whether an output that matches no version of a file is still the file's text, and not text that the tool
    /// has numbered or decorated: its first line has nothing in common with that line in any version.
    pub async fn is_plain(&self, file: &ObjectId, mut tx: TxId, first: usize, output: &str) -> Result<bool> {
        let shown = output.lines().next().unwrap_or_default();
        let mut is_text = false;
        for _ in 0..LOOKED_BACK {
            let Some(version) = self.version_at(file, tx).await? else { break };
            tx = TxId(version.tx_id.0.saturating_sub(1));
            let Some(text) = version.document.content() else { continue };
            is_text = true;
            if text.split('\n').nth(first - 1).is_some_and(|line| shown.contains(line.trim())) {
                return Ok(false);
            }
        }
        Ok(is_text)
    }

    /// Returns whether an output has the lines of a version with something beside each of them, such as its number.
    /// Tools that do this leave out a byte order mark and carriage returns.
    pub async fn is_adorned(
        &self,
        file: &ObjectId,
        mut tx: TxId,
        first: usize,
        output: &str,
    ) -> Result<bool> {
        for _ in 0..LOOKED_BACK {
            let Some(version) = self.version_at(file, tx).await? else { break };
            tx = TxId(version.tx_id.0.saturating_sub(1));
            let Some(text) = version.document.content() else { continue };
            let lines = beginning(text, first);
            if !lines.trim().is_empty() && adorns(output, &lines) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a file had bytes after a transaction, and no text.
    pub async fn is_no_text(&self, file: &ObjectId, tx: TxId) -> Result<bool> {
        let version = self.version_at(file, tx).await?;
        Ok(version.is_some_and(|it| it.document.source_hash().is_some() && it.document.content().is_none()))
    }

    /// Returns whether a file was gone after a transaction, and nobody had stored its bytes.
    pub async fn is_gone(&self, file: &ObjectId, tx: TxId) -> Result<bool> {
        let Some(gone) = self.version_at(file, tx).await? else { return Ok(false) };
        let before = self.version_at(file, TxId(gone.tx_id.0.saturating_sub(1))).await?;
        let mut versions = std::iter::once(&gone).chain(&before);
        Ok(versions.all(|version| version.document.source_hash().is_none()))
    }

    /// The part of a passage that is left in what the model is shown of a recorded result.
    pub async fn left_of(
        &self,
        lines: Passage,
        (call, file): (&ObjectId, &ObjectId),
        output: &str,
        taking: Taking,
    ) -> Result<Option<Passage>> {
        // A recorded message may show less than the tool gave.
        let recorded = if taking.record { None } else { self.text_at(call, None).await? };
        // Of a tool that numbers its lines the record has the numbers, and the harness hands over the lines alone.
        let is_bare = recorded.as_deref().is_some_and(|recorded| adorns(recorded, output));
        let text = recorded.as_deref().filter(|_| !is_bare).unwrap_or(output);
        if text != output
            && let Some(version) = self.text_of(file, &lines.content).await?
            && common_lines(&version, lines.first, text).is_none()
        {
            // A host has put lines of its own around them.
            let left = wrapped_lines(&version, lines.first, output, Reader);
            return Ok(left.map(|(_, last)| Passage { last: last.min(lines.last), whole: false, ..lines }));
        }
        Ok(lines_in_sight(lines, text, output))
    }

    /// Returns whether these lines show all that differs between a version and theirs.
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

    /// The version of a file that was newest after a transaction.
    pub async fn version_at(&self, file: &ObjectId, tx: TxId) -> Result<Option<Version>> {
        let at = AsOf { known: Some(Bound::Tx(tx)), valid_time: None };
        self.recorded(file, at).await
    }
}

/// As [`passage_of`], for a stored version.
pub(crate) fn passage_in(version: &Version, first: usize, output: &str) -> Option<(Passage, Shows)> {
    passage_of(version.document.content()?, content_in(version), first, output, Reader)
}

/// What a stored version contains.
fn content_in(version: &Version) -> Content {
    Content::stored(version.document.source_hash(), version.tx_id)
}
