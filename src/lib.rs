//! The napi-rs binding: the JavaScript class `ContextManager` over `context-engine`.
//!
//! Architecture invariant: nothing is decided here. Each method converts its arguments, spawns the engine's
//! call on the addon's own runtime, and maps the outcome; the event loop never waits for a disk or a lock.
#![warn(unreachable_pub)]

mod callback;
mod convert;
mod error;
mod history;
mod json;
mod life;
mod lines;
mod log;
mod manager;
mod open;
mod opened;
mod passage;
mod projection;
mod runtime;
mod store;
mod tools;
mod types;
mod upkeep;
