//! The model's knowledge of files after a process has ended before all its work was recorded.

use std::fs;

use context_engine::Engine;
use context_model::id::SessionId;
use context_model::object::Status;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench, tool};
use crate::chat::{Chat, has_read};
use crate::compacted::lines;

/// The arguments of an edit that replaces a line, and the text that it leaves.
fn edit(path: &str, text: &str, line: &str) -> (Value, String) {
    let new = line.replace("line", "edited");
    let left = text.replace(&format!("{line}\n"), &format!("{new}\n"));
    (json!({ "path": path, "edits": [{ "oldText": line, "newText": new }] }), left)
}

/// The answer of a model that edits, and its result, as the harness keeps them.
fn edited(chat: &mut Chat, id: &str, args: &Value) {
    chat.calls(id, "edit", args.clone());
    chat.results(id, "edit", "edited", Status::Ok);
}

/// The messages of a harness on a new process that restores its last point; those after it are recorded now.
async fn again(chat: &mut Chat, bench: &Bench, point: &Point) -> Engine {
    let engine = bench.open("s").await;
    engine.restore(&SessionId::new("s").unwrap(), point.tx, Some(point.times)).await.unwrap();
    engine.resync(chat.messages.clone(), point.length, &chat.call()).await.unwrap();
    chat.told = chat.messages.len();
    chat.engine = engine.clone();
    engine
}

/// The state that a harness keeps to restore a point.
struct Point {
    length: usize,
    tx: context_model::time::TxId,
    times: [context_model::time::Timestamp; 2],
}

/// The harness hands over new messages, and keeps the point and the notices for the model.
async fn advance(chat: &mut Chat) -> (Point, Vec<String>) {
    let length = chat.messages.len();
    let plan = chat.advance().await;
    let (tx, times) = plan.point.unwrap();
    (Point { length, tx, times }, plan.notices)
}

/// The process may end before its harness has stored a notice: the next one is not that.
#[tokio::test(flavor = "multi_thread")]
async fn lost_notice_is_not_taken_for_the_next_one() {
    let (bench, mut chat, path) = has_read(lines(9)).await;
    chat.done();
    fs::remove_file(&path).unwrap();
    chat.engine.reconcile().await.unwrap();
    let (point, told) = advance(&mut chat).await;
    assert!(told[0].ends_with(" deleted"), "{told:?}");
    // The notice is lost with the process, and then the file is there again.
    fs::write(&path, lines(5)).unwrap();
    again(&mut chat, &bench, &point).await.reconcile().await.unwrap();
    let (point, told) = advance(&mut chat).await;
    assert!(told[0].ends_with(" +0 -4"), "{told:?}");
    chat.say(json!({ "role": "custom", "content": told[0] }));
    fs::remove_file(&path).unwrap();
    again(&mut chat, &bench, &point).await.reconcile().await.unwrap();
    let (_, told) = advance(&mut chat).await;
    assert!(told.len() == 1 && told[0].ends_with(" deleted"), "{told:?}");
}

/// The text that the edit left was never stored, and the later version also has the edited line.
#[tokio::test(flavor = "multi_thread")]
async fn unstored_edit_is_applied_to_the_text_that_was_read() {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let path = bench.write("a.txt", lines(9));
    chat.user("read, then edit");
    chat.read("one", &path, None).await;
    let (point, _) = advance(&mut chat).await;
    let (args, left) = edit(&path, &lines(9), "line 3");
    edited(&mut chat, "two", &args);
    let other = bench.open("other").await;
    for text in ["another text\n".to_owned(), left + "one more\n"] {
        fs::write(&path, &text).unwrap();
        other.index_file(&path, Some(text.into_bytes()), None).await.unwrap();
    }
    again(&mut chat, &bench, &point).await;
    let (_, told) = advance(&mut chat).await;
    assert!(told.len() == 1 && told[0].ends_with(" +1 -0"), "{told:?}");
}

/// A version that has the edited line like the one before it is a later one.
#[tokio::test(flavor = "multi_thread")]
async fn edit_belongs_to_the_version_where_its_text_first_occurs() {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let text = lines(9);
    let path = bench.write("a.txt", text.replace("line 2\n", "line two\n"));
    let other = bench.open("other").await;
    other.index_file(&path, None, None).await.unwrap();
    chat.user("edit");
    let (point, _) = advance(&mut chat).await;
    let (args, left) = edit(&path, &text, "line 8");
    edited(&mut chat, "one", &args);
    for text in [&left, &left.replace("line 5\n", "line five\n")] {
        fs::write(&path, text).unwrap();
        chat.engine.index_written(&path, Some(text.clone().into_bytes()), None).await.unwrap();
    }
    let engine = again(&mut chat, &bench, &point).await;
    let refusal = engine.check_edit(&path).await.unwrap().unwrap();
    assert!(refusal.contains("\n+line five\n") && !refusal.contains("+line 2"), "{refusal}");
}

/// A change from others before the call was recorded is not part of the text that the model has written.
#[tokio::test(flavor = "multi_thread")]
async fn change_stored_with_an_edit_is_unknown_after_a_restart() {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let path = bench.write("a.txt", lines(9));
    chat.asks("edit").await;
    let (args, left) = edit(&path, &lines(9), "line 3");
    fs::write(&path, &left).unwrap();
    chat.engine.index_written(&path, Some(left.clone().into_bytes()), None).await.unwrap();
    fs::write(&path, left + "one more\n").unwrap();
    chat.engine.receive(tool("one", "edit", args.clone(), "edited")).await.unwrap();
    edited(&mut chat, "one", &args);
    let (point, _) = advance(&mut chat).await;
    let live = chat.engine.check_edit(&path).await.unwrap().unwrap();
    assert!(live.contains("\n+one more\n"), "{live}");
    let engine = again(&mut chat, &bench, &point).await;
    assert_eq!(engine.check_edit(&path).await.unwrap(), Some(live));
}

/// An answer that points to some lines says of these alone that they are as they are.
#[tokio::test(flavor = "multi_thread")]
async fn lines_that_an_answer_points_to_say_nothing_of_the_rest() {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let path = bench.write("a.txt", lines(60));
    chat.user("read");
    chat.read("one", &path, Some((5, 3))).await;
    chat.advance().await;
    let new = lines(60).replace("line 12\n", "line twelve\n").replace("line 40\n", "");
    fs::write(&path, new).unwrap();
    chat.read("two", &path, Some((10, 25))).await;
    chat.advance().await;
    let pointer = chat.read("three", &path, Some((10, 25))).await;
    assert!(pointer.starts_with("unchanged: lines 10-34"), "{pointer}");
    chat.done();
    let (point, _) = advance(&mut chat).await;
    let engine = again(&mut chat, &bench, &point).await;
    let refusal = engine.check_edit(&path).await.unwrap().unwrap();
    assert!(refusal.contains("\n-line 40\n"), "{refusal}");
}
