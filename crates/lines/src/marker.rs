//! Old tool calls without their long arguments, and the guard against models that copy the replacement.
//!
//! Once the result of a `write` or an `edit` is old, its arguments are a second copy of text that is on disk.
//! A roll replaces each long string in them by a marker and keeps the small fields, so that the call still
//! says what was done to which lines of which file. The full arguments stay in the tool call's object.
//!
//! A model that sees its own calls in this form may write the next one in it. [`imitation`] recognises an
//! argument that is nothing but a marker; text that merely contains one (a log, this file) is left alone.

use context_model::tokens;
use serde_json::{Map, Value};

use crate::escape;

/// Strings up to this many UTF-16 units stay: paths, names, numbers, one-line edits.
pub const KEPT_CHARS: usize = 120;

/// The number of characters of a shell command's first line that its marker repeats.
const BEGINS_CHARS: usize = 40;

const OPEN: &str = "[collapsed #";

/// A tool call's arguments with markers in place of its long strings.
#[derive(Debug, Clone, PartialEq)]
pub struct Collapsed {
    /// The arguments to show.
    pub args: Map<String, Value>,
    /// The number of strings that were replaced or shortened; at least 1.
    pub strings: usize,
    /// Chars (UTF-16 units) of these strings minus those of their replacements, both as JSON, which is how arguments are
    /// sent and how Pi estimates them.
    pub saved_chars: usize,
}

/// The arguments of a tool call, with each string longer than [`KEPT_CHARS`] replaced by a marker, wherever it occurs (as
/// `content`, or as `edits[3].newText`), and with the `path` of a file tool relative to `cwd`, the agent's working
/// directory, if it is below it. `None` if that saves nothing.
///
/// `tag` is the name by which the full call can be activated. Equal arguments have equal markers, the result is never
/// longer than the arguments, and doing it twice changes nothing more.
#[must_use]
pub fn collapse_args(tool: &str, args: &Map<String, Value>, tag: &str, cwd: &str) -> Option<Collapsed> {
    let mut shown = args.clone();
    let (mut strings, mut saved_chars) = (0, 0);
    let tool = tool.to_ascii_lowercase();
    let is_command = matches!(tool.as_str(), "bash" | "powershell" | "shell");
    if matches!(tool.as_str(), "read" | "write" | "edit" | "ls" | "grep" | "find")
        && let Some(Value::String(path)) = shown.get_mut("path")
        && let Some(below) = below(path, cwd)
    {
        strings += 1;
        saved_chars += json_chars(path) - json_chars(below);
        *path = below.to_owned();
    }
    each_string(&mut shown, &mut |text| {
        let chars = tokens::utf16_len(text);
        if chars <= KEPT_CHARS || tag_in(text).is_some() {
            return;
        }
        let marker = marker(text, chars, tag, is_command);
        let saved = json_chars(text).saturating_sub(json_chars(&marker));
        if saved > 0 && tokens::utf16_len(&marker) < chars {
            strings += 1;
            saved_chars += saved;
            *text = marker;
        }
    });
    (strings > 0).then_some(Collapsed { args: shown, strings, saved_chars })
}

/// The arguments of an `edit` with a marker in place of each long text that it replaced: once the edit has succeeded,
/// that text is no longer in the file. `None` if that saves nothing, and for other tools.
#[must_use]
pub fn collapse_old_text(tool: &str, args: &Map<String, Value>, tag: &str) -> Option<Collapsed> {
    if !tool.eq_ignore_ascii_case("edit") {
        return None;
    }
    let mut shown = args.clone();
    let (mut strings, mut saved_chars) = (0, 0);
    let mut collapse = |fields: &mut Map<String, Value>| {
        let Some(Value::String(text)) = fields.get_mut("oldText") else { return };
        let chars = tokens::utf16_len(text);
        if chars <= KEPT_CHARS || tag_in(text).is_some() {
            return;
        }
        let marker = marker(text, chars, tag, false);
        let saved = json_chars(text).saturating_sub(json_chars(&marker));
        if saved > 0 {
            strings += 1;
            saved_chars += saved;
            *text = marker;
        }
    };
    collapse(&mut shown);
    if let Some(Value::Array(edits)) = shown.get_mut("edits") {
        edits.iter_mut().filter_map(Value::as_object_mut).for_each(collapse);
    }
    (strings > 0).then_some(Collapsed { args: shown, strings, saved_chars })
}

/// The tag of a text that consists of one marker, apart from surrounding white space.
#[must_use]
pub fn tag_in(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix(OPEN)?.strip_suffix(']')?;
    let (tag, rest) = inside.split_once(": ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_tag = !tag.is_empty() && tag.bytes().all(is_tag_byte);
    (is_tag
        && digits > 0
        && (rest[digits..] == *" chars" || rest[digits..].starts_with(" chars, "))
        && !rest.contains('\n'))
    .then_some(tag)
}

/// The tags of all arguments that are markers left by an earlier roll.
#[must_use]
pub fn tags_in(args: &Map<String, Value>) -> Vec<String> {
    fn walk(value: &Value, tags: &mut Vec<String>) {
        match value {
            Value::String(text) => tags.extend(tag_in(text).map(str::to_owned)),
            Value::Array(items) => items.iter().for_each(|item| walk(item, tags)),
            Value::Object(map) => map.values().for_each(|item| walk(item, tags)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut tags = Vec::new();
    args.values().for_each(|value| walk(value, &mut tags));
    tags
}

/// A sentence for the model if a whole string among the arguments is a marker whose tag `was_issued` on this branch. `None`
/// if the call may run.
#[must_use]
pub fn imitation(args: &Map<String, Value>, was_issued: impl Fn(&str) -> bool) -> Option<String> {
    let place = args
        .iter()
        .find_map(|(name, value)| imitated(value, &was_issued).map(|rest| format!("{name}{rest}")))?;
    Some(format!(
        "Refused: the argument {} is only the mark of a text that was left out of your view, not the text. \
         Write the text itself; activate the tool call that the mark names to see it again.",
        escape::short_text(&place)
    ))
}

/// The part of a path below a directory.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(directory.trim_end_matches('/'))?.strip_prefix('/')?;
    // A name that a tool would misunderstand if it stood alone.
    let is_plain = !rest.is_empty() && !rest.starts_with(['/', '~', '@']);
    (is_plain && !directory.is_empty()).then_some(rest)
}

fn marker(text: &str, chars: usize, tag: &str, is_command: bool) -> String {
    let tag: String =
        tag.chars().map(|c| if c.is_ascii() && is_tag_byte(c as u8) { c } else { '_' }).collect();
    // A session shows hundreds of these, so each says just enough to decide whether to activate it.
    if is_command {
        return format!("{OPEN}{tag}: {chars} chars, begins {}]", begin(text));
    }
    format!("{OPEN}{tag}: {chars} chars]")
}

/// The start of a command's first line, in quotes.
fn begin(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or("").trim_end();
    let mut start = String::new();
    for c in line.chars() {
        if start.len() >= BEGINS_CHARS {
            start.push_str("...");
            break;
        }
        // Spaces stay; anything that could break the line is escaped.
        if c == ' ' { start.push(c) } else { start.push_str(&escape::word(c.encode_utf8(&mut [0; 4]))) }
    }
    format!("\"{start}\"")
}

fn json_chars(text: &str) -> usize {
    // A string always has a JSON form.
    tokens::utf16_len(&Value::from(text).to_string())
}

/// The place below `value` of a string that imitates a marker.
fn imitated(value: &Value, was_issued: &impl Fn(&str) -> bool) -> Option<String> {
    match value {
        Value::String(text) => tag_in(text).filter(|tag| was_issued(tag)).map(|_| String::new()),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| imitated(item, was_issued).map(|rest| format!("[{at}]{rest}"))),
        Value::Object(fields) => fields
            .iter()
            .find_map(|(name, item)| imitated(item, was_issued).map(|rest| format!(".{name}{rest}"))),
        _ => None,
    }
}

fn each_string(fields: &mut Map<String, Value>, on: &mut impl FnMut(&mut String)) {
    fields.values_mut().for_each(|value| strings_of(value, on));
}

fn strings_of(value: &mut Value, on: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => on(text),
        Value::Array(items) => items.iter_mut().for_each(|item| strings_of(item, on)),
        Value::Object(fields) => each_string(fields, on),
        _ => {}
    }
}

fn is_tag_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}
