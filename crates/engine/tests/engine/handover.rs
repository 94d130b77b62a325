//! A hand-over in which the store fails, at each of its calls: the same once more leads to what an untroubled one leads to.

use context_engine::Plan;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Status;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench};
use crate::chat::Chat;
use crate::stepped::{Incident, stepped};
use crate::truth::lines;

/// The hand-overs of a conversation.
const HANDOVERS: usize = 7;

/// Says what is new before a hand-over.
async fn say(bench: &Bench, chat: &mut Chat, number: usize) {
    let at = chat.now_ms as f64;
    match number {
        0 => {
            chat.say(json!({ "role": "system", "content": "rules" }));
            chat.user("read and write");
        }
        1 => {
            // A provider that repeats its call IDs within one answer.
            let both = ["b.txt", "c.txt"].map(|name| {
                let args = json!({ "path": name, "content": lines(name, 200) });
                json!({ "type": "toolCall", "id": "same", "name": "write", "arguments": args })
            });
            let usage = json!({ "input": 5_000, "cacheRead": 100 });
            chat.say(json!({ "role": "assistant", "content": both, "timestamp": at, "usage": usage }));
            for name in ["b.txt", "c.txt"] {
                bench.write(name, lines(name, 200));
                chat.results("same", "write", &format!("wrote {name}"), Status::Ok);
            }
            chat.calls("read", "read", json!({ "path": bench.path("a.txt") }));
            chat.results("read", "read", &lines("old", 60), Status::Ok);
            chat.say(json!({ "role": "assistant", "stopReason": "error", "content": [], "timestamp": at }));
        }
        2 => {
            std::fs::write(bench.path("a.txt"), lines("new", 60)).unwrap();
            chat.calls("make", "bash", json!({ "command": "make" }));
            chat.results("make", "bash", &lines("built", 1_500), Status::Fail);
            chat.calls("far", "read", json!({ "path": bench.path("far.txt") }));
            chat.results("far", "read", &lines("far", 30), Status::Ok);
            let text = json!([{ "type": "text", "text": lines("said before", 400) }]);
            chat.say(json!({ "role": "assistant", "content": text, "unsent": true }));
            chat.say(json!({ "role": "custom", "content": "by an extension" }));
        }
        _ => {
            match number {
                3 => {
                    // Another client has stored what was read of a file that was not there, and a change of it.
                    let other = bench.open("other").await;
                    for text in ["far", "farther"] {
                        let path = bench.write("far.txt", lines(text, 30));
                        other.index_file(&path, None, None).await.unwrap();
                    }
                }
                4 => {
                    // A tool's write that never comes as a result.
                    let (path, text) = (bench.path("own.txt"), lines("own", 40));
                    bench.write("own.txt", &text);
                    chat.engine.index_written(&path, Some(text.into()), Some("never")).await.unwrap();
                }
                5 => drop(bench.write("own.txt", lines("another's", 40))),
                _ => {}
            }
            chat.done();
            chat.user("on");
            // The cache is gone, so everything may leave.
            chat.now_ms += 3_600_000;
        }
    }
}

/// Returns the outcome of a conversation: its plans, its sets and its record, without what differs between two directories.
async fn outcome(fails: Option<(usize, i64)>) -> (Vec<String>, bool) {
    let bench = Bench::new(Backend::Memory);
    bench.write("a.txt", lines("old", 60));
    let (store, engine) = stepped(&bench, Incident::Full).await;
    let mut chat = Chat::new(engine);
    chat.shortens = true;
    let (mut outcome, mut happened) = (Vec::new(), false);
    for number in 0..HANDOVERS {
        say(&bench, &mut chat, number).await;
        chat.engine.reconcile().await.unwrap();
        if let Some((_, calls)) = fails.filter(|(at, _)| *at == number) {
            store.arm(calls);
            let failed = chat.engine.advance(chat.messages[chat.told..].to_vec(), &chat.call()).await;
            happened = store.disarm();
            if let Ok(plan) = failed {
                chat.told = chat.messages.len();
                outcome.push(text(plan));
                continue;
            }
        }
        outcome.push(text(chat.advance().await));
    }
    let record = bench.latest(&ObjectId::chat(&SessionId::new("s").unwrap())).await.unwrap();
    let sets = chat.engine.session_sets().await.unwrap();
    outcome.push(format!("{sets:?}"));
    outcome.push(serde_json::to_string_pretty(&without_evidence(record.field("turns").unwrap())).unwrap());
    outcome.push(format!("{:?}", chat.engine.receipts().await.unwrap()));
    let files: Vec<&ObjectId> = sets.session_index.iter().filter(|id| id.as_str().len() == 64).collect();
    for text in &mut outcome {
        *text = text.replace(&bench.path(""), "");
        for (n, id) in files.iter().enumerate() {
            *text = text.replace(id.as_str(), &format!("file-{n}"));
        }
    }
    // The hash of a notice's line, which names the file.
    let record = &mut outcome[HANDOVERS + 1];
    *record = record.lines().filter(|line| !line.contains("\"line\"")).collect::<Vec<_>>().join("\n");
    (outcome, happened)
}

/// The turns of a chat without what was found out of its results, which may be recorded with the results, too. Notices of two files
/// come in the order of their IDs, which are those of their directory.
fn without_evidence(value: &Value) -> Value {
    match value {
        Value::Array(all) => {
            let left = all.iter().filter(|one| one.get("evidence").is_none());
            let mut left: Vec<Value> = left.map(without_evidence).collect();
            if left.iter().all(|one| one.get("path").is_some()) {
                left.sort_by_key(|one| one["path"].to_string());
            }
            left.into()
        }
        Value::Object(all) => all.iter().map(|(name, one)| (name.clone(), without_evidence(one))).collect(),
        _ => value.clone(),
    }
}

fn text(plan: Plan) -> String {
    let named = |line: &String| line.split_once(" path=").unwrap().1.to_owned();
    let mut notices: Vec<String> = plan.notices.iter().map(named).collect();
    notices.sort();
    format!("{:#?}", Plan { point: None, notices, ..plan })
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn hand_over_that_failed_comes_to_the_same_once_more(#[values(0, 1, 2, 3, 4, 5, 6)] number: usize) {
    let (untroubled, _) = outcome(None).await;
    for calls in 0.. {
        let (troubled, happened) = outcome(Some((number, calls))).await;
        for (troubled, untroubled) in troubled.iter().zip(&untroubled) {
            assert_eq!(troubled, untroubled, "hand-over {number}, which fails after {calls} calls");
        }
        if !happened {
            assert!(calls > 3, "{calls}");
            break;
        }
    }
}
