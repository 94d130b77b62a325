//! The tracker of a session's files: the tracked files, the listeners, and the files that are waiting for a look.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::session::client::Client;
use crate::session::paths::Paths;
use camino::{Utf8Path, Utf8PathBuf};
use context_model::id::ObjectId;
use context_model::index::Action;
use context_model::source::FilesystemSource;
use context_watch::{NotifyTracker, SharedTracker, Sink, Touch, Tracker, TrackerOptions, WatchError};

use super::drives::Drives;
use super::look::file_id;
use super::pending::PendingReads;
use super::stamps::Stamp;

/// Something that happened to a file of the session. Each change of its bytes is reported once, no matter which program made
/// it, which client stored it first, and how this client learned of it: by a tracker, a comparison, a read or another client's
/// transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// The object; `None` for a warning about tracking as such.
    pub id: Option<ObjectId>,
    /// The path as the agent sees it; the warning's text for a warning.
    pub path: String,
    /// The kind of event.
    pub kind: FileEventKind,
}

/// The kind of change of a tracked file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileEventKind {
    /// It may have changed. It is being read now, and an event with the outcome follows. Only for
    /// `Engine::subscribe_touches`.
    Touched,
    /// A version was written, with this action.
    Indexed(Action),
    /// The file is no longer reachable; its last version stays.
    Orphaned,
    /// Tracking is restricted; `path` has the reason, and what to do.
    Warning,
}

/// The listeners have heard that a file is out of reach.
#[derive(Default)]
struct IsTold(bool);

type FileListener = Arc<dyn Fn(&FileEvent) + Send + Sync>;

/// The tracker of one session, and the files that it tracks.
pub(crate) struct Tracking {
    wanted: bool,
    /// Bytes a second; see [`crate::session::options::Options::pace`].
    pace: u64,
    tracker: Mutex<Option<Arc<dyn Tracker>>>,
    attached: Arc<Attached>,
    /// The drives on which the files were seen.
    pub drives: Drives,
    /// The listeners that hear of each change of a file.
    pub listeners: Listeners,
    /// Warnings that came before the first listener.
    early: Mutex<Vec<FileEvent>>,
    pending: Mutex<PendingReads>,
    /// The time for which the next look at resting files is scheduled.
    wakes: Mutex<Option<Instant>>,
    /// The files that the last look did not reach.
    orphaned: Mutex<HashMap<ObjectId, IsTold>>,
}

/// The tracked files, and the listeners called before a file is read. Kept apart from the tracker, so that the
/// tracker's thread can hold it.
#[derive(Default)]
pub(crate) struct Attached {
    files: Mutex<HashMap<Utf8PathBuf, FilesystemSource>>,
    /// Files of which only the path was seen so far, with their stamps at that time: no client has looked at their content.
    only_seen: Mutex<HashMap<Utf8PathBuf, Option<Stamp>>>,
    /// The listeners called before a file is read.
    pub listeners: Listeners,
}

impl Tracking {
    /// Tracks nothing yet. `wanted`: true if trackers run at all; `pace`: bytes a second.
    pub(crate) fn new(wanted: bool, pace: u64) -> Self {
        Self {
            wanted,
            pace,
            tracker: Mutex::default(),
            attached: Arc::default(),
            drives: Drives::default(),
            listeners: Listeners::default(),
            early: Mutex::default(),
            pending: Mutex::default(),
            wakes: Mutex::default(),
            orphaned: Mutex::default(),
        }
    }

    /// Starts the tracker. The session also works without one: reads and resumes index.
    pub(crate) fn start(&self, client: &Client, sink: impl Sink) {
        if !self.wanted {
            return;
        }
        let started = match &client.options.tracker {
            Some(start) => start(Box::new(sink)),
            None => {
                // A flush is confirmed by an event in a directory of our own; without such a directory it costs a
                // rescan.
                let own = client.store().files().into_iter().next();
                let marker_directory =
                    own.and_then(|file| Utf8PathBuf::from_path_buf(file.parent()?.join("watch")).ok());
                let options = TrackerOptions::default();
                match marker_directory {
                    Some(own) => SharedTracker::join(&own, options, sink).map(|one| Arc::new(one) as _),
                    None => NotifyTracker::start(options, sink).map(|one| Arc::new(one) as _),
                }
            }
        };
        match started {
            Ok(tracker) => *locked(&self.tracker) = Some(tracker),
            Err(error) => self.warn(format!("files are not watched: {error}")),
        }
    }

    /// Returns the function by which the tracker's thread notifies listeners before a file is read.
    pub(crate) fn touch(&self, paths: Paths) -> Touch {
        let attached = Arc::clone(&self.attached);
        Box::new(move |path| {
            if attached.listeners.is_empty() {
                return;
            }
            let Some(source) = locked(&attached.files).get(path).cloned() else { return };
            let (id, path) = (Some(file_id(&source)), paths.display(&source));
            attached.listeners.tell(&FileEvent { id, path, kind: FileEventKind::Touched });
        })
    }

    /// Attaches a file of which only the path was seen. It is read once it has changed, but not because events were
    /// lost.
    pub(crate) fn track_unread(&self, path: &Utf8Path, source: &FilesystemSource) {
        if self.source_at(path).is_none() && locked(&self.tracker).is_some() {
            locked(&self.attached.only_seen).insert(path.to_owned(), Stamp::of(path));
        }
        self.attach(path, source);
    }

    /// True if only the path of a tracked file was seen, and the file has not changed since.
    pub(crate) fn is_unread(&self, path: &Utf8Path) -> bool {
        locked(&self.attached.only_seen).get(path).is_some_and(|seen| *seen == Stamp::of(path))
    }

    /// Attaches a file that is about to be looked at. Call this before the look, so that no change in between is
    /// missed.
    pub(crate) fn track(&self, path: &Utf8Path, source: &FilesystemSource) {
        locked(&self.attached.only_seen).remove(path);
        self.attach(path, source);
    }

    fn attach(&self, path: &Utf8Path, source: &FilesystemSource) {
        self.drives.look_at(path);
        let Some(tracker) = locked(&self.tracker).clone() else { return };
        if locked(&self.attached.files).insert(path.to_owned(), source.clone()).is_some() {
            return;
        }
        match tracker.track(path) {
            Ok(_) | Err(WatchError::Closed) => {}
            Err(error) => tracing::warn!(%error, "a file is not watched"),
        }
    }

    /// Notes the outcome of a look: true if it reached the file.
    pub(crate) fn looked(&self, id: &ObjectId, is_reached: bool) {
        let mut orphaned = locked(&self.orphaned);
        if !is_reached {
            orphaned.entry(id.clone()).or_default();
        } else if !orphaned.is_empty() {
            orphaned.remove(id);
        }
    }

    /// True if the last look has not reached a file.
    pub(crate) fn is_orphaned(&self, id: &ObjectId) -> bool {
        locked(&self.orphaned).contains_key(id)
    }

    /// Notes that the listeners hear of a file out of reach. False if they have heard of it since it was last reached.
    pub(crate) fn tells_orphaned(&self, id: &ObjectId) -> bool {
        let mut orphaned = locked(&self.orphaned);
        !std::mem::replace(&mut orphaned.entry(id.clone()).or_default().0, true)
    }

    /// The binding of the tracked file at a path on disk.
    pub(crate) fn source_at(&self, path: &Utf8Path) -> Option<FilesystemSource> {
        locked(&self.attached.files).get(path).cloned()
    }

    /// The tracked files: where each is on disk, and its binding.
    pub(crate) fn files(&self) -> Vec<(Utf8PathBuf, FilesystemSource)> {
        locked(&self.attached.files).iter().map(|(path, source)| (path.clone(), source.clone())).collect()
    }

    /// The files that are waiting for a look.
    pub(crate) fn pending_reads(&self) -> MutexGuard<'_, PendingReads> {
        locked(&self.pending)
    }

    /// Returns the time for which a file with this many bytes rests after a version.
    pub(crate) fn rest(&self, bytes: u64) -> Duration {
        if self.pace == 0 { Duration::ZERO } else { Duration::from_secs_f64(bytes as f64 / self.pace as f64) }
    }

    /// Returns the time to wake up for resting files, unless an earlier wake-up is already scheduled.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let next = self.pending_reads().next()?;
        let mut wakes = locked(&self.wakes);
        if wakes.is_some_and(|at| at <= next) {
            return None;
        }
        *wakes = Some(next);
        Some(next)
    }

    /// Notes that the wake-up scheduled for this moment has happened.
    pub(crate) fn woke(&self, at: Instant) {
        let mut wakes = locked(&self.wakes);
        if *wakes == Some(at) {
            *wakes = None;
        }
    }

    /// Waits until the tracker has reported everything that was written to disk before the call. A session without files waits
    /// for nothing: each wait crosses several threads.
    pub(crate) async fn flush(&self) {
        if locked(&self.attached.files).is_empty() {
            return;
        }
        let Some(tracker) = locked(&self.tracker).clone() else { return };
        // Fails only if the tracker is closed meanwhile, and then there is nothing to wait for.
        let _closed = tokio::task::spawn_blocking(move || tracker.flush().wait()).await;
    }

    /// Ends the tracker; listeners hear of no further changes. Idempotent.
    pub(crate) async fn close(&self) {
        let Some(tracker) = locked(&self.tracker).take() else { return };
        let _joined = tokio::task::spawn_blocking(move || tracker.close()).await;
        self.listeners.clear();
        self.attached.listeners.clear();
    }

    /// Tells the user about a restriction; kept for the first listener if there is none yet.
    pub(crate) fn warn(&self, text: String) {
        let event = FileEvent { id: None, path: text, kind: FileEventKind::Warning };
        if self.listeners.is_empty() {
            locked(&self.early).push(event);
        } else {
            self.listeners.tell(&event);
        }
    }

    /// Adds a listener, which first gets the warnings that no listener has heard. Returns the number to remove it with.
    pub(crate) fn listen(&self, listener: FileListener) -> u64 {
        for event in locked(&self.early).drain(..) {
            listener(&event);
        }
        self.listeners.add(listener)
    }

    /// The listeners called before a file is read.
    pub(crate) fn touch_listeners(&self) -> &Listeners {
        &self.attached.listeners
    }
}

/// Listeners by the number to unsubscribe with.
#[derive(Default)]
pub(crate) struct Listeners {
    all: Mutex<Vec<(u64, FileListener)>>,
    /// Numbers are never reused, so a second unsubscribe cannot remove another subscription.
    next: AtomicU64,
}

impl Listeners {
    /// Adds a listener; returns the number to remove it with.
    pub(crate) fn add(&self, listener: FileListener) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        locked(&self.all).push((number, listener));
        number
    }

    /// Removes a listener. A number that is unknown or used already is ignored.
    pub(crate) fn remove(&self, number: u64) {
        locked(&self.all).retain(|(n, _)| *n != number);
    }

    fn clear(&self) {
        locked(&self.all).clear();
    }

    fn is_empty(&self) -> bool {
        locked(&self.all).is_empty()
    }

    /// Calls each listener without holding the lock, so that listeners may subscribe and unsubscribe.
    pub(crate) fn tell(&self, event: &FileEvent) {
        let all: Vec<FileListener> =
            locked(&self.all).iter().map(|(_, listener)| Arc::clone(listener)).collect();
        all.iter().for_each(|listener| listener(event));
    }
}

/// A poisoned lock only means that a listener panicked; the data behind it is whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "tracking_tests.rs"]
mod tests;
