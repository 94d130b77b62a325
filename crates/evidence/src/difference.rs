//! The common lines of two texts of a file, and descriptions of their difference.

use std::ops::RangeInclusive;

use context_model::tokens::utf16_len;

use crate::compared::Compared;

/// Changes in texts above this many bytes are announced without counting lines.
const MAX_COUNTED: usize = 512 * 1024;

/// A difference for the model has at most this many UTF-16 units, about as many as the excerpt of an output.
pub const MAX_SHOWN: usize = 10_000;

/// The differences in the answers to the calls of one message have at most this many UTF-16 units together.
pub const MAX_TOGETHER: usize = 3 * MAX_SHOWN;

/// A difference above [`MAX_SHOWN`] begins to be shown if it is at most one part in this many of the whole text. Above that
/// the text itself is shorter.
const SHARE: usize = 2;

/// A longer line of a difference that is only begun is shown without its end, in UTF-16 units.
const MAX_LINE: usize = 400;

/// The line before a diff that may be longer than it had to be. Programs that apply diffs skip what stands before the names.
const COARSE: &str = "not the shortest difference: too many lines have changed to look for it";

/// A unified diff with three lines of context, however long; empty if the texts are equal. If too many lines have changed to look
/// for the shortest one, a line before it says so. It still leads from one text to the other.
///
/// For programs. The difference that a model gets has a limit.
pub fn unified(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    let compared = Compared::of(old, new);
    let diff = compared.unified(old_name, new_name);
    if compared.is_coarse { format!("{COARSE}\n{diff}") } else { diff }
}

/// `+12 -4`: how many lines were added and removed; `None` for very long texts.
#[must_use]
pub(crate) fn counted(old: &str, new: &str) -> Option<String> {
    if old.len().max(new.len()) > MAX_COUNTED {
        return None;
    }
    let (added, removed) = Compared::of(old, new).counts();
    Some(format!("+{added} -{removed}"))
}

/// A difference in the form for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShownChange {
    /// All of it, as a unified diff.
    Whole(String),
    /// The beginning of the diff, and the size of the rest.
    Begun {
        /// The first lines of the diff. The last one ends with a line break.
        head: String,
        /// The number of added and removed lines that are not among them.
        more: usize,
        /// The number of added lines.
        added: usize,
        /// The number of removed lines.
        removed: usize,
    },
    /// It is too large to be worth showing.
    TooLarge,
}

impl ShownChange {
    /// The length of the part of the diff that is shown, in UTF-16 units.
    pub(crate) fn units(&self) -> usize {
        match self {
            Self::Whole(text) | Self::Begun { head: text, .. } => utf16_len(text),
            Self::TooLarge => 0,
        }
    }
}

/// Two texts of a file, compared once.
pub(crate) struct Comparison<'t> {
    compared: Compared<'t>,
    new: &'t str,
}

impl<'t> Comparison<'t> {
    /// Compares two texts. `None` if the text between their common beginning and end is too long: the time of a comparison is
    /// bounded.
    #[must_use]
    pub(crate) fn of(old: &'t str, new: &'t str) -> Option<Self> {
        let head = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
        let (old_rest, new_rest) = (&old.as_bytes()[head..], &new.as_bytes()[head..]);
        let ends = old_rest.iter().rev().zip(new_rest.iter().rev());
        let tail = ends.take_while(|(old, new)| old == new).count();
        let changed = old_rest.len().max(new_rest.len()) - tail;
        (changed <= MAX_COUNTED).then(|| Self { compared: Compared::of(old, new), new })
    }

    /// Returns the difference as a unified diff with three lines of context, of at most [`MAX_SHOWN`] UTF-16 units and the
    /// two names. `None` if the texts are equal.
    #[must_use]
    pub(crate) fn shown(&self, old_name: &str, new_name: &str) -> Option<ShownChange> {
        let all = self.compared.unified(old_name, new_name);
        if all.is_empty() {
            return None;
        }
        let names = utf16_len(old_name) + utf16_len(new_name);
        if utf16_len(&all) <= MAX_SHOWN + names {
            return Some(ShownChange::Whole(all));
        }
        Some(if all.len() * SHARE > self.new.len() {
            ShownChange::TooLarge
        } else {
            self.begun(&all, MAX_SHOWN + names)
        })
    }

    /// Returns the first lines of a diff that have at most this many UTF-16 units together.
    fn begun(&self, all: &str, units: usize) -> ShownChange {
        let (mut head, mut left) = (String::new(), units);
        let (mut lines, mut changed) = (0, 0);
        for line in all.split_inclusive('\n') {
            let shown = cut(line);
            let size = utf16_len(&shown);
            if size > left {
                break;
            }
            left -= size;
            head.push_str(&shown);
            lines += 1;
            // The first two lines are the names.
            changed += usize::from(lines > 2 && line.starts_with(['+', '-']));
        }
        let (added, removed) = self.compared.counts();
        ShownChange::Begun { head, more: (added + removed).saturating_sub(changed), added, removed }
    }

    /// True if a caller who knows only the old text, and the lines `read` of the new one, can replace these texts in the new one:
    /// nothing in their lines, or between them, is other than in what the caller knows.
    #[must_use]
    pub(crate) fn touches_nothing_new(&self, replaced: &[String], read: &[RangeInclusive<usize>]) -> bool {
        let kept = self.compared.kept().map(|lines| lines.start + 1..=lines.end);
        let known: Vec<_> = kept.chain(read.iter().cloned()).collect();
        are_within(&known, replaced, self.new)
    }
}

/// True if each of these texts occurs exactly once in another text, and within one of these ranges of its lines, counted from 1.
pub(crate) fn are_within(lines: &[RangeInclusive<usize>], texts: &[String], text: &str) -> bool {
    let is_within = |part: &String| {
        let Some(at) = text.find(part.as_str()).filter(|_| !part.is_empty()) else { return false };
        let is_once = text.rfind(part.as_str()) == Some(at);
        // In bytes: the last one of the part may be the middle of a character.
        let line_at = |end: usize| text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count() + 1;
        let (first, last) = (line_at(at), line_at(at + part.len() - 1));
        is_once && lines.iter().any(|range| *range.start() <= first && last <= *range.end())
    };
    !texts.is_empty() && texts.iter().all(is_within)
}

/// A line of a diff without the end of a long one.
fn cut(line: &str) -> std::borrow::Cow<'_, str> {
    let size = utf16_len(line);
    if size <= MAX_LINE {
        return line.into();
    }
    let mut left = MAX_LINE;
    let end = line.char_indices().find(|(_, c)| {
        let fits = c.len_utf16() <= left;
        left = left.saturating_sub(c.len_utf16());
        !fits
    });
    let begin = &line[..end.map_or(line.len(), |(at, _)| at)];
    format!("{begin}... {} more chars\n", size - utf16_len(begin)).into()
}

/// The last line, counted from 1, of the part of a text that an output shows from line `first` on; `None` if it does
/// not show even that line. A host may have taken carriage returns away.
pub(crate) fn common_lines(text: &str, first: usize, output: &str) -> Option<usize> {
    let mut shown = output.split('\n');
    let mut last = None;
    for (number, line) in text.split('\n').enumerate().skip(first - 1) {
        if shown.next().map(bare) != Some(bare(line)) {
            break;
        }
        last = Some(number + 1);
    }
    last
}

/// A line without the carriage return at its end.
fn bare(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// True if these lines of the new text (counted from 1, both included) are enough for a reader of the old text to know all of
/// the new one. If the number of lines has changed, the last line shown must show where the old text continues.
pub(crate) fn is_all_new_within(old: &str, new: &str, first: usize, last: usize) -> bool {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let before = first.saturating_sub(1);
    let last = last.min(new.len());
    let is_plain = old.len() == new.len() || last == new.len();
    let after = new.len() - last + usize::from(!is_plain);
    let looks_the_same = || old.get(before..last) == new.get(before..last);
    before + after <= old.len().min(new.len())
        && old[..before] == new[..before]
        && old[old.len() - after..] == new[new.len() - after..]
        && (is_plain || !looks_the_same())
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
