//! The bitemporal document store: one trait, several backends in crates of their own, one conformance suite.
//!
//! Architecture invariants:
//! - History is append-only. No call of [`Store`] rewrites or removes a version. Only the owner of a store can, with
//!   [`OwnedStore`], which no agent is given.
//! - A write that was acknowledged is durable against a killed process and readable at once.
//! - Transaction numbers rise strictly, and transaction times never fall, whatever the clock does.
//! - Appending to a growing document costs as much as the change; reading gives the whole document.
#![warn(unreachable_pub)]

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::patch::Patch;
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use serde_json::{Map, Value};

#[cfg(feature = "conformance")]
pub mod around;
pub mod backend;
pub mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
pub mod memory;
pub mod opening;
mod owner;
mod query;
mod read_only;
pub mod redacted;
pub mod sessions;
mod transaction;
pub mod transfer;

pub use error::StoreError;
pub use owner::Erased;
pub use owner::{Erase, ErasedCount, OwnedStore};
pub use query::{DAMAGED_TEXT, Filter, Hit, Search};
pub use read_only::ReadOnly;
pub use transaction::{Receipt, Transaction, Write};

/// The result of every call of a store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A store of versioned documents. All calls may be made from many tasks at once.
#[async_trait]
pub trait Store: Send + Sync {
    /// Applies a transaction whole or not at all, and returns when it is durable.
    ///
    /// A `Put` whose payload (and `source_hash`) equals the version that holds at its valid time writes
    /// nothing; without back-dated or future-dated versions that is the object's latest version.
    ///
    /// # Errors
    /// `CONFLICT` when an expectation does not hold, `INVALID_ARGUMENT` for an envelope that differs from the
    /// stored one, a patch of an unknown object, one that does not fit or one that would hold from before the
    /// latest version on; `STORE_FULL`, `STORE_UNAVAILABLE`, `CLOSED`.
    async fn transact(&self, transaction: Transaction) -> Result<Receipt> {
        self.transact_marked(transaction, Vec::new()).await
    }

    /// As [`Store::transact`], for versions of another store, with the mark of each whole document that its owner has erased there.
    /// A store that takes no writes refuses them.
    ///
    /// # Errors
    /// As [`Store::transact`].
    async fn transact_marked(&self, transaction: Transaction, marks: Vec<Option<Erased>>) -> Result<Receipt>;

    /// As [`Store::transact`], but acknowledged as soon as it survives the end of the process, if the store can do
    /// that earlier. Surviving a power loss is left to the next [`Store::settle`].
    ///
    /// # Errors
    /// As [`Store::transact`].
    async fn transact_deferred(&self, transaction: Transaction) -> Result<Receipt> {
        self.transact(transaction).await
    }

    /// Waits until everything that was acknowledged survives what [`Store::transact`] promises to survive.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`; nothing can then be written until the store is reopened.
    async fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// The version of an object at a point in valid and transaction time; `None` if there was none.
    ///
    /// # Errors
    /// `STORE_CORRUPT` when the stored object does not have the hash it was stored with.
    async fn get(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>>;

    /// As [`Store::get`] for many objects in one read, in the order of the IDs.
    ///
    /// # Errors
    /// As [`Store::get`].
    async fn get_many(&self, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>>;

    /// The latest versions of many objects without their contents, all from one moment: for deciding and
    /// rendering.
    ///
    /// # Errors
    /// As [`Store::get`].
    async fn outlines(&self, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>>;

    /// The version of an object that a transaction wrote, whatever its valid time is; `None` if it wrote none. If it wrote
    /// several, the latest of them.
    ///
    /// # Errors
    /// As [`Store::get`].
    async fn version(&self, id: &ObjectId, tx: TxId) -> Result<Option<Version>> {
        let Some(before) = tx.0.checked_sub(1) else { return Ok(None) };
        // As a rule nothing was dated back, so that the version that holds as of the transaction is the one.
        let at = AsOf { valid_time: None, known: Some(KnownAt::Tx(tx)) };
        match self.get(id, at).await? {
            Some(version) if version.tx_id != tx => {}
            found => return Ok(found),
        }
        let found = self.history_page(id, TxId(before), 1).await?.into_iter();
        Ok(found.filter(|version| version.tx_id == tx).max_by_key(|version| version.valid_time))
    }

    /// All versions of an object, oldest first: in the order of their valid times, among equal ones of their transactions.
    /// So the order is the same on every machine, in whatever order the versions arrived there.
    ///
    /// # Errors
    /// As [`Store::get`].
    async fn history(&self, id: &ObjectId) -> Result<Vec<Version>>;

    /// The versions of an object in the order of their transactions: those written by transactions after this one, up to a
    /// given number, fewer if they are large; empty at the end. The versions of one transaction are never split.
    ///
    /// Memory use follows the size of the part, while a growing document's whole history takes the square of its
    /// length.
    ///
    /// # Errors
    /// As [`Store::get`].
    async fn history_page(&self, id: &ObjectId, after: TxId, most: usize) -> Result<Vec<Version>> {
        let mut versions = self.history(id).await?;
        versions.retain(|version| version.tx_id > after);
        versions.sort_by_key(|version| version.tx_id);
        let last = versions.get(most.max(1) - 1).map(|version| version.tx_id);
        versions.retain(|version| last.is_none_or(|last| version.tx_id <= last));
        Ok(versions)
    }

    /// A part of [`Store::history`], in its order: the versions behind this valid time and transaction, up to a given number,
    /// fewer if they are large; empty at the end. Versions that share both times are never split.
    ///
    /// # Errors
    /// As [`Store::get`].
    async fn history_part(
        &self,
        id: &ObjectId,
        after: Option<(Timestamp, TxId)>,
        most: usize,
    ) -> Result<Vec<Version>> {
        let place = |version: &Version| Some((version.valid_time, version.tx_id));
        let mut versions = self.history(id).await?;
        versions.retain(|version| place(version) > after);
        let last = versions.get(most.max(1) - 1).map(place);
        versions.retain(|version| last.is_none_or(|last| place(version) <= last));
        Ok(versions)
    }

    /// The same as [`Store::history`], with each version of a growing document as the patch that made it: for callers that
    /// put the documents together themselves, at the cost of the written bytes. `None` if the store can't give it so.
    ///
    /// # Errors
    /// As [`Store::get`].
    async fn history_as_changes(&self, id: &ObjectId) -> Result<Option<Vec<Entry>>> {
        let _ = id;
        Ok(None)
    }

    /// The versions of an object as they were written, in the order of [`Store::history`]. A version that was written as a
    /// patch is one here if it follows the version that it changes; otherwise it is whole.
    ///
    /// Made for exports: unlike the answer of [`Store::history`], which has each version of a patched document whole, this
    /// one grows with the written bytes.
    ///
    /// # Errors
    /// As [`Store::get`].
    async fn journal(&self, id: &ObjectId) -> Result<Vec<Entry>> {
        let versions = self.history(id).await?;
        Ok(versions.into_iter().map(Entry::from).collect())
    }

    /// The IDs of the objects whose latest version fits the filter, in the order of their first transaction.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `CLOSED`.
    async fn query(&self, filter: &Filter) -> Result<Vec<ObjectId>>;

    /// The newest transaction number, 0 in an empty store. Cheap: made for a check at every turn.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `CLOSED`.
    async fn latest_tx(&self) -> Result<TxId>;

    /// Brings in what other machines wrote since the last call; [`Store::latest_tx`] then tells of it. A store whose
    /// answers come from a copy on this machine asks its database once here, so that not every read has to; all
    /// others have nothing to do.
    ///
    /// # Errors
    /// `STORE_FULL`, `STORE_CORRUPT`, `CLOSED`. A database that does not answer is not an error: the copy is used.
    async fn pull(&self) -> Result<()> {
        Ok(())
    }

    /// The objects that transactions after this one wrote, each with its newest transaction.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `CLOSED`.
    async fn changes_since(&self, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>>;

    /// Full-text search over the contents of all versions, best match first. One object may be hit several
    /// times, once for each of its contents. SQLite ranks by words that few texts have, and lists the newest texts first if
    /// there are none. A text that may be a hit and does not match its hash ends no search: it is a hit that says so
    /// ([`Hit::damaged`]).
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `STORE_FULL` where the index can't be completed, `STORE_CORRUPT` if the index is damaged, `CLOSED`. Any
    /// text is a valid query.
    async fn search(&self, query: &Search) -> Result<Vec<Hit>>;

    /// A named value that belongs to the client's local storage and not to the shared history (for instance a random
    /// filesystem ID). The first caller's `default` is kept and returned to all later callers.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `STORE_FULL`, `CLOSED`.
    async fn local_value(&self, name: &str, default: &str) -> Result<String>;

    /// A note that this client left in its local storage with [`Store::set_note`]. It belongs to no history and may
    /// be lost at any time. Some stores keep no notes.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `CLOSED`.
    async fn note(&self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Leaves a note, replacing the previous one with this name.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `STORE_FULL`, `CLOSED`.
    async fn set_note(&self, _name: &str, _text: &str) -> Result<()> {
        Ok(())
    }

    /// A view of the same history: it refuses every write, makes no writer wait and waits for none, and each call sees the
    /// newest versions. It is closed by itself.
    ///
    /// A store behind a journal gives the history that this machine has.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `CLOSED`.
    fn read_only(self: Arc<Self>) -> Result<Arc<dyn Store>>;

    /// The files on this machine that the store keeps for itself, absolute. Recording a read of one would change the
    /// file again, in an endless loop.
    fn files(&self) -> Vec<std::path::PathBuf> {
        Vec::new()
    }

    /// Reads everything and names each version whose stored hash does not match. Empty means intact.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `STORE_FULL`, `CLOSED`.
    async fn verify(&self) -> Result<Vec<Damage>>;

    /// Waits until everything that was acknowledged has reached its final place.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`, `STORE_FULL`.
    async fn flush(&self) -> Result<()>;

    /// Ends the store's threads and connections. Idempotent; later calls fail with `CLOSED`.
    ///
    /// # Errors
    /// The error that the last pending write reports.
    async fn close(&self) -> Result<()>;
}

/// One version of an object, with its two times.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The whole document.
    pub document: Document,
    /// The transaction that wrote it.
    pub tx_id: TxId,
    /// When the store learned of it.
    pub tx_time: Timestamp,
    /// When it begins to hold.
    pub valid_time: Timestamp,
    /// When and why the store's owner erased something in it. The erased text is null or replaced in the document;
    /// `content_hash` is that of the original document.
    pub erased: Option<Erased>,
}

/// One version of an object in the form in which it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The document or patch that was written.
    pub change: Change,
    /// The transaction that wrote it.
    pub tx_id: TxId,
    /// When the store learned of it.
    pub tx_time: Timestamp,
    /// When it begins to hold.
    pub valid_time: Timestamp,
    /// When and why the store's owner erased something in it.
    pub erased: Option<Erased>,
}

/// The change that a write made to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A whole document.
    Document(Document),
    /// A change of the version before it.
    Patch(Patch),
}

impl From<Version> for Entry {
    fn from(version: Version) -> Self {
        let Version { document, tx_id, tx_time, valid_time, erased } = version;
        Self { change: Change::Document(document), tx_id, tx_time, valid_time, erased }
    }
}

/// An object's latest version without its content. The latest version is the one that a read without bounds
/// gives: the newest valid time, among equal ones the newest transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// The object's ID.
    pub id: ObjectId,
    /// The object's type.
    pub object_type: ObjectType,
    /// The source binding.
    pub source: Option<Source>,
    /// The payload's fields but `content`. A version that was written as a patch has neither its lists and
    /// objects here nor its `content_hash`.
    pub payload: Map<String, Value>,
    /// True if the version has no content text.
    pub is_null: bool,
    /// The transaction that wrote the version.
    pub tx_id: TxId,
    /// The time from which the version holds.
    pub valid_time: Timestamp,
}

/// A point in valid and transaction time. Among the versions that the store knew, the one with the newest valid time
/// not after the given one holds; among equal ones, the one from the newest transaction. The default has no bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsOf {
    /// The valid time; no bound where it is `None`.
    pub valid_time: Option<Timestamp>,
    /// The bound on the store's knowledge; no bound if it is `None`.
    pub known: Option<KnownAt>,
}

/// A bound on the store's knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownAt {
    /// Up to and including this transaction.
    Tx(TxId),
    /// Up to and including this transaction time.
    Time(Timestamp),
}

/// A version that failed the integrity check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The object; `None` if the damage is outside any version.
    pub id: Option<ObjectId>,
    /// The version's transaction.
    pub tx_id: Option<TxId>,
    /// A description of the damage.
    pub what: String,
}
