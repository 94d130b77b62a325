//! SQLite's errors in the store's words. Messages name causes, never contents.

use rusqlite::ffi::{self, ErrorCode};

use crate::StoreError;

/// Extended result codes that mean a full disk although their group is another one: the shared-memory file
/// could not be enlarged.
const FULL: [i32; 1] = [ffi::SQLITE_IOERR_SHMSIZE];

/// What [`HELD_CODES`] mean once all retries are used up.
const HELD: &str = "another process has held the store's lock for too long; end it or try again";

/// A statement was ended by its connection's limit.
const INTERRUPTED: &str = "the read was interrupted; repeat it";

/// Another connection holds a lock. The last code means that SQLite gave up a race for the log's index after some
/// seconds, without asking its busy handler.
const HELD_CODES: [ErrorCode; 3] =
    [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked, ErrorCode::FileLockingProtocolFailed];

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
            code if HELD_CODES.contains(&code) => Self::Unavailable(HELD.into()),
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
                Self::Unavailable(format!("the file or its directory can't be written or opened: {text}"))
            }
            ErrorCode::OperationInterrupted => Self::Unavailable(INTERRUPTED.into()),
            ErrorCode::TooBig => Self::Invalid("a document of this size can't be stored".into()),
            _ => Self::Unavailable(text),
        }
    }
}

/// Whether an error means that another connection holds a lock.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code().is_some_and(|code| HELD_CODES.contains(&code))
}

/// The same for an error that is already one of the store's.
pub(super) fn is_held(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(why) if why == HELD)
}

/// An intermediate error: one of SQLite's, which may be worth a retry, or a final one.
#[derive(Debug)]
pub(super) enum Trouble {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Sqlite(error) => error.into(),
            Trouble::Store(error) => error,
        }
    }
}

/// The error of a call whose thread is gone.
pub(super) fn stopped() -> StoreError {
    StoreError::Unavailable("the store's writer has stopped; open the store again".into())
}

/// Whether a statement was ended before it was done.
pub(super) fn is_interrupted(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(why) if why == INTERRUPTED)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::busy(ffi::SQLITE_BUSY, true)]
    #[case::busy_while_the_log_is_recovered(ffi::SQLITE_BUSY_RECOVERY, true)]
    #[case::busy_with_an_old_view(ffi::SQLITE_BUSY_SNAPSHOT, true)]
    #[case::lost_race_for_the_log(ffi::SQLITE_PROTOCOL, true)]
    #[case::io(ffi::SQLITE_IOERR, false)]
    #[case::full(ffi::SQLITE_FULL, false)]
    fn locks_of_others(#[case] code: i32, #[case] held: bool) {
        let error = || rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        assert_eq!((is_busy(&error()), is_held(&error().into())), (held, held));
    }
}
