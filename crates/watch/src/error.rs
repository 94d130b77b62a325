//! The errors of a tracker.

use camino::Utf8PathBuf;
use context_model::error::ErrorCode;

/// Why a tracker refused a call. The tracker's state is as it was before the call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The path can't be tracked. Code `INVALID_ARGUMENT`.
    #[error("the path {path:?} can't be tracked: give an absolute path of a file, without `.` and `..`")]
    InvalidPath {
        /// The path as it was given.
        path: Utf8PathBuf,
    },
    /// The tracker was closed. Code `CLOSED`.
    #[error("the tracker is closed: open a new one to track files")]
    Closed,
    /// The tracker's thread can't be started. Code `IO`.
    #[error("the tracker's thread can't be started ({reason}): free threads or memory and open it again")]
    Thread {
        /// The error of the operating system.
        reason: String,
    },
}

impl WatchError {
    /// The stable code of this error, from the one list that every layer shares.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::InvalidPath { .. } => ErrorCode::InvalidArgument,
            Self::Closed => ErrorCode::Closed,
            Self::Thread { .. } => ErrorCode::Io,
        }
    }
}
