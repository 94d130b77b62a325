//! Indexing files: reads, discoveries and deletions (SSOT 5.6).

use std::convert::identity;

use camino::Utf8Path;
use context_model::id::ObjectId;
use context_model::index::{Action, Observation, decide};
use context_model::time::TxId;
use context_store::StoreError;
use serde_json::json;

use crate::blocking::blocking;
use crate::catalog::Meta;
use crate::engine::{Engine, Inner};
use crate::error::{EngineError, Result};
use crate::files::{self, FileState};
use crate::group::{Done, Job};
use crate::paths::{Disk, Place};
use crate::seen::{Seen, file_id};
use crate::state::{State, Work};

/// How often a write is repeated after a conflict.
const MAX_ATTEMPTS: usize = 100;

/// What indexing did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexResult {
    /// The object.
    pub id: ObjectId,
    /// What happened to it.
    pub action: Action,
    /// Why the object has no text, as the end of a sentence "the file …"; `None` where it has.
    pub reason: Option<String>,
}

/// How an observed file enters the session (SSOT 5.6, step 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The agent read it: pool and active set.
    Read,
    /// The agent wrote it: pool; an active one stays active.
    Written,
    /// A shell command read or wrote it: pool.
    Touched,
    /// Only its path was seen: pool.
    Discovered,
    /// The agent's harness says that it is gone: index.
    Gone,
    /// A tracker or a resume saw it: the sets stay, and what the session has not encountered is left alone.
    Tracked,
}

impl Engine {
    /// Indexes a file that the agent has read, and activates it (SSOT 5.6).
    ///
    /// `content` is what the tool read, whole; without it the client reads the file itself.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path, `IO` when there is no readable regular file and no content
    /// was given; the state is as before. What the store reports.
    pub async fn index_file(&self, path: &str, content: Option<Vec<u8>>) -> Result<IndexResult> {
        self.inner.check_open()?;
        let place = self.inner.paths.resolve(path)?;
        let (state, since) = self.inner.look(&place, content).await?;
        let is_gone = state == FileState::Gone;
        let is_known = state.is_file() || (is_gone && self.inner.knows(&place).await?);
        if !is_known {
            return Err(refusal(path, &state));
        }
        let Some(seen) = Seen::of(place, state, since) else { unreachable!("a file, or one that is gone") };
        let entry = if is_gone { Entry::Gone } else { Entry::Read };
        let mut results = self.inner.index(vec![seen], entry).await?;
        Ok(results.remove(0))
    }

    /// Indexes a file that the agent has written: the pool knows it, and it is not activated by that.
    ///
    /// # Errors
    /// As [`Engine::index_file`].
    pub async fn index_written(&self, path: &str, content: Option<Vec<u8>>) -> Result<IndexResult> {
        self.inner.check_open()?;
        let place = self.inner.paths.resolve(path)?;
        let (state, since) = self.inner.look(&place, content).await?;
        if !state.is_file() {
            return Err(refusal(path, &state));
        }
        let Some(seen) = Seen::of(place, state, since) else { unreachable!("a file that was looked at") };
        let result = self.inner.index(vec![seen], Entry::Written).await?.remove(0);
        let mut state = self.inner.lock().await?;
        if let Some(hash) = state.hash_of(&result.id) {
            state.know(&result.id, hash);
        }
        Ok(result)
    }

    /// Records that a file is confirmed to be deleted: a version with null content (SSOT 5.9).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; what the store reports.
    pub async fn index_deletion(&self, path: &str) -> Result<IndexResult> {
        self.inner.check_open()?;
        let place = self.inner.paths.resolve(path)?;
        let seen = Seen::deleted(place);
        let mut results = self.inner.index(vec![seen], Entry::Gone).await?;
        Ok(results.remove(0))
    }

    /// Takes in paths that were only seen (ls, find, grep): they enter the metadata pool without content, and
    /// never overwrite what is known (SSOT 5.6).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path, and nothing is taken in; what the store reports.
    pub async fn discover(&self, paths: &[String]) -> Result<Vec<IndexResult>> {
        self.inner.check_open()?;
        let places = paths.iter().map(|p| self.inner.paths.resolve(p)).collect::<Result<Vec<_>>>()?;
        let seen = places.into_iter().map(Seen::discovered).collect();
        self.inner.index(seen, Entry::Discovered).await
    }
}

impl Inner {
    /// Reads a file, or sorts the bytes that a tool has read. With it comes [`Inner::newest`] from before the look, as
    /// [`Seen::of`] wants it; `None` for what a tool has read.
    pub async fn look(&self, place: &Place, content: Option<Vec<u8>>) -> Result<(FileState, Option<TxId>)> {
        let limit = self.options.max_text_bytes;
        if let Some(bytes) = content {
            return Ok((FileState::of_bytes(bytes, limit), None));
        }
        let since = self.newest();
        let state = match self.attach(place) {
            Ok(path) => {
                let path = path.to_owned();
                blocking(&place.agent_path, move || files::read(&path, limit)).await?
            }
            Err(state) => state,
        };
        Ok((state, Some(since)))
    }

    /// The same on this thread.
    pub fn look_now(&self, place: &Place) -> (FileState, Option<TxId>) {
        let since = self.newest();
        let limit = self.options.max_text_bytes;
        let state = self.attach(place).map_or_else(identity, |path| files::read(path, limit));
        (state, Some(since))
    }

    /// Tracks a file that is about to be read; what is known of one that can't be read without looking at it.
    fn attach<'p>(&self, place: &'p Place) -> std::result::Result<&'p Utf8Path, FileState> {
        let unreadable = |reason: &str| Err(FileState::Unreadable { reason: reason.into() });
        match &place.disk {
            Disk::At(path) => {
                self.tracking.track(path, &place.source);
                Ok(path)
            }
            Disk::Inside => Err(FileState::Unreachable),
            Disk::Escapes => unreadable("is behind a symbolic link that leaves its mount"),
            Disk::Own => unreadable("belongs to the store itself"),
        }
    }

    async fn knows(&self, place: &Place) -> Result<bool> {
        let id = file_id(&place.source);
        if self.lock().await?.catalog.get(&id).is_some() {
            return Ok(true);
        }
        Ok(self.store().outlines(&[id]).await?.into_iter().flatten().next().is_some())
    }

    /// The indexing protocol for files that were looked at, all in one transaction.
    pub async fn index(&self, seen: Vec<Seen>, entry: Entry) -> Result<Vec<IndexResult>> {
        match self.perform(Job::Files(seen, entry), false).await? {
            Done::Files(results) => Ok(results),
            Done::Toolcall(_) => unreachable!("files were handed over"),
        }
    }

    /// Decides what an observation means and adds it to a transaction in the making. The catalog has what the store
    /// knows of the file.
    pub fn prepare(&self, state: &mut State, one: &Seen, entry: Entry, work: &mut Work) -> IndexResult {
        let id = one.id.clone();
        if entry == Entry::Tracked && !state.sets.index().contains(&id) {
            return IndexResult { id, action: Action::Unchanged, reason: one.reason.clone() };
        }
        let current = state.catalog.get(&id).and_then(Meta::current);
        let action = decide(current, one.observation);
        let result = IndexResult { id: id.clone(), action, reason: one.reason.clone() };
        if action != Action::Unchanged {
            let document = one.version();
            if action == Action::Created && one.observation == Observation::Discovered {
                // A discovery must not overwrite what another client read in this very moment.
                work.expected.push((id.clone(), None));
            }
            if !work.documents.contains(&document) {
                work.documents.push(document);
            }
        } else if current.is_none() {
            // Gone, and never known: there is no object to put into a set.
            return result;
        }
        match entry {
            Entry::Read => state.sets.activate(&id, &mut work.change),
            Entry::Written | Entry::Touched | Entry::Discovered => state.sets.promote(&id, &mut work.change),
            Entry::Gone => state.sets.encounter(&id, &mut work.change),
            Entry::Tracked => return result,
        }
        self.note_display(state, &id, &one.place, work);
        result
    }

    /// As [`Inner::refresh`] at a turn, the moment at which what other machines wrote is asked for as well.
    pub async fn refresh_at_turn(&self, state: &mut State) -> Result<()> {
        self.store().pull().await?;
        self.refresh(state).await
    }

    /// Takes in what other clients wrote since the last look. One cheap question where nobody did.
    pub async fn refresh(&self, state: &mut State) -> Result<()> {
        let latest = self.store().latest_tx().await?;
        if latest == state.seen {
            return Ok(());
        }
        let changes = self.store().changes_since(state.seen).await?;
        state.view.foreign(&changes, (&self.chat_id, state.chat_tx), &self.prompt_id);
        let known: Vec<ObjectId> = changes
            .into_iter()
            .filter(|(id, tx)| state.catalog.get(id).is_some_and(|meta| meta.tx < *tx))
            .map(|(id, _)| id)
            .collect();
        for outline in self.store().outlines(&known).await?.into_iter().flatten() {
            let id = outline.id.clone();
            state.learn_outline(outline);
            self.announce_foreign(state, &id);
            state.changed.insert(id);
        }
        state.seen = latest;
        self.heard_of(latest);
        Ok(())
    }

    /// Makes sure that the catalog has what the store knows of these objects.
    pub async fn learn(&self, state: &mut State, ids: impl Iterator<Item = ObjectId>) -> Result<()> {
        let unknown: Vec<ObjectId> = ids.filter(|id| state.catalog.get(id).is_none()).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        for outline in self.store().outlines(&unknown).await?.into_iter().flatten() {
            state.learn_outline(outline);
        }
        Ok(())
    }

    /// After a failed write: takes over what others wrote and lets the caller try again.
    pub async fn retry(&self, state: &mut State, attempt: usize, error: EngineError) -> Result<()> {
        let EngineError::Store(StoreError::Conflict(id)) = &error else { return Err(error) };
        // Each conflict means that somebody else has got on, so this ends; the bound is against a broken store.
        if attempt >= MAX_ATTEMPTS {
            return Err(error);
        }
        if *id == self.session_object || *id == self.chat_id {
            return self.reload(state).await;
        }
        for outline in self.store().outlines(std::slice::from_ref(id)).await?.into_iter().flatten() {
            state.learn_outline(outline);
        }
        Ok(())
    }

    /// Attaches trackers to files that have entered the session.
    pub fn track<'a>(&self, seen: impl IntoIterator<Item = &'a Seen>) {
        for one in seen {
            if let Disk::At(path) = &one.place.disk {
                self.tracking.track(path, &one.place.source);
            }
        }
    }

    /// Keeps the agent's own path of a file with the session, where it is not the one that would be shown.
    fn note_display(&self, state: &State, id: &ObjectId, place: &Place, work: &mut Work) {
        let new = work.displays.iter().rev().find(|(of, _)| of == id).map(|(_, path)| path.as_str());
        let by_default = self.paths.display(&place.source);
        if new.or(state.catalog.display(id)).unwrap_or(&by_default) != place.agent_path {
            work.show_as(state, id, &place.agent_path);
        }
    }
}

impl Work {
    /// Keeps with the session how the agent names a file.
    pub fn show_as(&mut self, state: &State, id: &ObjectId, path: &str) {
        if !state.has_displays && self.displays.is_empty() {
            self.session.put(&["display_paths"], json!({}));
        }
        self.session.put(&["display_paths", id.as_str()], json!(path));
        self.displays.push((id.clone(), path.to_owned()));
    }
}

/// The error of a path without a file that could be indexed.
pub(crate) fn refusal(path: &str, state: &FileState) -> EngineError {
    let reason = state.reason().unwrap_or("can't be indexed");
    EngineError::Io { path: path.to_owned(), reason: format!("the file {reason}") }
}
