//! Rules that all backends share. For implementations of [`Store`](crate::Store), not for their callers.

pub mod erasing;
pub mod heads;
pub mod pruning;
pub mod rules;
pub mod shape;
pub mod top;
pub mod words;
