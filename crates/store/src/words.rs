//! The words of a text, as the full-text index sees them: letters, digits and underscores, without case.

use std::collections::VecDeque;

/// The words that a query asks for: each part between spaces is one word, or several that must stand side by
/// side (`foo.bar`). Parts without any letter or digit ask for nothing.
pub(crate) fn wanted(query: &str) -> Vec<String> {
    query
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|part| part.chars().any(is_word))
        .map(str::to_owned)
        .collect()
}

/// The words of a text with the byte offsets of their starts.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    let mut rest = text;
    let mut offset = 0;
    std::iter::from_fn(move || {
        let skip = rest.find(is_word)?;
        let word = &rest[skip..];
        let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
        let found = (offset + skip, word[..end].to_lowercase());
        offset += skip + end;
        rest = &word[end..];
        Some(found)
    })
}

/// Where the first of these phrases begins in a text: the byte offset. Each phrase is a list of words.
pub(crate) fn first(text: &str, phrases: &[Vec<String>]) -> Option<usize> {
    let found = |phrase: &Vec<String>| {
        let mut last = VecDeque::with_capacity(phrase.len());
        tokens(text).find_map(|token| {
            if last.len() == phrase.len() {
                last.pop_front();
            }
            last.push_back(token);
            let is_it = last.iter().map(|(_, word)| word).eq(phrase.iter());
            last.front().filter(|_| is_it).map(|(at, _)| *at)
        })
    };
    phrases.iter().filter(|phrase| !phrase.is_empty()).filter_map(found).min()
}

/// The number of the line at this byte, counted from 1, and the line itself, shortened around that byte.
pub(crate) fn line_at(text: &str, at: usize) -> (usize, String) {
    const BEFORE: usize = 60;
    const LENGTH: usize = 200;
    let number = text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
    let line = text[start..end].trim_end_matches('\r');
    let from = line.floor_char_boundary((at - start).saturating_sub(BEFORE).min(line.len()));
    let to = line.ceil_char_boundary((from + LENGTH).min(line.len()));
    let cut = |short: bool| if short { "…" } else { "" };
    (number, format!("{}{}{}", cut(from > 0), &line[from..to], cut(to < line.len())))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
