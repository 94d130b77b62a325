//! The model's knowledge of files. Everything here is a function of its arguments: no I/O, no clock, no threads, no runtime.
//!
//! A model knows only what its request says. Each result that shows lines, each write and each notice is a [`statement`] about
//! a version of a file; its content is [`evidence`], which is recorded with its call and found again in the [`archive`].
//! [`known::Known`] holds the statements and which version the model knows; [`statement::Knowledge`] combines the statements
//! that are in sight. If no tool passed in the text that an output shows or a call left, [`inferred`] finds it out, with
//! [`passage`] and [`written`]. [`notices`] has the words in which the model is notified.
//!
//! ```
//! use context_knowledge::statement::{Content, Passage, StatementKind, Statement, Knowledge};
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

pub mod archive;
pub mod difference;
pub mod evidence;
pub mod in_flight;
pub mod inferred;
pub mod known;
#[cfg(test)]
mod known_tests;
pub mod notices;
pub mod passage;
pub mod placeholder;
pub mod statement;
pub mod told;
pub mod wrapped;
pub mod written;
