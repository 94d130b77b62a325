//! Schedules on two machines that share a database, wrong once. When a machine hears of the other's writes is left to
//! chance, so each is repeated.

use crate::Bench;
use crate::found::read;
use crate::steps::{
    Backend, CallId, Change, Delivery, Fault, Occupant, PathChange, Schedule, Spelling, Step, Tool, TurnEnd,
};

/// So often that one of them goes each way.
const TIMES: usize = 12;

fn assert_right(seed: u64, clients: usize, files: usize, steps: Vec<Step>) {
    let schedule =
        Schedule { seed, backend: Backend::Xtdb, clients, files, links: false, unguarded: false, steps };
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
    let change = Step::Disk { file: 1, change: Change::Append };
    let locked = Step::Fault { client: 0, fault: Fault::Locked };
    assert_right(543, 2, 2, vec![locked, whole(1), whole(0), change]);
}

/// A version of the other machine may come late: it is older than what is on the disk.
#[test]
fn a_version_of_the_other_machine_that_comes_late_is_compared_with_the_disk() {
    let part = Tool::Read { file: 0, part: Some((5, 12)), spelling: Spelling::At };
    let whole = Tool::Read { file: 0, part: None, spelling: Spelling::Absolute };
    let act = |client, tool, call, late| Step::Act { client, tool, call, late };
    assert_right(
        2291,
        2,
        1,
        vec![
            act(2, part, CallId::Repeated(1), true),
            act(1, whole, CallId::Fresh, false),
            Step::Path { file: 2, change: PathChange::FolderGone },
            Step::Quiet,
            Step::Disk { file: 0, change: Change::Line(1) },
            Step::Events { client: 0, how: Delivery::All },
            Step::Path { file: 2, change: PathChange::Occupied(Occupant::Folder) },
            Step::Events { client: 1, how: Delivery::Twice },
            Step::Turn { client: 0, end: TurnEnd::Prompt },
            Step::Turn { client: 1, end: TurnEnd::Prompt },
        ],
    );
}

/// The text that a process has read and could not store comes with the other machine's version, after the process has ended.
#[test]
fn what_a_read_shows_is_found_out_once_the_other_machine_has_stored_the_file() {
    let part = Tool::Read { file: 1, part: Some((4, 5)), spelling: Spelling::Absolute };
    let whole = Tool::Read { file: 1, part: None, spelling: Spelling::Relative };
    assert_right(
        543,
        2,
        2,
        vec![
            Step::Compact { client: 0, keep: 5 },
            Step::Fault { client: 0, fault: Fault::Locked },
            Step::Act { client: 1, tool: part, call: CallId::Fresh, late: true },
            Step::Act { client: 0, tool: whole, call: CallId::Repeated(1), late: false },
            Step::Crash { client: 0, keep: true },
            Step::Path { file: 3, change: PathChange::FolderGone },
        ],
    );
}
