//! Answers with their calls, and the texts of users.

use context_model::excerpt::{Gate, excerpt};
use context_model::{marker, tokens};
use serde_json::{Map, Value};

use super::Request;
use super::messages::{block_units, message_units, text_of};
use super::segment::{Arguments, ArgumentsOf, Form, Short, StepCall, TextKind, Words};
use super::words;
use crate::Objects;

/// A placeholder for a handle while its object is unknown; as long as most handles.
const SOME_HANDLE: &str = "00000000";

impl Request {
    /// Appends an answer: its reasoning, its prose, and the arguments of its calls.
    pub fn push_answer(
        &mut self,
        key: &str,
        message: &Value,
        cwd: &str,
        (is_new, objects): (bool, &dyn Objects),
    ) {
        let blocks: Vec<&Value> =
            message.get("content").and_then(Value::as_array).into_iter().flatten().collect();
        let is_call = |block: &&&Value| text_of(block, "type") == "toolCall";
        let signed = blocks.iter().filter(is_call).any(|call| is_signed(call));
        let is_step = blocks.iter().any(|block| is_call(&block))
            && !signed
            && blocks.iter().filter(is_call).all(|call| !text_of(call, "id").is_empty());
        self.segments.begin_answer(is_step, objects);
        let mut arguments = Arguments::default();
        let mut calls = Vec::new();
        let mut position = 0;
        let (mut rest, mut has_calls) = (0, false);
        for (number, block) in blocks.iter().enumerate() {
            let words = match text_of(block, "type") {
                "toolCall" => {
                    let call_id = text_of(block, "id");
                    let tool = text_of(block, "name");
                    let args = block.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
                    arguments.units += block_units(block);
                    if !is_signed(block) {
                        arguments.calls.extend(self.shorter(call_id, position, tool, &args, cwd));
                    }
                    calls.push(StepCall {
                        call_id: call_id.to_owned(),
                        tool: tool.to_owned(),
                        gist: words::gist(&args, cwd),
                        ..StepCall::default()
                    });
                    position += 1;
                    has_calls = true;
                    self.open_calls.insert(call_id.to_owned(), args);
                    continue;
                }
                "thinking" => words::thinking(number, message, block),
                "text" => words::prose(number, text_of(block, "text"), &blocks),
                _ => None,
            };
            let is_reasoning = self.segments.text_is_reasoning && blocks.iter().any(|block| is_call(&block));
            match words {
                Some(words) if is_reasoning && words.what == TextKind::Prose => {
                    self.push_words(key, Words { short: Short::Whole, ..words }, is_new, objects);
                }
                Some(words) => self.push_words(key, words, is_new, objects),
                None => rest += block_units(block),
            }
        }
        if rest > 0 {
            self.segments.push_fixed(key, tokens::of_chars(rest) as u64);
        }
        self.segments.turn_is_over = !has_calls;
        if has_calls {
            self.segments.push_arguments(key, arguments);
            if is_step {
                self.segments.set_step_calls(calls);
            }
        }
    }

    /// Appends a user's message.
    pub fn push_user(&mut self, key: &str, message: &Value, is_new: bool, objects: &dyn Objects) {
        self.segments.begin_user(objects);
        let words = words::users(message);
        let shortened: usize = words.iter().map(|words| words.chars).sum();
        let rest = message_units(message).saturating_sub(shortened);
        if rest > 0 || words.is_empty() {
            self.segments.push_fixed(key, tokens::of_chars(rest) as u64);
        }
        for one in words {
            self.push_words(key, one, is_new, objects);
        }
    }

    /// Appends words. If they were rolled before the visible request was rebuilt, they are rolled again.
    fn push_words(&mut self, key: &str, mut words: Words, is_new: bool, objects: &dyn Objects) {
        // Equal texts can't be told apart later, so only the first of them is shortened.
        let is_thinking = words.what == TextKind::Thinking;
        if (words.short != Short::Whole || is_thinking) && !self.shortenable.insert(words.id.clone()) {
            words.short = Short::Whole;
        }
        let was_rolled = !is_new && self.rolled.hides_words(&words.id);
        if was_rolled && is_thinking {
            words.short = Short::Nothing;
        }
        let place = self.segments.push_words(key, words, objects);
        if was_rolled && self.segments.repeat(place, Form::Reference, objects) {
            self.pending.insert(place);
        }
    }

    /// A call whose arguments have a shorter form. The form is known once the object is.
    fn shorter(
        &mut self,
        call_id: &str,
        position: usize,
        tool: &str,
        args: &Map<String, Value>,
        cwd: &str,
    ) -> Option<ArgumentsOf> {
        self.issued.extend(marker::tags_in(args));
        let saved = marker::collapse_args(tool, args, SOME_HANDLE, cwd)?.saved_chars;
        Some(ArgumentsOf {
            call_id: call_id.to_owned(),
            position,
            tool: tool.to_owned(),
            object: None,
            args: args.clone(),
            saved,
            new_text: None,
        })
    }
}

/// Returns whether a provider has signed a call.
fn is_signed(call: &Value) -> bool {
    call.get("thoughtSignature").is_some_and(|signature| !signature.is_null())
}

/// The excerpt that a large output is shown as from the start, without a header.
pub fn first_excerpt(tool: &str, content: &str) -> Option<String> {
    excerpt(content, &Gate::for_tool(tool)?).map(|excerpt| excerpt.text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::TestObjects;

    /// Providers look for a cached prefix so many blocks back, and each segment counts as one.
    #[test]
    fn a_message_that_is_one_long_text_is_one_segment() {
        let objects = TestObjects::default();
        let mut request = Request::default();
        let long = "word ".repeat(5000);
        request.push_user("a", &json!({ "role": "user", "content": long }), true, &objects);
        assert_eq!(request.segments.segments.len(), 1);
        let blocks =
            json!([{ "type": "text", "text": format!("other {long}") }, { "type": "text", "text": "short" }]);
        request.push_user("b", &json!({ "role": "user", "content": blocks }), true, &objects);
        assert_eq!(request.segments.segments.len(), 3);
        request.push_user("c", &json!({ "role": "user", "content": "" }), true, &objects);
        assert_eq!(request.segments.segments.len(), 4, "each message has one");
    }

    /// Whether an answer can become lines, and how many of its calls have arguments that can be shortened.
    #[test]
    fn an_answer_whose_calls_are_signed_or_have_no_id_stays() {
        let objects = TestObjects::default();
        let long = "word ".repeat(200);
        let call = |id: &str, signature: Value| {
            let arguments = json!({ "path": "/a", "content": long });
            json!({ "type": "toolCall", "id": id, "name": "write", "arguments": arguments, "thoughtSignature": signature })
        };
        let text = json!({ "type": "text", "text": "x" });
        for (content, steps, shorter) in [
            (json!([text, call("a", Value::Null)]), 1, 1),
            (json!([call("a", Value::Null), call("b", Value::Null)]), 1, 2),
            (json!([call("a", json!("s"))]), 0, 0),
            (json!([call("a", Value::Null), call("b", json!("s"))]), 0, 1),
            (json!([call("", Value::Null)]), 0, 1),
            (json!([text]), 0, 0),
        ] {
            let mut request = Request::default();
            request.push_answer("m", &json!({ "content": content }), "/", (true, &objects));
            assert_eq!(request.segments.steps.len(), steps, "{content}");
            let calls = request.segments.segments.iter().find_map(|segment| match &segment.kind {
                super::super::segment::SegmentKind::Arguments(all) => Some(all.calls.len()),
                _ => None,
            });
            assert_eq!(calls.unwrap_or(0), shorter, "{content}");
        }
    }

    #[test]
    fn what_is_no_text_counts_too() {
        let objects = TestObjects::default();
        let mut request = Request::default();
        let image = json!({ "type": "image" });
        request.push_answer("m", &json!({ "content": [image, image] }), "/", (true, &objects));
        assert_eq!((request.segments.segments.len(), request.segments.tokens()), (1, 2_400));
        request.push_answer(
            "n",
            &json!({ "content": [{ "type": "text", "text": "abcd" }] }),
            "/",
            (true, &objects),
        );
        assert_eq!(
            (request.segments.segments.len(), request.segments.tokens()),
            (2, 2_401),
            "nothing is left over"
        );
    }

    #[test]
    fn of_equal_texts_the_first_is_shortened() {
        let objects = TestObjects::default();
        let mut request = Request::default();
        let long = "word ".repeat(5000);
        for key in ["a", "b"] {
            request.push_user(key, &json!({ "role": "user", "content": long }), true, &objects);
        }
        let is_whole = request.segments.segments.iter().map(|segment| match &segment.kind {
            super::super::segment::SegmentKind::Words(words) => words.short == Short::Whole,
            _ => panic!("a long text"),
        });
        assert_eq!(is_whole.collect::<Vec<_>>(), [false, true]);
    }

    /// Where the text of an answer with calls is part of its reasoning, it stays as it is.
    #[test]
    fn text_that_belongs_to_the_reasoning_is_not_shortened() {
        let objects = TestObjects::default();
        let text = json!({ "type": "text", "text": "word ".repeat(500) });
        let call = json!({ "type": "toolCall", "id": "c", "name": "bash", "arguments": {} });
        for (content, is_reasoning, stays) in [
            (json!([text, call]), true, true),
            (json!([text, call]), false, false),
            (json!([text]), true, false),
        ] {
            let mut request = Request::default();
            request.segments.text_is_reasoning = is_reasoning;
            request.push_answer("m", &json!({ "content": content }), "/", (true, &objects));
            let super::super::segment::SegmentKind::Words(words) = &request.segments.segments[0].kind else {
                panic!("words")
            };
            assert_eq!(words.short == Short::Whole, stays, "{content}, {is_reasoning}");
            assert_eq!(request.segments.turn_is_over, content.as_array().unwrap().len() == 1);
        }
    }

    #[test]
    fn calls_are_known_by_their_position_tool_and_gist() {
        let objects = TestObjects::default();
        let mut request = Request::default();
        let call = |id: &str| {
            let arguments = json!({ "path": format!("/w/{id}"), "content": "word ".repeat(200) });
            json!({ "type": "toolCall", "id": id, "name": "write", "arguments": arguments })
        };
        let content = ["a", "b", "c"].map(call);
        request.push_answer("m", &json!({ "content": content }), "/w", (true, &objects));
        let super::super::segment::SegmentKind::Arguments(all) = &request.segments.segments[0].kind else {
            panic!("arguments")
        };
        assert_eq!(all.calls.iter().map(|call| call.position).collect::<Vec<_>>(), [0, 1, 2]);
        let calls = request.segments.steps[0].calls.iter();
        let known = calls.map(|call| (call.call_id.as_str(), call.tool.as_str(), call.gist.as_str()));
        assert_eq!(known.collect::<Vec<_>>(), ["a", "b", "c"].map(|name| (name, "write", name)));
    }

    #[test]
    fn a_large_output_is_shown_as_an_excerpt_from_the_start() {
        let large = (0..5_000).map(|n| format!("line {n}\n")).collect::<String>();
        let excerpt = first_excerpt("bash", &large).unwrap();
        assert!(excerpt.contains("line 0\n") && excerpt.len() < large.len() / 2);
        assert_eq!([first_excerpt("bash", "line 0"), first_excerpt("read", &large)], [None, None]);
    }
}
