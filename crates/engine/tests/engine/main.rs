//! The use cases on real files and real stores: the promises of sections 2, 3 and 5 of the specification.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod arrivals;
mod bench;
mod bound;
mod bounded;
mod chat;
mod clients;
mod compacted;
mod conversation;
#[cfg(target_os = "linux")]
mod drives;
mod edits;
mod ended;
mod evidence;
mod fading;
mod failing;
mod forms;
mod groups;
mod handover;
#[cfg(unix)]
mod harness;
mod hostile;
mod incoming;
mod indexing;
mod known;
mod leaving;
#[cfg(unix)]
mod links;
mod locked;
mod lost;
mod mounts;
mod named;
mod objects;
mod observing;
mod outcomes;
mod projection;
mod reads;
mod recorded;
mod restore;
mod resume;
mod sentences;
mod sets;
mod stamps;
mod staying;
mod stepped;
mod takeover;
mod truth;
mod unguarded;
mod unreported;
#[cfg(unix)]
mod vanished;
mod views;
mod watching;
mod wrapped;
