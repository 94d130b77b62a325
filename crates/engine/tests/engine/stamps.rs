//! A file whose stamp is as it was is not read again when its session is resumed, and only then.

use camino::Utf8Path;
use context_engine::Stamp;
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::index::Action;
use rstest::rstest;

use crate::bench::{Backend, Bench};

/// A session that has read a file with this text, which has another one on the disk now.
async fn read_and_changed(bench: &Bench) -> (ObjectId, String) {
    let path = bench.write("a", "old text");
    let engine = bench.open("s").await;
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    engine.close().await.unwrap();
    bench.write("a", "new text");
    (id, path)
}

/// Notes that the file had these bytes with the stamp that it has now.
async fn note(bench: &Bench, id: &ObjectId, path: &str, bytes: &str) {
    let stamp = Stamp::of(Utf8Path::new(path)).unwrap();
    let hash = Digest::of(bytes.as_bytes());
    bench.store.set_note("stamps:session:s", &format!("{id} {hash} {stamp}\n")).await.unwrap();
}

#[tokio::test]
async fn file_with_a_known_stamp_is_not_read_again() {
    let bench = Bench::new(Backend::Sqlite);
    let (id, path) = read_and_changed(&bench).await;
    // An untrue note shows that the note decides.
    note(&bench, &id, &path, "old text").await;
    bench.open("s").await;
    assert_eq!(bench.contents(&id).await, [Some("old text".to_owned())]);
}

#[tokio::test]
async fn another_stamp_is_read() {
    let bench = Bench::new(Backend::Sqlite);
    let (id, path) = read_and_changed(&bench).await;
    note(&bench, &id, &path, "old text").await;
    // Put in its place with the same length and the same time of change.
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let other = bench.write("b", "NEW TEXT");
    std::fs::File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
    std::fs::rename(other, &path).unwrap();
    bench.open("s").await;
    assert_eq!(bench.contents(&id).await, [Some("old text".to_owned()), Some("NEW TEXT".to_owned())]);
}

#[tokio::test]
async fn stamp_of_other_bytes_is_ignored() {
    let bench = Bench::new(Backend::Sqlite);
    let (id, path) = read_and_changed(&bench).await;
    note(&bench, &id, &path, "new text").await;
    bench.open("s").await;
    assert_eq!(bench.contents(&id).await, [Some("old text".to_owned()), Some("new text".to_owned())]);
}

#[rstest]
#[case::empty("")]
#[case::no_hash("abc")]
#[case::no_stamp("abc 0 1 2")]
#[case::not_text("\u{0}\n\n \n")]
#[tokio::test]
async fn malformed_note_is_left_alone(#[case] text: &str) {
    let bench = Bench::new(Backend::Sqlite);
    let (id, _) = read_and_changed(&bench).await;
    bench.store.set_note("stamps:session:s", text).await.unwrap();
    bench.open("s").await;
    assert_eq!(bench.contents(&id).await.len(), 2, "the change was found");
}

#[rstest]
fn a_stamp_reads_back_as_it_is_written() {
    let bench = Bench::new(Backend::Memory);
    let path = bench.write("a", "x");
    let stamp = Stamp::of(Utf8Path::new(&path)).unwrap();
    assert_eq!(stamp.to_string().parse(), Ok(stamp));
    assert_eq!(Stamp::of(Utf8Path::new(&bench.path("missing"))), None);
    assert_eq!(Stamp::of(Utf8Path::new(&bench.path(""))), None, "a directory");
}

#[rstest]
#[case::now(0, false)]
#[case::in_the_same_moment(2, false)]
#[case::later(4, true)]
#[case::before_it_was_written(-3600, false)]
fn a_file_is_settled_some_time_after_its_last_change(#[case] seconds: i64, #[case] settled: bool) {
    let bench = Bench::new(Backend::Memory);
    let path = bench.write("a", "x");
    let written = std::fs::metadata(&path).unwrap().modified().unwrap();
    let shift = std::time::Duration::from_secs(seconds.unsigned_abs());
    let now = if seconds < 0 { written - shift } else { written + shift };
    assert_eq!(Stamp::of(Utf8Path::new(&path)).unwrap().is_settled(now), settled);
}

#[tokio::test]
async fn requested_comparison_reads_only_changed_files() {
    let bench = Bench::new(Backend::Sqlite);
    let (id, path) = read_and_changed(&bench).await;
    note(&bench, &id, &path, "old text").await;
    let engine = bench.open("s").await;
    let compare = async || {
        let results = engine.reconcile().await.unwrap();
        results.into_iter().map(|result| (result.id, result.action)).collect::<Vec<_>>()
    };
    assert_eq!(compare().await, [], "the stamp says that it is as it was");
    bench.write("a", "newer text");
    assert_eq!(compare().await, [(id.clone(), Action::Updated)]);
    assert_eq!(compare().await, []);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(compare().await, [(id.clone(), Action::Deleted)]);
    assert_eq!(compare().await, []);
    let contents = ["old text", "newer text"].map(|text| Some(text.to_owned()));
    assert_eq!(bench.contents(&id).await, [contents.as_slice(), &[None]].concat());
}
