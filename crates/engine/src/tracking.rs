//! Trackers of a session's files (SSOT 5.8, 5.9): from an event to a version, by the same protocol as a read.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use camino::{Utf8Path, Utf8PathBuf};
use context_model::id::ObjectId;
use context_model::index::Action;
use context_model::source::FilesystemSource;
use context_watch::{Event, NotifyTracker, Options, Sink, Touch, Tracker, WatchError};

use crate::blocking::blocking;
use crate::catalog::Meta;
use crate::engine::{Engine, Inner};
use crate::error::Result;
use crate::files::FileState;
use crate::ingest::{Entry, IndexResult};
use crate::paths::{Disk, Paths, Place};
use crate::seen::{Seen, file_id};
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
    /// It may have changed; it is read now, and what that shows follows. Only for [`Engine::subscribe_touches`].
    Touched,
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
    attached: Arc<Attached>,
    listeners: Listeners,
    /// Warnings that came before anybody listened.
    early: Mutex<Vec<FileEvent>>,
}

/// What is tracked, and who is told before it is read. Apart from the tracker, so that its thread can hold it.
#[derive(Default)]
struct Attached {
    files: Mutex<HashMap<Utf8PathBuf, FilesystemSource>>,
    listeners: Listeners,
}

impl Engine {
    /// Calls a listener for each event, on the tracker's thread. Returns the number to unsubscribe with.
    pub fn subscribe(&self, listener: impl Fn(&FileEvent) + Send + Sync + 'static) -> u64 {
        let tracking = &self.inner.tracking;
        for event in locked(&tracking.early).drain(..) {
            listener(&event);
        }
        tracking.listeners.add(Arc::new(listener))
    }

    /// Calls a listener as soon as a tracked file is touched, before it is read and its version stored: for what need
    /// not know more, such as a mark in an editor. Returns the number to unsubscribe with.
    pub fn subscribe_touches(&self, listener: impl Fn(&FileEvent) + Send + Sync + 'static) -> u64 {
        self.inner.tracking.attached.listeners.add(Arc::new(listener))
    }

    /// Ends a subscription of [`Engine::subscribe`]. An unknown number is no error.
    pub fn unsubscribe(&self, number: u64) {
        self.inner.tracking.listeners.remove(number);
    }

    /// Ends a subscription of [`Engine::subscribe_touches`]. An unknown number is no error.
    pub fn unsubscribe_touches(&self, number: u64) {
        self.inner.tracking.attached.listeners.remove(number);
    }
}

impl Tracking {
    pub fn new(wanted: bool) -> Self {
        Self {
            wanted,
            tracker: Mutex::default(),
            attached: Arc::default(),
            listeners: Listeners::default(),
            early: Mutex::default(),
        }
    }

    /// Starts the tracker. Without one the session works all the same: reads and resumes index.
    pub fn start(&self, inner: &Arc<Inner>) {
        if !self.wanted {
            return;
        }
        let weak: Weak<Inner> = Arc::downgrade(inner);
        let sink = Receiver {
            inner: weak,
            runtime: tokio::runtime::Handle::current(),
            attached: Arc::clone(&self.attached),
            paths: inner.paths.clone(),
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
        if locked(&self.attached.files).insert(path.to_owned(), source.clone()).is_some() {
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
        self.listeners.clear();
        self.attached.listeners.clear();
    }

    fn warn(&self, text: String) {
        let event = FileEvent { id: None, path: text, kind: FileEventKind::Warning };
        if self.listeners.is_empty() {
            locked(&self.early).push(event);
        } else {
            self.listeners.tell(&event);
        }
    }
}

/// What the tracker tells goes to the session, as long as there is one.
struct Receiver {
    inner: Weak<Inner>,
    runtime: tokio::runtime::Handle,
    attached: Arc<Attached>,
    paths: Paths,
}

impl Sink for Receiver {
    fn deliver(&mut self, event: Event) {
        if let Some(inner) = self.inner.upgrade() {
            // On the tracker's own thread: while this runs, the tracker merges what comes.
            self.runtime.block_on(inner.on_event(event));
        }
    }

    fn touch(&self) -> Option<Touch> {
        let (attached, paths) = (Arc::clone(&self.attached), self.paths.clone());
        Some(Box::new(move |path| {
            if attached.listeners.is_empty() {
                return;
            }
            let Some(source) = locked(&attached.files).get(path).cloned() else { return };
            let (id, path) = (Some(file_id(&source)), paths.display(&source));
            attached.listeners.tell(&FileEvent { id, path, kind: FileEventKind::Touched });
        }))
    }
}

impl Inner {
    async fn on_event(&self, event: Event) {
        let outcome = match event {
            Event::Changed(paths) => self.look_again(paths).await,
            Event::Rescan => self.rescan().await,
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
                let source = locked(&self.tracking.attached.files).get(path).cloned();
                let Some(source) = source else { continue };
                let agent_path = self.paths.display(&source);
                let place = Place { agent_path, source, disk: Disk::At(path.clone()) };
                match self.look(&place, None).await? {
                    (FileState::Unreachable, _) => self.orphaned(&place).await?,
                    (state, since) => seen.extend(Seen::of(place, state, since)),
                }
            }
            let results = self.index(seen, Entry::Tracked).await?;
            for result in results {
                self.announce(&result).await?;
            }
        }
        Ok(())
    }

    /// Events were lost: all tracked files are compared with what is stored, and read where they may differ from it.
    async fn rescan(&self) -> Result<()> {
        let (mut read, mut unread) = (HashSet::new(), Vec::new());
        {
            let state = self.lock().await?;
            for (path, source) in &*locked(&self.tracking.attached.files) {
                let id = file_id(source);
                let current = state.catalog.get(&id).and_then(Meta::current);
                if current.is_some_and(|current| current.source_hash.is_some()) {
                    read.insert(id);
                } else {
                    unread.push(path.clone());
                }
            }
        }
        self.look_again(unread).await?;
        let found = self.reconcile(Some(&read)).await?;
        for place in &found.unreachable {
            self.orphaned(place).await?;
        }
        for result in &found.indexed {
            self.announce(result).await?;
        }
        Ok(())
    }

    /// A tracked file was renamed to a path that is not known: it enters the pool like a discovery, because a
    /// source binding is immutable and the new path is a new object (SSOT 5.5).
    async fn found(&self, path: &Utf8Path) -> Result<()> {
        if locked(&self.tracking.attached.files).contains_key(path) {
            return Ok(());
        }
        let paths = self.paths.clone();
        let from = path.to_owned();
        let place = blocking(path.as_str(), move || paths.reached(&from)).await?;
        let Some(place) = place else { return Ok(()) };
        if !matches!(place.disk, Disk::At(_)) {
            return Ok(());
        }
        for result in self.index(vec![Seen::discovered(place)], Entry::Discovered).await? {
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
        self.tracking.listeners.tell(&FileEvent { id: Some(result.id.clone()), path, kind });
        Ok(())
    }

    /// Tells the listeners that another client has written a version of a file.
    pub fn announce_foreign(&self, state: &State, id: &ObjectId) {
        let Some(current) = state.catalog.get(id).and_then(Meta::current) else { return };
        let gone = current.is_null && current.source_hash.is_none();
        let kind = FileEventKind::Indexed(if gone { Action::Deleted } else { Action::Updated });
        if state.sets.index().contains(id) {
            let path = self.display_of(state, id);
            self.tracking.listeners.tell(&FileEvent { id: Some(id.clone()), path, kind });
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
        self.tracking.listeners.tell(&FileEvent { id: Some(id), path, kind: FileEventKind::Orphaned });
        Ok(())
    }
}

/// Listeners by the number to unsubscribe with.
#[derive(Default)]
struct Listeners(Mutex<Vec<(u64, Listener)>>);

impl Listeners {
    fn add(&self, listener: Listener) -> u64 {
        let mut all = locked(&self.0);
        let number = all.last().map_or(0, |(n, _)| n + 1);
        all.push((number, listener));
        number
    }

    fn remove(&self, number: u64) {
        locked(&self.0).retain(|(n, _)| *n != number);
    }

    fn clear(&self) {
        locked(&self.0).clear();
    }

    fn is_empty(&self) -> bool {
        locked(&self.0).is_empty()
    }

    /// Calls each listener without the lock, so that it may subscribe and unsubscribe.
    fn tell(&self, event: &FileEvent) {
        let all: Vec<Listener> = locked(&self.0).iter().map(|(_, listener)| Arc::clone(listener)).collect();
        all.iter().for_each(|listener| listener(event));
    }
}

/// A poisoned lock only means that a listener panicked; the data behind it is whole.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
