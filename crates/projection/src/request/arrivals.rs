//! The time when messages came, where their places in the conversation don't say: a conversation that came as a whole, and text that
//! was put into the past. Without it, a request that is rebuilt would count calls that never had them.

use std::collections::HashMap;

use context_model::chat::Arrived;
use context_model::id::ObjectId;

use super::Request;
use super::segment::SegmentKind;
use super::segments::Segments;

impl Request {
    /// Once the visible request is rebuilt and its calls are counted: gives the messages the times at which they came. `now`: the text
    /// that comes with this request, if a host has put any into the past.
    pub fn repeat_arrivals(&mut self, now: Option<&Arrived>) {
        let Self { rolled, segments, made, .. } = self;
        // The record counts answers, and the transcript may have others besides.
        let ahead = segments.calls.saturating_sub(*made);
        let mut dates = Dates::default();
        for (number, one) in rolled.arrived().iter().chain(now).enumerate() {
            let at = one.made + ahead;
            if one.answers > 0 {
                segments.note_row(at.saturating_sub(one.answers), at);
            }
            dates.note(one, Date { arrival: number + 1, since: at });
        }
        segments.date(&dates);
    }

    /// The text that comes with this request has not been sent yet, wherever in the transcript the harness has put it: its age begins
    /// now.
    pub fn date_now(&mut self, now: &Arrived) {
        let mut dates = Dates::default();
        let arrival = self.rolled.arrived().len() + 1;
        dates.note(now, Date { arrival, since: self.segments.calls });
        self.segments.date(&dates);
    }
}

/// When text in the past came: the number of its arrival, counted from 1, and of the model calls before it.
#[derive(Clone, Copy)]
struct Date {
    arrival: usize,
    since: u64,
}

/// The dates of all that a host has put into the past: the latest, where a text came more than once.
#[derive(Default)]
struct Dates<'a> {
    said: HashMap<&'a str, Date>,
    calls: HashMap<&'a ObjectId, Date>,
}

impl<'a> Dates<'a> {
    fn note(&mut self, arrived: &'a Arrived, date: Date) {
        self.said.extend(arrived.said.iter().map(|id| (id.as_str(), date)));
        self.calls.extend(arrived.calls.iter().map(|id| (id, date)));
    }

    fn of(&self, kind: &SegmentKind) -> Option<Date> {
        match kind {
            SegmentKind::Prose(prose) => self.said.get(prose.id.as_str()).copied(),
            SegmentKind::Result(output) => self.calls.get(&output.object).copied(),
            SegmentKind::Arguments(all) => {
                let objects = all.calls.iter().filter_map(|call| call.object.as_ref());
                objects.filter_map(|id| self.calls.get(id).copied()).max_by_key(|date| date.arrival)
            }
            SegmentKind::Fixed => None,
        }
    }
}

impl Segments {
    /// The messages with the last answers came together, so that the requests of all of these but the last had none of them.
    pub fn note_together(&mut self, answers: u64) {
        self.note_row(self.calls.saturating_sub(answers), self.calls);
    }

    /// Notes that the segments of some calls' times came together, before the last of these calls.
    fn note_row(&mut self, first: u64, last: u64) {
        // A hand-over that failed comes once more.
        if self.rows.last() != Some(&(first, last)) {
            self.rows.push((first, last));
        }
    }

    /// The number of calls before the first one that had a segment of a time, if other calls are between; 0 otherwise.
    pub(super) fn first_shown(&self, since: u64) -> u64 {
        let row = self.rows.partition_point(|(first, _)| *first <= since).checked_sub(1);
        row.map(|row| self.rows[row].1).filter(|last| since <= *last).unwrap_or(0)
    }

    /// Begins the age of texts and calls at these dates.
    fn date(&mut self, dates: &Dates<'_>) {
        if dates.said.is_empty() && dates.calls.is_empty() {
            return;
        }
        // Forces everything to be judged again before the next decision.
        self.need = None;
        for segment in &mut self.segments {
            let Some(date) = dates.of(&segment.kind) else { continue };
            let since = date.since.min(self.calls);
            segment.since = since;
            if let Some(step) = segment.step.map(|step| &mut self.steps[step]) {
                // The latest counts.
                if date.arrival >= step.arrival {
                    (step.since, step.arrival) = (since, date.arrival);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The answers 3 to 5 and 9 to 12 came together.
    #[rstest]
    #[case::before_all(2, 0)]
    #[case::the_first_of_a_row(3, 5)]
    #[case::within(4, 5)]
    #[case::the_last_one(5, 5)]
    #[case::between(6, 0)]
    #[case::in_the_second_row(9, 12)]
    #[case::behind_all(13, 0)]
    fn first_call_that_had_a_segment(#[case] since: u64, #[case] shown: u64) {
        let mut segments = Segments::default();
        segments.note_row(3, 5);
        segments.note_row(9, 12);
        assert_eq!(segments.first_shown(since), shown);
    }
}
