//! Finds the evidence in a result whose tool has passed nothing in: compares its text with the file's versions, the newest
//! first. Each version is looked at once, and a search reports when no older one can fit better.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;
use context_tools::OutputOf::Reader;
use context_tools::Placeholder;

use crate::evidence::Evidence;
use crate::passage::{Shows, beginning, lost, nothing_of, passage_of, wraps};
use crate::statement::{Content, Passage};
use crate::written::{Fit, Leaves};

/// The maximum number of versions of a file that a search looks at.
pub const LOOKED_BACK: usize = 8;

/// The time of a read, as far as it is known.
#[derive(Clone, Copy, Default)]
pub struct ReadAt {
    /// The version that the request mentioned last.
    pub likely: Option<Digest>,
    /// It is recorded after its process has ended.
    pub late: bool,
    /// The transaction of the version that the model knew before it.
    pub before: Option<TxId>,
}

/// A read as its result has it.
#[derive(Clone, Copy)]
pub struct ReadResult<'a> {
    /// The first line that it asks for, counted from 1.
    pub first: usize,
    /// It asks for a part of the file.
    pub is_limited: bool,
    /// The text that it shows.
    pub output: &'a str,
    /// The tool has adorned the lines, and `output` has them without that.
    pub is_bare: bool,
    /// The tool has passed in a read of the file, so the output is the file's own text.
    pub is_passed_in: bool,
    /// Its time, as far as it is known.
    pub at: ReadAt,
}

impl ReadResult<'_> {
    /// True if a read with these lines may have come before anything was stored: it is recorded late, and goes to the
    /// end of another text than theirs.
    #[must_use]
    pub fn may_be_of_another(&self, lines: &Passage) -> bool {
        self.at.late && !self.is_limited && !lines.whole && self.output.ends_with('\n')
    }
}

/// The search for the version that a read shows. If several match, the search takes the likely one, else the newest. For a call
/// that is recorded late it takes the oldest version that is at least as new as what the request said before: text that came
/// after the call must not count as seen.
pub struct ReadSearch<'a> {
    read: ReadResult<'a>,
    best: Option<Match>,
    newest: Option<NewestVersion>,
    /// The number of versions looked at so far.
    looked: usize,
    /// The newest version, or the one before it, has bytes.
    has_bytes: bool,
    /// A version that does not match has text.
    has_text: bool,
    /// The output's first line has that of such a version in it.
    is_alike: bool,
    /// The output has such a version's lines with something beside each.
    is_adorned: bool,
}

/// A version that matches.
struct Match {
    lines: Passage,
    shows: Shows,
    is_likely: bool,
}

/// The newest version.
struct NewestVersion {
    is_text: bool,
    has_bytes: bool,
    /// All of it, if it has nothing to show and the output shows nothing.
    nothing: Option<Passage>,
}

impl<'a> ReadSearch<'a> {
    /// Begins with no version looked at.
    pub fn new(read: ReadResult<'a>) -> Self {
        let (has_bytes, has_text, is_alike, is_adorned) = (false, false, false, false);
        Self { read, best: None, newest: None, looked: 0, has_bytes, has_text, is_alike, is_adorned }
    }

    /// Looks at a version, which is the newest or the one before that looked at last. Returns true if an older one could
    /// fit better.
    pub fn look(&mut self, content: Content, text: Option<&str>) -> bool {
        let ReadResult { first, output, at: ReadAt { likely, late, before }, .. } = self.read;
        self.has_bytes |= self.looked < 2 && content.hash.is_some();
        self.looked += 1;
        self.newest.get_or_insert_with(|| NewestVersion {
            is_text: text.is_some(),
            has_bytes: content.hash.is_some(),
            nothing: text.and_then(|text| nothing_of(text, content, output)),
        });
        let Some(text) = text else { return true };
        let Some((lines, shows)) = passage_of(text, content, first, output, Reader) else {
            self.compare(text);
            return true;
        };
        let is_likely = likely.is_some() && likely == content.hash;
        let is_before = before.is_some_and(|before| content.tx < Some(before));
        let rank = (shows, lines.last, is_likely);
        if self.best.as_ref().is_none_or(|best| {
            let so_far = (best.shows, best.lines.last, best.is_likely);
            rank > so_far || (late && !is_before && rank == so_far)
        }) {
            self.best = Some(Match { lines, shows, is_likely });
        }
        late || shows != Shows::All || !(is_likely || likely.is_none())
    }

    /// Looks for what an output has of a version that it does not show.
    fn compare(&mut self, text: &str) {
        let ReadResult { first, output, .. } = self.read;
        self.has_text = true;
        let shown = output.lines().next().unwrap_or_default();
        self.is_alike |= text.split('\n').nth(first - 1).is_some_and(|line| shown.contains(line.trim()));
        let lines = beginning(text, first);
        self.is_adorned |= !lines.trim().is_empty() && wraps(output, &lines);
    }

    /// The lines that the output shows, and whether it shows nothing else.
    #[must_use]
    pub fn lines(&self) -> Option<(Passage, bool)> {
        if let Some(Match { lines, shows, .. }) = &self.best {
            return Some((*lines, *shows != Shows::More));
        }
        let nothing = self.newest.as_ref().filter(|_| self.read.first == 1)?.nothing;
        nothing.map(|lines| (lines, true))
    }

    /// Returns what the result says of the file. `passed_in` are the lines of a read that its tool has passed in.
    #[must_use]
    pub fn evidence(&self, file: &ObjectId, passed_in: Option<Passage>) -> Option<Evidence> {
        let ReadResult { first, output, is_bare, is_passed_in, at, .. } = self.read;
        if Placeholder::of(output).is_some() {
            return None;
        }
        let shown = passed_in.map(|lines| (lines, true)).or_else(|| self.lines());
        let is_other = shown.as_ref().is_some_and(|(lines, _)| self.read.may_be_of_another(lines));
        let Some((lines, is_all)) = shown.filter(|_| !is_other) else {
            // The content could not be stored before the process ended, and is gone by now.
            let is_gone = at.late && self.looked > 0 && !self.has_bytes;
            // Otherwise the tool may have numbered or decorated the lines.
            let is_plain = self.has_text && !self.is_alike;
            if is_bare || !(is_passed_in || is_other || is_gone || is_plain) || !is_other && self.is_adorned {
                return None;
            }
            // A tool's rendering of bytes that are not text says nothing of the file's text.
            let is_no_text = self.newest.as_ref().is_some_and(|newest| newest.has_bytes && !newest.is_text);
            // The tool gives files as they are, and this matches none of the stored versions.
            return if is_no_text { None } else { unstored(file, first, output) };
        };
        // A tool that wraps lines may have left out some of their characters.
        if is_all || is_bare {
            return lines.of(file).map(Evidence::Shows);
        }
        // There is text that no version has.
        let like = lines.content.hash;
        let lines = Passage { content: Content::lost(Digest::of(output.as_bytes())), ..lines }.of(file)?;
        Some(Evidence::Unstored { lines, like })
    }
}

/// Returns the lines that a read from a line on has shown of a version that was never stored. What a host says in place of an
/// output shows nothing.
#[must_use]
pub fn unstored(file: &ObjectId, first: usize, output: &str) -> Option<Evidence> {
    if Placeholder::of(output).is_some() {
        return None;
    }
    let lines = lost(Digest::of(output.as_bytes()), first, output).of(file)?;
    Some(Evidence::Unstored { lines, like: None })
}

/// The search for the version that a `write` or `edit` left. That version may have been stored before the call was recorded,
/// and something newer since. If that exact version was never stored, an edit in messages that are read again made it of the
/// text that the model knew. Otherwise it is the version in which the call's new text first occurs: the oldest if the process
/// ended before the call was recorded, because one notice too many is better than none.
pub(crate) struct WriteSearch<'a> {
    leaves: Leaves<'a>,
    /// The hash of the text that the call makes of the one that the model knew.
    made: Option<Digest>,
    late: bool,
    found: Option<Content>,
    perhaps: Option<Content>,
}

impl<'a> WriteSearch<'a> {
    /// Begins with no version looked at. `known` is the text that the model knew; `late`: the call is recorded after its
    /// process has ended.
    pub(crate) fn new(leaves: Leaves<'a>, known: Option<&str>, late: bool) -> Self {
        let made = leaves.makes_of(known).map(|text| Digest::of(text.as_bytes()));
        Self { leaves, made, late, found: None, perhaps: None }
    }

    /// Looks at a version, the newest or the one before that looked at last. `before` is the text of the one before it.
    /// True if an older one could fit better.
    pub(crate) fn look(&mut self, content: Content, text: Option<&str>, before: Option<&str>) -> bool {
        let fit = self.leaves.fits(before, text.unwrap_or_default());
        // Otherwise others had changed the file before, and the model does not know that.
        let is_it = if self.made.is_some() { self.made == content.hash } else { fit == Fit::Yes };
        if is_it {
            self.found = Some(content);
        } else if fit != Fit::No && (self.perhaps.is_none() || self.is_oldest_taken()) {
            self.perhaps = Some(content);
        }
        !is_it
    }

    fn is_oldest_taken(&self) -> bool {
        self.late && !matches!(self.leaves, Leaves::Unsaid)
    }

    /// Returns the content that the call left; bytes that were never stored have no transaction.
    #[must_use]
    pub(crate) fn content(&self) -> Option<Content> {
        self.found.or(self.made.map(Content::lost)).or(self.perhaps)
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
