//! Answers to reads and edits of a file that has changed unseen.

use rstest::rstest;

use super::*;
use crate::in_flight::{Base, InFlightKind, Wrote};
use crate::known::{Known, Way};
use crate::records::Records;
use crate::seen::tests::Versions;

const OLD: &str = "a\nb\nc\n";
const NEW: &str = "a\nb\nx\n";

fn stored(text: &str, tx: u64) -> Content {
    Content::stored(Some(Digest::of(text.as_bytes())), context_model::time::TxId(tx))
}

/// Judges an edit of a model that knows the old text while the file has the new one.
fn judged(
    records: &Records,
    replaced: Option<&[String]>,
    change: impl FnOnce(&mut AskedEdit<'_>),
) -> JudgedEdit {
    let (versions, known) = (Versions::of(&[OLD, NEW]), Known::default());
    let file = versions.file();
    let now = Digest::of(NEW.as_bytes());
    let mut edit = AskedEdit {
        path: "f",
        file: &file,
        known: stored(OLD, 1),
        now,
        is_stored: true,
        replaced,
        compared: 0,
    };
    change(&mut edit);
    let (judged, _) = versions.decide(|seen| {
        let sight = Sight { known: &known, in_sight: |_: &ObjectId| true, records, seen };
        sight.judge_edit(&edit, &Sentences::default())
    });
    judged
}

fn text(judged: &JudgedEdit) -> (bool, &str) {
    match &judged.guard {
        EditGuard::Allowed { difference } => (true, difference.as_deref().unwrap_or_default()),
        EditGuard::Refused(text) => (false, text),
    }
}

#[rstest]
#[case::beside_the_change(
    Some("a"),
    true,
    "f had changed elsewhere since you last saw it; before your edit:\n"
)]
#[case::of_changed_lines(
    Some("x"),
    false,
    "f has changed since you last saw it, so it was not edited. The change:\n"
)]
#[case::of_text_that_is_gone(
    Some("c"),
    false,
    "f has changed since you last saw it, so it was not edited. The change:\n"
)]
#[case::of_all(None, false, "f has changed since you last saw it, so it was not edited. The change:\n")]
fn edit_is_answered_with_the_change(
    #[case] replaced: Option<&str>,
    #[case] is_allowed: bool,
    #[case] begins: &str,
) {
    let replaced = replaced.map(|text| vec![text.to_owned()]);
    let judged = judged(&Records::default(), replaced.as_deref(), |_| ());
    let (allowed, text) = text(&judged);
    assert!(allowed == is_allowed && text.starts_with(begins), "{judged:?}");
    assert!(text.contains("\n-c\n+x\n") && judged.shows_all && judged.units > 0, "{judged:?}");
}

#[rstest]
#[case::bytes_on_the_disk_alone(false, 0, "What you saw was never stored")]
#[case::no_room(true, MAX_TOGETHER, "The change is too large to show")]
fn edit_is_refused_without_the_change(
    #[case] is_stored: bool,
    #[case] compared: usize,
    #[case] reason: &str,
) {
    let judged = judged(&Records::default(), None, |edit| {
        edit.is_stored = is_stored;
        edit.compared = compared;
    });
    let (allowed, text) = text(&judged);
    assert!(!allowed && text.contains(reason) && !judged.shows_all && judged.units == 0, "{judged:?}");
}

/// A tool has written the file, and its result has not come: the model knows what it knew before that.
#[rstest]
#[case::known(Some(stored(OLD, 1)), true)]
#[case::of_bytes_that_were_never_stored(Some(Content::lost(Digest::of(b"z"))), false)]
#[case::not_known(None, false)]
fn edit_after_an_unreported_write_is_compared_with_the_text_before_it(
    #[case] before: Option<Content>,
    #[case] shows_all: bool,
) {
    let (file, mut records) = (Versions::of(&[OLD, NEW]).file(), Records::default());
    let before = before.map(|content| Base { file: file.clone(), content, told: None });
    let wrote = Wrote { content: stored(NEW, 2), before, call: None, path: "/f".into() };
    let way = Way { path: "/f".into(), file, is_alias: false };
    records.passed_in.add(None, way, InFlightKind::Wrote(wrote));
    let judged = judged(&records, None, |edit| edit.known = stored(NEW, 2));
    assert_eq!(judged.shows_all, shows_all, "{judged:?}");
}

#[rstest]
#[case::all(None, None, Some((1, 3, true)))]
#[case::all_by_its_lines(Some(1), Some(9), Some((1, 3, true)))]
#[case::from_a_line_on(Some(2), None, Some((2, 3, false)))]
#[case::some_lines(None, Some(2), Some((1, 2, false)))]
#[case::past_the_end(Some(4), None, None)]
#[case::no_lines(None, Some(0), None)]
#[case::from_no_line(Some(0), Some(usize::MAX), Some((1, 3, true)))]
fn read_asks_for_lines(
    #[case] offset: Option<usize>,
    #[case] limit: Option<usize>,
    #[case] lines: Option<(usize, usize, bool)>,
) {
    assert_eq!(asked_lines("a\nb\n", offset, limit), lines);
}

#[test]
fn difference_is_an_answer_only_if_it_is_shorter_than_the_lines() {
    let sentences = Sentences::default();
    let old: String = (0..100).map(|number| format!("line {number}\n")).collect();
    let new = old.replace("line 50\n", "another\n");
    let answer = sentences.changed_since("f", (&old, &new), "12").unwrap();
    assert!(answer.starts_with("f has changed since the result id=12:\n--- in the result id=12\n+++ now\n"));
    assert_eq!(sentences.changed_since("f", (OLD, NEW), "12"), None);
    assert_eq!(sentences.changed_since("f", (&old, &old), "12"), None);
}
