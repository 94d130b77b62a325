//! The queues that this process has open, by journal: stores that are opened on one journal share its lock, its sender and its
//! connections to the nodes, so that each further one costs no file descriptor.

use std::sync::Arc;
use std::time::Instant;

use super::QueueOptions;
use super::core::QueueCore;
use context_platform::in_real_folder;
use context_platform::shared::{Seat, SharedPlace, SharedTable};
use context_store::{Result, StoreError};
use context_store_sqlite::SqliteStore;

/// A core, and the journal by a store's own path.
pub(super) struct Joined {
    pub core: Seat<QueueCore>,
    pub journal: Arc<SqliteStore>,
    /// True if it was open before.
    pub was_open: bool,
}

static OPEN: SharedTable<QueueCore> = SharedTable::empty();

/// Finds the open queue of the journal, or opens it, and opens the journal by its own path. A journal that was replaced is opened
/// anew.
pub(super) async fn join(options: QueueOptions) -> Result<Joined> {
    let (path, durability) = (options.journal.clone(), options.durability);
    let place = OPEN.place(QueueOptions { journal: in_real_folder(&path), ..options });
    let (core, was_open) = join_or_open(&place).await?;
    let journal = SqliteStore::open_shared(&path, durability)?;
    if !journal.is_beside(&core.shared.journal) {
        let what = "was moved, deleted or replaced while it was opened; open it again";
        return Err(StoreError::Unavailable(format!("{} {what}", path.display())));
    }
    Ok(Joined { core, journal, was_open })
}

/// Returns the core, and whether it was open when this was called.
async fn join_or_open(place: &SharedPlace<QueueCore>) -> Result<(Seat<QueueCore>, bool)> {
    let asked = Instant::now();
    if let Some(core) = place.join() {
        return Ok((core, true));
    }
    let mut failed = place.opening().lock().await;
    if let Some(core) = place.join() {
        return Ok((core, false));
    }
    if let Some((_, error)) = failed.as_ref().filter(|(at, _)| *at >= asked) {
        // Of an attempt that began while this caller waited: another one would fail after as long a time.
        return Err(error.clone());
    }
    let QueueOptions { journal, durability, .. } = place.key();
    match QueueCore::open(place.key().clone(), || SqliteStore::open_shared(journal, *durability)).await {
        Ok(core) => Ok((place.share(core), false)),
        Err(error) => {
            *failed = Some((Instant::now(), error.clone()));
            Err(error)
        }
    }
}
