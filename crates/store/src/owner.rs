//! Operations for the owner of a store only: erase and remove (the sets bind agents and clients, not the owner).
//!
//! A separate trait, not a part of [`Store`], so that nothing an agent receives can do it.

use async_trait::async_trait;
use context_model::id::{ObjectId, SessionId};
use context_model::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::sessions::{Prune, Pruned};
use crate::{Result, Store};

/// A store in the hands of its owner.
#[async_trait]
pub trait OwnedStore: Store {
    /// Erases the texts that the owner wants to forget from all versions, the search index and everything else that the
    /// backend keeps. Envelopes, times and source hashes stay, and the versions say when and why; none of these texts is
    /// stored again. If the process ends midway, repeating the call completes it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an unknown object, path or session and for a text that is too short, `STORE_FULL` without
    /// enough free space. Nothing is erased then, unless the error says that the texts can't be read any more but their
    /// bytes are left. `STORE_UNAVAILABLE`, which may say the same; `STORE_CORRUPT`, `CLOSED`.
    async fn erase(&self, wanted: Vec<Erase>, why: &str) -> Result<ErasedCount>;

    /// Removes sessions, together with the objects that only they have encountered. They may be imported again; their
    /// erased texts stay erased. If the process ends midway, repeating the call completes it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if neither an age, a size nor a project is given. `STORE_FULL`, `STORE_UNAVAILABLE`,
    /// `STORE_CORRUPT`, `CLOSED`.
    async fn prune(&self, wanted: Prune) -> Result<Pruned>;
}

/// The objects or texts that the owner of a store wants to erase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Erase {
    /// All versions of an object.
    Object(ObjectId),
    /// All versions of the files with this canonical path.
    Path(String),
    /// Every text that contains this, and this wherever it occurs in a payload.
    Text(String),
    /// A session: its prompt, its chat, and what no other session has encountered.
    Session(SessionId),
}

/// The counts of erased texts and versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedCount {
    /// Distinct texts.
    pub texts: u64,
    /// Versions that say so now.
    pub versions: u64,
}

/// The mark of a version whose content the owner of the store has erased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// When.
    pub at: Timestamp,
    /// Why, in the owner's words.
    pub why: String,
}
