//! The texts that are to be forgotten, and where they occur.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use super::mark::MARK;
use crate::{Erase, Result, StoreError};

/// Shorter texts also occur in too many places that nobody means.
const SHORTEST: usize = 6;

/// How many times a text may be escaped: a JSON text is often a string in another one, as in the arguments of a call that
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

    /// Returns whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.plain.patterns_len() == 0
    }

    /// Returns whether a text contains one of them.
    pub fn is_in(&self, text: &str) -> bool {
        !self.is_empty() && self.plain.is_match(text)
    }

    /// Returns whether a JSON text contains one of them.
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
