//! The queues that this process has open, by journal: stores that are opened on one journal share its lock, its sender and its
//! connections to the nodes, so that each further one costs no file descriptor.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use super::QueueOptions;
use super::core::QueueCore;
use context_platform::in_real_folder;
use context_store::{Result, StoreError};
use context_store_sqlite::SqliteStore;

/// A core, the journal by a store's own path, and that store's seat.
pub(super) struct Joined {
    pub core: Arc<QueueCore>,
    pub journal: Arc<SqliteStore>,
    pub seat: QueueSeat,
    /// True if it was open before.
    pub was_open: bool,
}

/// The open queue of a journal.
#[derive(Default)]
pub(super) struct Slot {
    /// Locked while that queue is joined or left.
    core: Mutex<Weak<QueueCore>>,
    /// Held while it is opened. The last failure, and when that was.
    opening: tokio::sync::Mutex<Option<(Instant, StoreError)>>,
}

/// By the options, with the journal's path without links to its folder.
static OPEN: Mutex<Option<HashMap<QueueOptions, Arc<Slot>>>> = Mutex::new(None);

/// A store's right to use a [`QueueCore`].
pub(super) enum QueueSeat {
    /// The core is this store's alone.
    Alone,
    /// Other stores may also use it.
    Shared(QueueOptions, Arc<Slot>),
}

/// Finds the open queue of the journal, or opens it, and opens the journal by its own path. A journal that was replaced is opened
/// anew.
pub(super) async fn join(options: QueueOptions) -> Result<Joined> {
    let (path, durability) = (options.journal.clone(), options.durability);
    let key = QueueOptions { journal: in_real_folder(&path), ..options };
    let slot = Arc::clone(locked(&OPEN).get_or_insert_default().entry(key.clone()).or_default());
    let (core, was_open) = match slot.join_or_open(&key).await {
        Ok(joined) => joined,
        Err(error) => {
            tidy(&key, &slot);
            return Err(error);
        }
    };
    let seat = QueueSeat::Shared(key, slot);
    let journal = SqliteStore::open_shared(&path, durability).and_then(|journal| {
        if journal.is_beside(&core.shared.journal) {
            return Ok(journal);
        }
        let what = "was moved, deleted or replaced while it was opened; open it again";
        Err(StoreError::Unavailable(format!("{} {what}", path.display())))
    });
    match journal {
        Ok(journal) => Ok(Joined { core, journal, seat, was_open }),
        Err(error) => {
            if seat.leave(&core) {
                core.end();
            }
            Err(error)
        }
    }
}

impl Slot {
    /// Returns the core, and whether it was open when this was called. Once there is one, this waits for nothing more: a caller that
    /// is given up would keep its seat.
    async fn join_or_open(&self, options: &QueueOptions) -> Result<(Arc<QueueCore>, bool)> {
        let asked = Instant::now();
        if let Some(core) = self.join() {
            return Ok((core, true));
        }
        let mut failed = self.opening.lock().await;
        if let Some(core) = self.join() {
            return Ok((core, false));
        }
        if let Some((_, error)) = failed.as_ref().filter(|(at, _)| *at >= asked) {
            // Of an attempt that began while this caller waited: another one would fail after as long a time.
            return Err(error.clone());
        }
        let (path, durability) = (&options.journal, options.durability);
        let opened = QueueCore::open(options.clone(), || SqliteStore::open_shared(path, durability)).await;
        match &opened {
            Ok(core) => *locked(&self.core) = Arc::downgrade(core),
            Err(error) => *failed = Some((Instant::now(), error.clone())),
        }
        opened.map(|core| (core, false))
    }

    fn join(&self) -> Option<Arc<QueueCore>> {
        let core = locked(&self.core);
        let used = core.upgrade().filter(|core| core.users.load(Ordering::Acquire) > 0 && core.is_sound())?;
        used.users.fetch_add(1, Ordering::AcqRel);
        Some(used)
    }

    fn is_used(&self) -> bool {
        let core = locked(&self.core);
        core.upgrade().is_some_and(|core| core.users.load(Ordering::Acquire) > 0)
    }
}

impl QueueSeat {
    /// Gives up the core. True if no other store uses it: then it is to be ended.
    pub(super) fn leave(&self, core: &QueueCore) -> bool {
        let Self::Shared(key, slot) = self else { return true };
        let is_last = {
            let _joining = locked(&slot.core);
            core.users.fetch_sub(1, Ordering::AcqRel) == 1
        };
        if is_last {
            tidy(key, slot);
        }
        is_last
    }
}

/// Forgets a slot that nothing is open for, unless another caller is about to join it.
fn tidy(key: &QueueOptions, slot: &Arc<Slot>) {
    let mut all = locked(&OPEN);
    let Some(slots) = all.as_mut() else { return };
    // The table and this caller hold it; a caller that is about to join also holds it.
    if slots.get(key).is_some_and(|kept| Arc::ptr_eq(kept, slot))
        && !slot.is_used()
        && Arc::strong_count(slot) <= 2
    {
        slots.remove(key);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
