//! The errors of the use cases.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use context_model::error::{ErrorCode, ModelError};
use context_store::StoreError;
use context_store::transfer::TransferError;

/// The result of every use case.
pub type Result<T> = std::result::Result<T, EngineError>;

/// An error with its stable code and a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A session could not be imported.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// A value has no usable form.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// `INVALID_ARGUMENT`: the call can't be executed with these arguments.
    #[error("{0}")]
    Invalid(String),
    /// `UNKNOWN_OBJECT`: nothing has this ID.
    #[error(
        "no object has the id {0}; use an id or handle from the metadata, a toolcall_ref line or a search"
    )]
    Unknown(String),
    /// `IO`: a file outside the store can't be used.
    #[error("{path}: {reason}")]
    Io {
        /// The path as the agent gave it.
        path: String,
        /// The reason why it can't be used.
        reason: String,
    },
    /// `CLOSED`: the instance was closed.
    #[error("the context manager is closed")]
    Closed,
    /// `INTERNAL`: a defect of this library ended the work.
    #[error("a defect of pi-context-manager ended the work on {0}; what was acknowledged is stored")]
    Internal(String),
}

impl EngineError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Transfer(error) => error.code(),
            Self::Model(error) => error.code(),
            Self::Invalid(_) => ErrorCode::InvalidArgument,
            Self::Unknown(_) => ErrorCode::UnknownObject,
            Self::Io { .. } => ErrorCode::Io,
            Self::Closed => ErrorCode::Closed,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }
}

/// Runs a call so that a panic in it, which is a defect of this library, becomes an error of the call and does not
/// end the caller's process. The error leaves out the panic message: it may contain a content.
pub async fn caught<T, E>(
    call: impl Future<Output = std::result::Result<T, E>>,
    defect: impl FnOnce() -> E,
) -> std::result::Result<T, E> {
    let mut call = Box::pin(call);
    let outcome = std::future::poll_fn(|context| {
        // After a panic the call is dropped and never polled again; the state it worked on is behind locks.
        match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    });
    match outcome.await {
        Some(outcome) => outcome,
        None => Err(defect()),
    }
}
