//! Reading files that may be anything: pipes, devices, growing, replaced, endless, forbidden.

use std::io::{self, Read};
use std::path::Path;

use camino::Utf8Path;
use context_model::hash::{Digest, HashedText, Hasher, source_hash};
use context_model::index::Observation;
use context_model::object::Document;
use context_platform::{Facts, PathKind};

/// Files above this many bytes are not even hashed: reading them would hold up a turn.
pub(crate) const MAX_HASHED_BYTES: u64 = 256 * 1024 * 1024;

/// The maximum number of times that a file is read if it changes while it is read.
const ATTEMPTS: usize = 5;

/// The state of the file at a path, as it was read, or as a caller reported it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FileState {
    /// A text file, whole.
    Text(HashedText),
    /// A text file as the version that it becomes.
    Made {
        /// SHA-256 of its bytes.
        hash: Digest,
        /// The version.
        version: Box<Document>,
    },
    /// A regular file whose text is not kept.
    NoText {
        /// SHA-256 of its bytes.
        hash: Digest,
        /// Their number.
        size: u64,
        /// Why, as the end of a sentence "the file …".
        reason: String,
    },
    /// Only its path was seen, as in a list of files.
    Discovered,
    /// A caller reported that it is deleted.
    Deleted,
    /// The file does not exist, and its directory can be read: confirmed to be gone.
    Gone,
    /// Something else is at its path, so the file is gone: a directory, a pipe, a device, or a symbolic link on the way.
    Replaced {
        /// A description of the entry there, as the end of a sentence "the file …".
        reason: String,
    },
    /// Neither the file nor its directory exists (or the directory can't be read). [`super::index::FileReader`] decides whether
    /// the file is gone with its directory or is only out of reach.
    Unreachable,
    /// A regular file that is too large to take even its hash.
    Oversized {
        /// Why, as the end of a sentence "the file …".
        reason: String,
    },
    /// Something is there that can't be read as a file.
    Unreadable {
        /// Why, as the end of a sentence "the file …".
        reason: String,
    },
}

impl FileState {
    /// Classifies bytes that the caller has already read.
    #[must_use]
    pub(crate) fn from_bytes(bytes: Vec<u8>, max_text_bytes: u64) -> Self {
        let size = bytes.len() as u64;
        let no_text = |bytes: &[u8], reason| Self::NoText { hash: source_hash(bytes), size, reason };
        if size > max_text_bytes {
            return no_text(&bytes, too_large(max_text_bytes));
        }
        if bytes.contains(&0) {
            return no_text(&bytes, "is not text (it has NUL bytes)".into());
        }
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(HashedText::new(text)),
            Err(error) => no_text(error.as_bytes(), "is not text (it is not valid UTF-8)".into()),
        }
    }

    /// The input of the index decision.
    pub(crate) fn observation(&self) -> Observation {
        match self {
            Self::Text(text) => Observation::Read(text.hash()),
            Self::Made { hash, .. } | Self::NoText { hash, .. } => Observation::Read(*hash),
            Self::Discovered => Observation::Discovered,
            Self::Deleted | Self::Gone | Self::Replaced { .. } => Observation::Deleted,
            Self::Unreachable => Observation::Unreachable,
            Self::Oversized { .. } => Observation::Oversized,
            Self::Unreadable { .. } => Observation::Unreadable,
        }
    }

    /// The hash of a regular file's bytes; `None` if they were not read.
    pub(crate) fn hash(&self) -> Option<Digest> {
        self.observation().source_hash()
    }

    /// The text, if it was read and is kept.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.text()),
            Self::Made { version, .. } => version.content(),
            _ => None,
        }
    }

    /// Returns the number of bytes of a regular file, with or without text; 0 if they were not counted.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::NoText { size, .. } => *size,
            _ => self.text().map_or(0, |text| text.len() as u64),
        }
    }

    /// True if it is a regular file that the client could look at.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.observation(), Observation::Read(_) | Observation::Oversized)
    }

    /// True if it is confirmed that no regular file is at the path.
    pub(crate) fn is_gone(&self) -> bool {
        self.observation() == Observation::Deleted
    }

    /// Returns the reason why the text is missing, as the end of a sentence "the file …"; `None` if there is text, or if no
    /// client has looked for it.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Text(_) | Self::Made { .. } | Self::Discovered => None,
            Self::Deleted => Some("was deleted"),
            Self::NoText { reason, .. }
            | Self::Oversized { reason }
            | Self::Replaced { reason }
            | Self::Unreadable { reason } => Some(reason),
            Self::Gone => Some("does not exist"),
            Self::Unreachable => Some("can't be reached (its directory is missing or can't be read)"),
        }
    }
}

/// Reads a file whose path has no symbolic links left.
///
/// It is read again while it changes under the reader, so that hash and text belong to one state of it. A
/// pipe, socket or device is never opened for reading in a way that could wait.
#[must_use]
pub(crate) fn read(path: &Utf8Path, max_text_bytes: u64) -> FileState {
    settled(path, || read_once(path, max_text_bytes))
}

/// Returns the result of several attempts at reading, each `None` if the file changed meanwhile.
fn settled(path: &Utf8Path, mut attempt: impl FnMut() -> io::Result<Option<FileState>>) -> FileState {
    for _ in 0..ATTEMPTS {
        match attempt() {
            Ok(Some(state)) => return state,
            Ok(None) => {}
            Err(error) => return from_error(path, &error),
        }
    }
    FileState::Unreadable { reason: "changes faster than it can be read".into() }
}

/// `None` if the file changed while it was read.
fn read_once(path: &Utf8Path, max_text_bytes: u64) -> io::Result<Option<FileState>> {
    let mut file = context_platform::open_without_links(path.as_std_path())?;
    let before = Facts::of(&file)?;
    if before.kind != PathKind::File {
        let reason = format!("is not a regular file but {}", before.kind.name());
        return Ok(Some(FileState::Replaced { reason }));
    }
    if before.size > MAX_HASHED_BYTES {
        return Ok(Some(FileState::Oversized { reason: too_large(MAX_HASHED_BYTES) }));
    }
    let state = if before.size > max_text_bytes {
        let mut hasher = Hasher::default();
        io::copy(&mut (&mut file).take(before.size), &mut hasher)?;
        FileState::NoText { hash: hasher.finish(), size: before.size, reason: too_large(max_text_bytes) }
    } else {
        let mut bytes = Vec::with_capacity(usize::try_from(before.size).unwrap_or(0).saturating_add(1));
        // The system does not report the size of some files, such as those in /proc.
        (&mut file).take(max_text_bytes + 1).read_to_end(&mut bytes)?;
        FileState::from_bytes(bytes, max_text_bytes)
    };
    // A file that has grown meanwhile has another size.
    let is_same = is_still(path, &before, &Facts::of(&file)?);
    Ok(is_same.then_some(state))
}

/// True if an opened file is unchanged, and still the one at its path.
fn is_still(path: &Utf8Path, opened: &Facts, now: &Facts) -> bool {
    let there = || Facts::at(path.as_std_path()).is_ok_and(|there| there.identity() == opened.identity());
    (opened.size, opened.modified) == (now.size, now.modified) && there()
}

fn from_error(path: &Utf8Path, error: &io::Error) -> FileState {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            let parent = path.parent().map_or(Path::new("/"), Utf8Path::as_std_path);
            if std::fs::read_dir(parent).is_ok() { FileState::Gone } else { FileState::Unreachable }
        }
        io::ErrorKind::PermissionDenied => {
            FileState::Unreadable { reason: "can't be read (permission denied)".into() }
        }
        _ if context_platform::is_link(error) => {
            FileState::Replaced { reason: "is behind a symbolic link that can't be followed".into() }
        }
        // A socket can't be opened at all.
        _ if context_platform::is_special(error) => {
            FileState::Replaced { reason: "is not a regular file (a socket or device)".into() }
        }
        _ => FileState::Unreadable { reason: format!("can't be read ({error})") },
    }
}

fn too_large(limit: u64) -> String {
    match limit / 1024 {
        kib @ ..1024 => format!("is larger than {kib} KiB"),
        kib => format!("is larger than {} MiB", kib / 1024),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn replaced_file_has_another_identity() {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap().join("f");
        std::fs::write(&path, "a").unwrap();
        let opened = Facts::at(path.as_std_path()).unwrap();
        assert!(is_still(&path, &opened, &opened));
        let other = path.with_file_name("g");
        std::fs::write(&other, "a").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(!is_still(&path, &opened, &opened));
        std::fs::remove_file(&path).unwrap();
        assert!(!is_still(&path, &opened, &opened));
    }

    #[test]
    fn file_written_in_place_keeps_its_identity_with_other_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap().join("f");
        std::fs::write(&path, "a").unwrap();
        let facts = || Facts::at(path.as_std_path()).unwrap();
        let before = facts();
        assert!(is_still(&path, &before, &facts()));
        std::fs::File::options().append(true).open(&path).unwrap().write_all(b"b").unwrap();
        assert!(!is_still(&path, &before, &facts()), "it has grown");
        let now = facts();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert!(!is_still(&path, &now, &facts()), "it was written");
    }

    #[test]
    fn file_is_read_again_until_it_stops_changing() {
        let path = Utf8Path::new("/f");
        for (changes, is_read) in [(0, true), (ATTEMPTS - 1, true), (ATTEMPTS, false)] {
            let mut attempts = 0;
            let state = settled(path, || {
                attempts += 1;
                Ok((attempts > changes).then_some(FileState::Gone))
            });
            assert_eq!(state == FileState::Gone, is_read, "{changes} changes");
            assert_eq!(attempts, (changes + 1).min(ATTEMPTS));
            assert!(is_read || state.reason() == Some("changes faster than it can be read"));
        }
        let failed = settled(path, || Err(io::Error::other("a bad sector")));
        assert_eq!(failed.reason(), Some("can't be read (a bad sector)"));
    }

    #[test]
    fn why_a_file_can_not_be_read() {
        let path = Utf8Path::new("/f");
        let denied = from_error(path, &io::Error::new(io::ErrorKind::PermissionDenied, "no"));
        assert_eq!(denied.reason(), Some("can't be read (permission denied)"));
        let directory = tempfile::tempdir().unwrap();
        let there = Utf8Path::from_path(directory.path()).unwrap();
        assert_eq!(from_error(&there.join("f"), &io::ErrorKind::NotFound.into()), FileState::Gone);
        assert_eq!(from_error(&there.join("d/f"), &io::ErrorKind::NotFound.into()), FileState::Unreachable);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn file_of_unknown_size_is_text_up_to_the_limit() {
        let path = Utf8Path::new("/proc/version");
        let text = std::fs::read_to_string(path).unwrap();
        let limit = text.len() as u64;
        assert_eq!(read(path, limit), FileState::Text(HashedText::new(text)));
        assert!(matches!(read(path, limit - 1), FileState::NoText { size, .. } if size == limit));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let there = Utf8Path::from_path(directory.path()).unwrap();
        std::fs::write(there.join("f"), "a").unwrap();
        std::os::unix::fs::symlink(there.join("f"), there.join("link")).unwrap();
        let state = read(&there.join("link"), 10);
        assert_eq!(state.reason(), Some("is behind a symbolic link that can't be followed"));
    }

    #[test]
    fn bytes_read_have_a_hash() {
        let bytes = |text: &str, limit| FileState::from_bytes(text.as_bytes().to_vec(), limit);
        let hash = Some(Digest::of(b"text"));
        assert_eq!([bytes("text", 4).hash(), bytes("text", 3).hash()], [hash, hash]);
        assert_eq!(bytes("\0", 9).hash(), Some(Digest::of(b"\0")));
        assert_eq!([FileState::Gone.hash(), FileState::Unreachable.hash()], [None, None]);
    }
}
