//! Schedules behind the first 30,000 that were wrong once. Each fails with the defect that it is named after.

use rstest::rstest;

use crate::found::{act, assert_right, assert_schedule, called, disk, late, part, read, turn};
use crate::steps::{Backend, CallId, Change, Fault, Schedule, Step, Tool, TurnEnd};

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
#[case::what_a_read_of_the_same_answer_does_not_show_is_told_after_an_edit(75469, 1, 1, vec![
    called(1, read(3), CallId::Repeated(0), false),
    disk(2, Change::Append),
    act(1, part(0, 20, 1)),
    act(1, Tool::Edit { file: 0, line: 21 }),
])]
#[case::a_file_that_is_as_it_was_two_reads_ago_is_another_one_after_an_edit(62296, 1, 1, vec![
    called(3, read(1), CallId::Repeated(0), false),
    disk(3, Change::Line(1)),
    act(0, read(0)),
    disk(3, Change::Old(2)),
    act(3, Tool::Edit { file: 0, line: 34 }),
])]
#[case::a_refusal_shows_no_change_to_what_could_not_be_stored(94477, 1, 1, vec![
    Step::Fault { client: 1, fault: Fault::Once(8) },
    late(1, Tool::Edit { file: 3, line: 22 }),
    disk(0, Change::Whole(60)),
    late(1, Tool::Edit { file: 1, line: 23 }),
])]
#[case::nor_to_what_came_while_nothing_could_be_stored(97929, 1, 1, vec![
    Step::Fault { client: 0, fault: Fault::Locked },
    act(0, Tool::Edit { file: 3, line: 30 }),
    disk(3, Change::Append),
    act(0, Tool::Edit { file: 3, line: 34 }),
])]
fn it_is_right_now(
    #[case] seed: u64,
    #[case] clients: usize,
    #[case] files: usize,
    #[case] steps: Vec<Step>,
) {
    assert_right(seed, clients, files, steps);
}

/// The same where nobody checks edits.
#[rstest]
#[case::what_a_result_has_shown_that_has_left_is_known_to_the_next_process(55787, 1, 1, vec![
    Step::Quiet,
    turn(0, TurnEnd::Open),
    act(0, part(0, 4, 3)),
    Step::Crash { client: 0, keep: true },
    Step::Quiet,
    disk(0, Change::Line(8)),
    act(0, read(0)),
    Step::Quiet,
    Step::Roll { client: 0 },
    disk(2, Change::Append),
    Step::Back { client: 0, to: 4 },
    act(0, Tool::Edit { file: 0, line: 24 }),
    disk(0, Change::Old(3)),
])]
#[case::an_answer_whose_lines_a_compaction_has_removed_tells_nothing(88479, 1, 1, vec![
    act(1, read(0)),
    Step::Quiet,
    act(1, read(0)),
    disk(3, Change::Line(36)),
    Step::Compact { client: 1, keep: 3 },
    called(1, Tool::Append { file: 3 }, CallId::Repeated(1), false),
    act(1, Tool::Edit { file: 0, line: 17 }),
    disk(3, Change::Old(2)),
])]
#[case::lines_that_are_brought_back_do_not_tell_the_rest(80555, 1, 1, vec![
    act(1, read(3)),
    disk(2, Change::Append),
    act(1, part(2, 3, 5)),
    act(1, Tool::Activate { output: 0 }),
    act(1, Tool::Edit { file: 0, line: 24 }),
])]
#[case::lines_that_are_brought_back_do_not_tell_the_rest_of_what_was_written(80555, 1, 1, vec![
    act(1, read(3)),
    disk(2, Change::Append),
    called(1, Tool::Edit { file: 1, line: 4 }, CallId::Repeated(0), false),
    act(1, part(2, 3, 5)),
    act(1, Tool::Activate { output: 0 }),
    act(1, Tool::Edit { file: 0, line: 24 }),
])]
#[case::an_edit_that_could_not_be_stored_is_of_the_version_that_was_announced(84463, 1, 1, vec![
    called(0, Tool::Edit { file: 3, line: 31 }, CallId::Repeated(1), true),
    disk(3, Change::Line(22)),
    turn(0, TurnEnd::Prompt),
    Step::Fault { client: 0, fault: Fault::Locked },
    called(0, Tool::Edit { file: 3, line: 34 }, CallId::Repeated(1), true),
])]
#[case::an_edit_of_what_was_announced_is_known_though_something_else_was_stored_in_between(89111, 3, 1, vec![
    act(0, part(2, 13, 5)),
    disk(0, Change::Line(34)),
    Step::Quiet,
    called(2, Tool::Edit { file: 2, line: 28 }, CallId::Repeated(1), false),
    disk(3, Change::Old(1)),
    act(0, Tool::Edit { file: 1, line: 16 }),
])]
fn it_is_right_without_checks(
    #[case] seed: u64,
    #[case] clients: usize,
    #[case] files: usize,
    #[case] steps: Vec<Step>,
) {
    let (backend, links, unguarded) = (Backend::Memory, true, true);
    assert_schedule(&Schedule { seed, backend, clients, files, links, unguarded, steps });
}
