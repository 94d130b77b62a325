//! The birth gate: a large tool output enters the context as an excerpt and never whole.
//!
//! This is the only moment at which shortening text is free: no request has contained it yet, so no cached prefix changes.
//! Nothing important may be missed, so an excerpt shows the head, the tail and **every line that reports a failure**, up to
//! a budget. It gives the line numbers that it leaves out, and [`part`] returns any of them.
//!
//! Text is gated only when it enters. Whatever was requested by name (a `read`, a part brought back) is shown as requested;
//! otherwise it would be gated again and again.
//!
//! "Chars" are UTF-16 units, as everywhere in this crate. Equal text, equal excerpt.

mod lines;
mod shown;

use lines::{Class, TextLines};
use regex::{Regex, RegexBuilder};

use context_lines::{GapLine, rest_line};
use context_model::error::ModelError;
use context_model::tokens;

pub use shown::is_excerpt_of;

/// Limits for the shown part of a large output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Outputs up to this many estimated tokens are not gated.
    pub threshold_tokens: usize,
    /// First lines shown.
    pub head_lines: usize,
    /// Chars that the first lines may take together.
    pub head_chars: usize,
    /// Last lines shown.
    pub tail_lines: usize,
    /// Chars that the last lines may take together.
    pub tail_chars: usize,
    /// Lines shown between head and tail because they report a failure; 0 for outputs without such lines, such as those of
    /// a search.
    pub max_error_lines: usize,
    /// Chars that these lines, the lines around them and the marks between them may take together.
    pub error_chars: usize,
    /// Lines shown before and after each of them, not counting blank ones, as far as the budget allows.
    pub context_lines: usize,
    /// A longer line is shown without its middle.
    pub line_chars: usize,
}

impl Gate {
    /// The gate of a tool, by its name in the harness. `None` if the output was requested as such and stays whole.
    ///
    /// Searches and listings report no failures: a line with the word "error" is a hit like any other.
    pub fn for_tool(tool: &str) -> Option<Self> {
        match tool.to_ascii_lowercase().as_str() {
            "read" | "write" | "edit" | "activate" | "deactivate" | "pin" | "unpin" | "search_context" => {
                None
            }
            "grep" | "find" | "ls" | "glob" => {
                Some(Self { max_error_lines: 0, head_lines: 40, head_chars: 4_000, ..Self::default() })
            }
            _ => Some(Self::default()),
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            threshold_tokens: 7_000,
            head_lines: 20,
            head_chars: 1_500,
            tail_lines: 40,
            tail_chars: 3_000,
            max_error_lines: 120,
            error_chars: 8_000,
            context_lines: 1,
            line_chars: 400,
        }
    }
}

/// The excerpt rules for a large output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The lines shown, in order, with a mark for each gap. No line break at the end.
    pub text: String,
    /// The gaps, as first and last line (from 1), for a request such as `lines=21-832`.
    pub gaps: Vec<(usize, usize)>,
    /// Lines that report a failure but are in a gap because the budget was used up.
    pub hidden_error_lines: usize,
}

/// The excerpt of an output, or `None` if the output is small enough to show whole or the excerpt would save less
/// than a quarter of it.
pub fn excerpt(text: &str, gate: &Gate) -> Option<Excerpt> {
    let chars = tokens::utf16_len(text);
    if tokens::of_chars(chars) <= gate.threshold_tokens {
        return None;
    }
    let reports = gate.max_error_lines > 0;
    let lines = TextLines::new(text, reports);
    let limit = gate.line_chars.max(gate.head_chars.saturating_add(gate.tail_chars) / lines.len().max(1));
    let shown = choose(&lines, gate, limit);
    let excerpt = render(&lines, &shown, limit);
    (tokens::utf16_len(&excerpt.text) <= chars / 4 * 3).then_some(excerpt)
}

/// Marks the lines to show.
fn choose(lines: &TextLines<'_>, gate: &Gate, limit: usize) -> Vec<bool> {
    let mut shown = vec![false; lines.len()];
    let size = |at: usize| lines.chars(at).min(limit) + 1;
    let mut left = gate.head_chars;
    for (at, shown) in shown.iter_mut().enumerate().take(gate.head_lines) {
        if size(at) > left {
            break;
        }
        left -= size(at);
        *shown = true;
    }
    left = gate.tail_chars;
    for at in (0..lines.len()).rev().take(gate.tail_lines) {
        if shown[at] || (size(at) > left && at + 1 < lines.len()) {
            break;
        }
        left = left.saturating_sub(size(at));
        shown[at] = true;
    }

    left = gate.error_chars;
    let failing = lines.in_class(Class::Failure);
    // If nothing failed, the warnings are the most useful lines.
    let wanted = if failing.is_empty() { lines.in_class(Class::Warning) } else { failing };
    let mut taken = Vec::new();
    for at in wanted {
        if taken.len() == gate.max_error_lines {
            break;
        }
        // The mark of a gap that this may open counts toward the same budget.
        let price = size(at) + if at > 0 && shown[at - 1] { 0 } else { MARK_CHARS };
        if shown[at] {
            taken.push(at);
        } else if price <= left {
            left -= price;
            shown[at] = true;
            taken.push(at);
        }
    }
    for at in taken {
        let before = around(lines, (0..at).rev(), gate.context_lines);
        for near in before.chain(around(lines, at + 1..lines.len(), gate.context_lines)) {
            if !shown[near] && size(near) <= left {
                left -= size(near);
                shown[near] = true;
            }
        }
    }
    shown
}

/// The next `count` lines that are not blank, with the blank ones between them: many tools print the place of an error
/// above it, with a blank line in between.
fn around(
    lines: &TextLines<'_>,
    places: impl Iterator<Item = usize>,
    count: usize,
) -> impl Iterator<Item = usize> {
    let mut left = count;
    places.take(count.saturating_mul(2)).take_while(move |at| {
        let wanted = left > 0;
        left = left.saturating_sub(usize::from(!lines.get(*at).trim().is_empty()));
        wanted
    })
}

/// About the length of a mark.
const MARK_CHARS: usize = 60;

fn render(lines: &TextLines<'_>, shown: &[bool], limit: usize) -> Excerpt {
    let mut text = String::new();
    let (mut gaps, mut hidden_error_lines) = (Vec::new(), 0);
    let mut at = 0;
    while at < lines.len() {
        if !text.is_empty() || at > 0 {
            text.push('\n');
        }
        if shown[at] {
            let focus =
                (lines.class(at) == Class::Failure).then(|| lines::failure_at(lines.get(at))).flatten();
            lines::push_short(&mut text, lines.get(at), limit, focus);
            at += 1;
            continue;
        }
        let end = (at..lines.len()).find(|at| shown[*at]).unwrap_or(lines.len());
        let failing = (at..end).filter(|at| lines.class(*at) == Class::Failure).count();
        let chars = lines.chars_between(at, end);
        let mark = GapLine { first: at + 1, last: end, chars, errors: failing }.to_string();
        if chars <= mark.len() {
            text.push_str(lines.between(at, end));
        } else {
            text.push_str(&mark);
            gaps.push((at + 1, end));
            hidden_error_lines += failing;
        }
        at = end;
    }
    Excerpt { text, gaps, hidden_error_lines }
}

/// The part of a text to return.
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
pub struct TextPart {
    /// The requested lines, verbatim; matches as `number: line`. No line break at the end.
    pub text: String,
    /// The number of lines (or matches) in it.
    pub lines: usize,
    /// The number of lines that were requested, or that match.
    pub of: usize,
    /// Number of lines of the whole text.
    pub total: usize,
}

impl TextPart {
    /// True if some of the requested lines did not fit.
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
pub fn part(text: &str, part: &Part, max_chars: usize) -> Result<TextPart, ModelError> {
    let lines = TextLines::new(text, false);
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
    lines: &TextLines<'_>,
    wanted: Vec<(usize, Option<usize>)>,
    max_chars: usize,
    line_chars: usize,
    numbered: bool,
) -> TextPart {
    let mut passage = TextPart { text: String::new(), lines: 0, of: wanted.len(), total: lines.len() };
    let mut used = 0;
    for (at, focus) in wanted {
        let mut line = if numbered { format!("{}: ", at + 1) } else { String::new() };
        let limit = if passage.lines == 0 { line_chars.min(max_chars) } else { line_chars };
        lines::push_short(&mut line, lines.get(at), limit, focus);
        used += tokens::utf16_len(&line) + 1;
        if passage.lines > 0 {
            if used > max_chars {
                let what = if numbered { "matching lines" } else { "lines" };
                let rest = passage.of - passage.lines;
                passage.text.push('\n');
                passage.text.push_str(&rest_line(rest, what, at + 1));
                return passage;
            }
            passage.text.push('\n');
        }
        passage.text.push_str(&line);
        passage.lines += 1;
    }
    passage
}

/// The maximum size of a compiled pattern, in bytes. Matching a line takes time in proportion to it.
const MAX_PATTERN_BYTES: usize = 512 * 1024;

/// The pattern to look for.
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

/// True if a pattern has a capital letter that matches itself (`\S` and its like do not).
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
