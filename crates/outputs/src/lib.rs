//! Tool-output storage: the native half of `pi-context-manager/storage`.
//!
//! One JSON file for each tool output in one directory, found again by the words of its description. This
//! crate has the parts that are worth being native: names that can't leave the directory ([`name`]), files
//! that are whole or absent ([`directory`]), the keyword rule over 100,000 descriptions ([`relevance`]) and a
//! cache bounded by bytes ([`cache`]). What a stored context contains, and when each part is used, is decided
//! by the caller.
//!
//! Architecture invariant: nothing here knows about JavaScript, and nothing is read outside the directory that the
//! caller names.

pub mod cache;
pub mod directory;
mod durable;
pub mod error;
pub mod metadata;
pub mod name;
pub mod relevance;

pub use cache::OutputCache;
pub use directory::{Durability, OutputDirectory};
pub use error::OutputError;
pub use relevance::RelevanceIndex;
