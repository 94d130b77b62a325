//! Indexing files: reads, writes, discoveries, deletions, and whole trees.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::files::index::{FileEntry, IndexResult, ReadFor, refusal};
use crate::files::many::{Portion, Readers};
use crate::files::observed::ObservedFile;
use crate::files::reading::FileState;
use crate::session::catalog::Meta;
use crate::session::client::Fsync;
use crate::session::error::{EngineError, Result};
use crate::session::paths::{Disk, Place};
use crate::session::refresh;
use context_evidence::{Content, InFlightKind, Wrote};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::index::Action;
use tracing::instrument;

use crate::engine::{Engine, Inner, State};
use crate::job::Job;

/// The outcome of indexing many files.
#[derive(Debug, Default)]
pub struct Indexed {
    /// The outcome for each file that could be indexed, in the order of the paths.
    pub results: Vec<IndexResult>,
    /// The paths without a readable regular file, and why, in the order of the paths.
    pub refused: Vec<(String, EngineError)>,
}

impl Engine {
    /// Indexes a file that the agent has read, and activates it.
    ///
    /// `content` is everything that the tool read; without it, the client reads the file itself. With the ID of the tool
    /// call, its result counts as exactly what was read here.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path, `IO` if the path has no readable regular file and the caller passed no
    /// content; the state is then as before. Errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn index_file(
        &self,
        path: &str,
        content: Option<Vec<u8>>,
        call_id: Option<&str>,
    ) -> Result<IndexResult> {
        self.inner.check_open()?;
        let place = self.inner.client.paths.resolve(path)?;
        let text = content.as_deref().map(String::from_utf8_lossy).map(|text| Arc::<str>::from(&*text));
        let seen = self.inner.file_reader().read_at(place, content, ReadFor::Text).await?;
        let is_gone = seen.state == FileState::Gone;
        let is_known = seen.state.is_file() || (is_gone && self.inner.knows(&seen.id).await?);
        if !is_known {
            return Err(refusal(path, &seen.state));
        }
        let entry = if is_gone { FileEntry::Gone } else { FileEntry::Read };
        let (way, hash) = (self.inner.way(&seen.place), seen.state.hash());
        let indexed = self.inner.index(vec![seen], entry).await;
        if let (Some(hash), Some(text)) = (hash, text) {
            let read = match indexed {
                Ok(_) => {
                    let content = Content::stored(Some(hash), self.inner.client.newest());
                    InFlightKind::Read { content, text: None }
                }
                Err(_) => InFlightKind::Read { content: Content::lost(hash), text: Some(text) },
            };
            self.inner.records().passed_in.add(call_id, way, read);
        }
        Ok(indexed?.remove(0))
    }

    /// Indexes a file that the agent has written. It enters the pool but is not activated. With the ID of the tool call, its
    /// result counts as exactly this write.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn index_written(
        &self,
        path: &str,
        content: Option<Vec<u8>>,
        call_id: Option<&str>,
    ) -> Result<IndexResult> {
        self.inner.check_open()?;
        let place = self.inner.client.paths.resolve(path)?;
        let text = content.as_deref().map(String::from_utf8_lossy).map(|text| text.into_owned());
        let seen = self.inner.file_reader().read_at(place, content, ReadFor::Text).await?;
        if !seen.state.is_file() {
            return Err(refusal(path, &seen.state));
        }
        let (id, hash) = (seen.id.clone(), seen.state.hash());
        let way = self.inner.way(&seen.place);
        let before = {
            let state = self.inner.lock().await?;
            state.known.base(&way, state.in_sight())
        };
        let indexed = self.inner.index(vec![seen], FileEntry::Written).await;
        let mut state = self.inner.lock().await?;
        if let Some(hash) = hash {
            // The model knows the text that it wrote, even if it could not be stored.
            let latest = state.session.catalog.get(&id).filter(|_| state.session.hash_of(&id) == Some(hash));
            let content = latest.map_or(Content::lost(hash), |meta| Content::stored(Some(hash), meta.tx));
            if let (None, Some(text)) = (content.tx, text) {
                self.inner.records().archive.draft(&text);
            }
            state.known.uses(&way);
            state.known.wrote(&id, content);
            let (call, path) = (call_id.map(str::to_owned), Arc::clone(&way.path));
            let wrote = Wrote { content, before, call, path };
            state.written.add(id, wrote.clone());
            self.inner.records().passed_in.add(call_id, way, InFlightKind::Wrote(wrote));
        }
        Ok(indexed?.remove(0))
    }

    /// Records that a file is confirmed to be deleted: a version with null content.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn index_deletion(&self, path: &str) -> Result<IndexResult> {
        self.inner.check_open()?;
        let place = self.inner.client.paths.resolve(path)?;
        let seen = ObservedFile::of(place, FileState::Deleted, None);
        let mut results = self.inner.index(vec![seen], FileEntry::Gone).await?;
        Ok(results.remove(0))
    }

    /// Takes in paths that were only seen (ls, find, grep). They enter the metadata pool without content, and never overwrite
    /// known content.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; nothing is then taken in. Errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn discover(&self, paths: &[String]) -> Result<Vec<IndexResult>> {
        self.inner.check_open()?;
        let places = paths.iter().map(|p| self.inner.client.paths.resolve(p)).collect::<Result<Vec<_>>>()?;
        let seen = places.into_iter().map(ObservedFile::discovered).collect();
        self.inner.index(seen, FileEntry::Discovered).await
    }

    /// Indexes many files, for instance a whole project, so that they can be searched and the model knows about them.
    /// They enter the metadata pool; the active set does not change. This client reads each file.
    ///
    /// They are written in several transactions. If one fails, the earlier ones stay, and calling this again
    /// continues from there: a file that is already stored writes nothing.
    ///
    /// # Errors
    /// Errors of the store. A file's own error is in [`Indexed::refused`]: `INVALID_ARGUMENT` for an impossible path, `IO` if
    /// the path has no readable regular file.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn index_files(&self, paths: Vec<String>) -> Result<Indexed> {
        let known = self.inner.hashes().await?;
        let paths: Arc<[String]> = paths.into();
        let mut readers = Readers::start(self.inner.file_reader(), Arc::clone(&paths), known);
        let (mut results, mut refused) = (Vec::with_capacity(paths.len()), Vec::new());
        let mut repeated = Vec::new();
        while let Some(Portion { seen, again, refused: some, .. }) = readers.next().await? {
            refused.extend(some);
            repeated.extend(again);
            let (numbers, seen): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
            if !seen.is_empty() {
                results.extend(numbers.into_iter().zip(self.inner.index(seen, FileEntry::Touched).await?));
            }
        }
        let indexed: HashSet<ObjectId> = results.iter().map(|(_, result)| result.id.clone()).collect();
        for (number, id) in repeated {
            if indexed.contains(&id) {
                results.push((number, IndexResult { id, action: Action::Unchanged, reason: None }));
            } else {
                let reason = "the file was refused under the name by which it came first".into();
                refused.push((number, EngineError::Io { path: paths[number].clone(), reason }));
            }
        }
        results.sort_unstable_by_key(|(number, _)| *number);
        refused.sort_unstable_by_key(|(number, _)| *number);
        Ok(Indexed {
            results: results.into_iter().map(|(_, result)| result).collect(),
            refused: refused.into_iter().map(|(n, error)| (paths[n].clone(), error)).collect(),
        })
    }
}

impl Inner {
    /// Looks at a file that the session knows, if the client can see it, and indexes what it finds. Returns the hash
    /// of its bytes, if it has any.
    pub(crate) async fn read_one(&self, place: Place) -> Result<Option<Digest>> {
        let Some(seen) = self.read_now(place).await? else { return Ok(None) };
        let hash = seen.state.hash();
        self.index(vec![seen], FileEntry::Tracked).await?;
        Ok(hash)
    }

    /// Returns the present state on the disk, as far as the client can read it.
    async fn read_now(&self, place: Place) -> Result<Option<ObservedFile>> {
        if !matches!(place.disk, Disk::At(_)) {
            return Ok(None);
        }
        let seen = self.file_reader().read_at(place, None, ReadFor::Text).await?;
        let was_read = seen.state.hash().is_some() || seen.state.is_gone();
        Ok(was_read.then_some(seen))
    }

    /// Reads those files that the model may need a notice about and whose latest version was stored by its hash alone, by a
    /// session that did not need the text.
    pub(crate) async fn read_deferred(&self, state: &mut State, fsync: Fsync) -> Result<()> {
        for file in state.known.open() {
            let latest = state.session.catalog.get(&file).filter(|latest| latest.lacks_text());
            let Some(source) = latest.and_then(Meta::file).cloned() else { continue };
            if state.known.knowledge(&file, state.in_sight()).base.is_none() {
                continue;
            }
            let place = self.place_of(source).await?;
            if let Some(seen) = self.read_now(place).await? {
                self.perform_now(state, fsync, &mut Job::files(vec![seen], FileEntry::Tracked)).await?;
            }
        }
        Ok(())
    }

    /// Adds the files that the request mentions and the session does not know, once the store has them: while the store could
    /// not be written, a read was not recorded, and another client's version of the file came later. Each is compared with the
    /// disk, and so is each file with a version from another client: that version may have come late.
    pub(crate) async fn index_mentioned_files(&self, state: &mut State, fsync: Fsync) -> Result<()> {
        let is_unknown = |file: &ObjectId| state.session.catalog.get(file).is_none();
        let unknown: Vec<ObjectId> = state.known.open().into_iter().filter(is_unknown).collect();
        if !unknown.is_empty() {
            refresh::learn(&self.client, &mut state.session, unknown.iter().cloned()).await?;
            self.apply(state);
        }
        let mut files: Vec<ObjectId> = state.session.foreign.iter().cloned().collect();
        files.sort();
        for file in unknown.into_iter().chain(files) {
            if let Some(source) = state.session.catalog.get(&file).and_then(Meta::file).cloned() {
                let place = self.place_of(source).await?;
                if let Some(seen) = self.read_now(place).await? {
                    self.perform_now(state, fsync, &mut Job::files(vec![seen], FileEntry::Tracked)).await?;
                }
            }
            state.session.foreign.remove(&file);
        }
        Ok(())
    }

    async fn knows(&self, file: &ObjectId) -> Result<bool> {
        if self.lock().await?.session.catalog.get(file).is_some() {
            return Ok(true);
        }
        let stored = self.store().outlines(std::slice::from_ref(file)).await?;
        Ok(stored.into_iter().flatten().next().is_some())
    }

    /// Returns the known hashes of the session's files.
    async fn hashes(&self) -> Result<HashMap<ObjectId, Digest>> {
        let state = self.lock().await?;
        let hashes = state.session.sets.index().iter().filter_map(|id| {
            let current = state.session.catalog.get(id).and_then(Meta::current)?;
            Some((id.clone(), current.source_hash?))
        });
        Ok(hashes.collect())
    }
}
