//! Rewriting the whole file, without free pages and with an empty log.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connect::{self, PATIENCE, patiently};
use super::error::Result;
use super::store_file::StoreFile;
use context_store::StoreError;

/// Pause before the log is emptied again: a process that copies it needs a few milliseconds.
const PAUSE: Duration = Duration::from_millis(2);

/// The free space that a rewrite takes, in lengths of the store: a second file, and a log of the same length.
pub(super) const REWRITE: u64 = 2;

/// The same for erasing with the rewrite that follows. Before that, the log takes a page for each one that changes.
pub(super) const ERASE: u64 = 3;

/// Fails if the disk's free space is less than `lengths` times the length of the store and its log, or if the temporary
/// folder, where SQLite writes the second file, has less free space than one such length. `outcome` says what is done by
/// then.
///
/// # Errors
/// `STORE_FULL`. A system that does not report its free space is assumed to have enough.
pub(super) fn has_room(place: &StoreFile, lengths: u64, outcome: &str) -> Result<()> {
    place.check()?;
    let length_of = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    let length = length_of(place.path()) + length_of(&connect::log(place.path()));
    let temporary = temporary_folder();
    let folder = place.path().parent().unwrap_or(place.path());
    for (folder, wanted, where_to) in [
        (folder, lengths * length, String::new()),
        (&temporary, length, format!(" in the temporary folder {} (TMPDIR names it)", temporary.display())),
    ] {
        let free = context_platform::free_space(folder).unwrap_or(u64::MAX);
        if wanted > free {
            let what = format!(
                "rewriting the store takes {} MB of free space{where_to}, and only {} MB are free; make room and try again. {outcome}",
                wanted.div_ceil(1 << 20),
                free >> 20
            );
            return Err(StoreError::Full(what).into());
        }
    }
    Ok(())
}

/// The folder of temporary files, in the order in which SQLite looks for it.
fn temporary_folder() -> PathBuf {
    if cfg!(windows) {
        return std::env::temp_dir();
    }
    let named = ["SQLITE_TMPDIR", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let usual = ["/var/tmp", "/usr/tmp", "/tmp"].map(PathBuf::from);
    named.chain(usual).find(|folder| folder.is_dir()).unwrap_or_else(|| PathBuf::from("."))
}

/// Rewrites the file. If the process ends midway, the file is unchanged.
///
/// # Errors
/// `STORE_FULL`, `STORE_UNAVAILABLE`; also if another process reads an older state for so long that the log can't be
/// emptied.
pub(super) fn rewrite(connection: &Connection) -> Result<()> {
    // The copy is as large as the store: it goes to the disk and not into memory.
    connection.pragma_update(None, "temp_store", "file")?;
    let vacuum = patiently(|| Ok(connection.execute_batch("VACUUM")?));
    connection.pragma_update(None, "temp_store", "memory")?;
    vacuum?;
    empty_log(connection)
}

/// Copies the log back and empties it.
///
/// # Errors
/// `STORE_UNAVAILABLE` if another process reads an older state for 30 seconds.
pub(super) fn empty_log(connection: &Connection) -> Result<()> {
    let begin = Instant::now();
    while patiently(|| is_held(connection))? {
        // SQLite waits for readers, but not for another process that happens to be copying the log.
        if begin.elapsed() >= PATIENCE {
            let held =
                "another process is reading an older state of the store; end it and repeat the command";
            return Err(StoreError::Unavailable(held.into()).into());
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Copies the log back and empties it, unless another connection holds a lock.
fn is_held(connection: &Connection) -> Result<bool> {
    Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?)
}
