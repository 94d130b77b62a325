//! Opening the file: its readers, its kind, and the settings of each connection.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::{Result, Trouble, is_busy};
use super::migrate;
use super::settle::Durability;
use context_store::StoreError;

/// The longest wait for another process's lock.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A fixed size. Long texts are in fewer pieces than with SQLite's 4 KiB, and a short commit writes half the bytes of
/// 16 KiB.
const PAGE_SIZE: u32 = 8 * 1024;

/// Bytes that the log keeps when it restarts.
const LOG_LIMIT: i64 = 32 << 20;

/// Opens the connection that writes, and brings the schema up to date.
///
/// # Errors
/// `STORE_UNAVAILABLE`, `STORE_CORRUPT`, `STORE_NEWER`, `STORE_FULL`. An existing file is not changed then.
pub(super) fn writer(path: &Path, durability: Durability) -> Result<Connection> {
    prepare(path)?;
    writer_of(path, durability).map_err(|error| explained(path, true, error))
}

fn writer_of(path: &Path, durability: Durability) -> Result<Connection> {
    let had_log = fs::metadata(log(path)).is_ok_and(|log| log.len() > 0);
    let connection = open(path)?;
    // If the file turns out not to be a store, closing it must not copy an existing log into it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, had_log)?;
    patiently(|| migrate::check(&connection))?;
    let synchronous = match durability {
        Durability::Power => "full",
        Durability::Process => "normal",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    patiently(|| Ok(connection.pragma_update(None, "page_size", PAGE_SIZE)?))?;
    let mode: String =
        patiently(|| Ok(connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?))?;
    if mode != "wal" {
        let what = "the place can't hold a write-ahead log; use a local disk";
        return Err(StoreError::Unavailable(what.into()).into());
    }
    patiently(|| migrate::run(&connection))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    // The writer copies the log back itself, after it has answered.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", LOG_LIMIT)?;
    Ok(connection)
}

/// Makes the file, empty, if there is none.
pub(super) fn prepare(path: &Path) -> Result<()> {
    if look(path)? { Ok(()) } else { create(path) }
}

/// Opens a connection that only reads. The store must have been opened for writing before.
pub(super) fn reader(path: &Path) -> Result<Connection> {
    let connection = open(path)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// The way in which a file that is only read is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewMode {
    /// Beside its writers, with SQLite's locks.
    Shared,
    /// As a file that does not change, and without its log.
    AtRest,
    /// As a file that does not change, with a log whose index is made in memory.
    WithoutLocks,
}

/// Opens a connection to a store that only reads it and can't change it.
///
/// # Errors
/// `STORE_UNAVAILABLE` for another program's file and for a store of an older schema; `STORE_NEWER`, `STORE_CORRUPT`.
pub(super) fn viewer(path: &Path, mode: ViewMode) -> Result<Connection> {
    viewer_of(path, mode).map_err(|error| explained(path, false, error))
}

fn viewer_of(path: &Path, mode: ViewMode) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = match mode {
        ViewMode::Shared => Connection::open_with_flags(path, flags)?,
        ViewMode::AtRest => {
            Connection::open_with_flags(unchanging(path), flags | OpenFlags::SQLITE_OPEN_URI)?
        }
        // Such a file lies in a folder that this process can't write, so it has no other connection here that closing this one
        // could take the locks of.
        ViewMode::WithoutLocks => {
            let without = if cfg!(windows) { c"win32-none" } else { c"unix-none" };
            let connection = Connection::open_with_flags_and_vfs(path, flags, without)?;
            connection.pragma_update(None, "locking_mode", "exclusive")?;
            connection
        }
    };
    configure(&mut connection)?;
    connection.pragma_update(None, "query_only", true)?;
    patiently(|| migrate::check_current(&connection))?;
    Ok(connection)
}

/// The file as an address that tells SQLite that nothing changes it.
fn unchanging(path: &Path) -> String {
    let mut address = String::from(if cfg!(windows) { "file:///" } else { "file://" });
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b':' | b'.' | b'-' | b'_' => {
                address.push(char::from(*byte));
            }
            b'\\' if cfg!(windows) => address.push('/'),
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address + "?immutable=1"
}

/// Opens a connection that copies the log back, and does so durably. It gives up soon if another connection is copying or
/// reading: while it waits, no connection can write.
pub(super) fn checkpointer(path: &Path) -> Result<Connection> {
    let mut connection = open(path)?;
    wait_for_locks(&mut connection, || Duration::from_millis(10))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "journal_size_limit", LOG_LIMIT)?;
    Ok(connection)
}

/// Hold this while a connection ends. The last one copies the log back and removes it; of two that end at the same moment each
/// finds the other one open, and the log stays.
pub(super) fn one_by_one() -> MutexGuard<'static, ()> {
    static ENDING: Mutex<()> = Mutex::new(());
    ENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies a whole store to a new file.
///
/// # Errors
/// `STORE_UNAVAILABLE` if the file already exists or can't be created, `STORE_FULL`.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    if look(to)? {
        return Err(unusable("the file already exists; choose a new name for the copy"));
    }
    create(to)?;
    let target = to.to_str().ok_or_else(|| unusable("it is not UTF-8"))?;
    let copied = patiently(|| Ok(open(from)?.execute("VACUUM INTO ?", [target])?));
    if copied.is_err() {
        // An unfinished file must not be mistaken for a copy.
        let _ = fs::remove_file(to);
    }
    copied.map(|_| ())
}

/// Repeats a step while another process holds a lock that SQLite does not wait for itself.
///
/// # Errors
/// The step's own; `STORE_UNAVAILABLE` after 30 seconds of waiting.
pub(super) fn patiently<T>(step: impl FnMut() -> Result<T>) -> Result<T> {
    patiently_for(PATIENCE, step)
}

/// The same with another time limit.
pub(super) fn patiently_for<T>(patience: Duration, mut step: impl FnMut() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match step() {
            Err(Trouble::Sqlite(error)) if is_busy(&error) && start.elapsed() < patience => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            done => return done,
        }
    }
}

fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection =
        Connection::open_with_flags(path, flags).map_err(|error| explained(path, true, error.into()))?;
    // SQLite opens a file even if it may not write it, and would leave a log beside it.
    if connection.is_readonly("main")? {
        let unknown = || unusable("the file is read-only; make it writable or choose another path");
        return Err(context_platform::refusal(path, true).map_or_else(unknown, |why| unusable_by(path, &why)));
    }
    configure(&mut connection)?;
    Ok(connection)
}

/// The settings that all connections have.
fn configure(connection: &mut Connection) -> Result<()> {
    wait_for_locks(connection, || PATIENCE)?;
    // The plans do not depend on the bound values; without this, SQLite makes a new plan for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -8192)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Sets how long this connection waits for a lock from now on.
pub(super) fn wait_for_locks(
    connection: &mut Connection,
    patience: impl Fn() -> Duration + Send + 'static,
) -> Result<()> {
    let begin = std::cell::Cell::new(Instant::now());
    connection.busy_handler(Some(move |count| {
        if count == 0 {
            begin.set(Instant::now());
        }
        // Short pauses first: a commit takes a fraction of a millisecond, and SQLite's own steps of up to
        // 100 ms make a second writer wait behind a busy one for seconds.
        thread::sleep(Duration::from_micros(if count < 100 { 100 } else { 1000 }));
        begin.get().elapsed() < patience()
    }))?;
    Ok(())
}

/// Inspects the path without SQLite, so that a file that is not a store stays as it is. True if there is a file.
fn look(path: &Path) -> Result<bool> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(unusable("it is a directory; name a file in it")),
        Ok(found) if !found.is_file() => Err(unusable("it is not a regular file")),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(unusable_by(path, &error)),
    }
}

fn create(path: &Path) -> Result<()> {
    if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty() && !d.exists()) {
        context_platform::private_directory(directory).map_err(|error| unusable_by(directory, &error))?;
    }
    match context_platform::private_file(fs::OpenOptions::new().write(true).create_new(true), path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            Err(StoreError::Full(context_platform::reason(&error)).into())
        }
        Err(error) => Err(unusable_by(path, &error)),
    }
}

/// The write-ahead log of a database.
pub(super) fn log(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// The index of the log, which the processes share.
pub(super) fn shared(path: &Path) -> PathBuf {
    beside(path, "-shm")
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// SQLite does not say why it can't open or write a file: where this user lacks the rights to it, to its log or to its folder, that
/// is the error.
fn explained(path: &Path, is_written: bool, error: Trouble) -> Trouble {
    let Trouble::Sqlite(cause) = &error else { return error };
    let code = cause.sqlite_error_code();
    if !matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)) {
        return error;
    }
    let folder = path.parent().filter(|folder| is_written && !folder.as_os_str().is_empty());
    let files = [Some(path.to_owned()), Some(log(path)), Some(shared(path)), folder.map(Path::to_owned)];
    let refused = files
        .into_iter()
        .flatten()
        .find_map(|file| context_platform::refusal(&file, is_written).map(|why| unusable_by(&file, &why)));
    refused.unwrap_or(error)
}

/// The error of a path that the operating system refuses.
fn unusable_by(path: &Path, error: &std::io::Error) -> Trouble {
    let why = context_platform::reason(error);
    if !matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) {
        return unusable(&why);
    }
    let path = path.display();
    unusable(&format!(
        "{path}: {why}; let this user read and write it and its folder, or choose another path"
    ))
}

fn unusable(why: &str) -> Trouble {
    StoreError::Unavailable(format!("the store's path can't be used: {why}")).into()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use std::io::Error;

    #[rstest]
    #[case::denied(
        ErrorKind::PermissionDenied,
        "the store's path can't be used: /a/b.db: permission denied; let this user read and write it and its folder, or choose another path"
    )]
    #[case::otherwise(ErrorKind::NotADirectory, "the store's path can't be used: not a directory")]
    fn refused_path_is_named_where_its_permissions_are_the_cause(
        #[case] kind: ErrorKind,
        #[case] expected: &str,
    ) {
        let StoreError::Unavailable(why) = unusable_by(Path::new("/a/b.db"), &Error::from(kind)).into_store()
        else {
            panic!("another error")
        };
        assert_eq!(why, expected);
    }
}
