//! The metadata line of an object in the pool, and the block with its active content.

use std::borrow::Cow;

use context_model::id::ObjectId;
use context_model::object::Status;

use crate::escape::{shown_text, shown_word, text, word};

/// The end of the line of a file that is out of reach.
pub(crate) const ORPHANED: &str = " state=orphaned";

/// The pool line of a file. `display_path` is the path as the agent sees it, `char_count` its size in UTF-16 units.
#[must_use]
pub fn file_line(id: &ObjectId, display_path: &str, file_type: &str, char_count: u64) -> String {
    format!(
        "id={} type=file path={} file_type={} char_count={char_count}",
        word(id.as_str()),
        text(display_path),
        word(file_type),
    )
}

/// The pool line of a file on a filesystem that the client can't reach, such as that of another machine: a file with the same
/// path may be within reach.
#[must_use]
pub fn orphaned(file_line: &str) -> String {
    format!("{file_line}{ORPHANED}")
}

/// The pool line of a tool call.
#[must_use]
pub fn toolcall_line(id: &ObjectId, tool: &str, status: Status) -> String {
    format!("id={} type=toolcall tool={} status={}", word(id.as_str()), word(tool), status.as_str())
}

/// A block of the fourth section. The content is verbatim; only the ID is escaped.
#[must_use]
pub fn active_block(id: &ObjectId, content: &str) -> String {
    format!("{}\n{content}", active_heading(id))
}

/// The first line of such a block.
#[must_use]
pub fn active_heading(id: &ObjectId) -> String {
    format!("ACTIVE_CONTENT id={}", word(id.as_str()))
}

/// A line of the metadata pool, read back. Names and paths are as they were before they were escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolLine<'a> {
    /// The line of a file.
    File {
        /// The file's full ID.
        id: Cow<'a, str>,
        /// The path as the agent sees it.
        path: Cow<'a, str>,
        /// The kind of text: `ts`.
        file_type: Cow<'a, str>,
        /// Its size in UTF-16 units.
        char_count: u64,
        /// True if the client can't reach the file.
        is_orphaned: bool,
    },
    /// The line of a tool call.
    Toolcall {
        /// The call's full ID.
        id: Cow<'a, str>,
        /// The tool that was called.
        tool: Cow<'a, str>,
        /// The status of the call.
        status: Status,
    },
}

impl<'a> PoolLine<'a> {
    /// Reads a line of the pool; `None` for any other text.
    #[must_use]
    pub fn of(line: &'a str) -> Option<Self> {
        let (id, rest) = line.strip_prefix("id=")?.split_once(" type=")?;
        let id = shown_word(id)?;
        if let Some(rest) = rest.strip_prefix("toolcall tool=") {
            let (tool, status) = rest.split_once(" status=")?;
            return Some(Self::Toolcall { id, tool: shown_word(tool)?, status: status_of(status)? });
        }
        // A space before an equals sign is escaped in a path, so the first of these names is ours.
        let (path, rest) = rest.strip_prefix("file path=")?.split_once(" file_type=")?;
        let (file_type, rest) = rest.split_once(" char_count=")?;
        let count = rest.strip_suffix(ORPHANED).unwrap_or(rest);
        let char_count: u64 = count.parse().ok()?;
        if count != char_count.to_string() {
            return None;
        }
        let (path, file_type) = (shown_text(path)?, shown_word(file_type)?);
        Some(Self::File { id, path, file_type, char_count, is_orphaned: count.len() < rest.len() })
    }

    /// The object's full ID.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::File { id, .. } | Self::Toolcall { id, .. } => id,
        }
    }
}

/// The status with this name.
pub(crate) fn status_of(name: &str) -> Option<Status> {
    [Status::Ok, Status::Fail].into_iter().find(|status| status.as_str() == name)
}
