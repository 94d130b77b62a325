//! Trackers of a session's files (SSOT 5.8, 5.9): from an event to a version, by the same protocol as a read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use camino::{Utf8Path, Utf8PathBuf};
use context_model::id::ObjectId;
use context_model::index::{Action, Observation};
use context_model::source::FilesystemSource;
use context_watch::{Event, NotifyTracker, Options, Tracker, WatchError};

use crate::catalog::Meta;
use crate::engine::{Engine, Inner};
use crate::error::Result;
use crate::files::FileState;
use crate::ingest::{Entry, IndexResult, Seen, file_id};
use crate::paths::{Disk, Place};
use crate::state::State;

/// How many files are indexed in one transaction when many change at once.
const BATCH: usize = 128;

/// Something that happened to a file of the session outside the agent's own calls: a tracker saw it, or another
/// client wrote a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// The object; `None` for a warning about tracking as such.
    pub id: Option<ObjectId>,
    /// The path as the agent sees it; the warning's text for a warning.
    pub path: String,
    /// What happened.
    pub kind: FileEventKind,
}

/// What happened to a tracked file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileEventKind {
    /// A version was written, with this action.
    Indexed(Action),
    /// The file can't be reached any more; its last version stays (SSOT 5.9).
    Orphaned,
    /// Tracking is restricted; `path` says how, and what to do.
    Warning,
}

type Listener = Arc<dyn Fn(&FileEvent) + Send + Sync>;

/// The tracker of one session, and what it tracks.
pub(crate) struct Tracking {
    wanted: bool,
    tracker: Mutex<Option<Arc<NotifyTracker>>>,
    files: Mutex<HashMap<Utf8PathBuf, FilesystemSource>>,
    listeners: Mutex<Vec<(u64, Listener)>>,
    /// Warnings that came before anybody listened.
    early: Mutex<Vec<FileEvent>>,
}

impl Engine {
    /// Calls a listener for each event, on the tracker's thread. Returns the number to unsubscribe with.
    pub fn subscribe(&self, listener: impl Fn(&FileEvent) + Send + Sync + 'static) -> u64 {
        let tracking = &self.inner.tracking;
        for event in locked(&tracking.early).drain(..) {
            listener(&event);
        }
        let mut listeners = locked(&tracking.listeners);
        let number = listeners.last().map_or(0, |(n, _)| n + 1);
        listeners.push((number, Arc::new(listener)));
        number
    }

    /// Ends a subscription. An unknown number is no error.
    pub fn unsubscribe(&self, number: u64) {
        locked(&self.inner.tracking.listeners).retain(|(n, _)| *n != number);
    }
}

impl Tracking {
    pub fn new(wanted: bool) -> Self {
        Self {
            wanted,
            tracker: Mutex::default(),
            files: Mutex::default(),
            listeners: Mutex::default(),
            early: Mutex::default(),
        }
    }

    /// Starts the tracker. Without one the session works all the same: reads and resumes index.
    pub fn start(&self, inner: &Arc<Inner>) {
        if !self.wanted {
            return;
        }
        let weak: Weak<Inner> = Arc::downgrade(inner);
        let runtime = tokio::runtime::Handle::current();
        let sink = move |event: Event| {
            if let Some(inner) = weak.upgrade() {
                // On the tracker's own thread: while this runs, the tracker merges what comes.
                runtime.block_on(inner.on_event(event));
            }
        };
        // A flush proves itself by an event in a directory of our own; without one it costs a rescan.
        let own = inner.store().files().into_iter().next();
        let marker_directory =
            own.and_then(|file| Utf8PathBuf::from_path_buf(file.parent()?.join("watch")).ok());
        match NotifyTracker::start(Options { marker_directory, ..Options::default() }, sink) {
            Ok(tracker) => *locked(&self.tracker) = Some(Arc::new(tracker)),
            Err(error) => self.warn(format!("files are not watched: {error}")),
        }
    }

    /// Attaches a file. Must come before the file is read, so that no change in between is missed.
    pub fn track(&self, path: &Utf8Path, source: &FilesystemSource) {
        let Some(tracker) = locked(&self.tracker).clone() else { return };
        if locked(&self.files).insert(path.to_owned(), source.clone()).is_some() {
            return;
        }
        if let Err(error) = tracker.track(path)
            && error != WatchError::Closed
        {
            tracing::warn!(%error, "a file is not watched");
        }
    }

    pub async fn flush(&self) {
        let Some(tracker) = locked(&self.tracker).clone() else { return };
        // Fails only when the tracker is closed meanwhile, and then there is nothing to wait for.
        let _closed = tokio::task::spawn_blocking(move || tracker.flush().wait()).await;
    }

    pub async fn close(&self) {
        let Some(tracker) = locked(&self.tracker).take() else { return };
        let _joined = tokio::task::spawn_blocking(move || tracker.close()).await;
        locked(&self.listeners).clear();
    }

    fn emit(&self, event: &FileEvent) {
        let listeners: Vec<Listener> =
            locked(&self.listeners).iter().map(|(_, listener)| Arc::clone(listener)).collect();
        for listener in listeners {
            listener(event);
        }
    }

    fn warn(&self, text: String) {
        let event = FileEvent { id: None, path: text, kind: FileEventKind::Warning };
        if locked(&self.listeners).is_empty() {
            locked(&self.early).push(event);
        } else {
            self.emit(&event);
        }
    }
}

impl Inner {
    async fn on_event(&self, event: Event) {
        let outcome = match event {
            Event::Changed(paths) => self.look_again(paths).await,
            Event::Rescan => {
                let paths = locked(&self.tracking.files).keys().cloned().collect();
                self.look_again(paths).await
            }
            Event::Moved { from: _, to } => self.found(&to).await,
            Event::Warning(text) => {
                self.tracking.warn(text);
                Ok(())
            }
            Event::Flush(done) => {
                done.done();
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = outcome
            && !matches!(error, crate::error::EngineError::Closed)
        {
            self.tracking.warn(format!("a changed file could not be indexed: {error}"));
        }
    }

    async fn look_again(&self, paths: Vec<Utf8PathBuf>) -> Result<()> {
        for batch in paths.chunks(BATCH) {
            let mut seen = Vec::with_capacity(batch.len());
            for path in batch {
                let source = locked(&self.tracking.files).get(path).cloned();
                let Some(source) = source else { continue };
                let agent_path = self.paths.display(&source);
                let place = Place { agent_path, source, disk: Disk::At(path.clone()) };
                match self.look(&place, None).await? {
                    FileState::Unreachable => self.orphaned(&place).await?,
                    state => {
                        let reason = state.reason().map(str::to_owned);
                        seen.extend(state.observation().map(|observation| Seen {
                            place,
                            observation,
                            reason,
                        }));
                    }
                }
            }
            let results = self.index(seen, Entry::Tracked).await?;
            for result in results {
                self.announce(&result).await?;
            }
        }
        Ok(())
    }

    /// A tracked file was renamed to a path that is not known: it enters the pool like a discovery, because a
    /// source binding is immutable and the new path is a new object (SSOT 5.5).
    async fn found(&self, path: &Utf8Path) -> Result<()> {
        if locked(&self.tracking.files).contains_key(path) {
            return Ok(());
        }
        let paths = self.paths.clone();
        let from = path.to_owned();
        let place = tokio::task::spawn_blocking(move || paths.reached(&from)).await;
        let Ok(Some(place)) = place else { return Ok(()) };
        if !matches!(place.disk, Disk::At(_)) {
            return Ok(());
        }
        let seen = Seen { place, observation: Observation::Discovered, reason: None };
        for result in self.index(vec![seen], Entry::Discovered).await? {
            self.announce(&result).await?;
        }
        Ok(())
    }

    async fn announce(&self, result: &IndexResult) -> Result<()> {
        if result.action == Action::Unchanged {
            return Ok(());
        }
        let path = self.display_of(&*self.lock().await?, &result.id);
        let kind = FileEventKind::Indexed(result.action);
        self.tracking.emit(&FileEvent { id: Some(result.id.clone()), path, kind });
        Ok(())
    }

    /// Tells the listeners that another client has written a version of a file.
    pub fn announce_foreign(&self, state: &State, id: &ObjectId) {
        let Some(current) = state.catalog.get(id).and_then(Meta::current) else { return };
        let gone = current.is_null && current.source_hash.is_none();
        let kind = FileEventKind::Indexed(if gone { Action::Deleted } else { Action::Updated });
        if state.sets.index().contains(id) {
            let path = self.display_of(state, id);
            self.tracking.emit(&FileEvent { id: Some(id.clone()), path, kind });
        }
    }

    async fn orphaned(&self, place: &Place) -> Result<()> {
        let id = file_id(&place.source);
        let path = {
            let state = self.lock().await?;
            if !state.sets.index().contains(&id) {
                return Ok(());
            }
            self.display_of(&state, &id)
        };
        self.tracking.emit(&FileEvent { id: Some(id), path, kind: FileEventKind::Orphaned });
        Ok(())
    }
}

/// A poisoned lock only means that a listener panicked; the data behind it is whole.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
