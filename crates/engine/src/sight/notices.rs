//! The lines that tell the model of another version of a file, and how they are read again.
//!
//! A line names the version that it tells of. Which of the lines a host has kept then doesn't matter: a compaction may
//! have removed the older ones, and a process may have ended before the last one was stored.

use context_model::chat::Notice;
use context_model::hash::Digest;
use context_model::render;

/// How a line begins.
const STALE: &str = "stale id=";

/// What stands before the name of the version, and what a line has in its place where the file has no bytes.
const VERSION: &str = " version=";
const NO_VERSION: &str = "none";

/// How a line about a file that is gone ends.
pub(crate) const DELETED: &str = "deleted";

/// Hexadecimal digits of a version's hash that name it among those of one file.
const DIGITS: usize = 8;

/// A line for the model about a file, which is recorded and was not said yet.
pub(crate) struct Unsaid {
    pub notice: Notice,
    pub line: String,
}

/// What a line tells of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told<'a> {
    /// The handle of the file.
    pub handle: &'a str,
    pub version: Named<'a>,
}

/// A version as a line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// Its hash begins with these digits.
    Version(&'a str),
    /// The file is gone, or has no bytes that anybody could read.
    Nothing,
    /// The line is of an earlier release, which named none.
    Unnamed,
}

/// The line about a file's version, which differs from what the model knows by `what`.
pub(crate) fn line(handle: &str, path: &str, hash: Option<Digest>, what: &str) -> String {
    let path = render::text(path);
    if what == DELETED {
        return format!("{STALE}{handle} path={path} {what}");
    }
    let version = hash.map_or_else(|| NO_VERSION.to_owned(), |hash| hash.to_string()[..DIGITS].to_owned());
    format!("{STALE}{handle} path={path}{VERSION}{version} {what}")
}

impl<'a> Told<'a> {
    pub fn of(line: &'a str) -> Option<Self> {
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
    /// Whether this names a version.
    pub fn is(&self, hash: Option<Digest>) -> bool {
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
    #[case::changed("a.txt", Some("a"), "+1 -1")]
    #[case::again("a b.txt", Some("a"), "as you know it again")]
    #[case::no_bytes("a.txt", None, "changed")]
    #[case::gone("a.txt", None, DELETED)]
    #[case::a_path_like_a_version("a version=00000000 +1 -1", Some("a"), "changed")]
    fn a_line_is_read_as_it_was_written(#[case] path: &str, #[case] text: Option<&str>, #[case] what: &str) {
        let hash = text.map(|text| Digest::of(text.as_bytes()));
        let line = line("12345678", path, hash, what);
        let told = Told::of(&line).unwrap();
        assert!(told.handle == "12345678" && told.version.is(hash), "{line}: {told:?}");
        assert!(!told.version.is(Some(Digest::of(b"another"))));
        assert_eq!(told.version.is(None), hash.is_none());
        assert!(line.ends_with(what));
    }

    #[rstest]
    #[case::another_line("unchanged: lines 1-2 of a", None)]
    #[case::of_an_earlier_release("stale id=1 path=a +1 -1", Some(Named::Unnamed))]
    #[case::gone_and_of_an_earlier_release("stale id=1 path=a deleted", Some(Named::Nothing))]
    #[case::too_short("stale id=1 path=a version=00 +1 -1", Some(Named::Unnamed))]
    #[case::no_digits("stale id=1 path=a version=0000000x +1 -1", Some(Named::Unnamed))]
    fn which_version_a_line_names(#[case] line: &str, #[case] expected: Option<Named<'_>>) {
        assert_eq!(Told::of(line).map(|told| told.version), expected);
        assert!(!Named::Unnamed.is(None) && !Named::Unnamed.is(Some(Digest::of(b"a"))));
    }
}
