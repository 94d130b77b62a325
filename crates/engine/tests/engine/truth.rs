//! A session's notices about files report all changes by others, and only true ones.

use std::fs;
use std::sync::Arc;

use context_engine::{Call, Engine, Options};
use context_model::id::{ObjectId, SessionId};
use context_model::object::Status;
use context_store::Store;
use context_watch::Event;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench, watching};
use crate::chat::{Chat, has_read};
use crate::lost::Told;
use crate::stepped::{Incident, Stepped, stepped};
use crate::watching::events;

pub fn lines(prefix: &str, count: usize) -> String {
    (1..=count).map(|n| format!("{prefix} line {n}\n")).collect()
}

pub async fn chat(bench: &Bench, session: &str) -> Chat {
    let options = Options { store: bench.second_store(), ..bench.options(session) };
    Chat::new(Engine::open(options).await.unwrap())
}

/// Two sessions on one store change each other's file in turns: each hears of each change of the other, once.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_hear_all_of_each_other(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let path = bench.write("shared.txt", lines("first", 40));
    let mut chats = [chat(&bench, "one").await, chat(&bench, "two").await];
    for (n, chat) in chats.iter_mut().enumerate() {
        chat.user("read it");
        assert_eq!(chat.read(&format!("read_{n}"), &path, None).await, lines("first", 40));
        chat.ends().await;
    }
    for round in 0..40 {
        let (writer, reader) = (round % 2, (round + 1) % 2);
        let new = lines(&format!("round {round}"), 40);
        fs::write(&path, &new).unwrap();
        // The writer gets no notice; the reader gets one, and reads the new text.
        let written =
            chats[writer].engine.index_written(&path, Some(new.clone().into_bytes()), None).await.unwrap();
        assert_eq!(chats[writer].turn("next.").await.notices, Vec::<String>::new(), "round {round}");
        // A session's own write that changes nothing must not hide the other session's write.
        chats[reader].engine.set_system_prompt(&format!("round {round}")).await.unwrap();
        chats[reader].engine.set_system_prompt(&format!("round {round}")).await.unwrap();
        let plan = chats[reader].turn("next.").await;
        assert_eq!(plan.notices.len(), 1, "round {round}: {:?}", plan.notices);
        assert!(plan.notices[0].starts_with("stale id=") && plan.notices[0].ends_with("+40 -40"));
        assert_eq!(chats[reader].turn("again").await.notices, Vec::<String>::new());
        chats[reader].user("read it again");
        let read = chats[reader].read(&format!("read_{round}_{reader}"), &path, None).await;
        assert_eq!(read, new, "round {round}: {}", written.id);
        chats[reader].done();
        chats[reader].advance().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rereading_a_part_does_not_hide_the_rest() {
    let (_bench, mut chat, path) = has_read(lines("old", 60)).await;
    let changed = lines("old", 60).replace("old line 50\n", "new line 50\n");
    fs::write(&path, &changed).unwrap();
    assert_eq!(
        chat.read("two", &path, Some((1, 5))).await,
        changed.lines().take(5).collect::<Vec<_>>().join("\n")
    );
    chat.ends().await;
    assert!(chat.notices.len() == 1 && chat.notices[0].ends_with("+1 -1"), "{:?}", chat.notices);
    assert!(chat.engine.check_edit(&path).await.unwrap().is_some(), "line 50 is not known yet");
    assert_eq!(chat.engine.check_edit(&path).await.unwrap(), None, "the refusal has told it");
}

#[tokio::test(flavor = "multi_thread")]
async fn part_with_all_new_lines_makes_the_version_known() {
    let (_bench, mut chat, path) = has_read(lines("old", 60)).await;
    fs::write(&path, lines("old", 60).replace("old line 50\n", "new line 50\n")).unwrap();
    chat.read("two", &path, Some((45, 10))).await;
    chat.ends().await;
    assert_eq!(chat.notices.len(), 1, "before the read it was news");
    assert_eq!(chat.engine.check_edit(&path).await.unwrap(), None);
}

/// Bytes that are no text are not a file that is gone, and are no text to compare with.
#[tokio::test(flavor = "multi_thread")]
async fn file_that_became_binary_is_not_called_deleted() {
    let (_bench, mut chat, path) = has_read(lines("old", 60)).await;
    for (bytes, what) in [(&b"\0\x01"[..], " changed"), (b"\0\x02", " changed"), (b"now\n", " +1 -60")] {
        chat.hears_of(&path, bytes, what).await;
    }
    fs::remove_file(&path).unwrap();
    chat.hears(" deleted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_holds_for_the_present_disk() {
    let (_bench, chat, path) = has_read(lines("old", 60)).await;
    chat.engine.index_file(&path, None, None).await.unwrap();
    // Between the look and the answer.
    fs::write(&path, lines("all new", 60)).unwrap();
    let answer = chat.engine.answer_read(&path, None, None, None).await.unwrap();
    assert!(answer.is_none_or(|answer| !answer.text.starts_with("unchanged")));
}

#[rstest]
#[case(Some(150), None)]
#[case(Some(1_000_000), Some(5))]
#[case(None, Some(0))]
#[tokio::test(flavor = "multi_thread")]
async fn read_past_the_end_is_left_to_the_tool(#[case] offset: Option<usize>, #[case] limit: Option<usize>) {
    let (_bench, mut chat, path) = has_read(lines("a", 99)).await;
    chat.ends().await;
    assert_eq!(chat.engine.answer_read(&path, offset, limit, None).await.unwrap(), None);
}

#[rstest]
#[case::of_a_kind_of_its_own("custom")]
#[case::as_a_users("user")]
#[tokio::test(flavor = "multi_thread")]
async fn change_during_a_pause_is_announced_once_at_the_resume(#[case] role: &str) {
    let (bench, mut chat, path) = has_read(lines("old", 60)).await;
    chat.ends().await;
    chat.engine.close().await.unwrap();
    fs::write(&path, lines("new", 60)).unwrap();

    chat.resync(bench.open("s").await, chat.messages.len()).await;
    let notice = chat.is_told("").await;
    // The harness keeps the notice as a message; a third process does not say it again.
    chat.say(json!({ "role": "custom", "content": notice }));
    chat.advance().await;
    let kept = chat.messages.len() - 1;
    chat.messages[kept].message["role"] = role.into();
    chat.restart(&bench).await;
    assert_eq!(chat.turn("on").await.notices, Vec::<String>::new());
    chat.engine.close().await.unwrap();
    // If the harness did not keep the notice, the model has not heard it. A user's words with the same line do not count as a
    // notice.
    match role {
        "user" => chat.messages[kept].message["content"] = format!("What is this?\n{notice}").into(),
        _ => drop(chat.messages.remove(kept)),
    }
    chat.restart(&bench).await;
    assert_eq!(chat.turn("on").await.notices.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_notice_comes_with_the_next_plan() {
    let bench = Bench::new(Memory);
    let path = bench.write("a.txt", lines("old", 60));
    let (store, engine) = stepped(&bench, Incident::Full).await;
    let mut chat = Chat::new(engine);
    chat.user("read");
    chat.read("one", &path, None).await;
    chat.ends().await;
    fs::write(&path, lines("new", 60)).unwrap();
    let other = bench.open("other").await;
    other.index_file(&path, None, None).await.unwrap();
    let mut failures = 0;
    for calls in 0.. {
        store.arm(calls);
        let notices = chat.engine.stale_notices().await;
        if store.disarm() {
            failures += 1;
            assert!(notices.is_err(), "after {calls} calls");
            continue;
        }
        assert_eq!(notices.unwrap().len(), 1, "after {failures} failures");
        break;
    }
    assert!(failures > 3, "{failures}");
}

/// Nothing is told, or recorded as told, where nothing may be added; the next open place gets what is true then.
#[rstest]
#[case::changed_twice(&["middle", "new"], Some("+60 -60"))]
#[case::changed_back(&["middle", "old"], None)]
#[tokio::test(flavor = "multi_thread")]
async fn closed_place_keeps_the_notice_for_an_open_one(#[case] texts: &[&str], #[case] end: Option<&str>) {
    let (bench, mut chat, path) = has_read(lines("old", 60)).await;
    chat.ends().await;
    for text in texts {
        fs::write(&path, lines(text, 60)).unwrap();
        chat.engine.reconcile().await.unwrap();
        let closed = Call { closed: true, place: Some("end".into()), ..chat.call() };
        assert_eq!(chat.engine.advance(Vec::new(), &closed).await.unwrap().notices, Vec::<String>::new());
    }
    let recorded = bench.latest(&ObjectId::chat(&SessionId::new("s").unwrap())).await.unwrap();
    assert!(!recorded.field("turns").unwrap().to_string().contains("\"notices\""), "{recorded:?}");
    match end {
        Some(end) => assert!(chat.is_told(end).await.starts_with("stale id=")),
        None => chat.hears_nothing().await,
    }
    chat.hears_nothing().await;
}

/// Wherever a hand-over fails, reading all messages again records everything once, in its order.
#[tokio::test(flavor = "multi_thread")]
async fn failed_hand_over_loses_and_doubles_nothing_in_a_rebuild() {
    let mut calls = 0;
    loop {
        let bench = Bench::new(Memory);
        let (store, engine) = stepped(&bench, Incident::Full).await;
        let mut chat = Chat::new(engine);
        chat.asks("first").await;
        let handed = chat.messages.len();
        chat.calls("c", "x", json!({}));
        chat.results("c", "x", "output", Status::Ok);
        chat.done();
        chat.user("second");
        let new = chat.messages[handed..].to_vec();
        store.arm(calls);
        let outcome = chat.engine.advance(new, &chat.call()).await;
        let failed = store.disarm();
        assert_eq!(outcome.is_err(), failed);
        if failed {
            chat.engine.resync(chat.messages.clone(), handed, &chat.call()).await.unwrap();
        }
        let turns = bench.latest(&ObjectId::chat(&SessionId::new("s").unwrap())).await.unwrap();
        let turns = turns.field("turns").unwrap().as_array().unwrap().clone();
        let users: Vec<&Value> = turns.iter().map(|turn| &turn["user"]).collect();
        assert_eq!(users, ["first", "second"], "after {calls} calls");
        assert_eq!(turns[0]["assistant"].as_array().unwrap().len(), 2, "after {calls} calls");
        assert_eq!(turns[0]["toolcall_ids"], json!(["c"]), "after {calls} calls");
        if !failed {
            break;
        }
        calls += 1;
    }
    assert!(calls > 5, "{calls}");
}

#[tokio::test(flavor = "multi_thread")]
async fn double_unsubscribe_is_harmless() {
    let (bench, engine) = watching(Sqlite).await;
    let path = bench.write("a.txt", "one");
    engine.index_file(&path, None, None).await.unwrap();
    let first = engine.subscribe(|_| {});
    engine.unsubscribe(first);
    let heard = events(&engine);
    engine.unsubscribe(first);
    fs::write(&path, "two").unwrap();
    engine.flush().await.unwrap();
    assert_eq!(heard.lock().unwrap().len(), 1);
}

/// A change that comes while the store takes no writes is stored once it does again.
#[tokio::test(flavor = "multi_thread")]
async fn unstored_change_is_not_forgotten() {
    let bench = Bench::new(Sqlite);
    let store = Stepped::new(Arc::clone(&bench.store), Incident::Full);
    let options = Options { watch: true, store: Arc::clone(&store) as Arc<dyn Store>, ..bench.options("s") };
    let engine = Engine::open(options).await.unwrap();
    let path = bench.write("a.txt", "one");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    let (told, failed) = std::sync::mpsc::channel();
    engine.subscribe(move |event| drop(told.send(event.clone())));
    store.arm(0);
    fs::write(&path, "two").unwrap();
    // The event has come, and its look has failed.
    let warning = failed.recv_timeout(crate::bench::GENEROUS).unwrap();
    assert!(warning.path.contains("could not be indexed yet"), "{warning:?}");
    assert!(store.disarm());
    engine.flush().await.unwrap();
    assert_eq!(bench.contents(&id).await.last().unwrap().as_deref(), Some("two"));
}

/// A log that grows has few versions while no client reads it, and its last text at each read.
#[tokio::test(flavor = "multi_thread")]
async fn a_growing_log_does_not_fill_the_store() {
    let bench = Bench::new(Sqlite);
    let told = Told::new(false);
    // So slow a pace that the file rests throughout the test, also on a busy machine.
    let options = Options { watch: true, tracker: Some(told.start()), pace: 1, ..bench.options("s") };
    let engine = Engine::open(options).await.unwrap();
    let mut text = lines("a log", 20_000);
    let path = bench.write("server.log", &text);
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    for n in 0..40 {
        text.push_str(&format!("entry {n}\n"));
        fs::write(&path, &text).unwrap();
        told.tell(Event::Changed(vec![path.clone().into()]));
    }
    engine.flush().await.unwrap();
    let versions = bench.contents(&id).await;
    assert!(versions.len() <= 4, "{} versions", versions.len());
    assert_eq!(versions.last().unwrap().as_deref(), Some(text.as_str()));
}
