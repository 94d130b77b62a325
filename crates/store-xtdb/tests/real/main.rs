//! The store and its journal against real XTDB nodes, which `npm run test:xtdb` starts; otherwise each file says in one line that it
//! was not run. One program for all files: each further one would link the whole store again.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and prints its figures"
)]

#[path = "../ask/mod.rs"]
mod ask;
#[cfg(unix)]
mod behind;
mod cluster;
#[path = "../memory/drawn/mod.rs"]
mod drawn;
mod erase;
mod faults;
#[path = "../memory/fleet/mod.rs"]
mod fleet;
mod forgotten;
#[allow(dead_code)] // the simulation uses more of it
#[path = "../../../engine/tests/simulation/node.rs"]
mod node;
mod planted;
mod queue;
mod rig;
mod schedules;
#[path = "../../../store-sqlite/tests/secrets/mod.rs"]
mod secrets;
mod store;
mod wire;
#[path = "../memory/world.rs"]
mod world;
