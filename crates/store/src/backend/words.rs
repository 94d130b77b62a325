//! The words of a text, as the full-text index sees them: letters, digits and underscores, without case.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use crate::{Hit, Version};

/// The most words that a query uses. If a query is longer, such as a pasted passage, only its rarest parts count: they tell
/// most, and each further word costs a look at every text that has it.
const MOST_WORDS: usize = 48;

/// The most words of a part between spaces that count, from its start.
const MOST_WORDS_A_PART: usize = 8;

/// The most distinct parts of a query that are looked at, from its start.
const MOST_PARTS: usize = 1_000;

/// A part of a query: between spaces, and at most `MOST_WORDS_A_PART` words long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phrase {
    /// As it was written.
    pub text: String,
    /// Its words, which must be adjacent: `foo.bar` is one part of two words.
    pub words: Vec<String>,
}

/// The parts that a query searches for, each once. Parts without a letter or digit are ignored.
///
/// `texts` returns how many texts contain a word, if that is known; it is called only for long queries.
pub fn wanted<E>(
    query: &str,
    mut texts: impl FnMut(&str) -> Result<Option<u64>, E>,
) -> Result<Vec<Phrase>, E> {
    let mut known = HashSet::new();
    let mut parts: Vec<Phrase> = query
        .split(|c: char| c.is_whitespace() || c.is_control())
        .map(Phrase::of)
        .filter(|part| !part.words.is_empty() && known.insert(part.words.clone()))
        .take(MOST_PARTS)
        .collect();
    if parts.iter().map(|part| part.words.len()).sum::<usize>() <= MOST_WORDS {
        return Ok(parts);
    }
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let mut order = Vec::with_capacity(parts.len());
    for (place, part) in parts.iter().enumerate() {
        let mut rarest = u64::MAX;
        for word in &part.words {
            let count = match counts.get(word.as_str()) {
                Some(count) => *count,
                None => *counts.entry(word).or_insert(texts(word)?.unwrap_or(u64::MAX)),
            };
            rarest = rarest.min(count);
        }
        order.push((rarest, Reverse(part.text.len()), place));
    }
    order.sort_unstable();
    let mut words = 0;
    let mut chosen: Vec<usize> = order
        .into_iter()
        .map(|(.., place)| place)
        .take_while(|place| {
            words += parts[*place].words.len();
            words <= MOST_WORDS
        })
        .collect();
    chosen.sort_unstable();
    Ok(chosen.into_iter().map(|place| std::mem::take(&mut parts[place])).collect())
}

/// The same when nothing is known about the texts: the longest parts count as the rarest.
pub fn longest(query: &str) -> Vec<Phrase> {
    let Ok(parts) = wanted(query, |_| Ok::<_, Infallible>(None));
    parts
}

impl Phrase {
    fn of(text: &str) -> Self {
        let mut words = WordSplit::of(text);
        let first = words.by_ref().take(MOST_WORDS_A_PART);
        let folded = first.map(|(_, word)| folded(word).into_owned()).collect();
        // After the last word there may be characters that the index counts as part of it, such as a combining
        // accent.
        let end = words.at;
        let text = if words.next().is_none() { text } else { &text[..end] };
        Self { text: text.to_owned(), words: folded }
    }
}

/// The words of a text with the byte offsets of their starts.
pub fn tokens(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    WordSplit::of(text).map(|(at, word)| (at, folded(word).into_owned()))
}

/// Byte offset of the first of these parts in a text.
pub fn first(text: &str, phrases: &[Phrase]) -> Option<usize> {
    let mut words = WordSplit::of(text);
    while let Some((at, word)) = words.next() {
        let word = folded(word);
        let begins_here = |phrase: &Phrase| {
            let [first, others @ ..] = &phrase.words[..] else { return false };
            let mut rest = words;
            *first == word
                && others.iter().all(|other| rest.next().is_some_and(|(_, word)| *other == folded(word)))
        };
        if phrases.iter().any(begins_here) {
            return Some(at);
        }
    }
    None
}

/// The number of the line at this byte, counted from 1, and the line itself, shortened around that byte.
pub fn line_at(text: &str, at: usize) -> (usize, String) {
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

/// The hit of a version whose content has all words. More matches in less text score higher.
#[must_use]
pub fn hit(wanted: &[Phrase], text: &str, version: &Version) -> Option<Hit> {
    let tokens: Vec<(usize, String)> = tokens(text).collect();
    let mut first = usize::MAX;
    let mut count = 0_usize;
    for Phrase { words, .. } in wanted {
        let mut places = tokens
            .windows(words.len())
            .filter(|window| window.iter().map(|(_, word)| word).eq(words))
            .peekable();
        first = first.min(places.peek()?[0].0);
        count += places.count();
    }
    let (line, snippet) = line_at(text, first);
    let score = count as f64 / (tokens.len() as f64 + 100.0);
    Some(Hit { id: version.document.id().clone(), tx_id: version.tx_id, line, snippet, score })
}

/// The words of a text as they stand, with the byte offsets of their starts.
#[derive(Clone, Copy)]
struct WordSplit<'a> {
    rest: &'a str,
    at: usize,
}

impl<'a> WordSplit<'a> {
    fn of(text: &'a str) -> Self {
        Self { rest: text, at: 0 }
    }
}

impl<'a> Iterator for WordSplit<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let skip = self.rest.find(is_word)?;
        let word = &self.rest[skip..];
        let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
        let at = self.at + skip;
        self.at = at + end;
        self.rest = &word[end..];
        Some((at, &word[..end]))
    }
}

fn folded(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(word.to_lowercase())
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::words("one two", &["one", "two"])]
    #[case::twice("One one ONE two", &["one", "two"])]
    #[case::nothing("-- () !", &[])]
    #[case::a_phrase("a.b c", &["a b", "c"])]
    #[case::a_long_part("a.b.c.d.e.f.g.h.i.j", &["a b c d e f g h"])]
    fn splits_a_query_into_its_parts(#[case] query: &str, #[case] parts: &[&str]) {
        let found: Vec<String> = longest(query).iter().map(|part| part.words.join(" ")).collect();
        assert_eq!(found, parts);
    }

    #[test]
    fn keeps_the_rarest_parts_of_a_long_passage() {
        let passage: String = (0..500).map(|n| format!("word{n} ")).collect();
        let texts = |word: &str| Ok::<_, Infallible>(Some(if word.ends_with("77") { 1 } else { 9 }));
        let Ok(parts) = wanted(&passage, texts);
        assert_eq!(parts.len(), MOST_WORDS);
        for rare in ["word77", "word177", "word277", "word377", "word477"] {
            assert!(parts.iter().any(|part| part.text == rare));
        }
        let line = "2026-01-31T12:00:00.123Z level=info ".repeat(100);
        assert_eq!(longest(&line).len(), 2, "nothing is asked for twice");
        let endless: String = (0..100_000).map(|n| format!("a{n}.b{n} ")).collect();
        assert_eq!(longest(&endless).len(), MOST_WORDS / 2);
    }

    #[test]
    fn the_first_phrase_is_found_wherever_it_stands() {
        let text = "Some words, and: Foo.Bar; foo bar";
        assert_eq!(first(text, &longest("bar foo.bar")), text.find("Foo"));
        assert_eq!(first(text, &longest("bar")), text.find("Bar"));
        assert_eq!(first(text, &longest("bar.bar")), None);
        assert_eq!(first("", &longest("x")), None);
    }
}
