//! The stores that this process has open, by file: stores that are opened on one file share its connections and threads, so
//! that each further one costs no file descriptor.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use context_store::{Result, clock};

use super::connect;
use super::core::Core;
use super::settle::Durability;

/// The file without links on the way to it, and what its writes survive.
type Key = (PathBuf, Durability);

/// The open store of a key. Locked while that store is opened or left.
type Slot = Arc<Mutex<Weak<Core>>>;

static OPEN: Mutex<Option<HashMap<Key, Slot>>> = Mutex::new(None);

/// A store's right to use a [`Core`].
pub(super) enum Seat {
    /// The core is this store's alone.
    Alone,
    /// Other stores may also use it.
    Shared(Key, Slot),
}

/// Finds the open store of the file, or opens it. A file that was replaced is opened anew.
pub(super) fn join(path: &Path, durability: Durability) -> Result<(Arc<Core>, Seat)> {
    connect::prepare(path)?;
    let key = (canonical(path), durability);
    let slot = Arc::clone(locked(&OPEN).get_or_insert_default().entry(key.clone()).or_default());
    let joined = {
        let mut open = locked(&slot);
        let used = open.upgrade().filter(|core| core.users.load(Ordering::Acquire) > 0 && core.is_sound());
        match used {
            Some(core) => {
                core.users.fetch_add(1, Ordering::AcqRel);
                Ok(core)
            }
            None => {
                Core::open(&key.0, durability, clock::system()).inspect(|core| *open = Arc::downgrade(core))
            }
        }
    };
    match joined {
        Ok(core) => Ok((core, Seat::Shared(key, slot))),
        Err(error) => {
            tidy(&key, &slot);
            Err(error)
        }
    }
}

impl Seat {
    /// Gives up the core. True if no other store uses it: then it is to be ended.
    pub(crate) fn leave(&self, core: &Core) -> bool {
        let Self::Shared(key, slot) = self else { return true };
        let is_last = {
            let _joining = locked(slot);
            core.users.fetch_sub(1, Ordering::AcqRel) == 1
        };
        if is_last {
            tidy(key, slot);
        }
        is_last
    }
}

/// Forgets a slot that nothing is open for, unless another thread has just taken it.
fn tidy(key: &Key, slot: &Slot) {
    let mut all = locked(&OPEN);
    let Some(slots) = all.as_mut() else { return };
    if slots.get(key).is_some_and(|kept| Arc::ptr_eq(kept, slot)) {
        // A thread that holds the lock is about to join; it may wait for another process, and this must not wait for it.
        let is_used = slot
            .try_lock()
            .map_or(true, |open| open.upgrade().is_some_and(|core| core.users.load(Ordering::Acquire) > 0));
        // The table and this caller hold it; a thread that is about to join also holds it.
        if !is_used && Arc::strong_count(slot) <= 2 {
            slots.remove(key);
        }
    }
}

fn canonical(path: &Path) -> PathBuf {
    // SQLite does not take the form that Windows gives.
    let real = if cfg!(windows) { None } else { path.canonicalize().ok() };
    real.unwrap_or_else(|| path.to_owned())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
