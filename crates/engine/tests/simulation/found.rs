//! Schedules that were wrong once, as the simulation has printed them: a line of `found.jsonl` each. Each fails with the defect
//! that it is named after.

use rstest::rstest;
use serde::Deserialize;

use crate::Bench;
use crate::steps::{Backend, Schedule};

#[derive(Deserialize)]
struct Found {
    name: String,
    #[serde(flatten)]
    schedule: Schedule,
}

/// On two machines, chance decides when one hears of the other's writes: after this many runs, each order has occurred.
const TIMES: usize = 12;

#[rstest]
fn schedules_that_were_wrong_once_are_right(#[values(Backend::Memory, Backend::Xtdb)] backend: Backend) {
    let (bench, mut runs, mut wrong) = (Bench::new(), 0, Vec::new());
    for line in include_str!("found.jsonl").lines() {
        let Found { name, schedule } = serde_json::from_str(line).unwrap();
        if schedule.backend != backend {
            continue;
        }
        for _ in 0..if backend == Backend::Xtdb { TIMES } else { 1 } {
            runs += 1;
            if let Err((step, found)) = bench.run(&schedule).1 {
                wrong.push(format!("{name}: after step {step}: {}", found.what));
            }
        }
    }
    assert!(runs > 0 && wrong.is_empty(), "{wrong:#?}");
}
