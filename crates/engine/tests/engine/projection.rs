//! The projection: plans applied one after the other give the result of a full rebuild, byte for byte, after any changes of the
//! conversation in between; and no message from a harness makes it panic.

use std::cell::Cell;
use std::time::{Duration, Instant};

use context_engine::{Call, IncomingMessage};
use context_model::error::ErrorCode;
use context_projection::Prices;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::bench::{Backend, say, session};
use crate::harness::{Harness, call, step};

/// So many cases, or the full figure where `CONTEXT_LONG` is set.
pub fn runner(usual: u32, long: u32) -> TestRunner {
    let cases = if std::env::var_os("CONTEXT_LONG").is_some() { long } else { usual };
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

#[test]
fn plans_one_after_the_other_give_what_a_full_rebuild_gives() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runner(30, 10_000).run(&prop::collection::vec(step(), 1..40), |steps| {
        runtime.block_on(async {
            let mut harness = Harness::new().await;
            for (n, step) in steps.iter().enumerate() {
                harness.take(step).await?;
                if n % 8 == 7 {
                    harness.check().await?;
                }
            }
            harness.check().await?;
            harness.check_outputs().await
        })
    });
    outcome.unwrap();
}

/// Any JSON, some of it shaped like messages.
fn junk() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "(?s).{0,12}".prop_map(Value::from),
        prop_oneof!["call_[0-3]", "read", "bash", "id=[a-z0-9]{0,9} type=toolcall tool=x status=ok"]
            .prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    let block = (
        prop_oneof!["text", "toolCall", "image", "thinking", ".{0,3}"],
        prop_oneof!["call_[0-3]", Just(String::new())],
        value.clone(),
    )
        .prop_map(|(kind, id, inner)| {
            json!({ "type": kind, "id": id, "name": "read", "text": inner, "arguments": inner, "thinking": inner })
        });
    let content = prop_oneof![
        2 => prop::collection::vec(block, 0..4).prop_map(Value::from),
        1 => value.clone(),
    ];
    let message = (
        prop_oneof!["user", "assistant", "toolResult", "custom", ".{0,3}"],
        "call_[0-3]|",
        content,
        any::<i64>(),
    )
        .prop_map(|(role, id, content, time)| {
            json!({
                "role": role, "toolCallId": id, "toolName": "read", "content": content, "timestamp": time,
                "usage": { "input": time, "cacheRead": content, "output": -1 }, "stopReason": id,
            })
        });
    prop_oneof![1 => value, 6 => message]
}

#[test]
fn whatever_a_harness_hands_over_is_taken_or_refused_and_never_a_panic() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let batch = prop::collection::vec((0..5_u8, junk()), 0..6);
    let calls =
        (any::<i64>(), any::<u64>(), any::<f64>(), any::<f64>(), any::<[bool; 4]>(), any::<Option<u32>>());
    let batches = prop::collection::vec((batch, 0..9_usize, calls), 1..6);
    let limit = Duration::from_secs(600);
    let start = Instant::now();
    let runs = Cell::new(0_u64);
    let outcome = runner(300, 1_000_000).run(&batches, |batches| {
        if start.elapsed() > limit {
            return Ok(());
        }
        runs.set(runs.get() + 1);
        runtime.block_on(async {
            let (bench, engine) = session(Backend::Memory).await;
            for (batch, recorded, (now, window, read, write, flags, lookback)) in batches {
                let incoming: Vec<IncomingMessage> = batch
                    .into_iter()
                    .map(|(key, message)| IncomingMessage { key: key.to_string(), message })
                    .collect();
                let call = Call {
                    prices: Prices::new(read, write),
                    lookback_blocks: lookback,
                    context_window: window,
                    only_at_user_turn: flags[0],
                    at_user_turn: flags[1],
                    rolls: flags[2],
                    cache_ttl_ms: now.wrapping_mul(3),
                    ..call(now)
                };
                let outcome = if flags[3] {
                    engine.advance(incoming, &call).await
                } else {
                    engine.resync(incoming, recorded, &call).await
                };
                if let Err(error) = outcome {
                    prop_assert_eq!(error.code(), ErrorCode::InvalidArgument, "{}", error);
                }
                engine.roll_now(&call).await.unwrap();
                engine.undo_roll().await.unwrap();
            }
            // The session is whole: it can be opened again and is the same.
            let view = engine.assemble().await.unwrap();
            prop_assert_eq!(bench.open("s").await.assemble().await.unwrap(), view);
            Ok(())
        })
    });
    outcome.unwrap();
    say(&format!("a harness's messages: {} runs, no panic", runs.get()));
}
