//! Rules that every backend has in the same words.

use context_model::id::ObjectId;
use context_model::time::Timestamp;

use crate::{Result, StoreError};

/// Returns whether a path is this prefix or lies below it, at a segment border.
pub fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The error of a write whose envelope is not the stored one.
pub fn envelope_differs(id: &ObjectId) -> StoreError {
    StoreError::Invalid(format!("object {id} exists with another type or source, which never change"))
}

/// The error of a patch of an object that does not exist.
pub fn unknown(id: &ObjectId) -> StoreError {
    StoreError::Invalid(format!("object {id} does not exist; write it whole before patching it"))
}

/// The valid time of a patch: never earlier than that of the version that it changes.
pub fn patch_time(wanted: Option<Timestamp>, tx_time: Timestamp, latest: Timestamp) -> Result<Timestamp> {
    match wanted {
        None => Ok(tx_time.max(latest)),
        Some(time) if time >= latest => Ok(time),
        Some(_) => Err(StoreError::Invalid(
            "a patch can't have an earlier valid time than the version that it changes; write a whole document".into(),
        )),
    }
}
