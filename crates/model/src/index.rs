//! The index decision of the specification: what an observation of a file means for its object.

use serde::{Deserialize, Serialize};

use crate::hash::Digest;
use crate::object::Document;

/// A client's observation of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The bytes were read: their SHA-256.
    Read(Digest),
    /// Only the path is known (ls, find, grep).
    Discovered,
    /// The file exists and can't be read (permission, not a regular file): its content is as it was, as far
    /// as anybody knows.
    Unreadable,
    /// The file is so large that not even its hash is taken: whatever was stored is not its content any more.
    Oversized,
    /// The file is confirmed to be gone.
    Deleted,
    /// The file is out of reach: it may or may not exist.
    Unreachable,
}

impl Observation {
    /// The `source_hash` of the version that it makes, if it makes one.
    pub fn source_hash(self) -> Option<Digest> {
        if let Self::Read(hash) = self { Some(hash) } else { None }
    }
}

/// The effect of indexing on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The first version was written.
    Created,
    /// A new version was written.
    Updated,
    /// Nothing was written.
    Unchanged,
    /// A version with null content was written.
    Deleted,
}

impl Action {
    /// `created`, `updated`, `unchanged` or `deleted`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Deleted => "deleted",
        }
    }
}

/// The facts known about an object's current version, which are enough to decide without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// The stored `source_hash`; `None` for a path that was only discovered, and after a deletion.
    pub source_hash: Option<Digest>,
    /// True if the stored content is null.
    pub is_null: bool,
}

impl Current {
    /// Reads it from a document.
    #[must_use]
    pub fn of(document: &Document) -> Self {
        Self { source_hash: document.source_hash(), is_null: document.content().is_none() }
    }
}

/// Decides the effect of an observation on an object. Every other action than [`Action::Unchanged`] writes a version: with the
/// text that was read, if any, and [`Observation::source_hash`].
///
/// A discovery never overwrites. A deletion of an object that is null already, or that the store has never
/// seen, writes nothing, and neither does a file out of reach. Unequal bytes always make a version, so A, B, A makes three.
#[must_use]
pub fn decide(current: Option<Current>, observation: Observation) -> Action {
    match (observation, current) {
        (Observation::Unreachable, _) | (Observation::Deleted, None) => Action::Unchanged,
        (_, None) => Action::Created,
        (Observation::Discovered | Observation::Unreadable, Some(_)) => Action::Unchanged,
        (Observation::Read(hash), Some(now)) if now.source_hash == Some(hash) => Action::Unchanged,
        (Observation::Deleted | Observation::Oversized, Some(now))
            if now.is_null && now.source_hash.is_none() =>
        {
            Action::Unchanged
        }
        (Observation::Read(_) | Observation::Oversized, Some(_)) => Action::Updated,
        (Observation::Deleted, Some(_)) => Action::Deleted,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read(text: &str) -> Observation {
        Observation::Read(Digest::of(text.as_bytes()))
    }

    fn at(text: &str) -> Option<Current> {
        Some(Current { source_hash: Some(Digest::of(text.as_bytes())), is_null: false })
    }

    const NULL: Option<Current> = Some(Current { source_hash: None, is_null: true });

    #[rstest]
    #[case::first_read(None, read("a"), Action::Created)]
    #[case::same(at("a"), read("a"), Action::Unchanged)]
    #[case::changed(at("a"), read("b"), Action::Updated)]
    #[case::found(None, Observation::Discovered, Action::Created)]
    #[case::found_again(NULL, Observation::Discovered, Action::Unchanged)]
    #[case::discovery_never_overwrites(at("a"), Observation::Discovered, Action::Unchanged)]
    #[case::first_read_of_a_discovered_path(NULL, read(""), Action::Updated)]
    #[case::gone(at("a"), Observation::Deleted, Action::Deleted)]
    #[case::gone_twice(NULL, Observation::Deleted, Action::Unchanged)]
    #[case::never_known(None, Observation::Deleted, Action::Unchanged)]
    #[case::back_with_equal_content(NULL, read("a"), Action::Updated)]
    #[case::locked_away_before_it_was_read(None, Observation::Unreadable, Action::Created)]
    #[case::locked_away(at("a"), Observation::Unreadable, Action::Unchanged)]
    #[case::grown_too_large(at("a"), Observation::Oversized, Action::Updated)]
    #[case::still_too_large(NULL, Observation::Oversized, Action::Unchanged)]
    #[case::out_of_reach_and_never_known(None, Observation::Unreachable, Action::Unchanged)]
    #[case::out_of_reach(at("a"), Observation::Unreachable, Action::Unchanged)]
    #[case::out_of_reach_and_gone_before(NULL, Observation::Unreachable, Action::Unchanged)]
    fn decisions(#[case] current: Option<Current>, #[case] seen: Observation, #[case] action: Action) {
        assert_eq!(decide(current, seen), action);
    }
}
