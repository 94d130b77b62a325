//! Schedules with files behind links that were wrong once. Each fails with the defect that it is named after.

use rstest::rstest;

use crate::found::{act, assert_schedule, called, disk, late, part, read, turn};
use crate::steps::{
    Backend, CallId, Change, Delivery, Fault, Occupant, PathChange, Schedule, Step, Tool, TurnEnd,
};

fn path(file: usize, change: PathChange) -> Step {
    Step::Path { file, change }
}

/// The seed says which harnesses keep edits, and which files are behind links; after it come the numbers of clients and
/// files.
#[rstest]
#[case::lines_that_are_brought_back_count_where_their_path_leads(702, 1, 1, vec![
    act(0, read(2)),
    late(0, part(0, 14, 5)),
    called(0, Tool::Custom { lines: 1 }, CallId::Repeated(0), true),
    path(2, PathChange::Point(1)),
    act(2, Tool::Edit { file: 2, line: 36 }),
    turn(0, TurnEnd::Prompt),
    Step::Compact { client: 0, keep: 0 },
    act(0, Tool::Deactivate { output: 2 }),
    late(0, Tool::Activate { output: 4 }),
])]
#[case::a_link_that_took_the_place_of_a_file_is_noticed_when_messages_are_read_again(736, 2, 2, vec![
    called(2, Tool::Cat { file: 3 }, CallId::Repeated(0), false),
    path(3, PathChange::Occupied(Occupant::DanglingLink)),
    disk(1, Change::Append),
    called(2, read(1), CallId::Repeated(1), false),
    act(1, Tool::Write { file: 1, lines: 1 }),
    path(3, PathChange::Point(0)),
    turn(2, TurnEnd::Prompt),
])]
#[case::a_link_that_leads_elsewhere_after_a_compaction_is_noticed(1006, 1, 2, vec![
    act(2, read(1)),
    path(1, PathChange::Occupied(Occupant::DanglingLink)),
    called(0, Tool::Custom { lines: 300 }, CallId::Repeated(0), false),
    Step::Quiet,
    disk(3, Change::Whole(30)),
    act(3, read(3)),
    path(3, PathChange::Point(0)),
    Step::Compact { client: 0, keep: 1 },
])]
#[case::a_notice_names_the_path_that_the_model_has_used(2550, 1, 1, vec![
    called(0, read(0), CallId::Repeated(0), false),
    act(2, read(2)),
    called(0, Tool::Edit { file: 0, line: 21 }, CallId::Repeated(0), false),
    act(0, part(0, 1, 10)),
    disk(3, Change::Delete),
    act(0, part(2, 4, 4)),
    Step::Compact { client: 0, keep: 8 },
    act(2, Tool::Append { file: 3 }),
    act(2, Tool::Activate { output: 5 }),
])]
#[case::a_notice_is_about_its_path_also_when_that_leads_elsewhere_later(2727, 2, 2, vec![
    late(1, read(3)),
    path(3, PathChange::Point(1)),
    turn(1, TurnEnd::Open),
    turn(1, TurnEnd::Lost),
    path(1, PathChange::Point(0)),
])]
#[case::what_nobody_stored_behind_a_link_that_leads_nowhere_is_gone(3386, 1, 1, vec![
    late(0, Tool::Edit { file: 0, line: 7 }),
    Step::Crash { client: 0, keep: true },
    path(3, PathChange::FolderGone),
])]
#[case::a_file_that_is_back_is_not_edited_unseen(3430, 1, 1, vec![
    Step::Roll { client: 0 },
    Step::Fault { client: 2, fault: Fault::Full },
    late(0, read(1)),
    late(1, Tool::Remove { file: 3 }),
    Step::Quiet,
    disk(2, Change::Append),
    act(0, Tool::Edit { file: 2, line: 8 }),
])]
#[case::a_file_in_a_folder_that_went_away_is_gone_at_its_path(3452, 1, 1, vec![
    called(2, read(1), CallId::Repeated(1), true),
    path(2, PathChange::FolderAway),
    Step::Compact { client: 2, keep: 9 },
    act(2, Tool::Activate { output: 0 }),
])]
#[case::a_link_that_comes_unheard_of_is_no_concern_until_its_event(3893, 1, 1, vec![
    called(0, Tool::Edit { file: 0, line: 36 }, CallId::Repeated(0), false),
    disk(1, Change::Delete),
    turn(0, TurnEnd::Open),
    disk(0, Change::Whole(3)),
    Step::Events { client: 2, how: Delivery::Twice },
    path(3, PathChange::Point(0)),
    turn(0, TurnEnd::Open),
])]
#[case::a_file_that_is_back_where_a_link_led_nowhere_is_read(3632, 1, 1, vec![
    called(0, Tool::Edit { file: 2, line: 4 }, CallId::Repeated(0), false),
    path(0, PathChange::FolderGone),
    Step::Quiet,
    turn(0, TurnEnd::Lost),
    disk(2, Change::Line(33)),
])]
#[case::a_file_that_is_back_after_the_process_ended_is_read(7335, 2, 2, vec![
    act(1, read(3)),
    Step::Quiet,
    disk(3, Change::Delete),
    Step::Notices { client: 1 },
    Step::Crash { client: 1, keep: true },
    disk(1, Change::Append),
])]
#[case::a_file_that_is_back_after_it_was_met_as_gone_is_heard_of(4733, 3, 1, vec![
    called(2, Tool::Write { file: 0, lines: 60 }, CallId::Repeated(1), false),
    called(1, Tool::Edit { file: 3, line: 11 }, CallId::Repeated(1), false),
    Step::Quiet,
    path(2, PathChange::FolderGone),
    disk(3, Change::Line(22)),
    Step::Back { client: 1, to: 1 },
    path(3, PathChange::Occupied(Occupant::Folder)),
    Step::Quiet,
    disk(3, Change::Whole(30)),
])]
#[case::a_link_that_led_nowhere_and_leads_somewhere_again_is_noticed(14398, 2, 1, vec![
    act(0, read(1)),
    path(2, PathChange::Point(1)),
    called(2, read(0), CallId::Repeated(0), false),
    path(3, PathChange::FolderAway),
    Step::Quiet,
    act(1, Tool::Write { file: 1, lines: 60 }),
    path(3, PathChange::Point(0)),
    turn(2, TurnEnd::Together),
])]
#[case::an_edit_that_is_recorded_late_is_of_the_file_to_which_its_link_led(3386, 2, 1, vec![
    Step::Fork { client: 1, from: 0 },
    late(0, Tool::Edit { file: 0, line: 7 }),
    Step::Crash { client: 0, keep: true },
    path(3, PathChange::FolderGone),
    Step::Compact { client: 0, keep: 3 },
    disk(2, Change::Old(1)),
    called(2, read(0), CallId::Repeated(1), true),
])]
#[case::a_write_to_a_path_that_was_met_as_gone_is_heard_of(13179, 2, 1, vec![
    act(0, part(2, 11, 5)),
    act(1, part(2, 15, 12)),
    disk(2, Change::Delete),
    turn(0, TurnEnd::Open),
    disk(0, Change::Line(39)),
    Step::Fork { client: 2, from: 3 },
    path(2, PathChange::Occupied(Occupant::Folder)),
    Step::Quiet,
    act(1, Tool::Write { file: 2, lines: 5 }),
])]
#[case::a_write_that_is_recorded_late_is_of_the_file_to_which_its_link_led(66687, 1, 1, vec![
    late(0, Tool::Write { file: 3, lines: 30 }),
    Step::Crash { client: 0, keep: true },
    disk(1, Change::Delete),
])]
#[case::a_file_whose_read_nobody_could_store_is_gone_with_its_folder(91427, 3, 3, vec![
    act(2, read(3)),
    Step::Fault { client: 2, fault: Fault::Locked },
    called(3, Tool::Edit { file: 1, line: 4 }, CallId::Repeated(0), false),
    called(2, read(1), CallId::Repeated(1), false),
    path(1, PathChange::FolderAway),
    Step::Crash { client: 2, keep: true },
])]
fn it_is_right_now(
    #[case] seed: u64,
    #[case] clients: usize,
    #[case] files: usize,
    #[case] steps: Vec<Step>,
) {
    assert_schedule(&Schedule {
        seed,
        backend: Backend::Memory,
        clients,
        files,
        links: true,
        unguarded: false,
        steps,
    });
}
