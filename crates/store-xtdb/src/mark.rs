//! The mark of a version that the owner of the store has erased, in its document in XTDB.

use std::collections::HashMap;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::wire::{ERASED, KEPT};
use context_store::Erased;

/// The marks of versions that a journal's owner has erased.
pub(crate) type Marks = HashMap<(ObjectId, Timestamp), Erased>;

/// The contents of `ERASED`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// When and why.
    #[serde(flatten)]
    pub erased: Erased,
    /// The content hash of the version before, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Digest>,
}

impl Mark {
    /// The mark of a document of XTDB, which is removed from it together with whatever else is not the version's own.
    pub(crate) fn take(value: &mut Value) -> Option<Self> {
        let map = value.as_object_mut()?;
        map.remove(KEPT);
        serde_json::from_str(map.remove(ERASED)?.as_str()?).ok()
    }
}
