//! The time when messages came, where their places in the conversation don't say: a conversation that came as a whole, and text that
//! was put into the past. Without it, a request that is rebuilt would count calls that never had them.

use std::collections::HashSet;

use context_model::id::ObjectId;

use super::Request;
use super::segment::SegmentKind;
use super::segments::Segments;

impl Request {
    /// Once the visible request is rebuilt and its calls are counted: gives the messages the times at which they came.
    pub fn repeat_arrivals(&mut self) {
        let Self { arrived, segments, made, .. } = self;
        // The record counts answers, and the transcript may have others besides.
        let ahead = segments.calls.saturating_sub(*made);
        for one in arrived {
            let at = one.made + ahead;
            if one.answers > 0 {
                segments.note_row(at.saturating_sub(one.answers), at);
            }
            let (said, calls) = (one.said.iter().cloned().collect(), one.calls.iter().cloned().collect());
            segments.date(&said, &calls, at);
        }
    }
}

impl Segments {
    /// The messages with the last answers came together, so that the requests of all of these but the last had none of them.
    pub fn note_together(&mut self, answers: u64) {
        self.note_row(self.calls.saturating_sub(answers), self.calls);
    }

    /// These texts, and the calls of these objects, have not been sent yet, wherever in the transcript the harness has put
    /// them: their age begins now.
    pub fn date_now(&mut self, texts: &HashSet<String>, objects: &HashSet<ObjectId>) {
        self.date(texts, objects, self.calls);
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

    /// The age of these texts, and of the calls of these objects, begins after a number of calls.
    fn date(&mut self, texts: &HashSet<String>, objects: &HashSet<ObjectId>, calls: u64) {
        if texts.is_empty() && objects.is_empty() {
            return;
        }
        // Forces everything to be judged again before the next decision.
        self.need = None;
        let since = calls.min(self.calls);
        for segment in &mut self.segments {
            let is_it = match &segment.kind {
                SegmentKind::Prose(prose) => texts.contains(&prose.id),
                SegmentKind::Result(output) => objects.contains(&output.object),
                SegmentKind::Arguments(all) => {
                    all.calls.iter().filter_map(|call| call.object.as_ref()).any(|id| objects.contains(id))
                }
                SegmentKind::Fixed => false,
            };
            if is_it {
                segment.since = since;
                if let Some(step) = segment.step {
                    self.steps[step].since = since;
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
