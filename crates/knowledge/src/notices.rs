//! The lines that tell the model of another version of a file.

use context_model::chat::Notice;
use context_model::hash::Digest;
use context_model::render;

use crate::sentences::{Sentences, filled};

/// Hexadecimal digits of a version's hash that name it among those of one file.
const DIGITS: usize = 8;

/// A notice that is recorded and not delivered yet: no plan has carried it.
pub struct PendingNotice {
    /// What it tells, as it is recorded.
    pub notice: Notice,
    /// The line.
    pub line: String,
}

/// How a file differs from what the model knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The file is gone.
    Deleted,
    /// It is as the model knows it again.
    SameAgain,
    /// So many lines were added and removed.
    Counted(String),
    /// It is not known how.
    Unknown,
}

/// The line about a file's version.
pub fn line(
    sentences: &Sentences,
    handle: &str,
    path: &str,
    hash: Option<Digest>,
    change: &Change,
) -> String {
    let path = render::text(path);
    let what = match change {
        Change::Deleted => return filled(sentences.deleted, &[("id", handle), ("path", &path)]),
        Change::SameAgain => sentences.same_again,
        Change::Counted(lines) => lines,
        Change::Unknown => sentences.differs,
    };
    let version = hash.map(|hash| hash.to_string()[..DIGITS].to_owned());
    let version = version.as_deref().unwrap_or(sentences.no_version);
    let values = [("id", handle), ("path", &*path), ("version", version), ("what", what)];
    filled(sentences.changed, &values)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::counted(Some("a"), Change::Counted("+1 -1".into()), "stale id=12 path=a version=ca978112 +1 -1")]
    #[case::again(Some("a"), Change::SameAgain, "stale id=12 path=a version=ca978112 as you know it again")]
    #[case::no_bytes(None, Change::Unknown, "stale id=12 path=a version=none changed")]
    #[case::gone(None, Change::Deleted, "stale id=12 path=a deleted")]
    fn what_a_line_says(#[case] text: Option<&str>, #[case] change: Change, #[case] expected: &str) {
        let hash = text.map(|text| Digest::of(text.as_bytes()));
        assert_eq!(line(&Sentences::default(), "12", "a", hash, &change), expected);
    }
}
