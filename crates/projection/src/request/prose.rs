//! The model's reasoning and prose, and users' texts: what may be shortened, and to what.

use context_lines::{escape, left_out, said_line};
use context_model::chat::said_id;
use context_model::tokens;
use serde_json::{Map, Value};

use super::messages::{blocks_of, text_of, whole_text};
use super::segment::{Prose, RestOfAnswer, Short, TextKind};

/// The length to which the prose of an answer with calls is cut, and a path or command in a call's line, in UTF-16 units.
pub(super) const KEPT: usize = 80;

/// The same for an answer without calls, which is what the user was told.
const KEPT_OF_LAST: usize = 400;

/// A user's text with this many UTF-16 units or more is long; this many of them stay.
const LONG_OF_USER: usize = 1_200;
const KEPT_OF_USER: usize = 600;

/// The length of the mark at the end of a shortened text, in UTF-16 units.
const MARK: usize = 80;

const RULES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "SKILL.md"];

/// True if a path is a file with rules for the model, which always stays.
pub fn is_rules_file(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    RULES.iter().any(|rule| name.eq_ignore_ascii_case(rule))
}

/// The reasoning of an answer.
///
/// Reasoning leaves an answer only if the provider accepts the rest without it, and is never changed:
///
/// - Claude's API wants back all of it while the calls of a user's turn continue, so its answers also stay. Reasoning of
///   earlier turns may be left out (platform.claude.com/docs/en/build-with-claude/extended-thinking).
/// - OpenAI's Completions and copies of Anthropic's Messages: `DeepSeek` and Kimi refuse a request in which an answer
///   with calls, however old, has lost its reasoning (api-docs.deepseek.com/guides/thinking_mode). That of an answer
///   without calls may be left out. Encrypted reasoning stays.
/// - OpenAI's Responses tie a reasoning item to the call or message after it, and Google ties calls to it.
///
/// Reasoning that may not leave alone may leave together with its calls and their results. `is_alone`: nothing would be left of the
/// answer without it.
pub(crate) fn thinking(block: usize, message: &Value, content: &Value, is_alone: bool) -> Option<Prose> {
    let text = text_of(content, "thinking");
    let chars = tokens::utf16_len(text);
    let signature = text_of(content, "thinkingSignature");
    if chars == 0 && signature.is_empty() {
        return None;
    }
    let short = if is_alone { Short::Whole } else { leaves(message, signature) };
    // Some providers show nothing of the reasoning but its signature.
    let id = said_id(if chars == 0 { signature } else { text });
    let rest = if is_alone { RestOfAnswer::Nothing } else { RestOfAnswer::Some };
    Some(Prose { block, id, earlier: 0, chars, what: TextKind::Thinking, short, line: None, rest })
}

/// Returns what a roll may leave of an answer's reasoning if something else is left of the answer.
fn leaves(message: &Value, signature: &str) -> Short {
    let is_name = matches!(signature, "reasoning" | "reasoning_content" | "reasoning_text");
    match text_of(message, "api") {
        _ if is_claudes(message) => Short::NothingAfterUser,
        "anthropic-messages" if has_calls(message) => Short::Whole,
        "anthropic-messages" => Short::NothingAfterUser,
        "openai-completions" if has_calls(message) => Short::Whole,
        // The field that Pi calls a signature holds the name of a field there.
        "openai-completions" if is_name => Short::NothingAfterUser,
        api if signature.is_empty() && api.starts_with("openai") => Short::NothingAfterUser,
        _ if signature.is_empty() => Short::Nothing,
        _ => Short::Whole,
    }
}

/// True if an answer comes from Anthropic's API, or from Claude by another host in its format.
fn is_claudes(message: &Value) -> bool {
    let (provider, model) = (text_of(message, "provider"), text_of(message, "model"));
    match text_of(message, "api") {
        "anthropic-messages" => {
            provider == "anthropic" || model.contains("claude") || provider.is_empty() && model.is_empty()
        }
        "" => provider == "anthropic",
        _ => false,
    }
}

fn has_calls(message: &Value) -> bool {
    let mut blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    blocks.any(|block| text_of(block, "type") == "toolCall")
}

/// The text that takes the place of an answer that has left because it was nothing but reasoning.
pub(super) const STAND_IN: &str = "[...]";

/// True if something is left of an answer without its reasoning.
pub(super) fn stands_alone(message: &Value) -> bool {
    let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    let mut others = blocks.filter(|block| text_of(block, "type") != "thinking");
    others.any(|block| text_of(block, "type") != "text" || !text_of(block, "text").trim().is_empty())
}

/// A text of an answer. `has_calls`: the answer has calls.
pub(crate) fn prose(block: usize, text: &str, has_calls: bool) -> Option<Prose> {
    let chars = tokens::utf16_len(text);
    if chars == 0 {
        return None;
    }
    let id = said_id(text);
    let kept = if has_calls { KEPT } else { KEPT_OF_LAST };
    let short = if chars > kept + MARK { Short::Text(shortened(text, kept, &id)) } else { Short::Whole };
    let begin = beginning(text.trim(), KEPT);
    let is_all = begin.len() == text.len() && !text.contains('\n');
    // A line that has all of the text leaves with a later roll, and then only the ID brings the text back.
    let line = said_line(begin, !is_all, &id);
    Some(Prose {
        block,
        id,
        earlier: 0,
        chars,
        what: TextKind::Prose,
        short,
        line: has_calls.then_some(line),
        rest: RestOfAnswer::Some,
    })
}

/// The long texts of a user's message, except rules and skills, which always stay.
pub(crate) fn users(message: &Value) -> Vec<Prose> {
    let one = |block: usize, text: &str| {
        let chars = tokens::utf16_len(text);
        let begin = text.trim_start();
        let is_rule = begin.starts_with("<skill")
            || RULES.iter().any(|rule| begin.lines().next().is_some_and(|line| line.contains(rule)));
        if chars <= LONG_OF_USER || is_rule {
            return None;
        }
        let id = said_id(text);
        let short = Short::Text(shortened(text, KEPT_OF_USER, &id));
        Some(Prose {
            block,
            id,
            earlier: 0,
            chars,
            what: TextKind::User,
            short,
            line: None,
            rest: RestOfAnswer::Some,
        })
    };
    match message.get("content") {
        Some(Value::String(text)) => one(0, text).into_iter().collect(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().enumerate().filter(|(_, block)| text_of(block, "type") == "text");
            texts.filter_map(|(number, block)| one(number, text_of(block, "text"))).collect()
        }
        _ => Vec::new(),
    }
}

/// The texts of a message of a user or the model in place of which the request may name their ID, with these IDs.
pub fn named_texts(message: &Value) -> Vec<(String, &str)> {
    let content = message.get("content");
    let blocks: Vec<&Value> = content.and_then(Value::as_array).into_iter().flatten().collect();
    let text_at =
        |block: usize| blocks.get(block).map_or(content.and_then(Value::as_str), |one| one["text"].as_str());
    let named: Vec<Prose> = match text_of(message, "role") {
        "user" => users(message),
        "assistant" => {
            let whole = whole_text(message);
            let (blocks, calls) = (blocks_of(message, whole.as_ref()), has_calls(message));
            let texts = blocks.iter().enumerate().filter(|(_, block)| text_of(block, "type") == "text");
            texts.filter_map(|(number, block)| prose(number, text_of(block, "text"), calls)).collect()
        }
        _ => Vec::new(),
    };
    let is_named = |one: &Prose| one.short != Short::Whole || one.line.is_some();
    named.into_iter().filter(is_named).filter_map(|one| Some((one.id, text_at(one.block)?))).collect()
}

/// The texts of a message that the record of the conversation needs, with these IDs, and the first call of an answer: those that the
/// request may name, and all of an answer without calls, because they say where that answer ends.
pub fn placed_texts(message: &Value) -> (Vec<(String, &str)>, Option<&str>) {
    let blocks = || message.get("content").and_then(Value::as_array).into_iter().flatten();
    let call = blocks().find(|block| text_of(block, "type") == "toolCall").map(|call| text_of(call, "id"));
    if call.is_some() || text_of(message, "role") != "assistant" {
        return (named_texts(message), call);
    }
    let texts = blocks().filter(|block| text_of(block, "type") == "text").map(|block| text_of(block, "text"));
    let whole = message.get("content").and_then(Value::as_str);
    let texts = whole.into_iter().chain(texts).filter(|text| !text.is_empty());
    (texts.map(|text| (said_id(text), text)).collect(), None)
}

/// The beginning of a text, and a mark that names it.
fn shortened(text: &str, kept: usize, id: &str) -> String {
    let begin = beginning(text, kept);
    let rest = tokens::utf16_len(&text[begin.len()..]);
    left_out(begin, rest, id)
}

/// At most `units` UTF-16 units from the start of a text.
fn beginning(text: &str, units: usize) -> &str {
    let mut left = units;
    let end = text.char_indices().find(|(_, c)| {
        let size = c.len_utf16();
        let fits = size <= left;
        left -= size.min(left);
        !fits
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Returns what a call's line says besides its tool: the end of its path, or the beginning of its command or another
/// text, as the model wrote it, with `...` where it is cut.
pub(crate) fn gist(args: &Map<String, Value>, cwd: &str) -> String {
    let text = |name: &str| args.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let path = ["path", "file_path"].iter().find_map(|name| text(name));
    if let Some(path) = path.filter(|_| text("pattern").is_none()) {
        let below = path.strip_prefix(cwd).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path);
        let over = below.char_indices().rev().nth(KEPT - 1).map_or(0, |(at, _)| at);
        let cut = if over > 0 { "..." } else { "" };
        return format!("{cut}{}", escape::line(&below[over..]));
    }
    let named =
        ["command", "pattern", "query", "url", "description", "id"].iter().find_map(|name| text(name));
    let any = || args.values().find_map(Value::as_str);
    let all = named.or_else(any).unwrap_or_default().trim();
    let begin = beginning(all.lines().next().unwrap_or_default(), KEPT).trim_end();
    let cut = if begin.len() < all.len() { "..." } else { "" };
    format!("{}{cut}", escape::line(begin))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("AGENTS.md", true)]
    #[case("/shop/sub/agents.MD", true)]
    #[case("C:\\work\\CLAUDE.md", true)]
    #[case("skills/pdf/SKILL.md", true)]
    #[case("AGENTS.md/notes", false)]
    #[case("MY-AGENTS.md", false)]
    #[case("README.md", false)]
    fn files_with_rules(#[case] path: &str, #[case] expected: bool) {
        assert_eq!(is_rules_file(path), expected);
    }

    #[rstest]
    #[case::below_the_folder(json!({ "path": "/shop/src/a.rs" }), "src/a.rs")]
    #[case::elsewhere(json!({ "file_path": "/etc/hosts" }), "/etc/hosts")]
    #[case::a_folder_with_a_longer_name(json!({ "path": "/shopping/a" }), "/shopping/a")]
    #[case::the_end_of_a_long_path(json!({ "path": format!("{}/a.rs", "é".repeat(100)) }), &format!("...{}/a.rs", "é".repeat(KEPT - 5)))]
    #[case::a_pattern_before_a_path(json!({ "path": "/shop", "pattern": "fn main" }), "fn main")]
    #[case::the_first_line_of_a_command(json!({ "command": "\n make all \nmake test" }), "make all...")]
    #[case::all_of_a_command(json!({ "command": "\n make all\n" }), "make all")]
    #[case::as_long_as_may_stay(json!({ "command": "é".repeat(KEPT) }), &"é".repeat(KEPT))]
    #[case::the_beginning_of_a_long_command(json!({ "command": "é".repeat(100) }), &format!("{}...", "é".repeat(KEPT)))]
    #[case::no_half_pair(json!({ "command": format!("a{}", "\u{1f600}".repeat(100)) }), &format!("a{}...", "\u{1f600}".repeat((KEPT - 1) / 2)))]
    #[case::flags(json!({ "command": "node -e \"for(let i=0; i<3; i++) f(x => 1)\" --flag=x a=b" }), "node -e \"for(let i=0; i<3; i++) f(x => 1)\" --flag=x a=b")]
    #[case::backslashes(json!({ "command": "grep -n 'a\\.b' C:\\x" }), "grep -n 'a\\.b' C:\\x")]
    #[case::a_path_with_spaces(json!({ "path": "/shop/my notes/a=b c.md" }), "my notes/a=b c.md")]
    #[case::characters_that_control(json!({ "command": "a\u{1b}[2K\u{202e}b\r\u{2028}c" }), "a\\u{1b}[2K\\u{202e}b\\u{d}\\u{2028}c")]
    #[case::a_path_with_a_line_break(json!({ "path": "/shop/a\nread b id=0" }), "a\\u{a}read b id=0")]
    #[case::any_other_text(json!({ "count": 3, "topic": "birds" }), "birds")]
    #[case::nothing(json!({ "count": 3 }), "")]
    fn line_names_the_main_argument(#[case] args: Value, #[case] expected: &str) {
        assert_eq!(gist(args.as_object().unwrap(), "/shop"), expected);
    }

    /// Checks what a roll may leave of an answer's reasoning.
    #[rstest]
    #[case::claudes(json!({ "api": "anthropic-messages", "provider": "anthropic" }), "s", true, Short::NothingAfterUser)]
    #[case::by_its_name(json!({ "api": "anthropic-messages", "provider": "p", "model": "claude" }), "s", true, Short::NothingAfterUser)]
    #[case::of_nobody(json!({ "api": "anthropic-messages" }), "s", true, Short::NothingAfterUser)]
    #[case::by_its_provider(json!({ "provider": "anthropic" }), "s", true, Short::NothingAfterUser)]
    #[case::of_a_provider_without_an_api(json!({ "provider": "p" }), "", true, Short::Nothing)]
    #[case::a_copy(json!({ "api": "anthropic-messages", "provider": "deepseek" }), "s", true, Short::Whole)]
    #[case::a_copys_model(json!({ "api": "anthropic-messages", "model": "kimi" }), "s", true, Short::Whole)]
    #[case::a_copy_without_calls(json!({ "api": "anthropic-messages", "provider": "deepseek" }), "s", false, Short::NothingAfterUser)]
    #[case::completions(json!({ "api": "openai-completions" }), "reasoning", true, Short::Whole)]
    #[case::completions_without_calls(json!({ "api": "openai-completions" }), "reasoning", false, Short::NothingAfterUser)]
    #[case::encrypted(json!({ "api": "openai-completions" }), "s", false, Short::Whole)]
    #[case::responses(json!({ "api": "openai-responses" }), "", true, Short::NothingAfterUser)]
    #[case::signed_responses(json!({ "api": "openai-responses" }), "s", true, Short::Whole)]
    #[case::another_api(json!({ "api": "google" }), "", true, Short::Nothing)]
    #[case::signed_by_another(json!({ "api": "google" }), "s", true, Short::Whole)]
    fn reasoning_leaves_by_provider(
        #[case] mut message: Value,
        #[case] signature: &str,
        #[case] calls: bool,
        #[case] short: Short,
    ) {
        let block = json!({ "type": "thinking", "thinking": "hm", "thinkingSignature": signature });
        let other =
            if calls { json!({ "type": "toolCall" }) } else { json!({ "type": "text", "text": "x" }) };
        message["content"] = json!([block, other]);
        assert_eq!(thinking(0, &message, &block, !stands_alone(&message)).unwrap().short, short);
        message["content"] = json!([block, { "type": "text", "text": " " }]);
        assert_eq!(
            thinking(0, &message, &block, !stands_alone(&message)).unwrap().short,
            Short::Whole,
            "nothing else would be left"
        );
    }

    #[test]
    fn reasoning_that_is_not_shown_is_known_by_its_signature() {
        let of = |text: &str, signature: &str| {
            thinking(0, &json!({}), &json!({ "thinking": text, "thinkingSignature": signature }), true)
                .map(|prose| prose.id)
        };
        assert_eq!([of("hm", "s"), of("", "s"), of("", "")], [Some(said_id("hm")), Some(said_id("s")), None]);
    }

    #[rstest]
    #[case::long("x".repeat(LONG_OF_USER + 1), true)]
    #[case::not_quite("x".repeat(LONG_OF_USER), false)]
    #[case::a_skill(format!(" <skill name=\"pdf\">{}", "x".repeat(LONG_OF_USER)), false)]
    #[case::rules(format!("# AGENTS.md of this project\n{}", "x".repeat(LONG_OF_USER)), false)]
    #[case::that_names_rules_later(format!("Look at\nAGENTS.md{}", "x".repeat(LONG_OF_USER)), true)]
    fn long_texts_of_users_may_be_shortened(#[case] text: String, #[case] expected: bool) {
        assert_eq!(users(&json!({ "content": text })).len(), usize::from(expected));
    }

    #[test]
    fn prose_is_shortened_if_that_makes_it_shorter() {
        for (has_calls, kept) in [(true, KEPT), (false, KEPT_OF_LAST)] {
            let short = |chars: usize| prose(0, &"x".repeat(chars), has_calls).unwrap().short;
            assert_eq!(short(kept + MARK), Short::Whole);
            let Short::Text(text) = short(kept + MARK + 1) else { panic!("it is too long") };
            assert!(text.starts_with(&format!("{}\n[... {} more chars: id=", "x".repeat(kept), MARK + 1)));
        }
    }

    /// All texts of an answer without calls, however short, and only what a request may name of others.
    #[test]
    fn placed_texts_say_where_an_answer_ends() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let call = json!({ "type": "toolCall", "id": "call_1", "name": "bash", "arguments": {} });
        let texts = |role: &str, content: Value| {
            let message = json!({ "role": role, "content": content });
            let (texts, call) = placed_texts(&message);
            (texts.into_iter().map(|(_, text)| text.to_owned()).collect::<Vec<_>>(), call.map(str::to_owned))
        };
        let named = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(texts("assistant", json!([text("yes"), text("")])), (named(&["yes"]), None));
        assert_eq!(texts("assistant", json!("yes")), (named(&["yes"]), None));
        let with_call = json!([text("I look."), call]);
        assert_eq!(texts("assistant", with_call), (named(&["I look."]), Some("call_1".to_owned())));
        assert_eq!(texts("user", json!("yes")), (named(&[]), None));
    }

    #[test]
    fn line_for_prose_names_it() {
        let line = |text: &str| prose(0, text, true).unwrap().line.unwrap();
        let id = |text: &str| said_id(text);
        assert_eq!(line("I look."), format!("said: I look. id={}", id("I look.")));
        for (text, begin) in [("a\nb", "a b"), (" a", "a"), (&"x".repeat(KEPT + 1), &"x".repeat(KEPT))] {
            assert_eq!(line(text), format!("said: {begin}... id={}", id(text)));
        }
        assert_eq!(prose(0, "I look.", false).unwrap().line, None, "without calls it never becomes a line");
    }
}
