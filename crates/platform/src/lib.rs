//! The differences between operating systems, in one place: files that only their owner can read, the identity of a file,
//! opening a file without following links, and the machine's ID. Also what several users in this process have open together.
//!
//! Everything else in the project uses the standard library. The only unsafe code of the project is in `windows.rs`: calls
//! of Windows for which the standard library has nothing.
#![warn(unreachable_pub)]

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

mod facts;
pub mod shared;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use facts::{Facts, PathKind};

impl Facts {
    /// Metadata of the entry at a path; does not follow links.
    pub fn at(path: &Path) -> io::Result<Self> {
        system::facts_at(path)
    }

    /// Of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        system::facts_of(file)
    }
}

/// Device and number of the entry at a path, links followed; `None` if the entry can't be looked at.
#[must_use]
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    system::identity(path)
}

/// The device of the entry at a path, where a file system can be mounted anywhere and only its number tells. `None` on
/// Windows, where drive and share are in the path.
#[must_use]
pub fn device(path: &Path) -> Option<u64> {
    system::device(path)
}

/// Opens a file for reading without waiting and without following any link, also none that was put into a folder's place
/// since the path was resolved.
///
/// # Errors
/// The operating system's; [`is_link`] and [`is_special`] tell two of them.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    system::open_without_links(path)
}

/// True if an error says that a link is in the way, or that there are too many links.
#[must_use]
pub fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(system::LINK)
}

/// True if an error says that the path is a socket or a device, which can't be opened at all.
#[must_use]
pub fn is_special(error: &io::Error) -> bool {
    system::SPECIAL.is_some() && error.raw_os_error() == system::SPECIAL
}

/// The resource that is used up according to an error of the operating system, and what to do; `None` for other errors.
#[must_use]
pub fn shortage(error: &io::Error) -> Option<&'static str> {
    let code = error.raw_os_error()?;
    system::SHORTAGES.iter().find(|(shortage, _)| *shortage == code).map(|(_, what)| *what)
}

/// An error of the operating system as the end of a sentence: what to do if something is used up, else its own words without
/// its number.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let words = || {
        let text = error.to_string();
        text.rsplit_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_lowercase()
    };
    shortage(error).map_or_else(words, str::to_owned)
}

/// The operating system's refusal to let this user read a path, or also write it. `None` if the user may, if there is nothing, and
/// on Windows, where only an open tells. It opens nothing: closing a file would end the locks that this process has on it.
#[must_use]
pub fn refusal(path: &Path, is_written: bool) -> Option<io::Error> {
    system::refusal(path, is_written).filter(|error| error.kind() != io::ErrorKind::NotFound)
}

/// The shortage that keeps this process from opening a few more files, if there is one: for libraries that do not say why
/// an open failed.
#[must_use]
pub fn open_shortage() -> Option<&'static str> {
    let mut opened = Vec::with_capacity(OPENED_AT_ONCE);
    for _ in 0..OPENED_AT_ONCE {
        match system::open_any() {
            Ok(file) => opened.push(file),
            Err(error) => return shortage(&error),
        }
    }
    None
}

/// A database opens as many files: itself, its log, the log's index, and a temporary one.
const OPENED_AT_ONCE: usize = 4;

/// Opens a file that only its owner can read and write: mode 0600 whatever the umask, on Windows its own access list.
pub fn private_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    system::private_file(options, path)
}

/// The path, absolute and with the links on the way to its folder followed, so that a file has one path by whatever links its
/// folder is reached. On Windows the links stay, because not all programs take the form of path that the system then gives.
#[must_use]
pub fn in_real_folder(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folders = path.ancestors().skip(1).take(if cfg!(windows) { 0 } else { usize::MAX });
    // Folders that are still missing will be made without links.
    let found = folders.filter_map(|folder| Some((folder, folder.canonicalize().ok()?))).next();
    found.and_then(|(folder, real)| Some(real.join(path.strip_prefix(folder).ok()?))).unwrap_or(path)
}

/// Makes a folder and its missing parents for their owner alone: mode 0700, on Windows an access list that files in it
/// inherit. A folder that is there stays as it is.
pub fn private_directory(path: &Path) -> io::Result<()> {
    let is_there = path.as_os_str().is_empty() || path.is_dir();
    if is_there { Ok(()) } else { system::private_directory(path) }
}

/// Makes the entries of a folder durable. Where folders can't be synced (Windows), the file system's journal has to do.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    system::sync_directory(if path.as_os_str().is_empty() { Path::new(".") } else { path })
}

/// The bytes that this user can still write to a folder's file system; `None` if the system doesn't tell.
#[must_use]
pub fn free_space(folder: &Path) -> Option<u64> {
    system::free_space(folder)
}

/// The machine's ID: the content of the file; on Windows the `MachineGuid` if the file is the usual one. `None` if there is
/// none, as in some containers and on macOS.
#[must_use]
pub fn machine_id(file: &str) -> Option<String> {
    let id = match cfg!(windows) && file == MACHINE_ID_FILE {
        true => system::machine_guid()?,
        false => std::fs::read_to_string(file).ok()?,
    };
    let id = id.trim();
    (!id.is_empty() && id != "uninitialized").then(|| id.to_owned())
}

/// The file that holds the machine's ID on Linux.
pub const MACHINE_ID_FILE: &str = "/etc/machine-id";

#[cfg(test)]
mod tests;
