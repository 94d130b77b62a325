//! The lines in place of old answers and texts: one for each call of a call digest and for what the model said there, and the
//! mark at the end of a text of which the beginning stays.

use context_model::chat::is_said_id;

use crate::escape::{line, word};

/// The line of a call in a call digest: `edit src/a.ts failed -> no match id=673a446c`. `gist` and `outcome` are one line each, as
/// they are shown; `gist` may be empty.
#[must_use]
pub fn call_line(tool: &str, gist: &str, has_failed: bool, outcome: Option<&str>, handle: &str) -> String {
    let gist = if gist.is_empty() { String::new() } else { format!(" {gist}") };
    let failed = if has_failed { " failed" } else { "" };
    let outcome = outcome.map(|told| format!(" -> {told}")).unwrap_or_default();
    format!("{}{gist}{failed}{outcome} id={}", word(tool), word(handle))
}

/// The line of the model's own text in a call digest: the text's beginning, and its ID if the text has more (`is_cut`).
#[must_use]
pub fn said_line(beginning: &str, is_cut: bool, id: &str) -> String {
    let cut = if is_cut { "..." } else { "" };
    format!("said: {}{cut} id={id}", line(&beginning.replace('\n', " ")))
}

/// The beginning of a text, and below it the mark that names the text and the number of UTF-16 units that it has besides.
#[must_use]
pub fn left_out(beginning: &str, rest: usize, id: &str) -> String {
    format!("{beginning}\n{MARK}{rest}{MORE}{id}]")
}

/// True if the last line of a text is the mark of [`left_out`], and there is a line before it.
#[must_use]
pub fn is_begun(text: &str) -> bool {
    let mark = text
        .rsplit_once('\n')
        .and_then(|(_, line)| line.strip_prefix(MARK)?.strip_suffix(']')?.split_once(MORE));
    mark.is_some_and(|(rest, id)| {
        !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()) && is_said_id(id)
    })
}

const MARK: &str = "[... ";

const MORE: &str = " more chars: id=";
