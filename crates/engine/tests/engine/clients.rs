//! Many clients on one store, each with a separate connection, as in separate processes.

use std::sync::Arc;

use context_engine::{Engine, FileEventKind, Options};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::index::Action;
use context_model::object::Document;
use context_model::source::{FilesystemSource, Source};
use context_store::{Store, Transaction, Write};
use rstest::rstest;
use serde_json::Value;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench, answer, call, check, user};
use crate::stepped::{Incident, Stepped, stepped};
use crate::watching::events;

/// Two clients with a session each.
async fn two(bench: &Bench, sessions: [&str; 2], watch: bool) -> [Engine; 2] {
    let one = Engine::open(Options { watch, ..bench.options(sessions[0]) }).await.unwrap();
    let options = Options { watch, store: bench.second_store(), ..bench.options(sessions[1]) };
    [one, Engine::open(options).await.unwrap()]
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn sessions_share_objects_and_nothing_else(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let [one, two] = two(&bench, ["one", "two"], false).await;
    let path = bench.write("a", "x");
    let id = one.index_file(&path, None, None).await.unwrap().id;
    one.append_turn(user("only one")).await.unwrap();
    one.record_toolcall(call("call_1", "x")).await.unwrap();
    one.pin(id.as_str()).await.unwrap();

    let sets = two.session_sets().await.unwrap();
    assert!(sets.session_index.is_empty() && sets.pinned_set.is_empty());
    assert_eq!(two.assemble().await.unwrap().text(), "");
    let result = two.index_file(&path, None, None).await.unwrap();
    assert_eq!((result.action, &result.id), (Action::Unchanged, &id), "the same object, the same version");
    two.deactivate(id.as_str()).await.unwrap();
    assert_eq!(one.session_sets().await.unwrap().active_set, [id.clone(), ObjectId::new("call_1")]);
    assert_eq!(bench.versions(&id).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn change_seen_by_two_clients_makes_one_version() {
    // Not on the memory store: it has no place for markers, so a flush there does not wait for events that are under way,
    // and the event of one change may lead to a read in the middle of the next.
    let bench = Bench::new(Sqlite);
    let [one, two] = two(&bench, ["one", "two"], true).await;
    let path = bench.write("a", "0");
    let id = one.index_file(&path, None, None).await.unwrap().id;
    two.index_file(&path, None, None).await.unwrap();
    let heard = [events(&one), events(&two)];
    for n in 1..=40 {
        // Put in place in one step: a file that is written in place is empty for a moment.
        bench.write("new", n.to_string());
        std::fs::rename(bench.path("new"), &path).unwrap();
        let (a, b) = tokio::join!(one.flush(), two.flush());
        a.and(b).unwrap();
        assert_eq!(bench.contents(&id).await.len(), n + 1, "{:?}", bench.contents(&id).await);
        assert_eq!(bench.latest(&id).await.unwrap().content(), Some(n.to_string().as_str()));
    }
    for (engine, heard) in [&one, &two].into_iter().zip(heard) {
        // The other client's versions are known at the latest with the next turn.
        engine.append_turn(user("next")).await.unwrap();
        let heard = heard.lock().unwrap();
        let kinds: Vec<_> = heard.iter().filter(|e| e.id.as_ref() == Some(&id)).map(|e| e.kind).collect();
        assert_eq!(kinds, [FileEventKind::Indexed(Action::Updated); 40], "each change once");
    }
}

/// A client reads a file and is held up until the file has changed and another client has stored the change: the text that it
/// read must not become the latest version.
#[rstest]
#[case::the_file_was_known(true, 0)]
#[case::it_was_not(false, 0)]
#[case::heard_of_late(false, 1)]
#[case::stored_between_the_last_question_and_the_write(true, 1)]
#[tokio::test(flavor = "multi_thread")]
async fn earlier_look_does_not_replace_a_later_one(
    #[values(Memory, Sqlite)] backend: Backend,
    #[values(false, true)] many: bool,
    #[case] known: bool,
    #[case] calls: i64,
) {
    let bench = Bench::new(backend);
    let path = bench.write("a", "first");
    let later = version(&bench, "a", "later").await;
    let id = later.id().clone();
    let transaction = Transaction { writes: vec![Write::put(later)], expected: Vec::new() };
    let incident = Incident::Change(path.clone().into(), "later".into(), transaction);
    let (store, engine) = stepped(&bench, incident).await;
    if known {
        engine.index_file(&path, None, None).await.unwrap();
    }
    bench.write("a", "earlier");
    store.arm(calls);
    let action = if many {
        engine.index_files(vec![path]).await.unwrap().results[0].action
    } else {
        engine.index_file(&path, None, None).await.unwrap().action
    };
    assert!(store.disarm());
    assert_eq!(action, Action::Unchanged);
    let contents: Vec<_> = bench.contents(&id).await.into_iter().flatten().collect();
    assert_eq!(contents, if known { vec!["first", "later"] } else { vec!["later"] });
}

/// The version of a file that another client would store.
async fn version(bench: &Bench, name: &str, text: &str) -> Document {
    let known = bench.open("elsewhere").await.index_file(&bench.write("b", ""), None, None).await.unwrap().id;
    let Some(Source::Filesystem(known)) = bench.latest(&known).await.unwrap().source().cloned() else {
        panic!()
    };
    let source = FilesystemSource { path: known.path.replace("/b", &format!("/{name}")), ..known };
    Document::file(source, Some(text.into()), Some(Digest::of(text.as_bytes())))
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn different_writes_at_once_both_succeed_as_versions(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let [one, two] = two(&bench, ["one", "two"], false).await;
    let mut expected = 0;
    for n in 0..20 {
        let (a, b) = (format!("a{n}").into_bytes(), format!("b{n}").into_bytes());
        let (a, b) = tokio::join!(one.index_file("/x", Some(a), None), two.index_file("/x", Some(b), None));
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!(a.id, b.id);
        expected += 2;
        let versions = bench.versions(&a.id).await;
        assert_eq!(versions.len(), expected);
        let texts: Vec<_> =
            versions[expected - 2..].iter().map(|v| v.content().unwrap().to_owned()).collect();
        assert!(texts.contains(&format!("a{n}")) && texts.contains(&format!("b{n}")), "{texts:?}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn each_sees_the_others_writes_at_its_next_turn(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let [one, two] = two(&bench, ["one", "two"], false).await;
    let path = bench.write("a", "old");
    one.index_file(&path, None, None).await.unwrap();
    two.index_file(&path, None, None).await.unwrap();
    bench.write("a", "changed by one");
    one.index_file(&path, None, None).await.unwrap();
    two.append_turn(user("next")).await.unwrap();
    let view = two.assemble().await.unwrap();
    assert!(view.metadata_pool().contains("char_count=14"), "{}", view.metadata_pool());
    assert_eq!(view.blocks().next().unwrap().content, "changed by one");
    assert_eq!(two.index_file(&path, None, None).await.unwrap().action, Action::Unchanged);
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_session_sees_concurrent_writes() {
    for place in 0.. {
        let bench = Bench::new(Memory);
        // A place without a file, so that only the store has its content.
        let path = "/elsewhere/a";
        let id = {
            let engine = bench.open("s").await;
            engine.index_file(path, Some(b"old".to_vec()), None).await.unwrap().id
        };
        let newer = bench.latest(&id).await.unwrap();
        let newer = Document::file(
            newer.source().unwrap().as_filesystem().unwrap().clone(),
            Some("newer".into()),
            None,
        );
        let transaction = Transaction { writes: vec![Write::put(newer)], expected: Vec::new() };
        let store = Stepped::new(Arc::clone(&bench.store), Incident::Write(transaction));
        store.arm(place);
        let options = Options { store: Arc::clone(&store) as Arc<dyn Store>, ..bench.options("s") };
        let engine = Engine::open(options).await.unwrap();
        if !store.disarm() {
            assert!(place > 3, "{place}");
            break;
        }
        engine.append_turn(user("next")).await.unwrap();
        let view = engine.assemble().await.unwrap();
        assert!(view.metadata_pool().ends_with("char_count=5"), "at {place}: {}", view.metadata_pool());
        assert_eq!(view.blocks().next().unwrap().content, "newer");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn discovery_does_not_undo_a_read_of_another_client(#[values(Memory, Sqlite)] backend: Backend) {
    for place in 0.. {
        let bench = Bench::new(backend);
        let read = version(&bench, "f", "text").await;
        let id = read.id().clone();
        let transaction = Transaction { writes: vec![Write::put(read)], expected: Vec::new() };
        let (store, engine) = stepped(&bench, Incident::Write(transaction)).await;
        store.arm(place);
        let found = engine.discover(&[bench.write("f", "text")]).await.unwrap();
        assert_eq!(found[0].id, id);
        if !store.disarm() {
            assert!(place > 0, "nothing is in between");
            break;
        }
        assert_eq!(bench.latest(&id).await.unwrap().content(), Some("text"), "at {place}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_session_opened_twice_loses_nothing(#[values(Memory, Sqlite)] backend: Backend) {
    const STEPS: usize = 15;
    let bench = Bench::new(backend);
    let engines = two(&bench, ["s", "s"], false).await;
    let mut tasks = Vec::new();
    for (who, engine) in engines.iter().cloned().enumerate() {
        tasks.push(tokio::spawn(async move {
            for n in 0..STEPS {
                engine.append_turn(user(&format!("{who} asks {n}"))).await.unwrap();
                engine
                    .record_toolcall(call(&format!("call_{who}_{n}"), &format!("{who} {n}")))
                    .await
                    .unwrap();
                engine.append_turn(answer(&format!("{who} answers {n}"))).await.unwrap();
                engine.index_file(&format!("/f{who}{n}"), Some(b"x".to_vec()), None).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let reopened = bench.open("s").await;
    let sets = reopened.session_sets().await.unwrap();
    check(&sets);
    assert_eq!(sets.session_index.len(), 4 * STEPS);
    let chat = bench.latest(&ObjectId::chat(reopened.session_id())).await.unwrap();
    assert_eq!(chat.field("turn_count"), Some(&Value::from(2 * STEPS)));
    let turns = chat.field("turns").and_then(Value::as_array).unwrap();
    let count = |name: &str| turns.iter().map(|t| t[name].as_array().unwrap().len()).sum::<usize>();
    assert_eq!((turns.len(), count("toolcall_ids"), count("assistant")), (2 * STEPS, 2 * STEPS, 2 * STEPS));
    let text = chat.field("turns").unwrap().to_string();
    for who in 0..2 {
        for n in 0..STEPS {
            assert!(
                text.contains(&format!("\"{who} asks {n}\""))
                    && text.contains(&format!("{who} answers {n}\""))
            );
            assert!(sets.session_index.contains(&ObjectId::new(format!("call_{who}_{n}"))));
        }
    }
    // Both catch up with what the other did.
    for engine in &engines {
        engine.append_turn(user("last")).await.unwrap();
    }
    engines[0].pin("call_1_0").await.unwrap();
    let (a, b) =
        (engines[0].session_sets().await.unwrap(), bench.open("s").await.session_sets().await.unwrap());
    assert_eq!(a, b);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_opened_by_many_at_once_is_one_session(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Arc::new(Bench::new(backend));
    for round in 0..10 {
        let session = format!("s{round}");
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let options = Options {
                store: bench.second_store(),
                system_prompt: Some("You help.".into()),
                ..bench.options(&session)
            };
            tasks.push(tokio::spawn(Engine::open(options)));
        }
        for task in tasks {
            let engine = task.await.unwrap().unwrap();
            assert_eq!(engine.assemble().await.unwrap().text(), "You help.");
        }
        for (id, versions) in [(format!("session:{session}"), 1), (format!("chat:{session}"), 1)] {
            assert_eq!(bench.versions(&ObjectId::new(id)).await.len(), versions);
        }
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn client_records_the_reversal_of_a_missed_change(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let [one, two] = two(&bench, ["one", "two"], false).await;
    let path = bench.write("a", "A");
    let id = two.index_file(&path, None, None).await.unwrap().id;
    bench.write("a", "B");
    one.index_file(&path, None, None).await.unwrap();
    bench.write("a", "A");
    // The content that this client knows of the file is there again; the store's latest version is another one.
    assert_eq!(two.index_file(&path, None, None).await.unwrap().action, Action::Updated);
    let texts = ["A", "B", "A"].map(|text| Some(text.to_owned()));
    assert_eq!(bench.contents(&id).await, texts);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn turns_that_two_processes_begin_are_counted_each(#[values(Memory, Sqlite)] backend: Backend) {
    const TURNS: usize = 20;
    let bench = Bench::new(backend);
    let engines = two(&bench, ["s", "s"], false).await;
    let tasks = engines.iter().cloned().map(|engine| {
        tokio::spawn(async move {
            for n in 0..TURNS {
                engine.append_turn(user(&n.to_string())).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let chat = bench.versions(&ObjectId::chat(engines[0].session_id())).await;
    for version in &chat {
        let turns = version.field("turns").and_then(Value::as_array).unwrap();
        assert_eq!(version.field("turn_count"), Some(&Value::from(turns.len())));
    }
    assert_eq!(chat.len(), 2 * TURNS + 1);
}
