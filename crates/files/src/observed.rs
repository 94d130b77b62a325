//! What a look at a file has found, and the files that a tool call read, wrote or named. The engine finds them, so that this works
//! in every harness.

use context_knowledge::evidence::Evidence;
use context_model::hash::{HashedText, identity_hash};
use context_model::id::ObjectId;
use context_model::index::Observation;
use context_model::object::{Document, ObjectType, Status};
use context_model::observe::{self, Candidate, Certainty};
use context_model::source::{FilesystemSource, Source};
use context_model::time::TxId;
use context_session::Session;
use context_session::blocking::blocking;
use context_session::catalog::Meta;
use context_session::client::Client;
use context_session::commit::Work;
use context_session::error::Result;
use context_session::paths::{Disk, Place};
use serde_json::{Map, Value};

use super::index::{FileEntry, FileReader, ReadFor, prepare};
use super::reading::FileState;

/// A look at one file: where it was, what was there, and its text if that is kept.
pub struct ObservedFile {
    /// The file's object.
    pub id: ObjectId,
    /// The file's path as the agent gave it, its binding, and where it is on disk.
    pub place: Place,
    /// The observation at that place.
    pub observation: Observation,
    /// Why there is no text, as the end of a sentence "the file …"; `None` if there is text.
    pub reason: Option<String>,
    /// The newest transaction that the client knew before it looked; `None` if somebody else supplied the content.
    since: Option<TxId>,
    text: SeenText,
    /// How many bytes the file has; 0 if they were not counted.
    size: u64,
}

/// The text of a file that was read.
enum SeenText {
    /// As it was read; `None` if there is none or it is not kept.
    Read(Option<HashedText>),
    /// Inside the version that it makes, if it makes one.
    Made(Box<Document>),
}

impl ObservedFile {
    /// Takes what is at the file's place, and [`context_session::client::Client::newest`] from before this client looked there.
    ///
    /// # Errors
    /// The state if nothing is known.
    pub fn of(place: Place, state: FileState, since: Option<TxId>) -> std::result::Result<Self, FileState> {
        let reason = state.reason().map(str::to_owned);
        let size = state.size();
        let (observation, text) = state.observation()?;
        Ok(Self { reason, since, text: SeenText::Read(text), size, ..Self::plain(place, observation) })
    }

    /// Returns what is at the same place now.
    pub fn again(&self, state: FileState, since: Option<TxId>) -> Self {
        let place = || self.place.clone();
        Self::of(place(), state, since).unwrap_or_else(|_| Self::plain(place(), Observation::Unreadable))
    }

    /// Only the path was seen.
    pub fn discovered(place: Place) -> Self {
        Self::plain(place, Observation::Discovered)
    }

    /// The file is confirmed to be gone.
    pub fn deleted(place: Place) -> Self {
        Self { reason: Some("was deleted".to_owned()), ..Self::plain(place, Observation::Deleted) }
    }

    fn plain(place: Place, observation: Observation) -> Self {
        let id = file_id(&place.source);
        Self { id, place, observation, reason: None, since: None, text: SeenText::Read(None), size: 0 }
    }

    /// Returns whether the file's latest version may show a later state of the disk than this.
    pub fn is_older_than(&self, latest: &Meta) -> bool {
        self.is_look() && self.since.is_some_and(|since| latest.tx > since)
    }

    /// Returns whether this client has looked at the disk itself.
    pub fn is_look(&self) -> bool {
        matches!(self.place.disk, Disk::At(_)) && self.since.is_some()
    }

    /// Makes the version now, which takes as long as reading the file, instead of when it is this client's turn to
    /// write.
    #[must_use]
    pub fn made(mut self) -> Self {
        if let SeenText::Read(text) = self.text {
            self.text = SeenText::Made(Box::new(version(&self.place.source, text, self.observation)));
        }
        self
    }

    /// The version that it makes, if it makes one.
    pub fn version(&self) -> Document {
        match &self.text {
            SeenText::Made(version) => (**version).clone(),
            SeenText::Read(text) => version(&self.place.source, text.clone(), self.observation),
        }
    }

    /// The length of its text in bytes.
    pub fn bytes(&self) -> usize {
        self.text().map_or(0, str::len)
    }

    /// How many bytes the file has, with or without text; 0 if they were not counted.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns whether its text was read and is kept.
    pub fn has_text(&self) -> bool {
        self.text().is_some()
    }

    /// Its text, if it was read and is kept.
    pub fn text(&self) -> Option<&str> {
        match &self.text {
            SeenText::Made(version) => version.content(),
            SeenText::Read(text) => text.as_ref().map(HashedText::text),
        }
    }
}

fn version(source: &FilesystemSource, text: Option<HashedText>, observation: Observation) -> Document {
    match text {
        Some(text) => Document::text_file(source.clone(), text),
        None => Document::file(source.clone(), None, observation.source_hash()),
    }
}

/// The ID of the file object with this binding.
pub fn file_id(source: &FilesystemSource) -> ObjectId {
    ObjectId::sourced(identity_hash(ObjectType::File, Some(&Source::Filesystem(source.clone()))))
}

#[cfg(test)]
impl ObservedFile {
    /// Returns whether its version is made already.
    pub fn is_made(&self) -> bool {
        matches!(self.text, SeenText::Made(_))
    }
}

/// The files that a tool call shows, as found on disk.
#[derive(Default)]
pub struct Observed {
    /// The files, and how each enters the session.
    pub files: Vec<(ObservedFile, FileEntry)>,
    /// The evidence of what the call's result shows, as far as that is known.
    pub evidence: Option<Evidence>,
    /// The outcome of the call's output.
    pub outcome: Option<String>,
    /// The call was made long ago: what is on disk now is not what it has left.
    pub is_late: bool,
}

impl FileReader {
    /// Looks at the files that a tool call concerns. What can't be looked at is left out: an observation is a
    /// by-product and never makes a tool call fail.
    pub async fn observe(
        &self,
        tool: &str,
        args: &Map<String, Value>,
        output: &str,
        status: Status,
    ) -> Result<Observed> {
        let found = observe::observe(tool, args, output, status == Status::Ok);
        if found.is_empty() {
            return Ok(Observed::default());
        }
        // A shell command is not the agent's own read or write: its files are looked at, but not activated.
        let own = !tool.eq_ignore_ascii_case("bash");
        let (read, written) = if own {
            (FileEntry::Read, FileEntry::Written)
        } else {
            (FileEntry::Touched, FileEntry::Touched)
        };
        let touched =
            [(found.reads, read), (found.writes, written), (found.discovered, FileEntry::Discovered)];
        // What a command shows as a read would counts as read; see `Inner::shown_by_shell`.
        let is_shown = observe::shown_by_shell(tool, args).is_some();
        let file_reader = self.clone();
        let files = blocking(tool, move || {
            let candidates =
                touched.into_iter().flat_map(|(list, entry)| list.into_iter().map(move |c| (c, entry)));
            candidates
                .filter_map(|(candidate, entry)| file_reader.read_candidate(&candidate, entry, is_shown))
                .collect::<Vec<_>>()
        })
        .await?;
        Ok(Observed { files, ..Observed::default() })
    }

    /// Looks at one candidate; `None` where there is no regular file that the client can see.
    fn read_candidate(
        &self,
        candidate: &Candidate,
        entry: FileEntry,
        is_shown: bool,
    ) -> Option<(ObservedFile, FileEntry)> {
        let paths = &self.client.paths;
        let raw = candidate.path.strip_prefix('@').unwrap_or(&candidate.path);
        let place = match &candidate.base {
            Some(base) => paths.resolve_from(base, raw),
            None => paths.resolve(raw),
        }
        .ok()?;
        let Disk::At(path) = &place.disk else {
            // Files in a sandbox can't be looked at, so the tool's word is enough to know the path.
            let certain = candidate.kind == Certainty::Named && place.disk == Disk::Inside;
            return certain.then(|| (ObservedFile::discovered(place), FileEntry::Discovered));
        };
        if entry == FileEntry::Discovered {
            let is_file = std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file());
            return is_file.then(|| (ObservedFile::discovered(place), entry));
        }
        let need = if entry == FileEntry::Touched && !is_shown { ReadFor::Change } else { ReadFor::Text };
        let (state, since) = self.read_now(&place, need);
        match state {
            state if state.is_file() => Some((ObservedFile::of(place, state, since).ok()?, entry)),
            // A command may have removed it. That matters only for known files, and is decided there. What was read or written
            // may be gone by the time the call is recorded; the model knows it all the same.
            state if state.is_gone() => {
                let is_known = matches!(entry, FileEntry::Read | FileEntry::Written);
                let entry = if is_known { FileEntry::Gone } else { FileEntry::Tracked };
                Some((ObservedFile::of(place, state, since).ok()?, entry))
            }
            _ => None,
        }
    }
}

impl Observed {
    /// Adds what was observed to a transaction in the making, as [`prepare`] does. Returns the objects of the files.
    pub fn add(&self, client: &Client, session: &mut Session, work: &mut Work) -> Vec<ObjectId> {
        let mut ids = Vec::with_capacity(self.files.len());
        for (seen, entry) in &self.files {
            let result = prepare(client, session, seen, *entry, work);
            let exists = session.catalog.get(&result.id).is_some() || work.documents.has(&result.id);
            if exists && !ids.contains(&result.id) {
                ids.push(result.id);
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use context_model::hash::Digest;

    use super::*;

    fn place(disk: Disk) -> Place {
        let source = FilesystemSource { filesystem_id: "disk".into(), path: "/a".into() };
        Place { agent_path: "/a".into(), source, disk }
    }

    fn seen(disk: Disk, since: Option<TxId>) -> ObservedFile {
        let state = FileState::Text(HashedText::new("text".into()));
        ObservedFile::of(place(disk), state, since).unwrap()
    }

    /// Only what this client has read from the disk can be outdated by what others have stored since.
    #[test]
    fn a_look_is_older_than_a_version_that_came_after_it() {
        let latest = |tx| Meta::of_document(&seen(Disk::Inside, None).version(), TxId(tx)).unwrap();
        let look = seen(Disk::At("/a".into()), Some(TxId(5)));
        assert!(look.is_look());
        assert_eq!([4, 5, 6].map(|tx| look.is_older_than(&latest(tx))), [false, false, true]);
        for told in [seen(Disk::At("/a".into()), None), seen(Disk::Inside, Some(TxId(5)))] {
            assert!(!told.is_look());
            assert!(!told.is_older_than(&latest(6)));
        }
    }

    #[test]
    fn the_length_of_what_is_held_in_memory() {
        assert_eq!(seen(Disk::Inside, None).bytes(), 4);
        let made = seen(Disk::Inside, None).made();
        assert!(made.is_made());
        assert_eq!((made.bytes(), made.size(), made.has_text()), (4, 4, true));
        let path_alone = ObservedFile::discovered(place(Disk::Inside));
        assert_eq!((path_alone.bytes(), path_alone.size(), path_alone.has_text()), (0, 0, false));
    }

    #[test]
    fn what_is_there_the_next_time_is_of_the_same_place() {
        let first = seen(Disk::At("/a".into()), Some(TxId(5)));
        let bytes = FileState::of_bytes(b"\0".to_vec(), 10);
        let again = first.again(bytes, Some(TxId(7)));
        assert_eq!(again.id, first.id);
        assert_eq!(again.observation, Observation::Read(Digest::of(b"\0")));
        assert_eq!((again.size(), again.has_text()), (1, false));
        assert!(again.reason.is_some() && first.reason.is_none());
        assert_eq!(first.again(FileState::Unreachable, None).observation, Observation::Unreadable);
        let gone = ObservedFile::deleted(place(Disk::At("/a".into())));
        assert_eq!((gone.observation, gone.reason.as_deref()), (Observation::Deleted, Some("was deleted")));
    }
}
