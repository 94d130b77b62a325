//! The edits that show segments in their forms.

use super::plan::{Edit, TextEdit};
use super::segment::{Form, Segment, SegmentKind, Short, TextKind};
use super::segments::Segments;

impl Segments {
    /// The edits that show the messages of these segments in their current form.
    pub fn edits_of(&self, places: impl IntoIterator<Item = usize>) -> Vec<Edit> {
        let mut edits = Vec::new();
        let mut until = 0;
        let mut places: Vec<usize> = places.into_iter().collect();
        places.sort_unstable();
        for place in places {
            if place < until {
                continue;
            }
            let segment = &self.segments[place];
            if let SegmentKind::Result(output) = &segment.kind {
                until = place + 1;
                let (key, object) = (segment.key.clone(), output.object.clone());
                edits.push(match segment.form {
                    Form::Removed => Edit::Gone { key },
                    form => Edit::Result { key, object, text: output.text_in(form) },
                });
                continue;
            }
            let same = |other: &&Segment| other.key == segment.key;
            let first = place - self.segments[..place].iter().rev().take_while(same).count();
            let count = self.segments[first..].iter().take_while(same).count();
            until = first + count;
            edits.push(message_of(&segment.key, &self.segments[first..until]));
        }
        edits
    }
}

/// The edit that shows a message with these segments.
fn message_of(key: &str, segments: &[Segment]) -> Edit {
    let key = key.to_owned();
    // A message that was nothing but reasoning has no block left.
    let is_nothing = |segment: &Segment| {
        matches!(&segment.kind, SegmentKind::Words(words)
            if words.what == TextKind::Thinking && segment.form >= Form::Reference)
    };
    if segments.iter().all(|segment| segment.form == Form::Removed || is_nothing(segment)) {
        return Edit::Gone { key };
    }
    let (mut calls, mut texts) = (Vec::new(), Vec::new());
    for segment in segments {
        match &segment.kind {
            SegmentKind::Arguments(arguments) => calls.extend(arguments.in_form(segment.form)),
            SegmentKind::Words(words) if segment.form != Form::Full => {
                let text = if let Short::Text(text) = &words.short { Some(text.clone()) } else { None };
                texts.push(TextEdit { block: words.block, text });
            }
            _ => {}
        }
    }
    Edit::Message { key, calls, texts }
}
