//! The rules of the context manager.
//!
//! Architecture invariant: nothing in this crate touches a clock, a file, the network or a thread. Time,
//! identifiers and bytes are arguments; the answers are values. Everything that can be decided without I/O
//! is decided here, so that it can be tested by tables and properties.

pub mod canonical;
pub mod chat;
pub mod collapse;
pub mod error;
pub mod excerpt;
pub mod hash;
pub mod id;
pub mod index;
pub mod marker;
pub mod mounts;
pub mod object;
pub mod object_type;
pub mod observe;
pub mod outcome;
pub mod patch;
pub mod path;
pub mod render;
pub mod session;
pub mod source;
pub mod time;
pub mod tokens;
mod toolcall;
