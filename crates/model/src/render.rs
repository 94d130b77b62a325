//! The lines and blocks of the specification, and the escaping that keeps them from being forged.
//!
//! Architecture invariant: a rendered line depends on the object's state alone. No age, counter or clock
//! enters it, so equal states give equal bytes.

use std::fmt::Write as _;

use crate::id::ObjectId;
use crate::object::Status;
use crate::tokens::utf16_len;

/// A longer path or name is shown without its middle in a sentence for the model, in UTF-16 units.
pub const LONGEST_NAME: usize = 1_000;

/// The mark in place of the middle of such a name.
const LEFT_OUT: &str = "...";

/// The pool line of a file. `display_path` is the path as the agent sees it.
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
    format!("{file_line} state=orphaned")
}

/// The pool line of a tool call.
#[must_use]
pub fn toolcall_line(id: &ObjectId, tool: &str, status: Status) -> String {
    format!("id={} type=toolcall tool={} status={}", word(id.as_str()), word(tool), status.as_str())
}

/// The line that replaces a tool call's output in the chat.
#[must_use]
pub fn toolcall_ref(id: &ObjectId, tool: &str, status: Status) -> String {
    format!("toolcall_ref id={} tool={} status={}", word(id.as_str()), word(tool), status.as_str())
}

/// A block of the fourth section. The content is verbatim; only the ID is escaped.
#[must_use]
pub fn active_block(id: &ObjectId, content: &str) -> String {
    format!("ACTIVE_CONTENT id={}\n{content}", word(id.as_str()))
}

/// Escapes text that may contain spaces (a path): line breaks, control, bidirectional and invisible characters,
/// and the backslash, so that what is shown can be read back unambiguously.
///
/// A space stays a space unless an `=` follows later: otherwise, a reader that splits the line at spaces could mistake the
/// rest for a separate field.
#[must_use]
pub fn text(raw: &str) -> String {
    escape(raw, false)
}

/// Escapes text that must be one word (an ID, a tool's name): as [`text`], and also white space.
#[must_use]
pub fn word(raw: &str) -> String {
    escape(raw, true)
}

/// As [`text`], but of at most [`LONGEST_NAME`] UTF-16 units: a longer text is shown without its middle. For sentences that
/// no program reads back.
#[must_use]
pub fn short_text(raw: &str) -> String {
    short(raw, false)
}

/// As [`word`], and as short as [`short_text`].
#[must_use]
pub fn short_word(raw: &str) -> String {
    short(raw, true)
}

/// Escapes a line of content that is quoted in one of our lines. Only characters that end a line, control a terminal or are
/// invisible are escaped, so that code stays as it is written.
#[must_use]
pub fn line(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        if c == '\t' || !(c.is_control() || is_invisible(c)) {
            out.push(c);
        } else {
            // Writing to a String can't fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
    }
    out
}

/// Reads back what [`text`] or [`word`] wrote; `None` if they did not write it.
#[must_use]
pub fn unescape(shown: &str) -> Option<String> {
    let mut out = String::with_capacity(shown.len());
    let mut rest = shown.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next()? {
            '\\' => out.push('\\'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                if rest.next()? != '{' {
                    return None;
                }
                let (hex, after) = rest.as_str().split_once('}')?;
                out.push(char::from_u32(u32::from_str_radix(hex, 16).ok()?)?);
                rest = after.chars();
            }
            _ => return None,
        }
    }
    Some(out)
}

fn escape(raw: &str, one_word: bool) -> String {
    let mut out = String::with_capacity(raw.len());
    let last_equals = raw.rfind('=').unwrap_or(0);
    for (place, c) in raw.char_indices() {
        escape_char(c, !one_word && place >= last_equals, &mut out);
    }
    out
}

/// Adds a character as it is shown. A space that is not plain is escaped.
fn escape_char(c: char, is_space_plain: bool, out: &mut String) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        ' ' if is_space_plain => out.push(' '),
        c if c.is_control() || c.is_whitespace() || is_invisible(c) => {
            // Writing to a String can't fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Escapes a text, and leaves out its middle if that makes it too long. No escape is cut.
fn short(raw: &str, one_word: bool) -> String {
    let most = LONGEST_NAME - LEFT_OUT.len();
    let last_equals = raw.rfind('=').unwrap_or(0);
    let mut head = String::new();
    let mut left = most / 2;
    let mut shown = String::new();
    let units = |place: usize, c: char, shown: &mut String| {
        shown.clear();
        escape_char(c, !one_word && place >= last_equals, shown);
        utf16_len(shown)
    };
    let mut end_of_head = raw.len();
    for (place, c) in raw.char_indices() {
        let size = units(place, c, &mut shown);
        if size > left {
            end_of_head = place;
            break;
        }
        left -= size;
        head.push_str(&shown);
    }
    let mut left = most - utf16_len(&head);
    let mut tail = Vec::new();
    for (place, c) in raw[end_of_head..].char_indices().rev() {
        let size = units(end_of_head + place, c, &mut shown);
        if size > left {
            let tail: String = tail.into_iter().rev().collect();
            return format!("{head}{LEFT_OUT}{tail}");
        }
        left -= size;
        tail.push(shown.clone());
    }
    head.extend(tail.into_iter().rev());
    head
}

/// Invisible characters that change how a line is read: Unicode's `Default_Ignorable_Code_Point`s
/// (bidirectional controls, zero-width characters, variation selectors, tags, fillers) and the other format
/// characters and blanks that have no ink.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{0600}'..='\u{0605}' | '\u{061C}' | '\u{06DD}' | '\u{070F}'
        | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}'
        | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
        | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}
