//! The rules as they are released, and how one is applied.
//!
//! A rule has a regular expression, keywords (at least one must occur before it runs), the least entropy of a
//! match, and exceptions. Rules for whole files by their names are left out, and so are the paths that gitleaks passes
//! over: a key in a lock file is a key.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::bytes::{Captures, Regex, RegexBuilder};
use serde::Deserialize;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// The rule that found it, for instance `aws-access-token`.
    pub rule: &'static str,
    /// Range of the secret itself, in bytes.
    pub range: Range<usize>,
}

/// Returns the secrets that the rules find in a text, in no order.
pub(super) fn find(text: &str, path: Option<&str>) -> Vec<Secret> {
    let rules = &*RULES;
    let mut candidates: BTreeSet<usize> = BTreeSet::new();
    for found in rules.keywords.find_overlapping_iter(text) {
        candidates.extend(&rules.by_keyword[found.pattern().as_usize()]);
    }
    candidates.into_iter().flat_map(|rule| rules.all[rule].find(text, path)).collect()
}

/// The file as it is released.
#[derive(Deserialize)]
struct File {
    allowlist: Allowed,
    rules: Vec<RuleSource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleSource {
    id: String,
    regex: Option<String>,
    path: Option<String>,
    #[serde(default)]
    entropy: f64,
    #[serde(default)]
    keywords: Vec<String>,
    secret_group: Option<usize>,
    #[serde(default)]
    allowlists: Vec<Allowed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Allowed {
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    stopwords: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    condition: Option<String>,
    regex_target: Option<String>,
    #[serde(skip)]
    compiled: OnceLock<Vec<Regex>>,
}

struct Rule {
    written: RuleSource,
    id: &'static str,
    regex: OnceLock<Option<Regex>>,
    path: OnceLock<Option<Regex>>,
}

struct Rules {
    all: Vec<Rule>,
    allowed: Allowed,
    keywords: AhoCorasick,
    /// The rules that each of the keywords belongs to.
    by_keyword: Vec<Vec<usize>>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let File { allowlist, rules } = toml::from_str(include_str!("gitleaks.toml")).unwrap_or_else(|error| {
        unreachable!("the rules are part of the program, and a test reads them: {error}")
    });
    let all: Vec<Rule> = rules
        .into_iter()
        .filter(|written| written.regex.is_some())
        .map(|written| {
            let id: &'static str = Box::leak(written.id.clone().into_boxed_str());
            Rule { written, id, regex: OnceLock::new(), path: OnceLock::new() }
        })
        .collect();
    let mut by_keyword: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, rule) in all.iter().enumerate() {
        for keyword in &rule.written.keywords {
            by_keyword.entry(keyword.to_lowercase()).or_default().push(place);
        }
    }
    let keywords = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(by_keyword.keys())
        .unwrap_or_else(|error| unreachable!("a few hundred words are not too many: {error}"));
    Rules { all, allowed: allowlist, keywords, by_keyword: by_keyword.into_values().collect() }
});

impl Rule {
    fn find(&self, text: &str, path: Option<&str>) -> Vec<Secret> {
        if let Some(wanted) = &self.written.path {
            let wanted = self.path.get_or_init(|| compiled(wanted));
            let is_wanted =
                |path: &str| wanted.as_ref().is_some_and(|wanted| wanted.is_match(path.as_bytes()));
            if !path.is_some_and(is_wanted) {
                return Vec::new();
            }
        }
        let regex = self.regex.get_or_init(|| self.written.regex.as_deref().and_then(compiled));
        let Some(regex) = regex else { return Vec::new() };
        regex.captures_iter(text.as_bytes()).filter_map(|captures| self.secret(text, &captures)).collect()
    }

    fn secret(&self, text: &str, captures: &Captures<'_>) -> Option<Secret> {
        let whole = captures.get(0)?;
        let found = match self.written.secret_group {
            Some(group) => captures.get(group)?,
            None => captures.iter().skip(1).flatten().find(|group| !group.is_empty()).unwrap_or(whole),
        };
        let (range, matched) = (on_borders(text, found.range()), on_borders(text, whole.range()));
        let secret = &text[range.clone()];
        if self.written.entropy > 0.0 && entropy(secret) <= self.written.entropy {
            return None;
        }
        let start = text[..matched.start].rfind('\n').map_or(0, |end| end + 1);
        let end = text[matched.end..].find('\n').map_or(text.len(), |length| matched.end + length);
        let place = (secret, &text[matched], &text[start..end]);
        let lists = self.written.allowlists.iter().chain([&RULES.allowed]);
        let is_allowed = lists.into_iter().any(|allowed| allowed.allows(place));
        (!is_allowed).then_some(Secret { rule: self.id, range })
    }
}

impl Allowed {
    /// True if the list says that this is not a secret, given the rule's match and its line.
    fn allows(&self, (secret, matched, line): (&str, &str, &str)) -> bool {
        // A list that also wants a path is for repositories that have it.
        if self.condition.as_deref() == Some("AND") && !self.paths.is_empty() {
            return false;
        }
        let target = match self.regex_target.as_deref() {
            Some("match") => matched,
            Some("line") => line,
            _ => secret,
        };
        let regexes =
            self.compiled.get_or_init(|| self.regexes.iter().filter_map(|regex| compiled(regex)).collect());
        let lower = secret.to_lowercase();
        regexes.iter().any(|regex| regex.is_match(target.as_bytes()))
            || self.stopwords.iter().any(|word| lower.contains(word))
    }
}

/// Classes such as `\w` are ASCII only, as in Go, for which the rules are written.
fn compiled(regex: &str) -> Option<Regex> {
    let build = |regex: &str| RegexBuilder::new(regex).unicode(false).size_limit(64 << 20).build().ok();
    build(regex).or_else(|| build(&with_plain_braces(regex)))
}

/// In Go, a brace that does not begin a repetition is an ordinary character.
fn with_plain_braces(regex: &str) -> String {
    let mut plain = String::with_capacity(regex.len());
    for (at, char) in regex.char_indices() {
        let counts = regex[at..].split('}').next().unwrap_or_default();
        let is_plain = char == '{'
            && !plain.ends_with('\\')
            && (counts.len() == 1 || !counts[1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b','));
        if is_plain {
            plain.push('\\');
        }
        plain.push(char);
    }
    plain
}

/// The range, widened so that it splits no character.
fn on_borders(text: &str, range: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)
}

/// Shannon's entropy of a text's characters, in bits.
fn entropy(text: &str) -> f64 {
    let mut counts: BTreeMap<char, usize> = BTreeMap::new();
    text.chars().for_each(|char| *counts.entry(char).or_default() += 1);
    let length = text.chars().count() as f64;
    let part = |count: &usize| *count as f64 / length;
    -counts.values().map(|count| part(count) * part(count).log2()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_release_can_be_used() {
        assert!(RULES.all.len() >= 220, "{}", RULES.all.len());
        for rule in &RULES.all {
            let regexes = [rule.written.regex.as_ref(), rule.written.path.as_ref()];
            assert!(regexes.into_iter().flatten().all(|regex| compiled(regex).is_some()), "{}", rule.id);
            assert!(!rule.written.keywords.is_empty(), "{}", rule.id);
        }
        let lists = RULES.all.iter().flat_map(|rule| &rule.written.allowlists).chain([&RULES.allowed]);
        for regex in lists.flat_map(|list| &list.regexes) {
            assert!(compiled(regex).is_some(), "{regex}");
        }
    }

    #[test]
    fn a_brace_without_a_repetition_is_an_ordinary_character() {
        for (regex, plain) in [
            (r"a{2,3}b{4}c{5,}", r"a{2,3}b{4}c{5,}"),
            (r"{{[^}]+}}", r"\{\{[^}]+}}"),
            (r"\${[a-z]{2}}", r"\$\{[a-z]{2}}"),
            (r"\{x}", r"\{x}"),
        ] {
            assert_eq!(with_plain_braces(regex), plain);
        }
    }

    #[test]
    fn computes_the_entropy_of_shannon() {
        for (text, bits) in [("", 0.0), ("aaaa", 0.0), ("abab", 1.0), ("abcdefgh", 3.0)] {
            assert!((entropy(text) - bits).abs() < 1e-9, "{text}: {}", entropy(text));
        }
    }
}
