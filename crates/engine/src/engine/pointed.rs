//! Answers that point to where lines or a text are, in the words that the model gets.

use context_model::render;

/// The beginning of an answer that points to where lines are, its continuation after the path, and its end. It stays true
/// when the result is collapsed later: its reference then stands above.
const UNCHANGED: &str = "unchanged: lines ";
const AS_IN: &str = " are as in the result id=";
const ABOVE: &str = " above";

/// The continuation of an answer whose result is no longer in the conversation.
const LEFT: &str = " were in the result id=";
const READ_AGAIN: &str = ", which is no longer in this conversation: read them again";

/// The continuation of an activation's answer whose text is in the conversation, and of one whose text has left it.
const TEXT_IN: &str = "; its text is in the result id=";
const TEXT_LEFT: &str = "; its text was in the result id=";
const ACTIVATE_AGAIN: &str = ", which is no longer in this conversation: activate it again";

/// The answer to an activation, for as long as the result with this name is in the conversation.
pub(crate) fn text_pointer(done: &str, handle: &str) -> String {
    format!("{done}{TEXT_IN}{handle}{ABOVE}")
}

/// The name of the result in which an activation's answer says that the text is.
pub(crate) fn pointed_text(output: &str) -> Option<&str> {
    output.lines().next()?.strip_suffix(ABOVE)?.rsplit_once(TEXT_IN).map(|(_, handle)| handle)
}

/// An activation's answer, for a request without the result that it points to. What stands below it stays.
pub(crate) fn text_nowhere(output: &str) -> Option<String> {
    let (answer, below) = output.split_at(output.find('\n').unwrap_or(output.len()));
    let (done, handle) = answer.strip_suffix(ABOVE)?.rsplit_once(TEXT_IN)?;
    Some(format!("{done}{TEXT_LEFT}{handle}{ACTIVATE_AGAIN}{below}"))
}

/// The answer to a read of these lines, for as long as the result with this name is in the conversation.
pub(crate) fn pointer(path: &str, first: usize, last: usize, handle: &str) -> String {
    format!("{UNCHANGED}{first}-{last} of {}{AS_IN}{handle}{ABOVE}", render::text(path))
}

/// An output that points to lines of a result, for a request without that result. What stands below it stays: lines for
/// calls that have left.
pub(crate) fn pointed_nowhere(output: &str) -> Option<String> {
    pointed_lines(output)?;
    let (answer, below) = output.split_at(output.find('\n').unwrap_or(output.len()));
    let (lines, handle) = answer.strip_suffix(ABOVE)?.rsplit_once(AS_IN)?;
    Some(format!("{lines}{LEFT}{handle}{READ_AGAIN}{below}"))
}

/// Whether an output only says that lines have left the conversation.
pub(crate) fn points_nowhere(output: &str) -> bool {
    output.starts_with(UNCHANGED) && output.lines().next().is_some_and(|line| line.ends_with(READ_AGAIN))
}

/// The name of the result that an output points to, and the first and last of the lines, if the output only says where a
/// file's lines are.
pub(crate) fn pointed_lines(output: &str) -> Option<(&str, usize, usize)> {
    let answer = output.lines().next()?.strip_prefix(UNCHANGED)?.strip_suffix(ABOVE)?;
    let (lines, handle) = answer.rsplit_once(AS_IN)?;
    let (first, last) = lines.split(' ').next()?.split_once('-')?;
    Some((handle, first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_points_is_read_as_it_was_written() {
        let answer = format!("{}\ntoolcall_ref id=9 above", pointer("a b of", 2, 14, "12345678"));
        assert_eq!(pointed_lines(&answer), Some(("12345678", 2, 14)));
        assert!(!points_nowhere(&answer));
        let left = pointed_nowhere(&answer).unwrap();
        let lines: Vec<&str> = left.lines().collect();
        assert!(lines[0].starts_with("unchanged: lines 2-14 of a b of were in the result id=12345678, "));
        assert_eq!(lines[1..], ["toolcall_ref id=9 above"]);
        assert!(points_nowhere(&left));
        assert_eq!((pointed_lines(&left), pointed_nowhere(&left)), (None, None));
        assert!(!points_nowhere(READ_AGAIN) && !points_nowhere(UNCHANGED));
    }

    #[test]
    fn an_activation_that_points_is_read_as_it_was_written() {
        let answer = format!("{}\n\narguments above", text_pointer("a is active", "12345678"));
        assert_eq!((pointed_text(&answer), pointed_lines(&answer)), (Some("12345678"), None));
        let left = text_nowhere(&answer).unwrap();
        let expected = "a is active; its text was in the result id=12345678, which is no longer in this conversation: \
                        activate it again\n\narguments above";
        assert_eq!(left, expected);
        assert_eq!((pointed_text(&left), text_nowhere(&left)), (None, None));
        assert_eq!(pointed_text(ABOVE), None);
    }
}
