//! SQLite's errors in the store's words. Messages name causes, never contents.

use rusqlite::ffi::{self, ErrorCode};

use context_model::error::ModelError;
use context_platform::open_shortage;
use context_store::StoreError;

/// Extended result codes that mean a full disk although their group is another one: the shared-memory file
/// could not be enlarged.
const FULL: [i32; 1] = [ffi::SQLITE_IOERR_SHMSIZE];

/// The message for [`HELD_CODES`] once all retries are used up.
const HELD: &str = "another process has held the store's lock for too long; end it or try again";

/// A statement was ended by its connection's limit.
const INTERRUPTED: &str = "the read was interrupted; repeat it";

/// The beginnings of SQLite's sentences about a file that lacks what its version says it has: its tables are made when it is, and
/// no statement of this crate removes one.
const LACKS: [&str; 3] = ["no such table: ", "no such column: ", "vtable constructor failed: "];

/// Another connection holds a lock. The last code means that SQLite gave up a race for the log's index after some
/// seconds, without asking its busy handler.
const HELD_CODES: [ErrorCode; 3] =
    [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked, ErrorCode::FileLockingProtocolFailed];

/// The result of a function that runs statements.
pub(super) type Result<T> = std::result::Result<T, Trouble>;

/// An error before it reaches the caller of the store: one of SQLite's, which may be worth a retry, or a final one.
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

impl From<ModelError> for Trouble {
    fn from(error: ModelError) -> Self {
        Self::Store(error.into())
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        trouble.into_store()
    }
}

impl Trouble {
    /// True if what was read is damaged.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt),
            Self::Store(error) => matches!(error, StoreError::Corrupt(_)),
        }
    }

    /// The error in the store's words.
    pub(crate) fn into_store(self) -> StoreError {
        match self {
            Self::Sqlite(error) => in_the_stores_words(error),
            Self::Store(error) => error,
        }
    }
}

fn in_the_stores_words(error: rusqlite::Error) -> StoreError {
    let rusqlite::Error::SqliteFailure(code, message) = &error else {
        return match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..) => {
                StoreError::Corrupt("a stored value does not have its column's type".into())
            }
            other => StoreError::Unavailable(format!("SQLite refused a statement: {other}")),
        };
    };
    let is_opening = matches!(code.code, ErrorCode::CannotOpen | ErrorCode::SystemIoFailure);
    if let Some(shortage) = if is_opening { open_shortage() } else { None } {
        return StoreError::Unavailable(format!("the store's file can't be opened: {shortage}"));
    }
    let text = message.clone().unwrap_or_else(|| ffi::code_to_str(code.extended_code).to_owned());
    match code.code {
        _ if FULL.contains(&code.extended_code) => StoreError::Full(text),
        ErrorCode::DiskFull => StoreError::Full(text),
        ErrorCode::DatabaseCorrupt => StoreError::Corrupt(text),
        ErrorCode::NotADatabase => {
            StoreError::Corrupt("the file is not a context store, or its first page is damaged".into())
        }
        code if HELD_CODES.contains(&code) => StoreError::Unavailable(HELD.into()),
        ErrorCode::SystemIoFailure => StoreError::Unavailable(failed(code.extended_code, &text)),
        ErrorCode::OutOfMemory => {
            StoreError::Unavailable("no memory is left for the store; repeat the call".into())
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
            StoreError::Unavailable(format!(
                "the file or its directory can't be written or opened: {text}; let this user read and write both, or choose another path"
            ))
        }
        ErrorCode::OperationInterrupted => StoreError::Unavailable(INTERRUPTED.into()),
        ErrorCode::TooBig => StoreError::Invalid("a document of this size can't be stored".into()),
        _ if LACKS.iter().any(|what| text.starts_with(what)) => {
            StoreError::Corrupt(format!("a part of its file is missing ({text})"))
        }
        _ => StoreError::Unavailable(text),
    }
}

/// Description of an operation that failed on the disk.
fn failed(extended: i32, text: &str) -> String {
    let what = match extended {
        ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ | ffi::SQLITE_IOERR_FSTAT => "read",
        ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_TRUNCATE => "written",
        ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => "synced to the disk",
        _ => {
            return format!(
                "the disk has failed ({text}); repeat the call, and check the disk if it fails again"
            );
        }
    };
    format!(
        "the store's file could not be {what} ({text}); repeat the call, and check the disk if it fails again"
    )
}

/// True if an error means that another connection holds a lock.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code().is_some_and(|code| HELD_CODES.contains(&code))
}

/// The same for an error that is already one of the store's.
pub(super) fn is_held(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(why) if why == HELD)
}

/// The error of a call whose thread is gone.
pub(super) fn stopped() -> StoreError {
    StoreError::Unavailable("the store's writer has stopped; open the store again".into())
}

/// The error of an operating system that starts no thread.
pub(super) fn no_thread(error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("no thread could be started: {error}"))
}

/// True if a statement was interrupted before it was done.
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
        assert_eq!((is_busy(&error()), is_held(&Trouble::from(error()).into())), (held, held));
    }
}
