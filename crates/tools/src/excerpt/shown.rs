//! Recognizing an excerpt of a text.

use super::lines::TextLines;
use context_lines::{GapLine, ends_of_cut};

/// The fewest chars of a long line's beginning and end that must be the same.
const ENDS: usize = 16;

/// True if a text is an excerpt of another one, as [`excerpt`](super::excerpt) makes it with any gate: its lines, in
/// their places, and a mark for each gap.
#[must_use]
pub fn is_excerpt_of(shown: &str, whole: &str) -> bool {
    let lines = TextLines::new(whole, false);
    let (mut at, mut gaps) = (0, 0);
    for line in shown.split('\n') {
        if at < lines.len() && is_shown(line, lines.get(at)) {
            at += 1;
        } else if let Some(GapLine { first, last, .. }) = GapLine::of(line)
            && first == at + 1
            && last >= first
        {
            gaps += 1;
            at = last;
        } else {
            return false;
        }
    }
    gaps > 0 && at == lines.len()
}

/// True if a line is shown as it is, or without its middle.
fn is_shown(shown: &str, line: &str) -> bool {
    if shown == line {
        return true;
    }
    let Some((head, tail)) = ends_of_cut(shown) else { return false };
    head.len() >= ENDS && tail.len() >= ENDS && line.starts_with(head) && line.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::super::{Gate, excerpt};
    use super::*;

    fn output(lines: usize) -> String {
        let line = |n: usize| match n % 97 {
            0 => format!("error: test {n} has failed"),
            1 => format!("line {n} {}", "long ".repeat(400)),
            2 => String::new(),
            _ => format!("line {n} of the output"),
        };
        (0..lines).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_excerpt_is_one_of_its_text_and_of_no_other() {
        for lines in [1_500, 5_000] {
            for gate in [
                Gate::default(),
                Gate { head_lines: 6, tail_lines: 0, max_error_lines: 0, ..Gate::default() },
            ] {
                for whole in [output(lines), output(lines) + "\n"] {
                    let shown = excerpt(&whole, &gate).unwrap().text;
                    assert!(is_excerpt_of(&shown, &whole), "{lines}: {shown}");
                    for other in
                        [output(lines + 1), whole.replace("line 3 of", "line three of"), shown.clone()]
                    {
                        assert!(!is_excerpt_of(&shown, &other));
                    }
                    assert!(!is_excerpt_of(&whole, &whole), "nothing is left out of it");
                    assert!(!is_excerpt_of(&shown.replace("line 3 of", "line 4 of"), &whole));
                }
            }
        }
        for shown in ["", "... 3 lines left out ...", "... 1 lines (2 chars) left out: lines 3-2 ..."] {
            assert!(!is_excerpt_of(shown, "a\nb\nc"), "{shown}");
        }
        assert!(is_excerpt_of("a\n... line 2 (900 chars) left out ...\nc", "a\nb\nc"));
    }
}
