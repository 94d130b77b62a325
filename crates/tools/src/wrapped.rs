//! Finds the lines of a file in an output of unknown form: a host may add lines before and after them, put something before
//! each of them, such as its number, or put all of them into a JSON string.
//!
//! Only lines in the output count: the file's own lines, one after the other, to their ends.

use std::borrow::Cow;

use serde_json::Value;

/// The maximum number of lines that a host may add before those of the file.
const BEFORE: usize = 20;

/// So many characters may a host put before each line, besides its number.
const BESIDE: usize = 12;

/// So many lines with text prove where they are, unless the file ends with them.
const ENOUGH: usize = 3;

/// Whose output it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputOf {
    /// A tool that reads a file: whatever else it says is its own.
    Reader,
    /// A shell: what a command printed before the file's lines may be lines of a former version. Only what frames an output
    /// is not.
    Shell,
}

/// The first and last line of a text (counted from 1) that an output shows, where a read from line `first` on was asked for.
pub fn wrapped_lines(text: &str, first: usize, output: &str, of: OutputOf) -> Option<(usize, usize)> {
    let (text, output) = match text.strip_prefix('\u{feff}') {
        Some(text) => (text, Cow::Owned(output.replacen('\u{feff}', "", 1))),
        None => (text, Cow::Borrowed(output)),
    };
    let lines: Vec<&str> = text.lines().collect();
    let own = in_output(&lines, first, &output, of);
    own.or_else(|| strings(&output).iter().find_map(|output| in_output(&lines, first, output, of)))
}

fn in_output(lines: &[&str], first: usize, output: &str, of: OutputOf) -> Option<(usize, usize)> {
    // The last line may have its carriage return without a line feed.
    let shown: Vec<&str> = output.lines().map(bare).collect();
    let may_begin = |at: &usize| of == OutputOf::Reader || *at == 0 || is_framed(&shown[..*at]);
    (0..shown.len().min(BEFORE + 1)).filter(may_begin).find_map(|at| run(lines, first, &shown[at..]))
}

/// A line without the carriage return at its end.
fn bare(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// True if these lines end with one that stands before an output: `Output:`, `<output>`, `---` or a fence.
fn is_framed(before: &[&str]) -> bool {
    let last = before.iter().map(|line| line.trim()).rfind(|line| !line.is_empty());
    last.is_some_and(|last| last.ends_with([':', '>', '-', '=', '`', ']']))
}

/// The lines with which an output begins that is the file's from line `first` on.
fn run(lines: &[&str], first: usize, shown: &[&str]) -> Option<(usize, usize)> {
    let own = lines.get(first - 1..)?;
    let beside = beside(shown.first()?, own.first()?, first)?;
    let is_shown = |(number, (line, own)): &(usize, (&&str, &&str))| {
        beside.before(*number).is_some_and(|before| {
            let is_blank = own.trim().is_empty() && line.trim_end() == before.trim_end();
            line.strip_prefix(&*before).is_some_and(|rest| rest == **own) || is_blank
        })
    };
    let count = (first..).zip(shown.iter().zip(own)).take_while(is_shown).count();
    let text = own[..count].iter().filter(|line| !line.trim().is_empty()).count();
    let is_end = first + count > lines.len();
    (text >= ENOUGH || (is_end && text > 0)).then(|| (first, first + count - 1))
}

/// The text that stands before each line.
struct Beside {
    /// Before the number.
    start: String,
    /// So wide are number and what is before it, if numbers are put to the right.
    width: Option<usize>,
    /// The number has zeros before it.
    zeros: bool,
    end: String,
    is_numbered: bool,
}

/// Returns what stands before a line that is the file's line of this number.
fn beside(line: &str, own: &str, number: usize) -> Option<Beside> {
    let before = line.strip_suffix(own)?;
    let digits: String = before.chars().filter(char::is_ascii_digit).collect();
    if digits.is_empty() {
        let is_plain = before.chars().count() <= BESIDE && !before.contains(char::is_alphanumeric);
        let start = before.to_owned();
        return is_plain.then_some(Beside {
            start,
            width: None,
            zeros: false,
            end: String::new(),
            is_numbered: false,
        });
    }
    let (start, end) = before.split_once(&digits)?;
    let is_short =
        start.chars().count() + end.chars().count() <= BESIDE && !end.contains(char::is_alphanumeric);
    let is_line_number = digits.parse() == Ok(number) && start.trim_start().len() <= 1;
    let width = start.starts_with(' ').then_some(start.len() + digits.len());
    let zeros = digits.starts_with('0');
    let width = if zeros { Some(start.len() + digits.len()) } else { width };
    let start = start.trim_start().to_owned();
    (is_short && is_line_number).then(|| Beside {
        start,
        width,
        zeros,
        end: end.to_owned(),
        is_numbered: true,
    })
}

impl Beside {
    fn before(&self, number: usize) -> Option<String> {
        if !self.is_numbered {
            return Some(self.start.clone());
        }
        let room = self.width.unwrap_or_default().saturating_sub(self.start.len());
        Some(match self.zeros {
            true => format!("{}{number:0room$}{}", self.start, self.end),
            false => {
                let width = self.width.unwrap_or_default();
                format!("{:>width$}{}", format!("{}{number}", self.start), self.end)
            }
        })
    }
}

/// The texts of several lines in an output that is JSON.
pub fn strings(output: &str) -> Vec<String> {
    fn collect(value: &Value, all: &mut Vec<String>) {
        match value {
            Value::String(text) if text.contains('\n') => all.push(text.clone()),
            Value::Array(list) => list.iter().for_each(|one| collect(one, all)),
            Value::Object(fields) => fields.values().for_each(|one| collect(one, all)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    if output.trim_start().starts_with(['"', '{', '['])
        && let Ok(value) = serde_json::from_str(output)
    {
        collect(&value, &mut all);
    }
    all
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const TEXT: &str = "fn main() {\n    let x = 1;\n\n    println!(\"{x}\");\n}\n";

    fn with(before: impl Fn(usize) -> String) -> String {
        TEXT.lines().enumerate().map(|(at, line)| format!("{}{line}\n", before(at + 1))).collect()
    }

    /// All lines of a file, as hosts show them.
    #[rstest]
    #[case::claude_code(with(|n| format!("{n:>6}→")) + "\n<system-reminder>\nBe careful.\n</system-reminder>\n")]
    #[case::claude_code_with_tabs(with(|n| format!("{n}\t")))]
    #[case::codex_shell(format!("Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{TEXT}"))]
    #[case::codex_read_file(with(|n| format!("L{n}: ")))]
    #[case::opencode(format!("<path>/a</path>\n<type>file</type>\n<content>\n{}\n(End of file - total 5 lines)\n</content>", with(|n| format!("{n}: "))))]
    #[case::older_opencode(format!("<file>\n{}\n(End of file)\n</file>", with(|n| format!("{n:05}| "))))]
    #[case::qwen(format!("Read lines 1-5 of 5 from /a\n---\n{TEXT}"))]
    #[case::gemini(format!("IMPORTANT: The file content has been truncated.\nStatus: lines 1-5 of 9.\n\n--- FILE CONTENT (truncated) ---\n{TEXT}"))]
    #[case::continue_string(serde_json::to_string(TEXT).unwrap())]
    #[case::continue_items(serde_json::json!([{ "name": "a", "content": format!("```a.rs\n{TEXT}```") }]).to_string())]
    #[case::cline(format!("<file_content path=\"a\">\n{}</file_content>", with(|n| format!("{n} | "))))]
    #[case::cursor(format!("<file path=\"a\">\n{TEXT}</file>"))]
    #[case::crush(format!("<file>\n{}</file>", with(|n| format!("{n:>6}|"))))]
    #[case::quoted(with(|_| "> ".into()))]
    #[case::indented(format!("<result>\n{}</result>", with(|_| "    ".into())))]
    #[case::line_ends(format!("<file>\r\n{}</file>", TEXT.replace('\n', "\r\n")))]
    fn all_lines_are_found_in_an_unknown_form(#[case] output: String) {
        assert_eq!(wrapped_lines(TEXT, 1, &output, OutputOf::Reader), Some((1, 5)), "{output}");
    }

    #[rstest]
    #[case::another_text("<file>\nfn other() {\n}\n</file>", 1, None)]
    #[case::an_error("No such file: a.rs", 1, None)]
    #[case::too_little("<file>\nfn main() {\n</file>", 1, None)]
    #[case::the_end("<lines>\n    println!(\"{x}\");\n}\n</lines>", 4, Some((4, 5)))]
    #[case::other_numbers(
        "<file>\n11: fn main() {\n12:     let x = 1;\n13: \n14:     println!(\"{x}\");\n15: }\n</file>",
        1,
        None
    )]
    #[case::up_to_a_change("<file>\nfn main() {\n    let x = 1;\n\n    println!(\"{x}\");\n    more();\n}\n</file>", 1, Some((1, 4)))]
    #[case::a_line_that_is_cut("1: fn main() {\n2:     let x = 1;\n3: \n4:     pri...\n5: }", 1, None)]
    #[case::behind_as_many_lines_as_may_be("x\n".repeat(20) + TEXT, 1, Some((1, 5)))]
    #[case::behind_one_more("x\n".repeat(21) + TEXT, 1, None)]
    #[case::behind_what_may_be_beside("(((((((((((( fn main() {\n", 1, None)]
    #[case::behind_a_long_text("x\nfn main() {\n".repeat(30), 1, None)]
    fn lines_that_an_output_has(
        #[case] output: impl AsRef<str>,
        #[case] first: usize,
        #[case] lines: Option<(usize, usize)>,
    ) {
        assert_eq!(wrapped_lines(TEXT, first, output.as_ref(), OutputOf::Reader), lines);
    }

    /// Text that a host puts around the output of a command, and the output of a command that read a former version.
    #[rstest]
    #[case::as_it_is(TEXT.into(), Some((1, 5)))]
    #[case::codex(format!("Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{TEXT}"), Some((1, 5)))]
    #[case::mini_swe_agent(format!("<returncode>0</returncode>\n<output>\n{TEXT}</output>"), Some((1, 5)))]
    #[case::a_blank_line(format!("Output:\n\n{TEXT}"), Some((1, 5)))]
    #[case::a_rule(format!("$ cat a.rs\n---\n{TEXT}"), Some((1, 5)))]
    #[case::another_rule(format!("a.rs\n====\n{TEXT}"), Some((1, 5)))]
    #[case::a_fence(format!("```rust\n```\n{TEXT}"), Some((1, 5)))]
    #[case::brackets(format!("[exit 0]\n{TEXT}"), Some((1, 5)))]
    #[case::in_a_string(serde_json::json!({ "output": TEXT }).to_string(), Some((1, 5)))]
    #[case::numbered(with(|n| format!("{n:>6}\t")), Some((1, 5)))]
    #[case::a_line_that_was_cut(format!("use std::fmt;\n{TEXT}"), None)]
    #[case::a_blank_line_that_was_cut(format!("\n{TEXT}"), None)]
    #[case::a_line_that_was_cut_from_a_string(serde_json::json!([format!("x;\n{TEXT}")]).to_string(), None)]
    fn lines_that_a_shell_shows(#[case] output: String, #[case] lines: Option<(usize, usize)>) {
        assert_eq!(wrapped_lines(TEXT, 1, &output, OutputOf::Shell), lines);
    }

    /// Whatever is around them: all lines that count stand in the output, one after the other.
    #[test]
    fn no_line_counts_that_is_not_in_the_output() {
        let mut state = 7_u64;
        let mut below = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        let mut found = 0;
        for _ in 0..20_000 {
            let words = ["", "}", "a", "    b", "line one", "12", "x: 1", "<file>", "é→"];
            let mut text = |count: u64| -> Vec<String> {
                (0..count)
                    .map(|n| {
                        format!(
                            "{}{}",
                            words[below(9) as usize],
                            if below(2) == 0 { n.to_string() } else { String::new() }
                        )
                    })
                    .collect()
            };
            let (count, other) = (1 + text(1).len() as u64 + 8, text(4));
            let own = text(count);
            let first = 1 + below(3) as usize;
            let last = (first + below(12) as usize).min(own.len());
            let kind = below(6);
            let changed = below(4) == 0;
            let mut shown: Vec<String> = (first..=last)
                .map(|n| {
                    let line = own.get(n - 1).cloned().unwrap_or_default();
                    match kind {
                        0 => format!("{n:>6}→{line}"),
                        1 => format!("{n}: {line}"),
                        2 => format!("{n:05}| {line}"),
                        3 => format!("> {line}"),
                        _ => line,
                    }
                })
                .collect();
            if changed && !shown.is_empty() {
                let at = below(shown.len() as u64) as usize;
                shown[at].push('!');
            }
            let around = below(3) as usize;
            let all: Vec<String> =
                other[..around].iter().chain(&shown).chain(&other[around..]).cloned().collect();
            let output =
                if kind == 5 { serde_json::to_string(&all.join("\n")).unwrap() } else { all.join("\n") };
            let Some((from, to)) = wrapped_lines(&own.join("\n"), first, &output, OutputOf::Reader) else {
                continue;
            };
            found += 1;
            let is_there = all.windows(to + 1 - from).any(|lines| {
                lines
                    .iter()
                    .zip(&own[from - 1..to])
                    .all(|(line, own)| line.trim_end().ends_with(own.trim_end()))
            });
            assert!(from == first && is_there, "{from}-{to} of {own:?} in {output}");
        }
        assert!(found > 5_000, "{found}");
    }
}
