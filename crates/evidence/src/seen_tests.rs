//! What decisions ask of the store, and how many versions they read.

use context_model::hash::HashedText;
use context_model::source::FilesystemSource;
use rstest::rstest;

use super::*;
use crate::evidence::{Evidence, Lines};
use crate::search::{ReadAt, ReadResult, ReadSearch};

/// A store with the versions of one file, which transactions 1, 2, … wrote.
pub(crate) struct Versions(Vec<SeenVersion>);

impl Versions {
    pub(crate) fn of(texts: &[&str]) -> Self {
        let version = |(number, text): (usize, &&str)| {
            let source = FilesystemSource { filesystem_id: "fs".into(), path: "/f".into() };
            let document = Document::text_file(source, HashedText::new((*text).to_owned()));
            SeenVersion { tx: TxId(number as u64 + 1), document }
        };
        Self(texts.iter().enumerate().map(version).collect())
    }

    pub(crate) fn file(&self) -> ObjectId {
        self.0[0].document.id().clone()
    }

    /// Returns the decision, and the transactions as of which it asked for a version.
    pub(crate) fn decide<T>(&self, mut decide: impl FnMut(&Seen) -> Result<T, Unseen>) -> (T, Vec<u64>) {
        let (mut seen, mut asked) = (Seen::new(TxId(9)), Vec::new());
        loop {
            match decide(&seen) {
                Ok(decision) => return (decision, asked),
                Err(unseen) => {
                    let tx = match unseen.at {
                        At::Now => TxId(u64::MAX),
                        At::After(tx) | At::By(tx) => tx,
                    };
                    asked.push(tx.0);
                    let version = self.0.iter().rev().find(|version| version.tx <= tx).cloned();
                    seen.put(unseen, version);
                }
            }
        }
    }
}

fn hash(text: &str) -> Option<Digest> {
    Some(Digest::of(text.as_bytes()))
}

#[rstest]
#[case::the_newest("c", Some(3), &[9])]
#[case::an_older_one("a", Some(1), &[9, 2, 1])]
#[case::none("x", None, &[9, 2, 1, 0])]
fn search_by_bytes_reads_no_version_behind_the_one_that_has_them(
    #[case] text: &str,
    #[case] found: Option<u64>,
    #[case] asked: &[u64],
) {
    let versions = Versions::of(&["a", "b", "c"]);
    let bytes = Bytes { file: versions.file(), hash: Bytes::hash_of(text) };
    let (content, read) = versions.decide(|seen| seen.content_of(&bytes, TxId(9)));
    let expected = found.map_or(Content::lost(bytes.hash), |tx| Content::stored(Some(bytes.hash), TxId(tx)));
    assert_eq!((content, read), (expected, asked.to_vec()));
}

#[test]
fn search_looks_at_a_limited_number_of_versions() {
    let texts: Vec<String> = (0..9).map(|number| number.to_string()).collect();
    let versions = Versions::of(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let (found, read) =
        versions.decide(|seen| Ok(seen.with_bytes(&versions.file(), hash("0"), TxId(9))?.is_some()));
    assert_eq!((found, read.len()), (false, LOOKED_BACK));
}

#[rstest]
#[case::of_the_newest(Some(3), "c", Some(2))]
#[case::of_an_older_one(Some(2), "b", Some(1))]
#[case::of_the_first(Some(1), "a", None)]
#[case::of_bytes_that_were_never_stored(None, "x", Some(3))]
fn version_before_some_bytes(#[case] tx: Option<u64>, #[case] text: &str, #[case] expected: Option<u64>) {
    let versions = Versions::of(&["a", "b", "c"]);
    let now = Content { hash: hash(text), tx: tx.map(TxId) };
    let (older, _) =
        versions.decide(|seen| Ok(seen.older(&versions.file(), now)?.map(|version| version.tx.0)));
    assert_eq!(older, expected);
}

#[test]
fn read_is_compared_with_versions_until_one_fits() {
    let versions = Versions::of(&["a\nb\n", "a\nc\n", "a\nd\n"]);
    let read = ReadResult {
        first: 1,
        is_limited: false,
        output: "a\nc\n",
        is_bare: false,
        is_passed_in: false,
        at: ReadAt::default(),
    };
    let (evidence, asked) = versions.decide(|seen| {
        let mut search = ReadSearch::new(read);
        seen.search(&versions.file(), TxId(3), &mut search)?;
        Ok(search.evidence(&versions.file(), None))
    });
    let bytes = Bytes { file: versions.file(), hash: Bytes::hash_of("a\nc\n") };
    assert_eq!(evidence, Some(Evidence::Shows(Lines { bytes, first: 1, last: 3, whole: true })));
    assert_eq!(asked, [3, 2]);
}

#[test]
fn version_that_does_not_exist_is_not_asked_for_again() {
    let seen = &mut Seen::new(TxId(1));
    let file = ObjectId::new("f");
    let unseen = seen.text(&file, At::Now).unwrap_err();
    assert_eq!(unseen, Unseen { object: file.clone(), at: At::Now });
    seen.put(unseen, None);
    assert_eq!(seen.text(&file, At::Now), Ok(None));
}
