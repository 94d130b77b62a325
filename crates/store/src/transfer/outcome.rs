//! The results and errors of exports and imports.

use context_model::error::ErrorCode;
use context_model::id::ObjectId;

use crate::StoreError;

/// What an export or import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The objects in the file.
    pub objects: u64,
    /// The versions in the file.
    pub versions: u64,
    /// The versions that the store did not have; 0 for an export.
    pub written: u64,
}

/// An error of an export or import.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// The store's own error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// `IO`: the file can't be read or written.
    #[error("the export file can't be read or written: {0}")]
    Io(String),
    /// `INVALID_ARGUMENT`: the file is damaged, truncated, or not an export. Nothing was written.
    #[error("line {line} of the export file: {what}; nothing was imported, get a complete copy of the file")]
    Damaged {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// `CONFLICT`: the store has an object with the same ID and a different history.
    #[error("{0} has a different history in this store; import the file into a store without it")]
    Different(ObjectId),
}

impl TransferError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Io(_) => ErrorCode::Io,
            Self::Damaged { .. } => ErrorCode::InvalidArgument,
            Self::Different(_) => ErrorCode::Conflict,
        }
    }
}

impl From<std::io::Error> for TransferError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

/// The result of an export or import.
pub type Result<T> = std::result::Result<T, TransferError>;
