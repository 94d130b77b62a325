//! The input and output of a harness: messages, the circumstances of a model call, and plans.
//!
//! The harness passes in each message once. A plan says which messages to replace and what to say, never the history.
//! Between two rolls a plan has no edits for messages that were sent before, so each request extends the last one
//! byte for byte.

use context_model::chat::RollReceipt;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use serde_json::Value;

use super::segment::{CollapsedCall, Form, Segment, SegmentKind, Short, TextKind};
use super::segments::Segments;
use crate::{Binding, PriceSteps, Prices};

/// A message of the harness that the engine has not seen yet.
#[derive(Clone, Debug, PartialEq)]
pub struct IncomingMessage {
    /// The harness's own name for the message; the plan repeats it.
    pub key: String,
    /// The message as pi-ai shapes it.
    pub message: Value,
}

/// The circumstances of the next model call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// The model's name. A different model than before has a cold cache.
    pub model: String,
    /// Prices relative to fresh input.
    pub prices: Prices,
    /// At which sizes the whole request costs more.
    pub price_steps: PriceSteps,
    /// The provider's treatment of reasoning after something before it has changed.
    pub binding: Binding,
    /// Text of an answer with calls is part of its reasoning.
    pub text_is_reasoning: bool,
    /// The distance within which the provider looks for a cached prefix; see [`crate::Policy::reach`].
    pub lookback_blocks: Option<u32>,
    /// The number of endings of earlier requests among which the provider looks for a cached prefix; `None` if it has no such
    /// rule.
    pub lookback_endings: Option<u32>,
    /// The context window in tokens; 0 when unknown.
    pub context_window: u64,
    /// The time for which the provider keeps a prefix, in milliseconds.
    pub cache_ttl_ms: i64,
    /// The likelihood that the provider still has the last request in its cache, from 0 (known to be gone) to 1; `None` counts
    /// as 1.
    pub cache_kept: Option<f64>,
    /// The harness's clock, in milliseconds since the epoch.
    pub now_ms: i64,
    /// Estimated tokens of system prompt and tool declarations.
    pub system_tokens: u64,
    /// Roll only where a user's turn starts, for models whose reasoning depends on an unchanged prefix.
    pub only_at_user_turn: bool,
    /// True if the next call begins a user's turn.
    pub at_user_turn: bool,
    /// True if anything may collapse now, by rolls or as excerpts of large new outputs: the user's switch.
    pub rolls: bool,
    /// True if what had collapsed before may go out in that form, also where nothing new may: a conversation that was read again
    /// continues in the form that was sent last.
    pub repeats: bool,
    /// The harness's name for the end of its conversation. It is recorded with the notices that come there.
    pub place: Option<String>,
    /// True if nothing may be added at that end: files that have changed are told of in a later plan, by what the model knows then.
    pub closed: bool,
    /// True if the harness can leave out messages and shorten texts: edits with texts, and [`Edit::Gone`].
    pub shortens: bool,
    /// When the last request was sent, in milliseconds since the epoch, where the engine does not know: an earlier process sent
    /// it, in the form that the record gives it, or the host has sent it again. `None` otherwise.
    pub sent_ms: Option<i64>,
    /// The number of the first messages passed to the engine's `resync` that this request had as they are now. The provider has
    /// nothing cached behind them, because the harness has changed something there since. `None`: all of them.
    pub sent_messages: Option<usize>,
}

/// The steps to take before the next model call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Messages to replace in what the model sees.
    pub edits: Vec<Edit>,
    /// Lines to add at the end of what the model sees.
    pub notices: Vec<String>,
    /// The receipt of the roll among the edits, if there was one.
    pub receipt: Option<RollReceipt>,
    /// Estimated tokens of the next request.
    pub context_tokens: u64,
    /// Estimated tokens of what a roll could remove.
    pub stale_tokens: u64,
    /// The cost of changing the next request at its very start, in fresh input tokens: writing its cached part again. 0
    /// on a dead cache. Only `Engine::advance` sets this and [`Plan::spent`].
    pub rewrite_cost: f64,
    /// The cost of this process's model calls so far, in fresh input tokens, without the answers.
    pub spent: f64,
    /// The point to return to with `Engine::restore`, and the times that identify it; set as `spent` is.
    pub point: Option<(TxId, [Timestamp; 2])>,
}

/// One message to replace.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// A tool result's text.
    Result {
        /// The message.
        key: String,
        /// The object behind it.
        object: ObjectId,
        /// Its new text; `None` restores the harness's own message.
        text: Option<String>,
    },
    /// Parts of an answer, or of a user's message; with no parts, the harness's own message is restored. An edit
    /// lists every difference from the message as it was passed in.
    Message {
        /// The message.
        key: String,
        /// Calls whose arguments are shortened.
        calls: Vec<CollapsedCall>,
        /// Texts that are shortened or left out.
        texts: Vec<TextEdit>,
    },
    /// The message is left out: a line in another message names its calls.
    Gone {
        /// The message.
        key: String,
        /// For a tool result: the reference that stood, or would have stood, in its place.
        reference: Option<String>,
    },
}

impl Edit {
    /// The message.
    pub fn key(&self) -> &str {
        match self {
            Self::Result { key, .. } | Self::Message { key, .. } | Self::Gone { key, .. } => key,
        }
    }
}

/// A block of a message that is shortened or left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEdit {
    /// The block, counted from 0 in the message as it was passed in; 0 if the content is a single text.
    pub block: usize,
    /// Its new text; `None` leaves the block out.
    pub text: Option<String>,
}

/// The content that a tool result should show when it enters the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The object.
    pub id: ObjectId,
    /// Its short name.
    pub handle: String,
    /// The line to put before the output, so that the model can name it; `None` if the output is so short that a
    /// reference would not be shorter.
    pub header: Option<String>,
}

/// True if the messages before the last answer are those that it answers: none of them is newer, as a
/// compaction's summary would be.
pub fn is_as_sent(messages: &[IncomingMessage]) -> bool {
    let at = |one: &IncomingMessage| one.message.get("timestamp").and_then(Value::as_f64);
    let Some(last) = messages.iter().rposition(|one| one.message["role"] == "assistant") else {
        return false;
    };
    at(&messages[last]).is_some_and(|sent| !messages[..last].iter().any(|one| at(one) > Some(sent)))
}

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
                    Form::Removed => Edit::Gone { key, reference: output.text_in(Form::Reference) },
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
        matches!(&segment.kind, SegmentKind::Prose(prose)
            if prose.what == TextKind::Thinking
                && segment.form >= Form::Reference
                && !matches!(prose.short, Short::Text(_)))
    };
    if segments.iter().all(|segment| segment.form == Form::Removed || is_nothing(segment)) {
        return Edit::Gone { key, reference: None };
    }
    let (mut calls, mut texts) = (Vec::new(), Vec::new());
    for segment in segments {
        match &segment.kind {
            SegmentKind::Arguments(arguments) => calls.extend(arguments.in_form(segment.form)),
            SegmentKind::Prose(prose) if segment.form != Form::Full => {
                let text = if let Short::Text(text) = &prose.short { Some(text.clone()) } else { None };
                texts.push(TextEdit { block: prose.block, text });
            }
            _ => {}
        }
    }
    Edit::Message { key, calls, texts }
}

#[cfg(test)]
mod tests {
    use context_model::id::ObjectId;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::objects::TestObjects;
    use crate::request::Request;

    #[rstest]
    #[case::in_order(&[("user", Some(1)), ("assistant", Some(2)), ("user", Some(3))], true)]
    #[case::at_the_same_time(&[("user", Some(2)), ("assistant", Some(2))], true)]
    #[case::a_summary_came_later(&[("user", Some(5)), ("assistant", Some(2)), ("assistant", Some(4))], false)]
    #[case::what_follows_does_not_count(&[("user", Some(1)), ("assistant", Some(2)), ("toolResult", Some(9))], true)]
    #[case::without_times(&[("user", None), ("assistant", None)], false)]
    #[case::of_the_others_without_times(&[("user", None), ("assistant", Some(2))], true)]
    #[case::no_answer(&[("user", Some(1))], false)]
    fn messages_as_they_were_sent(#[case] messages: &[(&str, Option<u64>)], #[case] expected: bool) {
        let incoming = |(role, at): &(&str, Option<u64>)| IncomingMessage {
            key: String::new(),
            message: json!({ "role": role, "timestamp": at }),
        };
        assert_eq!(is_as_sent(&messages.iter().map(incoming).collect::<Vec<_>>()), expected);
    }

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

    /// The blocks of a message that an edit shortens or leaves out, and the remains of its calls.
    #[rstest]
    #[case::as_it_came([FULL, FULL, FULL], &[], None)]
    #[case::without_reasoning([SHORT, FULL, FULL], &[(0, false)], None)]
    #[case::shorter_prose([FULL, SHORT, FULL], &[(1, true)], None)]
    #[case::an_edit_without_its_old_text([FULL, FULL, Form::WithoutOldText], &[], Some((false, true)))]
    #[case::collapsed_arguments([FULL, FULL, SHORT], &[], Some((false, false)))]
    #[case::all_of_it_shorter([SHORT, SHORT, SHORT], &[(0, false), (1, true)], Some((false, false)))]
    fn edit_of_an_answer_names_its_changed_blocks(
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
            assert!(calls.iter().all(|call| call.call_id == "c"));
        }
    }

    #[rstest]
    #[case::all_of_it_left([GONE, GONE, GONE], true)]
    #[case::nothing_but_reasoning_was_left([SHORT, GONE, GONE], true)]
    #[case::reasoning_is_left([FULL, GONE, GONE], false)]
    #[case::shorter_prose_is_left([GONE, SHORT, GONE], false)]
    #[case::prose_is_left([SHORT, FULL, GONE], false)]
    fn message_with_nothing_left_is_gone(#[case] forms: [Form; 3], #[case] is_gone: bool) {
        assert_eq!(matches!(answer(forms).edits_of([1]).as_slice(), [Edit::Gone { .. }]), is_gone);
    }
}
