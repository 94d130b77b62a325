//! The birth gate: what an excerpt shows, and what it must never lose.

use context_model::tokens::{estimate, utf16_len};
use context_tools::{Gate, Part, excerpt, part};
use proptest::prelude::*;
use rstest::rstest;

fn numbered(n: usize) -> String {
    (1..=n).map(|i| format!("line {i} of the output, with nothing to tell\n")).collect()
}

#[test]
fn head_tail_and_the_failure_between() {
    let mut lines: Vec<String> = numbered(1_000).lines().map(str::to_owned).collect();
    lines[499] = "error[E0308]: mismatched types".to_owned();
    lines[500] = "  --> src/lib.rs:12:5".to_owned();
    let excerpt = excerpt(&lines.join("\n"), &Gate::default()).expect("large enough");
    let shown: Vec<&str> = excerpt.text.lines().collect();
    assert_eq!(shown[0], lines[0]);
    assert_eq!(shown[19], lines[19]);
    assert_eq!(shown[20], "... 478 lines (21430 chars) left out: lines 21-498 ...");
    assert_eq!(shown[21..24], lines[498..501]);
    assert_eq!(shown[24], "... 459 lines (20654 chars) left out: lines 502-960 ...");
    assert_eq!(shown[25..], lines[960..]);
    assert_eq!(excerpt.gaps, [(21, 498), (502, 960)]);
    assert_eq!(excerpt.hidden_error_lines, 0);
}

#[rstest]
#[case::empty(String::new())]
#[case::small(numbered(10))]
#[case::at_the_threshold("x".repeat(8_000))]
#[case::all_of_it_failed((0..150).map(|i| format!("src/lib.rs:{i}: error: this one is the number {i} of many\n")).collect())]
fn small_or_hardly_smaller_stays_whole(#[case] text: String) {
    assert_eq!(excerpt(&text, &Gate::default()), None);
}

#[test]
fn one_line_of_ten_megabytes() {
    let text = "0123456789".repeat(1_000_000);
    let excerpt = excerpt(&text, &Gate::default()).expect("large");
    assert!(utf16_len(&excerpt.text) < 4_600, "{}", excerpt.text.len());
    assert!(excerpt.text.starts_with("0123456789") && excerpt.text.ends_with("0123456789"));
    assert!(excerpt.text.contains(" chars... "));
}

#[test]
fn a_failure_inside_a_long_line_is_in_sight() {
    let text =
        format!("{}{{\"message\":\"fatal: no space\"}}{}", "[1,2],".repeat(5_000), "[3,4],".repeat(5_000));
    assert!(excerpt(&text, &Gate::default()).expect("large").text.contains("fatal: no space"));
}

#[test]
fn place_above_a_blank_line_is_shown() {
    let mut lines: Vec<String> = numbered(1_000).lines().map(str::to_owned).collect();
    lines.splice(
        497..502,
        ["", "src/a.ts:205:2 parse", "", "  × expected a semicolon", "  "].map(str::to_owned),
    );
    let excerpt = excerpt(&lines.join("\n"), &Gate::default()).expect("large enough");
    assert_eq!(excerpt.gaps, [(21, 498), (504, 960)], "{}", excerpt.text);
}

#[test]
fn more_failures_than_the_budget_are_counted() {
    let failing = |i| format!("FAILED tests/test_{i}.py::test - AssertionError\n");
    let text: String = (0..2_000).map(failing).collect();
    let excerpt = excerpt(&text, &Gate::default()).expect("large");
    let shown = excerpt.text.lines().filter(|line| line.starts_with("FAILED")).count();
    assert_eq!(shown + excerpt.hidden_error_lines, 2_000);
    assert!(shown > 150, "{shown}");
    assert!(excerpt.text.contains("of them errors) left out: lines "), "{}", excerpt.text);
}

#[test]
fn warnings_where_nothing_failed() {
    let mut text = numbered(1_000);
    text.push_str("warning: unused variable\n");
    text.push_str(&numbered(1_000));
    assert!(excerpt(&text, &Gate::default()).expect("large").text.contains("unused variable"));
    text = text.replace("line 7 of", "error 7 of");
    text = text.replace("line 57 of", "error 57 of");
    let both = excerpt(&text, &Gate::default()).expect("large");
    assert!(both.text.contains("error 57 of") && !both.text.contains("unused variable"));
}

#[test]
fn failures_that_stay_hidden_are_counted_over_all_gaps() {
    let mut lines: Vec<String> = numbered(1_000).lines().map(str::to_owned).collect();
    lines[199] = format!("error: {}", "x".repeat(300));
    lines[200] = format!("error: {}", "y".repeat(300));
    lines[499] = "error: short enough".to_owned();
    lines[799] = format!("error: {}", "z".repeat(300));
    let gate = Gate { error_chars: 200, ..Gate::default() };
    let excerpt = excerpt(&lines.join("\n"), &gate).expect("large enough");
    assert_eq!(excerpt.gaps.len(), 2, "{}", excerpt.text);
    assert_eq!(excerpt.hidden_error_lines, 3);
    assert!(
        excerpt.text.contains(", 2 of them errors) left out: ")
            && excerpt.text.contains(", 1 of them an error)")
    );
}

#[test]
fn a_search_reports_no_failures() {
    let text = numbered(1_000).replace("line 200 of", "error 200 of");
    let shown = excerpt(&text, &Gate::for_tool("grep").expect("gated")).expect("large");
    assert!(!shown.text.contains("error 200 of") && !shown.text.contains("of them"), "{}", shown.text);
    assert_eq!(shown.hidden_error_lines, 0);
    assert_eq!(excerpt(&text, &Gate::default()).expect("large").gaps.len(), 2);
}

#[test]
fn long_lines_share_the_room() {
    let text = vec!["x".repeat(2_000); 20].join("\n");
    let shown = excerpt(&text, &Gate::default()).expect("large").text;
    assert!(shown.lines().all(|line| utf16_len(line) < 440), "{shown}");
    let text = vec!["x".repeat(12_000); 3].join("\n");
    let shown = excerpt(&text, &Gate::default()).expect("large").text;
    assert!(shown.lines().any(|line| utf16_len(line) > 1_200), "the fewer, the more of each: {shown}");
}

#[rstest]
#[case("read", false, 0)]
#[case("Read", false, 0)]
#[case("edit", false, 0)]
#[case("activate", false, 0)]
#[case("bash", true, 120)]
#[case("my_mcp_tool", true, 120)]
#[case("grep", true, 0)]
#[case("find", true, 0)]
fn gates(#[case] tool: &str, #[case] gated: bool, #[case] error_lines: usize) {
    let gate = Gate::for_tool(tool);
    assert_eq!(gate.is_some(), gated);
    assert_eq!(gate.map_or(0, |gate| gate.max_error_lines), error_lines);
}

#[rstest]
#[case(Part::Lines(1, 1), "line 1 of the output, with nothing to tell", 1, 1)]
#[case(
    Part::Lines(2, 3),
    "line 2 of the output, with nothing to tell\nline 3 of the output, with nothing to tell",
    2,
    2
)]
#[case(Part::Lines(20, 99), "line 20 of the output, with nothing to tell", 1, 1)]
#[case(Part::Grep("LINE 7".to_owned()), "", 0, 0)]
#[case(Part::Grep("Line".to_owned()), "", 0, 0)]
#[case(Part::Grep("line 7 ".to_owned()), "7: line 7 of the output, with nothing to tell", 1, 1)]
#[case(Part::Grep("e 3 |e 9 ".to_owned()), "3: line 3 of the output, with nothing to tell\n9: line 9 of the output, with nothing to tell", 2, 2)]
fn parts(#[case] wanted: Part, #[case] text: &str, #[case] lines: usize, #[case] of: usize) {
    let passage = part(&numbered(20), &wanted, 10_000).expect("valid");
    assert_eq!((passage.text.as_str(), passage.lines, passage.of, passage.total), (text, lines, of, 20));
    assert!(!passage.is_cut());
}

#[rstest]
#[case("error", true)]
#[case("ERROR", true)]
#[case("Error", false)]
#[case("time|ERR", true)]
#[case("r: 5", true)]
#[case("r. 5", true)]
#[case(r"r\. 5", false)]
#[case(r"^\d+:\d+ \S+: [1-5] of \d$", true)]
#[case(r"^error", false)]
#[case(r"\berr", true)]
#[case(r"\Serr", false)]
#[case("(warn|error): 5", true)]
fn patterns(#[case] pattern: &str, #[case] matches: bool) {
    let passage = part("12:01 ERROR: 5 of 7", &Part::Grep(pattern.to_owned()), 1_000).expect("valid");
    assert_eq!(passage.lines == 1, matches);
}

#[rstest]
#[case(Part::Lines(0, 3), "lines=0-3 names no lines: count from 1, the smaller number first")]
#[case(Part::Lines(5, 4), "lines=5-4 names no lines: count from 1, the smaller number first")]
#[case(Part::Lines(21, 30), "lines=21-30 lies behind the end: the text has 20 lines")]
#[case(Part::Grep(String::new()), "grep needs a text to look for")]
#[case(
    Part::Grep("f(x".to_owned()),
    "grep takes a regular expression, and this is none that can be used: unclosed group; \
     put \\ before characters that stand for themselves"
)]
fn refused_parts(#[case] wanted: Part, #[case] sentence: &str) {
    let error = part(&numbered(20), &wanted, 1_000).expect_err("must be refused");
    assert_eq!(error.to_string(), sentence);
}

#[rstest]
#[case("x".repeat(70_000))]
#[case(r"\w{500}{500}".to_owned())]
#[case("(".repeat(5_000) + &")".repeat(5_000))]
fn oversized_pattern_is_refused(#[case] pattern: String) {
    let error = part(&numbered(20), &Part::Grep(pattern), 1_000).expect_err("must be refused");
    assert!(error.to_string().starts_with("grep takes a regular expression"), "{error}");
}

#[test]
fn pattern_of_many_words_is_accepted() {
    let words: Vec<String> = (7..70).map(|n| format!("line {n} of the output")).collect();
    let passage = part(&numbered(20), &Part::Grep(words.join("|")), 10_000).expect("valid");
    assert_eq!(passage.lines, 14, "{}", passage.text);
}

/// The excerpt of a search shows more of its beginning than that of a log.
#[test]
fn a_search_shows_more_of_its_beginning() {
    let hits: String = (0..1_000).map(|n| format!("src/a.rs:{n}: {}\n", "x".repeat(70))).collect();
    let first = |tool: &str| {
        let excerpt = excerpt(&hits, &Gate::for_tool(tool).expect("gated")).expect("large");
        excerpt.gaps[0].0 - 1
    };
    assert_eq!((first("grep"), first("Find"), first("bash")), (40, 40, 17));
}

/// The line break counts.
#[rstest]
#[case(9, 1)]
#[case(10, 2)]
fn first_lines_keep_to_their_budget(#[case] head_chars: usize, #[case] shown: usize) {
    let gate = Gate {
        threshold_tokens: 10,
        head_lines: 5,
        head_chars,
        tail_lines: 1,
        tail_chars: 5,
        ..Gate::default()
    };
    let excerpt = excerpt(&"abcd\n".repeat(200), &gate).expect("large");
    assert_eq!(excerpt.text.lines().take_while(|line| *line == "abcd").count(), shown, "{}", excerpt.text);
}

#[test]
fn a_large_part_says_where_it_ends() {
    let text = numbered(1_000);
    let passage = part(&text, &Part::Lines(101, 900), 500).expect("valid");
    assert_eq!((passage.lines, passage.of, passage.is_cut()), (11, 800, true));
    assert!(passage.text.ends_with("\n... 789 more lines, from line 112 on ..."), "{}", passage.text);
    let passage = part(&text, &Part::Grep("nothing".to_owned()), 500).expect("valid");
    assert!(passage.text.ends_with(" more matching lines, from line 11 on ..."), "{}", passage.text);
    let passage = part(&"x".repeat(10_000_000), &Part::Lines(1, 1), 500).expect("valid");
    assert!(utf16_len(&passage.text) < 560 && passage.lines == 1);
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => "[a-z ]{0,80}",
        3 => "\\PC{0,60}",
        2 => "[b-m ]{0,20} (error:|FAILED|panicked at|AssertionError) [b-m]{0,30}",
        1 => ("[a-z😀é]{1,9}", 60_usize..200).prop_map(|(piece, n)| piece.repeat(n)),
        1 => Just("\r".to_owned()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..120).prop_map(|lines| lines.join("\n"))
}

fn gate() -> impl Strategy<Value = Gate> {
    (0_usize..1_500, 0_usize..30, 0_usize..2_000, 0_usize..30, 0_usize..2_000, 0_usize..3, 0_usize..500)
        .prop_map(
            |(
                threshold_tokens,
                head_lines,
                head_chars,
                tail_lines,
                tail_chars,
                context_lines,
                line_chars,
            )| Gate {
                threshold_tokens,
                head_lines,
                head_chars,
                tail_lines,
                tail_chars,
                context_lines,
                line_chars,
                max_error_lines: 1_000,
                error_chars: 1_000_000,
            },
        )
}

fn fails(line: &str) -> bool {
    ["error:", "FAILED", "panicked at", "AssertionError"].iter().any(|mark| line.contains(mark))
        && line.len() < 120
        && line.is_ascii()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the text and the budgets: smaller than the text, every line that failed is in it where the
    /// budget allows, and shown lines and gaps together are all lines, once and in order.
    #[test]
    fn nothing_is_lost(text in text(), gate in gate()) {
        let gate = Gate { line_chars: gate.line_chars.max(120), ..gate };
        match excerpt(&text, &gate) {
            None => {}
            Some(excerpt) => {
                prop_assert!(estimate(&text) > gate.threshold_tokens);
                prop_assert!(utf16_len(&excerpt.text) < utf16_len(&text));
                prop_assert_eq!(excerpt.hidden_error_lines, 0);
                let lines: Vec<&str> = text.split_terminator('\n').collect();
                let mut shown = excerpt.text.split('\n');
                let mut at = 0;
                while at < lines.len() {
                    let line = shown.next().expect("a line or a mark");
                    if let Some((_, last)) = excerpt.gaps.iter().find(|(first, _)| *first == at + 1) {
                        prop_assert!(line.starts_with("... ") && line.ends_with(" ..."));
                        prop_assert!(!lines[at..*last].iter().any(|line| fails(line)));
                        at = *last;
                    } else {
                        let short = utf16_len(lines[at]) <= gate.line_chars;
                        prop_assert!(line == lines[at] || !short, "{line} is not {}", lines[at]);
                        at += 1;
                    }
                }
                prop_assert_eq!(shown.next(), None);
                // Each gap can be brought back, byte for byte.
                for (first, last) in excerpt.gaps {
                    let back = part(&text, &Part::Lines(first, last), usize::MAX).expect("a gap is a part");
                    prop_assert_eq!(back.text, lines[first - 1..last].join("\n"));
                }
            }
        }
    }

    #[test]
    fn any_text_any_budget(text in "(?s).{0,600}", mut gate in gate(), errors in 0_usize..5, chars in 0_usize..300) {
        gate.threshold_tokens = 0;
        gate.max_error_lines = errors;
        gate.error_chars = chars;
        let once = excerpt(&text, &gate);
        prop_assert_eq!(&once, &excerpt(&text, &gate));
        if let Some(excerpt) = once {
            prop_assert!(utf16_len(&excerpt.text) < utf16_len(&text));
        }
    }

    #[test]
    fn parts_of_any_text(text in "(?s).{0,400}", first in 0_usize..20, last in 0_usize..20, max in 0_usize..400) {
        if let Ok(passage) = part(&text, &Part::Lines(first, last), max) {
            prop_assert!(passage.lines >= 1 && passage.lines <= passage.of);
        }
        let whole = part(&text, &Part::Lines(1, usize::MAX), usize::MAX);
        if let Ok(passage) = whole {
            prop_assert_eq!(passage.text, text.strip_suffix('\n').unwrap_or(&text));
        }
    }

    #[test]
    fn grep_finds_what_contains_it(text in text(), pattern in "[a-z]{1,3}") {
        let passage = part(&text, &Part::Grep(pattern.clone()), usize::MAX).expect("valid");
        let expected = text.split_terminator('\n').filter(|line| line.to_ascii_lowercase().contains(&pattern)).count();
        prop_assert_eq!((passage.lines, passage.of), (expected, expected));
    }
}
