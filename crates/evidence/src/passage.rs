//! The lines of a text that an output shows.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_tools::{OutputOf, wrapped_lines};

use crate::difference::common_lines;
use crate::evidence::{Bytes, Lines};
use crate::statement::{Content, Passage};

/// True if an output restores a whole text. Anything after it is on separate lines, and every output begins with an empty text.
pub fn restores(output: &str, text: &str) -> bool {
    let rest = output.strip_prefix(text);
    rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('\n') && !text.is_empty()))
}

/// Some lines of a text from line `first` on, as tools show them that number lines.
pub(crate) fn beginning(text: &str, first: usize) -> String {
    const LINES: usize = 3;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().skip(first - 1).take(LINES);
    lines.collect::<Vec<_>>().join("\n")
}

/// The maximum number of extra lines that a tool which wraps a file's lines puts before them.
const LINES_BEFORE: usize = 20;

/// True if a recorded output has these lines one after the other, each with something beside it, such as its
/// number.
pub fn wraps(recorded: &str, lines: &str) -> bool {
    let (adorned, bare): (Vec<&str>, Vec<&str>) =
        (recorded.split('\n').collect(), lines.split('\n').collect());
    let is_adorned = |(adorned, bare): (&&str, &&str)| adorned.len() > bare.len() && adorned.contains(bare);
    common_lines(recorded, 1, lines).is_none()
        && adorned
            .windows(bare.len())
            .take(LINES_BEFORE)
            .any(|adorned| adorned.iter().zip(&bare).all(is_adorned))
}

/// The rest of an output besides the lines that it has in common with a version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shows {
    /// Other text.
    More,
    /// A line break, which may come from the tool or from the file.
    Break,
    /// Nothing, or the tool's own note in brackets, such as how to continue.
    All,
}

impl Shows {
    fn of(output: &str, lines: usize) -> Self {
        match output.splitn(lines + 1, '\n').nth(lines) {
            None => Self::All,
            Some("") => Self::Break,
            Some(rest) if rest.trim_start_matches('\n').starts_with('[') => Self::All,
            Some(_) => Self::More,
        }
    }
}

/// Returns the lines of a text that an output shows from line `first` on, and the rest of the output.
pub fn passage_of(
    text: &str,
    content: Content,
    first: usize,
    output: &str,
    of: OutputOf,
) -> Option<(Passage, Shows)> {
    let Some(mut last) = common_lines(text, first, output) else {
        let (first, last) = wrapped_lines(text, first, output, of)?;
        let whole = first == 1 && last == text.lines().count();
        // The form leaves out at most a last line without text.
        let last = if whole { text.split('\n').count() } else { last };
        return Some((Passage { content, first, last, whole }, Shows::All));
    };
    // A blank line right before a note belongs to the note, not to the end of the file.
    let mut rest = output.split('\n').skip(last - first);
    if last > first && rest.next() == Some("") && rest.next().is_some_and(|line| line.starts_with('[')) {
        last -= 1;
    }
    let whole = first == 1 && last == text.split('\n').count();
    Some((Passage { content, first, last, whole }, Shows::of(output, last + 1 - first)))
}

/// Returns all of a text that has nothing to show, such as that of an empty file, after a successful read: the output shows
/// nothing either, except a host's remark in brackets. Other words may be those of another version.
pub(crate) fn nothing_of(text: &str, content: Content, output: &str) -> Option<Passage> {
    /// In bytes.
    const MOST: usize = 200;
    if !text.trim_start_matches('\u{feff}').trim().is_empty() {
        return None;
    }
    let words: Vec<&str> =
        output.lines().map(str::trim).filter(|line| line.contains(char::is_alphabetic)).collect();
    let is_said = words.iter().all(|line| line.starts_with(['<', '(', '[']));
    let length: usize = words.iter().map(|line| line.len()).sum();
    let last = text.split('\n').count();
    (is_said && length <= MOST).then_some(Passage { content, first: 1, last, whole: true })
}

/// Returns the lines that an output shows of a version that was never stored.
pub(crate) fn lost(hash: Digest, first: usize, output: &str) -> Passage {
    let lines: Vec<&str> = output.split('\n').collect();
    let is_cut = matches!(&lines[..], [.., "", note] if note.starts_with('[') && note.ends_with(']'));
    let last = first + lines.len() - 1 - if is_cut { 2 } else { 0 };
    Passage { content: Content::lost(hash), first, last, whole: first == 1 && !is_cut }
}

/// Returns the part of a passage that is still in the shown output of a result.
pub(crate) fn lines_in_sight(lines: Passage, text: &str, output: &str) -> Option<Passage> {
    let last = lines.last.min(lines.first + common_lines(text, 1, output)? - 1);
    (last >= lines.first).then_some(Passage { last, whole: lines.whole && last == lines.last, ..lines })
}

impl Passage {
    /// Returns the recorded form; `None` for a file that was gone.
    pub fn of(&self, file: &ObjectId) -> Option<Lines> {
        let bytes = Bytes { file: file.clone(), hash: self.content.hash? };
        Some(Lines { bytes, first: self.first, last: self.last, whole: self.whole })
    }

    /// Recorded lines of a version of this store.
    pub fn recorded(lines: &Lines, content: Content) -> Self {
        Self { content, first: lines.first, last: lines.last, whole: lines.whole }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::whole(1, "a\nb\nc\n", Some((1, 4, true)))]
    #[case::without_the_last_break(1, "a\nb\nc", Some((1, 3, false)))]
    #[case::a_part(2, "b", Some((2, 2, false)))]
    #[case::a_part_and_a_note(1, "a\nb\n\n[2 more lines in file]", Some((1, 2, false)))]
    #[case::up_to_the_last_line_and_a_note(2, "b\nc\n\n[1 more lines in file]", Some((2, 3, false)))]
    #[case::another_text(1, "x", None)]
    fn output_shows_lines_of_a_version(
        #[case] first: usize,
        #[case] output: &str,
        #[case] expected: Option<(usize, usize, bool)>,
    ) {
        let content = Content::lost(Digest::of(b"a"));
        let shown = passage_of("a\nb\nc\n", content, first, output, OutputOf::Reader);
        assert_eq!(shown.map(|(lines, _)| (lines.first, lines.last, lines.whole)), expected);
    }

    #[rstest]
    #[case::empty("", "", Some(1))]
    #[case::a_sentence(
        "",
        "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>",
        Some(1)
    )]
    #[case::a_form("", "<file>\n\n(End of file - total 0 lines)\n</file>", Some(1))]
    #[case::blank_lines("\n\n", "\n\n", Some(3))]
    #[case::numbered("\n\n", "     1→\n     2→\n", Some(3))]
    #[case::a_byte_order_mark("\u{feff}\n", "", Some(2))]
    #[case::text("x\n", "", None)]
    fn read_of_an_empty_file_shows_all(
        #[case] text: &str,
        #[case] output: &str,
        #[case] last: Option<usize>,
    ) {
        let content = Content::lost(Digest::of(b"a"));
        assert_eq!(nothing_of(text, content, output).map(|lines| lines.last), last);
        assert_eq!(nothing_of(text, content, "one line of another version\n"), None);
        assert_eq!(nothing_of(text, content, &"<some words>\n".repeat(30)), None);
    }

    /// Lines 3 to 5 of a file, and other text of the result.
    #[rstest]
    #[case::more("c\nd\nx", Shows::More)]
    #[case::a_break("c\nd\n", Shows::Break)]
    #[case::nothing("c\nd", Shows::All)]
    #[case::a_note("c\nd\n\n[1 more line]", Shows::All)]
    #[case::another_line("c\nd\nx\n[1 more line]", Shows::More)]
    #[case::a_form("<file>\n00003| c\n00004| d\n00005| e\n</file>", Shows::All)]
    fn rest_of_an_output_is_classified(#[case] output: &str, #[case] expected: Shows) {
        let content = Content::lost(Digest::of(b"a"));
        let (_, shows) = passage_of("a\nb\nc\nd\ne\n", content, 3, output, OutputOf::Reader).unwrap();
        assert!(shows == expected);
    }

    /// A form that numbers lines may leave out a last line without text.
    #[rstest]
    #[case::all("1: a\n2: b\n3: c", 1, (1, 4, true))]
    #[case::the_last("2: b\n3: c", 2, (2, 3, false))]
    fn lines_of_a_form(#[case] output: &str, #[case] first: usize, #[case] expected: (usize, usize, bool)) {
        let content = Content::lost(Digest::of(b"a"));
        let (lines, _) =
            passage_of("a\nb\nc\n", content, first, &format!("<file>\n{output}\n</file>"), OutputOf::Reader)
                .unwrap();
        assert_eq!((lines.first, lines.last, lines.whole), expected);
    }

    #[rstest]
    #[case::all(1, "a\nb\n", (1, 3, true))]
    #[case::from_a_line_on(3, "a\nb\n", (3, 5, false))]
    #[case::cut(1, "a\nb\n\n[2 more lines]", (1, 2, false))]
    #[case::a_line_in_brackets(1, "a\n[b]", (1, 2, true))]
    #[case::an_open_bracket(1, "a\n\n[b", (1, 3, true))]
    #[case::a_closing_bracket(1, "a\n\nb]", (1, 3, true))]
    fn lines_of_an_unstored_version(
        #[case] first: usize,
        #[case] output: &str,
        #[case] expected: (usize, usize, bool),
    ) {
        let lines = lost(Digest::of(b"a"), first, output);
        assert_eq!((lines.first, lines.last, lines.whole), expected);
        let recorded = lines.of(&ObjectId::new("f")).unwrap();
        assert_eq!(Passage::recorded(&recorded, lines.content), lines);
        let gone = Content { hash: None, tx: None };
        assert_eq!(Passage { content: gone, ..lines }.of(&ObjectId::new("f")), None);
    }

    /// Lines 4 to 6, of which the result has shown all; the message may show fewer.
    #[rstest]
    #[case::all("d\ne\nf", Some((6, true)))]
    #[case::more_below("d\ne\nf\nnote", Some((6, true)))]
    #[case::fewer("d\n[2 lines left out]", Some((4, false)))]
    #[case::none("[3 lines left out]", None)]
    fn message_keeps_some_lines_of_a_result(#[case] output: &str, #[case] expected: Option<(usize, bool)>) {
        let content = Content::lost(Digest::of(b"a"));
        let lines = Passage { content, first: 4, last: 6, whole: true };
        let left = lines_in_sight(lines, "d\ne\nf\nnote", output);
        assert_eq!(left.map(|left| (left.last, left.whole)), expected);
        assert!(left.is_none_or(|left| left.first == 4 && left.content == content));
    }

    #[rstest]
    #[case::from_the_first(1, "a\nb\nc\nd\n", "a\nb\nc")]
    #[case::from_another(3, "a\nb\nc\nd\n", "c\nd")]
    #[case::with_a_mark(1, "\u{feff}a", "a")]
    fn first_lines_identify_a_form(#[case] first: usize, #[case] text: &str, #[case] lines: &str) {
        assert_eq!(beginning(text, first), lines);
    }

    #[rstest]
    #[case::itself("a\nb", "a\nb", true)]
    #[case::more_below("a\n\narguments of the call: {}", "a", true)]
    #[case::more_beside("a is active", "a", false)]
    #[case::nothing("", "", true)]
    #[case::a_line_about_nothing("a is active; it is empty", "", false)]
    #[case::lines_below_nothing("\n\narguments", "", false)]
    #[case::another("b", "a", false)]
    fn output_restores_a_whole_text(#[case] output: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(restores(output, text), expected);
    }

    #[rstest]
    #[case::numbered("<file>\n1: a\n2: \n3: b\n</file>", "a\n\nb", true)]
    #[case::its_beginning("1: a\n2: b", "a", true)]
    #[case::itself("a\nb", "a\nb", false)]
    #[case::its_own_beginning("line 1\nline 10", "line 1", false)]
    #[case::an_end_of_it("a\nb\nc", "b\nc", false)]
    #[case::an_excerpt("a\nb\nc", "a\n[1 line]\nc", false)]
    #[case::another_order("1: a\n2: b", "b\na", false)]
    #[case::another("1: a\n2: b", "a\nc", false)]
    fn output_wraps_lines(#[case] recorded: &str, #[case] lines: &str, #[case] expected: bool) {
        assert_eq!(wraps(recorded, lines), expected);
    }
}
