//! Finds the folders that are drives: a missing file is deleted only if the file system that had it is still mounted.
//!
//! After a drive was unmounted, its mount point is an empty folder that can be read. So a folder below which files of the
//! session were seen on another file system than above it is kept in mind, also for later processes: as a note in the store.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::session::client::Client;
use crate::session::error::Result;
use camino::{Utf8Path, Utf8PathBuf};
use context_store::StoreError;

/// The drives on which a session's files were seen.
#[derive(Default)]
pub(crate) struct Drives(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The folders of the session's files, as this process has found them.
    folders: HashMap<Utf8PathBuf, Folder>,
    /// The mount points, with the device that this process has seen there.
    mounts: BTreeMap<Utf8PathBuf, Option<u64>>,
    /// Files below a mount point that were there while nothing was mounted.
    beneath: HashSet<Utf8PathBuf>,
    is_read: bool,
    is_unsaved: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Folder {
    device: u64,
    /// A file of the session was there.
    had_file: bool,
}

impl Drives {
    /// The device on which a file's folder was when this process looked there; `None` if it never found it.
    pub(crate) fn device_of_parent(&self, path: &Utf8Path) -> Option<u64> {
        self.known().folders.get(path.parent()?).map(|folder| folder.device)
    }

    /// Notes on which device a file's folder is, before anybody looks for the file. An earlier note stays.
    pub(crate) fn look_at(&self, path: &Utf8Path) {
        let Some(parent) = path.parent() else { return };
        if self.known().folders.contains_key(parent) {
            return;
        }
        if let Some(device) = context_platform::device(parent.as_std_path()) {
            self.known().folders.insert(parent.to_owned(), Folder { device, had_file: false });
        }
    }

    /// Notes on which drive a file is that was just read. Takes one look at its folder if another file of it was read before.
    pub(crate) fn saw(&self, path: &Utf8Path) {
        let Some(parent) = path.parent() else { return };
        let Some(device) = context_platform::device(parent.as_std_path()) else { return };
        let folder = Folder { device, had_file: true };
        {
            let mut known = self.known();
            let is_known = known.folders.get(parent) == Some(&folder);
            if !is_known {
                known.folders.insert(parent.to_owned(), folder);
            }
            let above = known.mount_above(path);
            if above.is_some_and(|seen| seen != Some(device)) && known.is_away(path) {
                known.beneath.insert(path.to_owned());
                return;
            }
            if !known.beneath.is_empty() {
                known.beneath.remove(path);
            }
            if is_known {
                return;
            }
        }
        let Some(mount) = mount_point(parent, device) else { return };
        let mut known = self.known();
        known.is_unsaved |= known.mounts.insert(mount.to_owned(), Some(device)).is_none();
    }

    /// True if a file that is not there may be on a drive that is not mounted now.
    pub(crate) fn is_away(&self, path: &Utf8Path) -> bool {
        let known = self.known();
        let is_elsewhere = |parent: &Utf8Path| {
            let seen = known.folders.get(parent).filter(|folder| folder.had_file);
            let now = context_platform::device(parent.as_std_path());
            seen.zip(now).is_some_and(|(seen, now)| seen.device != now)
        };
        !known.beneath.contains(path) && (path.parent().is_some_and(is_elsewhere) || known.is_away(path))
    }

    /// Takes in the notes of earlier processes.
    ///
    /// # Errors
    /// Errors of the store.
    pub(crate) async fn read(&self, client: &Client) -> Result<()> {
        if self.known().is_read {
            return Ok(());
        }
        let note = client.store().note(&name(client)).await?.unwrap_or_default();
        let mut known = self.known();
        known.is_read = true;
        for path in note.lines() {
            known.mounts.entry(path.into()).or_default();
        }
        Ok(())
    }

    /// Keeps the notes for later processes. Costs nothing if nothing is new.
    ///
    /// # Errors
    /// Errors of the store, except `STORE_FULL`.
    pub(crate) async fn save(&self, client: &Client) -> Result<()> {
        if !self.known().is_unsaved {
            return Ok(());
        }
        self.read(client).await?;
        let text = {
            let mut known = self.known();
            known.is_unsaved = false;
            // A path with a line break cannot be stored on one line.
            let paths = known.mounts.keys().filter(|path| !path.as_str().contains('\n'));
            paths.map(|path| path.as_str()).collect::<Vec<_>>().join("\n")
        };
        match client.store().set_note(&name(client), &text).await {
            Err(StoreError::Full(_)) => Ok(()),
            other => Ok(other?),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The nearest mount point above a file, with the device that this process has seen there.
    fn mount_above(&self, path: &Utf8Path) -> Option<Option<u64>> {
        if self.mounts.is_empty() {
            return None;
        }
        path.ancestors().skip(1).find_map(|folder| self.mounts.get(folder).copied())
    }

    fn is_away(&self, path: &Utf8Path) -> bool {
        !self.mounts.is_empty()
            && path.ancestors().skip(1).any(|folder| match self.mounts.get(folder) {
                None => false,
                Some(seen) => match context_platform::device(folder.as_std_path()) {
                    None => true,
                    // Another drive, or none: then the folder is on the device of the one above it.
                    Some(now) => seen.is_some_and(|seen| seen != now) || device_above(folder) == Some(now),
                },
            })
    }
}

fn device_above(folder: &Utf8Path) -> Option<u64> {
    context_platform::device(folder.parent()?.as_std_path())
}

/// The folder where the file system begins that has a folder; `None` for the one at the root.
fn mount_point(folder: &Utf8Path, device: u64) -> Option<&Utf8Path> {
    let mut mount = folder;
    loop {
        let above = mount.parent()?;
        if context_platform::device(above.as_std_path()) != Some(device) {
            return Some(mount);
        }
        mount = above;
    }
}

fn name(client: &Client) -> String {
    format!("drives:{}", client.session_object)
}
