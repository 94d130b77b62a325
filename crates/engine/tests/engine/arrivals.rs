//! The times at which messages were sent first, where their places in the conversation don't say it.

use context_engine::{Call, Plan};
use context_model::object::Status;
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::Memory;
use crate::bench::Bench;
use crate::chat::Chat;

fn output(n: usize) -> String {
    format!("line of output {n}\n").repeat(200)
}

/// Adds a call and its result.
fn call(chat: &mut Chat, n: usize) {
    chat.now_ms += 1_000;
    let id = format!("c{n}");
    chat.calls(&id, "bash", json!({ "command": n }));
    chat.results(&id, "bash", &output(n), Status::Ok);
}

/// The next process of the session reads the conversation again, which was sent a second ago.
async fn restart(chat: &mut Chat, bench: &Bench) {
    chat.engine = bench.open("s").await;
    let call = Call { sent_ms: Some(chat.now_ms), ..chat.call() };
    chat.engine.resync(chat.messages.clone(), chat.messages.len(), &call).await.unwrap();
}

/// The rolls of a conversation whose first calls came together, as of a fork, and which another process continues after this many
/// requests.
async fn rolls_of_a_fork(restarts_behind: usize) -> Vec<(usize, Option<(usize, u64)>)> {
    let (bench, mut chat) = Chat::on(Memory).await;
    chat.shortens = true;
    chat.user("go");
    (0..40).for_each(|n| call(&mut chat, n));
    chat.advance().await;
    let mut rolls = Vec::new();
    for n in 0..10 {
        if n == restarts_behind {
            restart(&mut chat, &bench).await;
        }
        call(&mut chat, 100 + n);
        let Plan { receipt, .. } = chat.advance().await;
        rolls.push((n, receipt.map(|receipt| (receipt.items, receipt.removed_tokens))));
    }
    rolls
}

/// A text that no request had has paid nothing for its place, so that it does not leave earlier after a restart.
#[rstest]
#[tokio::test]
async fn conversation_that_came_as_a_whole_rolls_alike_in_a_later_process(
    #[values(0, 1, 2, 3, 4)] restarts_behind: usize,
) {
    let steady = rolls_of_a_fork(usize::MAX).await;
    assert!(steady.iter().any(|(_, roll)| roll.is_some()), "{steady:?}");
    assert_eq!(rolls_of_a_fork(restarts_behind).await, steady);
}

/// A host sends a request once more after an hour, and continues: the provider has it cached again.
#[rstest]
#[case::sent_again(Some(1_000), true)]
#[case::long_ago(Some(3_600_000), false)]
#[case::not_again(None, false)]
#[tokio::test]
async fn request_that_was_sent_again_is_cached(#[case] ago: Option<i64>, #[case] cached: bool) {
    let (_, mut chat) = Chat::on(Memory).await;
    chat.user("go");
    (0..3).for_each(|n| call(&mut chat, n));
    chat.advance().await;
    call(&mut chat, 4);
    chat.advance().await;
    chat.now_ms += 3_600_000;
    let sent_ms = ago.map(|ms| chat.now_ms - ms);
    let plan = chat.engine.advance(Vec::new(), &Call { sent_ms, ..chat.call() }).await.unwrap();
    assert_eq!(plan.rewrite_cost > 0.0, cached, "{}", plan.rewrite_cost);
}
