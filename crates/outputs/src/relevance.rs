//! The keyword rule: which descriptions share words with a query.
//!
//! A *word* is a maximal run of letters, marks and digits of any script, compared after compatibility
//! normalisation (NFKC) and without regard to case; a *keyword* is a word of more than two characters. The
//! *score* of a description is the number of distinct keywords that it shares with the query. Descriptions with a
//! score above 0 are returned, highest score first and in the given order where scores are equal; if there are none,
//! all are.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Words of up to this many characters are no keywords.
pub const SHORT_WORD: usize = 2;

/// The keywords of many descriptions, in one block of memory: about as many bytes as the descriptions have.
///
/// A lookup reads the keywords of the descriptions asked for once, from front to back, whatever the number of
/// words in the query. An inverted list would read less, but needs an allocation for each distinct word,
/// and paths in the arguments make about one for each description.
#[derive(Debug, Default)]
pub struct RelevanceIndex {
    /// Each description's distinct keywords, separated by one space.
    words: String,
    /// Where each description's keywords end.
    ends: Vec<usize>,
}

impl RelevanceIndex {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a description and returns its place: the number of descriptions added before it.
    pub fn add(&mut self, description: &str) -> usize {
        let folded = fold(description);
        let mut distinct: Vec<&str> = keywords(&folded).collect();
        distinct.sort_unstable();
        distinct.dedup();
        for (i, word) in distinct.into_iter().enumerate() {
            if i > 0 {
                self.words.push(' ');
            }
            self.words.push_str(word);
        }
        self.ends.push(self.words.len());
        self.ends.len() - 1
    }

    /// Number of descriptions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no descriptions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets all descriptions.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Ranks the descriptions at `places` and returns indices into `places`, best first; `None` if nothing matches,
    /// which means all of them in the given order. A place that does not exist never matches.
    #[must_use]
    pub fn rank(&self, query: &str, places: &[u32]) -> Option<Vec<u32>> {
        let query = Query::new(&fold(query));
        ranked(places.iter().map(|&place| self.at(place).map_or(0, |words| query.score(words.split(' ')))))
    }

    fn at(&self, place: u32) -> Option<&str> {
        let place = place as usize;
        let end = *self.ends.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.words[start..end])
    }
}

/// Ranks descriptions that are in no index, by the same rule.
#[must_use]
pub fn rank_texts<T: AsRef<str>>(query: &str, descriptions: impl Iterator<Item = T>) -> Option<Vec<u32>> {
    let query = Query::new(&fold(query));
    ranked(descriptions.map(|text| query.score_repeated(keywords(&fold(text.as_ref())))))
}

/// The same for descriptions that arrive in blocks, as they do from JavaScript: some hundred of them joined to
/// one text cross the border much quicker than single ones, and than all of them at once.
#[derive(Debug)]
pub struct Ranking {
    query: Query,
    scores: Vec<usize>,
}

impl Ranking {
    /// A ranking of nothing as yet.
    #[must_use]
    pub fn new(query: &str) -> Self {
        Self { query: Query::new(&fold(query)), scores: Vec::new() }
    }

    /// Adds descriptions, joined to one text; `units` has the length of each, in UTF-16 units (as JavaScript
    /// measures). A length that ends within a character is extended to the character's end, and what lies
    /// beyond the text is empty.
    pub fn add(&mut self, mut joined: String, units: &[u32]) {
        let ascii = joined.is_ascii();
        if ascii {
            joined.make_ascii_lowercase();
        }
        let mut rest = joined.as_str();
        for &units in units {
            let units = units as usize;
            let bytes = if ascii { units.min(rest.len()) } else { bytes_of(rest, units) };
            let (text, after) = rest.split_at(bytes);
            rest = after;
            self.scores.push(self.query.score_repeated(keywords(&fold(text))));
        }
    }

    /// The positions of the descriptions that match, best first, counted over all blocks; `None` if none does.
    #[must_use]
    pub fn order(&self) -> Option<Vec<u32>> {
        ranked(self.scores.iter().copied())
    }
}

/// The number of bytes of the first `units` UTF-16 units of a text.
fn bytes_of(text: &str, units: usize) -> usize {
    let mut seen = 0;
    let end = text.char_indices().find(|(_, c)| {
        let reached = seen >= units;
        seen += c.len_utf16();
        reached
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// A query's keywords, with a first test that rejects nearly all other words without looking for them.
#[derive(Debug)]
struct Query {
    /// Distinct, ordered by length in bytes and then by text. (For the few words of a query, a binary search is
    /// quicker than a hash of each word looked for.)
    words: Vec<Box<str>>,
    /// For each first byte, a bit for each length in bytes (63 stands for all longer ones).
    lengths: Box<[u64; 256]>,
}

impl Query {
    fn new(folded: &str) -> Self {
        let mut words: Vec<Box<str>> = keywords(folded).map(Box::from).collect();
        words.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        words.dedup();
        let mut lengths = Box::new([0; 256]);
        for word in &words {
            lengths[usize::from(word.as_bytes()[0])] |= length_bit(word);
        }
        Self { words, lengths }
    }

    /// The place of a word among the query's keywords.
    fn find(&self, word: &str) -> Option<usize> {
        let first = word.as_bytes().first().copied().unwrap_or_default();
        if self.lengths[usize::from(first)] & length_bit(word) == 0 {
            return None;
        }
        self.words.binary_search_by(|other| (other.len(), &**other).cmp(&(word.len(), word))).ok()
    }

    /// The score of keywords that are known to be distinct.
    fn score<'w>(&self, distinct: impl Iterator<Item = &'w str>) -> usize {
        distinct.filter(|word| self.find(word).is_some()).count()
    }

    /// The score of keywords with repetitions.
    fn score_repeated<'w>(&self, words: impl Iterator<Item = &'w str>) -> usize {
        let places = words.filter_map(|word| self.find(word));
        if self.words.len() <= 64 {
            let seen: u64 = places.fold(0, |seen, place| seen | 1 << place);
            return seen.count_ones() as usize;
        }
        places.collect::<HashSet<usize>>().len()
    }
}

fn length_bit(word: &str) -> u64 {
    1 << word.len().min(63)
}

/// Orders positions by score, highest first; equal scores keep their order, and 0 is left out.
fn ranked(scores: impl Iterator<Item = usize>) -> Option<Vec<u32>> {
    let mut matched: Vec<(Reverse<usize>, u32)> =
        scores.zip(0..).filter(|&(score, _)| score > 0).map(|(score, i)| (Reverse(score), i)).collect();
    matched.sort_by_key(|&(score, _)| score);
    if matched.is_empty() { None } else { Some(matched.into_iter().map(|(_, i)| i).collect()) }
}

/// The form in which words are compared.
fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Cow::Owned(text.to_ascii_lowercase());
        }
        return Cow::Borrowed(text);
    }
    // Upper case first, so that letters with several lower-case forms (s and long s, the two sigmas, sharp s and
    // its capitals) meet; letter by letter, because a word's case must not depend on its neighbours.
    let folded = text.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    Cow::Owned(folded.nfkc().collect())
}

/// The words of more than [`SHORT_WORD`] characters of a folded text, with repetitions.
fn keywords(folded: &str) -> impl Iterator<Item = &str> {
    let mut words = Words { rest: folded, ascii: folded.is_ascii() };
    std::iter::from_fn(move || words.find(|(word, ascii)| *ascii || word.chars().nth(SHORT_WORD).is_some()))
        .map(|(word, _)| word)
}

/// The words of a text that have more than [`SHORT_WORD`] bytes; with each, whether the text is ASCII.
struct Words<'a> {
    rest: &'a str,
    ascii: bool,
}

impl<'a> Iterator for Words<'a> {
    type Item = (&'a str, bool);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            // Bytes are several times quicker to look at than characters, and nearly all descriptions are ASCII.
            let (start, length) = if self.ascii {
                let bytes = self.rest.as_bytes();
                let start = bytes.iter().position(u8::is_ascii_alphanumeric)?;
                let length = bytes[start..].iter().position(|b| !b.is_ascii_alphanumeric());
                (start, length.unwrap_or(bytes.len() - start))
            } else {
                let start = self.rest.find(is_word)?;
                let word = &self.rest[start..];
                (start, word.find(|c| !is_word(c)).unwrap_or(word.len()))
            };
            let word = &self.rest[start..start + length];
            self.rest = &self.rest[start + length..];
            if word.len() > SHORT_WORD {
                return Some((word, self.ascii));
            }
        }
    }
}

fn is_word(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() || is_combining_mark(c) }
}

#[cfg(test)]
#[path = "relevance_tests.rs"]
mod tests;
