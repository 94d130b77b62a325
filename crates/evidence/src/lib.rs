//! What the model has seen of each file, and what it must be told. Everything here is a function of its arguments: no I/O, no
//! clock, no threads, no runtime.
//!
//! A model knows only what its request says. Each result that shows lines, each write and each notice is a [`Statement`] about
//! a version of a file; its content is [`Evidence`], which is recorded with its call and found again in the [`Archive`].
//! [`Known`] holds the statements and which version the model knows; [`Knowledge`] combines the statements that are in sight.
//! [`Sight`] compares them with the versions of the files, which a decision asks of [`Seen`]. [`Records`] holds what tools have
//! passed in; if no tool passed in the text that an output shows or a call left, [`Sight::infer`] finds it out.
//! [`Sentences`] are the words in which the model is notified.
//!
//! ```
//! use context_evidence::{Content, Knowledge, Passage, Statement, StatementKind};
//! use context_model::hash::Digest;
//! use context_model::time::TxId;
//!
//! let version = |text: &str| Content::stored(Some(Digest::of(text.as_bytes())), TxId(1));
//! let read = Passage { content: version("a"), first: 1, last: 9, whole: true };
//! let said = [StatementKind::Lines(read), StatementKind::Other(version("b").hash)];
//! let said = said.map(|kind| Statement { by: None, via: None, number: 0, kind });
//! let knowledge = Knowledge::of(said.iter());
//! assert!(knowledge.speaks_of(version("b").hash), "a notice has told of it");
//! assert!(knowledge.outstanding.is_empty(), "so no line that was read still stands");
//! ```
#![warn(unreachable_pub)]

mod answers;
mod archive;
mod call;
mod compared;
mod difference;
mod evidence;
mod in_flight;
mod inferred;
mod kind;
mod known;
#[cfg(test)]
mod known_tests;
mod notices;
mod passage;
mod records;
mod search;
mod seen;
mod sight;
mod statement;
mod taken;
mod telling;
mod told;
mod unclaimed;
mod written;

pub use answers::{AskedEdit, EditGuard, JudgedEdit, asked_lines};
pub use archive::Archive;
pub use call::{first_line, path_of};
pub use difference::{MAX_SHOWN, MAX_TOGETHER, unified};
pub use evidence::{Bytes, EVIDENCE_FIELD, Evidence, Lines};
pub use in_flight::{Base, InFlightKind, PassedIn, Wrote};
pub use inferred::Inferred;
pub use kind::{RecordedCall, ResultFacts, ResultKind};
pub use known::{Known, KnownVersion, Way};
pub use notices::{MAX_TOLD, Sentences};
pub use passage::{Shows, passage_of, restores, wraps};
pub use records::Records;
pub use search::{LOOKED_BACK, ReadAt, ReadResult, ReadSearch, unstored};
pub use seen::{At, Seen, SeenVersion, Unseen};
pub use sight::Sight;
pub use statement::{Content, Knowledge, Outstanding, Passage, Statement, StatementKind};
pub use taken::{Arrival, FileStatement, TakenResult};
pub use telling::{FileNotice, Telling, Untold};
pub use told::{whole_read, whole_write};
pub use unclaimed::UnclaimedWrites;
pub use written::Leaves;
