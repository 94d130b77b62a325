//! The lines that name an object in a result: the header before its output, and the reference in the output's place.

use std::borrow::Cow;
use std::fmt;

use context_model::object::Status;

use crate::escape::{shown_word, word};
use crate::name::is_handle;
use crate::object::status_of;

/// The text that follows a reference if the file had changed by the time when it was first sent. It stays, as it stays
/// true.
pub const CHANGED: &str = ", changed since";

/// The line in place of an output: `toolcall_ref id=673a446c tool=bash status=ok -> lines 1-482`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// The handle or the full ID of the call's object, not escaped.
    pub id: Cow<'a, str>,
    /// The tool, not escaped.
    pub tool: Cow<'a, str>,
    /// The status of the call; `None` where the line is a pointer alone, which has no outcome either.
    pub status: Option<Status>,
    /// The outcome of the call, on one line and as it escapes itself.
    pub outcome: Option<&'a str>,
    /// True if its file had changed by the time when the line was first sent.
    pub has_changed: bool,
}

impl<'a> Reference<'a> {
    /// The reference to a call's object by nothing but its name, tool and status.
    #[must_use]
    pub fn to(id: &'a str, tool: &'a str, status: Option<Status>) -> Self {
        Self { id: id.into(), tool: tool.into(), status, outcome: None, has_changed: false }
    }

    /// Reads the first line of a text, below which there may be others; `None` if it is not a reference.
    #[must_use]
    pub fn of(text: &'a str) -> Option<Self> {
        let line = text.split('\n').next()?;
        let (id, rest) = line.strip_prefix("toolcall_ref id=")?.split_once(" tool=")?;
        let (tool, rest) = rest.split_once(' ').map_or((rest, None), |(tool, rest)| (tool, Some(rest)));
        let (id, tool) = (shown_word(id)?, shown_word(tool)?);
        let Some(rest) = rest else {
            return Some(Self { id, tool, status: None, outcome: None, has_changed: false });
        };
        let rest = rest.strip_prefix("status=")?;
        let (rest, has_changed) = rest.strip_suffix(CHANGED).map_or((rest, false), |rest| (rest, true));
        let (status, outcome) =
            rest.split_once(" -> ").map_or((rest, None), |(status, told)| (status, Some(told)));
        if outcome == Some("") {
            return None;
        }
        Some(Self { id, tool, status: Some(status_of(status)?), outcome, has_changed })
    }
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "toolcall_ref id={} tool={}", word(&self.id), word(&self.tool))?;
        if let Some(status) = self.status {
            write!(out, " status={}", status.as_str())?;
        }
        if let Some(outcome) = self.outcome {
            write!(out, " -> {outcome}")?;
        }
        out.write_str(if self.has_changed { CHANGED } else { "" })
    }
}

/// A host's words that point to an earlier result, with the reference of that result on a line below them: it has collapsed, and the
/// words alone would point to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointed<'a> {
    /// The words of the host.
    pub words: &'a str,
    /// The first line of what stands in the place of the earlier result.
    pub reference: &'a str,
}

impl<'a> Pointed<'a> {
    /// Reads a whole text; `None` if its last line names no reference in this way.
    #[must_use]
    pub fn of(text: &'a str) -> Option<Self> {
        let (words, line) = text.rsplit_once('\n')?;
        let reference = line.strip_prefix(HAS_COLLAPSED)?;
        Reference::of(reference).map(|_| Self { words, reference })
    }
}

impl fmt::Display for Pointed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}\n{HAS_COLLAPSED}{}", self.words, self.reference)
    }
}

const HAS_COLLAPSED: &str = "It has collapsed: ";

/// The line before an output: the name that brings it back. The call above it says the rest.
#[must_use]
pub fn header(handle: &str) -> String {
    format!("id={}", word(handle))
}

/// A header, read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The handle that the line names: at least 8 hexadecimal digits.
    pub id: &'a str,
    /// The text below the line; empty if there is none.
    pub rest: &'a str,
}

impl<'a> Header<'a> {
    /// Reads the first line of a text; `None` if it is not a header.
    #[must_use]
    pub fn of(text: &'a str) -> Option<Self> {
        let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
        let id = line.strip_prefix("id=")?;
        is_handle(id).then_some(Self { id, rest })
    }
}
