//! The one recognizer of agents' tools: their names, what their calls touch, and what their outputs show.
//!
//! - [`Dialect`]: the names that an agent has for its tools and their arguments. [`AgentCall::of`] recognizes a call under them.
//! - [`observe`]: the files that a call touched; [`shown_by_shell`]: the lines that a shell command shows; [`FilePatch`]: the files
//!   that a patch changes; [`changes_of`]: what a call is about to replace in them; [`has_effect`]: whether a call changes anything.
//! - [`shown_lines`] and [`wrapped_lines`]: the lines of a file in an output that numbers or frames them; [`Placeholder`]: a text
//!   in place of an output.
//! - [`outcome`]: what an output came to, in a few words; [`excerpt`]: its beginning, its end and its failures.
//!
//! Architecture invariant: nothing here touches a clock, a file, the network or a thread. The engine uses it directly,
//! TypeScript through the binding. docs/agents.md explains how to add an agent.
//!
//! ```
//! use context_tools::AgentCall;
//! use serde_json::json;
//!
//! let args = json!({ "file_path": "/src/a.ts", "offset": 3 });
//! let call = AgentCall::of("Read", args.as_object().unwrap()).unwrap();
//! assert_eq!((call.tool, call.reads.as_deref()), ("read", Some("/src/a.ts")));
//! ```
#![warn(unreachable_pub)]

mod arguments;
mod call;
mod changes;
mod dialect;
mod excerpt;
mod numbered;
mod observe;
mod outcome;
mod patch;
mod placeholder;
mod wrapped;

pub use arguments::{PATH_ARGUMENTS, Replaced, replaced_in, written_in};
pub use call::{AgentCall, Items};
pub use changes::{PlannedChange, changes_of};
pub use dialect::{ArgumentNames, DIALECTS, Dialect, Tool, ToolKind};
pub use excerpt::{Excerpt, Gate, Part, TextPart, excerpt, is_excerpt_of, part};
pub use numbered::{output_alone, shown_lines, without_line_numbers};
pub use observe::{
    Candidate, Certainty, MAX_FROM_BASH, MAX_LISTED, Shown, TouchedFiles, has_effect, observe, shown_by_shell,
};
pub use outcome::{LONGEST_OUTCOME, is_outcome, is_said_by, outcome, subject, unquoted};
pub use patch::{FilePatch, Hunk, PatchKind, PatchedFile};
pub use placeholder::Placeholder;
pub use wrapped::{OutputOf, strings, wrapped_lines};
