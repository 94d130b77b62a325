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
        sight.pieces.push_result(id, output, session);
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
