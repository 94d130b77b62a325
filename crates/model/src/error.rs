//! The one enum of error codes that every layer and the JavaScript surface share.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The stable code of an error, as JavaScript sees it in `error.code`. `docs/errors.md` explains each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// An argument has the wrong shape or an impossible value. Nothing was done.
    InvalidArgument,
    /// No object with this ID (or handle) is known to the session or the store.
    UnknownObject,
    /// The ID names an infrastructure object (`chat`, `system_prompt`, `session`), which has no context level.
    NotContent,
    /// The object has no text: deleted, unreadable, not text, or too large.
    NullContent,
    /// The object is not in the active set.
    NotActive,
    /// Another client wrote the same session document first, or an ID is taken by a different object.
    Conflict,
    /// The store can't be reached or opened now: missing, locked, permission, network.
    StoreUnavailable,
    /// The store's data failed an integrity check; nothing damaged is returned.
    StoreCorrupt,
    /// The store was written by a newer version of this library.
    StoreNewer,
    /// The store's disk is full; everything acknowledged before is intact.
    StoreFull,
    /// A file outside the store could not be read or written.
    Io,
    /// The instance was closed.
    Closed,
    /// A defect of this library ended the call. What was acknowledged is stored.
    Internal,
}

impl ErrorCode {
    /// Every code, in the order of the documentation.
    pub const ALL: [Self; 13] = [
        Self::InvalidArgument,
        Self::UnknownObject,
        Self::NotContent,
        Self::NullContent,
        Self::NotActive,
        Self::Conflict,
        Self::StoreUnavailable,
        Self::StoreCorrupt,
        Self::StoreNewer,
        Self::StoreFull,
        Self::Io,
        Self::Closed,
        Self::Internal,
    ];

    /// The code's text, for instance `UNKNOWN_OBJECT`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::UnknownObject => "UNKNOWN_OBJECT",
            Self::NotContent => "NOT_CONTENT",
            Self::NullContent => "NULL_CONTENT",
            Self::NotActive => "NOT_ACTIVE",
            Self::Conflict => "CONFLICT",
            Self::StoreUnavailable => "STORE_UNAVAILABLE",
            Self::StoreCorrupt => "STORE_CORRUPT",
            Self::StoreNewer => "STORE_NEWER",
            Self::StoreFull => "STORE_FULL",
            Self::Io => "IO",
            Self::Closed => "CLOSED",
            Self::Internal => "INTERNAL",
        }
    }
}

impl AsRef<str> for ErrorCode {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Refusals by the rules: values that don't have the shape that the specification requires.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A document, source binding, mount mapping or time that does not have the required form.
    #[error("{0}")]
    Invalid(String),
    /// A patch that can't be applied to its document.
    #[error("the change can't be applied to the stored document: {0}")]
    Patch(String),
}

impl ModelError {
    /// `INVALID_ARGUMENT` for values from outside, `STORE_CORRUPT` for a patch that can't be applied.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid(_) => ErrorCode::InvalidArgument,
            Self::Patch(_) => ErrorCode::StoreCorrupt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_code_is_its_serialised_form() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
