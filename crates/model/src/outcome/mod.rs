//! What a call's output came to, in a few words: `3 failed: a.test.ts, b.test.ts (exit 1)`, `12 matches in 4 files`,
//! `lines 1-482`. It is recorded with the call and stands in the line that replaces the output, so it is what the model still
//! knows of it.
//!
//! It depends on the call alone and never changes. Nothing in it can be forged: text of files and tools is bare only where it
//! can't be mistaken for our words, and otherwise in quotes.

mod exit;
mod matches;
mod runs;
mod words;

use serde_json::{Map, Value};

use crate::collapse::is_control;
use crate::object::Status;
use crate::observe::programs;
use crate::{render, tokens};
use runs::Runs;
use words::{beginning, quoted, uncoloured};

pub use words::{bare, is_said_by};

/// An outcome has at most this many UTF-16 units.
pub const LONGEST: usize = 160;

/// Of longer outputs, this many bytes at the start and at the end are read.
const READ: usize = 128 << 10;

/// How much of an error's line is shown, in UTF-16 units.
const ERROR: usize = 80;

/// Programs that show what is there. What they print may be the output of a test run, but it is none.
const READERS: [&str; 36] = [
    "ack", "ag", "awk", "bat", "cat", "cd", "cut", "diff", "echo", "egrep", "fd", "fgrep", "file", "find",
    "gh", "git", "grep", "head", "jq", "less", "ls", "more", "nl", "printf", "pwd", "rg", "sed", "sort",
    "stat", "tac", "tail", "tr", "tree", "uniq", "wc", "xargs",
];

/// Those that search.
const SEARCHES: [&str; 6] = ["ack", "ag", "egrep", "fgrep", "grep", "rg"];

/// Returns what a call's output came to; `None` where there is nothing to say that the status does not. `shows` are the
/// lines of a file that the output is known to show.
#[must_use]
pub fn outcome(
    tool: &str,
    args: &Map<String, Value>,
    content: &str,
    status: Status,
    shows: Option<(usize, usize)>,
) -> Option<String> {
    let tool = tool.to_ascii_lowercase();
    if is_control(&tool) {
        return None;
    }
    let content = ends(content);
    let told = match tool.as_str() {
        "bash" | "powershell" | "shell" => command(args, &content, status),
        _ if status == Status::Fail => error_in(&content).map(|line| quoted(&line)),
        "read" => lines_read(args, &content, shows),
        "grep" => Some(matches::grep(&content)),
        "find" | "glob" | "ls" => Some(matches::listing(&content)),
        "write" | "edit" => None,
        _ => long(&content),
    }?;
    (tokens::utf16_len(&told) <= LONGEST).then_some(told)
}

/// Returns what a line says of a call before its outcome, already escaped: in quotes where it could pose as an outcome.
#[must_use]
pub fn subject(gist: &str) -> String {
    if gist.contains("->") { format!("\"{}\"", gist.replace('"', "\\\"")) } else { gist.to_owned() }
}

/// Returns whether a text can stand in a line as an outcome: one that another program has recorded is not trusted.
#[must_use]
pub fn is_outcome(text: &str) -> bool {
    !text.is_empty()
        && tokens::utf16_len(text) <= LONGEST
        && text
            .chars()
            .all(|c| c == ' ' || render::word(c.encode_utf8(&mut [0; 4])).chars().eq([c]) || c == '\\')
        && bare(text).is_some_and(|bare| {
            !bare.contains(['=']) && !bare.contains("->") && !bare.contains("toolcall_ref")
        })
}

/// Returns what a shell command came to, errors first.
fn command(args: &Map<String, Value>, content: &str, status: Status) -> Option<String> {
    let line = args.get("command").and_then(Value::as_str).unwrap_or_default();
    let exit = exit::of(content, status);
    let output = exit::without(content);
    let programs = programs(line);
    let is_among = |list: &[&str]| programs.iter().any(|name| list.contains(&name.as_str()));
    let told = if programs.iter().all(|name| READERS.contains(&name.as_str())) {
        // A log that is read is no run.
        is_among(&SEARCHES).then(|| matches::searched(output)).flatten()
    } else {
        let mut runs = Runs::default();
        output.lines().for_each(|line| runs.line(&uncoloured(line)));
        runs.told()
    };
    match (told, exit) {
        (Some(told), None) => Some(told),
        (Some(told), Some(exit)) => Some(format!("{told} ({exit})")),
        (None, Some(exit)) => Some(match error_in(output) {
            Some(line) => format!("{exit}: {}", quoted(&line)),
            None => exit,
        }),
        (None, None) => long(output),
    }
}

/// How long an output is, if it is more than a line.
fn long(output: &str) -> Option<String> {
    let lines = output.lines().count();
    (lines > 1).then(|| format!("{lines} lines"))
}

/// The lines of a file that a read shows: what is known, otherwise counted from the numbers before them or from the offset.
fn lines_read(args: &Map<String, Value>, content: &str, shows: Option<(usize, usize)>) -> Option<String> {
    let (first, last) = shows.or_else(|| numbered(content)).or_else(|| {
        let mut lines: Vec<&str> = content.lines().collect();
        if let [.., "", notice] = lines.as_slice()
            && notice.starts_with('[')
            && notice.ends_with(']')
        {
            lines.truncate(lines.len() - 2);
        }
        let offset = args.get("offset").and_then(Value::as_f64).map_or(1, |offset| offset.max(1.0) as usize);
        (!lines.is_empty()).then(|| (offset, offset.saturating_add(lines.len() - 1)))
    })?;
    Some(format!("lines {first}-{last}"))
}

/// The first and last number of lines that have their numbers before them, as `cat -n` writes them.
fn numbered(content: &str) -> Option<(usize, usize)> {
    let number = |line: &str| -> Option<usize> {
        let line = line.trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        line[digits..].starts_with(['\t', '\u{2192}']).then(|| line[..digits].parse().ok())?
    };
    let first = number(content.lines().next()?)?;
    let last = content.lines().rev().find_map(number)?;
    (first <= last).then_some((first, last))
}

/// The line of an output that says what went wrong: the first one that speaks of an error, otherwise the last one.
fn error_in(content: &str) -> Option<String> {
    const WORDS: [&str; 10] = [
        "error",
        "Error",
        "ERROR",
        "fatal",
        "panic",
        "Exception",
        "not found",
        "No such",
        "denied",
        "Traceback",
    ];
    let text = |line: &str| beginning(&uncoloured(line), ERROR);
    let is_error = |line: &&str| line.len() < 2_000 && WORDS.iter().any(|word| line.contains(word));
    // The last line of a trace says what it is about.
    let traced = content.lines().any(|line| line.starts_with("Traceback"));
    let last = || content.lines().rev().find(|line| !line.trim().is_empty());
    let line = if traced { last() } else { content.lines().find(is_error).or_else(last) };
    line.and_then(text)
}

/// The start and the end of a long output, in whole lines.
fn ends(content: &str) -> std::borrow::Cow<'_, str> {
    if content.len() <= 2 * READ {
        return content.into();
    }
    let start = content[..content.floor_char_boundary(READ)].rfind('\n').unwrap_or(0);
    let from = content.floor_char_boundary(content.len() - READ);
    let end = content[from..].find('\n').map_or(content.len(), |at| from + at);
    format!("{}{}", &content[..start], &content[end..]).into()
}
