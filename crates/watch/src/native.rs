//! The border to the operating system's file events.

use std::io::{self, ErrorKind};

use camino::Utf8Path;

#[cfg(target_os = "linux")]
mod mounts;
pub(crate) mod notify;

pub(crate) use notify::Watcher;

/// Watches directories without their subdirectories.
pub(crate) trait Native: Send {
    /// Starts to watch a directory. Changes after this returns are heard.
    fn watch(&mut self, path: &Utf8Path) -> Result<(), WatchRefusal>;
    /// Ends it. A directory that is not watched, or no longer exists, is not an error.
    fn unwatch(&mut self, path: &Utf8Path);
}

/// Why a directory can't be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchRefusal {
    /// A limit on watches is reached.
    Limit,
    /// It is not there any more, or not a directory.
    Gone,
    /// It may not be listed.
    Denied,
    /// Anything else, as the operating system says it.
    Other(String),
}

fn refusal(error: &io::Error) -> WatchRefusal {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => WatchRefusal::Limit,
        ErrorKind::NotFound | ErrorKind::NotADirectory => WatchRefusal::Gone,
        ErrorKind::PermissionDenied => WatchRefusal::Denied,
        _ => WatchRefusal::Other(error.to_string()),
    }
}
