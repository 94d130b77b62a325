//! Symbolic links: one underlying file is one object, and a link in a sandbox never leads out of its mount.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use context_engine::{Engine, Options};
use context_model::error::ErrorCode;
use context_model::index::Action;
use context_store::Filter;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rstest::rstest;

use crate::bench::{Backend, Bench, refused, watching};

const SECRET: &str = "a secret of the host";

fn boxed(bench: &Bench) -> Options {
    let workspace = bench.mounted("box");
    Options { cwd: "/workspace".into(), mounts: vec![workspace], ..bench.options("s") }
}

/// A sandbox's directory with a file in it, and a secret beside it.
async fn setting() -> (Bench, Engine) {
    let bench = Bench::new(Backend::Memory);
    bench.write("box/inside", "inside");
    bench.write("box/sub/deep", "deep");
    bench.write("secret", SECRET);
    bench.write("elsewhere/deep", SECRET);
    let engine = Engine::open(boxed(&bench)).await.unwrap();
    (bench, engine)
}

async fn holds_a_secret(bench: &Bench) -> bool {
    for id in bench.store.query(&Filter::default()).await.unwrap() {
        for version in bench.versions(&id).await {
            if version.content().is_some_and(|text| text.contains(SECRET)) {
                return true;
            }
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_shared_file_system_a_link_and_its_target_are_one_object() {
    let bench = Bench::new(Backend::Memory);
    bench.write("real/a.rs", "x");
    symlink("real", bench.root().join("by-directory")).unwrap();
    symlink("real/a.rs", bench.root().join("by-file")).unwrap();
    symlink(bench.path("by-file"), bench.root().join("by-link")).unwrap();
    let engine = bench.open("s").await;
    let id = engine.index_file("real/a.rs", None, None).await.unwrap().id;
    for path in ["by-directory/a.rs", "by-file", "by-link"] {
        let result = engine.index_file(path, None, None).await.unwrap();
        assert_eq!((&result.id, result.action), (&id, Action::Unchanged), "{path}");
        let pool = engine.assemble().await.unwrap().metadata_pool().to_owned();
        assert!(pool.contains(&format!(" path={} ", bench.path(path))), "as the agent named it last: {pool}");
    }
    // A file that does not exist yet takes the real path of its directory.
    let new = engine.discover(&["by-directory/new.rs".to_owned()]).await.unwrap()[0].id.clone();
    bench.write("real/new.rs", "new");
    assert_eq!(engine.index_file("real/new.rs", None, None).await.unwrap().id, new);
}

/// A client cannot see a hard link from the path: each name is an object, which has the content last seen at its own path.
#[tokio::test(flavor = "multi_thread")]
async fn two_hard_linked_names_are_two_objects() {
    let (bench, engine) = watching(Backend::Sqlite).await;
    let one = bench.write("one", "1");
    let two = bench.path("other/two");
    std::fs::create_dir(bench.path("other")).unwrap();
    std::fs::hard_link(&one, &two).unwrap();
    let ids = [
        engine.index_file(&one, None, None).await.unwrap().id,
        engine.index_file(&two, None, None).await.unwrap().id,
    ];
    assert_ne!(ids[0], ids[1]);
    let text = async |id| bench.latest(id).await.unwrap().content().map(str::to_owned).unwrap();
    std::fs::write(&one, "2").unwrap();
    engine.flush().await.unwrap();
    assert_eq!(text(&ids[0]).await, "2");
    // A read of the other name stores its new content, and so does a comparison with the disk.
    engine.index_file(&two, None, None).await.unwrap();
    assert_eq!(text(&ids[1]).await, "2");
    std::fs::write(&two, "3").unwrap();
    engine.flush().await.unwrap();
    assert_eq!(text(&ids[1]).await, "3");
    engine.reconcile().await.unwrap();
    assert_eq!(text(&ids[0]).await, "3");
}

#[rstest]
#[case::relative("link", "inside", "inside", "inside")]
#[case::by_the_agents_path("link", "/workspace/inside", "inside", "inside")]
#[case::through_a_directory("link", "sub", "link/deep", "deep")]
#[case::up_and_down("sub/link", "../sub/../inside", "sub/link", "inside")]
#[case::up_beyond_the_root_of_the_sandbox("link", "../../../../workspace/inside", "link", "inside")]
#[tokio::test(flavor = "multi_thread")]
async fn links_inside_a_mount_are_followed_as_the_sandbox_does(
    #[case] link: &str,
    #[case] target: &str,
    #[case] read: &str,
    #[case] content: &str,
) {
    let (bench, engine) = setting().await;
    symlink(target, bench.root().join("box").join(link)).unwrap();
    let read = if read == "inside" { link } else { read };
    let id = engine.index_file(read, None, None).await.unwrap().id;
    assert_eq!(bench.latest(&id).await.unwrap().content(), Some(content));
    let real = if content == "deep" { "sub/deep" } else { "inside" };
    assert_eq!(engine.index_file(real, None, None).await.unwrap().id, id, "one underlying file, one object");
}

#[rstest]
#[case::absolute(b"/HOST/secret", "link")]
#[case::relative(b"../secret", "link")]
#[case::directory(b"../elsewhere", "link/deep")]
#[case::many_steps(b"sub/../../elsewhere", "link/deep")]
#[case::system(b"/etc/hostname", "link")]
#[case::not_utf_8(b"\xFF/../../secret", "link")]
#[case::directory_not_utf_8(b"\xFF/../../elsewhere", "link/deep")]
#[tokio::test(flavor = "multi_thread")]
async fn link_out_of_its_mount_is_never_followed(#[case] target: &[u8], #[case] read: &str) {
    let (bench, engine) = setting().await;
    std::fs::create_dir(bench.root().join("box").join(OsStr::from_bytes(b"\xFF"))).unwrap();
    let target = match target.strip_prefix(b"/HOST") {
        Some(rest) => [bench.root().as_os_str().as_bytes(), rest].concat(),
        None => target.to_vec(),
    };
    symlink(OsStr::from_bytes(&target), bench.root().join("box/link")).unwrap();
    // Without the library the link does lead to the secret, or to another file of the host.
    assert!(std::fs::read(bench.root().join("box").join(read)).is_ok());

    let message = refused(&bench, &engine, ErrorCode::Io, engine.index_file(read, None, None)).await;
    assert!(message.contains("leaves its mount"), "{message}");
    let id = engine.discover(&[read.to_owned()]).await.unwrap()[0].id.clone();
    let answer = engine.activate(id.as_str(), None).await.unwrap();
    assert_eq!(answer.code, Some(ErrorCode::NullContent), "{}", answer.message);
    assert!(!holds_a_secret(&bench).await);
}

#[rstest]
#[case::to_itself(&[("link", "link")])]
#[case::to_each_other(&[("link", "sub/back"), ("sub/back", "../link")])]
#[tokio::test(flavor = "multi_thread")]
async fn links_without_an_end_are_told_as_such(
    #[case] links: &[(&str, &str)],
    #[values(true, false)] has_mount: bool,
) {
    let (bench, boxed) = setting().await;
    for (link, target) in links {
        symlink(target, bench.root().join("box").join(link)).unwrap();
    }
    let shared = bench.open("shared").await;
    let (engine, path) = if has_mount { (&boxed, "link") } else { (&shared, "box/link") };
    let message = refused(&bench, engine, ErrorCode::Io, engine.index_file(path, None, None)).await;
    assert!(message.contains("is behind a symbolic link that can't be followed"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tracked_directory_replaced_by_a_link_leads_nowhere() {
    let (bench, _) = setting().await;
    let engine = Engine::open(Options { watch: true, ..boxed(&bench) }).await.unwrap();
    let id = engine.index_file("sub/deep", None, None).await.unwrap().id;
    let sub = bench.root().join("box/sub");
    std::fs::rename(&sub, bench.root().join("box/moved")).unwrap();
    symlink(bench.root().join("elsewhere"), &sub).unwrap();
    engine.flush().await.unwrap();
    std::fs::write(bench.root().join("elsewhere/deep"), format!("{SECRET}, changed")).unwrap();
    engine.flush().await.unwrap();
    refused(&bench, &engine, ErrorCode::Io, engine.index_file("sub/deep", None, None)).await;
    engine.close().await.unwrap();
    let resumed = Engine::open(boxed(&bench)).await.unwrap();
    resumed.activate(id.as_str(), None).await.unwrap();
    assert!(!holds_a_secret(&bench).await);
}

#[derive(Clone, Debug)]
struct Planted {
    at: Vec<&'static str>,
    to: Vec<&'static str>,
}

fn planted() -> impl Strategy<Value = Vec<Planted>> {
    let names = || prop::sample::select(vec!["a", "b", "sub"]);
    let at = prop::collection::vec(names(), 1..3);
    let to = prop::collection::vec(
        prop::sample::select(vec![
            "a",
            "b",
            "sub",
            "deep",
            "inside",
            "..",
            "..",
            "/workspace",
            "/HOST",
            "/HOST/box",
            "secret",
            "elsewhere",
            ".",
            "\u{FFFD}",
        ]),
        1..5,
    );
    prop::collection::vec((at, to).prop_map(|(at, to)| Planted { at, to }), 1..5)
}

/// Random links at random places of a sandbox: what is stored was always inside.
#[test]
fn whatever_is_planted_in_a_sandbox_nothing_of_the_host_is_read() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    let paths = [
        "a",
        "b",
        "a/deep",
        "b/deep",
        "a/b",
        "sub/a",
        "sub/b/secret",
        "a/secret",
        "b/elsewhere/deep",
        "a/inside",
    ];
    let outcome = runner.run(&planted(), |links| {
        runtime.block_on(async {
            let (bench, engine) = setting().await;
            for link in &links {
                let mut target = link.to.join("/").replace("/HOST", bench.root().to_str().unwrap());
                if link.to.iter().skip(1).any(|step| step.starts_with('/')) {
                    let last = link.to.iter().rposition(|step| step.starts_with('/')).unwrap();
                    target = link.to[last..].join("/").replace("/HOST", bench.root().to_str().unwrap());
                }
                let bytes = target.replace('\u{FFFD}', "\u{1}").into_bytes();
                let bytes: Vec<u8> = bytes.into_iter().map(|b| if b == 1 { 0xFF } else { b }).collect();
                // A place that is taken, or whose directory is missing, stays as it is.
                let _ = symlink(OsStr::from_bytes(&bytes), bench.root().join("box").join(link.at.join("/")));
            }
            for path in paths {
                if let Ok(result) = engine.index_file(path, None, None).await {
                    let text = bench.latest(&result.id).await.unwrap();
                    prop_assert!(
                        matches!(text.content(), Some("inside" | "deep")),
                        "{path}: {:?}",
                        text.content()
                    );
                }
            }
            prop_assert!(!holds_a_secret(&bench).await);
            Ok(())
        })
    });
    outcome.unwrap();
}
