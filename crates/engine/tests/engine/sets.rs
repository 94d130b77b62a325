//! The agent's controls: activation, pins, pool membership, static references.

use context_engine::{Engine, Part};
use context_model::error::ErrorCode;
use context_model::id::ObjectId;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench, call, check, ids, session, user};

async fn unchanged_by(bench: &Bench, engine: &Engine, answer: context_engine::SetChange, code: ErrorCode) {
    assert_eq!((answer.ok, answer.code), (false, Some(code)), "{}", answer.message);
    assert!(!answer.message.is_empty());
    check(&engine.session_sets().await.unwrap());
    assert_eq!(engine.point().await.unwrap().0, bench.latest_tx().await);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_object_moves_between_the_three_levels(#[values(Memory, Sqlite)] backend: Backend) {
    let (bench, engine) = session(backend).await;
    let id = engine.index_file(&bench.write("a", "text"), None, None).await.unwrap().id;
    let name = id.as_str();
    let level = async || {
        let sets = engine.session_sets().await.unwrap();
        check(&sets);
        assert_eq!(sets.session_index.as_slice(), std::slice::from_ref(&id), "the index keeps it");
        (sets.metadata_pool.len(), sets.active_set.len())
    };
    assert_eq!(level().await, (1, 1));
    assert!(engine.deactivate(name).await.unwrap().ok);
    assert_eq!(level().await, (1, 0));
    unchanged_by(&bench, &engine, engine.deactivate(name).await.unwrap(), ErrorCode::NotActive).await;
    assert!(engine.demote(name).await.unwrap().ok);
    assert_eq!(level().await, (0, 0));
    assert_eq!(engine.assemble().await.unwrap().metadata_pool(), "");
    assert!(engine.promote(name).await.unwrap().ok);
    assert_eq!(level().await, (1, 0));
    engine.demote(name).await.unwrap();
    let shown = engine.activate(name, None).await.unwrap();
    assert_eq!((shown.ok, shown.content.as_deref()), (true, Some("text")));
    assert_eq!(level().await, (1, 1), "activation of what is only indexed promotes it first");
    engine.demote(name).await.unwrap();
    assert_eq!(level().await, (0, 0), "what leaves the pool is not active");
    // Repeating writes nothing.
    let tx = bench.latest_tx().await;
    engine.demote(name).await.unwrap();
    engine.unpin(name).await.unwrap();
    assert_eq!(bench.latest_tx().await, tx);
}

#[rstest]
#[case::unknown("missing")]
#[case::empty("")]
#[case::a_version_of_an_unknown_object("missing@1")]
#[case::line_break("a\nb")]
#[tokio::test(flavor = "multi_thread")]
async fn unknown_ids_are_refused_with_a_sentence(#[case] name: &str) {
    let (bench, engine) = session(Memory).await;
    // Another session's object does not belong to this one.
    let other = bench.open("other").await;
    other.record_toolcall(call("theirs", "x")).await.unwrap();
    engine.append_turn(user("u")).await.unwrap();
    for name in [name, "theirs"] {
        for answer in [
            engine.activate(name, None).await.unwrap(),
            engine.deactivate(name).await.unwrap(),
            engine.pin(name).await.unwrap(),
            engine.unpin(name).await.unwrap(),
            engine.promote(name).await.unwrap(),
            engine.demote(name).await.unwrap(),
        ] {
            assert!(!answer.message.contains('\n'));
            unchanged_by(&bench, &engine, answer, ErrorCode::UnknownObject).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_and_a_full_id_name_the_same_object() {
    let (_bench, engine) = session(Sqlite).await;
    let birth = engine.receive(call("call_1", "text")).await.unwrap();
    let change = engine.deactivate(&birth.handle).await.unwrap();
    assert!(change.ok);
    assert_eq!(
        change.message,
        format!("{} is inactive; its metadata stays", birth.handle),
        "named as it was asked for"
    );
    let shown = engine.activate(&birth.handle, None).await.unwrap();
    assert_eq!((shown.id.as_str(), shown.content.as_deref()), ("call_1", Some("text")));
    assert_eq!(engine.get(&birth.handle).await.unwrap(), engine.get("call_1").await.unwrap());
    assert_eq!(engine.history(&birth.handle).await.unwrap().len(), 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_static_reference_shows_a_version_and_leaves_the_sets_alone(
    #[values(Memory, Sqlite)] backend: Backend,
) {
    let (bench, engine) = session(backend).await;
    let path = bench.write("a", "one");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    bench.write("a", "two");
    engine.index_file(&path, None, None).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    engine.index_deletion(&path).await.unwrap();
    let txs: Vec<_> = engine.history(id.as_str()).await.unwrap().iter().map(|v| v.tx_id).collect();
    let before = (bench.latest_tx().await, engine.session_sets().await.unwrap());
    let show = async |tx: u64| engine.activate(&format!("{id}@{tx}"), None).await.unwrap();
    for (tx, text) in [(txs[0].0, "one"), (txs[1].0, "two")] {
        let shown = show(tx).await;
        assert_eq!(shown.content.as_deref(), Some(text));
        assert!(shown.message.contains(&format!("@{tx}")), "the version is named: {}", shown.message);
    }
    let part = engine.activate(&format!("{id}@{}", txs[1]), Some(Part::Grep("tw".into()))).await.unwrap();
    assert!(part.content.unwrap().contains("two"));
    assert_eq!(show(txs[2].0).await.code, Some(ErrorCode::NullContent));
    assert_eq!(show(0).await.code, Some(ErrorCode::UnknownObject));
    assert_eq!((bench.latest_tx().await, engine.session_sets().await.unwrap()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_part_is_refused_and_activates_nothing() {
    let (bench, engine) = session(Memory).await;
    engine.record_toolcall(call("c", "1\n2\n3\n4")).await.unwrap();
    engine.deactivate("c").await.unwrap();
    let wrong = engine.activate("c", Some(Part::Lines(3, 2))).await.unwrap();
    unchanged_by(&bench, &engine, wrong, ErrorCode::InvalidArgument).await;
    assert!(engine.session_sets().await.unwrap().active_set.is_empty());
    let part = engine.activate("c", Some(Part::Lines(2, 3))).await.unwrap();
    assert_eq!((part.ok, part.content.as_deref()), (true, Some("2\n3")));
}

#[derive(Clone, Debug)]
pub enum Step {
    Read(usize),
    Discover(usize),
    Delete(usize),
    Record(usize, usize),
    User,
    /// An answer that makes a call, so that the view has its reference in its place.
    Answer(usize),
    Prompt(usize),
    Activate(usize),
    Deactivate(usize),
    Pin(usize),
    Unpin(usize),
    Promote(usize),
    Demote(usize),
    Restore(usize),
    Reopen,
}

pub fn step() -> impl Strategy<Value = Step> {
    let n = 0..6_usize;
    prop_oneof![
        2 => n.clone().prop_map(Step::Read),
        1 => n.clone().prop_map(Step::Discover),
        1 => n.clone().prop_map(Step::Delete),
        3 => (n.clone(), 0..2_usize).prop_map(|(id, content)| Step::Record(id, content)),
        2 => Just(Step::User),
        2 => n.clone().prop_map(Step::Answer),
        1 => n.clone().prop_map(Step::Prompt),
        2 => n.clone().prop_map(Step::Activate),
        1 => n.clone().prop_map(Step::Deactivate),
        1 => n.clone().prop_map(Step::Pin),
        1 => n.clone().prop_map(Step::Unpin),
        1 => n.clone().prop_map(Step::Promote),
        1 => n.clone().prop_map(Step::Demote),
        1 => n.prop_map(Step::Restore),
        1 => Just(Step::Reopen),
    ]
}

/// Random sessions: the invariants hold, the index never shrinks, and a reopened session is the same bytes.
#[rstest]
fn any_sequence_of_operations_keeps_the_invariants(#[values(Memory, Sqlite)] backend: Backend) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&prop::collection::vec(step(), 1..40), |steps| {
        runtime.block_on(async {
            let (bench, mut engine) = session(backend).await;
            let mut points = vec![engine.point().await.unwrap()];
            let mut index: Vec<ObjectId> = Vec::new();
            for step in &steps {
                take(&bench, &mut engine, step, &points).await;
                let sets = engine.session_sets().await.unwrap();
                check(&sets);
                prop_assert_eq!(&sets.session_index[..index.len()], &index[..], "the index is append-only");
                index = sets.session_index;
                points.push(engine.point().await.unwrap());
            }
            let (sets, view) = (engine.session_sets().await.unwrap(), engine.assemble().await.unwrap());
            let reopened = bench.open("s").await;
            prop_assert_eq!(reopened.session_sets().await.unwrap(), sets);
            prop_assert_eq!(reopened.assemble().await.unwrap(), view);
            prop_assert_eq!(bench.store.verify().await.unwrap(), []);
            Ok(())
        })
    });
    outcome.unwrap();
}

/// Carries out a step. Those back in time go to one of these points.
pub async fn take(bench: &Bench, engine: &mut Engine, step: &Step, points: &[context_model::time::TxId]) {
    let path = |n: &usize| bench.write(&format!("f{n}"), format!("file {n}"));
    let known = engine.session_sets().await.unwrap().session_index;
    let name = |n: &usize| known.get(*n).map_or("missing", ObjectId::as_str).to_owned();
    match step {
        Step::Read(n) => drop(engine.index_file(&path(n), None, None).await.unwrap()),
        Step::Discover(n) => drop(engine.discover(&[bench.path(&format!("f{n}"))]).await.unwrap()),
        Step::Delete(n) => {
            let path = path(n);
            std::fs::remove_file(&path).unwrap();
            engine.index_deletion(&path).await.unwrap();
        }
        Step::Record(n, content) => {
            engine.record_toolcall(call(&format!("call_{n}"), &content.to_string())).await.unwrap();
        }
        Step::User => drop(engine.append_turn(user("u")).await.unwrap()),
        Step::Answer(n) => {
            let call =
                json!({ "type": "toolCall", "id": format!("call_{n}"), "name": "custom", "arguments": {} });
            let message = json!({ "role": "assistant", "content": [{ "type": "text", "text": "so" }, call] });
            engine.append_turn(message).await.unwrap();
        }
        Step::Prompt(n) => engine.set_system_prompt(&format!("prompt {n}")).await.unwrap(),
        Step::Activate(n) => drop(engine.activate(&name(n), None).await.unwrap()),
        Step::Deactivate(n) => drop(engine.deactivate(&name(n)).await.unwrap()),
        Step::Pin(n) => drop(engine.pin(&name(n)).await.unwrap()),
        Step::Unpin(n) => drop(engine.unpin(&name(n)).await.unwrap()),
        Step::Promote(n) => drop(engine.promote(&name(n)).await.unwrap()),
        Step::Demote(n) => drop(engine.demote(&name(n)).await.unwrap()),
        Step::Restore(n) => {
            let session = engine.session_id().clone();
            engine.restore(&session, points[n % points.len()], None).await.unwrap();
        }
        Step::Reopen => {
            engine.close().await.unwrap();
            *engine = bench.open("s").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pins_are_kept_with_the_session_and_only_for_what_it_knows() {
    let (mut bench, engine) = session(Sqlite).await;
    engine.record_toolcall(call("a", "x")).await.unwrap();
    engine.record_toolcall(call("b", "x")).await.unwrap();
    engine.pin("b").await.unwrap();
    engine.close().await.unwrap();
    bench.restart().await;
    let engine = bench.open("s").await;
    assert_eq!(engine.session_sets().await.unwrap().pinned_set, ids(["b"]));
}
