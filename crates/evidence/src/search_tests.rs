//! The version that a read shows, and the one that a write left.

use rstest::rstest;
use serde_json::json;

use super::*;
use crate::evidence::Lines;

const NOW: &str = "a\nb\nc\n";
const BEFORE: &str = "a\nb\nx\n";

/// Versions of transaction 9 and, counted backwards, earlier ones: a text, bytes that are none, or a file that was gone.
fn versions(texts: &[Option<&'static str>]) -> Vec<(Content, Option<&'static str>)> {
    let content = |at: usize, text: Option<&str>| {
        let hash = text.filter(|text| *text != "gone").map(|text| Digest::of(text.as_bytes()));
        Content::stored(hash, TxId(9 - at as u64))
    };
    let text = |text: Option<&'static str>| text.filter(|text| !["gone", "binary"].contains(text));
    texts.iter().enumerate().map(|(at, one)| (content(at, *one), text(*one))).collect()
}

/// Returns what a read of the whole file says.
fn read<'a>(output: &'a str) -> ReadResult<'a> {
    let (is_limited, is_bare, is_passed_in, at) = (false, false, false, ReadAt::default());
    ReadResult { first: 1, is_limited, output, is_bare, is_passed_in, at }
}

/// Returns what a search finds, and how many versions it has looked at.
fn found(read: ReadResult<'_>, texts: &[&'static str]) -> (Option<Evidence>, usize) {
    let texts: Vec<_> = texts.iter().copied().map(Some).collect();
    let mut search = ReadSearch::new(read);
    for (content, text) in versions(&texts) {
        if !search.look(content, text) {
            break;
        }
    }
    (search.evidence(&ObjectId::new("f"), None), search.looked)
}

fn shown(evidence: Option<Evidence>) -> Option<(Digest, usize, usize)> {
    match evidence? {
        Evidence::Shows(Lines { bytes, first, last, .. }) => Some((bytes.hash, first, last)),
        _ => None,
    }
}

#[rstest]
#[case::the_newest(NOW, &[NOW, BEFORE], Some((NOW, 1, 4)), 1)]
#[case::the_one_before(BEFORE, &[NOW, BEFORE, "z"], Some((BEFORE, 1, 4)), 2)]
#[case::most_of_the_lines("a\nb\n\n[1 more line]", &["a\n", NOW, BEFORE], Some((NOW, 1, 2)), 2)]
#[case::an_empty_file("", &["", "x"], Some(("", 1, 1)), 1)]
#[case::behind_one_without_text(NOW, &["binary", NOW], Some((NOW, 1, 4)), 2)]
#[case::none("other\n", &[NOW, BEFORE], None, 2)]
fn read_shows_the_matching_version(
    #[case] output: &str,
    #[case] texts: &[&'static str],
    #[case] expected: Option<(&str, usize, usize)>,
    #[case] looked: usize,
) {
    let (evidence, count) = found(read(output), texts);
    let expected = expected.map(|(text, first, last)| (Digest::of(text.as_bytes()), first, last));
    assert_eq!((shown(evidence), count), (expected, looked));
}

#[rstest]
#[case::text_of_no_version("other\n", &[NOW, BEFORE], Some(None))]
#[case::text_after_lines_of_a_version("a\nb\nmore\n", &[NOW], Some(Some(NOW)))]
#[case::numbers("1: a\n2: b", &[NOW], None)]
#[case::a_line_with_something_beside_it("> a <\nq", &[NOW], None)]
#[case::lines_of_an_older_version_with_something_beside_them("> x <\n> y <", &[NOW, "x\ny\n"], None)]
#[case::bytes_that_are_no_text("[image]", &["binary", NOW], None)]
#[case::only_such("[image]", &["binary"], None)]
#[case::no_version("other\n", &[], None)]
#[case::a_file_that_is_gone("other\n", &["gone"], None)]
fn unmatched_output_is_unstored_text(
    #[case] output: &str,
    #[case] texts: &[&'static str],
    #[case] expected: Option<Option<&str>>,
) {
    let like = match found(read(output), texts).0 {
        Some(Evidence::Unstored { lines, like }) => {
            assert_eq!(lines.bytes.hash, Digest::of(output.as_bytes()));
            Some(like)
        }
        Some(other) => panic!("{other:?}"),
        None => None,
    };
    assert_eq!(like, expected.map(|text| text.map(|text| Digest::of(text.as_bytes()))));
}

/// The tool has passed in a read of the file, of which nothing matches.
#[rstest]
#[case::text("other\n", &[NOW], true)]
#[case::lines_with_something_beside_them("> x <\n> y <", &[NOW, "x\ny\n"], false)]
#[case::bytes_that_are_no_text("other\n", &["binary"], false)]
fn unmatched_read_that_was_passed_in_is_unstored_text(
    #[case] output: &str,
    #[case] texts: &[&'static str],
    #[case] is_unstored: bool,
) {
    let evidence = found(ReadResult { is_passed_in: true, ..read(output) }, texts).0;
    assert_eq!(matches!(evidence, Some(Evidence::Unstored { like: None, .. })), is_unstored);
}

#[rstest]
#[case::from_the_first(1, Some(1))]
#[case::from_a_later_one(2, None)]
fn a_file_without_text_shows_all_from_its_first_line_on(#[case] first: usize, #[case] last: Option<usize>) {
    let evidence = found(ReadResult { first, ..read("<the file is empty>") }, &[""]).0;
    assert_eq!(shown(evidence).map(|(_, _, last)| last), last);
}

#[test]
fn search_prefers_the_likely_version() {
    let at = ReadAt { likely: Some(Digest::of(BEFORE.as_bytes())), ..ReadAt::default() };
    let texts = [NOW, BEFORE, "a\nb\ny\n"];
    let (evidence, looked) = found(ReadResult { is_limited: true, at, ..read("a\nb") }, &texts);
    assert_eq!((shown(evidence), looked), (Some((Digest::of(BEFORE.as_bytes()), 1, 2)), 2));
}

/// Of versions 9, 8, 7 and 6 the last three have its lines.
#[rstest]
#[case::the_oldest(None, 6)]
#[case::no_older_than_what_was_known_before(Some(7), 7)]
#[case::what_was_known_is_newer(Some(9), 8)]
fn search_for_a_late_call_takes_an_old_version(#[case] before: Option<u64>, #[case] expected: u64) {
    let at = ReadAt { late: true, before: before.map(TxId), likely: None };
    let texts = ["z", "a\nb\n1\n", "a\nb\n2\n", "a\nb\n3\n"];
    let (evidence, looked) = found(ReadResult { is_limited: true, at, ..read("a\nb") }, &texts);
    let hash = Digest::of(texts[9 - expected as usize].as_bytes());
    assert_eq!((shown(evidence), looked), (Some((hash, 1, 2)), 4));
}

#[rstest]
#[case::gone("a x", &["gone"], true)]
#[case::gone_for_two_versions("a x", &["gone", "gone", NOW], true)]
#[case::all_of_a_version(NOW, &[NOW], false)]
#[case::a_part_without_its_line_break("a\nb", &[NOW], false)]
#[case::never_stored("other\n", &["gone", "gone"], true)]
#[case::stored_before("1: a", &["gone", NOW], false)]
#[case::to_the_end_of_another_text("a\nb\n", &[NOW], true)]
#[case::without_any_version("other\n", &[], false)]
fn late_read_may_precede_every_stored_version(
    #[case] output: &str,
    #[case] texts: &[&'static str],
    #[case] is_unstored: bool,
) {
    let at = ReadAt { late: true, ..ReadAt::default() };
    let evidence = found(ReadResult { at, ..read(output) }, texts).0;
    assert_eq!(matches!(evidence, Some(Evidence::Unstored { like: None, .. })), is_unstored);
}

#[rstest]
#[case::all_of_it(json!({ "content": NOW }), None, &[NOW, BEFORE], Some((NOW, Some(9))))]
#[case::stored_before(json!({ "content": BEFORE }), None, &[NOW, BEFORE], Some((BEFORE, Some(8))))]
#[case::never_stored(json!({ "content": "q" }), None, &[NOW, BEFORE], Some(("q", None)))]
#[case::an_edit(json!({ "oldText": "x", "newText": "c" }), None, &[NOW, BEFORE], Some((NOW, Some(9))))]
#[case::an_edit_of_what_was_known(json!({ "oldText": "x", "newText": "c" }), Some("x\n"), &[NOW, BEFORE], Some(("c\n", None)))]
#[case::nothing_is_said(json!({}), None, &[NOW, BEFORE], Some((NOW, Some(9))))]
#[case::no_version(json!({}), None, &[], None)]
fn write_leaves_the_matching_version(
    #[case] args: serde_json::Value,
    #[case] known: Option<&str>,
    #[case] texts: &[&'static str],
    #[case] expected: Option<(&str, Option<u64>)>,
) {
    let args = args.as_object().cloned().unwrap();
    let content = left(&args, known, false, texts);
    let hash = expected.map(|(text, _)| Digest::of(text.as_bytes()));
    let tx = expected.and_then(|(_, tx)| tx).map(TxId);
    assert_eq!(content, hash.map(|hash| Content { hash: Some(hash), tx }));
}

/// The text that it has put in comes up in both.
#[rstest]
#[case(false, 9)]
#[case(true, 8)]
fn search_for_a_late_edit_takes_the_oldest_version(#[case] late: bool, #[case] expected: u64) {
    let args = json!({ "newText": "b" }).as_object().cloned().unwrap();
    let texts = ["a\nb\nb\nb\n", "a\nb\nb\n", "a\nb\n", "a\n"];
    let content = left(&args, None, late, &texts[..2]);
    assert_eq!(content.and_then(|content| content.tx), Some(TxId(expected)));
}

fn left(
    args: &serde_json::Map<String, serde_json::Value>,
    known: Option<&str>,
    late: bool,
    texts: &[&'static str],
) -> Option<Content> {
    let texts: Vec<_> = texts.iter().copied().map(Some).collect();
    let versions = versions(&texts);
    let mut search = WriteSearch::new(Leaves::of(args), known, late);
    for (at, (content, text)) in versions.iter().enumerate() {
        if !search.look(*content, *text, versions.get(at + 1).and_then(|(_, text)| *text)) {
            break;
        }
    }
    search.content()
}
