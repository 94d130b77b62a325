//! The version of a file that a `write` or `edit` call left, and the model's knowledge of it.

use std::borrow::Cow;

use context_tools::{FilePatch, PatchKind, Replaced, replaced_in, written_in};
use serde_json::{Map, Value};

/// The statement of a call's arguments about the text that it leaves.
pub enum Leaves<'a> {
    /// This text.
    Text(Cow<'a, str>),
    /// The previous text with these replacements.
    Edits(Vec<Replaced<'a>>),
    /// Nothing.
    Unsaid,
}

/// The fit between a text and what a call left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It has.
    Yes,
    /// The text that the call put in comes up in this text, but what the call started from is unknown.
    Perhaps,
    /// It has not.
    No,
}

/// The model's knowledge of a file once it has written or edited it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// All of it.
    All,
    /// This text: what it knew before, and what it has put in. Others have changed something else.
    Only(String),
    /// Partially known; which part is undetermined.
    Unsure,
}

impl<'a> Leaves<'a> {
    /// From a call's arguments, under the names that hosts have for them.
    #[must_use]
    pub fn of(args: &'a Map<String, Value>) -> Self {
        if let Some(text) = written_in(args) {
            return Self::Text(text.into());
        }
        let all = replaced_in(args);
        if all.is_empty() { Self::Unsaid } else { Self::Edits(all) }
    }

    /// From a call's arguments, which may have a patch: what they say of the file at this path.
    #[must_use]
    pub fn at(args: &'a Map<String, Value>, path: &str) -> Self {
        match Self::of(args) {
            Self::Unsaid => Self::of_patch(args, path),
            leaves => leaves,
        }
    }

    /// From the patch of Codex's in a call's arguments: what it does to the file at this path.
    #[must_use]
    pub fn of_patch(args: &Map<String, Value>, path: &str) -> Self {
        let is_it =
            |name: &str| path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        let files = FilePatch::among(args).into_iter().flat_map(|patch| patch.files);
        let (mut added, mut edits) = (None, Vec::new());
        // A file that moves leaves another text at each of its paths.
        for file in files.filter(|file| is_it(&file.path) && file.moved_to.is_none()) {
            match file.kind {
                PatchKind::Add(text) => added = text.or(added),
                PatchKind::Update(hunks) => edits.extend(hunks.into_iter().map(|hunk| Replaced {
                    old: Some(hunk.old).filter(|old| !old.is_empty()).map(Cow::Owned),
                    new: hunk.new.into(),
                    everywhere: false,
                })),
                PatchKind::Delete => {}
            }
        }
        match added {
            Some(text) => Self::Text(text.into()),
            None if edits.is_empty() => Self::Unsaid,
            None => Self::Edits(edits),
        }
    }

    /// True if the call left this text, given the file's text `before` it.
    pub(crate) fn fits(&self, before: Option<&str>, text: &str) -> Fit {
        match self {
            Self::Text(written) if *written == text => Fit::Yes,
            Self::Text(_) => Fit::No,
            Self::Edits(_) if self.makes_of(before).is_some_and(|left| left == text) => Fit::Yes,
            Self::Edits(edits) if edits.iter().all(|edit| occurs_after(edit, before, text)) => Fit::Perhaps,
            Self::Edits(_) => Fit::No,
            Self::Unsaid => Fit::Perhaps,
        }
    }

    /// The text that the call leaves of another one, if that has what it replaces.
    pub(crate) fn makes_of(&self, before: Option<&str>) -> Option<String> {
        match self {
            Self::Edits(edits) => edited(before?, edits),
            Self::Text(text) => Some(text.clone().into_owned()),
            Self::Unsaid => None,
        }
    }

    /// Returns what the model knows after the call, given the text that it knew, the text that the file had right before the
    /// call as far as it was stored, and the text that the file has now. For a file that the model did not know, only the text
    /// that it inserted itself counts as known.
    pub(crate) fn known_after(&self, known: Option<&str>, before: Option<&str>, now: &str) -> After {
        if let Self::Text(text) = self {
            return if is_same_text(text, now) { After::All } else { After::Only(text.clone().into_owned()) };
        }
        let Some(known) = known.filter(|known| *known != now) else { return After::All };
        match self.makes_of(Some(known)) {
            Some(made) if is_same_text(&made, now) => After::All,
            Some(made) => After::Only(made),
            None => {
                let has_made = match self {
                    Self::Edits(edits) => may_have_made(known, now, edits),
                    _ => before == Some(known),
                };
                if has_made { After::All } else { After::Unsure }
            }
        }
    }
}

/// True if an edit may have made one text of another by a tool that searches in its own way: without regard to white
/// space, or for one of several places.
fn may_have_made(before: &str, now: &str, edits: &[Replaced<'_>]) -> bool {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let (before, now) = (bare(before), bare(now));
    let mut all = Vec::with_capacity(edits.len());
    for Replaced { old, new, everywhere } in edits {
        let Some(old) = old.as_deref().map(bare).filter(|old| !old.is_empty()) else { return false };
        all.push((old, bare(new), *everywhere));
    }
    if let [(old, new, _)] = &all[..] {
        let rest = |at: usize| (&before[..at], &before[at + old.len()..]);
        let mut places = before.match_indices(old.as_str()).map(|(at, _)| rest(at));
        return now.len() + old.len() == before.len() + new.len()
            && places.any(|(start, end)| {
                now.starts_with(start) && now[start.len()..].starts_with(new) && now.ends_with(end)
            });
    }
    at_once(&before, &all).is_some_and(|made| made == now)
}

/// True if two texts are the same to a model: tools keep a file's own line ends and byte order mark.
fn is_same_text(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    one == other || plain(one) == plain(other)
}

/// True if a replacement may have been made between two texts: the new text occurs, or the old one is gone. False for a version
/// that has the new text like the one before: it is not the first.
fn occurs_after(Replaced { old, new, .. }: &Replaced<'_>, before: Option<&str>, text: &str) -> bool {
    let Some(before) = before else { return text.contains(&**new) };
    let count = |all: &str, part: &str| all.matches(part).count();
    let old = old.as_deref().filter(|old| !old.is_empty());
    let is_put_in = !new.is_empty() && count(text, new) > count(before, new);
    is_put_in || (text.contains(&**new) && old.is_some_and(|old| count(text, old) < count(before, old)))
}

/// A text with all of these replaced, at once or one after the other; `None` if one of them does not occur exactly once,
/// because tools then search in their own ways.
fn edited(before: &str, edits: &[Replaced<'_>]) -> Option<String> {
    // Models write line feeds, and tools put in the file's own line ends.
    let is_windows = before.contains("\r\n");
    let own = |text: &str| match is_windows && !text.contains('\r') {
        true => text.replace('\n', "\r\n"),
        false => text.to_owned(),
    };
    let mut all = Vec::with_capacity(edits.len());
    for Replaced { old, new, everywhere } in edits {
        all.push((own(old.as_deref().filter(|old| !old.is_empty())?), own(new), *everywhere));
    }
    at_once(before, &all).or_else(|| {
        all.iter().try_fold(before.to_owned(), |text, edit| at_once(&text, std::slice::from_ref(edit)))
    })
}

fn at_once(before: &str, edits: &[(String, String, bool)]) -> Option<String> {
    let mut places = Vec::with_capacity(edits.len());
    for (old, new, everywhere) in edits {
        let mut found = before.match_indices(old.as_str()).map(|(at, _)| (at, at + old.len(), new.as_str()));
        places.push(found.next()?);
        match everywhere {
            true => places.extend(found),
            false if before.rfind(old.as_str()) != places.last().map(|(at, ..)| *at) => return None,
            false => {}
        }
    }
    places.sort_unstable();
    let (mut text, mut done) = (String::with_capacity(before.len()), 0);
    for (start, end, new) in places {
        text.push_str(before.get(done..start)?);
        text.push_str(new);
        done = end;
    }
    text.push_str(&before[done..]);
    Some(text)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::written(json!({ "content": "a\n" }), Some("b\n"), "a\n", Fit::Yes)]
    #[case::not_written(json!({ "content": "a\n" }), None, "a", Fit::No)]
    #[case::edited(json!({ "edits": [{ "oldText": "b", "newText": "x" }] }), Some("a\nb\n"), "a\nx\n", Fit::Yes)]
    #[case::one_edit(json!({ "oldText": "b", "newText": "x" }), Some("a\nb\n"), "a\nx\n", Fit::Yes)]
    #[case::and_more(json!({ "oldText": "b", "newText": "x" }), Some("a\nb\n"), "a\nx\ny\n", Fit::Perhaps)]
    #[case::before_it(json!({ "oldText": "b", "newText": "x" }), Some("a\nx\n"), "a\nx\ny\n", Fit::No)]
    #[case::one_more(json!({ "oldText": "b", "newText": "x" }), Some("x\n"), "x\nx\n", Fit::Perhaps)]
    #[case::shortened(json!({ "oldText": "ab", "newText": "a" }), Some("ab a\n"), "a a y\n", Fit::Perhaps)]
    #[case::taken_out_and_more(json!({ "oldText": "b\n", "newText": "" }), Some("a\nb\n"), "a\ny\n", Fit::Perhaps)]
    #[case::not_taken_out(json!({ "oldText": "b\n", "newText": "" }), Some("b\n"), "b\ny\n", Fit::No)]
    #[case::several(
        json!({ "edits": [{ "oldText": "c", "newText": "z" }, { "oldText": "a", "newText": "y" }] }),
        Some("a b c"), "y b z", Fit::Yes
    )]
    #[case::overlapping(
        json!({ "edits": [{ "oldText": "ab", "newText": "z" }, { "oldText": "bc", "newText": "y" }] }),
        Some("abc"), "zy", Fit::Perhaps
    )]
    #[case::not_found(json!({ "oldText": "b", "newText": "x" }), Some("a"), "a x", Fit::Perhaps)]
    #[case::not_found_and_not_there(json!({ "oldText": "b", "newText": "x" }), Some("a"), "a y", Fit::No)]
    #[case::found_twice(json!({ "oldText": "b", "newText": "x" }), Some("b b"), "x b", Fit::Perhaps)]
    #[case::nothing_before(json!({ "oldText": "b", "newText": "x" }), None, "x", Fit::Perhaps)]
    #[case::everywhere(json!({ "oldText": "b", "newText": "x", "replace_all": true }), Some("b b"), "x x", Fit::Yes)]
    #[case::one_after_the_other(
        json!({ "edits": [{ "oldText": "a", "newText": "b c" }, { "oldText": "c", "newText": "d" }] }),
        Some("a"), "b d", Fit::Yes
    )]
    #[case::line_ends(json!({ "oldText": "a\nb", "newText": "x\ny" }), Some("a\r\nb\r\n"), "x\r\ny\r\n", Fit::Yes)]
    #[case::no_old_text(json!({ "newText": "x" }), Some("a"), "x", Fit::Perhaps)]
    #[case::empty_old_text(json!({ "oldText": "", "newText": "x" }), Some("a"), "xa", Fit::Perhaps)]
    #[case::taken_out(json!({ "oldText": "b\n", "newText": "" }), Some("a\nb\n"), "a\n", Fit::Yes)]
    #[case::unsaid(json!({ "path": "a" }), Some("a"), "b", Fit::Perhaps)]
    fn text_fits_the_arguments_of_a_call(
        #[case] args: Value,
        #[case] before: Option<&str>,
        #[case] text: &str,
        #[case] fit: Fit,
    ) {
        assert_eq!(Leaves::of(args.as_object().unwrap()).fits(before, text), fit);
    }

    /// A model that knew three lines puts `x` in the place of the first one, where nothing else is said.
    #[rstest]
    #[case::nobody_else("a\nb\nc\n", Some("a\nb\nc\n"), "x\nb\nc\n", None)]
    #[case::a_change_that_was_stored("a\nb\nc\n", Some("a\nb\nn\n"), "x\nb\nn\n", Some("x\nb\nc\n"))]
    #[case::a_change_that_nobody_stored("a\nb\nc\n", Some("a\nb\nc\n"), "x\nb\nn\n", Some("x\nb\nc\n"))]
    #[case::its_line_twice("a\na\nc\n", Some("a\na\nc\n"), "x\na\nc\n", None)]
    #[case::its_line_twice_and_a_change("a\na\nc\n", Some("a\na\nn\n"), "x\na\nn\n", Some(""))]
    #[case::what_it_replaces_is_new_to_it("b\nc\n", Some("a\nb\n"), "x\nb\n", Some(""))]
    #[case::a_change_of_what_it_replaces_that_nobody_stored("b\nc\n", Some("b\nc\n"), "x\nc\n", Some(""))]
    #[case::line_ends("a\r\nb\r\n", Some("a\r\nb\r\n"), "x\r\nb\r\n", None)]
    fn edit_leaves_only_known_text_known(
        #[case] known: &str,
        #[case] before: Option<&str>,
        #[case] now: &str,
        #[case] only: Option<&str>,
    ) {
        let args = json!({ "oldText": "a", "newText": "x" });
        let after = match only {
            None => After::All,
            Some("") => After::Unsure,
            Some(text) => After::Only(text.into()),
        };
        let leaves = Leaves::of(args.as_object().unwrap());
        assert_eq!(leaves.known_after(Some(known), before, now), after);
        assert_eq!(leaves.known_after(None, before, now), After::All, "it knew nothing of the file");
    }

    /// Some tools find a text whatever white space it has.
    #[rstest]
    #[case::found("if a:\n\tb\n", "if x:\n\tb\n", true)]
    #[case::and_something_else("if a:\n\tb\n", "if x:\n\tn\n", false)]
    fn edit_found_despite_white_space_leaves_all_known(
        #[case] known: &str,
        #[case] now: &str,
        #[case] all: bool,
    ) {
        let args = json!({ "oldText": "if a:\n    b", "newText": "if x:\n    b" });
        let after = Leaves::of(args.as_object().unwrap()).known_after(Some(known), Some(known), now);
        assert_eq!(after, if all { After::All } else { After::Unsure });
    }

    #[rstest]
    #[case::its_text("a\n", "a\n", true)]
    #[case::with_the_line_ends_of_the_file("a\n", "\u{feff}a\r\n", true)]
    #[case::changed_since("a\n", "b\n", false)]
    fn write_leaves_its_text_known(#[case] written: &str, #[case] now: &str, #[case] all: bool) {
        let args = json!({ "content": written });
        let after = if all { After::All } else { After::Only(written.into()) };
        assert_eq!(Leaves::of(args.as_object().unwrap()).known_after(Some("old"), Some("new"), now), after);
    }

    #[rstest]
    #[case::updated("/w/a.txt", Some("1\nb\nx\n2\n"))]
    #[case::added("/w/sub/new.txt", Some("one\n\n"))]
    #[case::another("/w/b.txt", None)]
    #[case::the_end_of_a_name("/w/aa.txt", None)]
    fn patch_leaves_the_text_of_the_named_file(#[case] path: &str, #[case] left: Option<&str>) {
        let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n b\n+x\n@@ fn\n 2\n-3\n*** Add File: sub/new.txt\n+one\n+\n*** Delete File: b.txt\n*** End Patch";
        let args = json!({ "input": patch });
        let leaves = Leaves::at(args.as_object().unwrap(), path);
        assert_eq!(leaves.makes_of(Some("1\na\nb\n2\n3\n")).as_deref(), left);
    }
}
