//! Schedules on two machines that share a database, wrong once. When a machine hears of the other's writes is left to
//! chance, so each is repeated.

use crate::Bench;
use crate::found::read;
use crate::steps::{Backend, CallId, Fault, PathChange, Schedule, Spelling, Step, Tool};

/// So often that one of them goes each way.
const TIMES: usize = 12;

fn assert_right(seed: u64, clients: usize, files: usize, steps: Vec<Step>) {
    let schedule = Schedule { seed, backend: Backend::Xtdb, clients, files, links: false, steps };
    let bench = Bench::new();
    for time in 0..TIMES {
        let (_, outcome) = bench.run(&schedule);
        assert!(outcome.is_ok(), "time {time}: {outcome:?}");
    }
}

/// What a session read while its store could not be written is in its request, and in the store only once the other
/// machine's version has come.
#[test]
fn a_file_that_the_other_machine_has_stored_later_is_known_and_compared_with_the_disk() {
    let part = Tool::Read { file: 1, part: Some((4, 5)), spelling: Spelling::Absolute };
    let whole = Tool::Read { file: 1, part: None, spelling: Spelling::Relative };
    assert_right(
        543,
        2,
        2,
        vec![
            Step::Fault { client: 0, fault: Fault::Locked },
            Step::Act { client: 1, tool: part, call: CallId::Fresh, late: true },
            Step::Act { client: 0, tool: whole, call: CallId::Repeated(1), late: false },
            Step::Path { file: 3, change: PathChange::FolderGone },
        ],
    );
}

#[test]
fn the_same_where_only_a_change_of_the_file_is_to_be_told() {
    let whole = |client| Step::Act { client, tool: read(1), call: CallId::Fresh, late: client == 1 };
    let change = Step::Disk { file: 1, change: crate::steps::Change::Append };
    let locked = Step::Fault { client: 0, fault: Fault::Locked };
    assert_right(543, 2, 2, vec![locked, whole(1), whole(0), change]);
}
