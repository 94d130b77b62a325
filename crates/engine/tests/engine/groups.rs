//! Calls that arrive together share a write, and end as if they had come one after the other.

use context_engine::{Engine, EngineError, SessionSets};
use context_model::id::ObjectId;
use context_model::object::{Document, Toolcall};
use context_store::StoreError;
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::json;
use tokio::task::JoinSet;

use crate::bench::{Backend, Bench, call, session, tool};

/// Starts all calls before the first one has ended; on one thread they begin in this order.
async fn at_once(
    engine: &Engine,
    calls: impl IntoIterator<Item = Toolcall>,
) -> Vec<Result<ObjectId, EngineError>> {
    let mut running = JoinSet::new();
    for (number, input) in calls.into_iter().enumerate() {
        let engine = engine.clone();
        running.spawn(async move { (number, engine.record_toolcall(input).await) });
    }
    let mut results = running.join_all().await;
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[tokio::test]
async fn twenty_calls_at_once_wait_for_two_writes() {
    let (bench, engine) = session(Backend::Sqlite).await;
    let before = bench.latest_tx().await;
    let names: Vec<String> = (0..20).map(|n| format!("call_{n}")).collect();
    // Another client's lock keeps the first write from ending before the last call has begun.
    let other = rusqlite::Connection::open(bench.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let recording = at_once(&engine, names.iter().map(|name| call(name, &format!("output of {name}"))));
    let (results, ()) = tokio::join!(recording, async {
        // The calls were spawned when this is polled first, and each has begun when it is polled again.
        tokio::task::yield_now().await;
        other.execute_batch("ROLLBACK").unwrap();
    });
    let ids: Vec<ObjectId> = results.into_iter().map(Result::unwrap).collect();
    assert_eq!(ids, names.iter().map(|name| ObjectId::new(name.as_str())).collect::<Vec<_>>());
    assert_eq!(bench.latest_tx().await - before, 2, "the first one alone, the others together");

    let sets = engine.session_sets().await.unwrap();
    assert_eq!(sets.session_index, ids);
    assert_eq!(sets.active_set, ids[15..], "the window of the five newest");
    let chat = bench.latest(&ObjectId::new("chat:s")).await.unwrap();
    assert_eq!(chat.field("turns").unwrap()[0]["toolcall_ids"], json!(ids));
    for id in &ids {
        assert_eq!(bench.contents(id).await, [Some(format!("output of {id}"))]);
    }
}

#[tokio::test]
async fn refused_call_does_not_refuse_others_in_its_group() {
    let (_bench, engine) = session(Backend::Sqlite).await;
    let results =
        at_once(&engine, [call("a", "1"), call("b", "2"), tool("c", "", json!({}), "3"), call("d", "4")])
            .await;
    let refused: Vec<bool> = results.iter().map(Result::is_err).collect();
    assert_eq!(refused, [false, false, true, false]);
    assert_eq!(engine.session_sets().await.unwrap().session_index.len(), 3);
}

#[tokio::test]
async fn group_is_retried_after_another_clients_write() {
    let bench = Bench::new(Backend::Sqlite);
    let (one, two) = (bench.open("s").await, bench.open("s").await);
    at_once(&one, (0..4).map(|n| call(&format!("one_{n}"), "x"))).await;
    // The second client's sets are those of before, so its write conflicts.
    for result in at_once(&two, (0..4).map(|n| call(&format!("two_{n}"), "y"))).await {
        result.unwrap();
    }
    let names = |who: &str| (0..4).map(|n| ObjectId::new(format!("{who}_{n}"))).collect::<Vec<_>>();
    assert_eq!(two.session_sets().await.unwrap().session_index, [names("one"), names("two")].concat());
}

#[tokio::test]
async fn calls_that_wait_behind_a_closed_instance_are_refused() {
    let (bench, engine) = session(Backend::Sqlite).await;
    bench.store.close().await.unwrap();
    for result in at_once(&engine, (0..3).map(|n| call(&format!("c{n}"), "x"))).await {
        assert_eq!(result.unwrap_err(), EngineError::Store(StoreError::Closed));
    }
    assert!(engine.session_sets().await.unwrap().session_index.is_empty(), "nothing runs ahead of the store");
}

#[tokio::test]
async fn callers_of_a_group_get_answers_despite_a_close() {
    let (bench, engine) = session(Backend::Sqlite).await;
    let mut running = JoinSet::new();
    for number in 0..20 {
        let engine = engine.clone();
        running.spawn(async move {
            if number == 10 {
                engine.close().await.unwrap();
                return None;
            }
            Some(engine.record_toolcall(call(&format!("c{number}"), "x")).await)
        });
    }
    let outcomes: Vec<_> = running.join_all().await.into_iter().flatten().collect();
    assert!(outcomes.iter().all(|o| matches!(o, Ok(_) | Err(EngineError::Closed))), "{outcomes:?}");
    let told = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let recorded = bench.open("s").await.session_sets().await.unwrap().session_index.len();
    assert_eq!(told, recorded);
}

/// Something that a session does: a call of one of a few IDs and outputs, or a read of one of a few files.
#[derive(Clone, Debug)]
enum Step {
    Call(u8, u8),
    Read(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6_u8, 0..3_u8).prop_map(|(id, output)| Step::Call(id, output)),
        (0..4_u8, 0..3_u8).prop_map(|(file, text)| Step::Read(file, text)),
    ]
}

async fn carry_out(engine: Engine, step: Step) -> ObjectId {
    match step {
        Step::Call(id, output) => {
            let input = call(&format!("call_{id}"), &format!("output {output}"));
            engine.record_toolcall(input).await.unwrap()
        }
        Step::Read(file, text) => {
            let content = format!("text {text}").into_bytes();
            engine.index_file(&format!("/nowhere/file_{file}"), Some(content), None).await.unwrap().id
        }
    }
}

/// The result of the steps: the IDs that they gave, the sets, and every version of every object.
type Outcome = (Vec<ObjectId>, SessionSets, Vec<Vec<Document>>);

async fn outcome(steps: Vec<Step>, together: bool) -> Outcome {
    let (bench, engine) = session(Backend::Sqlite).await;
    let mut ids = Vec::new();
    if together {
        let mut running = JoinSet::new();
        for (number, step) in steps.into_iter().enumerate() {
            let engine = engine.clone();
            running.spawn(async move { (number, carry_out(engine, step).await) });
        }
        let mut done = running.join_all().await;
        done.sort_by_key(|(number, _)| *number);
        ids.extend(done.into_iter().map(|(_, id)| id));
    } else {
        for step in steps {
            ids.push(carry_out(engine.clone(), step).await);
        }
    }
    let sets = engine.session_sets().await.unwrap();
    let mut versions = Vec::new();
    for id in &sets.session_index {
        versions.push(bench.versions(id).await);
    }
    versions.extend(bench.latest(&ObjectId::new("chat:s")).await.map(|chat| vec![chat]));
    (ids, sets, versions)
}

proptest! {
    #![proptest_config(Config::with_cases(60))]

    #[test]
    fn together_or_one_by_one_is_the_same(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (one_by_one, together) = runtime.block_on(async {
            (outcome(steps.clone(), false).await, outcome(steps, true).await)
        });
        prop_assert_eq!(one_by_one, together);
    }
}
