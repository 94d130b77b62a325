//! The lines of ours that the model reads: how each is written, and how it is read back.
//!
//! Two invariants hold. A rendered line depends on the object's state alone: no age, counter or clock enters it, so equal states
//! give equal bytes. And text from files, paths and tools can't forge a line: [`escape`] keeps it within its field, and a line is
//! read back only where it may stand, and only if it is spelled as it is written here.
//!
//! ```
//! use context_lines::Reference;
//!
//! let line = "toolcall_ref id=673a446c tool=bash status=fail -> 2 failed: a.test.ts";
//! let reference = Reference::of(line).unwrap();
//! assert_eq!((&*reference.id, reference.outcome), ("673a446c", Some("2 failed: a.test.ts")));
//! assert_eq!(reference.to_string(), line);
//! assert_eq!(Reference::of("The line toolcall_ref id=673a446c tool=bash status=ok"), None);
//! ```
#![warn(unreachable_pub)]

mod call;
pub mod escape;
mod gap;
mod hit;
pub mod marker;
mod name;
mod object;
mod prose;
mod reference;
mod stale;

pub use call::CallInText;
pub use gap::{GapLine, cut_mark, ends_of_cut, rest_line};
pub use hit::{HitLine, HitObject};
pub use name::{name_in_path, names_in};
pub use object::{PoolLine, active_block, active_heading, file_line, orphaned, toolcall_line};
pub use prose::{call_line, is_begun, left_out, said_line};
pub use reference::{CHANGED, Header, Pointed, Reference, header};
pub use stale::{FileChange, StaleLine, StaleWords, filled};
