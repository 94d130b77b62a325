//! A text as numbered lines, and which of them report a failure.

use context_lines::cut_mark;
use context_model::tokens;

/// The class of a line by what it reports, judged by its words alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Plain,
    Warning,
    Failure,
}

/// The lines of a text, without their line feeds. A line feed at the very end does not start another line.
pub(super) struct TextLines<'a> {
    text: &'a str,
    /// Byte range and class of each line.
    lines: Vec<(usize, usize, Class)>,
}

impl<'a> TextLines<'a> {
    /// Without `classify` every line is plain.
    pub(super) fn new(text: &'a str, classify: bool) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        for line in text.split_terminator('\n') {
            let class = if classify { class_of(line) } else { Class::Plain };
            lines.push((start, start + line.len(), class));
            start += line.len() + 1;
        }
        Self { text, lines }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn get(&self, at: usize) -> &'a str {
        let (start, end, _) = self.lines[at];
        &self.text[start..end]
    }

    pub(super) fn class(&self, at: usize) -> Class {
        self.lines[at].2
    }

    pub(super) fn in_class(&self, class: Class) -> Vec<usize> {
        (0..self.len()).filter(|at| self.class(*at) == class).collect()
    }

    pub(super) fn chars(&self, at: usize) -> usize {
        tokens::utf16_len(self.get(at))
    }

    /// The lines from `from` up to and excluding `to`, unchanged.
    pub(super) fn between(&self, from: usize, to: usize) -> &'a str {
        if from >= to { "" } else { &self.text[self.lines[from].0..self.lines[to - 1].1] }
    }

    pub(super) fn chars_between(&self, from: usize, to: usize) -> usize {
        tokens::utf16_len(self.between(from, to))
    }
}

/// Appends a line; if it is longer than `limit` chars, without its middle. `focus` is a byte position that should stay
/// visible.
pub(super) fn push_short(out: &mut String, line: &str, limit: usize, focus: Option<usize>) {
    let chars = tokens::utf16_len(line);
    if chars <= limit {
        out.push_str(line);
        return;
    }
    let head = boundary(line, limit / 2);
    let tail = boundary_back(line, line.len() - (limit / 6).min(line.len()));
    let around = focus.filter(|at| *at >= head && *at < tail);
    let (from, to) = match around {
        Some(at) => {
            let from = boundary_back(line, at.saturating_sub(limit / 12)).max(head);
            (from, boundary(line, at + limit / 4).min(tail).max(from))
        }
        None => {
            let more = boundary(line, limit / 2 + limit / 3).min(tail);
            (head, more)
        }
    };
    out.push_str(&line[..head]);
    gap(out, &line[head..from]);
    out.push_str(&line[from..to]);
    gap(out, &line[to..tail]);
    out.push_str(&line[tail..]);
}

fn gap(out: &mut String, hidden: &str) {
    let chars = tokens::utf16_len(hidden);
    let mark = cut_mark(chars);
    out.push_str(if chars <= mark.len() { hidden } else { &mark });
}

/// The last character boundary at or before `place`.
fn boundary(text: &str, place: usize) -> usize {
    let place = place.min(text.len());
    (0..=place).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first character boundary at or after `place`.
fn boundary_back(text: &str, place: usize) -> usize {
    (place..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Words that report a failure, by their first letter: outputs are long, and most words begin with other letters.
fn failures(first: u8) -> &'static [&'static str] {
    match first {
        b'a' => &["abort", "aborted", "assert", "assertion"],
        b'c' => &["cannot", "crashed", "critical"],
        b'd' => &["denied"],
        b'e' => &["err", "error", "errors", "exception"],
        b'f' => &["fail", "failed", "failing", "fails", "failure", "failures", "fatal"],
        b'k' => &["killed"],
        b'p' => &["panic", "panicked"],
        b'r' => &["refused"],
        b's' => &["segfault"],
        b't' => &["traceback"],
        b'u' => &["undefined", "unhandled"],
        _ => &[],
    }
}

fn warnings(first: u8) -> &'static [&'static str] {
    match first {
        b'd' => &["deprecated"],
        b'w' => &["warn", "warning", "warnings"],
        _ => &[],
    }
}

/// The byte position of the first word that reports a failure.
pub(super) fn failure_at(line: &str) -> Option<usize> {
    if passed(line) {
        None
    } else {
        find(line).filter(|(_, class)| *class == Class::Failure).map(|(at, _)| at)
    }
}

fn class_of(line: &str) -> Class {
    if passed(line) { Class::Plain } else { find(line).map_or(Class::Plain, |(_, class)| class) }
}

/// In a test runner's line about a success, the name of the test may contain any word.
fn passed(line: &str) -> bool {
    let line = line.trim();
    line.ends_with("... ok")
        || line.ends_with(" PASSED")
        || ["ok ", "PASS ", "--- PASS", "✓", "✔", "√"].iter().any(|start| line.starts_with(start))
}

/// The first failing word, or else the first warning word.
fn find(line: &str) -> Option<(usize, Class)> {
    let trimmed = line.trim_start();
    let indent = line.len() - trimmed.len();
    // The first is how pytest marks the lines of a failure; the others are those of TAP and common test runners.
    let marked = line.starts_with("E   ")
        || trimmed.starts_with("not ok")
        || ['✗', '✘', '✖', '×', '❌'].iter().any(|mark| trimmed.starts_with(*mark));
    if marked {
        return Some((indent, Class::Failure));
    }
    let mut warning = None;
    let mut before = "";
    for (at, word) in words(line) {
        if is_failure(word) && !is_none(before) && !none_follows(&line[at + word.len()..]) {
            return Some((at, Class::Failure));
        }
        if warning.is_none() && is_one_of(word, warnings) && !is_none(before) {
            warning = Some((at, Class::Warning));
        }
        before = word;
    }
    warning
}

/// Runs of ASCII letters, digits and underscores.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = line.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let start = at + bytes[at..].iter().position(is_word)?;
        let end = bytes[start..].iter().position(|b| !is_word(b)).map_or(bytes.len(), |n| start + n);
        at = end;
        Some((start, &line[start..end]))
    })
}

fn is_failure(word: &str) -> bool {
    // TypeError, NullPointerException: the name of a type counts like the word alone.
    word.ends_with("Error") || word.ends_with("Exception") || is_one_of(word, failures)
}

fn is_one_of(word: &str, list: fn(u8) -> &'static [&'static str]) -> bool {
    let first = word.as_bytes().first().map_or(0, u8::to_ascii_lowercase);
    list(first).iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// "0 failed", "no errors", "without error".
fn is_none(before: &str) -> bool {
    before == "0" || ["no", "zero", "without"].iter().any(|none| none.eq_ignore_ascii_case(before))
}

/// "failed: 0", "errors=0".
fn none_follows(after: &str) -> bool {
    let value = after.trim_start_matches([' ', ':', '=', '"']).strip_prefix('0');
    value.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[test]
    fn every_word_of_the_lists_counts() {
        let failing = "abort aborted assert assertion cannot crashed critical denied err error errors exception fail \
                       failed failing fails failure failures fatal killed panic panicked refused segfault traceback \
                       undefined unhandled";
        for (words, class) in
            [(failing, Class::Failure), ("deprecated warn warning warnings", Class::Warning)]
        {
            for word in words.split_ascii_whitespace() {
                for line in [format!("it says {word}: x"), word.to_uppercase()] {
                    assert_eq!(TextLines::new(&line, true).class(0), class, "{line}");
                    assert_eq!(TextLines::new(&line, false).class(0), Class::Plain, "{line}");
                }
            }
        }
    }

    #[rstest]
    #[case("error[E0308]: mismatched types", Class::Failure)]
    #[case("src/a.ts(212,28): error TS2304: Cannot find name 'x'.", Class::Failure)]
    #[case("TypeError: x is not a function", Class::Failure)]
    #[case("java.lang.NullPointerException", Class::Failure)]
    #[case("Traceback (most recent call last):", Class::Failure)]
    #[case("E       assert 1 == 2", Class::Failure)]
    #[case("E   KeyError: 'a'", Class::Failure)]
    #[case("thread 'main' panicked at src/main.rs:2:5:", Class::Failure)]
    #[case("--- FAIL: TestParse (0.00s)", Class::Failure)]
    #[case("FAIL\tgithub.com/a/b\t0.1s", Class::Failure)]
    #[case("not ok 3 - parses", Class::Failure)]
    #[case("  ✖ 12 problems (3 errors, 9 warnings)", Class::Failure)]
    #[case("  × parses", Class::Failure)]
    #[case("npm ERR! code 1", Class::Failure)]
    #[case("test parser::tests::empty ... FAILED", Class::Failure)]
    #[case("test result: FAILED. 12 passed; 3 failed; 0 ignored", Class::Failure)]
    #[case("bash: ./run: Permission denied", Class::Failure)]
    #[case("undefined reference to `main'", Class::Failure)]
    #[case("10 failed", Class::Failure)]
    #[case("failed: 10", Class::Failure)]
    #[case("error: 0.5 is too small", Class::Failure)]
    #[case("warning: unused variable: `x`", Class::Warning)]
    #[case("npm WARN deprecated a@1.0.0", Class::Warning)]
    #[case("warning: 1 error was hidden", Class::Failure)]
    #[case("test errors::failed_twice ... ok", Class::Plain)]
    #[case("ok  \tgithub.com/a/errors\t0.1s", Class::Plain)]
    #[case("✓ reports an error", Class::Plain)]
    #[case("tests/test_error.py::test_a PASSED", Class::Plain)]
    #[case("test result: ok. 12 passed; 0 failed; 0 ignored", Class::Plain)]
    #[case("Found 0 errors.", Class::Plain)]
    #[case("no errors, no warnings", Class::Plain)]
    #[case("failures: 0, errors: 0", Class::Plain)]
    #[case("{\"failed\": 0}", Class::Plain)]
    #[case("Compiling thiserror v2.0.0", Class::Plain)]
    #[case("src/error_handler.rs", Class::Plain)]
    #[case("mirror terror", Class::Plain)]
    #[case("", Class::Plain)]
    fn classes(#[case] line: &str, #[case] class: Class) {
        assert_eq!(class_of(line), class);
    }

    #[rstest]
    #[case("", &[])]
    #[case("\n", &[""])]
    #[case("a", &["a"])]
    #[case("a\n", &["a"])]
    #[case("a\n\n", &["a", ""])]
    #[case("a\r\nb", &["a\r", "b"])]
    fn splitting(#[case] text: &str, #[case] expected: &[&str]) {
        let lines = TextLines::new(text, true);
        assert_eq!((0..lines.len()).map(|at| lines.get(at)).collect::<Vec<_>>(), expected);
        assert_eq!(lines.between(0, lines.len()), text.strip_suffix('\n').unwrap_or(text));
    }

    #[test]
    fn long_line_shows_its_failure() {
        let line = format!("{} fatal: it broke {}", "x".repeat(9_000), "y".repeat(9_000));
        let mut out = String::new();
        push_short(&mut out, &line, 400, failure_at(&line));
        assert!(out.contains("fatal: it broke") && out.len() < 480, "{out}");
        assert!(out.contains(" ...8768 chars... "), "{out}");
    }

    /// The middle need not repeat what the tail shows.
    #[test]
    fn middle_does_not_repeat_the_ends() {
        let line: String = (0..600_u32).map(|n| char::from_u32(0x4e00 + n).unwrap()).collect();
        let short = |focus| {
            let mut out = String::new();
            push_short(&mut out, &line, 60, focus);
            out
        };
        let tail = boundary_back(&line, line.len() - 10);
        let (first, inside) =
            (line.char_indices().nth(10).unwrap().0, line.char_indices().nth(300).unwrap().0);
        assert_eq!(short(Some(tail)), short(None));
        assert_eq!(short(Some(first - 3)), short(None));
        assert_ne!(short(Some(inside)), short(None));
    }

    proptest! {
        #[test]
        fn a_short_line_accounts_for_every_char(
            line in "(\\PC|[a-z😀é ]){0,300}", limit in 0_usize..200, focus in prop::option::of(0_usize..300),
        ) {
            let focus = focus.filter(|at| *at < line.len());
            let mut out = String::new();
            push_short(&mut out, &line, limit, focus);
            if tokens::utf16_len(&line) <= limit {
                prop_assert_eq!(out, line);
            } else {
                prop_assert!(tokens::utf16_len(&out) <= limit + 2 * " ...300 chars... ".len(), "{out}");
            }
        }
    }

    #[test]
    fn where_a_line_says_that_it_failed() {
        assert_eq!(failure_at("not ok 1"), Some(0));
        assert_eq!(failure_at("   ✗ it works"), Some(3));
    }
}
