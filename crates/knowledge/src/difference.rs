//! What two texts of a file have in common, and how their difference is described.

use context_model::tokens::utf16_len;
use similar::{ChangeTag, DiffTag, TextDiff};

/// Changes in texts above this many bytes are announced without counting lines.
const MAX_COUNTED: usize = 512 * 1024;

/// A difference for the model has at most this many UTF-16 units, about as many as the excerpt of an output.
pub const MAX_SHOWN: usize = 10_000;

/// A difference above [`MAX_SHOWN`] begins to be shown if it is at most one part in this many of the whole text. Above that
/// the text itself is shorter.
const SHARE: usize = 2;

/// A longer line of a difference that is only begun is shown without its end, in UTF-16 units.
const MAX_LINE: usize = 400;

/// A unified diff with three lines of context, however long; empty if the texts are equal.
///
/// For programs that ask for it. A model is shown [`Comparison::shown`], which has a limit.
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

/// A difference as it is shown to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownChange {
    /// All of it, as a unified diff.
    Whole(String),
    /// The beginning of the diff, and what it leaves out.
    Begun {
        /// The first lines of the diff. The last one ends with a line break.
        head: String,
        /// How many added and removed lines are not among them.
        more: usize,
        /// How many lines were added.
        added: usize,
        /// How many lines were removed.
        removed: usize,
    },
    /// It is too large to be worth showing.
    TooLarge,
}

/// Two texts of a file, compared once.
pub struct Comparison<'t> {
    diff: TextDiff<'t, 't, str>,
    new: &'t str,
}

impl<'t> Comparison<'t> {
    /// Compares two texts. `None` if what lies between their common beginning and end is too long for that: the time that it
    /// takes is bounded.
    #[must_use]
    pub fn of(old: &'t str, new: &'t str) -> Option<Self> {
        let head = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
        let (old_rest, new_rest) = (&old.as_bytes()[head..], &new.as_bytes()[head..]);
        let ends = old_rest.iter().rev().zip(new_rest.iter().rev());
        let tail = ends.take_while(|(old, new)| old == new).count();
        let changed = old_rest.len().max(new_rest.len()) - tail;
        (changed <= MAX_COUNTED).then(|| Self { diff: TextDiff::from_lines(old, new), new })
    }

    /// Returns the difference as a unified diff with three lines of context, of at most [`MAX_SHOWN`] UTF-16 units and the
    /// two names. `None` if the texts are equal.
    #[must_use]
    pub fn shown(&self, old_name: &str, new_name: &str) -> Option<ShownChange> {
        let all = self.diff.unified_diff().context_radius(3).header(old_name, new_name).to_string();
        if all.is_empty() {
            return None;
        }
        let names = utf16_len(old_name) + utf16_len(new_name);
        if utf16_len(&all) <= MAX_SHOWN + names {
            return Some(ShownChange::Whole(all));
        }
        Some(if all.len() * SHARE > self.new.len() {
            ShownChange::TooLarge
        } else {
            self.begun(&all, MAX_SHOWN + names)
        })
    }

    /// The first lines of a diff that have at most so many UTF-16 units together.
    fn begun(&self, all: &str, units: usize) -> ShownChange {
        let (mut head, mut left) = (String::new(), units);
        let (mut lines, mut changed) = (0, 0);
        for line in all.split_inclusive('\n') {
            let shown = cut(line);
            let size = utf16_len(&shown);
            if size > left {
                break;
            }
            left -= size;
            head.push_str(&shown);
            lines += 1;
            // The first two lines are the names.
            changed += usize::from(lines > 2 && line.starts_with(['+', '-']));
        }
        let count = |tag| self.diff.iter_all_changes().filter(|change| change.tag() == tag).count();
        let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
        ShownChange::Begun { head, more: (added + removed).saturating_sub(changed), added, removed }
    }

    /// Returns whether texts that an edit replaces can be replaced in the new text by somebody who knows only the old one:
    /// each occurs exactly once, and none of its lines, nor anything between them, is other than in the old text.
    #[must_use]
    pub fn touches_nothing_new(&self, replaced: &[String]) -> bool {
        let equal = self.diff.ops().iter().filter(|op| op.tag() == DiffTag::Equal);
        let kept: Vec<(usize, usize)> = equal.map(|op| (op.new_range().start, op.new_range().end)).collect();
        let is_kept = |text: &String| {
            let Some(at) = self.new.find(text.as_str()).filter(|_| !text.is_empty()) else { return false };
            let is_once = self.new.rfind(text.as_str()) == Some(at);
            let first = self.new[..at].matches('\n').count();
            let last = self.new[..at + text.len() - 1].matches('\n').count();
            is_once && kept.iter().any(|(start, end)| *start <= first && last < *end)
        };
        !replaced.is_empty() && replaced.iter().all(is_kept)
    }
}

/// A line of a diff without the end of a long one.
fn cut(line: &str) -> std::borrow::Cow<'_, str> {
    let size = utf16_len(line);
    if size <= MAX_LINE {
        return line.into();
    }
    let mut left = MAX_LINE;
    let end = line.char_indices().find(|(_, c)| {
        let fits = c.len_utf16() <= left;
        left = left.saturating_sub(c.len_utf16());
        !fits
    });
    let begin = &line[..end.map_or(line.len(), |(at, _)| at)];
    format!("{begin}... {} more chars\n", size - utf16_len(begin)).into()
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
        assert_eq!(
            shown(&old, &new),
            Some(Some(ShownChange::Whole(all))),
            "whatever its share of the text is"
        );
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
        let Some(Some(ShownChange::Begun { head, more, .. })) = shown(&old, &new) else {
            panic!("it is long")
        };
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

    /// Lines as a letter and how often it stands there.
    fn repeated(lines: &[(char, usize)], end: &str) -> String {
        lines
            .iter()
            .fold(String::new(), |text, (letter, count)| text + &letter.to_string().repeat(*count) + end)
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
        assert_eq!(Comparison::of(old, new).unwrap().touches_nothing_new(&replaced), expected);
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
