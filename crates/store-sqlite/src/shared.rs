//! The stores that this process has open, by file: stores that are opened on one file share its connections and threads, so
//! that each further one costs no file descriptor.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use context_platform::shared::{Seat, SharedTable};
use context_store::{Result, clock};

use super::connect;
use super::core::Core;
use super::settle::Durability;

static OPEN: SharedTable<Core> = SharedTable::empty();

/// Finds the open store of the file, or opens it. A file that was replaced is opened anew.
pub(super) fn join(path: &Path, durability: Durability) -> Result<Seat<Core>> {
    connect::prepare(path)?;
    let place = OPEN.place((canonical(path), durability));
    let _opening = place.opening().lock().unwrap_or_else(PoisonError::into_inner);
    match place.join() {
        Some(seat) => Ok(seat),
        None => Ok(place.share(Core::open(&place.key().0, durability, clock::system())?)),
    }
}

fn canonical(path: &Path) -> PathBuf {
    // SQLite does not take the form that Windows gives.
    let real = if cfg!(windows) { None } else { path.canonicalize().ok() };
    real.unwrap_or_else(|| path.to_owned())
}
