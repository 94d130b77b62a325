//! The room for an excerpt and a part, to the character.

use context_tools::{Gate, Part, excerpt, part};

/// A gate that lets every excerpt through, with room for a few lines.
fn narrow() -> Gate {
    Gate {
        threshold_tokens: 0,
        head_lines: 2,
        head_chars: 22,
        tail_lines: 2,
        tail_chars: 22,
        line_chars: 10,
        ..Gate::default()
    }
}

/// Lines of ten characters, so that each counts for eleven.
fn tens(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("line {i:05}")).collect()
}

fn shown(lines: &[String], gate: &Gate) -> Vec<String> {
    let excerpt = excerpt(&lines.join("\n"), gate).expect("large enough");
    excerpt.text.lines().map(str::to_owned).collect()
}

#[test]
fn head_and_tail_are_filled_to_the_last_character() {
    let lines = tens(40);
    let mark = "... 36 lines (395 chars) left out: lines 3-38 ...".to_owned();
    assert_eq!(shown(&lines, &narrow()), [&lines[..2], &[mark], &lines[38..]].concat());
    for (gate, left_out) in [
        (Gate { head_chars: 21, ..narrow() }, "... 37 lines (406 chars) left out: lines 2-38 ..."),
        (Gate { tail_chars: 21, ..narrow() }, "... 37 lines (406 chars) left out: lines 3-39 ..."),
        // The last line is there in any case.
        (Gate { tail_chars: 0, ..narrow() }, "... 37 lines (406 chars) left out: lines 3-39 ..."),
    ] {
        assert!(shown(&lines, &gate).contains(&left_out.to_owned()), "{:?}", shown(&lines, &gate));
    }
}

#[test]
fn one_line_that_is_left_out_has_a_number() {
    let mut lines = tens(5);
    lines[2] = "x".repeat(400);
    assert_eq!(shown(&lines, &narrow())[2], "... line 3 (400 chars) left out ...");
}

#[test]
fn a_blank_first_line_stays_one() {
    let mut lines = tens(40);
    lines[0] = String::new();
    assert_eq!(shown(&lines, &narrow())[..2], ["", "line 00001"]);
}

/// Failures and the lines around them share one budget: 11 for each line, and 60 for the mark that a new gap needs.
#[test]
fn failures_are_shown_while_the_budget_lasts() {
    let mut lines = tens(200);
    for at in [50, 100, 150] {
        lines[at] = "error: bad".to_owned();
    }
    let errors = |error_chars: usize, context_lines: usize| {
        let gate = Gate { error_chars, context_lines, ..narrow() };
        let lines = shown(&lines, &gate);
        (lines.iter().filter(|line| *line == "error: bad").count(), lines.len())
    };
    // Two lines each at the start and the end, and a mark for each gap.
    assert_eq!([70, 71, 141, 142, 212, 213].map(|chars| errors(chars, 0).0), [0, 1, 1, 2, 2, 3]);
    assert_eq!([213, 223, 224, 235, 246].map(|chars| errors(chars, 1).1), [11, 11, 12, 13, 14]);
}

#[test]
fn a_part_begins_with_its_first_line_however_long() {
    let text = format!("{}\nsecond\nthird", "x".repeat(100));
    let cut = part(&text, &Part::Lines(1, 3), 20).expect("there are lines");
    assert!(cut.text.starts_with("xxxx"), "{}", cut.text);
    assert!(cut.text.contains("more lines, from line 2 on"), "{}", cut.text);
    let fits = part("123456789\n123456789\nx", &Part::Lines(1, 2), 20);
    assert_eq!(fits.expect("there are lines").text, "123456789\n123456789");
    let exact = part(&format!("{}\nb", "x".repeat(20)), &Part::Lines(1, 2), 20);
    assert_eq!(
        exact.expect("there are lines").text,
        format!("{}\n... 1 more lines, from line 2 on ...", "x".repeat(20))
    );
}
