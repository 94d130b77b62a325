//! Brings the watches in line with the plan and the disk: attaches, re-attaches, and polls what can't be
//! watched.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use crate::identity::{self, Identity};
use crate::inbox::Cause;
use crate::listen::Listener;
use crate::native::{Native, WatchRefusal};
use crate::plan::{Presence, Removed};
use crate::poll::Polls;

/// The watches of one tracker. The plan's lock is never held while the operating system is asked, because
/// the thread that answers needs it.
pub(crate) struct Attachments {
    listener: Arc<Listener>,
    native: Option<Box<dyn Native>>,
    polls: Polls,
    /// The path by which each directory is watched: the system has one watch per directory, whatever the number of paths to
    /// it.
    watched: HashMap<Identity, Utf8PathBuf>,
    /// Directories whose refusal was already told.
    told: HashSet<Utf8PathBuf>,
    limit_told: bool,
}

/// The findings of a change of the watches.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Tracked paths that may have changed unseen.
    pub changed: Vec<Utf8PathBuf>,
    pub warnings: Vec<String>,
    /// True if a limit on watches was met.
    limited: bool,
    /// Directories whose watch was given up for another's.
    later: Vec<Utf8PathBuf>,
}

/// A directory that is exchanged more often than this while it is looked at is left to its next event.
const ATTEMPTS: usize = 8;

impl Attachments {
    /// Without `native` everything is polled.
    pub(crate) fn new(listener: Arc<Listener>, native: Option<Box<dyn Native>>) -> Self {
        Self {
            listener,
            native,
            polls: Polls::default(),
            watched: HashMap::new(),
            told: HashSet::new(),
            limit_told: false,
        }
    }

    /// Tracks a path, and attaches what that needs. The path itself is not reported.
    pub(crate) fn track(&mut self, path: &Utf8Path) -> (Option<Presence>, Report) {
        let mut report = Report::default();
        let Some(parent) = path.parent() else { return (None, report) };
        let (added, presence) = {
            let mut plan = self.listener.plan();
            (plan.track(path), plan.presence(parent))
        };
        match presence {
            _ if !added.fresh => return (presence, report),
            Some(Presence::Watched(_)) => return (presence, report),
            Some(Presence::Polled(_)) => self.polls.add(path),
            Some(Presence::Absent | Presence::Idle(_)) | None => {
                for directory in &added.directories {
                    self.look(directory, Cause::Check, &mut report);
                }
                self.balance(Some(parent), &mut report);
                self.finish(&mut report);
            }
        }
        report.changed.retain(|changed| changed != path);
        let presence = self.listener.plan().presence(parent);
        (presence, report)
    }

    /// Untracks a path, and lets go of what only it needed.
    pub(crate) fn untrack(&mut self, path: &Utf8Path) -> Report {
        let mut report = Report::default();
        let Removed { directories, remaining } = self.listener.plan().untrack(path);
        self.polls.remove(path);
        for (directory, presence) in directories {
            self.detach(&directory, presence);
        }
        self.balance(remaining.as_deref(), &mut report);
        self.finish(&mut report);
        report
    }

    /// Looks at directories again, and at the ones below them if the cause requires it.
    pub(crate) fn look_at<'a>(
        &mut self,
        causes: impl Iterator<Item = (&'a Utf8Path, Cause)>,
        report: &mut Report,
    ) {
        let mut covered: Option<(&Utf8Path, Cause)> = None;
        for (directory, cause) in causes {
            if covered.is_some_and(|(above, done)| cause <= done && directory.starts_with(above)) {
                continue;
            }
            self.look(directory, cause, report);
            if cause >= Cause::Touched {
                covered = Some((directory, cause));
            }
        }
        self.finish(report);
    }

    /// Attaches everything again: events were lost, so no watch is known to be alive.
    pub(crate) fn renew(&mut self, report: &mut Report) {
        let directories = self.listener.plan().directories();
        self.look_at(directories.iter().map(|directory| (directory.as_path(), Cause::Lost)), report);
    }

    /// Ends all watches; nothing is attached afterwards.
    pub(crate) fn close(&mut self) {
        self.native = None;
        self.polls = Polls::default();
    }

    pub(crate) fn is_polling(&self) -> bool {
        !self.polls.is_empty()
    }

    /// Checks polled paths, and tries to watch them instead.
    pub(crate) fn poll(&mut self, report: &mut Report) {
        let polled = self.listener.plan().polled();
        for directory in polled {
            self.look(&directory, Cause::Check, report);
            let presence = self.listener.plan().presence(&directory);
            let Some(Presence::Polled(identity)) = presence else { continue };
            let attached = match self.native {
                Some(_) if !report.limited => self.attach(&directory, identity, report),
                _ => Presence::Polled(identity),
            };
            // After attaching, so that nothing falls between the last check and the first event.
            report.changed.extend(self.polls.changed(&directory));
            if let Presence::Watched(_) = attached {
                self.polls.stop(&directory);
                self.listener.plan().set_presence(&directory, attached);
            }
            let children = self.listener.plan().children(&directory);
            for child in children {
                self.look(&child, Cause::Check, report);
            }
        }
        self.finish(report);
        if self.polls.is_empty() {
            self.limit_told = false;
        }
    }

    /// Compares one directory with the disk and attaches or detaches it. If it is another one than before, or
    /// the cause says so, its tracked files are reported and the directories in it looked at as well.
    fn look(&mut self, path: &Utf8Path, cause: Cause, report: &mut Report) {
        let mut renew = cause == Cause::Lost;
        let mut altered = cause >= Cause::Touched;
        for _ in 0..ATTEMPTS {
            let Some(before) = self.listener.plan().presence(path) else { return };
            let found = identity::directory(path);
            let same = found.is_some_and(|found| before.identity() == Some(found.identity));
            let needed = {
                let mut plan = self.listener.plan();
                if let Some(found) = found.filter(|_| !same || altered) {
                    plan.set_quiet(path, found.shared);
                }
                plan.needs_watch(path)
            };
            let watched = matches!(before, Presence::Watched(_));
            let needed = needed && (watched || !self.waits_for_nothing(path));
            let idle = matches!(before, Presence::Idle(_));
            let after = if same && !renew && idle != needed {
                before
            } else {
                self.detach(path, before);
                match found {
                    None => Presence::Absent,
                    Some(found) if needed => self.attach(path, found.identity, report),
                    Some(found) => Presence::Idle(found.identity),
                }
            };
            altered |= after.identity() != before.identity();
            self.listener.plan().set_presence(path, after);
            // A parent that is watched only from now on has not told what happened to this one before.
            let parent_is_new = self.balance(path.parent(), report);
            if !parent_is_new && identity::of(path) == after.identity() {
                break;
            }
            renew = true;
        }
        if altered {
            let (tracked, children) = {
                let plan = self.listener.plan();
                (plan.tracked_in(path), plan.children(path))
            };
            report.changed.extend(tracked);
            for child in children {
                self.look(&child, cause.max(Cause::Touched), report);
            }
        }
    }

    /// True if a quiet directory is to be watched only for directories that exist and have not been inspected yet. A
    /// directory that is gone when it is inspected starts the watch ([`Attachments::balance`]).
    fn waits_for_nothing(&self, path: &Utf8Path) -> bool {
        let awaited = self.listener.plan().awaited(path);
        !awaited.is_empty() && awaited.iter().all(|child| identity::of(child).is_some())
    }

    /// Starts or ends the watch of a quiet directory, which depends on its children. True if it started.
    fn balance(&mut self, path: Option<&Utf8Path>, report: &mut Report) -> bool {
        let Some(path) = path else { return false };
        let (presence, needed) = {
            let plan = self.listener.plan();
            (plan.presence(path), plan.needs_watch(path))
        };
        match presence {
            Some(Presence::Idle(_)) if needed => {
                self.look(path, Cause::Check, report);
                matches!(self.listener.plan().presence(path), Some(Presence::Watched(_)))
            }
            Some(Presence::Watched(_) | Presence::Polled(_)) if !needed => {
                self.look(path, Cause::Check, report);
                false
            }
            _ => false,
        }
    }

    fn attach(&mut self, path: &Utf8Path, identity: Identity, report: &mut Report) -> Presence {
        if let Some(other) = self.watched.get(&identity).filter(|other| *other != path).cloned() {
            if identity::of(&other) == Some(identity) {
                return self.start_polling(path, identity);
            }
            // The directory was moved here; its watch still goes by the old path.
            self.detach(&other, Presence::Watched(identity));
            report.later.push(other);
        }
        let Some(native) = &mut self.native else { return self.start_polling(path, identity) };
        match native.watch(path) {
            Ok(()) => {
                self.watched.insert(identity, path.to_owned());
                Presence::Watched(identity)
            }
            Err(WatchRefusal::Gone) => Presence::Absent,
            Err(WatchRefusal::Limit) => {
                report.limited = true;
                self.start_polling(path, identity)
            }
            Err(WatchRefusal::Denied) => {
                let mut plan = self.listener.plan();
                plan.set_quiet(path, true);
                let needed = plan.is_needed(path);
                drop(plan);
                if needed { self.start_polling(path, identity) } else { Presence::Idle(identity) }
            }
            Err(WatchRefusal::Other(reason)) => {
                if self.told.insert(path.to_owned()) {
                    report.warnings.push(format!(
                        "The directory {path:?} can't be watched ({reason}); its files are checked at \
                         intervals instead."
                    ));
                }
                self.start_polling(path, identity)
            }
        }
    }

    fn start_polling(&mut self, path: &Utf8Path, identity: Identity) -> Presence {
        let tracked = self.listener.plan().tracked_in(path);
        self.polls.start(path, &tracked);
        Presence::Polled(identity)
    }

    fn detach(&mut self, path: &Utf8Path, presence: Presence) {
        self.polls.stop(path);
        if let Presence::Watched(identity) = presence {
            if self.watched.get(&identity).is_some_and(|by| by == path) {
                self.watched.remove(&identity);
            }
            if let Some(native) = &mut self.native {
                native.unwatch(path);
            }
        }
    }

    fn finish(&mut self, report: &mut Report) {
        while let Some(directory) = report.later.pop() {
            self.look(&directory, Cause::Lost, report);
        }
        if report.limited && !self.limit_told {
            self.limit_told = true;
            report.warnings.push(
                "The system's limit of file watches is reached; further files are checked at intervals \
                 instead, so their changes are seen later. Raise the limit (on Linux: sysctl \
                 fs.inotify.max_user_watches) or track fewer directories."
                    .to_owned(),
            );
        }
    }
}
