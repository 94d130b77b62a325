//! The port to the store: the versions that a decision has seen.
//!
//! A decision asks [`Seen`] for each version. One that was not read yet ends the decision with [`Unseen`]; its caller reads
//! that version and decides again. So a search reads no version behind the one that fits, and a decision needs no runtime. A
//! port that answers with an `Option` could not tell a version that was not read from one that does not exist.

use std::collections::HashMap;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::time::TxId;
use context_tools::OutputOf::Reader;

use crate::evidence::Bytes;
use crate::passage::{Shows, passage_of};
use crate::search::LOOKED_BACK;
use crate::statement::{Content, Passage};

/// Names a version among those of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// The newest one.
    Now,
    /// The one that was newest after a transaction.
    After(TxId),
    /// The one that a transaction wrote; if it wrote none, as [`At::After`].
    By(TxId),
}

/// A version that a decision needs and has not seen: read it, and decide again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unseen {
    /// The object.
    pub object: ObjectId,
    /// The version of it.
    pub at: At,
}

/// A version as the store has it, with the secrets that were removed from the stored copy where they are known.
#[derive(Clone, Debug)]
pub struct SeenVersion {
    /// The transaction that wrote it.
    pub tx: TxId,
    /// Its document.
    pub document: Document,
}

/// The versions that a decision has seen so far.
#[derive(Debug)]
pub struct Seen {
    newest: TxId,
    versions: HashMap<Unseen, Option<SeenVersion>>,
}

impl SeenVersion {
    /// The text, if it has one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.document.content()
    }

    /// The bytes.
    #[must_use]
    pub fn content(&self) -> Content {
        Content::stored(self.document.source_hash(), self.tx)
    }
}

impl Seen {
    /// Begins without a version. `newest` is the newest transaction of which the client knows.
    #[must_use]
    pub fn new(newest: TxId) -> Self {
        Self { newest, versions: HashMap::new() }
    }

    /// Adds a version that a decision asked for; `None` if there is none.
    pub fn put(&mut self, asked: Unseen, version: Option<SeenVersion>) {
        let before = self.versions.insert(asked, version);
        debug_assert!(before.is_none(), "a decision asks for each version once");
    }

    /// A version of an object; `None` if there is none.
    ///
    /// # Errors
    /// `Unseen` if it was not read yet.
    pub fn version(&self, object: &ObjectId, at: At) -> Result<Option<&SeenVersion>, Unseen> {
        let asked = Unseen { object: object.clone(), at };
        match self.versions.get(&asked) {
            Some(found) => Ok(found.as_ref()),
            None => Err(asked),
        }
    }

    /// The text of a version.
    ///
    /// # Errors
    /// As [`Seen::version`].
    pub fn text(&self, object: &ObjectId, at: At) -> Result<Option<&str>, Unseen> {
        Ok(self.version(object, at)?.and_then(SeenVersion::text))
    }

    /// The newest version of a file with recorded bytes, up to a transaction, as a content of this store.
    ///
    /// # Errors
    /// As [`Seen::version`].
    pub fn content_of(&self, bytes: &Bytes, tx: TxId) -> Result<Content, Unseen> {
        let version = self.with_bytes(&bytes.file, Some(bytes.hash), tx)?;
        Ok(version.map_or(Content::lost(bytes.hash), SeenVersion::content))
    }

    /// The newest transaction of which the client knew when the decision began.
    pub(crate) fn newest(&self) -> TxId {
        self.newest
    }

    /// The versions of a file from the newest after a transaction on, as many as a search looks at.
    pub(crate) fn walk(
        &self,
        file: &ObjectId,
        mut tx: TxId,
    ) -> impl Iterator<Item = Result<&SeenVersion, Unseen>> {
        (0..LOOKED_BACK).map_while(move |_| {
            let version = self.version(file, At::After(tx)).transpose()?;
            if let Ok(version) = &version {
                tx = before(version.tx);
            }
            Some(version)
        })
    }

    /// The newest version of a file with these bytes, or in which it was gone, up to a transaction.
    pub(crate) fn with_bytes(
        &self,
        file: &ObjectId,
        hash: Option<Digest>,
        tx: TxId,
    ) -> Result<Option<&SeenVersion>, Unseen> {
        let is_it = |version: &Result<&SeenVersion, Unseen>| {
            version.as_ref().map_or(true, |version| version.document.source_hash() == hash)
        };
        self.walk(file, tx).find(is_it).transpose()
    }

    /// The newest version of a file before these bytes, which may not be stored.
    pub(crate) fn older(&self, file: &ObjectId, now: Content) -> Result<Option<&SeenVersion>, Unseen> {
        match self.version(file, At::After(now.tx.unwrap_or(self.newest)))? {
            Some(version) if version.document.source_hash() == now.hash => {
                self.version(file, At::After(before(version.tx)))
            }
            older => Ok(older),
        }
    }

    /// The lines that an output shows of a stored version from line `first` on.
    pub(crate) fn passage_read(
        &self,
        file: &ObjectId,
        content: Content,
        first: usize,
        output: &str,
    ) -> Result<Option<(Passage, Shows)>, Unseen> {
        let version = self.with_bytes(file, content.hash, content.tx.unwrap_or(self.newest))?;
        Ok(version.and_then(|version| passage_of(version.text()?, version.content(), first, output, Reader)))
    }
}

/// The transaction before another one.
pub(crate) fn before(tx: TxId) -> TxId {
    TxId(tx.0.saturating_sub(1))
}

#[cfg(test)]
#[path = "seen_tests.rs"]
pub(crate) mod tests;
