//! SQLite's errors in the store's words. Messages name causes, never contents.

use rusqlite::ffi::{self, ErrorCode};

use crate::StoreError;

/// Extended result codes that mean a full disk although their group is another one: the shared-memory file
/// could not be enlarged.
const FULL: [i32; 1] = [ffi::SQLITE_IOERR_SHMSIZE];

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let rusqlite::Error::SqliteFailure(code, message) = &error else {
            return match error {
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..) => {
                    Self::Corrupt("a stored value does not have its column's type".into())
                }
                other => Self::Unavailable(format!("SQLite refused a statement: {other}")),
            };
        };
        let text = message.clone().unwrap_or_else(|| ffi::code_to_str(code.extended_code).to_owned());
        match code.code {
            _ if FULL.contains(&code.extended_code) => Self::Full(text),
            ErrorCode::DiskFull => Self::Full(text),
            ErrorCode::DatabaseCorrupt => Self::Corrupt(text),
            ErrorCode::NotADatabase => {
                Self::Corrupt("the file is not a context store, or its first page is damaged".into())
            }
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Unavailable(
                "another process has held the store's lock for too long; end it or try again".into(),
            ),
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
                Self::Unavailable(format!("the file or its directory can't be written or opened: {text}"))
            }
            ErrorCode::TooBig => Self::Invalid("a document of this size can't be stored".into()),
            _ => Self::Unavailable(text),
        }
    }
}

/// Whether an error means that another connection holds a lock.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
