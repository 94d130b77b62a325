use std::collections::BTreeSet;

use proptest::prelude::*;
use rstest::rstest;

use super::*;

/// The rule, word for word and without any of the above.
fn naive(query: &str, descriptions: &[String]) -> Vec<u32> {
    let words = |text: &str| -> BTreeSet<String> {
        let text: String = text.nfkc().collect();
        let cased: String = text.chars().map(|c| c.to_uppercase().to_string()).collect();
        let folded: String = cased.chars().map(|c| c.to_lowercase().to_string()).collect();
        let folded: String = folded.nfkc().collect();
        let mut found = BTreeSet::new();
        let mut word = String::new();
        for c in folded.chars().chain([' ']) {
            if c.is_alphanumeric() || is_combining_mark(c) {
                word.push(c);
            } else {
                if word.chars().count() > 2 {
                    found.insert(word.clone());
                }
                word.clear();
            }
        }
        found
    };
    let wanted = words(query);
    let scores: Vec<usize> = descriptions.iter().map(|d| words(d).intersection(&wanted).count()).collect();
    let mut order: Vec<u32> = Vec::new();
    for score in (1..=wanted.len()).rev() {
        order.extend((0..).zip(&scores).filter(|&(_, s)| *s == score).map(|(i, _)| i));
    }
    if order.is_empty() { (0..).zip(&scores).map(|(i, _)| i).collect() } else { order }
}

fn all(count: usize) -> Vec<u32> {
    (0..).zip(0..count).map(|(i, _)| i).collect()
}

#[rstest]
#[case::case("ERROR", "an Error here", true)]
#[case::substring("auth", "authentication", false)]
#[case::two_characters("an", "an apple", false)]
#[case::three_characters("ant", "an ant", true)]
#[case::snake("code", "search_code", true)]
#[case::path("auth", "read src/auth.ts", true)]
#[case::number("404", "status 404", true)]
#[case::sharp_s("STRASSE", "die straße", true)]
#[case::final_sigma("ΟΔΟΣ", "η οδος", true)]
#[case::decomposed("re\u{301}sume\u{301}", "le résumé", true)]
#[case::full_width("ＡＰＩ", "the api", true)]
#[case::devanagari("हिन्दी", "यह हिन्दी है", true)]
#[case::counted_in_characters("éé", "éé", false)]
#[case::punctuation("don't", "don", true)]
fn a_word_matches(#[case] query: &str, #[case] description: &str, #[case] expected: bool) {
    let mut index = RelevanceIndex::new();
    index.add(description);
    assert_eq!(index.rank(query, &[0]).is_some(), expected);
    assert_eq!(rank_texts(query, [description].iter()).is_some(), expected);
}

#[test]
fn repeated_words_count_once() {
    let texts = ["error error error", "error handling", "Error ERROR handling"];
    assert_eq!(rank_texts("handling error error", texts.iter()), Some(vec![1, 2, 0]));
}

#[test]
fn a_cleared_index_starts_again_at_place_0() {
    let mut index = RelevanceIndex::new();
    assert_eq!((index.add("one two three"), index.add("four")), (0, 1));
    assert_eq!(index.rank("three", &[1, 0, 7]), Some(vec![1]));
    index.clear();
    assert!(index.is_empty());
    assert_eq!(index.rank("three", &[0]), None);
    assert_eq!((index.add("five"), index.len()), (0, 1));
}

#[rstest]
#[case("abc abc", &[3, 9, 4])]
#[case("😀abc", &[1, 3, 1])]
fn wrong_lengths_are_harmless(#[case] joined: &str, #[case] units: &[u32]) {
    let mut ranking = Ranking::new("abc");
    ranking.add(joined.to_owned(), units);
    assert!(ranking.order().is_some());
}

#[test]
fn a_query_of_very_many_words_ranks_like_any_other() {
    let words: Vec<String> = (100..400).map(|n| n.to_string()).collect();
    let descriptions: Vec<String> = (0..6).map(|n| words[n * 40..].join(" ") + " 100 100 399").collect();
    let mut index = RelevanceIndex::new();
    for description in &descriptions {
        index.add(description);
    }
    let query = words.join("-");
    assert_eq!(naive(&query, &descriptions), all(6));
    assert_eq!(index.rank(&query, &[5, 0, 4]), Some(vec![1, 2, 0]));
    assert_eq!(rank_texts(&query, descriptions.iter()), Some(all(6)));
}

fn texts() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => "[a-eA-E]{1,4}",
        2 => prop::sample::select(vec!["Straße", "STRASSE", "ΣΑΣ", "σας", "naïve", "nai\u{308}ve", "日本語", "ﬁle", "FILE", "ж", "İst", "ſit", "SIT"]).prop_map(String::from),
        1 => "\\PC{0,6}",
    ];
    prop::collection::vec(
        (word, prop::sample::select(vec![" ", "_", "-", "/", ".", "\n", "\0", "'", "😀"])),
        0..9,
    )
    .prop_map(|parts| parts.into_iter().map(|(word, separator)| word + separator).collect())
}

proptest! {
    #[test]
    fn ranking_is_the_documents_rule(
        query in texts(),
        descriptions in prop::collection::vec(texts(), 0..24),
        block in 1..9_usize,
    ) {
        let expected = naive(&query, &descriptions);
        let mut index = RelevanceIndex::new();
        for description in &descriptions {
            index.add(description);
        }
        let places = all(descriptions.len());
        prop_assert_eq!(&index.rank(&query, &places).unwrap_or(places.clone()), &expected);
        prop_assert_eq!(&rank_texts(&query, descriptions.iter()).unwrap_or(places.clone()), &expected);
        let units: Vec<u32> =
            descriptions.iter().map(|d| u32::try_from(d.encode_utf16().count()).expect("short")).collect();
        let mut ranking = Ranking::new(&query);
        for (texts, units) in descriptions.chunks(block).zip(units.chunks(block)) {
            ranking.add(texts.concat(), units);
        }
        prop_assert_eq!(&ranking.order().unwrap_or(places), &expected);
    }

    #[test]
    fn a_part_of_the_index_ranks_like_a_list_of_that_part(
        query in texts(),
        descriptions in prop::collection::vec(texts(), 1..24),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..24),
    ) {
        let mut index = RelevanceIndex::new();
        for description in &descriptions {
            index.add(description);
        }
        let picks: Vec<usize> = picks.iter().map(|i| i.index(descriptions.len())).collect();
        let places: Vec<u32> = picks.iter().map(|&i| u32::try_from(i).expect("small")).collect();
        let picked: Vec<&String> = picks.iter().map(|&i| &descriptions[i]).collect();
        prop_assert_eq!(index.rank(&query, &places), rank_texts(&query, picked.iter()));
    }
}
