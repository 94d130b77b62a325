//! The writes of one transaction, and its receipt.

use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::time::{Timestamp, TxId};

/// Writes that are applied together or not at all, in their order.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// The writes. One object may be written several times; each write makes a version.
    pub writes: Vec<Write>,
    /// The conditions that must hold before the first write: the transaction of an object's latest version (as returned
    /// by [`Store::get`](crate::Store::get) without bounds), `None` for an object that does not exist.
    pub expected: Vec<(ObjectId, Option<TxId>)>,
}

/// One write.
#[derive(Clone, Debug)]
pub enum Write {
    /// A whole document.
    Put {
        /// The document.
        document: Document,
        /// The time from which it holds; if `None`, the transaction's time, or the latest version's valid time if that is later, as that
        /// of a version from a machine with a fast clock.
        valid_time: Option<Timestamp>,
    },
    /// A change of the latest version, stored as such; the result is the latest version.
    Patch {
        /// The object.
        id: ObjectId,
        /// The change of its payload. It costs as much as the change, with one exception: in a store that was just opened,
        /// the first change that reaches deeper than top-level fields and lists reads the document.
        patch: Patch,
        /// The time from which it holds; if `None`, the transaction's time, or the latest version's valid time if that is
        /// later.
        valid_time: Option<Timestamp>,
    },
}

impl Write {
    /// A whole document that holds from now on.
    #[must_use]
    pub fn put(document: Document) -> Self {
        Self::Put { document, valid_time: None }
    }

    /// A change of the latest version that holds from the transaction's time on.
    #[must_use]
    pub fn patch(id: ObjectId, patch: Patch) -> Self {
        Self::Patch { id, patch, valid_time: None }
    }
}

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The transaction's number; the newest one if nothing was written.
    pub tx_id: TxId,
    /// The transaction's time.
    pub tx_time: Timestamp,
    /// For each write, whether it made a version (`false`: equal to the latest one).
    pub written: Vec<bool>,
}
