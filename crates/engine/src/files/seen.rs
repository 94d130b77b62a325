//! A file that was looked at and will be indexed.

use context_model::hash::{HashedText, identity_hash};
use context_model::id::ObjectId;
use context_model::index::Observation;
use context_model::object::{Document, ObjectType};
use context_model::source::{FilesystemSource, Source};
use context_model::time::TxId;

use super::reading::FileState;
use crate::ground::paths::{Disk, Place};
use crate::session::catalog::Meta;

/// What was seen of a file.
pub(crate) struct Seen {
    /// The file's object.
    pub id: ObjectId,
    pub place: Place,
    pub observation: Observation,
    /// Why there is no text, as the end of a sentence "the file …"; `None` if there is text.
    pub reason: Option<String>,
    /// The newest transaction that the client knew before it looked; `None` if somebody else supplied the content.
    since: Option<TxId>,
    text: Text,
    /// How many bytes the file has; 0 if they were not counted.
    size: u64,
}

/// The text of a file that was read.
enum Text {
    /// As it was read; `None` if there is none or it is not kept.
    Read(Option<HashedText>),
    /// Inside the version that it makes, if it makes one.
    Made(Box<Document>),
}

impl Seen {
    /// Takes what is at the file's place, and [`crate::ground::Ground::newest`] from before this client looked there.
    /// `None` if nothing is known.
    pub fn of(place: Place, state: FileState, since: Option<TxId>) -> Option<Self> {
        let reason = state.reason().map(str::to_owned);
        let size = state.size();
        let (observation, text) = state.observation()?;
        Some(Self { reason, since, text: Text::Read(text), size, ..Self::plain(place, observation) })
    }

    /// What is at the same place now.
    pub fn again(&self, state: FileState, since: Option<TxId>) -> Self {
        let place = || self.place.clone();
        Self::of(place(), state, since).unwrap_or_else(|| Self::plain(place(), Observation::Unreadable))
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
        Self { id, place, observation, reason: None, since: None, text: Text::Read(None), size: 0 }
    }

    /// Whether the file's latest version may show a later state of the disk than this.
    pub fn is_older_than(&self, latest: &Meta) -> bool {
        self.is_look() && self.since.is_some_and(|since| latest.tx > since)
    }

    /// Whether this client has looked at the disk itself.
    pub fn is_look(&self) -> bool {
        matches!(self.place.disk, Disk::At(_)) && self.since.is_some()
    }

    /// Makes the version now, which takes as long as reading the file, instead of when it is this client's turn to
    /// write.
    #[must_use]
    pub fn made(mut self) -> Self {
        if let Text::Read(text) = self.text {
            self.text = Text::Made(Box::new(version(&self.place.source, text, self.observation)));
        }
        self
    }

    /// The version that it makes, if it makes one.
    pub fn version(&self) -> Document {
        match &self.text {
            Text::Made(version) => (**version).clone(),
            Text::Read(text) => version(&self.place.source, text.clone(), self.observation),
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

    /// Whether there is text.
    pub fn has_text(&self) -> bool {
        self.text().is_some()
    }

    fn text(&self) -> Option<&str> {
        match &self.text {
            Text::Made(version) => version.content(),
            Text::Read(text) => text.as_ref().map(HashedText::text),
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
pub(crate) fn file_id(source: &FilesystemSource) -> ObjectId {
    ObjectId::sourced(identity_hash(ObjectType::File, Some(&Source::Filesystem(source.clone()))))
}
