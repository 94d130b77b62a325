//! Texts that hosts write in place of an output: that they have cleared it, or that an earlier one has the same. They are
//! neither the output nor a version of a file. `fixtures/golden/placeholders.json` names the host of each.

use context_lines::Pointed;
use context_model::tokens::utf16_len;
use serde_json::{Map, Value};

use crate::numbered::before_reminder;

/// A host's text in place of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The output was here and is not sent any more.
    Cleared,
    /// A file was read once more, and an earlier result has it.
    Unchanged,
}

impl Placeholder {
    /// Longer texts are outputs, in UTF-16 units.
    pub const LONGEST: usize = 20_000;

    /// Returns the meaning of a whole output that is a placeholder; `None` if it is an output.
    #[must_use]
    pub fn of(output: &str) -> Option<Self> {
        if utf16_len(output) > Self::LONGEST {
            return None;
        }
        let text = output.trim();
        // A host that keeps what was sent has our line below its own words.
        let text = Pointed::of(text).map_or(text, |pointed| pointed.words.trim_end());
        let alone = before_reminder(text).map_or(text, str::trim_end);
        if is_cleared(text) || is_cleared(alone) {
            return Some(Self::Cleared);
        }
        (is_unchanged(text) || is_unchanged(alone) || is_unchanged_in_json(text)).then_some(Self::Unchanged)
    }
}

fn is_cleared(text: &str) -> bool {
    let between = |start: &str, end: &str| text.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
    let is_line = |text: &str| !text.contains('\n');
    let is_count = |text: &str| {
        let (count, words) = text.split_once(' ').unwrap_or_default();
        !count.is_empty()
            && count.bytes().all(|byte| byte.is_ascii_digit())
            && matches!(words, "line" | "lines")
    };
    matches!(text, "[cleared]" | "<MASKED>" | "[Old assistant image content cleared]")
        || between("[", "]").is_some_and(says_cleared)
        || between("[[NOTE] This file read has been removed to save space", "]").is_some_and(is_line)
        || between("Old environment output: (", " omitted)").is_some_and(is_count)
        || between("<tool_output_masked>\n", "\n</tool_output_masked>").is_some()
}

/// True if a line says that an output has been taken out. Hosts, and the plugins that people write for them, say it in words of their own.
fn says_cleared(line: &str) -> bool {
    const OUTPUTS: [&str; 6] = ["output", "outputs", "result", "results", "observation", "content"];
    const GONE: [&str; 8] =
        ["cleared", "removed", "omitted", "pruned", "masked", "elided", "dropped", "evicted"];
    let has = |names: &[&str]| {
        let mut words = line.split(|c: char| !c.is_alphanumeric());
        words.any(|word| names.iter().any(|name| name.eq_ignore_ascii_case(word)))
    };
    utf16_len(line) <= LONGEST_LINE && !line.contains(['\n', '[', ']']) && has(&OUTPUTS) && has(&GONE)
}

/// A longer line is an output, in UTF-16 units.
const LONGEST_LINE: usize = 200;

fn is_unchanged(text: &str) -> bool {
    if text.is_empty() || text.contains('\n') {
        return false;
    }
    let wasted = text.strip_prefix("Wasted call ").and_then(|rest| rest.split_once(' '));
    wasted.is_some_and(|(dash, rest)| {
        dash.chars().count() == 1 && rest.starts_with("file unchanged since your last Read.")
    }) || text.strip_prefix("File unchanged since last read").is_some_and(|rest| {
        // Some agents say in brackets how long it is.
        let rest =
            rest.strip_prefix(" (").and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
        rest.starts_with(". The content from the earlier ")
    }) || text.starts_with("<system-reminder>This file is already in your context")
        || text.strip_prefix("[File ").is_some_and(|rest| {
            rest.ends_with(']')
                && rest.find(" unchanged since last read in this session ").is_some_and(|at| at > 0)
        })
}

/// True if a tool that answers in JSON says so in one of its fields. Hermes Agent's has the path and some flags beside it.
fn is_unchanged_in_json(text: &str) -> bool {
    if !text.starts_with('{') || utf16_len(text) > LONGEST_JSON {
        return false;
    }
    let fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    fields.values().any(|value| value.as_str().is_some_and(is_unchanged))
}

/// A longer object has an output in it, in UTF-16 units.
const LONGEST_JSON: usize = 4_000;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn placeholders_of_each_host_are_recognized() {
        let corpus: Value =
            serde_json::from_str(include_str!("../../../fixtures/golden/placeholders.json")).unwrap();
        let texts = |name: &str| -> Vec<String> {
            let groups = corpus[name].as_object().unwrap().values();
            groups
                .flat_map(|one| one.as_array().unwrap())
                .map(|one| one.as_str().unwrap().to_owned())
                .collect()
        };
        for text in texts("cleared") {
            assert_eq!(Placeholder::of(&text), Some(Placeholder::Cleared), "{text:?}");
        }
        for text in texts("unchanged") {
            assert_eq!(Placeholder::of(&text), Some(Placeholder::Unchanged), "{text:?}");
        }
        for text in corpus["none"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()) {
            assert_eq!(Placeholder::of(text), None, "{text:?}");
        }
    }

    #[test]
    fn longer_text_is_an_output() {
        let masked = |length| format!("<tool_output_masked>\n{}\n</tool_output_masked>", "x".repeat(length));
        assert_eq!(Placeholder::of(&masked(10_000)), Some(Placeholder::Cleared));
        assert_eq!(Placeholder::of(&masked(30_000)), None);
        let wide = format!("<tool_output_masked>\n{}\n</tool_output_masked>", "语".repeat(10_000));
        assert_eq!(Placeholder::of(&wide), Some(Placeholder::Cleared), "a character is one unit");
    }
}
