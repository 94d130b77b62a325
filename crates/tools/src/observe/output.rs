//! File names in the output of a shell command, and in the lines of `ls`, `find` and `grep`, as Pi prints them.

use super::looks::{can_be_file, can_be_path, looks_like_file};
use super::{Candidate, Candidates, Certainty, TouchKind};

/// The maximum number of lines examined. A narrower command finds the names after that.
const MAX_LINES: usize = 2_000;

/// A longer line is data, not a name.
const MAX_LINE_BYTES: usize = 1_000;

/// Names in the lines of any command's output, relative to `dir` (as in [`Candidate::base`], empty for the
/// working directory); `None` leaves relative names out.
pub(super) fn lines(found: &mut Candidates, dir: Option<&str>, text: &str) {
    for line in each(text) {
        if found.is_full() {
            return;
        }
        if let Some(path) = path_of(line) {
            found.add(TouchKind::Discovered, guessed(path, dir));
        }
    }
}

/// Names in the lines of `ls` of `dir`, long or short.
pub(super) fn listed(found: &mut Candidates, dir: Option<&str>, text: &str) {
    for line in each(text) {
        if found.is_full() {
            return;
        }
        let name = long_listing(line).unwrap_or(line.trim());
        // In a listing, a name of several words is rarer than a line of prose.
        if can_be_file(name) && !name.contains([' ', ':']) {
            found.add(TouchKind::Discovered, guessed(name, dir));
        }
    }
}

/// A guessed candidate; `None` for a relative path in an unknown directory.
pub(super) fn guessed(path: &str, dir: Option<&str>) -> Option<Candidate> {
    let base = if path.starts_with(['/', '~']) { None } else { Some(dir?).filter(|dir| !dir.is_empty()) };
    Some(Candidate { path: path.to_owned(), base: base.map(str::to_owned), kind: Certainty::Guessed })
}

fn each(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take(MAX_LINES).filter(|line| line.len() <= MAX_LINE_BYTES)
}

/// The path that a line consists of, starts with, or points to.
fn path_of(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let trimmed = line.trim_start();
    // Compilers and tracebacks: "  --> src/lib.rs:12:5", "  File "a.py", line 3".
    if let Some(place) = trimmed.strip_prefix("--> ") {
        return before_place(place).or(Some(place)).filter(|path| looks_like_file(path));
    }
    if let Some((path, _)) = trimmed.strip_prefix("File \"").and_then(|rest| rest.split_once('"')) {
        return Some(path).filter(|path| looks_like_file(path));
    }
    // Diffs and git: "+++ b/src/lib.rs", " M src/lib.rs", "modified:   src/lib.rs", " src/lib.rs | 4 ++".
    for start in ["+++ b/", "--- a/"] {
        if let Some(path) = line.strip_prefix(start) {
            return Some(path).filter(|path| looks_like_file(path));
        }
    }
    for start in ["modified:", "new file:", "deleted:"] {
        if let Some(path) = trimmed.strip_prefix(start) {
            return Some(path.trim_start()).filter(|path| looks_like_file(path));
        }
    }
    if let Some(path) = short_status(line) {
        return Some(path);
    }
    if let Some((path, _)) = trimmed.split_once(" | ") {
        return Some(path.trim_end()).filter(|path| looks_like_file(path));
    }
    before_place(trimmed).or(Some(trimmed)).filter(|path| looks_like_file(path))
}

/// "src/a.ts:12:5: error", "src/a.ts(12,5): error", "src/a.ts:12:text".
fn before_place(text: &str) -> Option<&str> {
    let colon = match_path(text).or_else(|| {
        let (path, place) = text.rsplit_once(':')?;
        (!place.is_empty() && place.bytes().all(|b| b.is_ascii_digit())).then_some(path)
    });
    let colon = colon.map(|path| match_path(path).unwrap_or(path));
    colon.or_else(|| {
        let (path, place) = text.split_once('(')?;
        let digits = place.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && place[digits..].starts_with([',', ')'])).then_some(path)
    })
}

/// "XY path" of `git status --short`, and "R  old -> new".
fn short_status(line: &str) -> Option<&str> {
    let (code, path) = (line.get(..2)?, line.get(3..)?);
    let is_code = code.trim() != "" && code.chars().all(|c| " MADRCUT?!".contains(c));
    let path = path.rsplit(" -> ").next().unwrap_or(path);
    (is_code && line.as_bytes()[2] == b' ' && looks_like_file(path)).then_some(path)
}

/// The name in a line such as "-rw-r--r-- 1 user group 123 Jan  1 12:00 name"; an empty one for folders.
fn long_listing(line: &str) -> Option<&str> {
    let mode = line.split(' ').next().filter(|mode| (10..=11).contains(&mode.len()))?;
    if !mode.starts_with(['-', 'd', 'l', 'c', 'b', 'p', 's'])
        || !mode[1..].bytes().all(|b| b"rwxsStT-@+.".contains(&b))
    {
        return None;
    }
    if !mode.starts_with(['-', 'l']) {
        return Some("");
    }
    let name = line.split_ascii_whitespace().nth(8)?;
    Some(name)
}

/// One name per line, folders with a slash.
pub(super) fn ls(found: &mut Candidates, dir: Option<String>, output: &str) {
    for name in entries(output).filter(|name| !name.contains('/')) {
        add(found, name, dir.as_ref());
    }
}

/// One path per line, relative to the directory that was searched.
pub(super) fn find(found: &mut Candidates, dir: Option<String>, output: &str) {
    for path in entries(output) {
        add(found, path, dir.as_ref());
    }
}

/// `path:12: text` for a match and `path-11- text` around it, relative to the directory that was searched; only the name
/// if a file was searched.
pub(super) fn grep(found: &mut Candidates, searched: Option<String>, output: &str) {
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

fn add(found: &mut Candidates, path: &str, base: Option<&String>) {
    if can_be_path(path) && !path.ends_with('/') {
        let candidate = Candidate { path: path.to_owned(), base: base.cloned(), kind: Certainty::Named };
        found.add(TouchKind::Discovered, Some(candidate));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("src/main.rs", Some("src/main.rs"))]
    #[case("./a/b.txt", Some("./a/b.txt"))]
    #[case("src/a.ts:12:5: error: x", Some("src/a.ts"))]
    #[case("src/a.ts(212,28): error TS2304: Cannot find name", Some("src/a.ts"))]
    #[case("src/a.rs:12:    let x = 1;", Some("src/a.rs"))]
    #[case("src/a.rs:12", Some("src/a.rs"))]
    #[case("   --> src/lib.rs:12:5", Some("src/lib.rs"))]
    #[case("  File \"/app/x.py\", line 3, in <module>", Some("/app/x.py"))]
    #[case("+++ b/src/lib.rs", Some("src/lib.rs"))]
    #[case("--- a/src/lib.rs", Some("src/lib.rs"))]
    #[case("--- /dev/null", None)]
    #[case(" M src/lib.rs", Some("src/lib.rs"))]
    #[case("?? notes.md", Some("notes.md"))]
    #[case("R  a.rs -> b.rs", Some("b.rs"))]
    #[case("\tmodified:   src/lib.rs", Some("src/lib.rs"))]
    #[case(" src/lib.rs | 12 ++--", Some("src/lib.rs"))]
    #[case("hello world", None)]
    #[case("12 passed", None)]
    #[case("https://a.b/c.html", None)]
    #[case("node_modules/", None)]
    #[case("", None)]
    fn paths(#[case] line: &str, #[case] path: Option<&str>) {
        assert_eq!(path_of(line), path);
    }

    #[rstest]
    #[case("-rw-r--r--  1 user  staff   123 Jan  1 12:00 name.txt", Some("name.txt"))]
    #[case("-rw-------@ 1 user staff 7362 Jan  5 14:49 a.json", Some("a.json"))]
    #[case("lrwxrwxrwx 1 root root 4 Jan 1 2024 link -> target", Some("link"))]
    #[case("drwxr-xr-x 2 root root 4096 Jan 1 12:00 src", Some(""))]
    #[case("total 12", None)]
    #[case("name.txt", None)]
    fn long_listings(#[case] line: &str, #[case] name: Option<&str>) {
        assert_eq!(long_listing(line), name);
    }

    #[rstest]
    #[case("src/a.ts:12: x", Some("src/a.ts"))]
    #[case("src/a.ts:12", None)]
    #[case("src/a.ts:12 x", None)]
    #[case("a::b:3:x", Some("a::b"))]
    #[case("a::b", None)]
    fn lines_of_a_search(#[case] line: &str, #[case] path: Option<&str>) {
        assert_eq!(match_path(line), path);
    }

    #[rstest]
    #[case(" M src/a.rs", Some("src/a.rs"))]
    #[case("   src/a.rs", None)]
    #[case("xx src/a.rs", None)]
    #[case("MM:src/a.rs", None)]
    #[case("MM word", None)]
    fn lines_of_a_short_status(#[case] line: &str, #[case] path: Option<&str>) {
        assert_eq!(short_status(line), path);
    }

    #[rstest]
    #[case("-abcdefghi 1 user group 1 Jan 1 12:00 name", None)]
    #[case("wrw-r--r-- 1 user group 1 Jan 1 12:00 name", None)]
    #[case("brw-r--r-- 1 user group 1 Jan 1 12:00 name", Some(""))]
    fn detects_ls_long_format(#[case] line: &str, #[case] name: Option<&str>) {
        assert_eq!(long_listing(line), name);
    }
}
