//! The directories to watch for the tracked files. Pure: no file is touched here.
//!
//! The plan is a tree of directories: the parents of all tracked paths and the ancestors of those up to the
//! root. A directory is in it as long as a tracked path, or a directory of the plan, lies directly in it; that
//! is the reference count. Ancestors are watched because a directory that is moved, removed or made again is
//! announced in its parent only.

use std::collections::{HashMap, HashSet};

use camino::{Utf8Path, Utf8PathBuf};

use crate::Identity;

/// The known state of a directory in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Not there, not a directory, or it can't be entered.
    Absent,
    /// There, and not watched because nothing needs it ([`WatchPlan::needs_watch`]).
    Idle(Identity),
    /// There, and the operating system reports its changes.
    Watched(Identity),
    /// There, and checked by polling because it can't be watched.
    Polled(Identity),
}

impl Presence {
    /// The directory's identity, if it is there.
    pub(crate) fn identity(self) -> Option<Identity> {
        match self {
            Self::Absent => None,
            Self::Idle(identity) | Self::Watched(identity) | Self::Polled(identity) => Some(identity),
        }
    }
}

/// The directories of one tracker, and the names tracked in each.
///
/// Names are stored once per directory, without their path, so that 50,000 tracked files take a few megabytes.
#[derive(Debug, Default)]
pub(crate) struct WatchPlan {
    directories: HashMap<Box<str>, PlannedDirectory>,
    tracked: usize,
}

/// The outcome of [`WatchPlan::track`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Added {
    /// True if the path was not tracked before.
    pub fresh: bool,
    /// Directories that are new in the plan, ancestors first; each is [`Presence::Absent`] until looked at.
    pub directories: Vec<Utf8PathBuf>,
}

/// The outcome of [`WatchPlan::untrack`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Directories that left the plan, with their known states; descendants first.
    pub directories: Vec<(Utf8PathBuf, Presence)>,
    /// The lowest directory that stays in the plan; its needs may have changed.
    pub remaining: Option<Utf8PathBuf>,
}

/// The role of a path in the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// It is tracked.
    pub tracked: bool,
    /// It is a directory of the plan.
    pub directory: bool,
}

#[derive(Debug)]
struct PlannedDirectory {
    presence: Presence,
    /// Tracked names directly in it.
    names: HashSet<Box<str>>,
    /// Names of directories of the plan directly in it.
    children: HashSet<Box<str>>,
    /// Number of absent children.
    absent: usize,
    /// True if it counts in its parent. A pinned directory needs no ancestors.
    linked: bool,
    /// Kept for itself ([`WatchPlan::pin`]).
    pinned: bool,
    /// As an ancestor it is watched only while a child is absent ([`WatchPlan::set_quiet`]).
    quiet: bool,
}

impl WatchPlan {
    /// Adds a path, and its ancestors to the plan. Nothing changes if it is tracked already.
    pub(crate) fn track(&mut self, path: &Utf8Path) -> Added {
        let mut added = Added::default();
        let Some((parent, name)) = split(path) else { return added };
        self.link(parent, &mut added.directories);
        if let Some(directory) = self.directories.get_mut(parent.as_str())
            && directory.names.insert(name.into())
        {
            self.tracked += 1;
            added.fresh = true;
        }
        added
    }

    /// Removes a path, and the directories that only it needed. Nothing changes if it is not tracked.
    pub(crate) fn untrack(&mut self, path: &Utf8Path) -> Removed {
        let mut removed = Removed::default();
        let Some((parent, name)) = split(path) else { return removed };
        let Some(directory) = self.directories.get_mut(parent.as_str()) else { return removed };
        if !directory.names.remove(name) {
            return removed;
        }
        self.tracked -= 1;
        let mut next = Some(parent);
        while let Some(path) = next {
            next = match self.unlink(path) {
                Unlinked::Stays => {
                    removed.remaining = Some(path.to_owned());
                    None
                }
                Unlinked::Kept => path.parent(),
                Unlinked::Gone(presence) => {
                    removed.directories.push((path.to_owned(), presence));
                    path.parent()
                }
            };
        }
        removed
    }

    /// Keeps a directory in the plan for itself, without its ancestors. True if it is new.
    pub(crate) fn pin(&mut self, path: &Utf8Path) -> bool {
        let fresh = !self.directories.contains_key(path.as_str());
        self.directories.entry(path.as_str().into()).or_insert_with(PlannedDirectory::new).pinned = true;
        fresh
    }

    /// Returns the meaning of an event at `path`.
    pub(crate) fn meaning(&self, path: &Utf8Path) -> Meaning {
        let tracked = split(path).is_some_and(|(parent, name)| {
            self.directories.get(parent.as_str()).is_some_and(|directory| directory.names.contains(name))
        });
        Meaning { tracked, directory: self.directories.contains_key(path.as_str()) }
    }

    /// Records the presence found at a directory, and returns the one known before; `None` if it is not in the plan.
    pub(crate) fn set_presence(&mut self, path: &Utf8Path, presence: Presence) -> Option<Presence> {
        let directory = self.directories.get_mut(path.as_str())?;
        let before = std::mem::replace(&mut directory.presence, presence);
        let (was, is) = (before == Presence::Absent, presence == Presence::Absent);
        if directory.linked
            && was != is
            && let Some(parent) = path.parent().and_then(|parent| self.directories.get_mut(parent.as_str()))
        {
            if is { parent.absent += 1 } else { parent.absent -= 1 }
        }
        Some(before)
    }

    /// Marks a directory as one that is watched only when it holds tracked names or a child is absent: one
    /// that everybody writes to, or that can't be watched.
    pub(crate) fn set_quiet(&mut self, path: &Utf8Path, quiet: bool) {
        if let Some(directory) = self.directories.get_mut(path.as_str()) {
            directory.quiet = quiet;
        }
    }

    /// True if a directory is to be watched, if it exists.
    pub(crate) fn needs_watch(&self, path: &Utf8Path) -> bool {
        self.directories.get(path.as_str()).is_some_and(|directory| {
            directory.needed() || (!directory.quiet && !directory.children.is_empty())
        })
    }

    /// The absent directories that are the only reason to watch a quiet directory; empty if there are other reasons.
    pub(crate) fn awaited(&self, path: &Utf8Path) -> Vec<Utf8PathBuf> {
        let quiet = |directory: &&PlannedDirectory| {
            directory.quiet && !directory.pinned && directory.names.is_empty()
        };
        let Some(directory) = self.directories.get(path.as_str()).filter(quiet) else { return Vec::new() };
        let children = directory.children.iter().map(|name| path.join(&**name));
        children.filter(|child| self.presence(child) == Some(Presence::Absent)).collect()
    }

    /// True if a directory must be observed even if that takes polling: it holds tracked names, or waits for an absent
    /// child.
    pub(crate) fn is_needed(&self, path: &Utf8Path) -> bool {
        self.directories.get(path.as_str()).is_some_and(PlannedDirectory::needed)
    }

    /// Returns the presence of a directory; `None` if it is not in the plan.
    pub(crate) fn presence(&self, path: &Utf8Path) -> Option<Presence> {
        self.directories.get(path.as_str()).map(|directory| directory.presence)
    }

    /// The tracked paths directly in a directory, in no order.
    pub(crate) fn tracked_in(&self, path: &Utf8Path) -> Vec<Utf8PathBuf> {
        self.directories.get(path.as_str()).map_or_else(Vec::new, |directory| {
            directory.names.iter().map(|name| path.join(&**name)).collect()
        })
    }

    /// The directories of the plan directly in a directory, in no order.
    pub(crate) fn children(&self, path: &Utf8Path) -> Vec<Utf8PathBuf> {
        self.directories.get(path.as_str()).map_or_else(Vec::new, |directory| {
            directory.children.iter().map(|name| path.join(&**name)).collect()
        })
    }

    /// All directories, ancestors before descendants.
    pub(crate) fn directories(&self) -> Vec<Utf8PathBuf> {
        let mut all: Vec<_> = self.directories.keys().map(|path| Utf8PathBuf::from(&**path)).collect();
        all.sort_unstable();
        all
    }

    /// The directories that are polled, ancestors before descendants.
    pub(crate) fn polled(&self) -> Vec<Utf8PathBuf> {
        let polled = |directory: &PlannedDirectory| matches!(directory.presence, Presence::Polled(_));
        let mut all: Vec<_> = self
            .directories
            .iter()
            .filter(|(_, directory)| polled(directory))
            .map(|(path, _)| Utf8PathBuf::from(&**path))
            .collect();
        all.sort_unstable();
        all
    }

    /// Number of tracked paths.
    pub(crate) fn tracked(&self) -> usize {
        self.tracked
    }

    /// Numbers of watched, polled and absent directories.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        self.directories.values().fold((0, 0, 0), |(watched, polled, absent), directory| {
            match directory.presence {
                Presence::Watched(_) => (watched + 1, polled, absent),
                Presence::Polled(_) => (watched, polled + 1, absent),
                Presence::Absent => (watched, polled, absent + 1),
                Presence::Idle(_) => (watched, polled, absent),
            }
        })
    }

    /// Makes `path` a directory of the plan that counts in its parent, all the way up.
    fn link(&mut self, path: &Utf8Path, created: &mut Vec<Utf8PathBuf>) {
        if self.directories.get(path.as_str()).is_some_and(|directory| directory.linked) {
            return;
        }
        if let Some((parent, name)) = split(path) {
            self.link(parent, created);
            let absent = self.presence(path).is_none_or(|presence| presence == Presence::Absent);
            if let Some(parent) = self.directories.get_mut(parent.as_str()) {
                parent.children.insert(name.into());
                parent.absent += usize::from(absent);
            }
        }
        let directory = self.directories.entry(path.as_str().into()).or_insert_with(|| {
            created.push(path.to_owned());
            PlannedDirectory::new()
        });
        directory.linked = true;
    }

    /// Takes `path` out of its parent, and out of the plan, if nothing tracked is left in it.
    fn unlink(&mut self, path: &Utf8Path) -> Unlinked {
        let Some(directory) = self.directories.get_mut(path.as_str()) else { return Unlinked::Stays };
        if !directory.names.is_empty() || !directory.children.is_empty() {
            return Unlinked::Stays;
        }
        let (presence, pinned) = (directory.presence, directory.pinned);
        directory.linked = false;
        if let Some((parent, name)) = split(path)
            && let Some(parent) = self.directories.get_mut(parent.as_str())
        {
            parent.children.remove(name);
            parent.absent -= usize::from(presence == Presence::Absent);
        }
        if pinned {
            return Unlinked::Kept;
        }
        self.directories.remove(path.as_str());
        Unlinked::Gone(presence)
    }
}

enum Unlinked {
    /// Something tracked is still in it.
    Stays,
    /// It is pinned: in the plan, but its ancestors don't count it any more.
    Kept,
    Gone(Presence),
}

impl PlannedDirectory {
    fn new() -> Self {
        Self {
            presence: Presence::Absent,
            names: HashSet::new(),
            children: HashSet::new(),
            absent: 0,
            linked: false,
            pinned: false,
            quiet: false,
        }
    }

    fn needed(&self) -> bool {
        self.pinned || !self.names.is_empty() || self.absent > 0
    }
}

fn split(path: &Utf8Path) -> Option<(&Utf8Path, &str)> {
    Some((path.parent()?, path.file_name()?))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
