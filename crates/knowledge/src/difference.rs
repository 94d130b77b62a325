//! What two texts of a file have in common, and how their difference is described.

use similar::{ChangeTag, DiffTag, TextDiff};

/// Changes in texts above this many bytes are announced without counting lines.
const MAX_COUNTED: usize = 512 * 1024;

/// A unified diff with three lines of context; empty if the texts are equal.
pub fn unified(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old, new).unified_diff().context_radius(3).header(old_name, new_name).to_string()
}

/// `+12 -4`: how many lines were added and removed; `None` for very long texts.
#[must_use]
pub fn counted(old: &str, new: &str) -> Option<String> {
    if old.len().max(new.len()) > MAX_COUNTED {
        return None;
    }
    let diff = TextDiff::from_lines(old, new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    Some(format!("+{} -{}", count(ChangeTag::Insert), count(ChangeTag::Delete)))
}

/// Returns whether texts that an edit replaces can be replaced in a new text by somebody who knows only the old one:
/// each occurs exactly once, and none of its lines, nor anything between them, is other than in the old text.
pub fn touches_nothing_new(old: &str, new: &str, replaced: &[String]) -> bool {
    let diff = TextDiff::from_lines(old, new);
    let kept: Vec<(usize, usize)> = diff
        .ops()
        .iter()
        .filter(|op| op.tag() == DiffTag::Equal)
        .map(|op| (op.new_range().start, op.new_range().end))
        .collect();
    let is_kept = |text: &String| {
        let Some(at) = new.find(text.as_str()).filter(|_| !text.is_empty()) else { return false };
        let is_once = new.rfind(text.as_str()) == Some(at);
        let first = new[..at].matches('\n').count();
        let last = new[..at + text.len() - 1].matches('\n').count();
        is_once && kept.iter().any(|(start, end)| *start <= first && last < *end)
    };
    !replaced.is_empty() && replaced.iter().all(is_kept)
}

/// The last line, counted from 1, of the part of a text that an output shows from line `first` on; `None` if it does
/// not show even that line. A host may have taken carriage returns away.
pub fn common_lines(text: &str, first: usize, output: &str) -> Option<usize> {
    let mut shown = output.split('\n');
    let mut last = None;
    for (number, line) in text.split('\n').enumerate().skip(first - 1) {
        if shown.next().map(bare) != Some(bare(line)) {
            break;
        }
        last = Some(number + 1);
    }
    last
}

/// A line without the carriage return at its end.
pub(crate) fn bare(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// Returns whether these lines of the new text (counted from 1, both included) are enough for a reader of the old text
/// to know all of the new one. If the number of lines has changed, the last line shown must tell where the old text
/// continues.
pub fn is_all_new_within(old: &str, new: &str, first: usize, last: usize) -> bool {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let before = first.saturating_sub(1);
    let last = last.min(new.len());
    let is_plain = old.len() == new.len() || last == new.len();
    let after = new.len() - last + usize::from(!is_plain);
    let looks_the_same = || old.get(before..last) == new.get(before..last);
    before + after <= old.len().min(new.len())
        && old[..before] == new[..before]
        && old[old.len() - after..] == new[new.len() - after..]
        && (is_plain || !looks_the_same())
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn what_an_output_shows_is_found_by_comparing_lines() {
        let text = "a\nb\nc\nd\n";
        assert_eq!(common_lines(text, 1, "a\nb\nc\nd\n"), Some(5));
        assert_eq!(
            common_lines(text, 1, "a\nb\n\n[2 more lines in file. Use offset=3 to continue.]"),
            Some(2)
        );
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
    fn replacement_touches_nothing_new(
        #[case] old: &str,
        #[case] new: &str,
        #[case] replaced: &[&str],
        #[case] expected: bool,
    ) {
        let replaced: Vec<String> = replaced.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(touches_nothing_new(old, new, &replaced), expected);
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
    fn what_lines_of_a_new_text_tell(
        #[case] old: &str,
        #[case] new: &str,
        #[case] first: usize,
        #[case] last: usize,
        #[case] within: bool,
    ) {
        assert_eq!(is_all_new_within(old, new, first, last), within);
    }
}
