//! Lines of `ls`, `find` and `grep`, as Pi prints them.

use super::found::{Candidate, Found, Kind, Touch};
use super::looks::{can_be_path, looks_like_file};

/// One name per line, folders with a slash.
pub(super) fn ls(found: &mut Found, dir: Option<String>, output: &str) {
    for name in entries(output).filter(|name| !name.contains('/')) {
        add(found, name, dir.as_ref());
    }
}

/// One path per line, relative to the directory that was searched.
pub(super) fn find(found: &mut Found, dir: Option<String>, output: &str) {
    for path in entries(output) {
        add(found, path, dir.as_ref());
    }
}

/// `path:12: text` for a match and `path-11- text` around it, relative to the directory that was searched; only the name
/// if a file was searched.
pub(super) fn grep(found: &mut Found, searched: Option<String>, output: &str) {
    for line in entries(output) {
        let path = match match_path(line) {
            Some(path) => path,
            // Other harnesses' grep can list paths alone.
            None if looks_like_file(line) => line,
            None => continue,
        };
        if let Some(file) = searched.as_ref().filter(|file| file.rsplit('/').next() == Some(path)) {
            // Either a file was searched, or a directory that contains a file of the same name. Only the disk can tell.
            add(found, file, None);
        }
        add(found, path, searched.as_ref());
    }
}

/// The path of a line `path:12: text` or `path:12:text`.
pub(crate) fn match_path(line: &str) -> Option<&str> {
    let mut from = 0;
    while let Some(colon) = line[from..].find(':').map(|at| from + at) {
        let rest = &line[colon + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && rest[digits..].starts_with(':') {
            return Some(&line[..colon]).filter(|path| can_be_path(path));
        }
        from = colon + 1;
    }
    None
}

/// The lines of a listing that are entries, without a notice in brackets at the end.
pub(crate) fn entries(output: &str) -> impl Iterator<Item = &str> {
    let mut lines: Vec<&str> = output.lines().collect();
    if let [.., "", last] = lines.as_slice()
        && last.starts_with('[')
        && last.ends_with(']')
    {
        lines.truncate(lines.len() - 2);
    }
    let nothing =
        ["(empty directory)", "No files found matching pattern", "No matches found", "No files found"];
    lines.into_iter().filter(move |line| !nothing.contains(line))
}

fn add(found: &mut Found, path: &str, base: Option<&String>) {
    if can_be_path(path) && !path.ends_with('/') {
        let candidate = Candidate { path: path.to_owned(), base: base.cloned(), kind: Kind::Named };
        found.add(Touch::Discovered, Some(candidate));
    }
}
