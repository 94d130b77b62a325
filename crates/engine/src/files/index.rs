//! The indexing protocol: from a look at a file to a version of its object and its place in the sets.

use std::convert::identity;
use std::io::ErrorKind;
use std::sync::Arc;

use crate::session::Session;
use crate::session::blocking::blocking;
use crate::session::catalog::Meta;
use crate::session::client::Client;
use crate::session::commit::Work;
use crate::session::error::{EngineError, Result};
use crate::session::paths::{Disk, Place};
use camino::Utf8Path;
use context_model::id::ObjectId;
use context_model::index::{Action, Observation, decide};

use super::look::{ObservedFile, Since};
use super::reading::{self, FileState};
use super::tracking::Tracking;

/// The outcome of indexing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexResult {
    /// The object.
    pub id: ObjectId,
    /// The action taken on it.
    pub action: Action,
    /// The reason why the object has no text, as the end of a sentence "the file …"; `None` if it has text.
    pub reason: Option<String>,
}

/// The way in which an observed file enters the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileEntry {
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
    /// A tracker or a resume saw it: the sets stay, and files that the session has not encountered are ignored.
    Tracked,
}

/// The purpose of a look at a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFor {
    /// Its text: a client reads or writes the file, or has read it before.
    Text,
    /// The hash, to tell whether it has changed: it was only named, so the text of a large file waits until a client reads it.
    Change,
}

/// A reader of files: the client's paths, its tracker, and the limits of the text that it keeps.
#[derive(Clone)]
pub(crate) struct FileReader {
    /// The client whose paths it resolves.
    pub client: Arc<Client>,
    /// The tracking of the files that it reads.
    pub tracking: Arc<Tracking>,
}

impl FileReader {
    /// Reads a file, or classifies the bytes that a tool has read.
    pub(crate) async fn read_at(
        &self,
        place: Place,
        content: Option<Vec<u8>>,
        need: ReadFor,
    ) -> Result<ObservedFile> {
        if let Some(bytes) = content {
            return Ok(ObservedFile::of(place, FileState::from_bytes(bytes, self.limit(need)), None));
        }
        let (file_reader, path) = (self.clone(), place.agent_path.clone());
        let seen = blocking(&path, move || file_reader.read_now(place, need)).await?;
        // If it can't be kept, a later process may take an unmounted drive for an empty folder.
        if let Err(error) = self.tracking.drives.save(&self.client).await {
            tracing::debug!(%error, "the drives could not be noted");
        }
        Ok(seen)
    }

    /// Reads a file on this thread.
    pub(crate) fn read_now(&self, place: Place, need: ReadFor) -> ObservedFile {
        let since = Since { tx: self.client.newest(), heard: self.tracking.pending_reads().heard() };
        let limit = self.limit(need);
        let state = self.attach(&place).map_or_else(identity, |path| self.read(path, limit));
        let is_reached = state != FileState::Unreachable;
        let seen = ObservedFile::of(place, state, Some(since));
        self.tracking.looked(&seen.id, is_reached);
        seen
    }

    /// Reads a file at a path without symbolic links. A file whose directory has disappeared is gone if what is left of
    /// its path is on the file system that had it; with that file system itself it is only out of reach.
    fn read(&self, path: &Utf8Path, limit: u64) -> FileState {
        let state = match reading::read(path, limit) {
            FileState::Unreachable if self.has_lost_its_folder(path) => FileState::Gone,
            state => state,
        };
        match state {
            FileState::Gone if self.tracking.drives.is_away(path) => FileState::Unreachable,
            state => {
                if state.is_file() {
                    self.tracking.drives.saw(path);
                }
                state
            }
        }
    }

    /// True if the directory of a file that is not there was removed, moved or renamed, or something else took
    /// the place of one of its parents.
    fn has_lost_its_folder(&self, path: &Utf8Path) -> bool {
        let Some(left) = nearest_directory(path) else { return false };
        match self.tracking.drives.device_of_parent(path) {
            Some(device) => context_platform::device(left.as_std_path()) == Some(device),
            // This process has not seen it there, but the session's own folders are in their places.
            None => self.client.paths.is_in_session(left),
        }
    }

    /// Returns the purpose of a look at a session's file that no client is reading now. `is_known`: the model knows its text.
    pub(crate) fn need(&self, session: &Session, file: &ObjectId, is_known: bool) -> ReadFor {
        let latest = session.catalog.get(file);
        let was_read =
            latest.is_some_and(|latest| latest.text_units() > self.client.options.named_text_bytes);
        if is_known || was_read || session.sets.active().contains(file) {
            ReadFor::Text
        } else {
            ReadFor::Change
        }
    }

    /// Returns the maximum number of bytes of text that a look keeps.
    pub(crate) fn limit(&self, need: ReadFor) -> u64 {
        let most = self.client.options.max_text_bytes;
        if need == ReadFor::Text { most } else { most.min(self.client.options.named_text_bytes) }
    }

    /// True if a look has left out a text that would be kept of a file that was read.
    fn has_waived(&self, one: &ObservedFile) -> bool {
        let kept = self.limit(ReadFor::Change) + 1..=self.limit(ReadFor::Text);
        one.is_look() && one.state.text().is_none() && kept.contains(&one.state.size())
    }

    /// Tracks a file that is about to be read. For a file that can't be read, returns its known state without a look at it.
    fn attach<'p>(&self, place: &'p Place) -> std::result::Result<&'p Utf8Path, FileState> {
        let unreadable = |reason: &str| Err(FileState::Unreadable { reason: reason.into() });
        match &place.disk {
            Disk::At(path) => {
                self.tracking.track(path, &place.source);
                Ok(path)
            }
            Disk::Inside => Err(FileState::Unreachable),
            Disk::Escapes => unreadable("is behind a symbolic link that leaves its mount"),
            Disk::Endless => unreadable("is behind a symbolic link that can't be followed"),
            Disk::Own => unreadable("belongs to the store itself"),
        }
    }

    /// Looks again at files that got a stored version since the last look: that version may be newer, and what was seen here
    /// would replace it for good. The same applies to files whose text was omitted but has since been read.
    ///
    /// # Errors
    /// `INTERNAL` if a look panicked.
    pub(crate) async fn read_anew<'a>(
        &self,
        session: &Session,
        seen: impl Iterator<Item = &'a mut ObservedFile>,
    ) -> Result<()> {
        for one in seen {
            let Some(latest) = session.catalog.get(&one.id) else { continue };
            let has_waived = self.has_waived(one);
            let need = if has_waived { self.need(session, &one.id, false) } else { ReadFor::Text };
            let lacks_text =
                has_waived && need == ReadFor::Text && session.hash_of(&one.id) != one.state.hash();
            if lacks_text || one.is_older_than(latest) {
                *one = self.read_at(one.place.clone(), None, need).await?;
            }
        }
        Ok(())
    }
}

/// The nearest directory above a path that can be read; `None` if something on the way can't be looked at.
fn nearest_directory(path: &Utf8Path) -> Option<&Utf8Path> {
    for ancestor in path.ancestors().skip(1) {
        match std::fs::read_dir(ancestor) {
            Ok(_) => return Some(ancestor),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Decides the effect of an observation and adds it to a transaction under construction. The catalog must already have the
/// store's version of the file.
pub(crate) fn prepare(
    client: &Client,
    session: &Session,
    one: &ObservedFile,
    entry: FileEntry,
    work: &mut Work,
) -> IndexResult {
    let (id, observation) = (one.id.clone(), one.state.observation());
    let reason = one.state.reason().map(str::to_owned);
    if entry == FileEntry::Tracked && !session.sets.after(&work.change).is_indexed(&id) {
        return IndexResult { id, action: Action::Unchanged, reason };
    }
    let latest = session.catalog.get(&id);
    let current = latest.and_then(Meta::current);
    let action = match decide(current, observation) {
        // The first reader of it adds its text.
        Action::Unchanged if one.state.text().is_some() && latest.is_some_and(Meta::lacks_text) => {
            Action::Updated
        }
        action => action,
    };
    let result = IndexResult { id: id.clone(), action, reason };
    if action != Action::Unchanged {
        let document = one.version();
        let is_discovery = action == Action::Created && observation == Observation::Discovered;
        // A discovery must not overwrite another client's newer read, nor an older look a newer one.
        if is_discovery || one.is_look() {
            work.expected.entry(id.clone()).or_insert(latest.map(|meta| meta.tx));
        }
        work.documents.push_new(document);
    } else if current.is_none() {
        // Gone or out of reach, and never known: no object exists to put into a set.
        return result;
    }
    match entry {
        FileEntry::Read => session.sets.activate(&id, &mut work.change),
        FileEntry::Written | FileEntry::Touched | FileEntry::Discovered => {
            session.sets.promote(&id, &mut work.change)
        }
        FileEntry::Gone => session.sets.encounter(&id, &mut work.change),
        FileEntry::Tracked => return result,
    }
    note_display(client, session, &id, &one.place, work);
    result
}

/// The path of a file as the agent knows it.
pub(crate) fn display_of(client: &Client, session: &Session, id: &ObjectId) -> String {
    let source = session.catalog.get(id).and_then(Meta::file);
    match (session.catalog.display(id), source) {
        (Some(path), _) => path.to_owned(),
        (None, Some(source)) => client.paths.display(source),
        (None, None) => id.to_string(),
    }
}

/// The error for a file that can't be indexed: `IO`, with the path as the agent gave it.
pub(crate) fn refusal(path: &str, state: &FileState) -> EngineError {
    let reason = state.reason().unwrap_or("can't be indexed");
    EngineError::Io { path: path.to_owned(), reason: format!("the file {reason}") }
}

/// Stores the agent's own path of a file in the session, if it is not the one that would be shown.
fn note_display(client: &Client, session: &Session, id: &ObjectId, place: &Place, work: &mut Work) {
    let new = work.displays.get(id).map(String::as_str);
    let by_default = client.paths.display(&place.source);
    if new.or(session.catalog.display(id)).unwrap_or(&by_default) != place.agent_path {
        work.show_as(session, id, &place.agent_path);
    }
}

#[cfg(test)]
mod tests {
    use context_model::object::Document;
    use context_model::source::FilesystemSource;
    use context_model::time::TxId;
    use rstest::rstest;

    use super::*;
    use crate::session::options::Options;

    async fn file_reader() -> FileReader {
        let limits = |options| Options { max_text_bytes: 20, named_text_bytes: 10, ..options };
        let client = Arc::new(crate::files::tests::client_with(limits).await);
        FileReader { client, tracking: Arc::new(Tracking::new(false, 0)) }
    }

    fn seen(state: FileState, tx: Option<TxId>) -> ObservedFile {
        let source = FilesystemSource { filesystem_id: "disk".into(), path: "/a".into() };
        let place = Place { agent_path: "/a".into(), source, disk: Disk::At("/a".into()) };
        ObservedFile::of(place, state, tx.map(|tx| Since { tx, heard: 0 }))
    }

    /// A file without text, with this many bytes.
    #[rstest]
    #[case::kept_in_any_case(9, false)]
    #[case::the_longest_that_is_kept(10, false)]
    #[case::the_shortest_that_waits(11, true)]
    #[case::the_longest_that_waits(20, true)]
    #[case::kept_in_no_case(21, false)]
    #[tokio::test]
    async fn look_waives_a_text_that_a_read_would_keep(#[case] size: usize, #[case] waived: bool) {
        let file_reader = file_reader().await;
        let bytes = || FileState::from_bytes(vec![0; size], 20);
        assert_eq!(file_reader.has_waived(&seen(bytes(), Some(TxId(1)))), waived);
        assert!(!file_reader.has_waived(&seen(bytes(), None)), "this client has not looked");
        let text = FileState::from_bytes(vec![b'x'; size], 20);
        assert!(!file_reader.has_waived(&seen(text, Some(TxId(1)))), "a text of {size} bytes");
    }

    /// Checks whether a look makes a version of a file that is stored with its text, or by its hash alone.
    #[rstest]
    #[case::the_same_text(true, "text", true, Action::Unchanged)]
    #[case::the_same_bytes_and_no_text(true, "text", false, Action::Unchanged)]
    #[case::still_no_text(false, "text", false, Action::Unchanged)]
    #[case::its_text_at_last(false, "text", true, Action::Updated)]
    #[case::another_text(true, "other", true, Action::Updated)]
    #[tokio::test]
    async fn unchanged_file_makes_no_version(
        #[case] has_text: bool,
        #[case] now: &str,
        #[case] brings_text: bool,
        #[case] action: Action,
    ) {
        let file_reader = file_reader().await;
        let state = |text: &str, limit| FileState::from_bytes(text.as_bytes().to_vec(), limit);
        let stored = seen(state("text", if has_text { 20 } else { 0 }), Some(TxId(1)));
        let document: Document = stored.version();
        let (mut session, mut work) = (Session::default(), Work::default());
        session.meet(&stored.id, Meta::from_document(&document, TxId(1)).unwrap());
        let one = seen(state(now, if brings_text { 20 } else { 0 }), Some(TxId(2)));
        let result = prepare(&file_reader.client, &session, &one, FileEntry::Read, &mut work);
        assert_eq!(result.action, action);
        assert_eq!(work.documents.has(&one.id), action == Action::Updated);
        assert!(session.sets.after(&work.change).active().any(|id| *id == one.id));
    }

    /// A caller who supplied a content has seen it; a look at the name alone cannot have seen a later one.
    #[tokio::test]
    async fn look_at_the_disk_does_not_replace_a_newer_version() {
        let file_reader = file_reader().await;
        let state = || FileState::from_bytes(b"text".to_vec(), 20);
        let place = seen(state(), None).place;
        for (one, is_checked) in [
            (seen(state(), None), false),
            (seen(state(), Some(TxId(1))), true),
            (ObservedFile::discovered(place), true),
        ] {
            let (session, mut work) = (Session::default(), Work::default());
            let result = prepare(&file_reader.client, &session, &one, FileEntry::Read, &mut work);
            assert_eq!(result.action, Action::Created);
            assert_eq!(work.expected.contains_key(&one.id), is_checked);
        }
    }
}
