//! The rules of the context manager.
//!
//! Architecture invariant: nothing in this crate touches a clock, a file, the network or a thread. Time,
//! identifiers and bytes are arguments; the answers are values. Everything that can be decided without I/O
//! is decided here, so that it can be tested by tables and properties.
//!
//! ```
//! use context_model::hash::Digest;
//! use context_model::index::{Action, Current, Observation, decide};
//! use context_model::object::Document;
//! use context_model::source::FilesystemSource;
//!
//! let read = |text: &str| Observation::Read(Digest::of(text.as_bytes()));
//! assert_eq!(decide(None, read("a")), Action::Created);
//!
//! let source = FilesystemSource { filesystem_id: "disk".into(), path: "/a.txt".into() };
//! let stored = Document::file(source, Some("a".into()), Some(Digest::of(b"a")));
//! assert_eq!(decide(Some(Current::of(&stored)), read("a")), Action::Unchanged);
//! assert_eq!(decide(Some(Current::of(&stored)), read("b")), Action::Updated);
//! assert_eq!(decide(Some(Current::of(&stored)), Observation::Deleted), Action::Deleted);
//! ```
#![warn(unreachable_pub)]

pub mod canonical;
pub mod chat;
pub mod collapse;
pub mod error;
pub mod hash;
pub mod id;
pub mod index;
pub mod mounts;
pub mod object;
pub mod object_type;
pub mod patch;
pub mod path;
pub mod session;
pub mod source;
pub mod time;
pub mod tokens;
mod toolcall;
