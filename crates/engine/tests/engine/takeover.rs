//! A conversation that an earlier process has sent, and in which its host has changed something since.

use context_engine::{Call, Edit, Plan};
use context_model::object::Status;
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::Memory;
use crate::chat::Chat;

const CALLS: usize = 12;

fn output(n: usize) -> String {
    format!("line of output {n}\n").repeat(400)
}

/// Adds a call, and its result a number of times.
fn call(chat: &mut Chat, n: usize, times: usize) {
    chat.now_ms += 1_000;
    let id = format!("c{n}");
    chat.calls(&id, "bash", json!({ "command": n }));
    (0..times).for_each(|_| chat.results(&id, "bash", &output(n), Status::Ok));
}

/// The call behind some results, each of which the host shows a number of times since the last process or call.
async fn left_of_results(times: usize, restarts: bool) -> (Plan, Chat) {
    let (bench, mut chat) = Chat::on(Memory).await;
    chat.user("go");
    for n in 0..CALLS {
        call(&mut chat, n, 1);
        chat.advance().await;
    }
    let again = std::mem::take(&mut chat.messages);
    for one in again {
        let count = if one.message["role"] == "toolResult" { times } else { 1 };
        (0..count).for_each(|_| chat.say(one.message.clone()));
    }
    chat.told = chat.messages.len();
    if restarts {
        chat.restart(&bench).await;
    } else {
        chat.reads_again().await;
    }
    chat.user("next");
    let plan = chat.advance_after_a_pause().await;
    (plan, chat)
}

#[rstest]
#[tokio::test]
async fn results_that_a_host_shows_again_leave_with_the_first(
    #[values(false, true)] restarts: bool,
    #[values(2, 3)] times: usize,
) {
    let (once, _) = left_of_results(1, restarts).await;
    let (plan, chat) = left_of_results(times, restarts).await;
    let results = |plan: &Plan| {
        plan.edits.iter().filter(|edit| matches!(edit, Edit::Result { text: Some(_), .. })).count()
    };
    assert!(results(&once) > CALLS / 2, "{:?}", once.edits);
    assert_eq!(results(&plan), times * results(&once));
    let index = chat.engine.session_sets().await.unwrap().session_index;
    assert_eq!(index.len(), CALLS, "no result becomes another object");
}

/// The first request of a process behind the one before it, whose request had this number of the first messages as they are now.
async fn first_request(sent_messages: Option<usize>) -> Plan {
    let (bench, mut chat) = Chat::on(Memory).await;
    chat.user("go");
    for n in 0..CALLS {
        call(&mut chat, n, 1);
        chat.advance().await;
    }
    chat.done();
    let sent_ms = Some(chat.now_ms);
    chat.engine.close().await.unwrap();
    chat.engine = bench.open("s").await;
    let taken_over = Call { sent_ms, sent_messages, ..chat.call() };
    chat.engine.resync(chat.messages.clone(), chat.messages.len(), &taken_over).await.unwrap();
    chat.told = chat.messages.len();
    chat.user("next");
    chat.advance().await
}

#[tokio::test]
async fn nothing_is_cached_behind_a_change_of_the_host() {
    let all = first_request(None).await;
    let most = first_request(Some(2 * CALLS - 1)).await;
    let half = first_request(Some(CALLS + 1)).await;
    assert_eq!(first_request(Some(10 * CALLS)).await.rewrite_cost, all.rewrite_cost);
    assert!(half.rewrite_cost > 0.0);
    assert!(half.rewrite_cost < 0.7 * most.rewrite_cost, "{} of {}", half.rewrite_cost, most.rewrite_cost);
    assert!(most.rewrite_cost < all.rewrite_cost);
}

/// As after a pause: what the provider has to read anew may as well be shorter.
#[tokio::test]
async fn all_stale_text_leaves_where_the_host_has_changed_the_beginning() {
    let none = first_request(None).await;
    assert_eq!(none.receipt.map(|receipt| receipt.items), None, "the cut is too dear");
    let changed = first_request(Some(0)).await;
    let receipt = changed.receipt.expect("it is free");
    assert!(receipt.items > CALLS / 2, "{}", receipt.items);
    assert_eq!(changed.rewrite_cost, 0.0);
}
