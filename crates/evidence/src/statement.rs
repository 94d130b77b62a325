//! The statements of the model's request about each file. A model has no other memory, so the statements in sight decide which
//! notices the model still needs.

use std::sync::Arc;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;

/// The bytes that a file had at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Content {
    /// The hash of the bytes; `None` for a file that was gone.
    pub hash: Option<Digest>,
    /// A transaction as of which the file has these bytes; `None` if they were never stored.
    pub tx: Option<TxId>,
}

impl Content {
    /// A version that is stored.
    pub fn stored(hash: Option<Digest>, tx: TxId) -> Self {
        Self { hash, tx: Some(tx) }
    }

    /// Returns the content of bytes that were never stored.
    pub fn lost(hash: Digest) -> Self {
        Self { hash: Some(hash), tx: None }
    }
}

/// Lines of a file that a result shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The version to which they belong.
    pub content: Content,
    /// First line, counted from 1.
    pub first: usize,
    /// Last line, included.
    pub last: usize,
    /// These are all lines of the file.
    pub whole: bool,
}

impl Passage {
    /// All lines of a text, however many it has.
    fn all(content: Content) -> Self {
        Self { content, first: 1, last: usize::MAX, whole: true }
    }

    fn covers(&self, other: &Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// The content of a message's statement about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Lines as a read showed them.
    Lines(Passage),
    /// Lines that were shown earlier, and are restored.
    Again(Passage),
    /// A part of the file whose lines are in another result, as they were read there.
    Pointed(Passage),
    /// The model wrote this, or has seen all new lines of it.
    All(Content),
    /// There is another version.
    Other(Option<Digest>),
}

impl StatementKind {
    /// The bytes that it is about, unless it only says that they are different.
    pub fn content(&self) -> Option<Content> {
        match self {
            Self::Lines(lines) | Self::Again(lines) | Self::Pointed(lines) => Some(lines.content),
            Self::All(content) => Some(*content),
            Self::Other(_) => None,
        }
    }
}

/// A statement, and whose result makes it.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The tool call; `None` for a notice, which never leaves the request.
    pub by: Option<ObjectId>,
    /// The agent's path that it is about; `None` where only the file is known.
    pub via: Option<Arc<str>>,
    /// Its place among the statements about all files.
    pub number: usize,
    /// The content of the statement.
    pub kind: StatementKind,
}

/// The sum of the statements about one file that are in sight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    /// The version that they mention last.
    told: Option<Option<Digest>>,
    /// The version of a part that was read after a statement about another version.
    partly: Option<Option<Digest>>,
    /// The bytes that they mention last, unless they only say that the bytes are different.
    pub base: Option<Content>,
    /// The hashes of all bytes that they mention.
    pub contents: Vec<Option<Digest>>,
    /// Lines that no statement about another version follows.
    pub outstanding: Vec<Outstanding>,
}

/// Lines in sight that no statement about another version follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// The lines.
    pub lines: Passage,
    /// Parts of other versions that were read later: they may show everything that is new.
    pub later: Vec<Passage>,
}

impl Outstanding {
    fn of(lines: Passage) -> Self {
        Self { lines, later: Vec::new() }
    }
}

impl Knowledge {
    /// Takes the statements in the order of the request.
    pub fn of<'a>(statements: impl Iterator<Item = &'a Statement>) -> Self {
        let mut knowledge = Self::default();
        statements.for_each(|statement| knowledge.take(statement.kind));
        knowledge
    }

    fn take(&mut self, kind: StatementKind) {
        let (hash, base) = match kind {
            StatementKind::Lines(lines) | StatementKind::Again(lines) | StatementKind::Pointed(lines) => {
                (lines.content.hash, Some(lines.content))
            }
            StatementKind::All(content) => (content.hash, Some(content)),
            StatementKind::Other(hash) => (hash, None),
        };
        self.base = base.or(self.base);
        self.contents.extend(base.map(|base| base.hash));
        // A part of a version other than the one mentioned says nothing about the rest of the file.
        let is_part =
            matches!(kind, StatementKind::Lines(lines) | StatementKind::Pointed(lines) if !lines.whole);
        if is_part && self.told.is_some_and(|told| told != hash) {
            self.partly = Some(hash);
        } else {
            self.partly = None;
            self.told = Some(hash);
        }
        match kind {
            StatementKind::Lines(lines) if lines.whole => self.outstanding.clear(),
            StatementKind::Lines(lines) | StatementKind::Pointed(lines) => {
                self.outstanding.retain(|outstanding| !lines.covers(&outstanding.lines));
                let others = self.outstanding.iter_mut().filter(|one| one.lines.content.hash != hash);
                others.for_each(|one| one.later.push(lines));
            }
            StatementKind::Again(lines) => {
                self.outstanding.retain(|outstanding| !lines.covers(&outstanding.lines))
            }
            StatementKind::All(_) | StatementKind::Other(_) => {
                self.outstanding.retain(|one| one.lines.content.hash == hash)
            }
        }
        match kind {
            StatementKind::Lines(lines) | StatementKind::Again(lines) => {
                self.outstanding.push(Outstanding::of(lines))
            }
            // A part of another version that is read later says nothing of the rest of it.
            StatementKind::All(content) => self.outstanding.push(Outstanding::of(Passage::all(content))),
            StatementKind::Pointed(_) | StatementKind::Other(_) => {}
        }
    }

    /// The lines of these bytes that are in sight.
    pub(crate) fn shown_of(&self, hash: Digest) -> impl Iterator<Item = &Passage> {
        let is_of = move |lines: &&Passage| lines.content.hash == Some(hash);
        self.outstanding.iter().map(|one| &one.lines).filter(is_of)
    }

    /// The version that the statements tell of last, if nothing that stands is of another one.
    pub fn told(&self) -> Option<Digest> {
        let told = self.told.flatten();
        told.filter(|_| self.outstanding.iter().all(|one| one.lines.content.hash == told))
    }

    /// True if this is the version that the statements mention last.
    pub fn speaks_of(&self, now: Option<Digest>) -> bool {
        self.told == Some(now) || self.partly == Some(now)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ALL: usize = usize::MAX;

    fn statement(kind: StatementKind) -> Statement {
        Statement { by: None, via: None, number: 0, kind }
    }

    fn content(name: &str) -> Content {
        Content::stored(Some(Digest::of(name.as_bytes())), TxId(1))
    }

    fn passage(name: &str, first: usize, last: usize) -> Passage {
        Passage { content: content(name), first, last, whole: first == 1 && (last == 9 || last == ALL) }
    }

    fn all(name: &str) -> StatementKind {
        StatementKind::All(content(name))
    }

    fn other(name: &str) -> StatementKind {
        StatementKind::Other(content(name).hash)
    }

    fn lines(name: &str, first: usize, last: usize) -> StatementKind {
        StatementKind::Lines(passage(name, first, last))
    }

    fn again(name: &str, first: usize, last: usize) -> StatementKind {
        StatementKind::Again(passage(name, first, last))
    }

    fn pointed(name: &str, first: usize, last: usize) -> StatementKind {
        StatementKind::Pointed(passage(name, first, last))
    }

    /// The version mentioned last, the base version, and the lines that still stand.
    #[rstest]
    #[case::nothing(&[], &[], None, &[])]
    #[case::a_read(&[lines("a", 1, 9)], &["a"], Some("a"), &[("a", 1, 9)])]
    #[case::a_change_of_it(&[lines("a", 1, 9), other("b")], &["b"], Some("a"), &[])]
    #[case::a_notice_of_the_same(&[lines("a", 1, 9), other("a")], &["a"], Some("a"), &[("a", 1, 9)])]
    #[case::a_later_read(&[lines("a", 1, 9), lines("b", 1, 9)], &["b"], Some("b"), &[("b", 1, 9)])]
    #[case::a_later_part(&[lines("a", 1, 9), lines("b", 2, 3)], &["a", "b"], Some("b"), &[("a", 1, 9), ("b", 2, 3)])]
    #[case::a_part_that_covers(&[lines("a", 2, 3), lines("b", 2, 4)], &["a", "b"], Some("b"), &[("b", 2, 4)])]
    #[case::a_part_beside(&[lines("a", 2, 3), lines("b", 3, 4)], &["a", "b"], Some("b"), &[("a", 2, 3), ("b", 3, 4)])]
    #[case::a_part_alone(&[lines("b", 3, 4)], &["b"], Some("b"), &[("b", 3, 4)])]
    #[case::written(&[lines("a", 1, 9), all("b")], &["b"], Some("b"), &[("b", 1, ALL)])]
    #[case::a_part_of_another_version_than_was_written(&[all("a"), lines("b", 2, 3)], &["a", "b"], Some("b"), &[("a", 1, ALL), ("b", 2, 3)])]
    #[case::a_part_of_one_brought_back(&[all("a"), again("b", 2, 3)], &["b"], Some("b"), &[("a", 1, ALL), ("b", 2, 3)])]
    #[case::read_and_written_back(&[lines("a", 1, 9), all("b"), lines("a", 2, 3), all("a")], &["a"], Some("a"), &[("a", 2, 3), ("a", 1, ALL)])]
    #[case::brought_back(&[lines("a", 1, 9), other("b"), again("a", 1, 9)], &["a"], Some("a"), &[("a", 1, 9)])]
    #[case::a_part_brought_back(&[lines("a", 2, 3), other("b"), again("a", 2, 3)], &["a"], Some("a"), &[("a", 2, 3)])]
    #[case::a_part_pointed_to(&[lines("a", 1, 9), lines("b", 2, 3), pointed("b", 2, 2)], &["a", "b"], Some("b"), &[("a", 1, 9), ("b", 2, 3)])]
    #[case::a_part_pointed_to_after_a_notice(&[lines("a", 2, 3), other("b"), pointed("a", 2, 3)], &["a", "b"], Some("a"), &[])]
    #[case::a_part_and_a_notice(&[lines("a", 1, 9), lines("b", 2, 3), other("b")], &["b"], Some("b"), &[("b", 2, 3)])]
    #[case::all_of_a_shorter_version(&[lines("a", 5, 12), lines("b", 1, 9)], &["b"], Some("b"), &[("b", 1, 9)])]
    #[case::one_part_of_two_brought_back(&[lines("a", 2, 3), lines("a", 5, 6), again("a", 2, 3)], &["a"], Some("a"), &[("a", 5, 6), ("a", 2, 3)])]
    fn statements_combine_into_a_base_and_outstanding_lines(
        #[case] said: &[StatementKind],
        #[case] told: &[&str],
        #[case] base: Option<&str>,
        #[case] outstanding: &[(&str, usize, usize)],
    ) {
        let said: Vec<Statement> = said.iter().map(|kind| statement(*kind)).collect();
        let knowledge = Knowledge::of(said.iter());
        for name in ["a", "b"] {
            assert_eq!(knowledge.speaks_of(content(name).hash), told.contains(&name), "{name}");
        }
        assert!(!knowledge.speaks_of(None));
        assert_eq!(knowledge.base, base.map(content));
        let expected: Vec<Passage> = outstanding.iter().map(|(name, a, b)| passage(name, *a, *b)).collect();
        assert_eq!(knowledge.outstanding.iter().map(|one| one.lines).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn later_lines_of_another_version_may_cover_earlier_ones() {
        let said = [lines("a", 1, 9), lines("a", 2, 3), lines("b", 4, 5), lines("b", 6, 7)];
        let said = said.map(statement);
        let knowledge = Knowledge::of(said.iter());
        let later: Vec<usize> = knowledge.outstanding.iter().map(|one| one.later.len()).collect();
        assert_eq!(later, [2, 2, 0, 0]);
        assert_eq!(knowledge.outstanding[0].later, [passage("b", 4, 5), passage("b", 6, 7)]);
    }

    /// The version that the model was told of, if it sees lines of no other one.
    #[rstest]
    #[case::nothing(&[], None)]
    #[case::a_read(&[lines("a", 1, 9)], Some("a"))]
    #[case::a_notice(&[lines("a", 1, 9), other("b")], Some("b"))]
    #[case::a_part_of_another(&[lines("a", 1, 9), lines("b", 2, 3)], None)]
    #[case::a_part_and_a_notice_of_it(&[lines("a", 1, 9), lines("b", 2, 3), other("b")], Some("b"))]
    fn version_that_was_told_last(#[case] said: &[StatementKind], #[case] told: Option<&str>) {
        let said: Vec<Statement> = said.iter().map(|kind| statement(*kind)).collect();
        assert_eq!(Knowledge::of(said.iter()).told(), told.and_then(|name| content(name).hash));
    }

    #[test]
    fn missing_file_counts_as_a_version() {
        let gone = statement(StatementKind::Other(None));
        let read = statement(lines("a", 1, 9));
        assert!(Knowledge::of([&read, &gone].into_iter()).speaks_of(None));
        assert!(!Knowledge::of([&gone, &read].into_iter()).speaks_of(None));
    }
}
