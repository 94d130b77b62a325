//! A host that puts a summary in place of older messages: the remaining messages keep their meaning, and statements about the
//! removed part are true before and after, so that they stay as they are.

use std::fs;

use context_engine::{IncomingMessage, Part, Plan};
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend;
use crate::chat::{Chat, has_read};

pub fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

/// The place of the answer that makes a call.
fn answer_with(chat: &Chat, id: &str) -> usize {
    chat.messages.iter().position(|one| one.message["content"][0]["id"] == id).unwrap()
}

/// The host keeps the messages from a place on. Gives the next plan.
async fn compact(chat: &mut Chat, first: usize) -> Plan {
    chat.advance().await;
    chat.now_ms += 1;
    let summary = json!({ "role": "compactionSummary", "summary": "so far", "timestamp": chat.now_ms });
    chat.messages.splice(..first, [IncomingMessage { key: "summary".into(), message: summary }]);
    chat.reads_again().await;
    chat.advance().await
}

/// The file changes, and the harness keeps the notices of the plan.
async fn change(chat: &mut Chat, path: &str, text: &str) -> Vec<String> {
    fs::write(path, text).unwrap();
    chat.engine.reconcile().await.unwrap();
    let told = chat.advance().await.notices;
    for line in &told {
        chat.say(json!({ "role": "custom", "content": line }));
    }
    told
}

/// The first of the notices that are left is not the first that there was.
#[tokio::test(flavor = "multi_thread")]
async fn notice_is_found_by_its_name_after_removals() {
    let (_bench, mut chat, path) = has_read(lines(9)).await;
    assert_eq!(change(&mut chat, &path, &lines(5)).await.len(), 1);
    fs::write(&path, lines(12)).unwrap();
    chat.user("read again");
    chat.read("two", &path, None).await;
    assert_eq!(change(&mut chat, &path, &lines(20)).await.len(), 1);
    chat.done();
    let first = answer_with(&chat, "two");
    assert_eq!(compact(&mut chat, first).await.notices, [""; 0]);
    // The version of the notice that has left.
    let told = change(&mut chat, &path, &lines(5)).await;
    assert!(told.len() == 1 && told[0].ends_with(" +0 -7"), "{told:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn answer_to_removed_lines_stays_and_they_can_be_read(#[values(true, false)] may_collapse: bool) {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    chat.rolls = may_collapse;
    let path = bench.write("a.txt", lines(60));
    chat.user("read");
    chat.read("one", &path, None).await;
    chat.advance().await;
    let pointer = chat.read("two", &path, Some((5, 9))).await;
    let words = ["unchanged: lines 5-13 of ", "; read them again if gone"];
    assert!(words.iter().all(|part| pointer.contains(part)), "{pointer}");
    chat.done();
    let first = answer_with(&chat, "two");
    assert_eq!(compact(&mut chat, first).await.edits, []);
    chat.reads_again().await;
    assert_eq!(chat.advance().await.edits, []);
    assert_eq!(chat.engine.check_edit(&path).await.unwrap(), None);
    fs::write(&path, lines(61)).unwrap();
    assert_eq!(chat.engine.check_edit(&path).await.unwrap(), None);
    assert_eq!(chat.read("three", &path, None).await, lines(61));
}

/// As long as the result is there in any form, its name is where the answer says.
#[tokio::test(flavor = "multi_thread")]
async fn answer_to_present_lines_stays_as_it_is() {
    let (_bench, mut chat, path) = has_read(lines(60)).await;
    chat.advance().await;
    chat.read("two", &path, Some((5, 9))).await;
    chat.done();
    let first = answer_with(&chat, "one");
    assert_eq!(compact(&mut chat, first).await.edits, []);
    let asked = async || chat.engine.answer_read(&path, Some(5), Some(9), None).await.unwrap();
    assert_eq!(asked().await, None, "the last read was answered so");
    let answer = asked().await.unwrap();
    assert!(answer.text.starts_with("unchanged: lines 5-13 of "), "{}", answer.text);
}

/// The model may continue from the version to which a difference led.
#[tokio::test(flavor = "multi_thread")]
async fn difference_leads_to_its_version_without_its_beginning() {
    let (_bench, mut chat, path) = has_read(lines(60)).await;
    fs::write(&path, lines(61)).unwrap();
    chat.advance().await;
    let told = chat.read("two", &path, None).await;
    assert!(told.contains("\n+line 61\n"), "{told}");
    chat.done();
    let first = answer_with(&chat, "two");
    assert_eq!(compact(&mut chat, first).await.edits, []);
    assert_eq!(chat.engine.check_edit(&path).await.unwrap(), None);
    fs::write(&path, lines(62)).unwrap();
    let refusal = chat.engine.check_edit(&path).await.unwrap().unwrap();
    assert!(refusal.contains("\n+line 62\n") && !refusal.contains("+line 61"), "{refusal}");
}

/// An activation that pointed to a text stays as it is when the host removes that text, which is then restored.
#[tokio::test(flavor = "multi_thread")]
async fn activation_of_a_removed_text_stays_and_restores_it() {
    let (_bench, mut chat) = Chat::on(Backend::Memory).await;
    chat.user("run");
    chat.run("one", "bash", json!({ "command": "x" }), &lines(60)).await;
    chat.advance().await;
    let change = chat.engine.activate("one", None).await.unwrap();
    let (before, rest) = change.message.split_once("; its text is in the result id=").unwrap();
    assert!(change.visible && before == "one is active", "{}", change.message);
    let (handle, rest) = rest.split_once("; ").unwrap();
    assert_eq!(rest, "activate it again if gone");
    assert!(chat.messages.iter().any(|one| {
        let text = one.message["content"][0]["text"].as_str().unwrap_or_default();
        text.contains(&format!("id={handle}"))
    }));
    // A part is given even where the whole text is above.
    let part = chat.engine.activate("one", Some(Part::Lines(2, 2))).await.unwrap();
    assert_eq!(part.message, "one is active");
    assert!(part.content.is_some_and(|text| text.contains("line 2")));
    chat.run("again", "activate", json!({ "id": "one" }), &change.message).await;
    chat.done();
    let kept = answer_with(&chat, "one");
    assert_eq!(compact(&mut chat, kept).await.edits, []);
    let first = answer_with(&chat, "again");
    assert_eq!(compact(&mut chat, first).await.edits, []);
    let change = chat.engine.activate("one", None).await.unwrap();
    assert!(!change.visible && change.content.as_deref() == Some(&lines(60)), "{}", change.message);
}

/// The text above is another version of the file than the activated one.
#[tokio::test(flavor = "multi_thread")]
async fn activation_points_only_to_the_present_version() {
    let (bench, mut chat) = Chat::on(Backend::Memory).await;
    let path = bench.write("a.txt", lines(60));
    chat.user("look");
    let file = chat.engine.index_file(&path, None, None).await.unwrap().id;
    let args = json!({ "id": file.as_str() });
    chat.run("one", "activate", args.clone(), &lines(60)).await;
    chat.advance().await;
    let change = chat.engine.activate(file.as_str(), None).await.unwrap();
    assert!(change.visible, "{}", change.message);
    // No client has looked since.
    fs::write(&path, lines(61)).unwrap();
    let change = chat.engine.activate(file.as_str(), None).await.unwrap();
    assert_eq!((change.visible, change.content), (false, Some(lines(61))));
    chat.run("two", "activate", args, &lines(61)).await;
    chat.advance().await;
    assert!(chat.engine.activate(file.as_str(), None).await.unwrap().visible);
}

/// A text cut by its tool is not whole, and a result without a name can't be pointed to.
#[tokio::test(flavor = "multi_thread")]
async fn an_activation_does_not_point_to_a_part_or_to_a_result_without_a_name() {
    let (_bench, mut chat) = Chat::on(Backend::Memory).await;
    chat.user("run");
    chat.run("cut", "bash", json!({ "command": "x" }), &lines(300)).await;
    let last = chat.messages.last_mut().unwrap();
    let text = last.message["content"][0]["text"].as_str().unwrap().to_owned();
    let (name, _) = text.split_once('\n').unwrap();
    last.message["content"][0]["text"] = json!(format!("{name}\nline 300\n[Showing the last line]"));
    chat.run("short", "bash", json!({ "command": "y" }), "ok").await;
    chat.advance().await;
    for (id, text) in [("cut", lines(300)), ("short", "ok".to_owned())] {
        let change = chat.engine.activate(id, None).await.unwrap();
        assert_eq!((change.visible, change.content), (false, Some(text)), "{id}");
    }
}
