//! The use cases of the context manager: open, resume, index, record, activate, assemble, project, close.
//!
//! The constants of an open session, its sets and its catalog are in `session`, its files in `files`, both private;
//! `context-projection` decides what the model's request contains, and `context-evidence` holds the model's knowledge of
//! files. Only the calls here wait for the store and the disk.
//!
//! Architecture invariants:
//! - The engine decides nothing that the pure crates can decide; it reads, asks, and writes in one transaction.
//! - The library prints nothing and reads no environment or home directory.
//! - A use case may fail with what the store reports, and with `CLOSED` once the instance is closed; the documentation of a
//!   call names what else it refuses.
//! - A call costs what is new, never the history, except `assemble` and `stats` (a copy of it), `get` of a chat, `restore`
//!   and `resync` (the messages of a branch), and opening.
#![warn(unreachable_pub)]

mod branch;
mod control;
mod engine;
mod events;
mod files;
mod gather;
mod guard;
mod handed;
mod identity;
mod incoming;
mod index;
mod inserted;
mod job;
mod messages;
mod namesakes;
mod notify;
mod open;
mod paths;
mod project;
mod query;
mod recalled;
mod record;
mod restored;
mod results;
mod roll;
mod session;
mod shown;
mod tools;
mod unsent;
mod view;
mod whole_store;

pub use crate::files::index::IndexResult;
pub use crate::files::stamps::Stamp;
pub use crate::files::tracking::{FileEvent, FileEventKind};
pub use crate::session::client::{machine_identity, machine_namespace};
pub use crate::session::error::{EngineError, Result, caught};
pub use crate::session::options::{
    DEFAULT_MAX_TEXT_BYTES, DEFAULT_NAMED_TEXT_BYTES, DEFAULT_PACE, Options, TrackerStart,
};
pub use crate::session::paths::{Disk, Paths, Place};
pub use context_evidence::{EditGuard, Sentences};
pub use context_projection::request::plan::{Call, Edit, IncomingMessage, Plan, Received, TextEdit};
pub use context_projection::request::segment::CollapsedCall;
pub use context_projection::{Because, Chance, HeldBack, Stay, Stays};
pub use context_tools::Part;
pub use control::SetChange;
pub use engine::{Engine, SessionSets};
pub use guard::ReadAnswer;
pub use index::Indexed;
pub use query::{Found, Query, Stats, Wanted};
pub use roll::RollPreview;
pub use view::{Assembled, Block};
pub use whole_store::{FoundInStore, find_objects, search_store, session_objects, source_path, stored_path};
