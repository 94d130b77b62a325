//! The use cases of the context manager: open, resume, index, record, activate, assemble, project, close.
//!
//! Architecture invariants:
//! - The engine decides nothing that the model crate can decide; it reads, asks, and writes in one transaction.
//! - The library prints nothing and reads no environment or home directory.
//! - A call costs what is new, never the history, except `assemble` (a copy of it), `get` of a chat, and opening.

mod assemble;
mod blocking;
mod catalog;
mod control;
mod engine;
mod error;
pub mod files;
mod group;
mod ingest;
mod messages;
mod observed;
mod options;
mod paths;
mod piece;
mod project;
mod reading;
mod record;
mod resume;
mod rolls;
mod seen;
mod sight;
mod state;
mod taking;
mod tracking;
mod tree;
mod usage;
mod versions;
mod view;

pub use assemble::{Assembled, Block};
pub use control::{Part, SetChange};
pub use engine::{Engine, SessionSets};
pub use error::{EngineError, Result, caught};
pub use ingest::IndexResult;
pub use options::{DEFAULT_MAX_TEXT_BYTES, Options};
pub use paths::{Disk, Paths, Place};
pub use piece::CollapsedCall;
pub use project::{Birth, Call, Edit, Incoming, Plan};
pub use reading::{Found, Query, Stats, Wanted};
pub use record::ToolcallInput;
pub use tracking::{FileEvent, FileEventKind};
pub use tree::Indexed;
pub use versions::Answer;
