//! The outcome of a call in a few words: `3 failed: a.test.ts, b.test.ts (exit 1)`, `12 matches in 4 files`, `lines 1-482`. It
//! is recorded with the call and is part of the line that replaces the output, so it is all that the model still knows of the
//! output.
//!
//! It depends on the call alone and never changes. Nothing in it can be forged: text of files and tools is bare only where it
//! can't be mistaken for our words, and otherwise in quotes.

mod runs;
mod words;

use std::collections::HashSet;

use runs::{Runs, counted, listed};
use serde_json::{Map, Value};
use words::{beginning, quoted, uncoloured};
pub use words::{is_said_by, unquoted};

use crate::observe::{entries, looks_like_file, match_path, programs};
use context_lines::escape;
use context_model::collapse::is_control;
use context_model::object::Status;
use context_model::tokens;

/// An outcome has at most this many UTF-16 units.
pub const LONGEST_OUTCOME: usize = 160;

/// The length of the shown part of an error's line, in UTF-16 units.
const ERROR: usize = 80;

/// Programs that show existing content. Their output may be that of a test run, but running them is not a test run.
const READERS: [&str; 36] = [
    "ack", "ag", "awk", "bat", "cat", "cd", "cut", "diff", "echo", "egrep", "fd", "fgrep", "file", "find",
    "gh", "git", "grep", "head", "jq", "less", "ls", "more", "nl", "printf", "pwd", "rg", "sed", "sort",
    "stat", "tac", "tail", "tr", "tree", "uniq", "wc", "xargs",
];

/// Those that search.
const SEARCHES: [&str; 6] = ["ack", "ag", "egrep", "fgrep", "grep", "rg"];

/// Returns the outcome of a call's output; `None` where the status says it all. `shows` are the lines of a file that the output
/// is known to show.
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
    let told = match tool.as_str() {
        "bash" | "powershell" | "shell" => command(args, content, status),
        _ if status == Status::Fail => error_in(content).map(|line| quoted(&line)),
        "read" => lines_read(args, content, shows),
        "grep" => Some(grep(content)),
        "find" | "glob" | "ls" => Some(listing(content)),
        "write" | "edit" => None,
        _ => long(content),
    }?;
    (tokens::utf16_len(&told) <= LONGEST_OUTCOME).then_some(told)
}

/// Returns the part of a line before its outcome, given as one line: as it is, or in quotes where it could pose as an outcome
/// or as a field of ours.
#[must_use]
pub fn subject(gist: &str) -> String {
    if gist.contains("->") || gist.split_whitespace().any(words::is_field) {
        format!("\"{}\"", gist.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        gist.to_owned()
    }
}

/// True if a text can stand in a line as an outcome: one that another program has recorded is not trusted.
#[must_use]
pub fn is_outcome(text: &str) -> bool {
    !text.is_empty()
        && tokens::utf16_len(text) <= LONGEST_OUTCOME
        && text
            .chars()
            .all(|c| c == ' ' || escape::word(c.encode_utf8(&mut [0; 4])).chars().eq([c]) || c == '\\')
        && unquoted(text).is_some_and(|bare| {
            !bare.contains(['=']) && !bare.contains("->") && !bare.contains("toolcall_ref")
        })
}

/// Returns the outcome of a shell command, errors first.
fn command(args: &Map<String, Value>, content: &str, status: Status) -> Option<String> {
    let line = args.get("command").and_then(Value::as_str).unwrap_or_default();
    let exit = how_it_ended(content, status);
    let output = without_ending(content);
    let programs = programs(line);
    let is_among = |list: &[&str]| programs.iter().any(|name| list.contains(&name.as_str()));
    let told = if programs.iter().all(|name| READERS.contains(&name.as_str())) {
        // Reading a log is not a run.
        is_among(&SEARCHES).then(|| searched(output)).flatten()
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

/// Returns the length of an output that has more than one line.
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

/// The text that hosts write before the code, on a separate line: Pi, Claude Code, Codex, OpenCode, mini-swe-agent.
const CODES: [&str; 5] =
    ["Command exited with code ", "Exit code ", "Process exited with code ", "Exit code: ", "<returncode>"];

/// The text that hosts write about a command that did not end by itself, and the words of an outcome for it.
const ENDED: [(&str, &str); 2] = [("Command timed out", "timed out"), ("Command aborted", "aborted")];

/// `exit 1`, `timed out`, or `failed` if the host says only that; `None` for a command that has succeeded.
fn how_it_ended(content: &str, status: Status) -> Option<String> {
    let said = [content.lines().next(), last(content)].into_iter().flatten().find_map(|line| {
        let number = |text: &str| text.trim_end_matches("</returncode>").trim().parse::<i32>().ok();
        let code = CODES.iter().find_map(|start| number(line.strip_prefix(start)?));
        let ended = || ENDED.iter().find(|(start, _)| line.starts_with(start)).map(|(_, word)| *word);
        code.map(|code| format!("exit {code}")).or_else(|| ended().map(str::to_owned))
    });
    match said {
        Some(exit) => (exit != "exit 0").then_some(exit),
        None => (status == Status::Fail).then(|| "failed".to_owned()),
    }
}

/// The output without the line that says how the command ended.
fn without_ending(content: &str) -> &str {
    let is_said = |line: &str| {
        CODES.iter().chain(ENDED.iter().map(|(start, _)| start)).any(|start| line.starts_with(start))
    };
    match content.split_once('\n') {
        Some((first, rest)) if is_said(first) => rest,
        _ => match last(content) {
            Some(line) if is_said(line) => {
                let end = content.rfind(line).unwrap_or(content.len());
                content[..end].trim_end()
            }
            _ => content,
        },
    }
}

fn last(content: &str) -> Option<&str> {
    content.lines().rev().find(|line| !line.trim().is_empty())
}

/// The maximum number of files that are named; of more, only the number is given.
const NAMED: usize = 2;

/// Returns the outcome of the tool `grep`: lines `path:12: text`, or paths.
fn grep(output: &str) -> String {
    let lines = entries(output).filter(|line| !line.trim().is_empty() && !is_count(line));
    let (mut matches, mut paths, mut others) = (0, 0, 0);
    let (mut files, mut first) = (HashSet::new(), Vec::new());
    for line in lines {
        match match_path(line) {
            Some(path) => {
                matches += 1;
                if files.insert(path) && first.len() < NAMED {
                    first.push(path);
                }
            }
            None if looks_like_file(line) => paths += 1,
            None => others += 1,
        }
    }
    match (matches, paths) {
        (0, 0) if others == 0 => "no matches".to_owned(),
        (0, 0) => counted(others, "line"),
        (0, paths) => counted(paths, "file"),
        (matches, _) => {
            let count = counted(matches, "match").replace("matchs", "matches");
            if files.len() <= NAMED {
                let names = listed(first.into_iter());
                return format!("{count}{}", names.replacen(": ", " in ", 1));
            }
            format!("{count} in {} files", files.len())
        }
    }
}

/// Returns what the tools `find` and `ls` have found: a path on each line.
fn listing(output: &str) -> String {
    let paths = entries(output).filter(|line| !line.trim().is_empty() && !is_count(line)).count();
    if paths == 0 { "nothing".to_owned() } else { counted(paths as u64, "path") }
}

/// Returns the outcome of a shell's search, if it prints lines with their places.
fn searched(output: &str) -> Option<String> {
    entries(output).any(|line| match_path(line).is_some()).then(|| grep(output))
}

/// "Found 12 files", as some hosts begin a list.
fn is_count(line: &str) -> bool {
    line.strip_prefix("Found ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The counts of a long output are those of all of it.
    #[rstest]
    #[case::lines("cat", "seq 30000", |n| format!("line {n} of an output without an end"), "30000 lines")]
    #[case::matches("grep", "", |n| format!("src/f{}.ts:{n}: a line that was found somewhere", n % 9), "30000 matches in 9 files")]
    #[case::paths("find", "", |n| format!("src/a/path/that/is/rather/long/f{n}.ts"), "30000 paths")]
    #[case::errors("bash", "npx tsc", |n| format!("src/f.ts({n},1): error TS2304: Cannot find name 'x'."), "30000 errors: src/f.ts:0, src/f.ts:1, src/f.ts:2, ...")]
    fn counts_of_a_long_output(
        #[case] tool: &str,
        #[case] line: &str,
        #[case] of: fn(usize) -> String,
        #[case] expected: &str,
    ) {
        let content = (0..30_000).map(of).collect::<Vec<_>>().join("\n");
        let args = serde_json::json!({ "command": line });
        let told = outcome(tool, args.as_object().unwrap(), &content, Status::Ok, None);
        assert_eq!(told.as_deref(), Some(expected));
    }

    #[rstest]
    #[case::pi("x\n\nCommand exited with code 1", Status::Fail, Some("exit 1"), "x")]
    #[case::claude("Exit code 2\nx", Status::Fail, Some("exit 2"), "x")]
    #[case::mini_swe_agent("<returncode>3</returncode>\nx", Status::Ok, Some("exit 3"), "x")]
    #[case::zero("x\n\nCommand exited with code 0", Status::Ok, None, "x")]
    #[case::time("x\n\nCommand timed out after 5 seconds", Status::Fail, Some("timed out"), "x")]
    #[case::silent("x", Status::Fail, Some("failed"), "x")]
    #[case::well("x", Status::Ok, None, "x")]
    #[case::in_the_middle("a\nExit code 3\nb", Status::Ok, None, "a\nExit code 3\nb")]
    #[case::nothing("", Status::Ok, None, "")]
    fn how_commands_end(
        #[case] content: &str,
        #[case] status: Status,
        #[case] exit: Option<&str>,
        #[case] rest: &str,
    ) {
        assert_eq!((how_it_ended(content, status).as_deref(), without_ending(content)), (exit, rest));
    }
}
