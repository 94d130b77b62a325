//! A look at one file, and the version that it makes.

use crate::session::catalog::Meta;
use crate::session::paths::{Disk, Place};
use context_model::hash::identity_hash;
use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::source::{FilesystemSource, Source};
use context_model::time::TxId;

use super::reading::FileState;

/// A look at one file: its place, and its state there.
pub(crate) struct ObservedFile {
    /// The file's object.
    pub id: ObjectId,
    /// The file's path as the agent gave it, its binding, and where it is on disk.
    pub place: Place,
    /// The state found at that place.
    pub state: FileState,
    /// The state of knowledge before the client looked; `None` if a caller supplied the state.
    since: Option<Since>,
}

/// The state of knowledge before a look at the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    /// The newest transaction that the client knew.
    pub tx: TxId,
    /// The number of events that its trackers had heard ([`super::pending::PendingReads::heard`]).
    pub heard: u64,
}

impl ObservedFile {
    /// Takes the state at a place, and what was known before this client looked there.
    pub(crate) fn of(place: Place, state: FileState, since: Option<Since>) -> Self {
        Self { id: file_id(&place.source), place, state, since }
    }

    /// Only the path was seen.
    pub(crate) fn discovered(place: Place) -> Self {
        Self::of(place, FileState::Discovered, None)
    }

    /// True if the file's latest version may show a later state of the disk than this.
    pub(crate) fn is_older_than(&self, latest: &Meta) -> bool {
        self.is_look() && self.since.is_some_and(|since| latest.tx > since.tx)
    }

    /// The number of events that this state answers: all, if a caller supplied it, and none if only the path was seen.
    pub(crate) fn answers(&self) -> u64 {
        match self.since {
            Some(since) => since.heard,
            None if self.state == FileState::Discovered => 0,
            None => u64::MAX,
        }
    }

    /// True if this client has looked at the disk itself.
    pub(crate) fn is_look(&self) -> bool {
        matches!(self.place.disk, Disk::At(_)) && self.since.is_some()
    }

    /// Makes the version of a text now, which takes as long as reading the file, instead of when it is this client's
    /// turn to write.
    #[must_use]
    pub(crate) fn made(mut self) -> Self {
        if let FileState::Text(text) = self.state {
            let (hash, source) = (text.hash(), self.place.source.clone());
            self.state = FileState::Made { hash, version: Box::new(Document::text_file(source, text)) };
        }
        self
    }

    /// The version that it makes, if it makes one.
    pub(crate) fn version(&self) -> Document {
        let source = || self.place.source.clone();
        match &self.state {
            FileState::Made { version, .. } => (**version).clone(),
            FileState::Text(text) => Document::text_file(source(), text.clone()),
            state => Document::file(source(), None, state.hash()),
        }
    }
}

/// The ID of the file object with this binding.
pub(crate) fn file_id(source: &FilesystemSource) -> ObjectId {
    ObjectId::sourced(identity_hash(ObjectType::File, Some(&Source::Filesystem(source.clone()))))
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

    fn seen(disk: Disk, tx: Option<TxId>) -> ObservedFile {
        let state = FileState::Text(HashedText::new("text".into()));
        ObservedFile::of(place(disk), state, tx.map(|tx| Since { tx, heard: 3 }))
    }

    /// Only content that this client has read from the disk can be older than a version that others have stored since.
    #[test]
    fn look_is_older_than_a_later_version() {
        let latest = |tx| Meta::from_document(&seen(Disk::Inside, None).version(), TxId(tx)).unwrap();
        let look = seen(Disk::At("/a".into()), Some(TxId(5)));
        assert!(look.is_look());
        assert_eq!([4, 5, 6].map(|tx| look.is_older_than(&latest(tx))), [false, false, true]);
        for told in [seen(Disk::At("/a".into()), None), seen(Disk::Inside, Some(TxId(5)))] {
            assert!(!told.is_look());
            assert!(!told.is_older_than(&latest(6)));
        }
    }

    #[test]
    fn look_answers_the_events_before_it() {
        let disk = || Disk::At("/a".into());
        assert_eq!(seen(disk(), Some(TxId(5))).answers(), 3);
        assert_eq!(seen(disk(), None).answers(), u64::MAX);
        assert_eq!(ObservedFile::discovered(place(disk())).answers(), 0);
    }

    #[test]
    fn text_is_the_same_in_a_prepared_version() {
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
    fn file_without_text_is_stored_by_its_hash_alone() {
        let place = || place(Disk::At("/a".into()));
        let bytes = FileState::from_bytes(b"\0".to_vec(), 10);
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
            let one = ObservedFile::of(place(), state, Some(Since { tx: TxId(5), heard: 3 })).made();
            assert_eq!((one.state.text(), one.state.size()), (None, size));
            assert_eq!(one.state.observation(), observation);
            assert_eq!(one.state.reason().is_none(), one.state == FileState::Discovered);
            assert_eq!(one.version(), Document::file(place().source, None, observation.source_hash()));
        }
        assert_eq!(FileState::Deleted.reason(), Some("was deleted"));
    }
}
