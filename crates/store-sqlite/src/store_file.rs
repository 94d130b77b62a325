//! Checks that the files that were opened are still where they were.
//!
//! SQLite continues to write to files that were deleted, moved or replaced, and acknowledges writes that no later read will
//! find.

use std::path::{Path, PathBuf};

use super::connect;
use context_store::{Result, StoreError};

/// The database, its log and the log's index, by device and inode.
pub(super) struct StoreFile {
    path: PathBuf,
    files: [PathBuf; 3],
    opened: [Option<FileIdentity>; 3],
}

/// A file's device and inode.
type FileIdentity = (u64, u64);

impl StoreFile {
    /// Remembers the files of a database that is open.
    pub(crate) fn new(path: &Path) -> Self {
        let files = [path.to_owned(), connect::log(path), connect::shared(path)];
        let opened = files.each_ref().map(|file| identity(file));
        Self { path: path.to_owned(), files, opened }
    }

    /// The path of the database.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if one of the files has been replaced or is gone. Takes a few microseconds.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, until the files are back.
    pub(crate) fn check(&self) -> Result<()> {
        if self.files.iter().zip(&self.opened).all(|(file, opened)| identity(file) == *opened) {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!(
            "{} was moved, deleted or replaced after it was opened; put it back, or close the store and open it again",
            self.path.display()
        )))
    }
}

fn identity(file: &Path) -> Option<FileIdentity> {
    // On Windows no process can delete, move or replace a file that SQLite has open.
    if cfg!(windows) { None } else { context_platform::identity(file) }
}
