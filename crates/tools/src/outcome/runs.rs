//! The last lines of test runners and compilers: the number of failures, and their names.
//!
//! One table with a row for each. A row reads a line that its program prints; no row knows the command, because runners hide
//! behind `make`, `npm test` and scripts.

use super::words::{end_of, shown};

/// The maximum number of names in an outcome, and the maximum length of each.
const NAMES: usize = 3;
const NAME: usize = 48;

/// The reports of the programs of a command.
#[derive(Debug, Default)]
pub(super) struct Runs {
    tallies: [Tally; ROWS.len()],
}

/// The report of one program.
#[derive(Debug, Default)]
struct Tally {
    failed: u64,
    passed: u64,
    errors: u64,
    warnings: u64,
    /// Packages without a failure, where tests are not counted.
    fine: u64,
    /// Files with failures. One that does not load has no tests that could fail.
    files: u64,
    /// The names of what failed, in order.
    names: Vec<String>,
    /// A line that the next ones belong to: a file, or an error whose place comes.
    open: Option<String>,
}

/// A program: reads a line into its tally, and says whether the line is its own.
type RunRule = fn(&mut Tally, &str) -> bool;

/// `cargo test` and nextest, rustc and clippy, vitest and jest, mocha and `node --test`, pytest and unittest, go, tsc, eslint.
const ROWS: [RunRule; 8] = [cargo, rustc, vitest, mocha, pytest, go, tsc, eslint];

impl Runs {
    /// Takes in a line of the output, without colours.
    pub(super) fn line(&mut self, line: &str) {
        if line.len() > 2_000 || line.is_empty() {
            return;
        }
        for (row, tally) in ROWS.iter().zip(&mut self.tallies) {
            if row(tally, line) {
                return;
            }
        }
    }

    /// `2 failed: a.test.ts, b.test.ts`, `3 errors: src/a.ts:12`, `41 passed`; `None` if no program was recognised.
    pub(super) fn told(&self) -> Option<String> {
        let sum = |of: fn(&Tally) -> u64| self.tallies.iter().map(of).sum::<u64>();
        let failed = sum(|tally| if tally.failed > 0 { tally.failed } else { tally.files });
        let errors = sum(|tally| tally.errors);
        let passed = sum(|tally| tally.passed);
        let bad: Vec<String> = [
            (failed > 0).then(|| format!("{failed} failed")),
            (errors > 0).then(|| counted(errors, "error")),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !bad.is_empty() {
            let named = self.tallies.iter().flat_map(|tally| &tally.names);
            return Some(format!("{}{}", bad.join(", "), listed(named.map(String::as_str))));
        }
        if passed > 0 {
            return Some(format!("{passed} passed"));
        }
        let (fine, warnings) = (sum(|tally| tally.fine), sum(|tally| tally.warnings));
        (fine > 0)
            .then(|| format!("{} ok", counted(fine, "package")))
            .or_else(|| (warnings > 0).then(|| counted(warnings, "warning")))
    }
}

/// `1 error`, `2 errors`.
pub(super) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// `: a, b, c, ...`; nothing without names. Equal names are listed once, and names that are too long not at all.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut list: Vec<&str> = Vec::new();
    let mut more = false;
    for name in names {
        match end_of(name, NAME) {
            Some(end) if list.contains(&end) => {}
            Some(end) if list.len() < NAMES => list.push(end),
            _ => more = true,
        }
    }
    if list.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = list.into_iter().map(shown).collect();
    format!(": {}{}", shown.join(", "), if more { ", ..." } else { "" })
}

impl Tally {
    fn name(&mut self, name: &str) {
        // Enough to know that there are more than are shown.
        if self.names.len() < 64 && !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    /// Adds `2 failed, 1 passed` or `2 failed | 1 passed (3)`. Returns true if there was such a count.
    fn totals(&mut self, text: &str) -> bool {
        let mut found = false;
        for part in text.split([',', '|', ';', '(', ')', '.']) {
            let Some((count, what)) = part.trim().split_once(' ') else { continue };
            let Ok(count) = count.parse::<u64>() else { continue };
            let slot = match what.trim() {
                "failed" => &mut self.failed,
                "passed" => &mut self.passed,
                "error" | "errors" => &mut self.errors,
                _ => continue,
            };
            *slot += count;
            found = true;
        }
        found
    }
}

fn cargo(tally: &mut Tally, line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("test result: ") {
        return tally.totals(rest);
    }
    if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
        tally.name(name);
        return true;
    }
    let trimmed = line.trim_start();
    if let Some(rest) = trimmed.strip_prefix("FAIL [") {
        let name = rest.split_once("] ").and_then(|(_, test)| test.split_whitespace().last());
        name.into_iter().for_each(|name| tally.name(name));
        return true;
    }
    let summary = trimmed.strip_prefix("Summary [").and_then(|rest| rest.split_once(" run: "));
    summary.is_some_and(|(_, rest)| tally.totals(rest))
}

fn rustc(tally: &mut Tally, line: &str) -> bool {
    if line.starts_with("error: ") || line.starts_with("error[") {
        // Only an error with a place is one of the compiler.
        tally.open = Some("error".to_owned());
        return false;
    }
    if line.starts_with("warning: ") {
        tally.open = Some("warning".to_owned());
        return false;
    }
    let Some(place) = line.trim_start().strip_prefix("--> ") else { return false };
    match tally.open.take().as_deref() {
        Some("error") => {
            tally.errors += 1;
            tally.name(place.rsplit_once(':').map_or(place, |(start, _)| start));
        }
        Some(_) => tally.warnings += 1,
        None => {}
    }
    true
}

fn vitest(tally: &mut Tally, line: &str) -> bool {
    let trimmed = line.trim_start();
    if let Some(rest) = trimmed.strip_prefix("FAIL ") {
        let mut words = rest.split_whitespace().filter(|word| !word.starts_with('|'));
        let Some(file) = words.next().filter(|file| file.contains('.') || file.contains('/')) else {
            return false;
        };
        tally.name(file);
        return true;
    }
    let is_total = |start: &str| trimmed.strip_prefix(start).filter(|rest| rest.starts_with(' '));
    if let Some(rest) = is_total("Tests").or_else(|| trimmed.strip_prefix("Tests:")) {
        return tally.totals(rest);
    }
    let Some(rest) = is_total("Test Files").or_else(|| trimmed.strip_prefix("Test Suites:")) else {
        return false;
    };
    let mut files = Tally::default();
    let found = files.totals(rest);
    tally.files += files.failed;
    found
}

fn mocha(tally: &mut Tally, line: &str) -> bool {
    let trimmed = line.trim_start_matches([' ', '#', '\u{2139}', '\t']);
    let mut words = trimmed.split_whitespace();
    match (words.next(), words.next()) {
        (Some(count), Some(what @ ("passing" | "failing"))) if line.starts_with("  ") => {
            let Ok(count) = count.parse::<u64>() else { return false };
            *(if what == "passing" { &mut tally.passed } else { &mut tally.failed }) += count;
            true
        }
        (Some(what @ ("pass" | "fail")), Some(count)) if line.starts_with(['#', '\u{2139}']) => {
            let Ok(count) = count.parse::<u64>() else { return false };
            *(if what == "pass" { &mut tally.passed } else { &mut tally.failed }) += count;
            true
        }
        _ => false,
    }
}

fn pytest(tally: &mut Tally, line: &str) -> bool {
    for start in ["FAILED ", "ERROR "] {
        if let Some(name) = line.strip_prefix(start).and_then(|rest| rest.split(" - ").next())
            && (name.contains("::") || name.ends_with(".py"))
        {
            tally.name(name);
            return true;
        }
    }
    // unittest
    if let Some(rest) = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "))
        && let Some((name, _)) = rest.split_once(" (")
    {
        tally.name(name);
        return true;
    }
    if let Some(rest) = line.strip_prefix("FAILED (").and_then(|rest| rest.strip_suffix(')')) {
        for part in rest.split(", ") {
            let Some((what, count)) = part.split_once('=') else { continue };
            let count = count.parse::<u64>().unwrap_or(0);
            match what {
                "failures" => tally.failed += count,
                "errors" => tally.errors += count,
                _ => {}
            }
        }
        return true;
    }
    let summary = line.trim_matches(['=', ' ']);
    match summary.split_once(" in ") {
        Some((counts, time)) if time.split(' ').next().is_some_and(is_seconds) => tally.totals(counts),
        _ => false,
    }
}

/// `0.12s`.
fn is_seconds(text: &str) -> bool {
    text.strip_suffix('s').is_some_and(|number| number.parse::<f64>().is_ok())
}

fn go(tally: &mut Tally, line: &str) -> bool {
    if let Some(name) = line.strip_prefix("--- FAIL: ") {
        tally.failed += 1;
        tally.name(name.split(' ').next().unwrap_or(name));
        return true;
    }
    if line.starts_with("--- PASS: ") {
        tally.passed += 1;
        return true;
    }
    if let Some(rest) = line.strip_prefix("FAIL\t") {
        if let Some((package, _)) = rest.split_once(" [") {
            tally.failed += 1;
            tally.name(package);
        }
        return true;
    }
    if line.starts_with("ok  \t") {
        tally.fine += 1;
        return true;
    }
    // Also vet, golangci-lint, gcc and clang: path:line:column: what is wrong.
    let mut parts = line.splitn(4, ':');
    let (Some(path), Some(row), Some(column), Some(what)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(row) || !is_number(column) || !is_file(path) || !what.starts_with(' ') {
        return false;
    }
    match what.trim_start() {
        note if note.starts_with("note:") => {}
        warning if warning.starts_with("warning:") => tally.warnings += 1,
        _ => {
            tally.errors += 1;
            tally.name(&format!("{path}:{row}"));
        }
    }
    true
}

/// True if a word is the path of a file with an extension.
fn is_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    !word.contains([' ', '\t', '"', '(']) && name.rsplit_once('.').is_some_and(|(_, end)| !end.is_empty())
}

fn tsc(tally: &mut Tally, line: &str) -> bool {
    let (place, is_error) = match (line.split_once("): error TS"), line.split_once(" - error TS")) {
        (Some((place, _)), _) => (place.split_once('('), true),
        (_, Some((place, _))) => (place.split_once(':'), true),
        _ => (None, false),
    };
    let Some((path, place)) = place.filter(|(path, _)| is_error && is_file(path)) else { return false };
    let row = place.split([',', ':']).next().unwrap_or_default();
    tally.errors += 1;
    tally.name(&format!("{path}:{row}"));
    true
}

fn eslint(tally: &mut Tally, line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("\u{2716} ") {
        let counts = rest.split_once('(').map_or("", |(_, counts)| counts.trim_end_matches(')'));
        for part in counts.split(", ") {
            let Some((count, what)) = part.split_once(' ') else { continue };
            let count = count.parse::<u64>().unwrap_or(0);
            match what {
                "error" | "errors" => tally.errors += count,
                "warning" | "warnings" => tally.warnings += count,
                _ => {}
            }
        }
        return !counts.is_empty();
    }
    if !line.starts_with(' ') {
        tally.open = is_file(line).then(|| line.to_owned());
        return false;
    }
    let mut words = line.split_whitespace();
    if let (Some(place), Some("error"), Some(file)) = (words.next(), words.next(), &tally.open)
        && let Some((row, _)) = place.split_once(':')
    {
        let name = format!("{file}:{row}");
        tally.name(&name);
        return true;
    }
    false
}
