//! Rolls are remembered, undone and repeated.

use context_model::chat::numbered;
use rstest::rstest;

use super::*;
use crate::Prices;
use crate::objects::TestObjects;
use crate::request::segment::{Line, Output};

/// A result whose reference has these lines after it.
fn result(name: &str, lines: &[bool]) -> Output {
    let line = |stays: &bool| Line { text: format!("stays: {stays}"), stays: *stays, of: 0 };
    Output { lines: lines.iter().map(line).collect(), ..Output::of_test(name, 900) }
}

#[test]
fn lines_that_had_left_leave_again_where_there_are_any() {
    let objects = TestObjects::default();
    let mut request = Request::default();
    for (name, lines) in [("a", &[true, false][..]), ("b", &[]), ("c", &[false])] {
        let place = request.segments.push_result(name, result(name, lines), &objects);
        request.segments.take_form(place, Form::Reference);
    }
    let lines = ["a", "b"].map(ObjectId::new).to_vec();
    request.rolled.note(RollEntry { lines, ..RollEntry::default() }, 0);
    request.repeat_call_digests(&objects);
    assert_eq!(request.pending.iter().copied().collect::<Vec<_>>(), [0]);
    let text = |place| request.segments.text_at(place).unwrap();
    assert_eq!(text(0), "toolcall_ref id=a\nstays: true");
    assert_eq!(text(2), "toolcall_ref id=c\nstays: false");
}

#[test]
fn restored_result_is_held_in_a_later_process() {
    let objects = TestObjects::default();
    let mut request = Request::default();
    request.segments.need =
        Some(crate::Need { prices: Prices::default(), lambda: 1.0, density: crate::Need::USUAL_DENSITY });
    for name in ["a", "b"] {
        request.segments.push_result(name, result(name, &[]), &objects);
    }
    let entry = RollEntry { results: vec![ObjectId::new("b")], ..RollEntry::default() };
    request.rolled.note(entry.clone(), 0);
    request.rolled.note(RollEntry { undone: true, ..entry }, 0);
    request.keep_what_was_brought_back(0, 3, &objects);
    assert_eq!([0, 1].map(|place| request.segments.is_brought_back(place)), [false, true]);
}

/// Two results, and two answers with a call each: prose and an edit's arguments, then those of a write.
fn request_of_each_kind(objects: &TestObjects) -> Request {
    let mut request = Request::default();
    request.segments.set_shortens(true);
    request.segments.push_result("r", result("r", &[]), objects);
    request.segments.push_result("l", result("l", &[true, false]), objects);
    let long = "word ".repeat(500);
    let call = |id: &str, tool: &str, args: serde_json::Value| serde_json::json!({ "type": "toolCall", "id": id, "name": tool, "arguments": args });
    let text = serde_json::json!({ "type": "text", "text": long });
    let edit = call("e", "edit", serde_json::json!({ "path": "/a", "oldText": long, "newText": long }));
    let write = call("w", "write", serde_json::json!({ "path": "/b", "content": long }));
    for (id, content) in [("e", vec![text, edit]), ("w", vec![write])] {
        request.push_answer(id, &serde_json::json!({ "content": content }), "/", (true, objects));
        let object = ObjectId::new(id);
        request.segments.answer(id, &object, true, objects, "/");
        request.segments.push_result(id, result(id, &[]), objects);
    }
    request
}

fn ids(names: &[&str]) -> Vec<ObjectId> {
    names.iter().map(|name| ObjectId::new(*name)).collect()
}

/// The roll of everything in [`request_of_each_kind`].
fn roll_of_everything(call_digests: &[&[&str]]) -> RollEntry {
    RollEntry {
        results: ids(&["r"]),
        lines: ids(&["l"]),
        prose: vec![context_model::chat::said_id(&"word ".repeat(500))],
        old_texts: ids(&["e"]),
        arguments: ids(&["w"]),
        changed: ids(&["r"]),
        call_digests: call_digests.iter().map(|call_digest| ids(call_digest)).collect(),
        ..RollEntry::default()
    }
}

#[test]
fn record_of_a_roll_names_its_changes() {
    use super::super::plan::Edit;
    let objects = TestObjects::default();
    for binding in [crate::Binding::None, crate::Binding::Drops] {
        let mut request = request_of_each_kind(&objects);
        request.segments.set_binding(binding, false);
        let forms = vec![
            (0, Form::Reference),
            (1, Form::Compact),
            (2, Form::Reference),
            (3, Form::WithoutOldText),
            (4, Form::Removed),
            (5, Form::Reference),
        ];
        let roll = crate::Roll { most: 7.0, removed_tokens: 5, ..crate::Roll::of_test(0, Vec::new()) };
        let of_test = Shape::of(roll);
        let shape = Shape { forms, call_digests: vec![vec![0, 1]], changed: vec![0], ..of_test };
        let spending = Some(request.segments.ledger.spending(0, 0, 7.0, 5));
        let bound = binding.is_strict();
        let entry = RollEntry { bound, spending, ..roll_of_everything(&[&["e", "w"]]) };
        assert_eq!(entry_of(&request, &shape), entry);
    }
    let gone = request_of_each_kind(&objects).segments.edits_of([4]);
    assert!(matches!(gone.as_slice(), [Edit::Result { text: None, .. }]), "nothing was applied");
}

/// Of equal thoughts, those leave again that have left: the first one by itself, others together with their answer's text.
#[rstest]
#[case::the_first([0])]
#[case::a_later_one([1])]
#[case::both([0, 1])]
fn equal_thoughts_leave_again_one_by_one<const N: usize>(#[case] left: [usize; N]) {
    let objects = TestObjects::default();
    let thought = "I look. ".repeat(50);
    let id = context_model::chat::said_id(&thought);
    let mut request = Request::default();
    request.segments.set_shortens(true);
    let prose = left.iter().map(|number| numbered(&id, *number)).collect();
    request.rolled.note(RollEntry { prose, ..RollEntry::default() }, 0);
    let block = serde_json::json!({ "type": "thinking", "thinking": thought });
    for id in ["a", "b"] {
        let call = serde_json::json!({ "type": "toolCall", "id": id, "name": "bash", "arguments": {} });
        request.push_answer(id, &serde_json::json!({ "content": [block, call] }), "/", (false, &objects));
    }
    assert_eq!(request.pending.iter().map(|place| place / 2).collect::<Vec<_>>(), left);
    let forms = request.pending.iter().map(|place| (*place, Form::Reference)).collect();
    let shape = Shape { forms, ..Shape::of(crate::Roll::of_test(0, Vec::new())) };
    let names: Vec<String> = left.iter().map(|number| numbered(&id, *number)).collect();
    assert_eq!(entry_of(&request, &shape).prose, names);
}

/// The host may have kept an edit of an earlier process.
#[test]
fn rolled_result_is_replaced_again_unless_the_host_kept_its_reference() {
    let objects = TestObjects::default();
    let texts = ["as it came", "toolcall_ref id=r, changed since", "toolcall_ref id=r"];
    for (text, pending) in texts.into_iter().zip([true, false, true]) {
        let mut request = request_of_each_kind(&objects);
        request.rolled.note(roll_of_everything(&[]), 0);
        request.repeat_rolls(&ObjectId::new("r"), 0, text, &objects);
        assert_eq!(request.pending.contains(&0), pending, "{text}");
        assert_eq!(request.segments.text_at(0).unwrap(), texts[1]);
        for (name, place) in [("e", 4), ("w", 6), ("l", 1)] {
            request.repeat_rolls(&ObjectId::new(name), place, "as it came", &objects);
            request.repeat_arguments(&ObjectId::new(name), &objects);
        }
        let forms = request.segments.segments.iter().map(|segment| segment.form).collect::<Vec<_>>();
        let [full, without, short] = [Form::Full, Form::WithoutOldText, Form::Reference];
        assert_eq!(forms, [short, full, full, without, full, short, full]);
        assert_eq!((request.pending.contains(&3), request.pending.contains(&5)), (true, true));
        assert!([1, 2, 4, 6].iter().all(|place| !request.pending.contains(place)));
    }
}

/// A host puts another call in place of the second answer's, or changes its text, before or after a roll that names it.
#[rstest]
#[case::before_the_roll(true, true, Form::Removed)]
#[case::after_it(false, true, Form::Full)]
#[case::with_this_request(false, false, Form::Full)]
fn roll_is_not_of_text_that_came_into_the_past_after_it(
    #[case] is_before: bool,
    #[case] is_recorded: bool,
    #[case] expected: Form,
) {
    let objects = TestObjects::default();
    let arrived = Arrived { calls: ids(&["w"]), ..Arrived::default() };
    let other = Arrived { made: 1, answers: 1, ..Arrived::default() };
    let mut record = vec![Noted::Arrived(other), Noted::Roll(Box::new(roll_of_everything(&[&["e", "w"]])))];
    if is_recorded {
        record.insert(if is_before { 1 } else { 2 }, Noted::Arrived(arrived.clone()));
    }
    let mut request = request_of_each_kind(&objects);
    for one in record {
        match one {
            Noted::Roll(entry) => request.rolled.note(*entry, 0),
            Noted::Arrived(arrived) => request.rolled.note_arrival(arrived),
        }
    }
    request.repeat_arrivals((!is_recorded).then_some(&arrived));
    request.repeat_call_digests(&objects);
    let forms = request.segments.segments[5..].iter().map(|segment| segment.form);
    assert_eq!(forms.collect::<Vec<_>>(), [expected; 2]);
}

/// Reasoning behind a change stays only on a model that does not bind it.
#[test]
fn first_change_leaves_later_reasoning_unless_bound() {
    let objects = TestObjects::default();
    for (changes, bound, expected) in [
        (&[3, 5][..], &[false][..], Some(3)),
        (&[0], &[true, false], Some(0)),
        (&[3], &[true], None),
        (&[], &[false], None),
    ] {
        let mut request = request_of_each_kind(&objects);
        for bound in bound {
            request.rolled.note(RollEntry { bound: *bound, ..RollEntry::default() }, 0);
        }
        changes.iter().for_each(|place| request.segments.take_form(*place, Form::Reference));
        request.note_unbound();
        assert_eq!(request.segments.unbound, expected, "{changes:?}, {bound:?}");
    }
}

/// An undone roll restores only the result of an answer that carried lines: nothing else of it had left.
#[test]
fn undone_roll_restores_replaced_segments() {
    let objects = TestObjects::default();
    let cases: [(RollEntry, &[usize]); 3] = [
        (roll_of_everything(&[]), &[0, 1, 2, 3, 5]),
        (RollEntry { call_digests: vec![ids(&["e", "w"])], ..RollEntry::default() }, &[4, 5, 6]),
        (RollEntry { call_digests: vec![ids(&["other"])], ..RollEntry::default() }, &[]),
    ];
    for (entry, expected) in cases {
        let mut request = request_of_each_kind(&objects);
        request.segments.calls = 9;
        request.rolled.note(RollEntry { undone: true, ..entry }, 3);
        request.keep_what_was_brought_back(4, 2, &objects);
        let kept: Vec<usize> = (0..7).filter(|place| request.segments.is_brought_back(*place)).collect();
        assert_eq!(kept, expected);
        assert!(kept.iter().all(|place| request.segments.segments[*place].since == 9));
        // One user turn is left of two.
        request.segments.start_turn(&objects);
        assert!((0..7).all(|place| !request.segments.is_brought_back(place)));
    }
}

fn receipt() -> RollReceipt {
    RollReceipt {
        items: 1,
        reasoning_lost: 0,
        reasoning_lost_running: 0,
        removed_tokens: 1,
        cost: 0.0,
        gain: 0.0,
        pays_back_after_calls: None,
        reason: context_model::chat::RollReason::Free,
    }
}

fn entry() -> RollEntry {
    RollEntry {
        results: ids(&["result"]),
        arguments: ids(&["arguments"]),
        old_texts: ids(&["old", "arguments"]),
        prose: vec!["word".into()],
        call_digests: vec![ids(&["first", "second"])],
        receipt: Some(receipt()),
        ..RollEntry::default()
    }
}

#[test]
fn an_output_stays_whole_whatever_is_rolled_or_undone_later() {
    let mut rolled = Rolled::default();
    rolled.note(RollEntry { whole: ids(&["large"]), bound: true, ..RollEntry::default() }, 0);
    rolled.note(entry(), 0);
    rolled.note(RollEntry { undone: true, ..entry() }, 1);
    assert_eq!(
        ids(&["large", "result"]).iter().map(|id| rolled.was_whole(id)).collect::<Vec<_>>(),
        [true, false]
    );
    assert!(rolled.receipts().is_empty());
    let mut request = Request { rolled, ..Request::default() };
    request.note_unbound();
    assert_eq!(request.segments.unbound, None, "it has changed nothing before any reasoning");
}

#[test]
fn roll_records_the_form_of_each_segment() {
    let mut rolled = Rolled::default();
    rolled.note(entry(), 0);
    let of =
        |form: &dyn Fn(&ObjectId) -> Form, names: &[&str]| ids(names).iter().map(form).collect::<Vec<_>>();
    assert_eq!(of(&|id| rolled.form_of(id, 0), &["result", "other"]), [Form::Reference, Form::Full]);
    let names = ["arguments", "old", "second", "other"];
    assert_eq!(
        of(&|id| rolled.arguments_of(id, 0), &names),
        [Form::Reference, Form::WithoutOldText, Form::Full, Form::Full]
    );
    let hides: Vec<bool> = ids(&names).iter().map(|id| rolled.hides_arguments(id)).collect();
    assert_eq!(hides, [true, true, true, false]);
    assert!(rolled.hides_prose("word") && !rolled.hides_prose("other"));
    assert_eq!(rolled.entries(), [entry()]);
    // An undone roll leaves none of these forms.
    rolled.note(RollEntry { undone: true, ..entry() }, 1);
    assert_eq!(of(&|id| rolled.form_of(id, 0), &["result"]), [Form::Full]);
    assert!(!rolled.hides_prose("word") && rolled.entries().is_empty());
    // But reasoning that left with a change stays away.
    let along = RollEntry { prose: vec!["thought".into()], bound: true, ..RollEntry::default() };
    rolled.note(entry(), 2);
    rolled.note(along.clone(), 2);
    rolled.note(RollEntry { undone: true, ..entry() }, 3);
    assert!(rolled.hides_prose("thought") && !rolled.hides_prose("word"));
    assert_eq!(rolled.entries(), [along]);
}

#[test]
fn rolls_lead_from_one_point_to_another() {
    let named =
        |name: &str| RollEntry { results: ids(&[name]), receipt: Some(receipt()), ..RollEntry::default() };
    let of = |names: &[&str]| {
        let mut rolled = Rolled::default();
        names.iter().for_each(|name| rolled.note(named(name), 0));
        rolled
    };
    let cases = [
        (&["a"][..], &["a", "b"][..], 1),
        (&[], &["a", "b"], 2),
        (&["a", "b"], &["a", "b"], 0),
        (&["a", "b", "c"], &["a", "d"], 3),
        (&["a"], &[], 1),
    ];
    for (from, to, steps) in cases {
        let (mut point, later) = (of(from), of(to));
        assert_eq!(point.towards(&later).len(), steps, "{from:?} to {to:?}");
        assert_eq!(later.receipts().len(), to.len());
        for entry in point.towards(&later) {
            point.note(entry, 1);
        }
        assert_eq!(point.entries(), later.entries(), "{from:?} to {to:?}");
    }
}

#[test]
fn restored_item_stays_for_some_turns() {
    let mut rolled = Rolled::default();
    rolled.note(entry(), 3);
    rolled.note(RollEntry { undone: true, ..entry() }, 4);
    let left = |turn, turns| rolled.brought_back(turn, turns).map(|(_, left)| left).collect::<Vec<_>>();
    assert_eq!([left(4, 3), left(5, 3), left(6, 3), left(7, 3)], [vec![3], vec![2], vec![1], vec![]]);
    assert_eq!([left(4, 0), left(5, 0)], [vec![1], vec![]], "for this turn at least");
}
