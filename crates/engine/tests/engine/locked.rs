//! Behaviour while another process holds the store's write lock.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::bench::{Backend, GENEROUS, answer, call, session, user};

/// A write that waits for the lock keeps the state; the view shows the state before it.
#[tokio::test(flavor = "multi_thread")]
async fn view_is_assembled_while_a_write_waits_for_a_lock() {
    let (bench, engine) = session(Backend::Sqlite).await;
    engine.append_turn(user("a question")).await.unwrap();
    engine.append_turn(answer("an answer")).await.unwrap();
    engine.record_toolcall(call("first", "its output")).await.unwrap();
    let before = engine.assemble().await.unwrap();

    let other = Connection::open(bench.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = engine.clone();
    let write = tokio::spawn(async move { writer.record_toolcall(call("second", "its output")).await });
    // The write has begun once the state is not to be had.
    let begun = async {
        while tokio::time::timeout(Duration::from_millis(50), engine.session_sets()).await.is_ok() {}
    };
    tokio::time::timeout(GENEROUS, begun).await.unwrap();

    let start = Instant::now();
    let shown = engine.assemble().await.unwrap();
    let took = start.elapsed();
    assert!(!write.is_finished(), "the write still waits");
    assert_eq!(shown.text(), before.text());
    assert!(took < Duration::from_secs(10), "{took:?}");

    other.execute_batch("ROLLBACK").unwrap();
    write.await.unwrap().unwrap();
    assert!(engine.assemble().await.unwrap().text().contains("second"));
}
