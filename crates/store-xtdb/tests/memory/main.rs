//! The store and its journal against a node in memory, behind a proxy that fails as real ones do.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and prints its figures"
)]

mod areas;
#[path = "../ask/mod.rs"]
mod ask;
mod drawn;
mod fleet;
mod growing;
mod machines;
#[allow(dead_code)] // the simulation uses more of it
#[path = "../../../engine/tests/simulation/node.rs"]
mod node;
mod past;
mod path;
mod schedules;
mod together;
mod versions;
mod world;
