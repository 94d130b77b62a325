//! All our sentences for the model about what it knows of files.

use context_lines::{FileChange, StaleLine, StaleWords};
use context_model::hash::Digest;

/// Hexadecimal digits of a version's hash that name it among those of one file.
const DIGITS: usize = 8;

/// The lines of one plan have at most this many UTF-16 units, and one more line represents the others.
pub const MAX_TOLD: usize = 10_000;

/// The line about a file's version.
pub(crate) fn notice_line(
    words: &StaleWords,
    handle: &str,
    path: &str,
    hash: Option<Digest>,
    change: &FileChange,
) -> String {
    let version = hash.map(|hash| hash.to_string()[..DIGITS].to_owned().into());
    let change = change.clone();
    StaleLine::File { id: handle.into(), path: path.into(), version, change }.written(words)
}

/// The sentences. Names in braces are placeholders: each is replaced once, in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentences {
    /// The words of the lines about files that have changed.
    pub stale: StaleWords,
    /// The lines of a read are in another result. True also once that has left the request: the sentence stays as it is, because
    /// each change of it would cost the provider's cache from there on.
    pub lines_elsewhere: &'static str,
    /// An activated text is in another result. True also once that has left.
    pub text_elsewhere: &'static str,
    /// The change of a file since another result.
    pub difference: &'static str,
    /// The reason why an edit was not made, and the change of the file.
    pub edit_refused: &'static str,
    /// The reason why an edit was not made, where the change of the file is not known.
    pub edit_unknown: &'static str,
    /// The reason why an edit was not made, and the beginning of a change that is too long to show.
    pub edit_begun: &'static str,
    /// The reason why an edit was not made, where the change is too large to show any of it.
    pub edit_large: &'static str,
    /// The change of a file before an edit that was made.
    pub edit_beside: &'static str,
    /// The same for a change that is too long to show.
    pub beside_begun: &'static str,
    /// The same for one that is too large to show any of it.
    pub beside_large: &'static str,
    /// The last line of a difference that is begun.
    pub difference_rest: &'static str,
}

impl Default for Sentences {
    fn default() -> Self {
        Self {
            stale: StaleWords::default(),
            lines_elsewhere: "unchanged: lines {first}-{last} of {path} are as in the result id={id}; read them again if gone",
            text_elsewhere: "{done}; its text is in the result id={id}; activate it again if gone",
            difference: "{path} has changed since the result id={id}:\n{diff}",
            edit_refused: "{path} has changed since you last saw it, so it was not edited. The change:\n{diff}\nCheck that your edit still fits, and repeat it.",
            edit_unknown: "{path} has changed since you last saw it, so it was not edited. What you saw was never stored, so the change can't be shown: read it again first.",
            edit_begun: "{path} has changed since you last saw it, so it was not edited. The change begins:\n{diff}{rest}\nThis is not all of it: read it again first.",
            edit_large: "{path} has changed since you last saw it, so it was not edited. The change is too large to show: read it again first.",
            edit_beside: "{path} had changed elsewhere since you last saw it; before your edit:\n{diff}",
            beside_begun: "{path} had changed elsewhere since you last saw it; the beginning of the change, before your edit:\n{diff}{rest}\nThis is not all of it: read it again.",
            beside_large: "{path} had changed elsewhere since you last saw it, and the change is too large to show: read it again.",
            difference_rest: "... {more} more lines changed, +{added} -{removed} in all",
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::counted(Some("a"), FileChange::Counted("+1 -1".into()), "stale id=12 path=a version=ca978112 +1 -1")]
    #[case::again(
        Some("a"),
        FileChange::SameAgain,
        "stale id=12 path=a version=ca978112 as you know it again"
    )]
    #[case::no_bytes(None, FileChange::Unknown, "stale id=12 path=a version=none changed")]
    #[case::gone(None, FileChange::Deleted, "stale id=12 path=a deleted")]
    fn stale_line_names_the_change(
        #[case] text: Option<&str>,
        #[case] change: FileChange,
        #[case] expected: &str,
    ) {
        let hash = text.map(|text| Digest::of(text.as_bytes()));
        assert_eq!(notice_line(&StaleWords::default(), "12", "a", hash, &change), expected);
    }
}
