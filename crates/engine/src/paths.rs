//! Paths that lead elsewhere than when the model last used them: a link was pointed to another file, or a link has taken
//! the place of a file or of a folder.
//!
//! An object is a file under its own path. The model's knowledge belongs to the path that it wrote, so the knowledge follows
//! the path to another object.

use std::sync::Arc;

use crate::files::index::{FileEntry, ReadFor};
use crate::files::observed::{ObservedFile, file_id};
use crate::session::Session;
use crate::session::blocking::blocking;
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::Result;
use crate::session::paths::{Disk, Place};
use context_evidence::Way;
use context_model::id::ObjectId;

use crate::engine::{Inner, State};
use crate::job::Job;

/// The state of a path that the model knows, if action is needed.
enum AtPath {
    /// The path leads to another object.
    Elsewhere,
    /// No file: the version that the model knows was never stored.
    Lost,
    /// A file exists again.
    Back,
}

impl Inner {
    /// Finds the paths known to the model that lead elsewhere now. Asks the disk only about paths through links, and about
    /// those of files that are gone.
    pub(crate) async fn follow_paths(&self, state: &mut State, fsync: Fsync) -> Result<()> {
        let session = &state.session;
        let doubtful = state.known.doubtful_paths(|file| session.hash_of(file).is_none());
        if doubtful.is_empty() {
            return Ok(());
        }
        let unmet = |file: &ObjectId| session.catalog.get(file).is_none();
        let doubtful: Vec<_> = doubtful.into_iter().map(|(path, file)| (unmet(&file), path, file)).collect();
        let paths = self.client.paths.clone();
        let places = blocking("the paths of known files", move || {
            let places = doubtful.into_iter().filter_map(|(is_unmet, path, file)| {
                let place = paths.resolve(&path).ok()?;
                if file_id(&place.source) != file {
                    return Some((AtPath::Elsewhere, place));
                }
                let Disk::At(path) = &place.disk else { return None };
                match std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
                    true => Some((AtPath::Back, place)),
                    false => is_unmet.then_some((AtPath::Lost, place)),
                }
            });
            places.collect::<Vec<_>>()
        })
        .await?;
        for (found, place) in places {
            match found {
                AtPath::Elsewhere => self.follow_path(state, fsync, place).await?,
                AtPath::Lost => self.note_lost(state, fsync, place).await?,
                AtPath::Back => self.read_again(state, fsync, place).await?,
            }
        }
        Ok(())
    }

    /// Records a file that is gone and was never stored: a notice to the model needs an object.
    async fn note_lost(&self, state: &mut State, fsync: Fsync, place: Place) -> Result<()> {
        let seen = self.file_reader().read_at(place, None, ReadFor::Change).await?;
        if seen.state.is_gone() && self.works_here(state).await? {
            let mut found = Job::files(vec![ObservedFile::discovered(seen.place)], FileEntry::Discovered);
            self.perform_now(state, fsync, &mut found).await?;
        }
        Ok(())
    }

    /// Records that a file is gone whose version came from another machine: when this process looked, it knew no version, so
    /// there was no deletion to record.
    pub(crate) async fn note_gone(&self, state: &mut State, fsync: Fsync, way: &Way) -> Result<()> {
        let place = self.client.paths.resolve(&way.path)?;
        let is_absent = matches!(&place.disk, Disk::At(path) if !path.exists());
        if !is_absent || file_id(&place.source) != way.file || state.session.hash_of(&way.file).is_none() {
            return Ok(());
        }
        let seen = self.file_reader().read_at(place, None, ReadFor::Change).await?;
        if seen.state.is_gone() {
            self.perform_now(state, fsync, &mut Job::files(vec![seen], FileEntry::Gone)).await?;
        }
        Ok(())
    }

    /// True if the agent's tools work on this machine: one of the session's files is here.
    pub(crate) async fn works_here(&self, state: &State) -> Result<bool> {
        let files = state.session.sets.index().iter().filter(|id| state.session.hash_of(id).is_some());
        let sources = files.filter_map(|id| state.session.catalog.get(id)?.file().cloned());
        let (sources, paths) = (sources.collect::<Vec<_>>(), self.client.paths.clone());
        blocking("the session's files", move || {
            sources.iter().any(|source| matches!(paths.locate(source), Disk::At(path) if path.is_file()))
        })
        .await
    }

    /// True if the file at a path that a tool has read is gone. An address, a member of an archive and a path with lines never
    /// had one, and an output without a whole line may be the tool's own words.
    pub(crate) async fn is_lost(&self, way: &Way, output: &str) -> Result<bool> {
        if way.path.get(2..).is_some_and(|path| path.contains(':')) || !output.contains('\n') {
            return Ok(false);
        }
        let place = self.client.paths.resolve(&way.path)?;
        // The tool may have read the entry that is there instead: a folder, a pipe.
        if !matches!(&place.disk, Disk::At(path) if !path.exists()) {
            return Ok(false);
        }
        Ok(self.file_reader().read_at(place, None, ReadFor::Change).await?.state.is_gone())
    }

    /// Reads a file that exists again. Its event may be lost: a process that found it gone and then ended left nothing by which
    /// the next one would track it.
    async fn read_again(&self, state: &mut State, fsync: Fsync, place: Place) -> Result<()> {
        let seen = self.file_reader().read_at(place, None, ReadFor::Text).await?;
        if seen.state.hash().is_some() {
            self.perform_now(state, fsync, &mut Job::files(vec![seen], FileEntry::Tracked)).await?;
        }
        Ok(())
    }

    /// Moves the model's knowledge of a path to the file that it leads to now, if that is another file than before.
    pub(crate) async fn follow_path(&self, state: &mut State, fsync: Fsync, place: Place) -> Result<()> {
        let way = self.way(&place);
        let Some(old) = state.known.led(&way.path).filter(|old| **old != way.file).cloned() else {
            return Ok(());
        };
        // A place out of reach may hold anything.
        if !matches!(place.disk, Disk::At(_)) {
            return Ok(());
        }
        let before = state.session.hash_of(&way.file);
        let seen = self.file_reader().read_at(place, None, ReadFor::Text).await?;
        let is_gone = seen.state.is_gone();
        if !is_gone && !seen.state.is_file() {
            return Ok(());
        }
        if is_gone {
            // A notice to the model needs an object.
            let mut found =
                Job::files(vec![ObservedFile::discovered(seen.place.clone())], FileEntry::Discovered);
            self.perform_now(state, fsync, &mut found).await?;
        }
        let entry = match state.session.sets.active().contains(&old) {
            _ if is_gone => FileEntry::Gone,
            true => FileEntry::Read,
            false => FileEntry::Touched,
        };
        self.perform_now(state, fsync, &mut Job::files(vec![seen], entry)).await?;
        let own = state.session.catalog.get(&old).and_then(|meta| meta.file());
        let own = own.map(|source| self.client.paths.display(source));
        let path = Arc::clone(&way.path);
        let rename = |session: &Session, work: &mut Work| {
            if let Some(own) = own.as_deref().filter(|_| session.catalog.display(&old) == Some(&*path)) {
                work.show_as(session, &old, own);
            }
            Ok(())
        };
        self.commit(state, fsync, rename).await?;
        // A change of the other file itself is announced already.
        if before.is_none() || before == state.session.hash_of(&way.file) {
            self.announce(&state.session, &way.file);
        }
        state.known.uses(&way);
        Ok(())
    }

    /// Returns the path and its file as a call used them.
    pub(crate) fn way_to(way: Way, file: &ObjectId) -> Way {
        // A path leads to another file now through a link.
        let is_alias = way.is_alias || way.file != *file;
        Way { file: file.clone(), is_alias, ..way }
    }

    /// The file that a tool's argument names; some models put an `@` before the path.
    pub(crate) fn file_at(&self, path: &str) -> Option<ObjectId> {
        self.way_of(path).map(|way| way.file)
    }

    /// The same with the path as the agent has it.
    pub(crate) fn way_of(&self, path: &str) -> Option<Way> {
        let place = self.client.paths.resolve(path.strip_prefix('@').unwrap_or(path)).ok()?;
        Some(self.way(&place))
    }

    /// Returns the agent's path of a place, and the file that it leads to.
    pub(crate) fn way(&self, place: &Place) -> Way {
        let is_alias = self.client.paths.display(&place.source) != place.agent_path;
        Way { path: place.agent_path.as_str().into(), file: file_id(&place.source), is_alias }
    }
}
