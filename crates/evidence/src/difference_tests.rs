use proptest::prelude::*;
use rstest::rstest;

use super::*;

#[rstest]
#[case::equal("a\nb\n", "a\nb\n", "")]
#[case::a_line("a\nb\n", "a\nc\n", "--- then\n+++ now\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")]
fn difference_as_it_is_shown(#[case] old: &str, #[case] new: &str, #[case] shown: &str) {
    assert_eq!(unified(old, new, "then", "now"), shown);
}

#[test]
fn lines_of_texts_up_to_a_size_are_counted() {
    let most = "x".repeat(MAX_COUNTED);
    assert_eq!(counted(&most, "y").as_deref(), Some("+1 -1"));
    assert_eq!(counted("y", &most).as_deref(), Some("+1 -1"));
    assert_eq!(counted(&format!("{most}x"), "y"), None);
    assert_eq!(counted("y", &format!("{most}x")), None);
}

const NAMES: usize = "then".len() + "now".len();

fn shown(old: &str, new: &str) -> Option<Option<ShownChange>> {
    Some(Comparison::of(old, new)?.shown("then", "now"))
}

/// Many lines with a number each, after a word.
fn numbered(word: &str, count: usize) -> String {
    (0..count).fold(String::new(), |text, n| text + word + " line " + &n.to_string() + "\n")
}

#[test]
fn short_difference_is_shown_whole() {
    let all = unified("a\nb\n", "a\nc\n", "then", "now");
    assert_eq!(shown("a\nb\n", "a\nc\n"), Some(Some(ShownChange::Whole(all))));
    assert_eq!(shown("a\n", "a\n"), Some(None));
    assert_eq!(shown("", ""), Some(None));
    let (old, new) = ("short\n".to_owned(), numbered("another", 100));
    let all = unified(&old, &new, "then", "now");
    assert_eq!(shown(&old, &new), Some(Some(ShownChange::Whole(all))), "whatever its share of the text is");
}

#[test]
fn long_difference_is_begun_and_its_rest_is_counted() {
    let kept = numbered("kept", 20_000);
    let old = numbered("old", 600) + &kept + "last\n";
    let new = numbered("new", 800) + &kept + "other\n";
    let Some(Some(ShownChange::Begun { head, more, added, removed })) = shown(&old, &new) else {
        panic!("it is longer than what is shown, and shorter than half of the text")
    };
    assert!(head.starts_with("--- then\n+++ now\n@@ -1,603 +1,803 @@\n-old line 0\n"), "{head}");
    assert!(head.ends_with('\n') && head.len() <= MAX_SHOWN + NAMES && head.len() > MAX_SHOWN - 100);
    let in_head = head.lines().skip(2).filter(|line| line.starts_with(['+', '-'])).count();
    assert_eq!((added, removed, more), (801, 601, 1_402 - in_head));
}

#[test]
fn difference_above_half_of_a_text_is_not_shown() {
    assert_eq!(shown(&numbered("", 9_000), &numbered("  ", 9_000)), Some(Some(ShownChange::TooLarge)));
    assert_eq!(shown("", &numbered("", 9_000)), Some(Some(ShownChange::TooLarge)));
    assert_eq!(shown(&numbered("", 9_000), ""), Some(Some(ShownChange::TooLarge)));
}

#[test]
fn long_lines_of_a_difference_are_cut_where_it_is_only_begun() {
    let kept = numbered("kept", 20_000);
    let (one, other) = ("\u{1f600}".repeat(3_000), "é".repeat(12_000));
    let (old, new) = (format!("{one}\n{kept}"), format!("{other}\n{kept}"));
    let Some(Some(ShownChange::Begun { head, more, .. })) = shown(&old, &new) else { panic!("it is long") };
    assert!(head.contains("\n+é") && head.contains("... 11602 more chars\n"), "{head}");
    assert!(utf16_len(&head) < 3 * MAX_LINE && more == 0, "{head}");
}

#[test]
fn texts_with_too_much_between_their_common_ends_are_not_compared() {
    let most = "x".repeat(MAX_COUNTED);
    let kept = numbered("kept", 50_000);
    assert!(kept.len() > MAX_COUNTED);
    for (old, new, is_compared) in [
        (most.clone(), "y".to_owned(), true),
        ("y".to_owned(), most.clone() + "x", false),
        (most.clone() + "x", "y".to_owned(), false),
        (format!("{kept}old\n{kept}"), format!("{kept}new\n{kept}"), true),
        (format!("old\n{kept}old\n"), format!("new\n{kept}new\n"), false),
        (most.clone() + "x", most.clone() + "xx", true),
        (format!("é{most}x"), format!("è{most}x"), true),
    ] {
        assert_eq!(Comparison::of(&old, &new).is_some(), is_compared, "{} {}", old.len(), new.len());
        assert_eq!(Comparison::of(&new, &old).is_some(), is_compared, "{} {}", new.len(), old.len());
    }
}

/// Lines, each as a letter and the number of its repetitions.
fn repeated(lines: &[(char, usize)], end: &str) -> String {
    lines.iter().fold(String::new(), |text, (letter, count)| text + &letter.to_string().repeat(*count) + end)
}

fn some_lines() -> impl Strategy<Value = Vec<(char, usize)>> {
    let letter = prop::sample::select(vec!['a', 'b', '\u{e9}', '\u{1f600}']);
    prop::collection::vec((letter, 0..900_usize), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The limit holds for any two texts.
    #[test]
    fn difference_has_a_limit(
        old in some_lines(),
        new in some_lines(),
        kept in 0..3_000_usize,
        ends in prop::sample::select(vec!["\n", "\r\n", ""]),
    ) {
        let kept = numbered("kept kept kept kept kept kept kept kept kept kept", kept);
        let (old, new) = (repeated(&old, ends) + &kept, repeated(&new, ends) + &kept);
        match shown(&old, &new).flatten() {
            None => prop_assert_eq!(old, new),
            Some(ShownChange::TooLarge) => {}
            Some(ShownChange::Whole(all)) => {
                prop_assert!(utf16_len(&all) <= MAX_SHOWN + NAMES);
                prop_assert_eq!(all, unified(&old, &new, "then", "now"));
            }
            Some(ShownChange::Begun { head, .. }) => {
                prop_assert!(utf16_len(&head) <= MAX_SHOWN + NAMES);
                prop_assert!(head.len() < new.len());
            }
        }
    }
}

#[test]
fn lines_in_an_output_are_found_by_comparison() {
    let text = "a\nb\nc\nd\n";
    assert_eq!(common_lines(text, 1, "a\nb\nc\nd\n"), Some(5));
    assert_eq!(common_lines(text, 1, "a\nb\n\n[2 more lines in file. Use offset=3 to continue.]"), Some(2));
    assert_eq!(common_lines(text, 2, "b\nc"), Some(3));
    assert_eq!(common_lines(text, 1, "[Line 1 is 60KB]"), None);
    assert_eq!(common_lines(text, 9, "x"), None);
    let windows = "a\r\nb\r\nc\r\n";
    for output in [windows, "a\nb\nc\n", "a\r\nb\r\nc\n"] {
        assert_eq!(common_lines(windows, 1, output), Some(4));
        assert_eq!(common_lines("a\nb\nc\n", 1, output), Some(4));
    }
    assert_eq!(common_lines(windows, 1, "a\r\nb\r\nc"), Some(3));
}

#[test]
fn lines_of_long_texts_are_counted_and_those_of_very_long_ones_are_not() {
    let text = |length: usize| "line\n".repeat(length / 5);
    let count = |length| counted(&text(length), &(text(length) + "more\n"));
    assert_eq!(count(MAX_COUNTED - 10).as_deref(), Some("+1 -0"));
    assert_eq!(MAX_COUNTED, 524_288);
    assert_eq!(count(MAX_COUNTED), None);
}

#[rstest]
#[case::another_line("a\nb\nc\n", "a\nb\nx\n", &["a"], true)]
#[case::the_line_beside("a\nb\nc\n", "a\nx\nc\n", &["a\n"], true)]
#[case::the_line_itself("a\nb\nc\n", "a\nb x\nc\n", &["b"], false)]
#[case::several("a\nb\nc\nd\n", "a\nx\nc\nd\n", &["a", "c\nd"], true)]
#[case::one_of_several("a\nb\nc\nd\n", "a\nx\nc\nd\n", &["a", "x"], false)]
#[case::across_a_change("a\nb\nc\n", "a\nb\ny\nc\n", &["b\ny\nc"], false)]
#[case::around_a_removed_line("a\nb\nc\n", "a\nc\n", &["a\nc"], false)]
#[case::no_longer_there("a\nb\n", "a\nx\n", &["b"], false)]
#[case::there_twice_now("a\nb\n", "a\nb\na\n", &["a"], false)]
#[case::a_part_of_a_line("the a\nb\n", "the a\nx\n", &["the"], true)]
#[case::moved_down("a\nb\n", "x\ny\na\nb\n", &["a\nb"], true)]
#[case::nothing("a\n", "b\n", &[], false)]
#[case::an_empty_text("a\n", "b\n", &[""], false)]
#[case::the_end_of_the_file("a\nb", "x\nb", &["b"], true)]
#[case::a_last_character_of_two_bytes("a é\nb\n", "a é\nx\n", &["a é"], true)]
#[case::a_last_character_of_four_bytes("a\n字😀\n", "x\n字😀\n", &["😀", "字😀"], true)]
#[case::a_changed_line_that_ends_so("a é\n", "b é\n", &["é"], false)]
fn replacement_touches_nothing_new(
    #[case] old: &str,
    #[case] new: &str,
    #[case] replaced: &[&str],
    #[case] expected: bool,
) {
    let replaced: Vec<String> = replaced.iter().map(|text| (*text).to_owned()).collect();
    assert_eq!(Comparison::of(old, new).unwrap().touches_nothing_new(&replaced, &[]), expected);
}

#[rstest]
#[case::read(&["x"], true)]
#[case::read_and_kept(&["a", "x"], true)]
#[case::beyond_what_was_read(&["y"], false)]
#[case::across_its_end(&["x\ny"], false)]
#[case::across_read_and_kept(&["a\nx"], false)]
fn replacement_may_touch_what_was_read(#[case] replaced: &[&str], #[case] expected: bool) {
    let replaced: Vec<String> = replaced.iter().map(|text| (*text).to_owned()).collect();
    let comparison = Comparison::of("a\nb\nc\n", "a\nx\ny\n").unwrap();
    assert_eq!(comparison.touches_nothing_new(&replaced, &[2..=2]), expected);
}

#[test]
fn changed_lines_are_counted() {
    assert_eq!(counted("a\nb\nc\n", "a\nx\ny\nc\n").as_deref(), Some("+2 -1"));
}

#[rstest]
#[case::within("a\nb\nc", "a\nx\nc", 2, 2, true)]
#[case::grown_within("a\nb\nc", "a\nx\ny\nc", 2, 4, true)]
#[case::grown_up_to_the_last_line("a\nb\nc", "a\nx\ny\nc", 2, 3, false)]
#[case::shrunk_within("a\nb\nc\nd\ne", "a\nd\ne", 2, 2, true)]
#[case::shrunk_unseen("a\nb\nb\nc", "a\nb\nc", 2, 2, false)]
#[case::removed_right_behind("a\nb\nc\nd", "a\nx\nd", 2, 2, false)]
#[case::removed_at_the_end("a\nb\nc\nd", "a\nx", 2, 2, true)]
#[case::before("a\nb\nc", "x\nb\nc", 2, 3, false)]
#[case::after("a\nb\nc", "a\nb\nx", 1, 2, false)]
#[case::removed_behind("a\nb\nc", "a\nb", 1, 1, false)]
#[case::equal("a\nb", "a\nb", 1, 1, true)]
#[case::all_of_it("a", "b\nc", 1, 2, true)]
fn new_text_is_within_the_lines(
    #[case] old: &str,
    #[case] new: &str,
    #[case] first: usize,
    #[case] last: usize,
    #[case] within: bool,
) {
    assert_eq!(is_all_new_within(old, new, first, last), within);
}
