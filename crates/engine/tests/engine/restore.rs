//! Branches and forks: another point of a session taken over.

use context_engine::Engine;
use context_model::error::ErrorCode;
use context_model::id::{ObjectId, SessionId};
use context_model::time::TxId;
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench, answer, call, check, ids, refused, session, user};

async fn turn(engine: &Engine, name: &str) -> TxId {
    engine.append_turn(user(&format!("about {name}"))).await.unwrap();
    engine.record_toolcall(call(name, &format!("output of {name}"))).await.unwrap();
    engine.append_turn(answer("done")).await.unwrap();
    engine.point().await.unwrap()
}

fn questions(view: &context_engine::Assembled) -> Vec<&str> {
    view.chat().filter(|m| m["role"] == "user").map(|m| m["content"].as_str().unwrap()).collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_change_restores_sets_and_chat_and_keeps_the_index(
    #[values(Memory, Sqlite)] backend: Backend,
) {
    let (mut bench, engine) = session(backend).await;
    let session = engine.session_id().clone();
    let one = turn(&engine, "one").await;
    let at_one = (engine.session_sets().await.unwrap(), engine.assemble().await.unwrap());
    engine.pin("one").await.unwrap();
    let two = turn(&engine, "two").await;
    let at_two = (engine.session_sets().await.unwrap(), engine.assemble().await.unwrap());

    engine.restore(&session, one, None).await.unwrap();
    let sets = engine.session_sets().await.unwrap();
    check(&sets);
    assert_eq!(sets.session_index, ids(["one", "two"]), "the union: it never shrinks");
    assert_eq!((&sets.metadata_pool, &sets.active_set), (&at_one.0.metadata_pool, &at_one.0.active_set));
    assert!(sets.pinned_set.is_empty());
    assert_eq!(engine.assemble().await.unwrap().text(), at_one.1.text(), "the same state, the same bytes");

    let three = turn(&engine, "three").await;
    assert_eq!(questions(&engine.assemble().await.unwrap()), ["about one", "about three"]);
    engine.restore(&session, two, None).await.unwrap();
    assert_eq!(engine.assemble().await.unwrap().text(), at_two.1.text());
    engine.restore(&session, three, None).await.unwrap();
    assert_eq!(engine.session_sets().await.unwrap().session_index, ids(["one", "two", "three"]));
    assert_eq!(questions(&engine.assemble().await.unwrap()), ["about one", "about three"]);

    // Nothing of the history is rewritten by that, and it is the same after a restart.
    let view = engine.assemble().await.unwrap();
    engine.close().await.unwrap();
    bench.restart().await;
    let resumed = bench.open("s").await;
    assert_eq!(resumed.assemble().await.unwrap(), view);
    let chat = bench.versions(&ObjectId::chat(&session)).await;
    assert!(chat.iter().any(|v| v.field("turns").unwrap().to_string().contains("about two")));
}

#[cfg(unix)]
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn fork_starts_with_its_parents_state_and_diverges(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let parent = bench.open("parent").await;
    std::os::unix::fs::symlink(bench.root(), bench.root().join("alias")).unwrap();
    bench.write("a", "1");
    let file = parent.index_file("alias/a", None, None).await.unwrap().id;
    let point = turn(&parent, "one").await;
    let view = parent.assemble().await.unwrap();
    turn(&parent, "later").await;

    let fork = bench.watching("fork").await;
    fork.restore(parent.session_id(), point, None).await.unwrap();
    let forked = fork.assemble().await.unwrap();
    assert_eq!(forked.metadata_pool(), view.metadata_pool());
    assert!(forked.chat().eq(view.chat()));
    assert!(forked.blocks().eq(view.blocks()));
    let chat = bench.latest(&ObjectId::chat(fork.session_id())).await.unwrap();
    assert_eq!(chat.text("session_ref"), Some("session:fork"));
    assert_eq!(bench.versions(&ObjectId::new("one")).await.len(), 1, "the tool call is shared, not copied");

    turn(&fork, "mine").await;
    assert_eq!(questions(&parent.assemble().await.unwrap()), ["about one", "about later"]);
    assert_eq!(questions(&fork.assemble().await.unwrap()), ["about one", "about mine"]);

    // The fork also tracks files of the parent.
    bench.write("a", "2");
    fork.flush().await.unwrap();
    assert_eq!(bench.latest(&file).await.unwrap().content(), Some("2"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn fork_reconciles_a_file_changed_since_the_point(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let parent = bench.open("parent").await;
    let path = bench.write("a", "1");
    let file = parent.index_file(&path, None, None).await.unwrap().id;
    let point = parent.point().await.unwrap();
    parent.close().await.unwrap();
    bench.write("a", "2");
    let fork = bench.open("fork").await;
    fork.restore(parent.session_id(), point, None).await.unwrap();
    assert_eq!(bench.latest(&file).await.unwrap().content(), Some("2"));
    assert_eq!(fork.assemble().await.unwrap().blocks().next().unwrap().content, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn before_everything_nothing_was_said_and_nothing_active() {
    let (bench, engine) = session(Sqlite).await;
    turn(&engine, "one").await;
    let file = engine.index_file(&bench.write("a", "1"), None, None).await.unwrap().id;
    engine.pin(file.as_str()).await.unwrap();
    let before = engine.session_sets().await.unwrap();
    engine.restore(engine.session_id(), TxId(0), None).await.unwrap();
    let sets = engine.session_sets().await.unwrap();
    assert_eq!(sets.session_index, before.session_index);
    assert!(sets.metadata_pool.is_empty() && sets.active_set.is_empty() && sets.pinned_set.is_empty());
    let chat = bench.latest(&ObjectId::new("chat:s")).await.unwrap();
    assert_eq!(chat.field("turn_count"), Some(&json!(0)));
    assert_eq!(engine.assemble().await.unwrap().blocks().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn points_that_are_none_are_refused() {
    let (bench, engine) = session(Sqlite).await;
    let session = engine.session_id().clone();
    let unknown = SessionId::new("unknown").unwrap();
    let point = turn(&engine, "one").await;
    let later = bench.open("later").await;
    for (session, tx) in [(&session, TxId(point.0 + 1_000)), (&unknown, point), (later.session_id(), point)] {
        refused(&bench, &engine, ErrorCode::UnknownObject, engine.restore(session, tx, None)).await;
    }
}
