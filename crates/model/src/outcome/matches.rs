//! What a search or a listing has found.

use super::runs::{counted, listed};
use crate::observe::{entries, looks_like_file, match_path};

/// As many files are named; of more, only the number is given.
const NAMED: usize = 2;

/// Returns what the tool `grep` has found: lines `path:12: text`, or paths.
pub(super) fn grep(output: &str) -> String {
    let lines = entries(output).filter(|line| !line.trim().is_empty() && !is_count(line));
    let (mut matches, mut paths, mut others, mut files) = (0, 0, 0, Vec::new());
    for line in lines {
        match match_path(line) {
            Some(path) => {
                matches += 1;
                if !files.contains(&path) {
                    files.push(path);
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
                let names = listed(files.iter().copied());
                return format!("{count}{}", names.replacen(": ", " in ", 1));
            }
            format!("{count} in {} files", files.len())
        }
    }
}

/// Returns what the tools `find` and `ls` have found: a path on each line.
pub(super) fn listing(output: &str) -> String {
    let paths = entries(output).filter(|line| !line.trim().is_empty() && !is_count(line)).count();
    if paths == 0 { "nothing".to_owned() } else { counted(paths as u64, "path") }
}

/// Returns what a shell's search has found, if it prints lines with their places.
pub(super) fn searched(output: &str) -> Option<String> {
    entries(output).any(|line| match_path(line).is_some()).then(|| grep(output))
}

/// "Found 12 files", as some hosts begin a list.
fn is_count(line: &str) -> bool {
    line.strip_prefix("Found ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
