//! The tracker on real directories: what it delivers, follows, can't watch, and finds mounted.
#![allow(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot continue fails, and one that can't be run says so"
)]

mod common;
mod delivery;
mod follow;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod mounts;
mod random;
