//! A database file that is only read: how it can be opened so that reading writes nothing, and whether it is still as it was.
//!
//! SQLite makes a log and its index beside a database that it opens, even to read it, and a connection that only reads can't
//! remove them. So a file without a log is opened as one that does not change, and what was read counts only if it did not.
//! A file with a log is read beside its writers, with SQLite's own locks.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use rusqlite::Connection;

use super::connect::{self, ViewMode};
use super::error::{Result, Trouble};
use context_store::StoreError;

/// The way in which a file can be read now. Connections are used again as long as this stays the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ViewState {
    /// Beside its writers: each read sees one moment, and waits for none of them.
    Shared(Option<(u64, u64)>),
    /// Without a log. A writer makes one before it changes the file.
    AtRest(Stamps),
    /// With a log whose index is missing and can't be made: it is read from memory.
    LeftBehind(Stamps),
}

/// The file and its log; the log may be missing.
type Stamps = [Option<FileStamp>; 2];

/// Facts that tell whether a file has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    identity: Option<(u64, u64)>,
    bytes: u64,
    modified: Option<SystemTime>,
}

/// A database file, and the paths of what SQLite keeps beside it.
pub(super) struct ViewedFile {
    path: PathBuf,
    log: PathBuf,
    shared: PathBuf,
    /// The index of the log was missing and could not be made.
    is_left_behind: AtomicBool,
}

impl ViewedFile {
    pub(crate) fn new(path: &Path) -> Self {
        let (log, shared) = (connect::log(path), connect::shared(path));
        Self { path: path.to_owned(), log, shared, is_left_behind: AtomicBool::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at the file without opening it.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if the file is missing or can't be read.
    pub(crate) fn look(&self) -> Result<ViewState> {
        let stamps = self.stamps()?;
        let has_index = self.shared.exists();
        if !stamps[1].as_ref().is_some_and(|log| log.bytes > 0 || has_index) {
            return Ok(ViewState::AtRest(stamps));
        }
        if !has_index && self.is_left_behind.load(Ordering::Relaxed) {
            return Ok(ViewState::LeftBehind(stamps));
        }
        Ok(ViewState::Shared(stamps[0].as_ref().and_then(|file| file.identity)))
    }

    /// Opens a connection that only reads, and says how: where the log has no index and none can be made, that is
    /// [`ViewState::LeftBehind`].
    pub(crate) fn open(&self, state: ViewState) -> Result<(Connection, ViewState)> {
        match state {
            ViewState::AtRest(_) => Ok((connect::viewer(&self.path, ViewMode::AtRest)?, state)),
            ViewState::LeftBehind(_) => Ok((connect::viewer(&self.path, ViewMode::WithoutLocks)?, state)),
            ViewState::Shared(_) => match connect::viewer(&self.path, ViewMode::Shared) {
                Err(Trouble::Sqlite(error)) if cannot_open(&error) && !self.shared.exists() => {
                    self.is_left_behind.store(true, Ordering::Relaxed);
                    self.open(ViewState::LeftBehind(self.stamps()?))
                }
                opened => Ok((opened?, state)),
            },
        }
    }

    /// True if what was read at this state is what the file had at one moment.
    pub(crate) fn is_as(&self, state: &ViewState) -> bool {
        match state {
            // SQLite's locks saw to it; another file in this place is opened by the next read.
            ViewState::Shared(_) => true,
            ViewState::AtRest(stamps) | ViewState::LeftBehind(stamps) => {
                self.stamps().is_ok_and(|now| now == *stamps)
            }
        }
    }

    fn stamps(&self) -> Result<Stamps> {
        let missing = || unusable(&format!("the file {} does not exist", self.path.display()));
        Ok([Some(stamp(&self.path)?.ok_or_else(missing)?), stamp(&self.log)?])
    }
}

fn stamp(path: &Path) -> Result<Option<FileStamp>> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(unusable("it is not a regular file")),
        Ok(found) => Ok(Some(FileStamp {
            identity: context_platform::identity(path),
            bytes: found.len(),
            modified: found.modified().ok(),
        })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(&context_platform::reason(&error))),
    }
}

fn cannot_open(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen)
}

fn unusable(why: &str) -> Trouble {
    StoreError::Unavailable(format!("the store's path can't be used: {why}")).into()
}
