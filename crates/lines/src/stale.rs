//! The lines that tell the model of another version of a file: `stale id=673a446c path=src/a.ts version=ca978112 +1 -1`.

use std::borrow::Cow;

use crate::escape::{self, short_text, short_word};

/// The difference between a file and the model's knowledge of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// The file is gone.
    Deleted,
    /// It is as the model knows it again.
    SameAgain,
    /// This many lines were added and removed: `+1 -1`.
    Counted(String),
    /// Its change is not known.
    Unknown,
}

/// A line about files that have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaleLine<'a> {
    /// One file.
    File {
        /// The file's handle.
        id: Cow<'a, str>,
        /// The path as the agent sees it. A very long one is shown without its middle, and read back so.
        path: Cow<'a, str>,
        /// The name of the new version; `None` if the file is gone, or has no bytes that could be read.
        version: Option<Cow<'a, str>>,
        /// The difference.
        change: FileChange,
    },
    /// More files than fit, whose lines are in a list.
    More {
        /// The number of files.
        count: usize,
        /// The ID of the list.
        id: Cow<'a, str>,
    },
}

/// The words of these lines. Names in braces are placeholders: each is replaced once, in its place. No program understands the lines
/// of a request: another release may have other words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleWords {
    /// A file has another version.
    pub changed: &'static str,
    /// The text in place of a version's name, where the file has no bytes that could be read.
    pub no_version: &'static str,
    /// The difference of the version, where its text is not known.
    pub differs: &'static str,
    /// The difference of the version, where it is the one that the model knew before.
    pub same_again: &'static str,
    /// A file is gone.
    pub deleted: &'static str,
    /// More files have another version or are gone than fit, and the place of their lines.
    pub more: &'static str,
}

const SAME_AGAIN: &str = "as you know it again";
const DIFFERS: &str = "changed";
const NO_VERSION: &str = "none";
const MORE: [&str; 2] = [": that many other files have changed or are gone; id=", " lists them"];

impl Default for StaleWords {
    fn default() -> Self {
        Self {
            changed: "stale id={id} path={path} version={version} {what}",
            no_version: NO_VERSION,
            differs: DIFFERS,
            same_again: SAME_AGAIN,
            deleted: "stale id={id} path={path} deleted",
            more: "stale more={count}: that many other files have changed or are gone; id={id} lists them",
        }
    }
}

impl<'a> StaleLine<'a> {
    /// Writes the line.
    #[must_use]
    pub fn written(&self, words: &StaleWords) -> String {
        match self {
            Self::File { id, path, version, change } => {
                let (id, path) = (&*short_word(id), &*short_text(path));
                let what = match change {
                    FileChange::Deleted => return filled(words.deleted, &[("id", id), ("path", path)]),
                    FileChange::SameAgain => words.same_again,
                    FileChange::Counted(lines) => lines,
                    FileChange::Unknown => words.differs,
                };
                let version = version.as_deref().unwrap_or(words.no_version);
                let values = [("id", id), ("path", path), ("version", version), ("what", what)];
                filled(words.changed, &values)
            }
            Self::More { count, id } => {
                filled(words.more, &[("count", &count.to_string()), ("id", &short_word(id))])
            }
        }
    }

    /// Reads a line in our own words; `None` for any other text.
    #[must_use]
    pub fn of(line: &'a str) -> Option<Self> {
        let word = |shown| escape::shown_by(short_word, shown).filter(|raw| !raw.is_empty());
        let rest = line.strip_prefix("stale ")?;
        if let Some(rest) = rest.strip_prefix("more=") {
            let (count, id) = rest.split_once(MORE[0])?;
            let read = Self::More { count: count.parse().ok()?, id: word(id.strip_suffix(MORE[1])?)? };
            return (read.written(&StaleWords::default()) == line).then_some(read);
        }
        let (id, rest) = rest.strip_prefix("id=")?.split_once(" path=")?;
        let (path, version, change) = match rest.split_once(" version=") {
            // A space before an equals sign is escaped in a path, so this name is ours.
            Some((path, rest)) => {
                let (version, what) = rest.split_once(' ')?;
                let change = match what {
                    SAME_AGAIN => FileChange::SameAgain,
                    DIFFERS => FileChange::Unknown,
                    counted if is_count(counted) => FileChange::Counted(counted.to_owned()),
                    _ => return None,
                };
                (path, (version != NO_VERSION).then_some(Cow::Borrowed(version)), change)
            }
            None => (rest.strip_suffix(" deleted")?, None, FileChange::Deleted),
        };
        Some(Self::File { id: word(id)?, path: escape::shown_by(short_text, path)?, version, change })
    }
}

/// True for numbers of lines: `+1 -1`.
fn is_count(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.strip_prefix('+')
        .and_then(|rest| rest.split_once(" -"))
        .is_some_and(|(more, less)| is_number(more) && is_number(less))
}

/// Returns a sentence with values in place of its names. A name without a value stays.
#[must_use]
pub fn filled(sentence: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let value = after.split_once('}').and_then(|(name, behind)| {
            let (_, value) = values.iter().find(|(one, _)| *one == name)?;
            Some((*value, behind))
        });
        match value {
            Some((value, behind)) => {
                text.push_str(value);
                rest = behind;
            }
            None => {
                text.push('{');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::each_once("{a} and {b}", "1 and {a}")]
    #[case::twice("{a}{a}", "11")]
    #[case::none("plain", "plain")]
    #[case::unknown("{c} {a", "{c} {a")]
    #[case::empty("", "")]
    fn values_stand_for_names_and_are_not_read_again(#[case] sentence: &str, #[case] expected: &str) {
        assert_eq!(filled(sentence, &[("a", "1"), ("b", "{a}")]), expected);
    }
}
