//! The tokens of texts and of segments.

use context_model::tokens;

use super::segment::{Form, Segment, SegmentKind, Short};

/// Tokens of a text.
pub(super) fn size(text: &str) -> u64 {
    tokens::estimate(text) as u64
}

/// Tokens of a segment in a form.
pub(super) fn size_in(segment: &Segment, form: Form) -> u64 {
    match &segment.kind {
        SegmentKind::Fixed => 0,
        SegmentKind::Result(output) => match form {
            Form::Full => output.full_tokens,
            form => output.text_in(form).map_or(0, |text| size(&text)),
        },
        SegmentKind::Arguments(arguments) => {
            let in_form = |form| tokens::of_chars(arguments.units_in(form)) as u64;
            match form {
                // Its lines are elsewhere; a call digest always saves something of each segment.
                Form::Removed => arguments.line_tokens.min(in_form(segment.form).saturating_sub(1)),
                form => in_form(form),
            }
        }
        SegmentKind::Prose(prose) => match (form, &prose.short) {
            (Form::Full, _) | (Form::WithoutOldText | Form::Reference | Form::Compact, Short::Whole) => {
                tokens::of_chars(prose.chars) as u64
            }
            (Form::Reference, Short::Text(text)) => size(text),
            _ => 0,
        },
    }
}
