use rstest::rstest;

use super::*;
use ResultKind::{LongPlaceholder, Output, Picture, Reference, Unjoined, Unknown, Unrecorded};

/// The text of a result, as far as its kind depends on it.
#[derive(Clone, Copy, Debug)]
enum Text {
    Output,
    Cleared,
    Unchanged,
    Picture,
}

/// The record of a result's call.
#[derive(Clone, Copy, Debug)]
enum Call {
    None,
    Unjoined,
    Joined,
}

/// The text, compared with our reference.
#[derive(Clone, Copy, Debug)]
enum Compared {
    Same,
    Longer,
    Shorter,
}

fn kind(arrival: Arrival, text: Text, call: Call, compared: Compared) -> ResultKind {
    let recorded = |is_joined| RecordedCall {
        is_joined,
        is_reference: matches!(compared, Compared::Same),
        is_longer: matches!(compared, Compared::Longer),
    };
    let facts = ResultFacts {
        arrival,
        placeholder: match text {
            Text::Cleared => Some(Placeholder::Cleared),
            Text::Unchanged => Some(Placeholder::Unchanged),
            Text::Output | Text::Picture => None,
        },
        has_image: matches!(text, Text::Picture),
        call: match call {
            Call::None => None,
            Call::Unjoined => Some(recorded(false)),
            Call::Joined => Some(recorded(true)),
        },
    };
    facts.kind()
}

const COMPARED: [Compared; 3] = [Compared::Same, Compared::Longer, Compared::Shorter];

/// A row for each text, each record of its call, and each moment.
#[rstest]
#[case::output_without_a_record(Text::Output, Call::None, [Unrecorded, Unrecorded, Unknown])]
#[case::cleared_without_a_record(Text::Cleared, Call::None, [Unknown; 3])]
#[case::unchanged_without_a_record(Text::Unchanged, Call::None, [Unknown; 3])]
#[case::picture_without_a_record(Text::Picture, Call::None, [Unrecorded, Unrecorded, Unknown])]
#[case::output_of_no_turn(Text::Output, Call::Unjoined, [Unjoined, Unjoined, Output])]
#[case::cleared_of_no_turn(Text::Cleared, Call::Unjoined, [Unjoined, Unjoined, LongPlaceholder])]
#[case::unchanged_of_no_turn(Text::Unchanged, Call::Unjoined, [Unjoined, Unjoined, LongPlaceholder])]
#[case::picture_of_no_turn(Text::Picture, Call::Unjoined, [Unjoined, Unjoined, Picture])]
#[case::output(Text::Output, Call::Joined, [Output; 3])]
#[case::cleared(Text::Cleared, Call::Joined, [LongPlaceholder; 3])]
#[case::unchanged(Text::Unchanged, Call::Joined, [LongPlaceholder; 3])]
#[case::picture(Text::Picture, Call::Joined, [Picture; 3])]
fn kind_of_a_text_that_is_longer_than_the_reference(
    #[case] text: Text,
    #[case] call: Call,
    #[case] kinds: [ResultKind; 3],
) {
    let arrivals = [Arrival::New, Arrival::Late, Arrival::Again];
    assert_eq!(arrivals.map(|arrival| kind(arrival, text, call, Compared::Longer)), kinds);
}

/// A row for each text of a recorded call: as our reference, longer, and shorter.
#[rstest]
#[case::output(Text::Output, [Reference, Output, Output])]
#[case::cleared(Text::Cleared, [Reference, LongPlaceholder, ResultKind::Placeholder])]
#[case::unchanged(Text::Unchanged, [Reference, LongPlaceholder, ResultKind::Placeholder])]
#[case::picture(Text::Picture, [Reference, Picture, Picture])]
fn kind_of_a_text_compared_with_the_reference(#[case] text: Text, #[case] kinds: [ResultKind; 3]) {
    for arrival in [Arrival::New, Arrival::Late, Arrival::Again] {
        assert_eq!(COMPARED.map(|compared| kind(arrival, text, Call::Joined, compared)), kinds);
    }
    assert_eq!(COMPARED.map(|compared| kind(Arrival::Again, text, Call::Unjoined, compared)), kinds);
}

#[test]
fn text_stands_in_place_of_the_output_if_it_is_ours_or_the_hosts() {
    let all =
        [Unrecorded, Unjoined, Unknown, Reference, ResultKind::Placeholder, LongPlaceholder, Picture, Output];
    let in_place: Vec<ResultKind> = all.into_iter().filter(|kind| kind.is_in_its_place()).collect();
    assert_eq!(in_place, [Reference, ResultKind::Placeholder, LongPlaceholder]);
}
