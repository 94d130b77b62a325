//! The marks of an excerpt: a line in place of lines that are left out, a mark within a line without its middle, and the line
//! where a part ends early.

use std::fmt;

/// The line in place of lines that an excerpt leaves out: `... 812 lines (31000 chars, 2 of them errors) left out: lines 21-832 ...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapLine {
    /// The first line that is left out, counted from 1.
    pub first: usize,
    /// The last one.
    pub last: usize,
    /// The UTF-16 units of them all.
    pub chars: usize,
    /// The number of them that report a failure.
    pub errors: usize,
}

impl GapLine {
    /// Reads a line; `None` if it is not such a mark.
    #[must_use]
    pub fn of(line: &str) -> Option<Self> {
        let inner = line.strip_prefix("... ")?.strip_suffix(" ...")?;
        let (count, rest) = inner.split_once(" (")?;
        let (size, place) = rest.split_once(") left out")?;
        let (chars, errors) = size.split_once(" chars")?;
        let errors = match errors {
            "" => 0,
            ", 1 of them an error" => 1,
            many => many.strip_prefix(", ")?.strip_suffix(" of them errors")?.parse().ok()?,
        };
        let (first, last) = match place.strip_prefix(": lines ") {
            Some(places) => places.split_once('-')?,
            None => (count.strip_prefix("line ")?, count.strip_prefix("line ")?),
        };
        let (first, last, chars) = (first.parse().ok()?, last.parse().ok()?, chars.parse().ok()?);
        let read = Self { first, last, chars, errors };
        // Only the very spelling that we write counts.
        (first >= 1 && first <= last && read.to_string() == line).then_some(read)
    }
}

impl fmt::Display for GapLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, chars, errors } = self;
        let errors = match errors {
            0 => String::new(),
            1 => ", 1 of them an error".to_owned(),
            n => format!(", {n} of them errors"),
        };
        if first == last {
            write!(out, "... line {last} ({chars} chars{errors}) left out ...")
        } else {
            let count = last.saturating_sub(*first) + 1;
            write!(out, "... {count} lines ({chars} chars{errors}) left out: lines {first}-{last} ...")
        }
    }
}

/// The mark in place of a part of a line, of this many UTF-16 units.
#[must_use]
pub fn cut_mark(chars: usize) -> String {
    format!("{CUT}{chars}{CUT_END}")
}

/// The beginning and the end of a line with one mark of [`cut_mark`] or several; `None` for a line without a mark.
#[must_use]
pub fn ends_of_cut(line: &str) -> Option<(&str, &str)> {
    let (head, _) = line.split_once(CUT)?;
    let (_, tail) = line.rsplit_once(CUT_END)?;
    Some((head, tail))
}

/// The last line of a part that does not have all that was asked for. `what` names the lines: `matching lines`.
#[must_use]
pub fn rest_line(rest: usize, what: &str, from: usize) -> String {
    format!("... {rest} more {what}, from line {from} on ...")
}

const CUT: &str = " ...";

const CUT_END: &str = " chars... ";
