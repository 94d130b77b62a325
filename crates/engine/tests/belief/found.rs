//! Schedules that were wrong once, as short as they could be made. Each fails with the defect that it is named after.

use rstest::rstest;

use crate::Bench;
use crate::steps::{Backend, CallId, Change, Delivery, Fault, Schedule, Spelling, Step, Tool, TurnEnd};

pub fn act(client: usize, tool: Tool) -> Step {
    called(client, tool, CallId::Fresh, false)
}

pub fn late(client: usize, tool: Tool) -> Step {
    called(client, tool, CallId::Fresh, true)
}

pub fn called(client: usize, tool: Tool, call: CallId, late: bool) -> Step {
    Step::Act { client, tool, call, late }
}

pub fn read(file: usize) -> Tool {
    Tool::Read { file, part: None, spelling: Spelling::Absolute }
}

pub fn part(file: usize, offset: usize, limit: usize) -> Tool {
    Tool::Read { file, part: Some((offset, limit)), spelling: Spelling::Relative }
}

pub fn disk(file: usize, change: Change) -> Step {
    Step::Disk { file, change }
}

pub fn turn(client: usize, end: TurnEnd) -> Step {
    Step::Turn { client, end }
}

/// The seed says which harnesses keep edits; after it come the numbers of clients and files.
#[rstest]
#[case::an_edit_that_nobody_stored_is_not_taken_for_what_came_after_it(1090, 3, 1, vec![
    turn(0, TurnEnd::Open),
    Step::Fault { client: 0, fault: Fault::Away },
    act(1, part(1, 16, 7)),
    act(0, Tool::Edit { file: 0, line: 35 }),
    act(0, part(2, 4, 4)),
    disk(0, Change::Append),
])]
#[case::an_edit_is_told_from_the_next_one_also_where_the_process_ends(1168, 2, 1, vec![
    act(1, read(1)),
    late(1, Tool::Edit { file: 3, line: 17 }),
    act(2, Tool::Edit { file: 1, line: 14 }),
    turn(1, TurnEnd::Lost),
])]
#[case::a_read_before_a_write_in_one_answer_stays_before_it(1123, 1, 1, vec![
    disk(3, Change::Delete),
    act(1, Tool::Append { file: 0 }),
    disk(3, Change::Cut(17)),
    late(1, read(0)),
    late(1, Tool::Write { file: 1, lines: 60 }),
    disk(2, Change::Empty),
])]
#[case::what_is_brought_back_to_an_empty_request_counts_as_shown(1456, 3, 3, vec![
    called(1, read(2), CallId::Repeated(0), false),
    called(1, Tool::Custom { lines: 60 }, CallId::Repeated(1), false),
    Step::Crash { client: 1, keep: false },
    called(1, part(0, 12, 7), CallId::Repeated(0), false),
    disk(2, Change::Cut(37)),
    act(1, Tool::Activate { output: 2 }),
])]
#[case::lines_that_an_undone_roll_brings_back_may_be_outdated(1324, 2, 2, vec![
    act(1, read(1)),
    turn(1, TurnEnd::Prompt),
    Step::Roll { client: 1 },
    act(0, Tool::Edit { file: 3, line: 15 }),
    act(1, part(3, 20, 12)),
    turn(1, TurnEnd::Prompt),
    Step::Undo { client: 1 },
])]
#[case::a_part_of_a_version_in_between_is_outdated_when_the_first_one_is_back(1382, 2, 1, vec![
    late(1, read(1)),
    disk(1, Change::Append),
    late(0, Tool::Edit { file: 3, line: 38 }),
    called(1, part(3, 4, 7), CallId::Repeated(1), false),
    disk(0, Change::Old(3)),
])]
#[case::a_part_that_nobody_stored_is_not_taken_for_another_version(1235, 3, 2, vec![
    act(2, Tool::Unpin { output: 4 }),
    Step::Fault { client: 2, fault: Fault::Full },
    act(2, part(0, 13, 9)),
    disk(3, Change::Append),
    called(0, read(0), CallId::Repeated(0), false),
    act(0, Tool::Remove { file: 2 }),
    disk(2, Change::Append),
])]
#[case::a_difference_in_sight_counts_for_an_edit(1465, 1, 1, vec![
    called(0, read(2), CallId::Repeated(0), false),
    disk(1, Change::Line(2)),
    turn(0, TurnEnd::Together),
    act(0, read(2)),
    act(0, read(0)),
    turn(0, TurnEnd::Prompt),
    Step::Roll { client: 0 },
    act(0, Tool::Edit { file: 2, line: 28 }),
])]
#[case::what_was_activated_shortly_before_the_process_ended_is_active(1490, 1, 1, vec![
    act(0, read(2)),
    act(0, read(1)),
    disk(3, Change::Whole(60)),
    act(0, part(2, 16, 4)),
    act(0, read(2)),
    turn(0, TurnEnd::Prompt),
    act(0, Tool::Activate { output: 3 }),
    Step::Crash { client: 0, keep: true },
    Step::Roll { client: 2 },
])]
#[case::a_part_that_is_recorded_late_is_not_of_what_came_after_it(18418, 1, 1, vec![
    late(2, Tool::Write { file: 0, lines: 30 }),
    disk(1, Change::Whole(30)),
    late(2, part(2, 14, 11)),
    Step::Crash { client: 2, keep: true },
    disk(2, Change::Line(5)),
])]
#[case::a_file_that_is_gone_when_its_read_is_recorded_is_announced(29117, 2, 1, vec![
    turn(1, TurnEnd::Prompt),
    Step::Fault { client: 1, fault: Fault::Full },
    late(0, Tool::Write { file: 2, lines: 30 }),
    act(1, read(2)),
    Step::Crash { client: 1, keep: true },
    disk(0, Change::Delete),
])]
#[case::a_failed_read_takes_nothing_from_the_next_one(9230, 1, 1, vec![
    act(0, Tool::Remove { file: 0 }),
    late(1, part(0, 4, 3)),
    Step::Fault { client: 1, fault: Fault::Away },
    called(1, Tool::Write { file: 3, lines: 1 }, CallId::Repeated(0), true),
    called(1, read(2), CallId::Repeated(0), false),
    disk(3, Change::Empty),
])]
#[case::a_part_says_nothing_of_a_line_that_was_removed_behind_it(9367, 1, 1, vec![
    act(0, read(2)),
    disk(2, Change::Line(16)),
    Step::Fault { client: 3, fault: Fault::Full },
    act(0, part(2, 14, 8)),
    turn(3, TurnEnd::Lost),
    disk(2, Change::Cut(21)),
])]
#[case::a_part_of_a_version_that_one_was_told_of_is_not_all_of_it(5055, 3, 2, vec![
    act(3, read(3)),
    disk(3, Change::Whole(30)),
    act(1, read(3)),
    turn(0, TurnEnd::Prompt),
    act(0, part(1, 12, 4)),
    turn(0, TurnEnd::Open),
    act(0, Tool::Edit { file: 3, line: 20 }),
])]
#[case::what_a_branch_has_written_is_left_with_it(2794, 1, 1, vec![
    act(1, read(3)),
    turn(1, TurnEnd::Lost),
    act(1, Tool::Write { file: 0, lines: 60 }),
    Step::Back { client: 1, to: 1 },
    act(1, Tool::Edit { file: 0, line: 4 }),
])]
#[case::a_part_that_was_read_after_a_notice_may_be_outdated(8245, 1, 1, vec![
    called(1, read(1), CallId::Repeated(1), true),
    disk(3, Change::Whole(1)),
    disk(1, Change::Cut(8)),
    Step::Quiet,
    disk(1, Change::Line(23)),
    called(2, Tool::Append { file: 0 }, CallId::Repeated(0), false),
    disk(1, Change::Append),
    late(1, part(2, 4, 2)),
    disk(0, Change::Empty),
])]
#[case::an_excerpt_is_of_the_version_that_the_tool_gave(8210, 2, 2, vec![
    late(2, read(1)),
    disk(3, Change::Append),
    turn(0, TurnEnd::Prompt),
    Step::Roll { client: 0 },
    act(1, Tool::Write { file: 3, lines: 60 }),
    Step::Quiet,
    Step::Fork { client: 0, from: 2 },
])]
#[case::a_notice_after_the_point_is_heard_again(7916, 2, 1, vec![
    late(1, read(2)),
    called(0, read(0), CallId::Repeated(0), false),
    disk(2, Change::Line(35)),
    turn(0, TurnEnd::Together),
    Step::Events { client: 1, how: Delivery::All },
    disk(0, Change::Old(1)),
    Step::Notices { client: 0 },
    late(1, read(0)),
    Step::Fault { client: 2, fault: Fault::Once(6) },
    turn(2, TurnEnd::Prompt),
])]
#[case::a_line_about_an_empty_output_brings_nothing_back(9568, 1, 1, vec![
    disk(1, Change::Empty),
    act(1, read(3)),
    act(1, Tool::Unpin { output: 0 }),
    called(1, Tool::Remove { file: 2 }, CallId::Repeated(0), false),
    act(1, Tool::Custom { lines: 20 }),
    act(1, Tool::Edit { file: 0, line: 33 }),
    disk(0, Change::Line(17)),
    disk(2, Change::Whole(1)),
    Step::Quiet,
    disk(3, Change::Old(3)),
    called(1, Tool::Activate { output: 4 }, CallId::Repeated(0), true),
])]
#[case::lines_that_two_activations_bring_back_are_shown(2612, 1, 1, vec![
    act(0, read(1)),
    called(0, read(2), CallId::Repeated(1), false),
    act(0, read(0)),
    disk(1, Change::Empty),
    act(3, Tool::Activate { output: 2 }),
    Step::Crash { client: 0, keep: false },
    act(0, Tool::Activate { output: 0 }),
])]
#[case::an_answered_read_takes_nothing_from_a_later_part(3487, 1, 1, vec![
    called(0, read(3), CallId::Repeated(1), false),
    Step::Crash { client: 0, keep: true },
    act(0, read(1)),
    called(0, Tool::Edit { file: 1, line: 28 }, CallId::Repeated(0), false),
    act(0, part(1, 7, 2)),
    disk(3, Change::Old(1)),
])]
#[case::a_read_past_the_end_takes_nothing_from_the_next_one(3668, 1, 1, vec![
    disk(0, Change::Whole(1)),
    disk(3, Change::Append),
    act(2, part(0, 6, 2)),
    disk(2, Change::Cut(39)),
    act(2, read(2)),
    disk(0, Change::Line(5)),
])]
#[case::what_is_stored_while_a_notice_is_written_is_told_with_it(5679, 2, 3, vec![
    called(1, read(1), CallId::Repeated(1), false),
    act(1, read(0)),
    act(0, part(1, 9, 1)),
    disk(1, Change::Line(31)),
    turn(1, TurnEnd::Open),
    Step::Fault { client: 1, fault: Fault::Beside },
    act(0, Tool::Write { file: 3, lines: 30 }),
    turn(1, TurnEnd::Open),
])]
#[case::what_a_tool_has_read_counts_through_a_failed_hand_over(6663, 1, 1, vec![
    Step::Back { client: 2, to: 7 },
    Step::Fault { client: 2, fault: Fault::Full },
    act(2, read(2)),
    turn(2, TurnEnd::Open),
    disk(0, Change::Append),
])]
#[case::an_excerpt_is_not_the_whole(7111, 1, 1, vec![
    late(0, read(3)),
    Step::Quiet,
    disk(1, Change::Whole(60)),
    act(0, Tool::Edit { file: 1, line: 17 }),
    turn(2, TurnEnd::Prompt),
    Step::Roll { client: 0 },
    act(2, read(1)),
    turn(0, TurnEnd::Lost),
    late(0, part(0, 20, 7)),
    act(2, Tool::Custom { lines: 60 }),
    called(2, Tool::Activate { output: 3 }, CallId::Repeated(1), true),
])]
#[case::what_one_has_written_is_known_though_it_is_not_stored(9808, 2, 1, vec![
    called(2, Tool::Deactivate { output: 2 }, CallId::Repeated(0), false),
    Step::Fault { client: 0, fault: Fault::Locked },
    called(1, read(1), CallId::Repeated(0), false),
    act(2, Tool::Write { file: 0, lines: 1 }),
    act(0, Tool::Edit { file: 0, line: 31 }),
])]
#[case::a_blank_line_before_a_note_is_not_the_end_of_the_file(16400, 1, 1, vec![
    act(0, part(0, 5, 11)),
    disk(3, Change::Cut(11)),
    act(0, part(3, 7, 5)),
])]
#[case::an_edit_that_nobody_stored_is_what_it_makes_of_the_text_that_was_read(14566, 2, 1, vec![
    act(1, read(0)),
    Step::Fault { client: 1, fault: Fault::Locked },
    act(1, Tool::Edit { file: 2, line: 5 }),
    disk(2, Change::Append),
    disk(2, Change::Line(1)),
    disk(0, Change::Whole(60)),
    Step::Crash { client: 1, keep: true },
    disk(3, Change::Whole(3)),
    act(0, read(0)),
    disk(0, Change::Old(3)),
])]
#[case::an_edit_is_of_the_version_in_which_its_text_came_up(11300, 2, 1, vec![
    late(0, Tool::Edit { file: 2, line: 27 }),
    disk(0, Change::Old(1)),
    late(1, Tool::Edit { file: 0, line: 31 }),
    disk(0, Change::Line(38)),
    turn(1, TurnEnd::Lost),
    act(1, Tool::Edit { file: 0, line: 23 }),
])]
#[case::what_was_stored_with_an_edit_is_not_known_after_a_restart(11690, 1, 1, vec![
    late(1, Tool::Edit { file: 3, line: 23 }),
    called(1, Tool::Append { file: 3 }, CallId::Repeated(1), false),
    Step::Quiet,
    disk(0, Change::Line(18)),
    turn(1, TurnEnd::Lost),
    called(1, Tool::Edit { file: 0, line: 4 }, CallId::Repeated(0), false),
])]
#[case::what_was_stored_with_an_edit_is_not_known_to_a_fork(16681, 2, 1, vec![
    late(1, Tool::Edit { file: 0, line: 30 }),
    called(1, Tool::Append { file: 2 }, CallId::Repeated(0), false),
    turn(1, TurnEnd::Prompt),
    Step::Fork { client: 1, from: 3 },
    disk(0, Change::Cut(27)),
    called(2, Tool::Edit { file: 2, line: 5 }, CallId::Repeated(1), true),
])]
#[case::a_notice_that_was_lost_is_not_taken_for_the_next_one(16282, 1, 1, vec![
    act(1, Tool::Append { file: 3 }),
    act(0, read(0)),
    disk(0, Change::Delete),
    Step::Events { client: 1, how: Delivery::Twice },
    turn(0, TurnEnd::Open),
    Step::Crash { client: 0, keep: false },
    disk(2, Change::Append),
    Step::Quiet,
    turn(0, TurnEnd::Lost),
    called(0, Tool::Remove { file: 1 }, CallId::Repeated(1), false),
])]
#[case::an_answer_that_points_to_a_part_is_not_about_the_rest(15723, 1, 1, vec![
    act(0, part(3, 5, 1)),
    disk(0, Change::Cut(22)),
    act(0, part(3, 12, 6)),
    turn(0, TurnEnd::Open),
    act(0, part(3, 12, 1)),
    Step::Quiet,
    act(0, Tool::Edit { file: 0, line: 37 }),
])]
#[case::an_answer_whose_lines_a_compaction_removed_says_so(68, 1, 1, vec![
    act(0, read(1)),
    turn(0, TurnEnd::Open),
    act(0, part(1, 2, 2)),
    Step::Compact { client: 0, keep: 11 },
])]
#[case::a_difference_counts_though_a_compaction_removed_its_beginning(465, 2, 1, vec![
    late(1, read(3)),
    Step::Quiet,
    called(0, Tool::Write { file: 1, lines: 5 }, CallId::Repeated(1), true),
    act(1, read(2)),
    disk(0, Change::Append),
    act(1, Tool::Edit { file: 2, line: 15 }),
    Step::Compact { client: 1, keep: 9 },
])]
#[case::an_edit_is_refused_after_a_difference_whose_beginning_a_compaction_removed(956, 1, 1, vec![
    act(2, Tool::Edit { file: 3, line: 20 }),
    Step::Quiet,
    act(2, Tool::Append { file: 1 }),
    act(2, Tool::Edit { file: 3, line: 29 }),
    Step::Compact { client: 2, keep: 11 },
    act(1, Tool::Append { file: 1 }),
    act(2, Tool::Edit { file: 3, line: 36 }),
])]
#[case::a_refusal_shows_a_change_or_says_that_it_cannot(1918, 1, 2, vec![
    turn(1, TurnEnd::Prompt),
    turn(1, TurnEnd::Open),
    Step::Fault { client: 1, fault: Fault::Full },
    turn(1, TurnEnd::Together),
    late(1, read(3)),
    disk(1, Change::Cut(12)),
    turn(1, TurnEnd::Together),
    Step::Quiet,
    Step::Back { client: 1, to: 5 },
    act(1, Tool::Edit { file: 1, line: 18 }),
])]
fn it_is_right_now(
    #[case] seed: u64,
    #[case] clients: usize,
    #[case] files: usize,
    #[case] steps: Vec<Step>,
) {
    assert_right(seed, clients, files, steps);
}

/// Nothing is wrong with these steps, where no file is behind a link.
pub fn assert_right(seed: u64, clients: usize, files: usize, steps: Vec<Step>) {
    assert_schedule(&Schedule {
        seed,
        backend: Backend::Memory,
        clients,
        files,
        links: false,
        unguarded: false,
        steps,
    });
}

/// Nothing is wrong with this schedule.
pub fn assert_schedule(schedule: &Schedule) {
    let failure = Bench::new().failure(schedule);
    assert!(failure.is_none(), "{}", failure.map_or_else(String::new, |(_, text)| text));
}
