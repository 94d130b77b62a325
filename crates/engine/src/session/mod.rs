//! A session of one client: its sets and what is known of its objects, and the one way to change them.
//!
//! Architecture invariants:
//! - Memory never runs ahead of the store. [`commit::commit`] is the only way to change what is stored of a session that has
//!   begun, holds the only loop that tries again, and undoes the change in memory if the write fails.
//! - What other clients wrote enters through [`refresh`] alone, and only from transactions that were read.

pub mod blocking;
pub mod catalog;
pub mod client;
pub mod commit;
pub mod error;
pub mod options;
pub mod paths;
pub mod references;
pub mod refresh;
mod session;
mod work;

pub use session::{Session, SessionChange, SessionWrite};
