//! Sessions of versions that did not record what their sentences say: their texts are read again. Nothing that this version
//! records is ever read here.

use context_knowledge::difference::unified;
use context_knowledge::evidence::{Bytes, Evidence};
use context_knowledge::known::Way;
use context_knowledge::statement::{Content, Passage, Says};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::render;
use context_model::time::TxId;

use super::passages::LOOKED_BACK;
use super::{Inner, State};
use crate::base::error::Result;

/// What a result of an old session says.
pub(super) enum Before {
    /// It is no sentence of ours.
    NotOurs,
    /// It is one, and says this.
    Says(Option<Evidence>),
}

impl Inner {
    /// Returns what a sentence of ours in a result of an old session says.
    ///
    /// # Errors
    /// What the store reports.
    pub(super) async fn evidence_before(
        &self,
        state: &State,
        way: &Way,
        (tool, tx): (&str, TxId),
        output: &str,
    ) -> Result<Before> {
        let file = &way.file;
        if !self.archive().is_old() {
            return Ok(Before::NotOurs);
        }
        if told_path(output).and_then(|path| self.file_at(&path)).as_ref() == Some(file) {
            let content = self.led_to(state, file, tx, output).await?;
            let hash = content.and_then(|content| content.hash);
            return Ok(Before::Says(hash.map(|hash| Evidence::LedTo(Bytes { file: file.clone(), hash }))));
        }
        if tool != "read" {
            return Ok(Before::NotOurs);
        }
        if points_nowhere(output) {
            return Ok(Before::Says(None));
        }
        let Some((handle, first, last)) = pointed_lines(output) else { return Ok(Before::NotOurs) };
        let at = state.session.catalog.find(handle);
        let shown = at.and_then(|at| Some((state.known.shown_by(file, &at)?, at)));
        let Some((shown, at)) = shown else { return Ok(Before::Says(None)) };
        let whole = shown.whole && first == shown.first && last == shown.last;
        let lines = Passage { content: shown.content, first, last, whole };
        let left = pointed_nowhere(output.lines().next().unwrap_or_default());
        Ok(Before::Says(lines.of(file).map(|lines| Evidence::Points { lines, at, left })))
    }

    /// Returns what an answer of an old session has to say whose lines or text a host has removed from the
    /// conversation: it would still name them as above.
    pub(super) fn lost_before(&self, state: &State, output: &str) -> Option<String> {
        if !self.archive().is_old() {
            return None;
        }
        let is_lost = |handle: &str| {
            let object = state.session.catalog.find(handle);
            object.is_some_and(|object| !state.request.results.contains(&object))
        };
        if let Some((handle, ..)) = pointed_lines(output) {
            return is_lost(handle).then(|| pointed_nowhere(output))?;
        }
        is_lost(pointed_text(output)?).then(|| text_nowhere(output))?
    }

    /// Takes in a line that may be a notice of an old session.
    pub(super) fn hear_before(&self, state: &mut State, line: &str) {
        let notices = self.archive().unlined().to_vec();
        let told = if notices.is_empty() { None } else { Told::of(line) };
        let Some(Told { handle, version }) = told else { return };
        let Some(file) = state.session.catalog.find(handle) else { return };
        let noted = notices.iter().filter(|one| one.file == file).map(|one| one.hash);
        let hash = noted.chain([state.session.hash_of(&file), None]).find(|hash| version.is(*hash));
        // One that is neither noted nor the present one counts as a version that the file never has: the session may have
        // returned to a point before the notice.
        let unknown = || Some(Digest::of(format!("a notice about {file}").as_bytes()));
        state.known.says(&file, None, None, Says::Other(hash.unwrap_or_else(unknown)));
    }

    /// The version to which the difference in an output leads.
    async fn led_to(
        &self,
        state: &State,
        file: &ObjectId,
        mut tx: TxId,
        output: &str,
    ) -> Result<Option<Content>> {
        let Some(told) = output.find("\n@@ ").map(|at| &output[at + 1..]) else { return Ok(None) };
        let (mut bases, mut hashes) = (Vec::new(), Vec::new());
        for Content { hash, tx } in state.known.contents(file) {
            if hashes.contains(&hash) || bases.len() == LOOKED_BACK {
                continue;
            }
            hashes.push(hash);
            if tx.is_some() {
                let text = self.text_known(state, file, &Content { hash, tx }).await?;
                bases.push(text.unwrap_or_default());
            }
        }
        // A file that is gone is like an empty one as what a difference starts from, but no difference leads there.
        let mut versions: Vec<(Content, Option<String>)> = Vec::new();
        while versions.len() < 2 * LOOKED_BACK {
            let Some(version) = self.version_at(file, tx).await? else { break };
            tx = TxId(version.tx_id.0.saturating_sub(1));
            let content = Content::stored(version.document.source_hash(), version.tx_id);
            let text = version.document.content().map(str::to_owned);
            if let Some(text) = text.as_ref().filter(|_| versions.len() < LOOKED_BACK)
                && bases.iter().any(|base| leads_to(told, base, text))
            {
                return Ok(Some(content));
            }
            versions.push((content, text));
        }
        // A host may have removed from the conversation what the difference starts from.
        let found = versions.iter().take(LOOKED_BACK).enumerate().find(|(place, (_, text))| {
            let mut earlier = versions.iter().skip(place + 1).take(LOOKED_BACK);
            text.as_ref().is_some_and(|text| {
                earlier.any(|(_, base)| leads_to(told, base.as_deref().unwrap_or_default(), text))
            })
        });
        Ok(found.map(|(_, (content, _))| *content))
    }
}

/// Returns whether an output's hunks are the difference of two texts. Most pairs of texts lack one of its lines.
fn leads_to(told: &str, old: &str, new: &str) -> bool {
    let has_lines = told.lines().all(|line| match line.split_at_checked(1) {
        Some(("+", added)) => new.contains(added),
        Some(("-", removed)) => old.contains(removed),
        _ => true,
    });
    let diff = if has_lines { unified(old, new, "", "") } else { return false };
    let hunks = diff.find("@@ ").map(|at| &diff[at..]);
    hunks.is_some_and(|hunks| told.strip_prefix(hunks).is_some_and(is_end_of_difference))
}

/// Returns whether this may follow a difference in what the model is told.
fn is_end_of_difference(rest: &str) -> bool {
    rest.trim().is_empty() || rest == REPEAT_EDIT
}

/// How sentences about a changed file continue after the path, and how the refusal of an edit ends.
const CHANGED_SINCE: &str = " has changed since the result id=";
const EDIT_REFUSED: &str = " has changed since you last saw it, so it was not edited";
const REPEAT_EDIT: &str = "\nCheck that your edit still fits, and repeat it.";

/// The path of the file in an output that tells how the file has changed, instead of showing its text or making an
/// edit.
fn told_path(output: &str) -> Option<String> {
    let first = output.lines().next()?;
    let end = first.find(CHANGED_SINCE).or_else(|| first.find(EDIT_REFUSED))?;
    render::unescape(&first[..end])
}

/// The beginning of an answer that points to where lines are, its continuation after the path, and its end. It stays true
/// when the result is collapsed later: its reference then stands above.
const UNCHANGED: &str = "unchanged: lines ";
const AS_IN: &str = " are as in the result id=";
const ABOVE: &str = " above";

/// The continuation of an answer whose result is no longer in the conversation.
const LEFT: &str = " were in the result id=";
const READ_AGAIN: &str = ", which is no longer in this conversation: read them again";

/// The continuation of an activation's answer whose text is in the conversation, and of one whose text has left it.
const TEXT_IN: &str = "; its text is in the result id=";
const TEXT_LEFT: &str = "; its text was in the result id=";
const ACTIVATE_AGAIN: &str = ", which is no longer in this conversation: activate it again";

/// The name of the result in which an activation's answer says that the text is.
fn pointed_text(output: &str) -> Option<&str> {
    output.lines().next()?.strip_suffix(ABOVE)?.rsplit_once(TEXT_IN).map(|(_, handle)| handle)
}

/// An activation's answer, for a request without the result that it points to. What stands below it stays.
fn text_nowhere(output: &str) -> Option<String> {
    let (answer, below) = output.split_at(output.find('\n').unwrap_or(output.len()));
    let (done, handle) = answer.strip_suffix(ABOVE)?.rsplit_once(TEXT_IN)?;
    Some(format!("{done}{TEXT_LEFT}{handle}{ACTIVATE_AGAIN}{below}"))
}

/// An output that points to lines of a result, for a request without that result. What stands below it stays: lines for
/// calls that have left.
fn pointed_nowhere(output: &str) -> Option<String> {
    pointed_lines(output)?;
    let (answer, below) = output.split_at(output.find('\n').unwrap_or(output.len()));
    let (lines, handle) = answer.strip_suffix(ABOVE)?.rsplit_once(AS_IN)?;
    Some(format!("{lines}{LEFT}{handle}{READ_AGAIN}{below}"))
}

/// Returns whether an output only says that lines have left the conversation.
fn points_nowhere(output: &str) -> bool {
    output.starts_with(UNCHANGED) && output.lines().next().is_some_and(|line| line.ends_with(READ_AGAIN))
}

/// The name of the result that an output points to, and the first and last of the lines, if the output only says where a
/// file's lines are.
fn pointed_lines(output: &str) -> Option<(&str, usize, usize)> {
    let answer = output.lines().next()?.strip_prefix(UNCHANGED)?.strip_suffix(ABOVE)?;
    let (lines, handle) = answer.rsplit_once(AS_IN)?;
    let (first, last) = lines.split(' ').next()?.split_once('-')?;
    Some((handle, first.parse().ok()?, last.parse().ok()?))
}

/// What stands before the name of the version in a notice, and what a line has in its place where the file has no bytes.
const STALE: &str = "stale id=";
const VERSION: &str = " version=";
const NO_VERSION: &str = "none";
const DELETED: &str = "deleted";

/// Hexadecimal digits of a version's hash that name it among those of one file.
const DIGITS: usize = 8;

/// What a line tells of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told<'a> {
    /// The handle of the file.
    handle: &'a str,
    version: Named<'a>,
}

/// A version as a line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named<'a> {
    /// Its hash begins with these digits.
    Version(&'a str),
    /// The file is gone, or has no bytes that anybody could read.
    Nothing,
    /// The line names none.
    Unnamed,
}

impl<'a> Told<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let rest = line.strip_prefix(STALE)?;
        let handle = rest.split(' ').next()?;
        // A path may have any of this in it; what is told of it stands behind it.
        let named = rest.rsplit_once(VERSION).map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
        let version = match named {
            _ if rest.ends_with(&format!(" {DELETED}")) => Named::Nothing,
            Some(NO_VERSION) => Named::Nothing,
            Some(digits) if digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Named::Version(digits)
            }
            _ => Named::Unnamed,
        };
        Some(Self { handle, version })
    }
}

impl Named<'_> {
    /// Returns whether this names a version.
    fn is(&self, hash: Option<Digest>) -> bool {
        match (self, hash) {
            (Self::Version(digits), Some(hash)) => hash.to_string().starts_with(digits),
            (Self::Nothing, None) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::another_line("unchanged: lines 1-2 of a", None)]
    #[case::a_version("stale id=1 path=a version=00000000 +1 -1", Some(Named::Version("00000000")))]
    #[case::a_path_like_a_version(
        "stale id=1 path=a version=00000000 version=none changed",
        Some(Named::Nothing)
    )]
    #[case::unnamed("stale id=1 path=a +1 -1", Some(Named::Unnamed))]
    #[case::gone("stale id=1 path=a deleted", Some(Named::Nothing))]
    #[case::too_short("stale id=1 path=a version=00 +1 -1", Some(Named::Unnamed))]
    #[case::no_digits("stale id=1 path=a version=0000000x +1 -1", Some(Named::Unnamed))]
    fn which_version_a_line_names(#[case] line: &str, #[case] expected: Option<Named<'_>>) {
        assert_eq!(Told::of(line).map(|told| told.version), expected);
        assert!(!Named::Unnamed.is(None) && !Named::Unnamed.is(Some(Digest::of(b"a"))));
    }

    #[test]
    fn answer_that_points_is_read() {
        let answer =
            "unchanged: lines 2-14 of a b of are as in the result id=12345678 above\ntoolcall_ref id=9 above";
        assert_eq!(pointed_lines(answer), Some(("12345678", 2, 14)));
        assert!(!points_nowhere(answer));
        let left = pointed_nowhere(answer).unwrap();
        let lines: Vec<&str> = left.lines().collect();
        assert!(lines[0].starts_with("unchanged: lines 2-14 of a b of were in the result id=12345678, "));
        assert_eq!(lines[1..], ["toolcall_ref id=9 above"]);
        assert!(points_nowhere(&left));
        assert_eq!((pointed_lines(&left), pointed_nowhere(&left)), (None, None));
        assert!(!points_nowhere(READ_AGAIN) && !points_nowhere(UNCHANGED));
    }

    #[test]
    fn activation_that_points_is_read() {
        let answer = "a is active; its text is in the result id=12345678 above\n\narguments above";
        assert_eq!((pointed_text(answer), pointed_lines(answer)), (Some("12345678"), None));
        let left = text_nowhere(answer).unwrap();
        let expected = "a is active; its text was in the result id=12345678, which is no longer in this conversation: \
                        activate it again\n\narguments above";
        assert_eq!(left, expected);
        assert_eq!((pointed_text(&left), text_nowhere(&left)), (None, None));
        assert_eq!(pointed_text(ABOVE), None);
    }
}
