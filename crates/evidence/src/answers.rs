//! Answers that keep the model's knowledge of files true: a read answered by text that is still visible, and the decision on an
//! edit of a file that has changed unseen.

use std::borrow::Cow;

use context_lines::escape;
use context_model::hash::Digest;
use context_model::id::ObjectId;

use crate::difference::{Comparison, MAX_TOGETHER, ShownChange, are_within};
use crate::notices::Sentences;
use crate::records::Unreported;
use crate::seen::{At, Unseen};
use crate::sight::Sight;
use crate::statement::Content;
use context_lines::filled;

/// A diff replaces the whole text if it is at most one part in this many of that text, and short enough to be shown whole.
const DIFF_SHARE: usize = 2;

/// The decision on an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditGuard {
    /// Make the edit.
    Allowed {
        /// The text to add to the edit's result: the earlier change of the file.
        difference: Option<String>,
    },
    /// Don't make it, and answer with this.
    Refused(String),
}

/// An edit of a file that has changed since the model knew it.
#[derive(Clone, Copy)]
pub struct AskedEdit<'a> {
    /// The path that the tool was given.
    pub path: &'a str,
    /// The file.
    pub file: &'a ObjectId,
    /// The content that the model knows.
    pub known: Content,
    /// The bytes that the file has now.
    pub now: Digest,
    /// They are the newest version in the store.
    pub is_stored: bool,
    /// The texts that the edit replaces; `None` for an edit of which nothing is known, or that replaces the whole file.
    pub replaced: Option<&'a [String]>,
    /// The UTF-16 units of the differences that edits were answered with since the last message.
    pub compared: usize,
}

/// The decision on an edit, and what its answer shows of the file's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedEdit {
    /// The decision.
    pub guard: EditGuard,
    /// The UTF-16 units of the difference in it.
    pub units: usize,
    /// It shows the whole change: with the answer, or with the edit's result.
    pub shows_all: bool,
}

impl JudgedEdit {
    fn refused(text: String) -> Self {
        Self { guard: EditGuard::Refused(text), units: 0, shows_all: false }
    }

    fn allowed(text: String) -> Self {
        Self { guard: EditGuard::Allowed { difference: Some(text) }, units: 0, shows_all: false }
    }
}

impl<F: Fn(&ObjectId) -> bool> Sight<'_, F> {
    /// Decides on an edit. If each of the replaced texts occurs exactly once in the file as it is now, and the change has
    /// touched none of their lines or the model has read these since, the edit may be made, and the difference comes with its
    /// result. Otherwise it is refused with the difference. The answer has the beginning of a difference that is too long, or nothing of it.
    ///
    /// # Errors
    /// `Unseen` if a version was not read yet.
    pub fn judge_edit(&self, edit: &AskedEdit<'_>, sentences: &Sentences) -> Result<JudgedEdit, Unseen> {
        let AskedEdit { file, known, now, is_stored, replaced, compared, .. } = *edit;
        let path = escape::short_text(edit.path);
        let old = match self.records.unreported(file, now, self.seen)? {
            Unreported::After(text) => Some(Cow::Owned(text)),
            Unreported::AfterUnknown => None,
            Unreported::Nothing => {
                let text = self.text_known(file, &known)?;
                text.or_else(|| known.tx.map(|_| Cow::Borrowed("")))
            }
        };
        // Content on disk may not be stored, and then its difference cannot be shown.
        let new = match is_stored {
            true => Some(self.seen.text(file, At::Now)?.unwrap_or_default()),
            false => None,
        };
        let refused = |sentence| Ok(JudgedEdit::refused(filled(sentence, &[("path", &path)])));
        let Some((old, new)) = old.zip(new) else { return refused(sentences.edit_unknown) };
        let knowledge = self.knowledge(file);
        let read: Vec<_> = knowledge.shown_of(now).map(|lines| lines.first..=lines.last).collect();
        // The comparison takes too long, or too many changed lines would have to be shown.
        let Some(comparison) = Comparison::of(&old, new) else {
            return match replaced.is_some_and(|texts| are_within(&read, texts, new)) {
                true => Ok(JudgedEdit::allowed(filled(sentences.beside_large, &[("path", &path)]))),
                false => refused(sentences.edit_large),
            };
        };
        // The version that is most like the read text may be the present one.
        let Some(shown) = comparison.shown("as you know it", "as it is now") else {
            return refused(sentences.edit_unknown);
        };
        let is_room = compared + shown.units() <= MAX_TOGETHER;
        let shown = if is_room { shown } else { ShownChange::TooLarge };
        let is_beside = replaced.is_some_and(|texts| comparison.touches_nothing_new(texts, &read));
        let [whole, begun, large] = match is_beside {
            true => [sentences.edit_beside, sentences.beside_begun, sentences.beside_large],
            false => [sentences.edit_refused, sentences.edit_begun, sentences.edit_large],
        };
        let text = match &shown {
            ShownChange::Whole(diff) => filled(whole, &[("path", &*path), ("diff", diff)]),
            // Until the model has read the file again, it does not know the change: its knowledge stays as noted.
            partly => said_partly(sentences, (begun, large), &path, partly),
        };
        let judged = if is_beside { JudgedEdit::allowed(text) } else { JudgedEdit::refused(text) };
        Ok(JudgedEdit { units: shown.units(), shows_all: matches!(shown, ShownChange::Whole(_)), ..judged })
    }
}

/// Returns a sentence with the beginning of a difference, or without any of it: the first sentence or the second.
fn said_partly(
    sentences: &Sentences,
    (begun, large): (&str, &str),
    path: &str,
    shown: &ShownChange,
) -> String {
    let ShownChange::Begun { head, more, added, removed } = shown else {
        return filled(large, &[("path", path)]);
    };
    let [more, added, removed] = [more, added, removed].map(usize::to_string);
    let counts = [("more", &*more), ("added", &*added), ("removed", &*removed)];
    let rest = filled(sentences.difference_rest, &counts);
    filled(begun, &[("path", path), ("diff", head), ("rest", &rest)])
}

/// Returns the lines that a read asks for of a text, from the first to the last, counted from 1; `None` for a read past the
/// end.
#[must_use]
pub fn asked_lines(text: &str, offset: Option<usize>, limit: Option<usize>) -> Option<(usize, usize, bool)> {
    let total = text.split('\n').count();
    let first = offset.unwrap_or(1).max(1);
    let last = limit.map_or(total, |limit| total.min(first.saturating_add(limit).saturating_sub(1)));
    (first <= last).then_some((first, last, first == 1 && last == total))
}

impl Sentences {
    /// The answer to a read of lines that are in the result with this short name.
    #[must_use]
    pub fn lines_are_in(&self, path: &str, (first, last): (usize, usize), handle: &str) -> String {
        let (first, last) = (first.to_string(), last.to_string());
        let path = escape::short_text(path);
        let values = [("first", &*first), ("last", &*last), ("path", &*path), ("id", handle)];
        filled(self.lines_elsewhere, &values)
    }

    /// The answer to an activation of a text that is in the result with this short name.
    #[must_use]
    pub fn text_is_in(&self, done: &str, handle: &str) -> String {
        filled(self.text_elsewhere, &[("done", done), ("id", handle)])
    }

    /// The answer to a read of a file whose older text is in the result with this short name; `None` if the lines themselves
    /// are shorter than their difference.
    #[must_use]
    pub fn changed_since(&self, path: &str, (old, new): (&str, &str), handle: &str) -> Option<String> {
        let shown = Comparison::of(old, new)?.shown(&format!("in the result id={handle}"), "now");
        // The lines themselves are served in place of a diff that is long.
        let Some(ShownChange::Whole(diff)) = shown else { return None };
        let values = [("path", &*escape::short_text(path)), ("id", handle), ("diff", &*diff)];
        (diff.len() * DIFF_SHARE <= new.len()).then(|| filled(self.difference, &values))
    }
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
