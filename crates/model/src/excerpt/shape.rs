//! What a large output is, in a few words.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::lines::{Class, Lines};
use crate::observe::match_path;

/// What an output is as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shape {
    /// Number of lines.
    pub lines: usize,
    /// Number of UTF-16 units.
    pub chars: usize,
    /// Number of lines that report a failure.
    pub error_lines: usize,
    /// Number of lines that warn and report no failure.
    pub warning_lines: usize,
    /// Elements, where the whole is one JSON array.
    pub json_items: Option<usize>,
    /// Names of the first fields, where the whole is one JSON object.
    pub json_fields: Option<Vec<String>>,
    /// What test runners counted.
    pub tests: Option<TestTotals>,
    /// Matching lines and files with matches, where the whole is the output of a search.
    pub matches: Option<(usize, usize)>,
}

/// The totals that test runners print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TestTotals {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were skipped or ignored.
    pub skipped: u64,
}

/// How many field names are listed, and how long one may be.
const FIELDS: usize = 8;
const FIELD_CHARS: usize = 40;

impl Shape {
    /// `reports` says whether lines can report failures and totals; a search or a listing has matches.
    pub(super) fn of(text: &str, lines: &Lines<'_>, chars: usize, reports: bool) -> Self {
        let mut shape = Self { lines: lines.len(), chars, ..Self::default() };
        if reports {
            shape.tests = tests(lines);
        } else {
            shape.matches = matches(lines);
        }
        for at in 0..lines.len() {
            match lines.class(at) {
                Class::Failure => shape.error_lines += 1,
                Class::Warning => shape.warning_lines += 1,
                Class::Plain => {}
            }
        }
        match text.trim_start().as_bytes().first() {
            Some(b'[') => {
                shape.json_items =
                    serde_json::from_str::<Vec<IgnoredAny>>(text).ok().map(|items| items.len());
            }
            Some(b'{') => {
                shape.json_fields = serde_json::from_str::<Fields>(text).ok().map(|fields| fields.0)
            }
            _ => {}
        }
        shape
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} chars", count(self.lines, "line"), self.chars)?;
        if let Some(items) = self.json_items {
            write!(f, ", JSON array of {items}")?;
        }
        match self.json_fields.as_deref() {
            Some([]) => f.write_str(", JSON object")?,
            Some(fields) => write!(f, ", JSON object with {}", fields.join(", "))?,
            None => {}
        }
        if let Some(TestTotals { passed, failed, skipped }) = self.tests {
            write!(f, ", tests: {passed} passed, {failed} failed")?;
            if skipped > 0 {
                write!(f, ", {skipped} skipped")?;
            }
        }
        if let Some((hits, files)) = self.matches {
            write!(f, ", {hits} match{} in {}", if hits == 1 { "" } else { "es" }, count(files, "file"))?;
        }
        if self.error_lines > 0 {
            write!(f, ", {}", count(self.error_lines, "error line"))?;
        }
        if self.warning_lines > 0 {
            write!(f, ", {}", count(self.warning_lines, "warning line"))?;
        }
        Ok(())
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The names of an object's first fields that are plain words; values are skipped without being kept.
struct Fields(Vec<String>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut names = Vec::new();
                while let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? {
                    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
                    if names.len() < FIELDS && name.len() <= FIELD_CHARS && name.chars().all(plain) {
                        names.push(name);
                    }
                }
                Ok(Fields(names))
            }
        }
        deserializer.deserialize_map(Names)
    }
}

/// Lines of the form `path:12: text`, and how many paths they name.
fn matches(lines: &Lines<'_>) -> Option<(usize, usize)> {
    let paths: Vec<&str> = (0..lines.len()).filter_map(|at| match_path(lines.get(at))).collect();
    let files: HashSet<&str> = paths.iter().copied().collect();
    (!paths.is_empty()).then_some((paths.len(), files.len()))
}

/// Totals as cargo, pytest, vitest, jest, mocha and others print them: a number before the word. Each of
/// cargo's binaries prints its own line, so those add up; the others print the total last.
fn tests(lines: &Lines<'_>) -> Option<TestTotals> {
    let (mut sum, mut last) = (None, TestTotals::default());
    let mut found = false;
    for line in (0..lines.len()).map(|at| lines.get(at)).filter(|line| line.len() <= 300) {
        if let Some(rest) = line.trim_start().strip_prefix("test result:") {
            let sum = sum.get_or_insert_with(TestTotals::default);
            totals(rest, |word, n| add(sum, word, n, u64::saturating_add));
        } else if is_total(line) {
            totals(line, |word, n| {
                found |= word != Word::Skipped;
                add(&mut last, word, n, |_, n| n);
            });
        }
    }
    sum.or(found.then_some(last))
}

#[derive(Clone, Copy, PartialEq)]
enum Word {
    Passed,
    Failed,
    Skipped,
}

fn add(totals: &mut TestTotals, word: Word, n: u64, with: impl Fn(u64, u64) -> u64) {
    let field = match word {
        Word::Passed => &mut totals.passed,
        Word::Failed => &mut totals.failed,
        Word::Skipped => &mut totals.skipped,
    };
    *field = with(*field, n);
}

/// Whether a line is a total and no prose: it starts as test runners start theirs, or with the number.
fn is_total(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t', '=', '✖', '✔', '#', 'ℹ']);
    line.starts_with(|c: char| c.is_ascii_digit())
        || line.starts_with("Tests")
        || line.starts_with("Test Results")
}

fn totals(line: &str, mut on: impl FnMut(Word, u64)) {
    let mut number = None;
    for word in line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        let kind = match word {
            "passed" | "passing" => Some(Word::Passed),
            "failed" | "failing" => Some(Word::Failed),
            "skipped" | "ignored" | "pending" | "todo" => Some(Word::Skipped),
            _ => None,
        };
        if let (Some(kind), Some(n)) = (kind, number) {
            on(kind, n);
        }
        number = word.parse().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn shape(text: &str) -> String {
        Shape::of(text, &Lines::new(text, true), text.encode_utf16().count(), true).to_string()
    }

    #[test]
    fn a_search_has_matches() {
        let text = "a.rs:1: error\na.rs-2- x\nb.rs:3: 5 failed";
        let shape = Shape::of(text, &Lines::new(text, false), text.len(), false);
        assert_eq!(shape.to_string(), "3 lines, 40 chars, 2 matches in 2 files");
    }

    #[rstest]
    #[case::plain("a\nb\n", "2 lines, 4 chars")]
    #[case::one_line("😀", "1 line, 2 chars")]
    #[case::array("[1, {\"a\": [2]}, 3]", "1 line, 18 chars, JSON array of 3")]
    #[case::empty_array("[]", "1 line, 2 chars, JSON array of 0")]
    #[case::object("{\"id\": 1, \"na\\u006de\": {}}", "1 line, 26 chars, JSON object with id, name")]
    #[case::hostile_names("{\"a\\nb\": 1}", "1 line, 11 chars, JSON object")]
    #[case::broken_json("[1, 2", "1 line, 5 chars")]
    #[case::log_in_brackets("[info] started", "1 line, 14 chars")]
    #[case::cargo(
        "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured\n\
         test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured",
        "2 lines, 122 chars, tests: 15 passed, 2 failed, 1 skipped, 1 error line"
    )]
    #[case::pytest(
        "==== 3 failed, 12 passed in 1.23s ====",
        "1 line, 38 chars, tests: 12 passed, 3 failed, 1 error line"
    )]
    #[case::vitest(
        "      Tests  1 failed | 41 passed (42)",
        "1 line, 38 chars, tests: 41 passed, 1 failed, 1 error line"
    )]
    #[case::jest("Tests:       2 passed, 2 total", "1 line, 30 chars, tests: 2 passed, 0 failed")]
    #[case::mocha(
        "  12 passing (20ms)\n  3 failing",
        "2 lines, 31 chars, tests: 12 passed, 3 failed, 1 error line"
    )]
    #[case::prose("we passed 3 failed parts", "1 line, 24 chars, 1 error line")]
    #[case::errors("error: a\nwarning: b\nerror: c", "3 lines, 28 chars, 2 error lines, 1 warning line")]
    fn shapes(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(shape(text), expected);
    }
}
