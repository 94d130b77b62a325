//! A store that fails in the middle: the state in memory is as before, and everything works again afterwards.

use std::sync::Arc;

use context_engine::{Engine, Options, caught};
use context_model::error::ErrorCode;
use context_model::id::ObjectId;
use context_model::object::Toolcall;
use context_model::time::TxId;
use context_store::Store;
use rstest::rstest;
use serde_json::json;

use crate::bench::{Backend, Bench, answer, call, tool, user};
use crate::stepped::{Incident, Stepped, stepped};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Read,
    ReadThroughLink,
    Discover,
    Delete,
    Record,
    RecordRead,
    RecordAgain,
    User,
    Answer,
    Prompt,
    Activate,
    ActivateDiscovered,
    Deactivate,
    Pin,
    Demote,
    Restore,
    GoBack,
    KeepBeginning,
}

/// A name through a link, where a link needs no privilege.
fn through(name: &str) -> String {
    if cfg!(unix) { format!("alias/{name}") } else { name.to_owned() }
}

/// Any answer of the engine; only its failure counts, and the state.
async fn run(
    operation: Operation,
    bench: &Bench,
    engine: &Engine,
    start: TxId,
) -> context_engine::Result<()> {
    let path = |name: &str| bench.path(name);
    match operation {
        Operation::Read => engine.index_file(&path("new"), None, None).await.map(drop),
        Operation::ReadThroughLink => engine.index_file(&path(&through("a")), None, None).await.map(drop),
        Operation::Discover => engine.discover(&[path("x"), path(&through("y"))]).await.map(drop),
        Operation::Delete => engine.index_deletion(&path("a")).await.map(drop),
        Operation::Record => engine.record_toolcall(call("call_9", "new")).await.map(drop),
        Operation::RecordRead => {
            let read = tool("call_8", "read", json!({ "path": path(&through("new")) }), "new");
            engine.record_toolcall(read).await.map(drop)
        }
        Operation::RecordAgain => engine.record_toolcall(call("call_0", "another")).await.map(drop),
        Operation::User => engine.append_turn(user("next")).await.map(drop),
        Operation::Answer => engine.append_turn(answer("so")).await.map(drop),
        Operation::Prompt => engine.set_system_prompt("another").await,
        Operation::Activate => engine.activate("call_0", None).await.map(drop),
        Operation::ActivateDiscovered => {
            let id = engine.discover(&[path("found")]).await?[0].id.clone();
            engine.activate(id.as_str(), None).await.map(drop)
        }
        Operation::Deactivate => engine.deactivate("call_4").await.map(drop),
        Operation::Pin => engine.pin("call_4").await.map(drop),
        Operation::Demote => engine.demote("call_4").await.map(drop),
        Operation::Restore => engine.restore(engine.session_id(), start, None).await,
        Operation::GoBack => engine.go_back(start).await,
        Operation::KeepBeginning => engine.keep_beginning(0).await,
    }
}

async fn prepared(backend: Backend) -> (Bench, Arc<Stepped>, Engine, TxId) {
    let bench = Bench::new(backend);
    for name in ["a", "new", "x", "y", "found"] {
        bench.write(name, name);
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(bench.root(), bench.root().join("alias")).unwrap();
    let (store, engine) = stepped(&bench, Incident::Full).await;
    engine.append_turn(user("one")).await.unwrap();
    let start = engine.point().await.unwrap();
    engine.index_file(&bench.path("a"), None, None).await.unwrap();
    engine.discover(&[bench.path("found")]).await.unwrap();
    for n in 0..6 {
        engine.record_toolcall(call(&format!("call_{n}"), "x")).await.unwrap();
    }
    (bench, store, engine, start)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn failed_write_leaves_everything_as_it_was(
    #[values(
        Operation::Read,
        Operation::ReadThroughLink,
        Operation::Discover,
        Operation::Delete,
        Operation::Record,
        Operation::RecordRead,
        Operation::RecordAgain,
        Operation::User,
        Operation::Answer,
        Operation::Prompt,
        Operation::Activate,
        Operation::ActivateDiscovered,
        Operation::Deactivate,
        Operation::Pin,
        Operation::Demote,
        Operation::Restore,
        Operation::GoBack,
        Operation::KeepBeginning
    )]
    operation: Operation,
) {
    // The result without a failure.
    let (bench, _, engine, start) = prepared(Backend::Memory).await;
    run(operation, &bench, &engine, start).await.unwrap();
    let sets_after = engine.session_sets().await.unwrap();
    let text_after = shown(&bench, &engine).await;

    let mut failed = 0;
    for place in 0.. {
        let (bench, store, engine, start) = prepared(Backend::Memory).await;
        let before = (engine.session_sets().await.unwrap(), engine.assemble().await.unwrap());
        let tx = bench.latest_tx().await;
        store.arm(place);
        let outcome = run(operation, &bench, &engine, start).await;
        if !store.disarm() {
            assert!(place > 0 && outcome.is_ok(), "{operation:?} does not reach the store");
            break;
        }
        let error = outcome.expect_err("a failure is reported");
        assert_eq!(error.code(), ErrorCode::StoreFull);
        failed += 1;
        // An operation of several steps may have got through some of them; each step is whole or not at all.
        let now = (engine.session_sets().await.unwrap(), engine.assemble().await.unwrap());
        let reopened = bench.open("s").await;
        assert_eq!(reopened.session_sets().await.unwrap(), now.0, "memory never runs ahead of the store");
        assert_eq!(reopened.assemble().await.unwrap(), now.1);
        if bench.latest_tx().await == tx {
            assert_eq!(now, before, "nothing was written, nothing has changed");
        }

        run(operation, &bench, &engine, start).await.unwrap();
        assert_eq!(engine.session_sets().await.unwrap().active_set.len(), sets_after.active_set.len());
        assert_eq!(shown(&bench, &engine).await, text_after, "as if nothing had happened, at {place}");
    }
    assert!(failed > 0);
}

/// The canonical view without what differs between two directories: their paths, and so the files' IDs.
async fn shown(bench: &Bench, engine: &Engine) -> String {
    let text = engine.assemble().await.unwrap().text().replace(&bench.path(""), "");
    let sets = engine.session_sets().await.unwrap();
    let files = sets.session_index.iter().filter(|id| id.as_str().len() == 64);
    files.enumerate().fold(text, |text, (n, id)| text.replace(id.as_str(), &format!("file-{n}")))
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn opening_that_fails_can_be_repeated(#[values(false, true)] known: bool) {
    let mut failed = 0;
    for place in 0.. {
        let bench = Bench::new(Backend::Memory);
        let store = Stepped::new(Arc::clone(&bench.store), Incident::Full);
        let options = Options {
            store: Arc::clone(&store) as Arc<dyn Store>,
            system_prompt: Some("You help.".into()),
            filesystem_id: None,
            machine_id_file: bench.path("missing"),
            watch: true,
            ..bench.options("s")
        };
        if known {
            let engine = Engine::open(options.clone()).await.unwrap();
            engine.index_file(&bench.write("a", "1"), None, None).await.unwrap();
            let found = engine.index_file(&bench.write("b", "1"), None, None).await.unwrap().id;
            std::fs::remove_file(bench.path("b")).unwrap();
            engine.index_deletion(&bench.path("b")).await.unwrap();
            engine.deactivate(found.as_str()).await.unwrap_or_else(|e| panic!("{e}"));
            engine.close().await.unwrap();
            bench.write("a", "2");
            bench.write("b", "2");
        }
        store.arm(place);
        let outcome = Engine::open(options.clone()).await;
        let reached = store.disarm();
        let engine = match outcome {
            Ok(engine) => engine,
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::StoreFull);
                failed += 1;
                Engine::open(options).await.unwrap()
            }
        };
        let view = engine.assemble().await.unwrap();
        let text = view.text();
        assert!(text.starts_with("You help."), "{text}");
        assert_eq!(text.contains("ACTIVE_CONTENT"), known);
        assert!(!known || text.ends_with("\n2"), "reconciled: {text}");
        engine.close().await.unwrap();
        if !reached {
            break;
        }
    }
    assert!(failed > 3, "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unsaved_stay_is_not_renewed() {
    let (_bench, store, engine, _) = prepared(Backend::Memory).await;
    engine.append_turn(user("two")).await.unwrap();
    // Reading the content fails, then writing the set.
    for place in [0, 1] {
        store.arm(place);
        assert_eq!(engine.activate("call_5", None).await.unwrap_err().code(), ErrorCode::StoreFull);
        assert!(store.disarm());
    }
    engine.append_turn(user("three")).await.unwrap();
    assert!(engine.session_sets().await.unwrap().active_set.contains(&ObjectId::new("call_5")));
    engine.append_turn(user("four")).await.unwrap();
    let sets = engine.session_sets().await.unwrap();
    assert!(!sets.active_set.contains(&ObjectId::new("call_5")), "it is of the first turn still");
}

#[tokio::test]
async fn panic_is_an_error_of_its_call() {
    let call = async |wrong: bool| {
        tokio::task::yield_now().await;
        assert!(!wrong, "a defect");
        Err::<(), _>("refused")
    };
    assert_eq!(caught(call(true), || "broken").await, Err("broken"));
    assert_eq!(caught(call(false), || "broken").await, Err("refused"));
    assert_eq!(caught(async { Ok::<_, &str>(7) }, || "broken").await, Ok(7));
}

/// Each conflict means that another client has made progress. A store that reports one without end does not stop us.
#[tokio::test(flavor = "multi_thread")]
async fn store_with_endless_conflicts_is_given_up() {
    let bench = Bench::new(Backend::Memory);
    let conflict = Incident::Conflicts(ObjectId::new("session:s"));
    let (store, engine) = stepped(&bench, conflict).await;
    let before = engine.session_sets().await.unwrap();
    store.arm(0);
    let error = engine.record_toolcall(call("call_1", "output")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict, "{error}");
    assert_eq!(store.conflicts(), 101, "one attempt, and a hundred more");
    assert_eq!(engine.session_sets().await.unwrap(), before);
    store.disarm();
    engine.record_toolcall(call("call_1", "output")).await.unwrap();
}

/// The store has an older version with fewer lines, and the file that was read could not be stored.
#[tokio::test]
async fn read_that_could_not_be_stored_is_not_past_the_end_of_an_older_version() {
    let bench = Bench::new(Backend::Memory);
    let path = bench.write("a.txt", "");
    bench.open("other").await.index_file(&path, None, None).await.unwrap();
    let (store, engine) = stepped(&bench, Incident::Full).await;
    std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
    store.arm(0);
    engine.index_file(&path, Some(b"one\ntwo\nthree\n".to_vec()), Some("read")).await.unwrap_err();
    assert_eq!(engine.answer_read(&path, Some(4), Some(12), Some("read")).await.unwrap(), None);
    let args = json!({ "path": path, "offset": 4, "limit": 12 }).as_object().cloned().unwrap();
    engine.receive(Toolcall::new("read", "read", args, "")).await.unwrap();
    let call = bench.latest(&ObjectId::new("read")).await.unwrap();
    assert_eq!(call.field("evidence").unwrap()["shows"]["first"], 4);
}
