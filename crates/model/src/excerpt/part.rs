//! Bringing a part of an output back.

use regex::{Regex, RegexBuilder};

use super::lines::{Lines, push_short};
use crate::error::ModelError;
use crate::tokens;

/// Which part of a text to return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Lines from the first to the last, both counted from 1 and both included. A last line beyond the end
    /// means the end.
    Lines(usize, usize),
    /// The lines that match a regular expression (the syntax of the crate `regex`: no look-around, no
    /// back-references). Letters match in both cases unless the pattern has a capital one.
    Grep(String),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The requested lines, verbatim; matches as `number: line`. No line break at the end.
    pub text: String,
    /// How many lines (or matches) are in it.
    pub lines: usize,
    /// How many were requested or match.
    pub of: usize,
    /// Number of lines of the whole text.
    pub total: usize,
}

impl Passage {
    /// Returns whether some of the requested lines did not fit.
    pub fn is_cut(&self) -> bool {
        self.lines < self.of
    }
}

/// A matching line longer than this is shown without its middle.
const MATCH_CHARS: usize = 500;

/// The requested lines, up to `max_chars` UTF-16 units. If they don't fit, the last ones are left out, and a mark says from
/// which line on. The first line is always there, if necessary without its middle.
///
/// # Errors
/// `INVALID_ARGUMENT` for line numbers that are 0, in the wrong order or beyond the end, and for a pattern that
/// is empty, too large, or not a regular expression.
pub fn part(text: &str, part: &Part, max_chars: usize) -> Result<Passage, ModelError> {
    let lines = Lines::new(text, false);
    let total = lines.len();
    match part {
        Part::Lines(first, last) => {
            if *first == 0 || last < first {
                return Err(ModelError::Invalid(format!(
                    "lines={first}-{last} names no lines: count from 1, the smaller number first"
                )));
            }
            if *first > total {
                return Err(ModelError::Invalid(format!(
                    "lines={first}-{last} lies behind the end: the text has {total} lines"
                )));
            }
            let wanted = (*first - 1..(*last).min(total)).map(|at| (at, None)).collect();
            Ok(passage(&lines, wanted, max_chars, usize::MAX, false))
        }
        Part::Grep(pattern) => {
            let pattern = Pattern::new(pattern)?;
            let wanted = (0..total).filter_map(|at| Some((at, Some(pattern.find(lines.get(at))?)))).collect();
            Ok(passage(&lines, wanted, max_chars, MATCH_CHARS, true))
        }
    }
}

fn passage(
    lines: &Lines<'_>,
    wanted: Vec<(usize, Option<usize>)>,
    max_chars: usize,
    line_chars: usize,
    numbered: bool,
) -> Passage {
    let mut passage = Passage { text: String::new(), lines: 0, of: wanted.len(), total: lines.len() };
    let mut used = 0;
    for (at, focus) in wanted {
        let mut line = if numbered { format!("{}: ", at + 1) } else { String::new() };
        let limit = if passage.lines == 0 { line_chars.min(max_chars) } else { line_chars };
        push_short(&mut line, lines.get(at), limit, focus);
        used += tokens::utf16_len(&line) + 1;
        if passage.lines > 0 {
            if used > max_chars {
                let what = if numbered { "matching lines" } else { "lines" };
                let rest = passage.of - passage.lines;
                passage.text.push_str(&format!("\n... {rest} more {what}, from line {} on ...", at + 1));
                return passage;
            }
            passage.text.push('\n');
        }
        passage.text.push_str(&line);
        passage.lines += 1;
    }
    passage
}

/// How large a compiled pattern may be, in bytes. Matching a line takes time in proportion to it.
const MAX_PATTERN_BYTES: usize = 512 * 1024;

/// What to look for.
struct Pattern(Regex);

impl Pattern {
    fn new(pattern: &str) -> Result<Self, ModelError> {
        if pattern.is_empty() {
            return Err(ModelError::Invalid("grep needs a text to look for".to_owned()));
        }
        let compiled = RegexBuilder::new(pattern)
            .case_insensitive(!has_capital(pattern))
            .size_limit(MAX_PATTERN_BYTES)
            .nest_limit(32)
            .build();
        compiled.map(Self).map_err(|error| {
            // The crate draws a syntax error under the pattern; its last line says what is wrong.
            let error = error.to_string();
            let error = error.lines().next_back().unwrap_or_default().trim_start_matches("error: ");
            ModelError::Invalid(format!(
                "grep takes a regular expression, and this is none that can be used: {error}; put \\ before \
                 characters that stand for themselves"
            ))
        })
    }

    /// The byte position of the first match.
    fn find(&self, line: &str) -> Option<usize> {
        self.0.find(line).map(|found| found.start())
    }
}

/// Returns whether a pattern has a capital letter that stands for itself (`\S` and its like do not).
fn has_capital(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|c| {
        let meant = escaped;
        escaped = c == '\\' && !meant;
        !meant && c.is_uppercase()
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none("hello", false)]
    #[case::one("heLlo", true)]
    #[case::of_another_script("élan É", true)]
    #[case::a_class(r"\Shello\W", false)]
    #[case::after_a_class(r"\sHello", true)]
    #[case::after_a_backslash(r"\\Hello", true)]
    #[case::a_class_after_a_backslash(r"\\\Shello", false)]
    fn capitals_that_stand_for_themselves(#[case] pattern: &str, #[case] expected: bool) {
        assert_eq!(has_capital(pattern), expected);
    }
}
