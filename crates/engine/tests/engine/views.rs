//! What is kept between two views is never older than the state: a client that has kept it and one that has just
//! opened see the same.

use context_engine::Engine;
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench, answer, call, session, user};

/// Something that changes what is seen.
#[derive(Clone, Debug)]
enum Step {
    User(u8),
    Answer(u8),
    Call(u8, u8),
    Read(u8, u8),
    Discover(u8),
    Activate(u8),
    Deactivate(u8),
    Pin(u8),
    Demote(u8),
    Prompt(u8),
    /// Back to where the session was after its first steps.
    Restore,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<u8>().prop_map(Step::User),
        3 => any::<u8>().prop_map(Step::Answer),
        3 => (0..6_u8, 0..3_u8).prop_map(|(id, output)| Step::Call(id, output)),
        3 => (0..4_u8, 0..3_u8).prop_map(|(file, text)| Step::Read(file, text)),
        1 => (0..8_u8).prop_map(Step::Discover),
        1 => (0..4_u8).prop_map(Step::Activate),
        1 => (0..4_u8).prop_map(Step::Deactivate),
        1 => (0..4_u8).prop_map(Step::Pin),
        1 => (0..4_u8).prop_map(Step::Demote),
        1 => any::<u8>().prop_map(Step::Prompt),
        1 => Just(Step::Restore),
    ]
}

fn path(file: u8) -> String {
    format!("/nowhere/file_{file}")
}

/// An answer that makes a call, so that the view has its reference in its place.
fn calling(text: &str, id: &str) -> Value {
    let mut message = answer(text);
    let call = json!({ "type": "toolCall", "id": id, "name": "custom", "arguments": {} });
    message["content"].as_array_mut().unwrap().push(call);
    message
}

async fn carry_out(engine: &Engine, step: &Step, first: context_model::time::TxId) {
    match step {
        Step::User(n) => drop(engine.append_turn(user(&format!("question {n}"))).await.unwrap()),
        Step::Answer(n) => {
            let message = calling(&format!("answer {n}"), &format!("call_{}", n % 6));
            engine.append_turn(message).await.unwrap();
        }
        Step::Call(id, output) => {
            let input = call(&format!("call_{id}"), &format!("output {output}"));
            engine.record_toolcall(input).await.unwrap();
        }
        Step::Read(file, text) => {
            let content = format!("text {text}").into_bytes();
            engine.index_file(&path(*file), Some(content), None).await.unwrap();
        }
        Step::Discover(file) => drop(engine.discover(&[path(*file)]).await.unwrap()),
        Step::Activate(n) => drop(engine.activate(&format!("call_{n}"), None).await),
        Step::Deactivate(n) => drop(engine.deactivate(&format!("call_{n}")).await),
        Step::Pin(n) => drop(engine.pin(&format!("call_{n}")).await),
        Step::Demote(n) => drop(engine.demote(&format!("call_{n}")).await),
        Step::Prompt(n) => engine.set_system_prompt(&format!("prompt {n}")).await.unwrap(),
        Step::Restore => engine.restore(engine.session_id(), first, None).await.unwrap(),
    }
}

proptest! {
    #![proptest_config(Config::with_cases(24))]

    #[test]
    fn a_kept_view_equals_a_new_one(steps in prop::collection::vec(step(), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (bench, engine) = session(Backend::Memory).await;
            let first = engine.point().await.unwrap();
            for step in steps {
                carry_out(&engine, &step, first).await;
                let new = bench.open("s").await.assemble().await.unwrap();
                assert_eq!(engine.assemble().await.unwrap(), new, "after {step:?}");
            }
        });
    }
}

#[tokio::test]
async fn a_kept_view_follows_another_client() {
    let bench = Bench::new(Backend::Sqlite);
    let (one, two) = (bench.open("s").await, bench.open("s").await);
    let id = one.index_file(&path(0), Some(b"of the first".into()), None).await.unwrap().id;
    one.append_turn(user("first question")).await.unwrap();
    one.assemble().await.unwrap();

    let other = bench.open("another").await;
    other.index_file(&path(0), Some(b"of the second".into()), None).await.unwrap();
    two.set_system_prompt("of the second").await.unwrap();
    let view = one.assemble().await.unwrap();
    assert_eq!(view.system_prompt(), "of the second");
    assert_eq!(view.active_content(), format!("ACTIVE_CONTENT id={id}\nof the second"));

    let third = bench.open("s").await;
    third.append_turn(user("second question")).await.unwrap();
    let view = one.assemble().await.unwrap();
    assert!(view.chat().eq(&[user("first question"), user("second question")]));
    assert_eq!(view, bench.open("s").await.assemble().await.unwrap());
}
