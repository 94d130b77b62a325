//! Reads: parts of histories, versions by their transactions, and that none of them waits for a write.

use std::sync::Arc;

use context_engine::Query;
use context_model::error::ErrorCode;
use context_model::id::ObjectId;
use context_model::time::TxId;
use context_store::AsOf;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::bench::Backend::Memory;
use crate::bench::{Bench, GENEROUS, call, session, user};
use crate::stepped::{Incident, stepped};

#[tokio::test(flavor = "multi_thread")]
async fn a_read_waits_for_no_write() {
    let bench = Bench::new(Memory);
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let held = Incident::Held { begun: Arc::clone(&begun), go: Arc::clone(&go) };
    let (store, engine) = stepped(&bench, held).await;
    let known = engine.receive(call("known", &"text ".repeat(100))).await.unwrap();
    let first = engine.point().await.unwrap();
    store.arm(0);
    let writing = tokio::spawn({
        let engine = engine.clone();
        async move { engine.append_turn(user("hello")).await }
    });
    timeout(GENEROUS, begun.notified()).await.unwrap();
    let reads = async {
        assert_eq!(engine.get("unknown").await.unwrap(), None);
        assert_eq!(engine.get("known").await.unwrap(), engine.get(&known.handle).await.unwrap());
        assert_eq!(engine.get(&known.handle).await.unwrap().unwrap().id(), &known.id);
        assert_eq!(engine.get_as_of("unknown", AsOf::default()).await.unwrap(), None);
        assert_eq!(engine.history("unknown").await.unwrap(), []);
        assert_eq!(engine.history("chat:s").await.unwrap().len(), 2);
        assert_eq!(engine.diff("known", first, first).await.unwrap(), "");
        assert_eq!(engine.query(&Query::default()).await.unwrap().len(), 4);
        engine.point_times().await.unwrap();
    };
    timeout(GENEROUS, reads).await.expect("a read waits for the write");
    go.notify_one();
    assert_eq!(writing.await.unwrap().unwrap(), 2);
    engine.close().await.unwrap();
    assert_eq!(engine.get("unknown").await.unwrap_err().code(), ErrorCode::Closed);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_transaction_has_no_version() {
    let (bench, engine) = session(Memory).await;
    let path = bench.write("a", "one");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    let first = engine.point().await.unwrap();
    bench.write("a", "two");
    engine.index_file(&path, None, None).await.unwrap();
    let second = engine.point().await.unwrap();
    let say = async |tx: u64| {
        let answer = engine.activate(&format!("{id}@{tx}"), None).await.unwrap();
        assert_eq!(answer.id, ObjectId::new(id.as_str()));
        (answer.ok, answer.code, answer.content, answer.message.replace(id.as_str(), "ID"))
    };
    let unknown = |message: &str| (false, Some(ErrorCode::UnknownObject), None, message.to_owned());
    let newest = bench.latest_tx().await;
    assert_eq!(
        say(987_654_321_987).await,
        unknown(&format!("ID@987654321987 does not exist: the store's newest transaction is {newest}"))
    );
    assert!(!say(newest + 1).await.0);
    assert_eq!(
        say(0).await,
        unknown("ID@0 does not exist: that transaction wrote no version of this object")
    );
    let version = |asked: TxId, which: &str, text: &str| {
        (
            true,
            None,
            Some(text.to_owned()),
            format!("ID@{asked} is the version of transaction {asked}, {which}"),
        )
    };
    assert_eq!(say(first.0).await, version(first, "not the latest one", "one"));
    assert_eq!(say(second.0).await, version(second, "the latest one", "two"));
}
