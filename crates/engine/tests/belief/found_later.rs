//! Schedules behind the first 30,000 that were wrong once. Each fails with the defect that it is named after.

use rstest::rstest;

use crate::found::{act, assert_right, called, disk, late, part, read, turn};
use crate::steps::{CallId, Change, Fault, Step, Tool, TurnEnd};

/// The seed says which harnesses keep edits; after it come the numbers of clients and files.
#[rstest]
#[case::a_difference_never_leads_to_a_file_that_is_gone(45505, 2, 1, vec![
    disk(1, Change::Whole(1)),
    called(1, read(2), CallId::Repeated(1), false),
    disk(3, Change::Cut(3)),
    Step::Quiet,
    late(1, Tool::Edit { file: 3, line: 20 }),
    act(0, Tool::Remove { file: 1 }),
])]
#[case::a_read_behind_an_edit_is_of_no_version_before_it(48541, 1, 1, vec![
    act(1, Tool::Write { file: 2, lines: 1 }),
    act(1, Tool::Edit { file: 2, line: 9 }),
    disk(2, Change::Old(1)),
    act(1, read(0)),
    Step::Crash { client: 1, keep: true },
    act(1, Tool::Edit { file: 2, line: 14 }),
])]
#[case::what_was_never_stored_is_not_taken_for_the_version_most_like_it(37714, 3, 3, vec![
    act(2, Tool::Cat { file: 1 }),
    Step::Fault { client: 2, fault: Fault::Full },
    called(2, read(2), CallId::Repeated(1), false),
    act(0, Tool::Edit { file: 2, line: 7 }),
    Step::Quiet,
    disk(2, Change::Append),
    Step::Crash { client: 2, keep: false },
    act(2, Tool::Edit { file: 2, line: 17 }),
])]
#[case::a_notice_that_a_failure_has_delayed_is_not_of_an_older_version(63229, 2, 1, vec![
    act(1, read(0)),
    disk(3, Change::Append),
    turn(1, TurnEnd::Open),
    disk(2, Change::Delete),
    Step::Fault { client: 1, fault: Fault::Once(6) },
    disk(2, Change::Old(1)),
    act(2, read(1)),
    disk(1, Change::Append),
    Step::Notices { client: 1 },
])]
#[case::an_activated_output_stays_though_the_file_is_read_again(59022, 2, 2, vec![
    act(2, read(3)),
    Step::Crash { client: 2, keep: false },
    act(3, Tool::Write { file: 3, lines: 60 }),
    act(2, read(3)),
    act(2, Tool::Activate { output: 1 }),
    turn(2, TurnEnd::Prompt),
    act(2, read(1)),
])]
#[case::what_is_stored_while_a_roll_is_recorded_is_announced(75817, 2, 1, vec![
    turn(0, TurnEnd::Prompt),
    act(0, part(2, 6, 5)),
    called(0, read(2), CallId::Repeated(1), false),
    Step::Quiet,
    Step::Fault { client: 0, fault: Fault::Beside },
    called(1, read(2), CallId::Repeated(0), false),
    disk(0, Change::Delete),
    Step::Compact { client: 0, keep: 0 },
])]
#[case::a_restored_point_is_stored_though_the_last_answer_was_lost(77949, 1, 1, vec![
    Step::Quiet,
    Step::Fault { client: 2, fault: Fault::After },
    late(2, Tool::Edit { file: 0, line: 6 }),
    Step::Back { client: 0, to: 6 },
])]
#[case::a_repeated_call_with_other_arguments_and_the_same_output_is_another_call(86411, 1, 1, vec![
    disk(0, Change::Delete),
    called(3, Tool::Edit { file: 2, line: 12 }, CallId::Repeated(0), false),
    turn(0, TurnEnd::Prompt),
    Step::Compact { client: 3, keep: 7 },
    Step::Fault { client: 0, fault: Fault::Full },
    called(3, Tool::Edit { file: 2, line: 3 }, CallId::Repeated(0), false),
])]
#[case::a_part_stays_of_the_version_that_was_read_when_a_compaction_takes_its_notice(28284, 2, 1, vec![
    late(2, part(2, 1, 2)),
    act(1, Tool::Append { file: 2 }),
    Step::Compact { client: 0, keep: 7 },
    act(0, read(3)),
    act(0, Tool::Activate { output: 1 }),
])]
fn it_is_right_now(
    #[case] seed: u64,
    #[case] clients: usize,
    #[case] files: usize,
    #[case] steps: Vec<Step>,
) {
    assert_right(seed, clients, files, steps);
}
