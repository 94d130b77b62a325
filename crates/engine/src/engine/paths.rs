//! Paths that lead elsewhere than when the model last used them: a link was pointed to another file, or a link has taken
//! the place of a file or of a folder.
//!
//! An object is a file under its own path. What the model knows it knows of the path that it wrote, so that
//! goes with the path to another object.

use std::sync::Arc;

use context_model::id::ObjectId;

use super::job::Job;
use super::{Inner, State};
use crate::files::index::{Entry, Need};
use crate::files::seen::{Seen, file_id};
use crate::ground::blocking::blocking;
use crate::ground::error::Result;
use crate::ground::paths::{Disk, Place};
use crate::session::Session;
use crate::session::commit::Work;

impl Inner {
    /// Finds out which paths that the model knows lead elsewhere now. Asks the disk only about paths through links, and
    /// about those of files that are gone.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn follow_paths(&self, state: &mut State) -> Result<()> {
        let session = &state.session;
        let doubtful = state.known.doubtful_paths(|file| session.hash_of(file).is_none());
        if doubtful.is_empty() {
            return Ok(());
        }
        let unmet = |file: &ObjectId| session.catalog.get(file).is_none();
        let doubtful: Vec<_> = doubtful.into_iter().map(|(path, file)| (unmet(&file), path, file)).collect();
        let paths = self.ground.paths.clone();
        let places = blocking("the paths of known files", move || {
            let places = doubtful.into_iter().filter_map(|(is_unmet, path, file)| {
                let place = paths.resolve(&path).ok()?;
                let is_moved = file_id(&place.source) != file;
                (is_moved || is_unmet && is_dangling(&place)).then_some((is_moved, place))
            });
            places.collect::<Vec<_>>()
        })
        .await?;
        for (is_moved, place) in places {
            if is_moved {
                self.follow_path(state, place).await?;
            } else {
                // What the model knows there nobody has stored, and it is gone. There must be an object that the model can be
                // told about.
                let mut found = Job::Files(vec![Seen::discovered(place)], Entry::Discovered);
                self.perform_now(state, &mut found).await?;
            }
        }
        Ok(())
    }

    /// Takes what the model knows of a path to where it leads now, if that is another file than before.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn follow_path(&self, state: &mut State, place: Place) -> Result<()> {
        let way = self.way(&place);
        let Some(old) = state.known.led(&way.path).filter(|old| **old != way.file).cloned() else {
            return Ok(());
        };
        // What is out of reach may be anything.
        if !matches!(place.disk, Disk::At(_)) {
            return Ok(());
        }
        let before = state.session.hash_of(&way.file);
        let (found, since) = self.eye().look(&place, None, Need::Text).await?;
        let (is_file, is_gone) = (found.is_file(), found.is_gone());
        let Some(seen) = Seen::of(place.clone(), found, since).filter(|_| is_file || is_gone) else {
            return Ok(());
        };
        if is_gone {
            // There must be an object that the model can be told about.
            let mut found = Job::Files(vec![Seen::discovered(place)], Entry::Discovered);
            self.perform_now(state, &mut found).await?;
        }
        let entry = match state.session.sets.active().contains(&old) {
            _ if is_gone => Entry::Gone,
            true => Entry::Read,
            false => Entry::Touched,
        };
        self.perform_now(state, &mut Job::Files(vec![seen], entry)).await?;
        let own = state.session.catalog.get(&old).and_then(|meta| meta.file());
        let own = own.map(|source| self.ground.paths.display(source));
        let path = Arc::clone(&way.path);
        let rename = |session: &mut Session, work: &mut Work| {
            if let Some(own) = own.as_deref().filter(|_| session.catalog.display(&old) == Some(&*path)) {
                work.show_as(session, &old, own);
            }
            Ok(())
        };
        self.commit(state, rename).await?;
        // A change of the other file itself is announced already.
        if before.is_none() || before == state.session.hash_of(&way.file) {
            self.announce(&state.session, &way.file);
        }
        state.known.uses(&way);
        Ok(())
    }
}

/// Returns whether there is a link at a place that leads nowhere.
fn is_dangling(place: &Place) -> bool {
    let Disk::At(path) = &place.disk else { return false };
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) && !path.exists()
}
