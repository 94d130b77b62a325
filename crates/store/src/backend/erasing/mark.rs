//! What stands in place of an erased text.

/// Replaces what was erased in a payload.
pub const MARK: &str = "[erased]";
