//! A session of one client: its sets and what is known of its objects, and the one way to change them.
//!
//! Architecture invariants:
//! - Memory never runs ahead of the store. [`commit::commit`] is the only way to change what is stored of a session that has
//!   begun, holds the only loop that tries again, and undoes the change in memory if the write fails.
//! - What other clients wrote enters through [`refresh`] alone, and only from transactions that were read.

pub(crate) mod blocking;
pub(crate) mod catalog;
pub(crate) mod client;
pub(crate) mod commit;
pub(crate) mod error;
pub(crate) mod namespaces;
pub(crate) mod options;
pub(crate) mod paths;
pub(crate) mod references;
pub(crate) mod refresh;
mod state;
mod work;

pub(crate) use state::{Session, SessionChange, SessionWrite};
