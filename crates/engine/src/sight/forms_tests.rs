use context_model::pricing::RollReason;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::sight::Sight;
use crate::sight::piece::{Excerpts, Output};

/// Two answers with a call each: their pieces are 0 to 2 and 3 to 5, a text, arguments and a result.
fn two_answers(session: &Session) -> Pieces {
    let mut sight = Sight::default();
    for id in ["one", "two"] {
        let call = json!({ "type": "toolCall", "id": id, "name": "bash", "arguments": { "command": id } });
        let content = json!([{ "type": "text", "text": "I look." }, call]);
        sight.push_answer(id, &json!({ "role": "assistant", "content": content }), "/", (true, session));
        let object = ObjectId::new(id);
        sight.pieces.answer(id, &object, true, session, "/");
        let output = Output {
            object,
            named: true,
            shown: None,
            carries: None,
            excerpts: Excerpts::default(),
            reference: format!("toolcall_ref id={id}"),
            born_tokens: 1_000,
            is_rule: false,
            lines: Vec::new(),
        };
        sight.pieces.push_result(&format!("result of {id}"), output, session);
    }
    sight.pieces
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
    let roll = Roll {
        cut,
        items: (cut..6).collect(),
        removed_tokens: 0,
        rent: 0.0,
        cost: 0.0,
        gain: 0.0,
        pays_back_after_calls: None,
        reason: RollReason::Pays,
    };
    let shape = pieces.shape(&roll, &session);
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
    let mut sight = Sight::default();
    let content = "long ".repeat(500);
    let calls = ["one", "two"].map(|id| {
        json!({ "type": "toolCall", "id": id, "name": "write", "arguments": { "path": id, "content": content } })
    });
    sight.push_answer("m", &json!({ "role": "assistant", "content": calls }), "/", (true, &session));
    let is_answered = |pieces: &Pieces| match pieces.kind(0) {
        PieceKind::Arguments(arguments) => arguments.is_answered(),
        _ => panic!("the arguments come first"),
    };
    assert!(!is_answered(&sight.pieces));
    for (id, all) in [("one", false), ("two", true)] {
        assert!(!sight.pieces.repeat(0, Form::Reference, &session));
        sight.pieces.answer(id, &ObjectId::new(id), true, &session, "/");
        assert_eq!(is_answered(&sight.pieces), all);
    }
    assert!(sight.pieces.repeat(0, Form::Reference, &session));
}
