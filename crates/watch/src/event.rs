//! Tracker events, and the sink that receives them.

use camino::{Utf8Path, Utf8PathBuf};

use crate::flush::Acknowledge;

/// One delivery to a [`Sink`]. Deliveries are in order: an event describes the disk at the time of its delivery or later,
/// never earlier.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// These tracked paths may have been created, written, replaced, removed, or made unreadable. Unique and sorted. Look
    /// at each; a path with equal content did not change.
    Changed(Vec<Utf8PathBuf>),
    /// Events were lost: the operating system's queue or this tracker's ran over. Look at every tracked path.
    Rescan,
    /// The tracked path `from` was renamed to `to` (an absolute path, tracked or not) in one step. Only a hint
    /// for a notice: it comes before or together with the [`Event::Changed`] of the paths, and is not sent
    /// when the target's directory is not watched or when a directory was renamed.
    Moved {
        /// The tracked path before.
        from: Utf8PathBuf,
        /// The path after.
        to: Utf8PathBuf,
    },
    /// Something the user should see, in one sentence with what to do, for instance that polling replaces
    /// watching because a limit of the operating system is reached.
    Warning(String),
    /// The end of a flush: all events of earlier changes on disk have been delivered. Call [`Acknowledge::done`] when they
    /// are processed; a sink that processes within `deliver` drops it.
    Flush(Acknowledge),
}

/// Receives a tracker's events, one at a time, on the tracker's own thread.
///
/// A call may take its time: meanwhile events are merged, up to [`TrackerOptions::capacity`](crate::TrackerOptions::capacity)
/// paths, beyond which one [`Event::Rescan`] takes their place. A panic is caught and logged, and the next
/// delivery is a rescan.
pub trait Sink: Send + 'static {
    /// Takes one event.
    fn deliver(&mut self, event: Event);

    /// Returns the function to call as soon as the operating system reports a tracked path, before its [`Event::Changed`]
    /// is due. It runs on the thread that reads the system's events and must not wait. Asked for once, at the start.
    fn touch(&self) -> Option<Touch> {
        None
    }
}

/// Takes a tracked path that was touched and not delivered yet. A file that is checked by polling is not told of.
pub type Touch = Box<dyn Fn(&Utf8Path) + Send + Sync>;

impl Sink for Box<dyn Sink> {
    fn deliver(&mut self, event: Event) {
        self.as_mut().deliver(event);
    }

    fn touch(&self) -> Option<Touch> {
        self.as_ref().touch()
    }
}

impl<F: FnMut(Event) + Send + 'static> Sink for F {
    fn deliver(&mut self, event: Event) {
        self(event);
    }
}
