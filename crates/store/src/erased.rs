//! What is left of a version that the owner of the store has erased.

use context_model::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The mark of a version whose content the owner of the store has erased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// When.
    pub at: Timestamp,
    /// Why, in the owner's words.
    pub why: String,
}
