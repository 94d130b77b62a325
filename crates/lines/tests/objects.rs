//! Rendered lines: one object is one line, and its fields can be read back from any names.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

#[path = "../../model/tests/long/mod.rs"]
mod long;

use context_lines::escape::{LONGEST_NAME, line, short_text, short_word, text, unescape, word};
use context_lines::{PoolLine, Reference, active_block, file_line, orphaned, toolcall_line};
use context_model::id::ObjectId;
use context_model::object::Status;
use context_model::tokens::utf16_len;
use proptest::prelude::*;
use rstest::rstest;

/// Returns what a reader has who knows nothing but the format of the specification: fields are `name=value`, divided by
/// spaces; a value ends where the next ` name=` begins.
fn fields(line: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for word in line.split(' ') {
        match word.split_once('=') {
            Some((name, value)) => fields.push((name.into(), value.into())),
            None => {
                let (_, value) = fields.last_mut().expect("the line begins with a field");
                value.push(' ');
                value.push_str(word);
            }
        }
    }
    fields.into_iter().map(|(name, value)| (name, unescape(&value).expect("escaped by us"))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
}

/// True if a terminal, an editor or a JSON reader could see more or less than one line of visible characters.
fn is_plain(line: &str) -> bool {
    !line.chars().any(|c| {
        c.is_control()
            || (c.is_whitespace() && c != ' ')
            || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
    })
}

/// Names as an attacker would choose them.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z0-9_./-]{0,12}",
        any::<char>().prop_map(String::from),
        prop::sample::select(vec![
            " ",
            "  ",
            "\n",
            "\r\n",
            "\t",
            "\\",
            "\\n",
            "\\u{20}",
            "=",
            " = ",
            " id=x",
            " type=file id=x",
            " path=",
            " char_count=1",
            " file_type=rs char_count=9\nid=y",
            "\u{1b}[31m",
            "\u{2028}",
            "\u{2029}",
            "\u{202e}",
            "\u{2066}",
            "\u{200b}",
            "\u{feff}",
            "\u{a0}",
            "\u{3000}",
            "\u{85}",
            "\u{e0041}",
            "\u{3164}",
            "{",
            "}",
            "ACTIVE_CONTENT id=z",
            "toolcall_ref id=z",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::cases(10_000)))]

    #[test]
    fn escaped_text_is_plain_and_reads_back(raw in hostile()) {
        for shown in [text(&raw), word(&raw)] {
            prop_assert!(is_plain(&shown), "{shown:?}");
            prop_assert_eq!(unescape(&shown), Some(raw.clone()));
        }
        prop_assert!(!word(&raw).contains(' '));
    }

    #[test]
    fn a_file_is_one_line_with_five_fields(id in hostile(), path in hostile(), kind in hostile(), count: u64) {
        let line = file_line(&ObjectId::new(id.clone()), &path, &kind, count);
        prop_assert!(is_plain(&line));
        let expected =
            [("id", &*id), ("type", "file"), ("path", &*path), ("file_type", &*kind), ("char_count", &*count.to_string())];
        prop_assert_eq!(fields(&line), pairs(&expected));
        let names_something = !id.is_empty() && !kind.is_empty();
        for (line, is_orphaned) in [(line.clone(), false), (orphaned(&line), true)] {
            let (id, path, file_type) = (id.clone().into(), path.clone().into(), kind.clone().into());
            let file = PoolLine::File { id, path, file_type, char_count: count, is_orphaned };
            prop_assert_eq!(PoolLine::of(&line), names_something.then_some(file));
            prop_assert_eq!(Reference::of(&line), None);
        }
    }

    #[test]
    fn a_tool_call_is_one_line_with_four_fields(id in hostile(), tool in hostile(), ok: bool) {
        let status = if ok { Status::Ok } else { Status::Fail };
        let object = ObjectId::new(id.clone());
        let line = toolcall_line(&object, &tool, status);
        prop_assert!(is_plain(&line));
        let expected = [("id", &*id), ("type", "toolcall"), ("tool", &*tool), ("status", status.as_str())];
        prop_assert_eq!(fields(&line), pairs(&expected));
        let names_something = !id.is_empty() && !tool.is_empty();
        let call = PoolLine::Toolcall { id: id.clone().into(), tool: tool.clone().into(), status };
        prop_assert_eq!(PoolLine::of(&line), names_something.then_some(call));

        let reference = Reference::to(&id, &tool, Some(status)).to_string();
        prop_assert!(is_plain(&reference));
        let rest = reference.strip_prefix("toolcall_ref ").unwrap();
        prop_assert_eq!(fields(rest), pairs(&[expected[0], expected[2], expected[3]]));
        let below = format!("{reference}\n{tool}");
        prop_assert_eq!(Reference::of(&below), names_something.then(|| Reference::to(&id, &tool, Some(status))));
        prop_assert_eq!(PoolLine::of(&reference), None);
    }

    #[test]
    fn a_block_is_a_plain_first_line_and_the_content_verbatim(id in hostile(), content in hostile()) {
        let block = active_block(&ObjectId::new(id.clone()), &content);
        let (first, rest) = block.split_once('\n').unwrap();
        prop_assert!(is_plain(first));
        prop_assert_eq!(rest, content);
        prop_assert_eq!(unescape(first.strip_prefix("ACTIVE_CONTENT id=").unwrap()), Some(id));
    }

    #[test]
    fn different_names_give_different_lines(a in hostile(), b in hostile()) {
        prop_assert_eq!(text(&a) == text(&b), a == b);
        prop_assert_eq!(word(&a) == word(&b), a == b);
    }

    #[test]
    fn short_text_and_word_are_bounded_and_cut_no_escape(raw in "(\\PC|\u{200b}|=| |\\n|\u{1f600}){0,30}", times in 0_usize..200) {
        let raw = raw.repeat(times);
        for (whole, short) in [(text(&raw), short_text(&raw)), (word(&raw), short_word(&raw))] {
            prop_assert!(utf16_len(&short) <= LONGEST_NAME);
            if utf16_len(&whole) < LONGEST_NAME - 3 {
                prop_assert_eq!(short, whole);
            } else if utf16_len(&whole) > LONGEST_NAME {
                let places = (0..short.len()).filter(|at| short.get(*at..).is_some_and(|rest| rest.starts_with("...")));
                let is_cut = |at: &usize| whole.starts_with(&short[..*at]) && whole.ends_with(&short[at + 3..]);
                let (head, tail) = short.split_at(places.into_iter().find(is_cut).unwrap());
                prop_assert!(unescape(head).is_some() && unescape(&tail[3..]).is_some());
            }
        }
    }

    #[test]
    fn anything_can_be_unescaped_without_a_panic(shown in ".{0,40}") {
        if let Some(raw) = unescape(&shown) {
            prop_assert_eq!(unescape(&text(&raw)), Some(raw));
        }
    }
}

#[rstest]
#[case::end_of_text("\\")]
#[case::unknown("\\x")]
#[case::no_brace("\\u20")]
#[case::open("\\u{20")]
#[case::no_digits("\\u{}")]
#[case::surrogate("\\u{d800}")]
#[case::beyond("\\u{110000}")]
fn foreign_escape_is_not_unescaped(#[case] shown: &str) {
    assert_eq!(unescape(shown), None);
}

#[rstest]
#[case::spaces_stay("/w/My Notes (1).txt", "/w/My Notes (1).txt")]
#[case::umlauts_and_emoji_stay("/w/ü 😀 日本語", "/w/ü 😀 日本語")]
#[case::equals_alone_stays("/w/a=b", "/w/a=b")]
#[case::a_false_field("/w/a id=b c", "/w/a\\u{20}id=b c")]
#[case::a_false_field_further_on("/a b c=d", "/a\\u{20}b\\u{20}c=d")]
fn usual_paths_stay_readable(#[case] path: &str, #[case] shown: &str) {
    assert_eq!(text(path), shown);
}

/// Only what ends a line, controls a terminal or is invisible is escaped in a line that is quoted.
#[rstest]
#[case("\tlet a = \"é 𝄞\"; \\n", "\tlet a = \"é 𝄞\"; \\n")]
#[case("a\nb\rc", "a\\u{a}b\\u{d}c")]
#[case("\u{1b}[31m", "\\u{1b}[31m")]
#[case("a\u{2028}b\u{2029}c\u{200b}d\u{85}e", "a\\u{2028}b\\u{2029}c\\u{200b}d\\u{85}e")]
fn quoted_line_escapes_control_characters(#[case] raw: &str, #[case] expected: &str) {
    assert_eq!(line(raw), expected);
}
