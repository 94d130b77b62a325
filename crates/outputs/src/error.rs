//! What can go wrong with a directory of tool outputs.

use std::io;
use std::path::{Path, PathBuf};

/// An error of this crate. [`OutputError::code`] is stable; the sentence may change.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The caller gave something that can't be used (`INVALID_ARGUMENT`).
    #[error("{0}")]
    Invalid(String),
    /// The device or the user's quota has no room left (`STORE_FULL`).
    #[error("no room left to {action} {}: free some space and save again", path.display())]
    Full {
        /// The attempted operation, as a verb.
        action: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system refused (`IO`).
    #[error("can't {action} {}: {source}; check that the directory exists and may be written", path.display())]
    Io {
        /// The attempted operation, as a verb.
        action: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl OutputError {
    /// The stable code of the error: `INVALID_ARGUMENT`, `STORE_FULL` or `IO`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "INVALID_ARGUMENT",
            Self::Full { .. } => "STORE_FULL",
            Self::Io { .. } => "IO",
        }
    }

    /// The error for a refused system call.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { action, path, source },
            _ => Self::Io { action, path, source },
        }
    }
}
