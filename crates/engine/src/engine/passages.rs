//! Which lines of which version of a file the output of a read shows.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;
use context_store::{AsOf, Known as Bound, Version};
use serde_json::Value;

use super::{Handed, Inner};
use crate::files::difference::common_lines;
use crate::files::said::{Content, Passage};
use crate::ground::error::Result;

/// How many versions of a file are looked at for the one that an output shows.
pub(crate) const LOOKED_BACK: usize = 8;

impl Inner {
    /// The lines of a file that a recorded read has shown, of whose result the request knows nothing.
    pub async fn lines_recorded(&self, call: &ObjectId) -> Result<Option<(Passage, ObjectId)>> {
        let Some(read) = self.store().get(call, AsOf::default()).await? else { return Ok(None) };
        let args = read.document.field("args");
        let arg = |name: &str| args.and_then(|args| args.get(name));
        let path = arg("path").and_then(Value::as_str).filter(|_| read.document.text("tool") == Some("read"));
        let (Some(path), Some(output)) = (path, read.document.content()) else { return Ok(None) };
        let Some(file) = self.file_at(path) else { return Ok(None) };
        let first = arg("offset").and_then(Value::as_u64).map_or(1, |n| n as usize).max(1);
        let shown = self.passage_shown(&file, read.tx_id, None, first, output).await?;
        Ok(shown.map(|(lines, _)| (lines, file)))
    }

    /// The lines that an output shows of what a tool has handed over. Results come in another order than their tools read,
    /// and some show nothing of what was read, so the oldest that fits is taken.
    pub async fn passage_handed(
        &self,
        file: &ObjectId,
        tx: TxId,
        first: usize,
        output: &str,
    ) -> Result<Option<Passage>> {
        let handed: Vec<Handed> = self.handed().get(file).cloned().unwrap_or_default();
        for (number, Handed { content, text }) in handed.into_iter().enumerate() {
            let mut shown = text.and_then(|text| passage_of(&text, content, first, output));
            let mut at = content.tx.unwrap_or(tx);
            for _ in 0..LOOKED_BACK {
                let Some(version) = self.version_at(file, at).await? else { break };
                at = TxId(version.tx_id.0.saturating_sub(1));
                if version.document.source_hash() == content.hash {
                    shown = passage_in(&version, first, output);
                    break;
                }
            }
            if let Some((lines, _)) = shown.filter(|(_, shows)| *shows != Shows::More) {
                if let Some(waiting) = self.handed().get_mut(file) {
                    waiting.remove(number);
                }
                return Ok(Some(lines));
            }
        }
        Ok(None)
    }

    /// The lines that an output shows from one on, of the versions that were the newest when the call was recorded or
    /// shortly before: the file may have changed while the call was under way. Where several have them, they are those of the
    /// likely one. With them comes whether nothing else is shown.
    pub async fn passage_shown(
        &self,
        file: &ObjectId,
        mut tx: TxId,
        likely: Option<Digest>,
        first: usize,
        output: &str,
    ) -> Result<Option<(Passage, bool)>> {
        let mut best: Option<(Passage, Shows, bool)> = None;
        for _ in 0..LOOKED_BACK {
            let Some(version) = self.version_at(file, tx).await? else { break };
            tx = TxId(version.tx_id.0.saturating_sub(1));
            let Some((lines, shows)) = passage_in(&version, first, output) else { continue };
            let is_likely = likely.is_some() && likely == lines.content.hash;
            let rank = |lines: &Passage, shows: Shows, is_likely| (shows, lines.last, is_likely);
            if best.as_ref().is_none_or(|(most, so_far, was_likely)| {
                rank(&lines, shows, is_likely) > rank(most, *so_far, *was_likely)
            }) {
                best = Some((lines, shows, is_likely));
            }
            if shows == Shows::All && (is_likely || likely.is_none()) {
                break;
            }
        }
        Ok(best.map(|(lines, shows, _)| (lines, shows != Shows::More)))
    }

    /// Whether an output that is of no version of a file is text of it all the same, and not one that the tool has numbered
    /// or adorned: its first line has nothing in common with what stands there in any version.
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

    /// The version of a file that was the newest one after a transaction.
    pub async fn version_at(&self, file: &ObjectId, tx: TxId) -> Result<Option<Version>> {
        let at = AsOf { known: Some(Bound::Tx(tx)), valid_time: None };
        Ok(self.store().get(file, at).await?)
    }
}

/// What an output shows besides the lines that it has in common with a version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shows {
    /// Other text.
    More,
    /// A line break, which the tool may have added or which may be the file's.
    Break,
    /// Nothing, or a note of the tool's own in brackets, such as how to go on.
    All,
}

impl Shows {
    fn of(output: &str, lines: usize) -> Self {
        match output.splitn(lines + 1, '\n').nth(lines) {
            None => Self::All,
            Some("") => Self::Break,
            Some(rest) if rest.trim_start_matches('\n').starts_with('[') => Self::All,
            Some(_) => Self::More,
        }
    }
}

/// The same as [`passage_of`] for a stored version.
fn passage_in(version: &Version, first: usize, output: &str) -> Option<(Passage, Shows)> {
    let content = Content::stored(version.document.source_hash(), version.tx_id);
    passage_of(version.document.content()?, content, first, output)
}

/// The lines of a text that an output shows from one on, and what else it shows.
fn passage_of(text: &str, content: Content, first: usize, output: &str) -> Option<(Passage, Shows)> {
    let last = common_lines(text, first, output)?;
    let whole = first == 1 && last == text.split('\n').count();
    Some((Passage { content, first, last, whole }, Shows::of(output, last + 1 - first)))
}

/// The lines that an output shows of a version that nobody has stored.
pub(crate) fn lost(hash: Digest, first: usize, output: &str) -> Passage {
    let lines: Vec<&str> = output.split('\n').collect();
    let is_cut = matches!(&lines[..], [.., "", note] if note.starts_with('[') && note.ends_with(']'));
    let last = first + lines.len() - 1 - if is_cut { 2 } else { 0 };
    Passage { content: Content::lost(hash), first, last, whole: first == 1 && !is_cut }
}
