//! Events of trackers: from an event to a version, by the same protocol as a read.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::files::index::{FileEntry, IndexResult, ReadFor, display_of};
use crate::files::observed::{ObservedFile, file_id};
use crate::files::pending::PendingRead;
use crate::files::reading::FileState;
use crate::files::tracking::{FileEvent, FileEventKind};
use crate::session::Session;
use crate::session::blocking::blocking;
use crate::session::catalog::Meta;
use crate::session::error::{EngineError, Result};
use crate::session::paths::{Disk, Place};
use crate::session::refresh::recall_lost;
use camino::{Utf8Path, Utf8PathBuf};
use context_model::id::ObjectId;
use context_model::index::Action;
use context_model::source::FilesystemSource;
use context_watch::{Event, Sink, Touch};
use tokio::runtime::Handle;
use tracing::instrument;

use crate::engine::{Engine, Inner};

/// The number of files that are indexed in one transaction when many change at once.
const BATCH: usize = 128;

impl Engine {
    /// Calls a listener for each event, on the tracker's thread. Returns the number to unsubscribe with.
    pub fn subscribe(&self, listener: impl Fn(&FileEvent) + Send + Sync + 'static) -> u64 {
        self.inner.tracking.listen(Arc::new(listener))
    }

    /// Calls a listener as soon as a tracked file is touched, before it is read and its version stored. This is for
    /// uses that need no more detail, such as a mark in an editor. Returns the number to unsubscribe with.
    pub fn subscribe_touches(&self, listener: impl Fn(&FileEvent) + Send + Sync + 'static) -> u64 {
        self.inner.tracking.touch_listeners().add(Arc::new(listener))
    }

    /// Ends a subscription of [`Engine::subscribe`]. Ignores an unknown number.
    pub fn unsubscribe(&self, number: u64) {
        self.inner.tracking.listeners.remove(number);
    }

    /// Ends a subscription of [`Engine::subscribe_touches`]. Ignores an unknown number.
    pub fn unsubscribe_touches(&self, number: u64) {
        self.inner.tracking.touch_listeners().remove(number);
    }
}

/// Passes the tracker's events to the session while it exists.
pub(crate) struct Receiver {
    inner: Weak<Inner>,
    runtime: Handle,
}

impl Receiver {
    /// Must be called within a tokio runtime.
    pub(crate) fn new(inner: &Arc<Inner>) -> Self {
        Self { inner: Arc::downgrade(inner), runtime: Handle::current() }
    }
}

impl Sink for Receiver {
    fn deliver(&mut self, event: Event) {
        if let Some(inner) = self.inner.upgrade() {
            // Runs on the tracker's own thread: meanwhile the tracker merges new events.
            self.runtime.block_on(inner.on_event(event));
            inner.wake_for_due(&self.runtime);
        }
    }

    fn touch(&self) -> Option<Touch> {
        let inner = self.inner.upgrade()?;
        Some(inner.tracking.touch(inner.client.paths.clone()))
    }
}

impl Inner {
    async fn on_event(&self, event: Event) {
        let outcome = match event {
            Event::Changed(paths) => {
                let now = Instant::now();
                paths.iter().for_each(|path| self.tracking.pending_reads().touch(path, now));
                self.read_pending(false).await
            }
            Event::Rescan => {
                self.tracking.pending_reads().touch_all();
                self.read_pending(false).await
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
            && error != EngineError::Closed
        {
            self.tracking.warn(format!("a changed file could not be indexed yet, and will be: {error}"));
        }
    }

    /// Looks at the files that are waiting for it; with `all`, also at resting files. Files whose look fails keep
    /// waiting.
    ///
    /// # Errors
    /// Errors of the store, returned after everything that could be done.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn read_pending(&self, all: bool) -> Result<()> {
        let mut outcome = Ok(());
        if self.tracking.pending_reads().take_rescan() {
            outcome = self.rescan().await;
            if outcome.is_err() {
                self.tracking.pending_reads().touch_all();
            }
        }
        let reads = self.tracking.pending_reads().ready(Instant::now(), all);
        outcome.and(self.read_files(reads).await)
    }

    /// The same, but only for files whose text the model sees.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn read_visible(&self) -> Result<()> {
        let mut reads = self.tracking.pending_reads().ready(Instant::now(), true);
        if !reads.is_empty() {
            let state = self.lock().await?;
            reads.retain(|read| {
                let source = self.tracking.source_at(&read.path);
                source.is_some_and(|source| state.request.segments.held(&file_id(&source)).next().is_some())
            });
        }
        self.read_files(reads).await
    }

    async fn read_files(&self, reads: Vec<PendingRead>) -> Result<()> {
        let mut outcome = Ok(());
        for batch in reads.chunks(BATCH) {
            let done = self.read_some(batch).await;
            if done.is_err() {
                let now = Instant::now();
                batch.iter().for_each(|read| self.tracking.pending_reads().failed(read, now));
            }
            outcome = outcome.and(done);
        }
        self.tracking.pending_reads().tidy(Instant::now());
        outcome
    }

    async fn read_some(&self, reads: &[PendingRead]) -> Result<()> {
        let (mut seen, mut looked) = (Vec::with_capacity(reads.len()), Vec::with_capacity(reads.len()));
        let sources: Vec<_> = reads.iter().map(|read| self.tracking.source_at(&read.path)).collect();
        let needs: Vec<ReadFor> = {
            let state = self.lock().await?;
            let file_reader = self.file_reader();
            let need = |source: &FilesystemSource| {
                let id = file_id(source);
                file_reader.need(&state.session, &id, state.known.get(&id).is_some())
            };
            sources.iter().map(|source| source.as_ref().map_or(ReadFor::Change, need)).collect()
        };
        for ((read, source), need) in reads.iter().zip(sources).zip(needs) {
            let Some(source) = source else {
                self.tracking.pending_reads().seen(&read.path, u64::MAX);
                continue;
            };
            let place = self.client.paths.place(source, Disk::At(read.path.clone()));
            let one = self.file_reader().read_at(place, None, need).await?;
            if one.state == FileState::Unreachable {
                self.orphaned(&one.place).await?;
                self.tracking.pending_reads().was_read(read, false, Duration::ZERO, Instant::now());
                continue;
            }
            looked.push((read, self.tracking.rest(one.state.size())));
            seen.push(one);
        }
        if seen.is_empty() {
            return Ok(());
        }
        let first: Vec<bool> = {
            let session = &mut self.lock().await?.session;
            let read = seen.iter().filter(|one| one.state.hash().is_some());
            recall_lost(&self.client, session, read.map(|one| &one.id)).await?;
            seen.iter().map(|one| session.is_first_read(&one.id)).collect()
        };
        let results = self.index(seen, FileEntry::Tracked).await?;
        let now = Instant::now();
        for ((read, rest), result) in looked.into_iter().zip(&results) {
            self.tracking.pending_reads().was_read(read, result.action != Action::Unchanged, rest, now);
        }
        for (result, is_first) in results.iter().zip(first) {
            if is_first {
                self.announce_first(result).await?;
            }
        }
        Ok(())
    }

    /// Schedules a look at resting files at the end of their rest.
    fn wake_for_due(self: &Arc<Self>, runtime: &Handle) {
        let Some(at) = self.tracking.wake_at() else { return };
        let (inner, on) = (Arc::downgrade(self), runtime.clone());
        runtime.spawn(async move {
            tokio::time::sleep_until(at.into()).await;
            let Some(inner) = inner.upgrade() else { return };
            inner.tracking.woke(at);
            // Files whose look fails keep waiting; the first failure made a warning.
            if let Err(error) = inner.read_pending(false).await {
                tracing::debug!(%error, "a changed file is looked at again later");
                if error == EngineError::Closed {
                    return;
                }
            }
            inner.wake_for_due(&on);
        });
    }

    /// Events were lost: compares all tracked files with their stored versions, and reads those that may differ.
    async fn rescan(&self) -> Result<()> {
        let mut read = HashSet::new();
        {
            let state = self.lock().await?;
            let now = Instant::now();
            for (path, source) in self.tracking.files() {
                let id = file_id(&source);
                let current = state.session.catalog.get(&id).and_then(Meta::current);
                if current.is_some_and(|current| current.source_hash.is_some()) {
                    read.insert(id);
                } else if !self.tracking.is_unread(&path) {
                    self.tracking.pending_reads().touch(&path, now);
                }
            }
        }
        let found = self.reconcile(Some(&read)).await?;
        for place in &found.unreachable {
            self.orphaned(place).await?;
        }
        Ok(())
    }

    /// A tracked file was renamed to an unknown path. It enters the pool like a discovery, because a source binding
    /// is immutable and the new path is a new object.
    async fn found(&self, path: &Utf8Path) -> Result<()> {
        if self.tracking.source_at(path).is_some() {
            return Ok(());
        }
        let paths = self.client.paths.clone();
        let from: Utf8PathBuf = path.to_owned();
        let place = blocking(path.as_str(), move || paths.reached(&from)).await?;
        let Some(place) = place.filter(|place| matches!(place.disk, Disk::At(_))) else { return Ok(()) };
        for result in self.index(vec![ObservedFile::discovered(place)], FileEntry::Discovered).await? {
            self.announce_first(&result).await?;
        }
        Ok(())
    }

    /// Notifies the listeners of a file that an event has led to for the first time.
    async fn announce_first(&self, result: &IndexResult) -> Result<()> {
        if result.action == Action::Unchanged {
            return Ok(());
        }
        let path = display_of(&self.client, &self.lock().await?.session, &result.id);
        let kind = FileEventKind::Indexed(result.action);
        self.tracking.listeners.tell(&FileEvent { id: Some(result.id.clone()), path, kind });
        Ok(())
    }

    /// Notifies the listeners that a file of the session has another version.
    pub(crate) fn announce(&self, session: &Session, id: &ObjectId) {
        let Some(current) = session.catalog.get(id).and_then(Meta::current) else { return };
        let gone = current.is_null && current.source_hash.is_none();
        let kind = FileEventKind::Indexed(if gone { Action::Deleted } else { Action::Updated });
        if session.sets.index().contains(id) {
            let path = display_of(&self.client, session, id);
            self.tracking.listeners.tell(&FileEvent { id: Some(id.clone()), path, kind });
        }
    }

    async fn orphaned(&self, place: &Place) -> Result<()> {
        let id = file_id(&place.source);
        let path = {
            let session = &self.lock().await?.session;
            if !session.sets.index().contains(&id) {
                return Ok(());
            }
            display_of(&self.client, session, &id)
        };
        // Every event of its folder, and every look, finds it out of reach.
        if self.tracking.tells_orphaned(&id) {
            self.tracking.listeners.tell(&FileEvent { id: Some(id), path, kind: FileEventKind::Orphaned });
        }
        Ok(())
    }
}
