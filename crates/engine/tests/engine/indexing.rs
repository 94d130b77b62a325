//! The indexing protocol: created, unchanged, updated, deleted; discovery; what counts as text.

use context_engine::Engine;
use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::index::Action;
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench, check, refused, search, session};

async fn index(engine: &Engine, path: &str) -> Action {
    engine.index_file(path, None, None).await.unwrap().action
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_created_unchanged_updated_and_deleted(#[values(Memory, Sqlite)] backend: Backend) {
    let (bench, engine) = session(backend).await;
    let path = bench.write("a.ts", "A");
    assert_eq!(index(&engine, &path).await, Action::Created);

    let tx = bench.latest_tx().await;
    assert_eq!(index(&engine, &path).await, Action::Unchanged);
    std::fs::File::open(&path).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(index(&engine, &path).await, Action::Unchanged);
    assert_eq!(bench.latest_tx().await, tx, "unchanged writes nothing");

    bench.write("a.ts", "B");
    assert_eq!(index(&engine, &path).await, Action::Updated);
    bench.write("a.ts", "A");
    let result = engine.index_file(&path, None, None).await.unwrap();
    assert_eq!(result.action, Action::Updated);
    let versions = ["A", "B", "A"].map(|text| Some(text.to_owned()));
    assert_eq!(bench.contents(&result.id).await, versions, "A, B, A makes three versions");

    std::fs::remove_file(&path).unwrap();
    let deleted = engine.index_deletion(&path).await.unwrap();
    assert_eq!((deleted.action, &deleted.id), (Action::Deleted, &result.id));
    assert_eq!(engine.index_deletion(&path).await.unwrap().action, Action::Unchanged);
    let last = bench.latest(&result.id).await.unwrap();
    assert_eq!((last.content(), last.source_hash()), (None, None));
    assert_eq!(last.field("char_count"), Some(&json!(0)));

    bench.write("a.ts", "A");
    assert_eq!(index(&engine, &path).await, Action::Updated, "re-created with equal content");
    assert_eq!(bench.versions(&result.id).await.len(), 5);

    // The envelope is the same in all versions; the index never lost the object.
    for version in bench.versions(&result.id).await {
        assert_eq!(version.identity_hash().to_string(), result.id.as_str());
        assert_eq!(version.source(), last.source());
    }
    let sets = engine.session_sets().await.unwrap();
    check(&sets);
    assert_eq!(sets.session_index, [result.id]);
}

#[rstest]
#[case::plain("a.TS", b"let a = 1\n", Some("let a = 1\n"), 10, "ts", "")]
#[case::empty("empty", b"", Some(""), 0, "text", "")]
#[case::astral("b.md", "\u{1F600}".as_bytes(), Some("\u{1F600}"), 2, "md", "")]
#[case::crlf("c.txt", b"a\r\nb\r", Some("a\r\nb\r"), 5, "txt", "")]
#[case::byte_order_mark("d.cs", b"\xEF\xBB\xBFx", Some("\u{FEFF}x"), 2, "cs", "")]
#[case::nul("e.bin", b"a\0b", None, 0, "bin", "NUL")]
#[case::invalid_utf_8("f.txt", b"a\xFF\xFE", None, 0, "txt", "UTF-8")]
#[case::cut_utf_8("g.txt", b"\xE2\x82", None, 0, "txt", "UTF-8")]
#[case::encoded_surrogate("h.txt", b"\xED\xA0\x80", None, 0, "txt", "UTF-8")]
#[case::utf_16("i.txt", b"\xFF\xFEa\0b\0", None, 0, "txt", "NUL")]
#[case::utf_16_big_endian("j.txt", b"\xFE\xFF\0a\0b", None, 0, "txt", "NUL")]
#[case::utf_16_without_latin("k.txt", b"\xFF\xFE\x2D\x4E\x87\x65", None, 0, "txt", "UTF-8")]
#[case::line_separators("l.txt", "a\u{2028}b\u{85}c".as_bytes(), Some("a\u{2028}b\u{85}c"), 5, "txt", "")]
#[tokio::test(flavor = "multi_thread")]
async fn content_is_text_by_its_bytes(
    #[case] name: &str,
    #[case] bytes: &[u8],
    #[case] content: Option<&str>,
    #[case] chars: usize,
    #[case] file_type: &str,
    #[case] reason: &str,
) {
    let (bench, engine) = session(Sqlite).await;
    let path = bench.write(name, bytes);
    // From disk, and from the bytes that a tool has read: the same version.
    let result = engine.index_file(&path, None, None).await.unwrap();
    let again = engine.index_file(&path, Some(bytes.to_vec()), None).await.unwrap();
    assert_eq!((result.action, again.action), (Action::Created, Action::Unchanged));
    assert_eq!(result.reason.is_some(), content.is_none());
    assert!(result.reason.unwrap_or_default().contains(reason));

    let document = bench.latest(&result.id).await.unwrap();
    assert_eq!(document.content(), content);
    assert_eq!(
        document.source_hash(),
        Some(Digest::of(bytes)),
        "of the raw bytes, also where they are no text"
    );
    assert_eq!(document.field("char_count"), Some(&json!(chars)));
    assert_eq!(document.text("file_type"), Some(file_type));

    // The tracker also watches content that is not text.
    let changed = [bytes, b"!"].concat();
    bench.write(name, &changed);
    assert_eq!(index(&engine, &path).await, Action::Updated);
    assert_eq!(bench.latest(&result.id).await.unwrap().source_hash(), Some(Digest::of(&changed)));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn content_that_a_tool_has_read_needs_no_second_read(#[values(Memory, Sqlite)] backend: Backend) {
    let (bench, engine) = session(backend).await;
    let result =
        engine.index_file("not/on/this/disk.rs", Some(b"fn main() {}".to_vec()), None).await.unwrap();
    assert_eq!(result.action, Action::Created);
    assert_eq!(bench.latest(&result.id).await.unwrap().content(), Some("fn main() {}"));
    let sets = engine.session_sets().await.unwrap();
    assert_eq!(
        (sets.metadata_pool.len(), sets.active_set.len()),
        (1, 1),
        "a read enters pool and active set"
    );
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_discovery_never_overwrites_and_enters_the_pool_only(#[values(Memory, Sqlite)] backend: Backend) {
    let (bench, engine) = session(backend).await;
    let (known, found) = (bench.write("known.rs", "text"), bench.write("found.rs", "hidden"));
    let known_id = engine.index_file(&known, None, None).await.unwrap().id;
    let results = engine.discover(&[known.clone(), found.clone(), found.clone()]).await.unwrap();
    assert_eq!(
        results.iter().map(|r| r.action).collect::<Vec<_>>(),
        [Action::Unchanged, Action::Created, Action::Created]
    );
    let found_id = results[1].id.clone();
    assert_eq!(bench.latest(&known_id).await.unwrap().content(), Some("text"));
    let document = bench.latest(&found_id).await.unwrap();
    assert_eq!((document.content(), document.source_hash()), (None, None));
    assert_eq!(bench.versions(&found_id).await.len(), 1);
    let sets = engine.session_sets().await.unwrap();
    assert_eq!(sets.metadata_pool, [known_id.clone(), found_id.clone()]);
    assert_eq!(sets.active_set, [known_id]);

    let tx = bench.latest_tx().await;
    assert_eq!(engine.discover(&[found]).await.unwrap()[0].action, Action::Unchanged);
    assert_eq!(bench.latest_tx().await, tx);

    let shown = engine.activate(found_id.as_str(), None).await.unwrap();
    assert!(shown.ok, "{}", shown.message);
    assert_eq!(shown.content.as_deref(), Some("hidden"), "activation reads what was only discovered");
    assert_eq!(bench.contents(&found_id).await, [None, Some("hidden".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_discovery_with_one_impossible_path_takes_in_nothing() {
    let (bench, engine) = session(Memory).await;
    let paths = [bench.write("a", "x"), "b\0".to_owned()];
    refused(&bench, &engine, ErrorCode::InvalidArgument, engine.discover(&paths)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_written_file_enters_the_pool_and_stays_active_only_if_it_was() {
    let (bench, engine) = session(Memory).await;
    let (new, read) = (bench.write("new", "1"), bench.write("read", "1"));
    let read_id = engine.index_file(&read, None, None).await.unwrap().id;
    let new_id = engine.index_written(&new, None, None).await.unwrap().id;
    bench.write("read", "2");
    assert_eq!(engine.index_written(&read, None, None).await.unwrap().action, Action::Updated);
    let sets = engine.session_sets().await.unwrap();
    assert_eq!(sets.metadata_pool, [read_id.clone(), new_id]);
    assert_eq!(sets.active_set, [read_id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn spellings_of_a_path_are_one_object() {
    let (bench, engine) = session(Memory).await;
    let path = bench.write("src/a.rs", "x");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    for other in ["src/a.rs", "./src/a.rs", "src/../src//a.rs", "../work/src/a.rs"] {
        let result = engine.index_file(other, None, None).await.unwrap();
        assert_eq!((&result.id, result.action), (&id, Action::Unchanged), "{other}");
    }
    assert_eq!(engine.session_sets().await.unwrap().session_index, [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tilde_alone_is_the_agents_home() {
    let bench = Bench::new(Memory);
    let options = context_engine::Options { home: Some(bench.path("home")), ..bench.options("s") };
    let engine = Engine::open(options).await.unwrap();
    bench.write("home/notes", "at home");
    bench.write("~x", "not at home");
    let read = async |path: &str| {
        let id = engine.index_file(path, None, None).await.unwrap().id;
        bench.latest(&id).await.unwrap().content().unwrap().to_owned()
    };
    assert_eq!(read("~/notes").await, "at home");
    assert_eq!(read("~x").await, "not at home");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_file_is_deleted_if_it_was_known() {
    let (bench, engine) = session(Memory).await;
    refused(&bench, &engine, ErrorCode::Io, engine.index_file("nowhere", None, None)).await;
    let path = bench.write("a", "x");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    engine.deactivate(id.as_str()).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(index(&engine, &path).await, Action::Deleted);
    let sets = engine.session_sets().await.unwrap();
    assert_eq!((sets.session_index.len(), sets.active_set.len()), (1, 0), "a missing file is not activated");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_ten_megabytes_is_text_like_any_other() {
    let (bench, engine) = session(Sqlite).await;
    let line = "0123456789abcdef ".repeat(10 * 1024 * 1024 / 17);
    let path = bench.write("long.txt", &line);
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    let document = bench.latest(&id).await.unwrap();
    assert!(document.content() == Some(&line));
    assert_eq!(document.source_hash(), Some(Digest::of(line.as_bytes())));
    assert_eq!(document.field("char_count"), Some(&json!(line.len())));
    // A part of it is bounded, so that it can be shown at all.
    let part = engine.activate(id.as_str(), Some(context_engine::Part::Lines(1, 1))).await.unwrap();
    let part = part.content.unwrap();
    assert!(part.len() < 100_000 && part.contains("0123456789abcdef"), "{}", part.len());
    let found = engine.search(&search("0123456789abcdef", None)).await.unwrap();
    assert!(found[0].snippet.len() < 300, "{}", found[0].snippet.len());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn many_files_at_once(#[values(Memory, Sqlite)] backend: Backend) {
    let (bench, engine) = session(backend).await;
    let mut paths: Vec<String> =
        (0..1_300).map(|n| bench.write(&format!("d{}/f{n}", n % 7), format!("text {n}"))).collect();
    let active = engine.index_file(&paths[3], None, None).await.unwrap().id;
    let before = bench.latest_tx().await;

    let indexed = engine.index_files(paths.clone()).await.unwrap();
    assert!(indexed.refused.is_empty());
    for (n, result) in indexed.results.iter().enumerate() {
        assert_eq!(bench.latest(&result.id).await.unwrap().content(), Some(format!("text {n}").as_str()));
        assert_eq!(result.action, if n == 3 { Action::Unchanged } else { Action::Created });
    }
    let sets = engine.session_sets().await.unwrap();
    check(&sets);
    assert_eq!(
        (sets.metadata_pool.len(), sets.active_set),
        (paths.len(), vec![active]),
        "searched, not shown"
    );
    assert_eq!(engine.search(&search("1299", None)).await.unwrap().len(), 1);
    assert!(bench.latest_tx().await <= before + 6, "few transactions");

    // Once more: changed, gone, named twice, in another way, never there, and no path at all.
    let tx = bench.latest_tx().await;
    assert!(
        engine
            .index_files(paths.clone())
            .await
            .unwrap()
            .results
            .iter()
            .all(|r| r.action == Action::Unchanged)
    );
    assert_eq!(bench.latest_tx().await, tx, "unchanged writes nothing");
    bench.write("d0/f0", "changed");
    std::fs::remove_file(&paths[1]).unwrap();
    paths.truncate(3);
    paths.extend([
        "d0/f0".into(),
        paths[0].clone(),
        bench.path("none"),
        bench.path(""),
        "a\0b".into(),
        "none".into(),
    ]);
    let indexed = engine.index_files(paths.clone()).await.unwrap();
    let actions: Vec<_> = indexed.results.iter().map(|result| result.action).collect();
    let changed = actions.iter().filter(|action| **action == Action::Updated).count();
    assert_eq!((actions.len(), changed, actions[1]), (4, 1, Action::Unchanged));
    let id = &indexed.results[0].id;
    assert!(indexed.results[2..].iter().all(|result| result.id == *id));
    assert_eq!(bench.contents(id).await, ["text 0", "changed"].map(|text| Some(text.to_owned())));
    let refused: Vec<_> = indexed.refused.iter().map(|(path, error)| (path, error.code())).collect();
    use ErrorCode::{InvalidArgument, Io};
    let expected = [(1, Io), (5, Io), (6, Io), (7, InvalidArgument), (8, Io)];
    assert_eq!(refused, expected.map(|(n, code)| (&paths[n], code)));
    assert!(engine.index_files(Vec::new()).await.unwrap().results.is_empty());
}
