use context_model::chat::RollReason;
use context_model::session::Change;
use context_projection::{Need, Prices};
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::request::Request;
use crate::request::piece::{Excerpts, Output};

/// Two answers with a call each: their pieces are 0 to 2 and 3 to 5, a text, arguments and a result.
fn two_answers(session: &Session) -> Pieces {
    answers(&["one", "two"], session)
}

fn answers(ids: &[&str], session: &Session) -> Pieces {
    let mut request = Request::default();
    for id in ids {
        let call = json!({ "type": "toolCall", "id": id, "name": "bash", "arguments": { "command": id } });
        let content = json!([{ "type": "text", "text": "I look." }, call]);
        request.push_answer(id, &json!({ "role": "assistant", "content": content }), "/", (true, session));
        let object = ObjectId::new(*id);
        request.pieces.answer(id, &object, true, session, "/");
        let output = Output {
            object,
            named: true,
            shown: None,
            carries: None,
            excerpts: Excerpts::default(),
            reference: format!("toolcall_ref id={id}"),
            had_changed: false,
            born_tokens: 1_000,
            is_rule: false,
            lines: Vec::new(),
        };
        request.pieces.push_result(&format!("result of {id}"), output, session);
    }
    request.pieces
}

fn roll_from(cut: usize) -> Roll {
    Roll {
        reasoning: Vec::new(),
        reasoning_running: 0,
        cut,
        items: (cut..6).collect(),
        removed_tokens: 0,
        rent: 0.0,
        cost: 0.0,
        gain: 0.0,
        pays_back_after_calls: None,
        reason: RollReason::Pays,
    }
}

/// A call never leaves without its result, nor a result without its call.
#[rstest]
#[case::both_answers(0..6, 0, Some(vec![3, 4, 5]))]
#[case::a_part_of_the_second(4..6, 4, None)]
#[case::the_second_from_its_middle_on(3..6, 4, None)]
fn an_answer_leaves_as_a_whole(
    #[case] aimed: std::ops::Range<usize>,
    #[case] cut: usize,
    #[case] gone: Option<Vec<usize>>,
) {
    let session = Session::default();
    let mut pieces = two_answers(&session);
    assert_eq!(pieces.pieces.len(), 6);
    pieces.steps[0].is_ripe = true;
    for place in aimed {
        pieces.pieces[place].next = Form::Gone;
    }
    let shape = pieces.shape(&roll_from(cut), &session);
    let left = shape.forms.iter().filter(|(_, form)| *form == Form::Gone);
    assert_eq!(left.map(|(place, _)| *place).collect::<Vec<_>>(), gone.clone().unwrap_or_default());
    assert_eq!(shape.pages.len(), usize::from(gone.is_some()));
}

#[test]
fn a_message_has_one_edit_however_many_of_its_pieces_change() {
    let session = Session::default();
    let mut pieces = two_answers(&session);
    for place in 0..6 {
        pieces.pieces[place].form = Form::Gone;
    }
    let edits = pieces.edits_of([4, 0, 1, 3, 5]);
    assert_eq!(edits.iter().map(Edit::key).collect::<Vec<_>>(), ["one", "two", "result of two"]);
}

#[test]
fn arguments_that_have_no_shorter_form_are_not_shortened_again() {
    let session = Session::default();
    let mut pieces = two_answers(&session);
    assert!(matches!(pieces.kind(1), PieceKind::Arguments(_)));
    assert!(!pieces.repeat(1, Form::Reference, &session));
    assert_eq!(pieces.pieces[1].form, Form::Born);
}

#[test]
fn arguments_are_answered_once_all_their_calls_are() {
    let session = Session::default();
    let mut request = Request::default();
    let content = "long ".repeat(500);
    let calls = ["one", "two"].map(|id| {
        json!({ "type": "toolCall", "id": id, "name": "write", "arguments": { "path": id, "content": content } })
    });
    request.push_answer("m", &json!({ "role": "assistant", "content": calls }), "/", (true, &session));
    let is_answered = |pieces: &Pieces| match pieces.kind(0) {
        PieceKind::Arguments(arguments) => arguments.is_answered(),
        _ => panic!("the arguments come first"),
    };
    assert!(!is_answered(&request.pieces));
    for (id, all) in [("one", false), ("two", true)] {
        assert!(!request.pieces.repeat(0, Form::Reference, &session));
        request.pieces.answer(id, &ObjectId::new(id), true, &session, "/");
        assert_eq!(is_answered(&request.pieces), all);
    }
    assert!(request.pieces.repeat(0, Form::Reference, &session));
}

#[test]
fn what_has_its_form_already_is_not_rolled() {
    let session = Session::default();
    let mut pieces = two_answers(&session);
    for place in 0..6 {
        pieces.pieces[place].next = pieces.pieces[place].form;
    }
    pieces.pieces[2].next = Form::Reference;
    assert_eq!(pieces.shape(&roll_from(0), &session).forms, [(2, Form::Reference)]);
}

/// By itself a piece becomes a reference if that is shorter, and nobody wants the whole.
#[test]
fn what_a_piece_becomes_by_itself() {
    let session = Session::default();
    let mut pieces = two_answers(&session);
    assert_eq!(pieces.alone(2, &session), None, "nothing was judged yet");
    pieces.need = Some(Need { prices: Prices::default(), lambda: 0.0 });
    assert_eq!(pieces.alone(2, &session), Some((2, Form::Reference)));
    assert_eq!(pieces.alone(1, &session), None, "the arguments are short");
    let reference = size_in(&pieces.pieces[2], Form::Reference);
    for (born, is_longer) in [(reference, false), (reference + 1, true)] {
        if let PieceKind::Result(output) = &mut pieces.pieces[2].kind {
            output.born_tokens = born;
        }
        assert_eq!(pieces.alone(2, &session).is_some(), is_longer);
    }
    let mut wanted = Session::default();
    wanted.sets.pin(&ObjectId::new("two"), &mut Change::default());
    assert_eq!(pieces.alone(5, &wanted), None, "it is pinned");
    pieces.take_form(5, Form::Reference);
    assert_eq!(pieces.alone(5, &session), None, "it is one already");
}

/// Only the lines of answers that the undone roll had made lines leave again.
#[test]
fn an_undone_roll_takes_back_its_own_lines() {
    let session = Session::default();
    let mut pieces = answers(&["one", "two", "three"], &session);
    let shape = |page: [usize; 2], last: usize| Shape {
        forms: std::iter::once((last, Form::Reference))
            .chain((page[1] * 3..page[1] * 3 + 3).map(|p| (p, Form::Gone)))
            .collect(),
        changed: Vec::new(),
        pages: vec![page.to_vec()],
    };
    let pages = |pieces: &Pieces| pieces.steps.iter().map(|step| step.page).collect::<Vec<_>>();
    let lines = |pieces: &Pieces| pieces.output_at(2).unwrap().lines.len();
    let first = pieces.apply(shape([0, 1], 2), &session);
    assert_eq!((pages(&pieces), lines(&pieces)), (vec![Some(0), Some(0), None], 2));
    let second = pieces.apply(shape([0, 2], 2), &session);
    assert_eq!((pages(&pieces), lines(&pieces)), (vec![Some(0), Some(0), Some(0)], 4));
    pieces.undo(&second, 1, &session);
    assert_eq!((pages(&pieces), lines(&pieces)), (vec![Some(0), Some(0), None], 2));
    assert!(pieces.pieces[6..].iter().all(|piece| piece.form == Form::Born));
    // The third answer could become lines after the first one only while the second has become some.
    pieces.steps[2].is_ripe = true;
    pieces.aim_step(2, &session);
    assert!(pieces.pieces[6..].iter().all(|piece| piece.next == Form::Gone));
    assert!(pieces.stale_tokens() > 900);
    pieces.undo(&first, 1, &session);
    assert_eq!((pages(&pieces), lines(&pieces)), (vec![None; 3], 0));
    assert_eq!(pieces.stale_tokens(), 0);
}

#[test]
fn lines_of_calls_that_only_looked_leave_and_the_reference_stays() {
    let session = Session::default();
    let mut pieces = two_answers(&session);
    pieces.take_form(2, Form::Reference);
    if let PieceKind::Result(output) = &mut pieces.pieces[2].kind {
        output.lines = [("looked", false), ("changed", true)]
            .map(|(text, stays)| Line { text: text.into(), stays })
            .into();
    }
    pieces.take_form(2, Form::Short);
    assert_eq!((pieces.pieces[2].form, pieces.pieces[2].next), (Form::Reference, Form::Reference));
    let output = pieces.output_at(2).unwrap();
    assert_eq!(output.text_in(Form::Reference).unwrap(), "toolcall_ref id=one\nchanged");
}

#[test]
fn words_are_shortened_again_only_in_a_harness_that_can() {
    let session = Session::default();
    let mut request = Request::default();
    let long = "word ".repeat(5_000);
    for text in [long.as_str(), "short"] {
        let content = json!([{ "type": "text", "text": text }]);
        request.push_answer(text, &json!({ "role": "assistant", "content": content }), "/", (true, &session));
    }
    let pieces = &mut request.pieces;
    assert!(!pieces.repeat(0, Form::Reference, &session));
    pieces.set_shortens(true);
    assert!(!pieces.repeat(1, Form::Reference, &session), "it has no shorter form");
    assert!(pieces.repeat(0, Form::Reference, &session));
    assert!(!pieces.repeat(0, Form::Reference, &session), "it has it already");
}

/// The first answer carries the lines of the others; one that is lines already carries none.
#[test]
fn answers_become_lines_again_after_the_answer_that_carried_them() {
    let session = Session::default();
    let page = |ids: &[&str]| ids.iter().map(|id| ObjectId::new(*id)).collect::<Vec<_>>();
    let mut pieces = answers(&["one", "two", "three"], &session);
    assert_eq!(
        pieces.repeat_page(&page(&["one", "two"]), &session),
        [0; 0],
        "the harness can't leave out messages"
    );
    pieces.set_shortens(true);
    assert_eq!(pieces.repeat_page(&page(&["one"]), &session), [0; 0], "there are no others");
    assert_eq!(pieces.repeat_page(&page(&["missing", "two"]), &session), [0; 0]);
    assert_eq!(pieces.repeat_page(&page(&["one", "two"]), &session), [2, 3, 4, 5]);
    assert_eq!(pieces.repeat_page(&page(&["two", "three"]), &session), [0; 0], "its result is gone");
    assert_eq!(pieces.repeat_page(&page(&["one", "two", "three"]), &session), [2, 6, 7, 8]);
    let gone = pieces.pieces.iter().map(|piece| piece.form == Form::Gone).collect::<Vec<_>>();
    assert_eq!(gone, [[false; 3], [true; 3], [true; 3]].concat());
    // Of an answer that carries lines itself, none is made.
    let mut pieces = answers(&["one", "two", "three"], &session);
    pieces.set_shortens(true);
    pieces.repeat_page(&page(&["two", "three"]), &session);
    assert_eq!(pieces.repeat_page(&page(&["one", "two"]), &session), [0; 0]);
}

#[test]
fn a_result_has_one_edit() {
    let session = Session::default();
    let pieces = two_answers(&session);
    let keys = |places: &[usize]| {
        let edits = pieces.edits_of(places.iter().copied());
        edits.iter().map(|edit| edit.key().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&[2, 2, 5]), ["result of one", "result of two"]);
    assert_eq!(keys(&[2, 3]), ["result of one", "two"]);
}
