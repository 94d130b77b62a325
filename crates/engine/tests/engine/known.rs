//! The version that a result shows, and the model's knowledge of it, where the text alone does not determine them.

use std::fs;

use context_model::id::SessionId;
use context_model::object::Status;
use rstest::rstest;
use serde_json::json;

use crate::bench::{Backend, Bench, answer};
use crate::chat::Chat;
use crate::stepped::{Incident, stepped};
use crate::truth::lines;

/// A chat, and a file of sixty lines.
async fn started(backend: Backend) -> (Bench, Chat, String) {
    let (bench, mut chat) = Chat::on(backend).await;
    chat.user("read");
    let path = bench.write("a.txt", lines("old", 60));
    (bench, chat, path)
}

/// A file changes, and a harness that keeps notices passes the notice on.
async fn told(chat: &mut Chat, path: &str, text: &str) {
    fs::write(path, text).unwrap();
    chat.engine.reconcile().await.unwrap();
    let notices = chat.engine.stale_notices().await.unwrap();
    assert_eq!(notices.len(), 1, "{notices:?}");
    chat.say(json!({ "role": "custom", "content": notices[0] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_read_takes_nothing_from_the_next_one() {
    let bench = Bench::new(Backend::Memory);
    let (store, engine) = stepped(&bench, Incident::Full).await;
    let mut chat = Chat::new(engine);
    chat.asks("read").await;
    // The first read finds no file, the second one a text that can't be stored and is gone before anybody could.
    let path = bench.write("a.txt", "only for a moment\n");
    store.arm(0);
    chat.engine.index_file(&path, Some(b"only for a moment\n".to_vec()), None).await.unwrap_err();
    assert!(store.disarm());
    fs::write(&path, "").unwrap();
    let call =
        |id: &str| json!({ "type": "toolCall", "id": id, "name": "read", "arguments": { "path": path } });
    chat.say(json!({ "role": "assistant", "content": [call("one"), call("two")], "timestamp": 1 }));
    chat.results("one", "read", "ENOENT: no such file", Status::Fail);
    chat.results("two", "read", "only for a moment\n", Status::Ok);
    chat.advance().await;
    chat.engine.reconcile().await.unwrap();
    chat.turn("next.").await;
    assert!(chat.notices.len() == 1 && chat.notices[0].ends_with(" changed"), "{:?}", chat.notices);
}

/// Replacing the old lines of these numbers with the read ones does not give the file: a line behind them is gone.
#[tokio::test(flavor = "multi_thread")]
async fn part_says_nothing_of_a_line_removed_behind_it() {
    let (_bench, mut chat, path) = started(Backend::Memory).await;
    chat.read("one", &path, None).await;
    let new = lines("old", 60).replace("old line 50\n", "new line 50\n").replace("old line 56\n", "");
    fs::write(&path, new).unwrap();
    chat.read("two", &path, Some((46, 10))).await;
    chat.ends().await;
    let refusal = chat.engine.check_edit(&path).await.unwrap().unwrap();
    assert!(refusal.contains("\n-old line 56\n"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn write_on_an_abandoned_branch_is_not_known() {
    let (_bench, mut chat, path) = started(Backend::Memory).await;
    chat.read("one", &path, None).await;
    chat.done();
    let (tx, times) = chat.advance().await.point.unwrap();
    let length = chat.messages.len();
    fs::write(&path, lines("new", 60)).unwrap();
    chat.engine.index_written(&path, Some(lines("new", 60).into_bytes()), None).await.unwrap();
    // The write never comes as a result: the person goes back to before it.
    chat.engine.restore(&SessionId::new("s").unwrap(), tx, Some(times)).await.unwrap();
    chat.resync(chat.engine.clone(), length).await;
    let refusal = chat.engine.check_edit(&path).await.unwrap().unwrap();
    assert!(refusal.contains("\n+new line 1\n"), "{refusal}");
}

/// A restored state does not have the notices after it, and the harness's messages do.
#[tokio::test(flavor = "multi_thread")]
async fn a_notice_after_the_point_is_heard_when_messages_are_read_again() {
    let (_bench, mut chat, path) = started(Backend::Memory).await;
    chat.read("one", &path, None).await;
    chat.done();
    let (tx, times) = chat.advance().await.point.unwrap();
    told(&mut chat, &path, &lines("new", 60)).await;
    fs::write(&path, lines("old", 60)).unwrap();
    chat.engine.restore(&SessionId::new("s").unwrap(), tx, Some(times)).await.unwrap();
    chat.reads_again().await;
    chat.hears("as you know it again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn part_after_a_notice_is_of_the_announced_version() {
    let (_bench, mut chat, path) = started(Backend::Memory).await;
    chat.read("one", &path, Some((10, 5))).await;
    chat.advance().await;
    told(&mut chat, &path, &lines("old", 60).replace("old line 30\n", "new line 30\n")).await;
    chat.read("two", &path, Some((1, 11))).await;
    chat.ends().await;
    chat.reads_again().await;
    let answer = chat.engine.answer_read(&path, Some(1), Some(11), None).await.unwrap().unwrap();
    assert!(answer.text.starts_with("unchanged") && answer.object.as_str() == "two", "{}", answer.text);
}

/// Any output begins with an empty text, so an output cannot show that an empty text was restored.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_about_an_empty_output_brings_nothing_back() {
    let (bench, mut chat, _) = started(Backend::Memory).await;
    let path = bench.write("empty.txt", "");
    chat.read("one", &path, None).await;
    chat.advance().await;
    told(&mut chat, &path, "something\n").await;
    fs::write(&path, "").unwrap();
    let change = chat.engine.activate("one", None).await.unwrap();
    assert_eq!(
        (change.visible, change.content.as_deref()),
        (false, Some("")),
        "it has no name in the conversation"
    );
    chat.run("two", "activate", json!({ "id": "one" }), &change.message).await;
    chat.done();
    chat.hears("as you know it again").await;
}

/// The beginning of a file says less about its version than the tool's whole output.
#[tokio::test(flavor = "multi_thread")]
async fn excerpt_is_of_the_tools_version() {
    let (_bench, mut chat, path) = started(Backend::Memory).await;
    let text = lines("old", 60);
    chat.engine.index_file(&path, Some(text.clone().into_bytes()), None).await.unwrap();
    // Another one is stored before the call is.
    fs::write(&path, text.clone() + "one more\n").unwrap();
    chat.engine.reconcile().await.unwrap();
    chat.run("one", "read", json!({ "path": path }), &text).await;
    chat.advance().await;
    let shown = chat.messages.last_mut().unwrap();
    let header = shown.message["content"][0]["text"].as_str().unwrap().lines().next().unwrap().to_owned();
    let excerpt = format!("{header}\nold line 1\nold line 2\n... 58 lines\n");
    shown.message["content"] = json!([{ "type": "text", "text": excerpt }]);
    chat.say(answer("done"));
    chat.reads_again().await;
    chat.hears_of(&path, lines("new", 60), "+60 -60").await;
}

/// Lines as a tool shows them that numbers them.
fn numbered(path: &str, text: &str) -> String {
    let lines = text.lines().enumerate().map(|(at, line)| format!("{}: {line}\n", at + 1));
    format!("<path>{path}</path>\n<content>\n{}\n(End of file)\n</content>", lines.collect::<String>())
}

/// A read that the record has as its tool shows it, numbered; the harness hands over these lines alone.
async fn read_numbered(chat: &mut Chat, id: &str, path: &str, handed: &str) {
    let shown = numbered(path, &fs::read_to_string(path).unwrap());
    chat.advance().await;
    chat.engine.index_file(path, None, None).await.unwrap();
    chat.run(id, "read", json!({ "path": path }), &shown).await;
    chat.messages.last_mut().unwrap().message["content"] = json!([{ "type": "text", "text": handed }]);
    chat.ends().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_recorded_with_numbers_are_known_after_a_restart() {
    let (bench, mut chat, path) = started(Backend::Memory).await;
    read_numbered(&mut chat, "one", &path, lines("old", 60).trim_end()).await;
    assert!(chat.turn("next.").await.notices.is_empty());
    fs::write(&path, lines("new", 60)).unwrap();
    chat.restart(&bench).await;
    chat.hears("+60 -60").await;
    // The recorded text is longer than the one in the request, so it is given.
    let change = chat.engine.activate("one", None).await.unwrap();
    assert!(!change.visible && change.content.is_some(), "{}", change.message);
}

/// The tool has left out a byte order mark and carriage returns, and the new process does not know that it has.
#[rstest::rstest]
#[case::no_line("\u{feff}one\r\ntwo\r\n")]
#[case::only_the_first_line("one\ntwo\r\n")]
#[tokio::test(flavor = "multi_thread")]
async fn unmatched_numbered_lines_are_not_another_version(#[case] text: &str) {
    let (bench, mut chat, _) = started(Backend::Memory).await;
    let path = bench.write("windows.txt", text);
    read_numbered(&mut chat, "one", &path, &numbered(&path, text)).await;
    let read = chat.messages.iter_mut().find(|one| one.message["toolCallId"] == "one").unwrap();
    read.message["content"] = json!([{ "type": "text", "text": "one\ntwo" }]);
    chat.restart(&bench).await;
    chat.hears_nothing().await;
}

/// A model that asks again has not found the lines. The conversation then has the whole file twice, and the newer result stays
/// longer.
#[rstest]
#[case::whole(None, None)]
#[case::a_part(Some((5, 9)), Some((5, 9)))]
#[case::a_part_and_the_whole(Some((5, 9)), None)]
#[case::another_part(Some((5, 9)), Some((7, 20)))]
#[tokio::test(flavor = "multi_thread")]
async fn read_after_a_pointing_answer_is_served_in_full(
    #[case] pointed: Option<(usize, usize)>,
    #[case] then: Option<(usize, usize)>,
    #[values(true, false)] is_read_again: bool,
) {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let text: String = (1..=60).map(|n| format!("line {n}\n")).collect();
    let path = bench.write("a.txt", &text);
    let shown = |part: Option<(usize, usize)>| {
        let (first, count) = part.unwrap_or((1, usize::MAX));
        text.split('\n').skip(first - 1).take(count).collect::<Vec<_>>().join("\n")
    };
    chat.user("read");
    let header = |chat: &Chat, id: &str| {
        let result = chat.messages.iter().find(|one| one.message["toolCallId"] == id).unwrap();
        let text = result.message["content"][0]["text"].as_str().unwrap();
        text.lines().next().unwrap().to_owned()
    };
    assert_eq!(chat.read("one", &path, None).await, text);
    let answer = chat.read("two", &path, pointed).await;
    assert!(answer.contains(&format!(" are as in the result {}; ", header(&chat, "one"))), "{answer}");
    if is_read_again {
        chat.advance().await;
        chat.reads_again().await;
    }
    assert_eq!(chat.read("three", &path, then).await, shown(then));
    if is_read_again {
        chat.advance().await;
        chat.reads_again().await;
    }
    let answer = chat.read("four", &path, then).await;
    let newest = if then.is_none() { "three" } else { "one" };
    assert!(answer.contains(&format!(" are as in the result {}; ", header(&chat, newest))), "{answer}");
}

/// The versions of another session are compared with the disk once, and not in each turn: a later change that no client has
/// looked at is not known.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_of_another_session_costs_one_look_at_the_disk() {
    let (bench, mut chat, path) = started(Backend::Sqlite).await;
    chat.read("read", &path, None).await;
    chat.advance().await;
    let other = bench.open("other").await;
    fs::write(&path, lines("second", 60)).unwrap();
    other.index_file(&path, None, None).await.unwrap();
    fs::write(&path, lines("third", 61)).unwrap();
    chat.is_told(" +61 -60").await;
    fs::write(&path, lines("fourth", 40)).unwrap();
    for _ in 0..3 {
        assert_eq!(chat.turn("on").await.notices, Vec::<String>::new());
    }
}
