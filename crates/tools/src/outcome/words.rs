//! Text of others in an outcome: bare where it can't be mistaken for our own words, otherwise in quotes.
//!
//! A word is shown whole or not at all, so that half of a secret never slips through, and a whole one is found.

use std::fmt::Write as _;

use context_lines::escape;
use context_model::tokens;

/// The names of our lines' fields. Before a `=` they are never shown as they are.
const FIELDS: [&str; 7] = ["id", "type", "tool", "status", "path", "file_type", "char_count"];

/// True if a word begins as a field of our lines does.
pub(super) fn is_field(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| FIELDS.contains(&name))
}

/// A word of others as it can be shown: bare if it has only letters, digits and the signs of paths and names.
pub(super) fn shown(text: &str) -> String {
    let is_bare = |word: &str| {
        !word.is_empty()
            && !word.contains("->")
            && !word.contains("toolcall_ref")
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "_./:@+-[]#%~".contains(c))
    };
    if is_bare(text) { text.to_owned() } else { quoted(text) }
}

/// A text in quotes, on one line.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    let mut word = 0;
    out.push('"');
    for (place, c) in text.char_indices() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '=' if FIELDS.contains(&&text[word..place]) => {
                // Writing to a String can't fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            ' ' => out.push(' '),
            c => out.push_str(&escape::word(c.encode_utf8(&mut [0; 4]))),
        }
        if !(c.is_ascii_alphanumeric() || c == '_') {
            word = place + c.len_utf8();
        }
    }
    out.push('"');
    out
}

/// The parts of a line that are not in quotes; `None` if a quote does not end.
#[must_use]
pub fn unquoted(line: &str) -> Option<String> {
    parts(line).map(|(bare, _)| bare)
}

/// True if a text still has the words that an outcome quotes and names from it: an erasure may have removed them since.
#[must_use]
pub fn is_said_by(outcome: &str, text: &str) -> bool {
    let text = uncoloured(text);
    let is_said = |part: &str| text.contains(part.trim_end_matches("..."));
    let Some((bare, quotes)) = parts(outcome) else { return false };
    let is_quoted = |quote: &&str| {
        let quote = escape::unescape(&quote.replace("\\\"", "\""));
        quote.is_some_and(|quote| is_said(&quote))
    };
    let names = bare.split_once(": ").or_else(|| bare.split_once(" in ")).map_or("", |(_, names)| names);
    let names = names.split(" (").next().unwrap_or_default();
    quotes.iter().all(is_quoted)
        && names.split(", ").all(|name| match name.rsplit_once(':') {
            Some((path, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => is_said(path),
            _ => name.ends_with(" files") || is_said(name),
        })
}

/// A line without its quotes, and what stands in them; `None` if a quote does not end.
fn parts(line: &str) -> Option<(String, Vec<&str>)> {
    let (mut bare, mut quotes, mut rest) = (String::new(), Vec::new(), line);
    while let Some((before, after)) = rest.split_once('"') {
        bare.push_str(before);
        let mut is_escaped = false;
        let (end, _) = after.char_indices().find(|(_, c)| {
            let ends = *c == '"' && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            ends
        })?;
        quotes.push(&after[..end]);
        rest = &after[end + 1..];
    }
    bare.push_str(rest);
    Some((bare, quotes))
}

/// The end of a path or name with at most `units` UTF-16 units, from one of its parts on; `None` if its last part is longer.
pub(super) fn end_of(name: &str, units: usize) -> Option<&str> {
    if tokens::utf16_len(name) <= units {
        return Some(name);
    }
    let parts = name.char_indices().filter(|(_, c)| matches!(c, '/' | '\\')).map(|(place, _)| place + 1);
    let mut ends = parts.map(|start| &name[start..]);
    ends.find(|end| !end.is_empty() && tokens::utf16_len(end) <= units)
}

/// The first words of a line, with at most `units` UTF-16 units; what is left out is marked. `None` if the first is longer.
pub(super) fn beginning(line: &str, units: usize) -> Option<String> {
    let line = line.trim();
    if tokens::utf16_len(line) <= units {
        return (!line.is_empty()).then(|| line.to_owned());
    }
    let ends = line.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(place, _)| &line[..place]);
    let fitting = ends.take_while(|begin| tokens::utf16_len(begin) + 3 <= units).last()?;
    Some(format!("{}...", fitting.trim_end()))
}

/// A line without the escape sequences that colour it.
pub(super) fn uncoloured(line: &str) -> std::borrow::Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return line.into();
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        rest = match after.strip_prefix('[') {
            Some(sequence) => {
                let end = sequence.find(|c: char| ('@'..='~').contains(&c));
                end.map_or("", |end| &sequence[end + 1..])
            }
            None => after,
        };
    }
    out.push_str(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("src/a.test.ts", "src/a.test.ts")]
    #[case("tests/test_a.py::test_x[1-a]", "tests/test_a.py::test_x[1-a]")]
    #[case("a b", "\"a b\"")]
    #[case("", "\"\"")]
    #[case("a->b", "\"a->b\"")]
    #[case("a=b", "\"a=b\"")]
    #[case("id=00000000", "\"id\\u{3d}00000000\"")]
    #[case("x,id=0", "\"x,id\\u{3d}0\"")]
    #[case("grid=0", "\"grid=0\"")]
    #[case("say \"hi\" \\", "\"say \\\"hi\\\" \\\\\"")]
    #[case("a\nb\u{202e}", "\"a\\nb\\u{202e}\"")]
    fn words_of_others(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(shown(text), expected);
    }

    #[rstest]
    #[case("src/a.rs", Some("src/a.rs"))]
    #[case("/shop/src/a.rs", Some("src/a.rs"))]
    #[case("/shop/sources/a.rs", Some("a.rs"))]
    #[case("/shop/very_long_name.rs", None)]
    fn ends_of_paths(#[case] path: &str, #[case] expected: Option<&str>) {
        assert_eq!(end_of(path, 8), expected);
    }

    #[rstest]
    #[case("short", Some("short"))]
    #[case("  ", None)]
    #[case("fatal: no such branch", Some("fatal: no..."))]
    #[case("averylongsecretwithoutspaces", None)]
    fn beginnings(#[case] line: &str, #[case] expected: Option<&str>) {
        assert_eq!(beginning(line, 13).as_deref(), expected);
    }

    #[test]
    fn colours_are_left_out() {
        assert_eq!(uncoloured("\u{1b}[1m\u{1b}[31m2 failed\u{1b}[39m\u{1b}[0m (3)"), "2 failed (3)");
        assert_eq!(uncoloured("plain"), "plain");
        assert_eq!(uncoloured("\u{1b}[31"), "");
    }
}
