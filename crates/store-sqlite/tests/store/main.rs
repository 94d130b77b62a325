//! The store in one SQLite file: the rules of all stores, and its own.
#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking; the name of the last check tells which one failed"
)]

#[cfg(unix)]
mod away;
mod beside;
mod conformance;
mod erase;
mod model;
mod prune;
mod search;
#[path = "../secrets/mod.rs"]
mod secrets;
#[cfg(unix)]
mod shared;
