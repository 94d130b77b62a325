//! What a look at a file has found, and the files that a tool call read, wrote or named. The engine finds them, so that this works
//! in every harness.

use context_knowledge::evidence::Evidence;
use context_knowledge::told::{whole_read, whole_write};
use context_model::hash::identity_hash;
use context_model::id::ObjectId;
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

/// A look at one file: where it was, and what was there.
pub struct ObservedFile {
    /// The file's object.
    pub id: ObjectId,
    /// The file's path as the agent gave it, its binding, and where it is on disk.
    pub place: Place,
    /// What was at that place.
    pub state: FileState,
    /// The newest transaction that the client knew before it looked; `None` if somebody else supplied the state.
    since: Option<TxId>,
}

impl ObservedFile {
    /// Takes what is at a place, and [`context_session::client::Client::newest`] from before this client looked there.
    pub fn of(place: Place, state: FileState, since: Option<TxId>) -> Self {
        Self { id: file_id(&place.source), place, state, since }
    }

    /// Only the path was seen.
    pub fn discovered(place: Place) -> Self {
        Self::of(place, FileState::Discovered, None)
    }

    /// Returns whether the file's latest version may show a later state of the disk than this.
    pub fn is_older_than(&self, latest: &Meta) -> bool {
        self.is_look() && self.since.is_some_and(|since| latest.tx > since)
    }

    /// Returns whether this client has looked at the disk itself.
    pub fn is_look(&self) -> bool {
        matches!(self.place.disk, Disk::At(_)) && self.since.is_some()
    }

    /// Makes the version of a text now, which takes as long as reading the file, instead of when it is this client's
    /// turn to write.
    #[must_use]
    pub fn made(mut self) -> Self {
        if let FileState::Text(text) = self.state {
            let (hash, source) = (text.hash(), self.place.source.clone());
            self.state = FileState::Made { hash, version: Box::new(Document::text_file(source, text)) };
        }
        self
    }

    /// The version that it makes, if it makes one.
    pub fn version(&self) -> Document {
        let source = || self.place.source.clone();
        match &self.state {
            FileState::Made { version, .. } => (**version).clone(),
            FileState::Text(text) => Document::text_file(source(), text.clone()),
            state => Document::file(source(), None, state.hash()),
        }
    }
}

/// The ID of the file object with this binding.
pub fn file_id(source: &FilesystemSource) -> ObjectId {
    ObjectId::sourced(identity_hash(ObjectType::File, Some(&Source::Filesystem(source.clone()))))
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
        let mut files = blocking(tool, move || {
            let candidates =
                touched.into_iter().flat_map(|(list, entry)| list.into_iter().map(move |c| (c, entry)));
            candidates
                .filter_map(|(candidate, entry)| file_reader.read_candidate(&candidate, entry, is_shown))
                .collect::<Vec<_>>()
        })
        .await?;
        for (seen, entry) in files.iter_mut().filter(|(seen, _)| seen.place.disk == Disk::Inside) {
            let text = match entry {
                FileEntry::Read => whole_read(args, output),
                FileEntry::Written => whole_write(args),
                _ => None,
            };
            match text.map(|text| text.as_bytes().to_vec()) {
                Some(bytes) => {
                    let limit = self.client.options.max_text_bytes;
                    seen.state = blocking(tool, move || FileState::of_bytes(bytes, limit)).await?;
                }
                None => *entry = FileEntry::Discovered,
            }
        }
        Ok(Observed { files, ..Observed::default() })
    }

    /// Looks at one candidate; `None` unless the client sees a regular file there, or the file is inside a sandbox.
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
            return certain.then(|| (ObservedFile::discovered(place), entry));
        };
        if entry == FileEntry::Discovered {
            let is_file = std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file());
            return is_file.then(|| (ObservedFile::discovered(place), entry));
        }
        let need = if entry == FileEntry::Touched && !is_shown { ReadFor::Change } else { ReadFor::Text };
        let seen = self.read_now(place, need);
        if seen.state.is_file() {
            return Some((seen, entry));
        }
        // A command may have removed it. That matters only for known files, and is decided there. What was read or written
        // may be gone by the time the call is recorded; the model knows it all the same.
        let is_known = matches!(entry, FileEntry::Read | FileEntry::Written);
        let entry = if is_known { FileEntry::Gone } else { FileEntry::Tracked };
        seen.state.is_gone().then_some((seen, entry))
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
    use context_model::hash::{Digest, HashedText};
    use context_model::index::Observation;

    use super::*;

    fn place(disk: Disk) -> Place {
        let source = FilesystemSource { filesystem_id: "disk".into(), path: "/a".into() };
        Place { agent_path: "/a".into(), source, disk }
    }

    fn seen(disk: Disk, since: Option<TxId>) -> ObservedFile {
        let state = FileState::Text(HashedText::new("text".into()));
        ObservedFile::of(place(disk), state, since)
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
    fn a_text_is_the_same_inside_the_version_that_it_makes() {
        let [read, made] = [seen(Disk::Inside, None), seen(Disk::Inside, None).made()];
        assert!(matches!(made.state, FileState::Made { .. }));
        for one in [&read, &made] {
            assert_eq!((one.state.text(), one.state.size(), one.state.reason()), (Some("text"), 4, None));
            assert_eq!(one.state.observation(), Observation::Read(Digest::of(b"text")));
            assert_eq!(one.version().text_hash(), Some(Digest::of(b"text")));
        }
        assert_eq!(read.version(), made.version());
    }

    #[test]
    fn what_has_no_text_makes_a_version_of_its_hash_alone() {
        let place = || place(Disk::At("/a".into()));
        let bytes = FileState::of_bytes(b"\0".to_vec(), 10);
        for (state, size, observation) in [
            (bytes, 1, Observation::Read(Digest::of(b"\0"))),
            (FileState::Discovered, 0, Observation::Discovered),
            (FileState::Deleted, 0, Observation::Deleted),
            (FileState::Gone, 0, Observation::Deleted),
            (FileState::Replaced { reason: "is a pipe".into() }, 0, Observation::Deleted),
            (FileState::Oversized { reason: "is large".into() }, 0, Observation::Oversized),
            (FileState::Unreadable { reason: "is locked".into() }, 0, Observation::Unreadable),
            (FileState::Unreachable, 0, Observation::Unreachable),
        ] {
            let one = ObservedFile::of(place(), state, Some(TxId(5))).made();
            assert_eq!((one.state.text(), one.state.size()), (None, size));
            assert_eq!(one.state.observation(), observation);
            assert_eq!(one.state.reason().is_none(), one.state == FileState::Discovered);
            assert_eq!(one.version(), Document::file(place().source, None, observation.source_hash()));
        }
        assert_eq!(FileState::Deleted.reason(), Some("was deleted"));
    }
}
