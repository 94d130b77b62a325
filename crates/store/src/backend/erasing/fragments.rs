//! Texts that are to be forgotten wherever they occur, also in the middle of a new text. Once they are gone, they are known by
//! hashes only.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use context_model::hash::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::MARK;
use crate::{Erase, Result, StoreError};

/// Number of bytes at the beginning of a fragment that are compared first. A fragment uses the largest that fits.
const WINDOWS: [usize; 3] = [16, 8, 4];

/// A text that is forgotten wherever it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Fragment {
    length: usize,
    /// A short checksum of the first bytes, so that few places of a text need a SHA-256. It tells less than that does.
    begins: u16,
    sha256: Digest,
}

/// A set of such texts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "BTreeSet<Fragment>", into = "BTreeSet<Fragment>")]
pub struct Fragments {
    all: BTreeSet<Fragment>,
    by_window: [CandidateWindow; WINDOWS.len()],
}

/// The fragments that are compared by the same number of first bytes.
#[derive(Clone, Debug, Default)]
struct CandidateWindow {
    /// Lengths and hashes by the checksum of the first bytes.
    fragments: HashMap<u16, Vec<(usize, Digest)>>,
    /// A bit for each checksum that one of them has; empty if there is none.
    may_begin: Vec<u64>,
}

impl PartialEq for Fragments {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Eq for Fragments {}

impl From<BTreeSet<Fragment>> for Fragments {
    fn from(all: BTreeSet<Fragment>) -> Self {
        let mut fragments = Self::default();
        all.into_iter().for_each(|one| fragments.insert(one));
        fragments
    }
}

impl From<Fragments> for BTreeSet<Fragment> {
    fn from(fragments: Fragments) -> Self {
        fragments.all
    }
}

impl Fragments {
    /// True if there are no fragments.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a text. One of fewer than four bytes is ignored.
    pub fn add(&mut self, text: &str) {
        let bytes = text.as_bytes();
        if let Some(window) = window_of(bytes.len()) {
            let begins = checksum(&bytes[..WINDOWS[window]]);
            self.insert(Fragment { length: bytes.len(), begins, sha256: Digest::of(bytes) });
        }
    }

    /// Adds all of another set.
    pub fn extend(&mut self, other: Self) {
        other.all.into_iter().for_each(|one| self.insert(one));
    }

    fn insert(&mut self, one: Fragment) {
        if let Some(window) = window_of(one.length)
            && self.all.insert(one)
        {
            self.by_window[window].insert(one);
        }
    }

    /// The text with a mark in place of each of them; `None` if it contains none. The first of overlapping ones counts, and
    /// the longest of those that begin together.
    pub fn replaced_in(&self, text: &str) -> Option<String> {
        let windows = self.by_window.iter().zip(WINDOWS);
        let mut found: Vec<_> = windows.flat_map(|(window, width)| window.found_in(width, text)).collect();
        if found.is_empty() {
            return None;
        }
        found.sort_by_key(|range| (range.start, usize::MAX - range.end));
        let (mut replaced, mut copied) = (String::with_capacity(text.len()), 0);
        for range in found {
            if range.start >= copied {
                replaced.push_str(&text[copied..range.start]);
                replaced.push_str(MARK);
                copied = range.end;
            }
        }
        replaced.push_str(&text[copied..]);
        Some(replaced)
    }
}

impl CandidateWindow {
    fn insert(&mut self, one: Fragment) {
        self.fragments.entry(one.begins).or_default().push((one.length, one.sha256));
        self.may_begin.resize(1 << 10, 0);
        self.may_begin[usize::from(one.begins >> 6)] |= 1 << (one.begins & 63);
    }

    /// Positions of its fragments in a text.
    fn found_in(&self, width: usize, text: &str) -> Vec<Range<usize>> {
        if self.may_begin.is_empty() {
            return Vec::new();
        }
        let bytes = text.as_bytes();
        let is_at = |start: usize, (length, sha256): &(usize, Digest)| {
            bytes.get(start..start + length).is_some_and(|bytes| Digest::of(bytes) == *sha256)
        };
        let mut found = Vec::new();
        for (start, begin) in bytes.windows(width).enumerate() {
            let checksum = checksum(begin);
            if self.may_begin[usize::from(checksum >> 6)] & (1 << (checksum & 63)) == 0 {
                continue;
            }
            let candidates = self.fragments.get(&checksum).into_iter().flatten();
            found.extend(candidates.filter(|one| is_at(start, one)).map(|(length, _)| start..start + length));
        }
        found
    }
}

/// The largest window that fits into this number of bytes.
fn window_of(length: usize) -> Option<usize> {
    WINDOWS.iter().position(|window| *window <= length)
}

/// A checksum of a window.
fn checksum(window: &[u8]) -> u16 {
    let mixed = window.chunks_exact(4).fold(0x9e37_79b9_7f4a_7c15_u64, |mixed, four| {
        let four = u64::from(u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        (mixed.rotate_left(23) ^ four).wrapping_mul(0xff51_afd7_ed55_8ccd)
    });
    (mixed >> 48) as u16
}

/// Shorter texts also occur in too many unrelated places.
const SHORTEST: usize = 6;

/// Number of times a text may be escaped: a JSON text is often a string in another one, as in the arguments of a call that
/// writes a JSON file.
const DEPTH: usize = 2;

/// The texts to look for, all in one pass: as they are, and as they are escaped in JSON.
pub struct Needles {
    texts: BTreeSet<String>,
    plain: AhoCorasick,
    escaped: AhoCorasick,
}

impl Needles {
    /// # Errors
    /// `INVALID_ARGUMENT` for a text that is too short, and for too many.
    pub fn new(wanted: &[Erase]) -> Result<Self> {
        let texts =
            wanted.iter().filter_map(|one| if let Erase::Text(text) = one { Some(text) } else { None });
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        if texts.iter().any(|text| text.trim().len() < SHORTEST) {
            let what =
                format!("a text to forget must have at least {SHORTEST} bytes; name the object instead");
            return Err(StoreError::Invalid(what));
        }
        let forms = |least: usize| {
            let of_one = |text: &&str| {
                let forms = std::iter::successors(Some((*text).to_owned()), |text| Some(escaped(text)));
                forms.skip(least).take(DEPTH + 1).collect::<Vec<_>>()
            };
            texts.iter().flat_map(of_one).collect::<BTreeSet<_>>()
        };
        let texts = forms(0);
        Ok(Self { plain: finder(&texts)?, escaped: finder(forms(1))?, texts })
    }

    /// Calls back with each of them as it may stand in a string.
    pub fn each_plain(&self, mut use_it: impl FnMut(&str)) {
        self.texts.iter().for_each(|text| use_it(text));
    }

    /// True if there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.plain.patterns_len() == 0
    }

    /// True if a text contains one of them.
    pub fn is_in(&self, text: &str) -> bool {
        !self.is_empty() && self.plain.is_match(text)
    }

    /// True if a JSON text contains one of them.
    pub fn is_in_json(&self, json: &str) -> bool {
        self.escaped.is_match(json)
    }

    /// A text with a mark in place of each of them; `None` if it contains none.
    pub fn replaced_in(&self, text: &str) -> Option<String> {
        self.is_in(text).then(|| self.plain.replace_all(text, &vec![MARK; self.plain.patterns_len()]))
    }

    /// A payload in JSON with a mark in place of each of them.
    pub fn taken_out_of(&self, json: &str) -> String {
        self.escaped.replace_all(json, &vec![MARK; self.escaped.patterns_len()])
    }
}

/// A text as it stands in a JSON string.
fn escaped(text: &str) -> String {
    let json = Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

fn finder<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Result<AhoCorasick> {
    let builder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
    builder.map_err(|_| StoreError::Invalid("these are too many texts at once; name fewer".into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fragments(texts: &[&str]) -> Fragments {
        let mut fragments = Fragments::default();
        texts.iter().for_each(|text| fragments.add(text));
        fragments
    }

    #[test]
    fn each_length_is_found_at_each_place() {
        for length in 4..40 {
            let secret: String = ('a'..='z').cycle().skip(length).take(length).collect();
            let fragments = fragments(&[&secret]);
            for (before, after) in [("", ""), ("x", ""), ("", "é"), ("aé ", " b"), (&*secret, &*secret)] {
                let text = format!("{before}{secret}{after}");
                let expected = text.replace(&secret, MARK);
                assert_eq!(fragments.replaced_in(&text), Some(expected), "{length} bytes");
            }
            assert_eq!(fragments.replaced_in(&secret[1..]), None);
            assert_eq!(fragments.replaced_in(&secret.to_uppercase()), None);
        }
    }

    #[test]
    fn first_and_longest_of_overlapping_ones_counts() {
        let fragments = fragments(&["abcdef", "abcdefgh", "ghijkl", "a key that is longer than the window"]);
        assert_eq!(fragments.replaced_in("abcdefghijkl").as_deref(), Some("[erased]ijkl"));
        assert_eq!(fragments.replaced_in("abcdefijkl").as_deref(), Some("[erased]ijkl"));
        let text = "so: a key that is longer than the window.";
        assert_eq!(fragments.replaced_in(text).as_deref(), Some("so: [erased]."));
    }

    #[test]
    fn fragments_survive_their_json_form_without_their_texts() {
        let fragments = fragments(&["hunter", "correct horse", "a key that is longer than the window"]);
        let json = serde_json::to_string(&fragments).unwrap();
        assert!(!json.contains("hunter") && !json.contains("horse") && !json.contains("window"));
        let read: Fragments = serde_json::from_str(&json).unwrap();
        assert_eq!(read, fragments);
        assert_eq!(read.replaced_in("my hunter2").as_deref(), Some("my [erased]2"));
        assert_eq!(Fragments::default().replaced_in("my hunter2"), None);
    }

    #[test]
    fn a_text_is_found_however_often_it_is_escaped() {
        let key = "-----BEGIN KEY-----\nab\"c\\d\n-----END KEY-----";
        let needles = Needles::new(&[Erase::Text(key.into())]).unwrap();
        let file = json!({ "private_key": key }).to_string();
        assert_eq!(needles.replaced_in(key).as_deref(), Some(MARK));
        assert_eq!(needles.replaced_in(&file), Some(json!({ "private_key": MARK }).to_string()));
        for content in [key.to_owned(), file.clone(), json!({ "nested": file }).to_string()] {
            let arguments = json!({ "path": "a.json", "content": content }).to_string();
            assert!(needles.is_in_json(&arguments), "{arguments}");
            let rest: Value = serde_json::from_str(&needles.taken_out_of(&arguments)).unwrap();
            assert!(rest["content"].as_str().unwrap().contains(MARK), "{rest}");
            assert!(!rest.to_string().contains("BEGIN KEY"), "{rest}");
        }
        assert!(!needles.is_in("BEGIN KEY") && !needles.is_in_json(r#"{"a":"BEGIN KEY"}"#));
        assert!(Needles::new(&[]).unwrap().is_empty());
    }
}
