//! Reads in unknown forms: only the shown lines of a file count.

use std::fs;

use context_model::object::Status;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench};
use crate::chat::Chat;
use crate::truth::lines;

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
    let mut args = json!({ "path": path });
    if let Some(offset) = offset {
        args["offset"] = json!(offset);
    }
    shows(chat, "read", args, output).await;
}

async fn shell(chat: &mut Chat, command: &str, output: &str) {
    shows(chat, "bash", json!({ "command": command }), output).await;
}

async fn shows(chat: &mut Chat, tool: &str, args: Value, output: &str) {
    chat.user("go");
    chat.run("shows", tool, args, output).await;
    chat.advance().await;
    chat.done();
}

/// A session, and a file with this text.
async fn with_file(name: &str, text: &str) -> (Bench, Chat, String) {
    let (bench, chat) = Chat::on(Backend::Sqlite).await;
    let path = bench.write(name, text);
    (bench, chat, path)
}

/// The shown lines of a file of 40 are known, also after a restart.
async fn hears_of_a_line(bench: &Bench, chat: &mut Chat, path: &str, restarts: bool) {
    assert_eq!(chat.turn("on").await.notices, [""; 0], "the file is as it was");
    if restarts {
        chat.restart(bench).await;
    }
    chat.hears_of(path, lines("old", 40).replace("old line 20\n", "new line 20\n"), " +1 -1").await;
    assert_eq!(chat.turn("on").await.notices, [""; 0]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn file_read_in_any_form_is_announced_when_it_changes(
    #[values(0, 1, 2, 3, 4, 5)] form: usize,
    #[values(None, Some(11))] offset: Option<usize>,
    #[values(false, true)] restarts: bool,
) {
    let (bench, mut chat, path) = with_file("a.txt", &lines("old", 40)).await;
    let first = offset.unwrap_or(1);
    let shown: String = lines("old", 40).split_inclusive('\n').skip(first - 1).collect();
    read(&mut chat, &path, offset, &forms(&shown, first)[form]).await;
    hears_of_a_line(&bench, &mut chat, &path, restarts).await;
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
async fn read_file_of_any_shape_is_announced_when_it_changes(
    #[case] text: &str,
    #[case] output: &str,
    #[case] name: &str,
    #[values(false, true)] is_shell: bool,
    #[values(false, true)] restarts: bool,
) {
    let (bench, mut chat, path) = with_file(name, text).await;
    if is_shell {
        shell(&mut chat, &format!("cat '{name}'"), output).await;
    } else {
        read(&mut chat, &path, None, output).await;
    }
    assert_eq!(chat.turn("on").await.notices, Vec::<String>::new(), "the file is as it was");
    if restarts {
        chat.restart(&bench).await;
    }
    chat.hears_of(&path, "another text\n", "").await;
    assert_eq!(chat.turn("on").await.notices, [""; 0]);
}

/// An output of some other kind says nothing of a file that is empty by chance.
#[rstest]
#[case::many_words(&"something else that a tool says of it\n".repeat(8), false)]
#[case::a_failure("cat: a.txt: Permission denied", true)]
#[tokio::test]
async fn error_output_is_not_a_read_of_an_empty_file(#[case] output: &str, #[case] has_failed: bool) {
    let (_bench, mut chat, path) = with_file("a.txt", "").await;
    chat.user("go");
    chat.calls("shell", "bash", json!({ "command": "cat a.txt" }));
    chat.results("shell", "bash", output, if has_failed { Status::Fail } else { Status::Ok });
    chat.advance().await;
    chat.done();
    fs::write(path, "text\n").unwrap();
    chat.hears_nothing().await;
}

/// Lines that a host leaves out stay unknown: an answer never points to them.
#[tokio::test(flavor = "multi_thread")]
async fn lines_that_a_form_leaves_out_are_not_taken_for_shown() {
    let (_bench, mut chat, path) = with_file("a.txt", &lines("old", 40)).await;
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
async fn file_shown_by_a_shell_is_announced_when_it_changes(
    #[case] command: &str,
    #[case] first: usize,
    #[case] last: usize,
    #[case] before: impl Fn(usize) -> String,
    #[values(false, true)] restarts: bool,
) {
    let (bench, mut chat, path) = with_file("a.txt", &lines("old", 40)).await;
    let shown = lines("old", 40);
    let shown = shown.lines().zip(1..).filter(|(_, n)| (first..=last).contains(n));
    let output: String = shown.map(|(line, n)| format!("{}{line}\n", before(n))).collect();
    shell(&mut chat, command, &output).await;
    hears_of_a_line(&bench, &mut chat, &path, restarts).await;
}

/// An output with other text than the file's lines, or possibly more, says nothing of the file.
#[rstest]
#[case::other_lines("cat a.txt", "something else\n")]
#[case::cut("cat a.txt", "old line 1\nold line 2\n... 38 lines")]
#[case::an_end_that_is_missing("cat a.txt", &lines("old", 39))]
#[case::two_files("cat a.txt a.txt", "old line 1\nold line 2\nold line 3\n")]
#[case::a_filter("grep old a.txt", "old line 1\nold line 2\nold line 3\n")]
#[tokio::test(flavor = "multi_thread")]
async fn shell_output_with_other_text_is_not_a_read(#[case] command: &str, #[case] output: &str) {
    let (_bench, mut chat, path) = with_file("a.txt", &lines("old", 40)).await;
    shell(&mut chat, command, output).await;
    fs::write(path, "another text\n").unwrap();
    chat.hears_nothing().await;
}
