//! A kept view is never older than the state: a client that has kept it and one that has just opened see the same.

use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::bench::{Backend, Bench, session, user};
use crate::sets::{step, take};

const PATH: &str = "/nowhere/file";

proptest! {
    #![proptest_config(Config::with_cases(24))]

    #[test]
    fn a_kept_view_equals_a_new_one(steps in prop::collection::vec(step(), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (bench, mut engine) = session(Backend::Memory).await;
            let points = [engine.point().await.unwrap()];
            for step in steps {
                take(&bench, &mut engine, &step, &points).await;
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
    let id = one.index_file(PATH, Some(b"of the first".into()), None).await.unwrap().id;
    one.append_turn(user("first question")).await.unwrap();
    one.assemble().await.unwrap();

    let other = bench.open("another").await;
    other.index_file(PATH, Some(b"of the second".into()), None).await.unwrap();
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
