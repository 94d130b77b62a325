//! The errors of a store.

use context_model::error::{ErrorCode, ModelError};
use context_model::id::ObjectId;

/// An error of a store. The state is as it was before the call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// `CONFLICT`: an expectation of a transaction does not hold.
    #[error("object {0} was changed by another client; read it again and repeat")]
    Conflict(ObjectId),
    /// `STORE_UNAVAILABLE`: the store can't be opened or reached.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// `STORE_CORRUPT`: the stored object does not have the hash it was stored with.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// `STORE_NEWER`: a newer version of this library wrote the store.
    #[error(
        "the store has schema {found}, and this version reads up to {supported}: update pi-context-manager"
    )]
    Newer {
        /// The schema number found.
        found: i64,
        /// The newest schema number that this version reads.
        supported: i64,
    },
    /// `STORE_FULL`: no space left.
    #[error("the store's disk is full; everything acknowledged before is intact: {0}")]
    Full(String),
    /// `INVALID_ARGUMENT`: the call can't be executed with these arguments.
    #[error("{0}")]
    Invalid(String),
    /// `CLOSED`: the store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// The refusal of a write by a store that is only read.
    #[must_use]
    pub fn read_only() -> Self {
        Self::Unavailable("it was opened with readOnly; open it without to change it".into())
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Conflict(_) => ErrorCode::Conflict,
            Self::Unavailable(_) => ErrorCode::StoreUnavailable,
            Self::Corrupt(_) => ErrorCode::StoreCorrupt,
            Self::Newer { .. } => ErrorCode::StoreNewer,
            Self::Full(_) => ErrorCode::StoreFull,
            Self::Invalid(_) => ErrorCode::InvalidArgument,
            Self::Closed => ErrorCode::Closed,
        }
    }
}

impl From<ModelError> for StoreError {
    fn from(error: ModelError) -> Self {
        match error.code() {
            ErrorCode::StoreCorrupt => Self::Corrupt(error.to_string()),
            _ => Self::Invalid(error.to_string()),
        }
    }
}
