//! Names and texts as they stand in our lines, so that none of them can end its field or its line.

use std::borrow::Cow;
use std::fmt::Write as _;

use context_model::tokens::utf16_len;

/// A longer path or name is shown without its middle in a sentence for the model, in UTF-16 units.
pub const LONGEST_NAME: usize = 1_000;

/// The mark in place of the middle of such a name.
const LEFT_OUT: &str = "...";

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

/// The text that [`word`] wrote; `None` if it wrote none of this, or if the text is empty: a line names nothing by an empty word.
pub(crate) fn shown_word(shown: &str) -> Option<Cow<'_, str>> {
    shown_by(word, shown).filter(|raw| !raw.is_empty())
}

/// The text that [`text`] wrote; `None` if it did not write this.
pub(crate) fn shown_text(shown: &str) -> Option<Cow<'_, str>> {
    shown_by(text, shown)
}

/// Only the very spelling that we write counts, so that a line is read back only if it is written again in the same bytes.
pub(crate) fn shown_by(write: impl Fn(&str) -> String, shown: &str) -> Option<Cow<'_, str>> {
    if shown.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
        return Some(Cow::Borrowed(shown));
    }
    let raw = unescape(shown)?;
    (write(&raw) == shown).then_some(Cow::Owned(raw))
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
