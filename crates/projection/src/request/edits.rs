//! The edits that show segments in their forms.

use super::plan::{Edit, TextEdit};
use super::segment::{Form, Segment, SegmentKind, Short, TextKind};
use super::segments::Segments;

impl Segments {
    /// The edits that show the messages of these segments in their current form.
    pub fn edits_of(&self, places: impl IntoIterator<Item = usize>) -> Vec<Edit> {
        let mut edits = Vec::new();
        let mut until = 0;
        let mut places: Vec<usize> = places.into_iter().collect();
        places.sort_unstable();
        for place in places {
            if place < until {
                continue;
            }
            let segment = &self.segments[place];
            if let SegmentKind::Result(output) = &segment.kind {
                until = place + 1;
                let (key, object) = (segment.key.clone(), output.object.clone());
                edits.push(match segment.form {
                    Form::Removed => Edit::Gone { key },
                    form => Edit::Result { key, object, text: output.text_in(form) },
                });
                continue;
            }
            let same = |other: &&Segment| other.key == segment.key;
            let first = place - self.segments[..place].iter().rev().take_while(same).count();
            let count = self.segments[first..].iter().take_while(same).count();
            until = first + count;
            edits.push(message_of(&segment.key, &self.segments[first..until]));
        }
        edits
    }
}

/// The edit that shows a message with these segments.
fn message_of(key: &str, segments: &[Segment]) -> Edit {
    let key = key.to_owned();
    // A message that was nothing but reasoning has no block left.
    let is_nothing = |segment: &Segment| {
        matches!(&segment.kind, SegmentKind::Words(words)
            if words.what == TextKind::Thinking && segment.form >= Form::Reference)
    };
    if segments.iter().all(|segment| segment.form == Form::Removed || is_nothing(segment)) {
        return Edit::Gone { key };
    }
    let (mut calls, mut texts) = (Vec::new(), Vec::new());
    for segment in segments {
        match &segment.kind {
            SegmentKind::Arguments(arguments) => calls.extend(arguments.in_form(segment.form)),
            SegmentKind::Words(words) if segment.form != Form::Full => {
                let text = if let Short::Text(text) = &words.short { Some(text.clone()) } else { None };
                texts.push(TextEdit { block: words.block, text });
            }
            _ => {}
        }
    }
    Edit::Message { key, calls, texts }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::objects::TestObjects;
    use crate::request::Request;
    use context_model::id::ObjectId;

    const FULL: Form = Form::Full;
    const SHORT: Form = Form::Reference;
    const GONE: Form = Form::Removed;

    /// An answer with reasoning, prose and the arguments of an edit, in these forms.
    fn answer(forms: [Form; 3]) -> Segments {
        let objects = TestObjects::default();
        let mut request = Request::default();
        let long = |word: &str| format!("{word} ").repeat(300);
        let args = json!({ "path": "a", "oldText": long("old"), "newText": long("new") });
        let content = json!([
            { "type": "thinking", "thinking": "hm" },
            { "type": "text", "text": long("said") },
            { "type": "toolCall", "id": "c", "name": "edit", "arguments": args },
        ]);
        request.push_answer("m", &json!({ "content": content }), "/", (true, &objects));
        request.segments.answer("c", &ObjectId::new("c"), true, &objects, "/");
        for (place, form) in forms.into_iter().enumerate() {
            request.segments.take_form(place, form);
        }
        request.segments
    }

    /// Which blocks of a message an edit shortens or leaves out, and what it leaves of its calls.
    #[rstest]
    #[case::as_it_came([FULL, FULL, FULL], &[], None)]
    #[case::without_reasoning([SHORT, FULL, FULL], &[(0, false)], None)]
    #[case::shorter_prose([FULL, SHORT, FULL], &[(1, true)], None)]
    #[case::an_edit_without_its_old_text([FULL, FULL, Form::WithoutOldText], &[], Some((false, true)))]
    #[case::collapsed_arguments([FULL, FULL, SHORT], &[], Some((false, false)))]
    #[case::all_of_it_shorter([SHORT, SHORT, SHORT], &[(0, false), (1, true)], Some((false, false)))]
    fn the_edit_of_an_answer(
        #[case] forms: [Form; 3],
        #[case] expected: &[(usize, bool)],
        #[case] kept: Option<(bool, bool)>,
    ) {
        let segments = answer(forms);
        for place in 0..3 {
            let edits = segments.edits_of([place]);
            let [Edit::Message { key, calls, texts }] = edits.as_slice() else { panic!("{edits:?}") };
            let texts: Vec<_> = texts.iter().map(|one| (one.block, one.text.is_some())).collect();
            assert_eq!((key.as_str(), texts.as_slice()), ("m", expected));
            let has = |call: &super::super::segment::CollapsedCall, word: &str| {
                serde_json::Value::from(call.args.clone())
                    .to_string()
                    .contains(&format!("{word} {word} {word}"))
            };
            let left = calls.iter().map(|call| (has(call, "old"), has(call, "new"))).collect::<Vec<_>>();
            assert_eq!(left, kept.into_iter().collect::<Vec<_>>());
            assert!(calls.iter().all(|call| call.call_id == "c" && call.object == Some(ObjectId::new("c"))));
        }
    }

    #[rstest]
    #[case::all_of_it_left([GONE, GONE, GONE], true)]
    #[case::nothing_but_reasoning_was_left([SHORT, GONE, GONE], true)]
    #[case::reasoning_is_left([FULL, GONE, GONE], false)]
    #[case::shorter_prose_is_left([GONE, SHORT, GONE], false)]
    #[case::prose_is_left([SHORT, FULL, GONE], false)]
    fn a_message_of_which_nothing_is_left_is_gone(#[case] forms: [Form; 3], #[case] is_gone: bool) {
        assert_eq!(matches!(answer(forms).edits_of([1]).as_slice(), [Edit::Gone { .. }]), is_gone);
    }
}
