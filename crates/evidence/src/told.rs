//! The whole text of a file as the result of a call tells it, for files that the client can't look at.
//!
//! A host may number the lines of a file, frame them or cut them. Such an output is not the file's text, so only an output
//! without a sign of that counts.

use context_tools::{PATH_ARGUMENTS, strings, written_in};
use serde_json::{Map, Value};

/// The words that begin an output which a host has framed.
const FRAMES: [&str; 10] = [
    "<file",
    "<path",
    "<content",
    "<output",
    "<result",
    "<type",
    "<system",
    "Exit code:",
    "Read lines",
    "IMPORTANT:",
];

/// Returns the whole text that a successful read shows (`None` if it may be a part of the file, or adorned). A read with another
/// argument than the path may show a part.
///
/// An empty output tells nothing: a host may show nothing for other reasons.
#[must_use]
pub fn whole_read<'a>(args: &Map<String, Value>, output: &'a str) -> Option<&'a str> {
    let is_part = args.iter().any(|(name, value)| !value.is_null() && !PATH_ARGUMENTS.contains(&&**name));
    let is_adorned = FRAMES.iter().any(|frame| output.starts_with(frame)) || is_numbered(output);
    let has_note = output.trim_end().lines().last().is_none_or(is_note);
    let is_json_text = !strings(output).is_empty() || output.starts_with('"');
    (!is_part && !is_adorned && !has_note && !is_json_text).then_some(output)
}

/// Returns the whole text that a successful write leaves: its argument `content`.
#[must_use]
pub fn whole_write(args: &Map<String, Value>) -> Option<&str> {
    written_in(args)
}

/// True if a line may be a host's remark about the lines above it: how to continue, or that text is missing.
fn is_note(line: &str) -> bool {
    let line = line.trim();
    let lower = line.to_lowercase();
    (line.starts_with(['[', '(', '<']) && line.ends_with([']', ')', '>']))
        || line.starts_with("...")
        || line.starts_with('…')
        || lower.contains("truncated")
        || lower.contains("omitted")
}

/// True if the lines may have their numbers before them: the first ones begin with 1, 2, 3.
fn is_numbered(output: &str) -> bool {
    let lines: Vec<&str> = output.lines().take(3).collect();
    let has_number = |(at, line): (usize, &&str)| {
        let start = line.trim_start();
        let digits = start.trim_start_matches(|first: char| !first.is_ascii_digit());
        let number: String = digits.chars().take_while(char::is_ascii_digit).collect();
        start.len() - digits.len() <= 1 && number.parse() == Ok(at + 1)
    };
    !lines.is_empty() && lines.iter().enumerate().all(has_number)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[rstest]
    #[case::text("fn main() {}\n")]
    #[case::several_lines("a\n\nb\n")]
    #[case::html("<!DOCTYPE html>\n<p>x</p>\nend\n")]
    #[case::json_file("{\n  \"a\": 1\n}\n")]
    #[case::begins_with_another_number("127.0.0.1 localhost\n::1 localhost\n")]
    fn plain_output_of_a_read_is_the_files_text(#[case] output: &str) {
        assert_eq!(whole_read(&fields(json!({ "path": "/etc/a" })), output), Some(output));
        assert_eq!(
            whole_read(&fields(json!({ "file_path": "/etc/a", "offset": null })), output),
            Some(output)
        );
    }

    #[rstest]
    #[case::from_a_line_on(json!({ "path": "a", "offset": 3 }))]
    #[case::some_lines(json!({ "path": "a", "limit": 3 }))]
    #[case::another_argument(json!({ "path": "a", "view_range": [1, 3] }))]
    fn read_with_other_arguments_may_show_a_part(#[case] args: Value) {
        assert_eq!(whole_read(&fields(args), "a\n"), None);
    }

    #[rstest]
    #[case::nothing("")]
    #[case::pi_note("a\nb\n\n[Showing lines 1-2 of 9. Use offset=3 to continue.]")]
    #[case::end_of_file("a\n\n(End of file - total 1 lines)")]
    #[case::cut("a\nb\n... 12 more lines")]
    #[case::truncated("a\nOutput truncated to 50 KB")]
    #[case::numbered("     1\ta\n     2\tb\n     3\tc\n")]
    #[case::numbered_with_arrows("     1→a\n")]
    #[case::codex("L1: a\nL2: b\nL3: c\n")]
    #[case::zeros("00001| a\n00002| b\n")]
    #[case::framed("<file>\na\n</file>")]
    #[case::shell("Exit code: 0\nOutput:\na\n")]
    #[case::reminder("a\n<system-reminder>\nBe careful.\n</system-reminder>")]
    #[case::json_text("\"a\\nb\"")]
    #[case::json_items("[{\"content\":\"a\\nb\"}]")]
    fn wrapped_or_cut_output_is_not_the_files_text(#[case] output: &str) {
        assert_eq!(whole_read(&fields(json!({ "path": "a" })), output), None);
    }

    #[test]
    fn write_leaves_its_content() {
        assert_eq!(whole_write(&fields(json!({ "path": "a", "content": "x" }))), Some("x"));
        assert_eq!(whole_write(&fields(json!({ "path": "a", "content": 3 }))), None);
        assert_eq!(whole_write(&fields(json!({ "path": "a", "old_string": "x" }))), None);
    }
}
