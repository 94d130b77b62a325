use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;

use crate::known::{Known, KnownVersion, Way};
use crate::statement::{Content, Passage, StatementKind};

#[test]
fn latest_statement_names_the_version() {
    let (mut known, file) = (Known::default(), ObjectId::new("f"));
    let hash = |name: &str| Some(Digest::of(name.as_bytes()));
    let content = |name: &str| Content::stored(hash(name), TxId(1));
    let lines = |name: &str| Passage { content: content(name), first: 1, last: 2, whole: false };
    assert_eq!(known.spoken_of(&file), None);
    let statements = [
        (StatementKind::Lines(lines("a")), hash("a")),
        (StatementKind::Other(hash("b")), hash("b")),
        (StatementKind::All(content("c")), hash("c")),
        (StatementKind::Again(lines("d")), hash("d")),
        (StatementKind::Other(None), None),
    ];
    for (kind, expected) in statements {
        known.add_statement(&file, None, None, kind);
        assert_eq!(known.spoken_of(&file), expected);
    }
}

#[test]
fn only_the_known_version_rests_on_results() {
    let (mut known, file) = (Known::default(), ObjectId::new("f"));
    let content = |name: &str| Content::stored(Some(Digest::of(name.as_bytes())), TxId(1));
    known.wrote(&file, content("a"));
    known.rests_on_sight(&file, content("b"));
    assert!(!known.get(&file).unwrap().from_results);
    known.rests_on_sight(&file, content("a"));
    assert!(known.get(&file).unwrap().from_results);
    known.rests_on_sight(&file, content("b"));
    assert!(known.get(&file).unwrap().from_results, "it still does");
}

fn content(name: &str) -> Content {
    Content::stored(Some(Digest::of(name.as_bytes())), TxId(1))
}

#[test]
fn pointing_answer_makes_a_version_known_and_the_next_read_full() {
    let (mut known, file) = (Known::default(), ObjectId::new("f"));
    known.saw(&file, content("a"));
    known.points(&file);
    known.saw_above(&file, content("b"));
    assert_eq!(known.get(&file), Some(&KnownVersion { content: content("b"), from_results: true }));
    assert!(known.has_pointed(&file) && !known.has_pointed(&file));
}

#[test]
fn lines_shown_by_a_call_are_its_last_ones() {
    let (mut known, file) = (Known::default(), ObjectId::new("f"));
    let lines = |first| Passage { content: content("a"), first, last: 9, whole: false };
    let [one, two, three] = ["one", "two", "three"].map(ObjectId::new);
    known.add_statement(&file, Some(&one), None, StatementKind::Lines(lines(1)));
    known.add_statement(&file, Some(&one), None, StatementKind::Again(lines(2)));
    known.add_statement(&file, Some(&two), None, StatementKind::Lines(lines(3)));
    known.add_statement(&file, Some(&one), None, StatementKind::Other(None));
    known.add_statement(&file, Some(&three), None, StatementKind::Pointed(lines(4)));
    known.add_statement(&file, None, None, StatementKind::Lines(lines(5)));
    assert_eq!(known.shown_by(&file, &one), Some(lines(2)));
    assert_eq!(known.shown_by(&file, &two), Some(lines(3)));
    assert_eq!(known.shown_by(&file, &three), None);
    assert_eq!(known.shown_by(&one, &one), None);
}

#[test]
fn file_is_open_until_settled_and_again_when_its_results_change() {
    let [file, other, call] = ["f", "g", "call"].map(ObjectId::new);
    let mut known = Known::default();
    known.add_statement(&file, Some(&call), None, StatementKind::All(content("a")));
    known.add_statement(&other, None, None, StatementKind::All(content("a")));
    assert_eq!(known.open(), [file.clone(), other.clone()]);
    known.settle(std::slice::from_ref(&file));
    assert_eq!(known.open(), std::slice::from_ref(&other));
    known.settle(std::slice::from_ref(&other));
    known.looks_different([&ObjectId::new("another"), &call]);
    assert_eq!(known.open(), [file]);
}

fn way(path: &str, file: &ObjectId) -> Way {
    Way { path: path.into(), file: file.clone(), is_alias: true }
}

#[test]
fn knowledge_of_a_path_follows_it_to_another_file() {
    let [one, two, call] = ["one", "two", "call"].map(ObjectId::new);
    let mut known = Known::default();
    known.uses(&way("/link", &one));
    known.saw(&one, content("a"));
    known.add_statement(&one, Some(&call), Some(&"/link".into()), StatementKind::All(content("a")));
    known.add_statement(&one, None, None, StatementKind::Other(content("b").hash));
    known.settle(&known.open());
    known.uses(&way("/link", &two));
    assert_eq!(known.led("/link"), Some(&two));
    assert_eq!((known.contents(&one).count(), known.get(&one)), (0, None));
    assert_eq!(known.contents(&two).collect::<Vec<_>>(), [content("a")]);
    assert_eq!(known.spoken_of(&two), content("b").hash, "in the order of the request");
    assert_eq!(known.get(&two).map(|version| version.content), Some(content("a")));
    assert_eq!(known.home_of(&two, &content("a")), one, "its text is in the history of the file that had it");
    assert_eq!(known.open(), [one.clone(), two]);
    // And back.
    known.uses(&way("/link", &one));
    assert_eq!((known.spoken_of(&one), known.home_of(&one, &content("a"))), (content("b").hash, one));
}

#[test]
fn lines_that_are_shown_again_count_where_their_path_leads() {
    let [one, two] = ["one", "two"].map(ObjectId::new);
    let mut known = Known::default();
    // Nothing has used the path: it led to the file that had the lines.
    assert_eq!(known.recalls(&way("/link", &two), &one, content("a")), one);
    assert_eq!(known.led("/link"), Some(&one));
    known.uses(&way("/link", &two));
    assert_eq!(known.recalls(&way("/link", &two), &one, content("b")), two);
    assert_eq!(known.home_of(&two, &content("b")), one);
    assert_eq!(known.recalls(&way("/link", &two), &two, content("c")), two);
    assert_eq!(known.home_of(&two, &content("c")), two);
}

#[test]
fn file_is_named_by_its_latest_path() {
    let [one, two] = ["one", "two"].map(ObjectId::new);
    let mut known = Known::default();
    assert_eq!(known.path_to(&one), None);
    for path in ["/b", "/one", "/a", "/b"] {
        known.uses(&way(path, &one));
    }
    known.uses(&way("/two", &two));
    assert_eq!(known.path_to(&one).map(|path| &**path), Some("/b"));
    known.uses(&way("/b", &two));
    assert_eq!(known.path_to(&one).map(|path| &**path), Some("/a"));
}

#[test]
fn file_known_by_two_paths_stays_known_by_the_other() {
    let [one, two] = ["one", "two"].map(ObjectId::new);
    let mut known = Known::default();
    for path in ["/link", "/one"] {
        known.uses(&way(path, &one));
        known.add_statement(&one, None, Some(&path.into()), StatementKind::All(content(path)));
    }
    known.saw(&one, content("/one"));
    known.uses(&way("/link", &two));
    assert_eq!(known.contents(&one).collect::<Vec<_>>(), [content("/one")]);
    assert_eq!(known.contents(&two).collect::<Vec<_>>(), [content("/link")]);
    assert!(known.get(&one).is_some() && known.get(&two).is_some());
}

#[test]
fn path_is_doubtful_through_a_link_or_to_a_missing_file() {
    let [one, two, three] = ["one", "two", "three"].map(ObjectId::new);
    let mut known = Known::default();
    for (path, file, is_alias) in [("/a", &one, true), ("/b", &two, false), ("/c", &three, false)] {
        known.uses(&Way { is_alias, ..way(path, file) });
        known.add_statement(file, None, None, StatementKind::All(content("a")));
    }
    let doubtful = |known: &Known| known.doubtful_paths(|file| *file == two);
    assert_eq!(doubtful(&known), [("/a".into(), one.clone()), ("/b".into(), two.clone())]);
    known.settle(&known.open());
    assert_eq!(doubtful(&known), [("/a".into(), one), ("/b".into(), two.clone())], "a link may appear");
    known.uses(&Way { path: "/a".into(), file: three, is_alias: false });
    assert_eq!(doubtful(&known).len(), 2, "one that leads nowhere looks like no link");
}

#[test]
fn contents_are_listed_newest_first() {
    let (mut known, file) = (Known::default(), ObjectId::new("f"));
    let lines = |name| Passage { content: content(name), first: 1, last: 9, whole: false };
    for kind in [
        StatementKind::Lines(lines("a")),
        StatementKind::Other(content("b").hash),
        StatementKind::All(content("c")),
    ] {
        known.add_statement(&file, None, None, kind);
    }
    assert_eq!(known.contents(&file).collect::<Vec<_>>(), [content("c"), content("a")]);
    assert_eq!(known.contents(&ObjectId::new("g")).count(), 0);
}

#[test]
fn only_known_version_is_kept() {
    let (mut known, file) = (Known::default(), ObjectId::new("f"));
    assert!(!known.keeps(&file) && known.get(&file).is_none());
    known.saw(&file, content("a"));
    known.points(&file);
    let before = *known.get(&file).unwrap();
    assert!(known.keeps(&file));
    assert_eq!(known.get(&file), Some(&before));
    assert!(!known.has_pointed(&file), "the next read is one of the file");
}

#[test]
fn only_statements_in_sight_are_summed_up() {
    let [file, one, two] = ["f", "one", "two"].map(ObjectId::new);
    let mut known = Known::default();
    known.add_statement(&file, Some(&one), None, StatementKind::All(content("a")));
    known.add_statement(&file, Some(&two), None, StatementKind::All(content("b")));
    assert_eq!(known.knowledge(&file, |_| true).base, Some(content("b")));
    assert_eq!(known.knowledge(&file, |call| *call == one).base, Some(content("a")));
    known.add_statement(&file, None, None, StatementKind::Other(None));
    assert!(known.knowledge(&file, |_| false).speaks_of(None), "a notice never leaves");
}

#[test]
fn only_a_change_of_a_mentioned_file_opens_it() {
    let [file, other] = ["f", "g"].map(ObjectId::new);
    let mut known = Known::default();
    known.add_statement(&file, None, None, StatementKind::All(content("a")));
    known.settle(&known.open());
    known.changed(other);
    assert_eq!(known.open(), []);
    known.changed(file.clone());
    assert_eq!(known.open(), [file]);
}

#[test]
fn statements_of_two_paths_follow_the_order_of_the_request() {
    let [one, two] = ["one", "two"].map(ObjectId::new);
    let mut known = Known::default();
    let link = "/link".into();
    known.uses(&way("/link", &one));
    for (file, via, name) in [(&one, Some(&link), "a"), (&two, None, "b"), (&one, Some(&link), "c")] {
        known.add_statement(file, None, via, StatementKind::All(content(name)));
    }
    known.uses(&way("/link", &two));
    assert_eq!(known.contents(&two).collect::<Vec<_>>(), ["c", "b", "a"].map(content));
}

#[test]
fn path_of_restored_lines_is_doubtful_if_it_leads_elsewhere() {
    let [home, other] = ["one", "two"].map(ObjectId::new);
    for (file, is_alias, is_doubtful) in
        [(&home, false, false), (&home, true, true), (&other, false, true), (&other, true, true)]
    {
        let mut known = Known::default();
        known.recalls(&Way { path: "/a".into(), file: file.clone(), is_alias }, &home, content("a"));
        known.add_statement(&home, None, None, StatementKind::All(content("a")));
        assert_eq!(!known.doubtful_paths(|_| false).is_empty(), is_doubtful, "{file} {is_alias}");
    }
}

#[test]
fn nothing_is_known_once_the_messages_are_read_again() {
    let [file, call] = ["f", "call"].map(ObjectId::new);
    let mut known = Known::default();
    known.uses(&way("/a", &file));
    known.saw(&file, content("a"));
    known.add_statement(&file, Some(&call), None, StatementKind::All(content("a")));
    known.points(&file);
    known.forget();
    assert_eq!((known.get(&file), known.led("/a"), known.spoken_of(&file)), (None, None, None));
    assert_eq!(known.open(), []);
    assert!(!known.has_pointed(&file));
    known.looks_different([&call]);
    assert_eq!(known.open(), []);
}
