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
mod part;

pub use part::{Part, Passage, part};

use crate::tokens;
use lines::{Class, Lines};

/// How much of a large output is shown.
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
    let lines = Lines::new(text, reports);
    let limit = gate.line_chars.max(gate.head_chars.saturating_add(gate.tail_chars) / lines.len().max(1));
    let shown = choose(&lines, gate, limit);
    let excerpt = render(&lines, &shown, limit);
    (tokens::utf16_len(&excerpt.text) <= chars / 4 * 3).then_some(excerpt)
}

/// Which lines to show.
fn choose(lines: &Lines<'_>, gate: &Gate, limit: usize) -> Vec<bool> {
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
    let failing = lines.of_class(Class::Failure);
    // If nothing failed, the warnings are the most useful lines.
    let wanted = if failing.is_empty() { lines.of_class(Class::Warning) } else { failing };
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
    lines: &Lines<'_>,
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

fn render(lines: &Lines<'_>, shown: &[bool], limit: usize) -> Excerpt {
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
        let mark = mark(at, end, lines.chars_between(at, end), failing);
        if lines.chars_between(at, end) <= mark.len() {
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

fn mark(from: usize, to: usize, chars: usize, failing: usize) -> String {
    let errors = match failing {
        0 => String::new(),
        1 => ", 1 of them an error".to_owned(),
        n => format!(", {n} of them errors"),
    };
    if to - from == 1 {
        format!("... line {to} ({chars} chars{errors}) left out ...")
    } else {
        format!("... {} lines ({chars} chars{errors}) left out: lines {}-{to} ...", to - from, from + 1)
    }
}
