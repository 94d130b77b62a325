//! From a schedule that fails to the shortest one that does.

use crate::steps::{Backend, Schedule, Step};

/// The shortest schedule found that still fails, by leaving out steps. `fails` carries one out.
pub fn shortest(schedule: &Schedule, mut fails: impl FnMut(&Schedule) -> bool) -> Schedule {
    let mut best = schedule.clone();
    let memory = Schedule { backend: Backend::Memory, ..best.clone() };
    if memory != best && fails(&memory) {
        best = memory;
    }
    let mut size = best.steps.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut shorter = false;
        while at < best.steps.len() {
            let end = (at + size).min(best.steps.len());
            let mut steps: Vec<Step> = best.steps.clone();
            steps.drain(at..end);
            let less = Schedule { steps, ..best.clone() };
            if fails(&less) {
                best = less;
                shorter = true;
            } else {
                at = end;
            }
        }
        match (size, shorter) {
            (1, false) => break,
            (1, true) => {}
            _ => size = size.div_ceil(2),
        }
    }
    for fewer in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let less = Schedule { clients: fewer.0, files: fewer.1, ..best.clone() };
        if less.clients <= best.clients && less.files <= best.files && less != best && fails(&less) {
            return less;
        }
    }
    best
}
