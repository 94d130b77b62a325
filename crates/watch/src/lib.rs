//! Trackers: which directories to watch, and which tracked paths may have changed.
//!
//! A tracker delivers **paths, never content**. An [`Event`] is a hint that a path is worth a look; the file on disk is the
//! truth, and the receiver reads and hashes it by the indexing protocol. A superfluous hint costs one hash; a missing hint
//! would be a stale object, so wherever events may have been lost the tracker says [`Event::Rescan`].
//!
//! # Order of use
//! 1. [`Tracker::track`] a path, **then** read it. The other order misses a write between the two.
//! 2. The [`Sink`] receives events on one thread, one after the other. While it is busy, new events are merged.
//! 3. [`Tracker::flush`] answers when all that was on disk before the call has gone through the sink.
//! 4. [`Tracker::close`], or drop. No event is delivered afterwards.
//!
//! # What is noticed, and when
//! A write is delivered as soon as the writer closes the file or renames it into place. A file that is still
//! open for writing, a removal and a change of metadata wait up to [`TrackerOptions::settle`] for what usually
//! follows, so that a save by truncate-and-write or unlink-and-create is not seen half done.
//!
//! # What no watcher sees
//! Writes through a shared memory map or through another hard link of the file, writes by another machine to a
//! network file system make no event for the tracked path. Resume reconciles them. A file system that is mounted over a
//! watched directory is noticed on Linux only.
#![warn(unreachable_pub)]
#![warn(missing_docs)]

mod attach;
#[cfg(test)]
mod border_tests;
mod error;
mod event;
mod flush;
mod identity;
mod inbox;
mod listen;
mod member;
mod native;
mod plan;
mod poll;
mod shared;
mod tracker;

use camino::Utf8Path;

pub use error::WatchError;
pub use event::{Event, Sink, Touch};
pub use flush::{Acknowledge, Flush};
use identity::Identity;
pub use shared::SharedTracker;
pub use tracker::{NotifyTracker, TrackerOptions};

/// Watches sources of type `filesystem` and tells a [`Sink`] which of them may have changed.
///
/// Paths are absolute and canonical: no `.` and `..`, no symbolic link in them. All methods may be called from
/// any thread, also from within the sink, except that waiting there for a [`Flush`] would wait for itself.
pub trait Tracker: Send + Sync {
    /// Attaches a path. Tracking a tracked path again changes nothing.
    ///
    /// The path need not exist, nor its directory: the nearest existing ancestor is watched and the path
    /// reported once it appears. Changes made after this call returns are reported, so read the file after it.
    ///
    /// # Errors
    /// [`WatchError::InvalidPath`] for a relative path, one with `.` or `..`, or one without a file name;
    /// [`WatchError::Closed`] after [`Tracker::close`]. Nothing is tracked then.
    fn track(&self, path: &Utf8Path) -> Result<Tracked, WatchError>;

    /// Detaches a path. An event that is already on its way may still be delivered. Unknown paths and a closed
    /// tracker are no error: the path is not tracked afterwards.
    fn untrack(&self, path: &Utf8Path);

    /// Answers when everything that was written to disk before this call has been delivered to the sink and
    /// the sink has acknowledged it ([`Event::Flush`]). No pause and no timer is involved.
    fn flush(&self) -> Flush;

    /// The tracked paths, and how they are tracked.
    fn status(&self) -> TrackerStatus;

    /// Stops watching and ends the tracker's threads. Waits for a delivery in progress unless called from within it;
    /// undelivered events are dropped, and waiting flushes answer [`WatchError::Closed`]. Closing twice is fine.
    fn close(&self);
}

/// The way a path is tracked after [`Tracker::track`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tracked {
    /// The operating system reports changes of its directory.
    Watched,
    /// Its directory can't be watched, so the path is checked every [`TrackerOptions::poll_interval`].
    Polled,
    /// Its directory does not exist or can't be entered now; the nearest existing ancestor is watched for it.
    Waiting,
}

/// Counts of a tracker's paths and directories at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackerStatus {
    /// Tracked paths.
    pub tracked: usize,
    /// Directories the operating system watches: those of tracked paths, and their ancestors.
    pub watched_directories: usize,
    /// Directories checked by polling because they can't be watched. 0 means no timer runs.
    pub polled_directories: usize,
    /// Directories of tracked paths, or ancestors, that don't exist or can't be entered now.
    pub missing_directories: usize,
    /// Number of times that events were lost or dropped and [`Event::Rescan`] took their place.
    pub rescans: u64,
    /// True if the tracker was closed.
    pub closed: bool,
}
