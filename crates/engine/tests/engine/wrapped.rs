//! Reads in forms that nobody knows: what they show of a file counts, and no more.

use std::fs;

use rstest::rstest;
use serde_json::json;

use crate::bench::{Backend, Bench};
use crate::chat::Chat;
use crate::truth::{chat, lines};

/// Hosts whose tools hand over what they show, and nothing else.
fn forms(text: &str, first: usize) -> Vec<String> {
    let with = |before: &dyn Fn(usize) -> String| -> String {
        text.lines().zip(first..).map(|(line, n)| format!("{}{line}\n", before(n))).collect()
    };
    vec![
        with(&|n| format!("{n:>6}→")),
        format!("<file>\n{}\n(End of file)\n</file>", with(&|n| format!("{n:05}| "))),
        format!("Exit code: 0\nOutput:\n{text}"),
        format!("<file path=\"a\">\n{text}</file>"),
        serde_json::to_string(&text).unwrap(),
        json!({ "path": "a.txt", "content": text }).to_string(),
    ]
}

async fn read(chat: &mut Chat, path: &str, offset: Option<usize>, output: &str) {
    chat.user("go");
    let mut args = json!({ "path": path });
    if let Some(offset) = offset {
        args["offset"] = json!(offset);
    }
    chat.run("read", "read", args, output).await;
    chat.advance().await;
    chat.done();
}

async fn notices_after(chat: &mut Chat, path: &str, text: &str) -> Vec<String> {
    fs::write(path, text).unwrap();
    chat.engine.reconcile().await.unwrap();
    chat.turn("on").await.notices
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_read_in_any_form_is_announced_when_it_changes(
    #[values(0, 1, 2, 3, 4, 5)] form: usize,
    #[values(None, Some(11))] offset: Option<usize>,
    #[values(false, true)] restarts: bool,
) {
    let bench = Bench::new(Backend::Sqlite);
    let path = bench.write("a.txt", lines("old", 40));
    let mut chat = chat(&bench, "s").await;
    let first = offset.unwrap_or(1);
    let shown: String = lines("old", 40).split_inclusive('\n').skip(first - 1).collect();
    read(&mut chat, &path, offset, &forms(&shown, first)[form]).await;
    assert_eq!(chat.turn("on").await.notices, Vec::<String>::new(), "the file is as it was");
    if restarts {
        chat.restart(&bench).await;
    }
    let changed = lines("old", 40).replace("old line 20\n", "new line 20\n");
    let told = notices_after(&mut chat, &path, &changed).await;
    assert!(told.len() == 1 && told[0].ends_with(" +1 -1"), "{told:?}");
}

/// Files with nothing to show, and with bytes that hosts take away from what they show.
#[rstest]
#[case::empty("", "", "a.txt")]
#[case::empty_in_words(
    "",
    "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>",
    "a.txt"
)]
#[case::blank_lines("\n\n\n", "     1→\n     2→\n     3→\n     4→", "a.txt")]
#[case::blank_lines_taken_away("\n\n\n", "", "a.txt")]
#[case::a_byte_order_mark("\u{feff}one\ntwo\n", "     1→\u{feff}one\n     2→two\n     3→", "a.txt")]
#[case::carriage_returns("a\r\nb\r\nc\r\n", "     1→a\r\n     2→b\r\n     3→c\r", "a.txt")]
#[case::the_last_one_taken_away("a\r\nb\r\nc\r\n", "a\r\nb\r\nc", "a.txt")]
#[case::all_taken_away("a\r\nb\r\nc\r\n", "a\nb\nc\n", "a.txt")]
#[case::a_name_that_must_be_quoted("one\n", "one\n", "$id`\"\\x.txt")]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_any_shape_that_was_read_is_announced_when_it_changes(
    #[case] text: &str,
    #[case] output: &str,
    #[case] name: &str,
    #[values(false, true)] is_shell: bool,
    #[values(false, true)] restarts: bool,
) {
    let bench = Bench::new(Backend::Sqlite);
    let path = bench.write(name, text);
    let mut chat = chat(&bench, "s").await;
    if is_shell {
        chat.user("go");
        chat.run("shell", "bash", json!({ "command": format!("cat '{name}'") }), output).await;
        chat.advance().await;
        chat.done();
    } else {
        read(&mut chat, &path, None, output).await;
    }
    assert_eq!(chat.turn("on").await.notices, Vec::<String>::new(), "the file is as it was");
    if restarts {
        chat.restart(&bench).await;
    }
    let told = notices_after(&mut chat, &path, "another text\n").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(chat.turn("on").await.notices, Vec::<String>::new());
}

/// An output of some other kind says nothing of a file that is empty by chance.
#[rstest]
#[case::many_words(&"something else that a tool says of it\n".repeat(8), false)]
#[case::a_failure("cat: a.txt: Permission denied", true)]
#[tokio::test]
async fn of_an_empty_file_not_everything_counts_as_a_read(#[case] output: &str, #[case] has_failed: bool) {
    let bench = Bench::new(Backend::Sqlite);
    let path = bench.write("a.txt", "");
    let mut chat = chat(&bench, "s").await;
    chat.user("go");
    let args = json!({ "command": "cat a.txt" });
    chat.say(json!({ "role": "assistant", "content": [
        { "type": "toolCall", "id": "shell", "name": "bash", "arguments": args },
    ] }));
    chat.say(json!({
        "role": "toolResult", "toolCallId": "shell", "toolName": "bash", "isError": has_failed,
        "content": [{ "type": "text", "text": output }],
    }));
    chat.advance().await;
    chat.done();
    assert_eq!(notices_after(&mut chat, &path, "text\n").await, Vec::<String>::new());
}

/// Of what a host leaves out nothing is known: an answer never points to it.
#[tokio::test(flavor = "multi_thread")]
async fn lines_that_a_form_leaves_out_are_not_taken_for_shown() {
    let bench = Bench::new(Backend::Sqlite);
    let path = bench.write("a.txt", lines("old", 40));
    let mut chat = chat(&bench, "s").await;
    let shown: String = lines("old", 40).split_inclusive('\n').take(10).collect();
    read(&mut chat, &path, None, &format!("<file>\n{shown}... 30 lines\n</file>")).await;
    let answer = chat.engine.answer_read(&path, Some(1), Some(10), None).await.unwrap();
    assert!(answer.is_some_and(|answer| answer.text.starts_with("unchanged: lines 1-10")));
    for (offset, limit) in [(1, 11), (11, 5), (1, 41)] {
        assert_eq!(chat.engine.answer_read(&path, Some(offset), Some(limit), None).await.unwrap(), None);
    }
}

/// A shell command that shows a file as a read would.
#[rstest]
#[case::all("cat a.txt", 1, 40, |_: usize| String::new())]
#[case::numbered("cat -n a.txt", 1, 40, |n: usize| format!("{n:>6}\t"))]
#[case::a_part("sed -n '15,25p' a.txt", 15, 25, |_: usize| String::new())]
#[case::the_beginning("head -n 25 a.txt", 1, 25, |_: usize| String::new())]
#[case::from_a_line_on("tail -n +12 a.txt", 12, 40, |_: usize| String::new())]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_shell_has_shown_is_announced_when_it_changes(
    #[case] command: &str,
    #[case] first: usize,
    #[case] last: usize,
    #[case] before: impl Fn(usize) -> String,
    #[values(false, true)] restarts: bool,
) {
    let bench = Bench::new(Backend::Sqlite);
    let path = bench.write("a.txt", lines("old", 40));
    let mut chat = chat(&bench, "s").await;
    let shown = lines("old", 40);
    let shown = shown.lines().zip(1..).filter(|(_, n)| (first..=last).contains(n));
    let output: String = shown.map(|(line, n)| format!("{}{line}\n", before(n))).collect();
    chat.user("go");
    chat.run("shell", "bash", json!({ "command": command }), &output).await;
    chat.advance().await;
    chat.done();
    assert_eq!(chat.turn("on").await.notices, Vec::<String>::new(), "the file is as it was");
    if restarts {
        chat.restart(&bench).await;
    }
    let changed = lines("old", 40).replace("old line 20\n", "new line 20\n");
    let told = notices_after(&mut chat, &path, &changed).await;
    assert!(told.len() == 1 && told[0].ends_with(" +1 -1"), "{told:?}");
    assert_eq!(chat.turn("on").await.notices, Vec::<String>::new());
}

/// What is not the file's lines, or may be more than them, tells nothing of it.
#[rstest]
#[case::other_lines("cat a.txt", "something else\n")]
#[case::cut("cat a.txt", "old line 1\nold line 2\n... 38 lines")]
#[case::an_end_that_is_missing("cat a.txt", &lines("old", 39))]
#[case::two_files("cat a.txt a.txt", "old line 1\nold line 2\nold line 3\n")]
#[case::a_filter("grep old a.txt", "old line 1\nold line 2\nold line 3\n")]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_shell_shows_besides_is_no_read(#[case] command: &str, #[case] output: &str) {
    let bench = Bench::new(Backend::Sqlite);
    let path = bench.write("a.txt", lines("old", 40));
    let mut chat = chat(&bench, "s").await;
    chat.user("go");
    chat.run("shell", "bash", json!({ "command": command }), output).await;
    chat.done();
    assert_eq!(notices_after(&mut chat, &path, "another text\n").await, Vec::<String>::new());
}
