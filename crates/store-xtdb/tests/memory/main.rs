//! The store and its journal against a node in memory, behind a proxy that fails as real ones do.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

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
mod versions;
mod world;
