//! Outputs that show a file with a number before each line, and what agents put around the output of a command.

use serde_json::Value;

/// The lines of a file that an output shows, without their numbers. `None` if the output is anything but consecutively numbered
/// lines. What frames them and what is appended for the model alone is left out.
#[must_use]
pub fn shown_lines(output: &str) -> Option<String> {
    let whole = before_reminder(output).map_or(output, |text| text.trim_end_matches('\n'));
    let text = in_element(whole).unwrap_or(whole);
    let mut next = None;
    let mut lines = String::with_capacity(text.len());
    for line in text.split('\n') {
        let (number, rest) = numbered(line)?;
        match next {
            Some(expected) if expected != number => return None,
            Some(_) => lines.push('\n'),
            None => {}
        }
        lines.push_str(rest);
        next = Some(number.checked_add(1)?);
    }
    Some(lines)
}

/// A text without the numbers of its lines, and without numbers before `→` wherever they stand. `None` if it has none.
#[must_use]
pub fn without_line_numbers(text: &str) -> Option<String> {
    let shown = if text.contains('\n') { shown_lines(text) } else { None };
    if shown.is_some() {
        return shown;
    }
    let arrowed = |line| unnumbered(line, &["→"]).map(|(_, rest)| rest);
    let has_numbers = text.contains('→') && text.split('\n').any(|line| arrowed(line).is_some());
    let lines = text.split('\n').map(|line| arrowed(line).unwrap_or(line));
    has_numbers.then(|| lines.collect::<Vec<_>>().join("\n"))
}

/// The output of a command in what an agent makes of it: what is behind Codex's lines about the command, or the one result in
/// Cline's list. `None` if the whole text is the output.
#[must_use]
pub fn output_alone(text: &str) -> Option<String> {
    in_list(text).or_else(|| behind_head(text).map(str::to_owned))
}

/// The forms in use: `12→text` and `12<tab>text` (Claude Code), `12: text` (OpenCode), `12 | text` and `L12: text`.
const AFTER_NUMBER: [&str; 7] = ["→", "\t", ": ", " | ", " |", "| ", "|"];

fn numbered(line: &str) -> Option<(u64, &str)> {
    let start = line.trim_start_matches(' ');
    unnumbered(start.strip_prefix('L').unwrap_or(start), &AFTER_NUMBER)
}

/// The number before a line, and the rest behind one of these signs.
fn unnumbered<'a>(line: &'a str, signs: &[&str]) -> Option<(u64, &'a str)> {
    let start = line.trim_start_matches(' ');
    let digits = start.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = start.split_at(digits);
    let rest = signs.iter().find_map(|sign| rest.strip_prefix(sign))?;
    Some((number.parse().ok()?, rest))
}

/// The text before what Claude Code and others append to an output for the model alone. `None` if they have appended nothing.
pub(crate) fn before_reminder(text: &str) -> Option<&str> {
    let rest = text.trim_end().strip_suffix("</system-reminder>")?;
    Some(&rest[..rest.find("<system-reminder>")?])
}

/// The lines in OpenCode's element, which names the file before it, and says in its last line how much is left.
fn in_element(text: &str) -> Option<&str> {
    let named = text.strip_prefix("<path>").and_then(|rest| {
        let (_, rest) = rest.split_once('\n').filter(|(path, _)| path.ends_with("</path>"))?;
        rest.strip_prefix("<type>file</type>\n")
    });
    let inside = |name: &str| {
        let body = named.unwrap_or(text).strip_prefix(&format!("<{name}>\n"))?;
        body.strip_suffix(&format!("\n</{name}>"))
    };
    let body = inside("content").or_else(|| inside("file"))?;
    let note = body.rsplit_once("\n\n").filter(|(_, note)| {
        note.starts_with('(') && note.ends_with(')') && note.len() > 1 && !note.contains('\n')
    });
    Some(note.map_or(body, |(lines, _)| lines))
}

/// The words that begin the lines that Codex puts before an output.
const HEADS: [&str; 6] = [
    "Chunk ID",
    "Wall time",
    "Process exited with code",
    "Exit code",
    "Total output lines",
    "Original token count",
];

fn behind_head(text: &str) -> Option<&str> {
    let is_head = |line: &str| {
        HEADS
            .iter()
            .filter_map(|head| line.strip_prefix(head))
            .any(|rest| !rest.starts_with(|first: char| first.is_alphanumeric() || first == '_'))
    };
    let (mut rest, mut has_head) = (text, false);
    while let Some((line, after)) = rest.split_once('\n') {
        if line == "Output:" && has_head {
            return Some(after);
        }
        if !is_head(line) {
            return None;
        }
        (rest, has_head) = (after, true);
    }
    None
}

/// The result in Cline's list, if there is one, and its command has succeeded.
fn in_list(text: &str) -> Option<String> {
    if !text.starts_with("[{\"query\":") {
        return None;
    }
    // A text that begins so and is not JSON is an output.
    match serde_json::from_str::<Vec<Value>>(text).ok()?.as_slice() {
        [one] if one["success"] == Value::Bool(true) => Some(one["result"].as_str()?.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("1\tone\n2\ttwo\n3\t", Some("one\ntwo\n"))]
    #[case("     9→one\n    10→two", Some("one\ntwo"))]
    #[case("4: a\n5: b: c", Some("a\nb: c"))]
    #[case("L4: a\nL5: b", Some("a\nb"))]
    #[case("1 | a\n2 |\n3|b\n4| c", Some("a\n\nb\nc"))]
    #[case("1\tone\n\n<system-reminder>\nread carefully\n</system-reminder>\n", Some("one"))]
    #[case("1\tone\n3\ttwo", None)]
    #[case("one\n2\ttwo", None)]
    #[case("1one", None)]
    #[case("", None)]
    #[case("99999999999999999999999\tone", None)]
    #[case(
        "<path>/p/a.txt</path>\n<type>file</type>\n<content>\n7: one\n8: \n\n(End of file - total 8 lines)\n</content>",
        Some("one\n")
    )]
    #[case(
        "<file>\n00001| one\n00002| two\n</file>\n\n<system-reminder>x</system-reminder>",
        Some("one\ntwo")
    )]
    #[case("<path>/p</path>\n<type>directory</type>\n<entries>\na.txt\n</entries>", None)]
    #[case("<content>\n1: one\n\n(half", None)]
    fn numbered_output_shows_lines(#[case] output: &str, #[case] lines: Option<&str>) {
        assert_eq!(shown_lines(output).as_deref(), lines);
    }

    #[rstest]
    #[case("a\n1 b", None)]
    #[case("x\n 1→b", Some("x\nb"))]
    #[case("1→b", Some("b"))]
    #[case("1\tb", None)]
    #[case("1\ta\n2\tb", Some("a\nb"))]
    #[case("a → b", None)]
    fn numbers_are_taken_out(#[case] text: &str, #[case] plain: Option<&str>) {
        assert_eq!(without_line_numbers(text).as_deref(), plain);
    }

    #[rstest]
    #[case::codex(
        "Chunk ID: f5f6\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\none\nOutput:\ntwo",
        Some("one\nOutput:\ntwo")
    )]
    #[case::older_codex("Exit code: 0\nWall time: 0 seconds\nOutput:\none", Some("one"))]
    #[case::nothing_printed("Exit code: 0\nOutput:\n", Some(""))]
    #[case::no_head("Output:\none", None)]
    #[case::another_line("Exit code: 0\nuser time: 3\nOutput:\none", None)]
    #[case::another_word("Exit codes: 0\nOutput:\none", None)]
    #[case::an_output("one\nOutput:\ntwo", None)]
    fn words_about_a_command_are_not_its_output(#[case] text: &str, #[case] alone: Option<&str>) {
        assert_eq!(output_alone(text).as_deref(), alone);
    }

    #[test]
    fn only_the_one_result_of_a_list_is_an_output() {
        let one = json!({ "query": "cat a", "result": "x\n\"y\"\n", "success": true });
        assert_eq!(output_alone(&json!([one]).to_string()).as_deref(), Some("x\n\"y\"\n"));
        let failed = json!({ "query": "cat a", "result": "x", "success": false });
        for list in [
            json!([one, one]),
            json!([failed]),
            json!([{ "query": "x", "result": 7, "success": true }]),
            json!([{ "query": "x" }]),
        ] {
            assert_eq!(output_alone(&list.to_string()), None, "{list}");
        }
        assert_eq!(output_alone("[{\"query\":"), None);
    }
}
