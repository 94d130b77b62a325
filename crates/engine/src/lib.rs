//! The use cases of the context manager: open, resume, index, record, activate, assemble, project, close.
//!
//! Layers, each above the one before it: `base` (what never changes), `session` (sets, catalog, chat, and the one way to
//! change them), `files` (looking at files and knowing what the model knows about them), `view` (the canonical rendering)
//! and `engine` (the use cases; only their calls wait for the store and the disk). What the model's request contains is
//! decided in `context-projection`.
//!
//! Architecture invariants:
//! - The engine decides nothing that the pure crates can decide; it reads, asks, and writes in one transaction.
//! - `session::commit` is the only way to change what is stored of a session that has begun, and holds the only loop that
//!   tries again.
//! - The library prints nothing and reads no environment or home directory.
//! - A use case may fail with what the store reports, and with `CLOSED` once the instance is closed; the documentation of a
//!   call names what else it refuses.
//! - A call costs what is new, never the history, except `assemble` and `stats` (a copy of it), `get` of a chat, `restore`
//!   and `resync` (the messages of a branch), and opening.

mod base;
mod engine;
mod files;
mod session;
mod view;

pub use base::error::{EngineError, Result, caught};
pub use base::options::{
    DEFAULT_MAX_TEXT_BYTES, DEFAULT_NAMED_TEXT_BYTES, DEFAULT_PACE, Options, TrackerStart,
};
pub use base::paths::{Disk, Paths, Place};
pub use context_knowledge::sentences::Sentences;
pub use context_projection::request::plan::{Call, Edit, Incoming, Plan, Received, TextEdit};
pub use context_projection::request::segment::CollapsedCall;
pub use context_projection::{Stay, Stays};
pub use engine::control::{Part, SetChange};
pub use engine::index::Indexed;
pub use engine::job::ToolcallInput;
pub use engine::look::{Found, Query, Stats, Wanted};
pub use engine::stored::{find_objects, search_store, session_objects, source_path, stored_path};
pub use engine::truth::{Answer, EditGuard};
pub use engine::{Engine, SessionSets};
pub use files::index::IndexResult;
pub use files::stamps::Stamp;
pub use files::tracking::{FileEvent, FileEventKind};
pub use view::assembled::{Assembled, Block};
