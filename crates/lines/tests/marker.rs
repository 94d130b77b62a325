//! Collapsed arguments, and the guard against copies of them.

use context_lines::marker::{KEPT_CHARS, collapse_args, collapse_old_text, imitation, tag_in, tags_in};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

fn args(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

const CWD: &str = "/work dir/project";

fn size(args: &Map<String, Value>) -> usize {
    serde_json::to_string(args).expect("JSON").encode_utf16().count()
}

#[test]
fn a_write_keeps_its_path() {
    let content = "let x = 1;\n".repeat(100);
    let input = args(json!({"path": "src/a.rs", "content": content}));
    let collapsed = collapse_args("write", &input, "a1b2c3", CWD).expect("long enough");
    let marker = "[collapsed #a1b2c3: 1100 chars]";
    assert_eq!(Value::Object(collapsed.args), json!({"path": "src/a.rs", "content": marker}));
    // A line feed is two chars in JSON.
    assert_eq!((collapsed.strings, collapsed.saved_chars), (1, 1200 - marker.len()));
}

#[rstest]
#[case::below("read", "/work dir/project/src/a.rs", "src/a.rs")]
#[case::deep("grep", "/work dir/project/a", "a")]
#[case::upper_case_tool("Edit", "/work dir/project/a", "a")]
#[case::the_directory_itself("ls", "/work dir/project", "/work dir/project")]
#[case::its_name_continued("read", "/work dir/projects/a", "/work dir/projects/a")]
#[case::elsewhere("read", "/work dir/a", "/work dir/a")]
#[case::relative("read", "src/a.rs", "src/a.rs")]
#[case::a_name_like_a_home("read", "/work dir/project/~a", "/work dir/project/~a")]
#[case::hidden("read", "/work dir/project/.github/a", ".github/a")]
#[case::not_a_file_tool("mcp_read", "/work dir/project/a", "/work dir/project/a")]
fn a_path_is_named_from_the_working_directory(#[case] tool: &str, #[case] path: &str, #[case] shown: &str) {
    let collapsed = collapse_args(tool, &args(json!({ "path": path, "limit": 3 })), "t", CWD);
    assert_eq!(collapsed.is_some(), path != shown);
    if let Some(collapsed) = collapsed {
        assert_eq!(Value::Object(collapsed.args), json!({ "path": shown, "limit": 3 }));
        assert_eq!((collapsed.strings, collapsed.saved_chars), (1, path.len() - shown.len()));
    }
}

#[test]
fn an_edit_keeps_its_small_texts() {
    let long = "é".repeat(500);
    let input = args(json!({
        "path": "a.txt", "line": 12, "all": null,
        "edits": [{"oldText": "short", "newText": long}, {"oldText": long, "newText": ""}],
    }));
    let collapsed = collapse_args("edit", &input, "t", CWD).expect("long enough");
    let marker = &collapsed.args["edits"][0]["newText"];
    assert!(marker.as_str().is_some_and(|m| m == "[collapsed #t: 500 chars]"));
    assert_eq!(
        Value::Object(collapsed.args.clone()),
        json!({
            "path": "a.txt", "line": 12, "all": null,
            "edits": [{"oldText": "short", "newText": marker}, {"oldText": marker, "newText": ""}],
        })
    );
    assert_eq!(collapsed.strings, 2);
}

#[test]
fn command_shows_its_beginning() {
    let command = format!("\ncat > \"a b.py\" <<'EOF'\n{}EOF", "print(1)\n".repeat(80));
    let collapsed =
        collapse_args("bash", &args(json!({ "command": command })), "t", CWD).expect("long enough");
    let marker = collapsed.args["command"].as_str().expect("text");
    assert!(marker.contains(", begins \"cat > \"a b.py\" <<'EOF'\"]"), "{marker}");
    assert_eq!(tag_in(marker), Some("t"));
    let command = "x".repeat(1_000);
    let collapsed =
        collapse_args("bash", &args(json!({ "command": command })), "t", CWD).expect("long enough");
    let begins = format!("begins \"{}...\"", "x".repeat(40));
    assert!(collapsed.args["command"].as_str().is_some_and(|m| m.contains(&begins)));
}

#[rstest]
#[case::nothing(json!({}))]
#[case::short(json!({"path": "a", "content": "b"}))]
#[case::as_long_as_may_be(json!({"content": "x".repeat(KEPT_CHARS)}))]
#[case::long_but_no_string(json!({"list": (0..500).collect::<Vec<_>>()}))]
#[case::no_gain(json!({"content": "x".repeat(KEPT_CHARS + 1), "handle": "see below"}))]
fn nothing_to_gain(#[case] input: Value) {
    // The longest ID that a provider was seen to give.
    assert_eq!(collapse_args("write", &args(input), &"h".repeat(450), CWD), None);
}

/// The text that an edit replaced leaves in both shapes of an edit's arguments; a short one and a marker stay.
#[test]
fn old_text_of_an_edit_collapses() {
    let (long, short) = ("x\n".repeat(KEPT_CHARS), "y".repeat(KEPT_CHARS));
    let marker = format!("[collapsed #ab12: 900 chars, begins \"{}\"]", "z".repeat(KEPT_CHARS));
    let edits = [&long, &short, &marker].map(|old| json!({ "oldText": old, "newText": long }));
    let input = args(json!({ "path": "a", "oldText": long, "edits": edits }));
    let collapsed = collapse_old_text("Edit", &input, "t").expect("long enough");
    let gone = json!("[collapsed #t: 240 chars]");
    assert_eq!(collapsed.args["oldText"], gone);
    assert_eq!(collapsed.args["edits"][0], json!({ "oldText": gone, "newText": long }));
    assert_eq!(collapsed.args["edits"][1]["oldText"], json!(short));
    assert_eq!(collapsed.args["edits"][2]["oldText"], json!(marker));
    assert_eq!(collapsed.strings, 2);
    assert_eq!(collapse_old_text("write", &input, "t"), None);
    let no_gain = args(json!({ "oldText": "x".repeat(KEPT_CHARS + 1) }));
    assert_eq!(collapse_old_text("edit", &no_gain, &"t".repeat(KEPT_CHARS)), None);
}

#[rstest]
#[case("[collapsed #ab12: 5 chars]", Some("ab12"))]
#[case("[collapsed #ab12: 5 chars, begins \"ls\"]", Some("ab12"))]
#[case("[collapsed #ab12: 5 chars and more]", None)]
#[case(" [collapsed #ab12: 5 chars]\n", Some("ab12"))]
#[case("// [collapsed #ab12: 5 chars]", None)]
#[case("[collapsed #ab12: 5 chars]\nmore text and a bracket]", None)]
#[case("[collapsed #: 5 chars]", None)]
#[case("[collapsed #a b: 5 chars]", None)]
#[case("[collapsed #ab12: many chars]", None)]
#[case("[collapsed #ab12]", None)]
#[case("[collapsed #", None)]
#[case("]", None)]
#[case("", None)]
fn markers(#[case] text: &str, #[case] expected: Option<&str>) {
    assert_eq!(tag_in(text), expected);
}

const MARK: &str = "[collapsed #ab12: 5 chars]";

#[rstest]
#[case::whole(json!({"path": "a", "content": MARK}), Some("content"))]
#[case::nested(json!({"path": "a", "edits": [{"oldText": "b"}, {"newText": MARK}]}), Some("edits[1].newText"))]
#[case::command(json!({"command": MARK}), Some("command"))]
#[case::inside_a_text(json!({"content": format!("see {MARK}")}), None)]
#[case::several_lines(json!({"content": format!("{MARK}\n{MARK}")}), None)]
#[case::other_tag(json!({"content": MARK.replace("ab12", "cd34")}), None)]
#[case::plain(json!({"content": "text"}), None)]
fn imitations(#[case] input: Value, #[case] place: Option<&str>) {
    let sentence = imitation(&args(input), |tag| tag == "ab12");
    assert_eq!(sentence.is_some(), place.is_some());
    if let Some((sentence, place)) = sentence.zip(place) {
        assert!(sentence.contains(&format!("the argument {place} is only the mark")), "{sentence}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        3 => "\\PC{0,30}".prop_map(Value::from),
        2 => ("(?s).{1,8}", 1_usize..400).prop_map(|(piece, n)| Value::from(piece.repeat(n))),
        1 => Just(Value::from(MARK)),
        1 => any::<i32>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    text.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-zA-Z]{1,8}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Every leaf that changed was a long string and is now a marker of this tag.
fn check(before: &Value, after: &Value, tag: &str) -> usize {
    match (before, after) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).map(|(a, b)| check(a, b, tag)).sum()
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            a.iter().map(|(name, value)| check(value, &b[name], tag)).sum()
        }
        (Value::String(a), Value::String(b)) if a != b => {
            assert!(
                a.encode_utf16().count() > KEPT_CHARS && b.encode_utf16().count() < a.encode_utf16().count()
            );
            assert_eq!(tag_in(b), Some(tag), "{b}");
            1
        }
        _ => {
            assert_eq!(before, after);
            0
        }
    }
}

proptest! {
    #[test]
    fn only_long_strings_change(
        fields in prop::collection::hash_map("[a-zA-Z]{1,8}", value(), 0..5),
        tool in prop::sample::select(vec!["write", "edit", "bash", "other"]),
        tag in "[0-9a-f]{8}",
    ) {
        let input: Map<String, Value> = fields.into_iter().collect();
        let Some(collapsed) = collapse_args(tool, &input, &tag, CWD) else { return Ok(()) };
        prop_assert_eq!(Some(collapsed.clone()), collapse_args(tool, &input, &tag, CWD));
        let (before, after) = (Value::Object(input.clone()), Value::Object(collapsed.args.clone()));
        prop_assert_eq!(check(&before, &after, &tag), collapsed.strings);
        prop_assert!(collapsed.strings > 0 && size(&collapsed.args) < size(&input));
        prop_assert_eq!(collapse_args(tool, &collapsed.args, &tag, CWD), None, "a second time changes nothing");
        // A call that repeats the marker is refused; the call as it was made is not.
        prop_assert!(imitation(&collapsed.args, |issued| issued == tag).is_some());
        prop_assert!(imitation(&input, |issued| issued == tag).is_none());
    }

    #[test]
    fn any_tag_makes_one_line(text in "(?s).{0,20}", tag in "(?s).{1,9}") {
        let input = args(json!({ "command": format!("{text}{}", "x".repeat(2_000)) }));
        let collapsed = collapse_args("bash", &input, &tag, CWD).expect("long enough");
        let marker = collapsed.args["command"].as_str().expect("text");
        prop_assert!(!marker.contains(['\n', '\r', '\u{2028}', '\u{1b}']), "{:?}", marker);
        prop_assert!(tag_in(marker).is_some(), "{:?}", marker);
    }
}

#[test]
fn a_marker_says_how_long_the_text_was() {
    assert_eq!(tag_in("[collapsed #ab12cd34: 500 chars]"), Some("ab12cd34"));
    assert_eq!(tag_in("[collapsed #ab12cd34:  chars]"), None);
    assert_eq!(tag_in("[collapsed #: 500 chars]"), None);
}

/// Quotes are two characters each in JSON, so a mark that reads as long as its text would be shorter to send.
#[test]
fn mark_is_shorter_than_its_text_in_characters_and_json() {
    let text = "\"".repeat(KEPT_CHARS + 1);
    let input = args(json!({ "path": "a", "content": text }));
    assert!(collapse_args("write", &input, "t", CWD).is_some());
    assert_eq!(collapse_args("write", &input, &"t".repeat(KEPT_CHARS), CWD), None);
}

#[test]
fn tags_are_found_in_all_arguments() {
    let mark = |tag: &str| format!("[collapsed #{tag}: 900 chars]");
    let input = args(json!({
        "path": "a", "count": 3, "content": mark("a1"),
        "edits": [{ "oldText": mark("b2"), "newText": "[collapsed" }, { "oldText": format!(" {}\n", mark("c3")) }],
    }));
    let mut tags = tags_in(&input);
    tags.sort();
    assert_eq!(tags, ["a1", "b2", "c3"]);
    assert!(
        tags_in(&args(json!({ "path": "a", "all": true, "content": format!("as {}", mark("a1")) })))
            .is_empty()
    );
}

#[test]
fn collapsing_reports_the_saved_chars() {
    let long = "old ".repeat(200);
    let input = json!({ "path": "/w/a", "oldText": long, "newText": "n" });
    let input = input.as_object().unwrap();
    for collapsed in [collapse_old_text("edit", input, "t"), collapse_args("edit", input, "t", "/")] {
        let collapsed = collapsed.expect("long enough");
        assert!((700..800).contains(&collapsed.saved_chars), "{}", collapsed.saved_chars);
    }
}

/// In JSON a line break counts as two characters, and so does each quotation mark around the beginning of a command.
#[rstest]
#[case::as_long("write", "content", "x", 0, false)]
#[case::one_longer("write", "content", "x", 1, true)]
#[case::as_long_with_line_breaks("write", "content", "x\n", 0, false)]
#[case::one_longer_with_line_breaks("write", "content", "x\n", 1, true)]
#[case::a_command_that_would_save_nothing("bash", "command", "x", 2, false)]
#[case::a_command_that_would_save_one("bash", "command", "x", 3, true)]
fn a_text_stays_unless_its_marker_is_shorter(
    #[case] tool: &str,
    #[case] field: &str,
    #[case] part: &str,
    #[case] longer: usize,
    #[case] collapses: bool,
) {
    let text = part.repeat((KEPT_CHARS + 40) / part.len());
    let input = json!({ field: text });
    let marked = |tag: &str| {
        let collapsed = collapse_args(tool, input.as_object().unwrap(), tag, "/")?;
        Some(collapsed.args[field].as_str().unwrap().len())
    };
    let shortest = marked("t").expect("it is shorter");
    let tag = "t".repeat(text.len() - shortest + 1 - longer);
    assert_eq!(marked(&tag), collapses.then(|| text.len() - longer));
}
