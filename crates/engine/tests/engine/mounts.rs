//! Sandboxes: one object for one file under any agent's name, and filesystem identities.

use context_engine::{Engine, Options};
use context_model::error::ErrorCode;
use context_model::id::ObjectId;
use context_model::index::Action;
use context_model::mounts::MountMapping;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::Backend::{Memory, Sqlite};
#[cfg(unix)]
use crate::bench::not_run;
use crate::bench::{Backend, Bench, FILESYSTEM, refused, search, tool};

fn mount(agent: &str, canonical: &str) -> MountMapping {
    MountMapping {
        agent_prefix: agent.into(),
        canonical_prefix: canonical.into(),
        filesystem_id: FILESYSTEM.into(),
    }
}

/// An agent in a sandbox that sees the bench's directory as `/workspace`.
fn sandbox(bench: &Bench, session: &str) -> Options {
    Options {
        cwd: "/workspace".into(),
        filesystem_id: None,
        mounts: vec![mount("/workspace", &bench.path(""))],
        ..bench.options(session)
    }
}

async fn source_of(bench: &Bench, id: &ObjectId) -> (String, String) {
    let document = bench.latest(id).await.unwrap();
    let source = document.source().unwrap().as_filesystem().unwrap();
    (source.filesystem_id.clone(), source.path.clone())
}

async fn lines(engine: &Engine) -> String {
    engine.assemble().await.unwrap().metadata_pool().to_owned()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn host_and_sandboxed_agents_share_a_file_under_their_own_paths(
    #[values(Memory, Sqlite)] backend: Backend,
) {
    let bench = Bench::new(backend);
    bench.write("src/main.ts", "x");
    let host = bench.open("host").await;
    let boxed = Engine::open(sandbox(&bench, "boxed")).await.unwrap();
    let one = host.index_file(&bench.path("src/main.ts"), None, None).await.unwrap();
    let two = boxed.index_file("/workspace/src/main.ts", None, None).await.unwrap();
    assert_eq!((one.action, two.action, &one.id), (Action::Created, Action::Unchanged, &two.id));
    assert_eq!(source_of(&bench, &one.id).await, (FILESYSTEM.into(), bench.path("src/main.ts")));
    assert!(lines(&boxed).await.contains(" path=/workspace/src/main.ts "));
    assert!(lines(&host).await.contains(&format!(" path={} ", bench.path("src/main.ts"))));

    bench.write("src/main.ts", "y");
    assert_eq!(boxed.index_file("src/main.ts", None, None).await.unwrap().action, Action::Updated);
    assert_eq!(host.index_file("src/main.ts", None, None).await.unwrap().action, Action::Unchanged);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn files_inside_the_sandbox_are_its_own_and_are_never_read_on_the_host(
    #[values(Memory, Sqlite)] backend: Backend,
) {
    let mut bench = Bench::new(backend);
    let boxed = Engine::open(sandbox(&bench, "boxed")).await.unwrap();
    let path = bench.outside().join("secret").into_os_string().into_string().unwrap();
    std::fs::write(&path, "of the host").unwrap();
    let message = refused(&bench, &boxed, ErrorCode::Io, boxed.index_file(&path, None, None)).await;
    assert!(message.contains("can't be reached"), "{message}");

    let inside = boxed.index_file(&path, Some(b"of the sandbox".to_vec()), None).await.unwrap();
    let (filesystem, _) = source_of(&bench, &inside.id).await;
    assert_ne!(filesystem, FILESYSTEM);
    assert!(lines(&boxed).await.contains(&format!(" path={path} ")));
    let found = boxed.discover(&["/etc/hostname".to_owned()]).await.unwrap();
    let answer = boxed.activate(found[0].id.as_str(), None).await.unwrap();
    assert_eq!(answer.code, Some(ErrorCode::NullContent));
    assert!(answer.message.contains("sandbox"), "{}", answer.message);

    // The random namespace is kept with the session, and another sandbox has another one.
    boxed.close().await.unwrap();
    bench.restart().await;
    let resumed = Engine::open(sandbox(&bench, "boxed")).await.unwrap();
    let again = resumed.index_file(&path, Some(b"of the sandbox".to_vec()), None).await.unwrap();
    assert_eq!((again.action, again.id), (Action::Unchanged, inside.id.clone()));
    assert_eq!(
        bench.contents(&inside.id).await,
        [Some("of the sandbox".to_owned())],
        "resuming left it alone"
    );
    let other = Engine::open(sandbox(&bench, "another")).await.unwrap();
    let theirs = other.index_file(&path, Some(b"of the sandbox".to_vec()), None).await.unwrap();
    assert_ne!(theirs.id, inside.id);
}

/// A whole read gives the text of a file that the client can't look at; other outputs only show that the file exists.
#[rstest]
#[case::whole("read", json!({ "path": "/etc/a" }), "one\ntwo\n", Some("one\ntwo\n"))]
#[case::other_harness("Read", json!({ "file_path": "/etc/a" }), "one\ntwo\n", Some("one\ntwo\n"))]
#[case::written("write", json!({ "path": "/etc/a", "content": "one" }), "ok", Some("one"))]
#[case::part("read", json!({ "path": "/etc/a", "limit": 1 }), "one\n", None)]
#[case::cut("read", json!({ "path": "/etc/a" }), "one\n\n[1 more lines in file]", None)]
#[case::numbered("read", json!({ "path": "/etc/a" }), "     1\tone\n     2\ttwo\n", None)]
#[case::edited("edit", json!({ "path": "/etc/a", "oldText": "a", "newText": "b" }), "ok", None)]
#[tokio::test(flavor = "multi_thread")]
async fn whole_read_gives_the_text_of_a_file_inside_the_sandbox(
    #[case] name: &str,
    #[case] args: Value,
    #[case] output: &str,
    #[case] expected: Option<&str>,
) {
    let bench = Bench::new(Memory);
    let boxed = Engine::open(sandbox(&bench, "boxed")).await.unwrap();
    let id = boxed.discover(&["/etc/a".to_owned()]).await.unwrap().remove(0).id;
    boxed.record_toolcall(tool("call", name, args, output)).await.unwrap();
    assert_eq!(bench.latest(&id).await.unwrap().content(), expected);
    let answer = boxed.activate(id.as_str(), None).await.unwrap();
    assert_eq!(answer.content.as_deref(), expected);
    if expected.is_none() {
        assert_eq!(answer.code, Some(ErrorCode::NullContent));
        assert!(answer.message.contains("use that output"), "{}", answer.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_replaces_the_text_of_a_changed_file_inside_the_sandbox() {
    let bench = Bench::new(Memory);
    let boxed = Engine::open(sandbox(&bench, "boxed")).await.unwrap();
    let read = |id: &str, output: &str| tool(id, "read", json!({ "path": "/etc/a" }), output);
    let id = boxed.index_file("/etc/a", Some(b"one\ntwo\n".to_vec()), Some("first")).await.unwrap().id;
    // The host's tool leaves out the last line break; the bytes that the host has passed in are the better source.
    boxed.record_toolcall(read("first", "one\ntwo")).await.unwrap();
    assert_eq!(bench.contents(&id).await, [Some("one\ntwo\n".to_owned())]);
    boxed.record_toolcall(read("again", "one\ntwo\n")).await.unwrap();
    boxed.record_toolcall(read("numbered", "1: one\n2: two\n")).await.unwrap();
    assert_eq!(bench.contents(&id).await, [Some("one\ntwo\n".to_owned())]);
    boxed.record_toolcall(read("changed", "one\nthree\n")).await.unwrap();
    let contents = [Some("one\ntwo\n".to_owned()), Some("one\nthree\n".to_owned())];
    assert_eq!(bench.contents(&id).await, contents);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_mounts_have_their_own_namespaces() {
    let bench = Bench::new(Memory);
    bench.write("project/a", "project");
    bench.write("volume/a", "volume");
    let volume =
        MountMapping { filesystem_id: "volume".into(), ..mount("/workspace/data", &bench.path("volume")) };
    let options =
        Options { mounts: vec![mount("/workspace", &bench.path("project")), volume], ..sandbox(&bench, "s") };
    let engine = Engine::open(options).await.unwrap();
    let project = engine.index_file("/workspace/a", None, None).await.unwrap();
    let data = engine.index_file("/workspace/data/a", None, None).await.unwrap();
    assert_eq!(source_of(&bench, &project.id).await, (FILESYSTEM.into(), bench.path("project/a")));
    assert_eq!(source_of(&bench, &data.id).await, ("volume".into(), bench.path("volume/a")));
    assert_eq!(bench.latest(&data.id).await.unwrap().content(), Some("volume"));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn mount_through_a_link_is_the_real_directory() {
    let bench = Bench::new(Memory);
    bench.write("real/a", "x");
    std::os::unix::fs::symlink("real", bench.root().join("alias")).unwrap();
    let options =
        Options { mounts: vec![mount("/workspace", &bench.path("alias"))], ..sandbox(&bench, "boxed") };
    let boxed = Engine::open(options.clone()).await.unwrap();
    let host = bench.open("host").await;
    let one = boxed.index_file("/workspace/a", None, None).await.unwrap();
    assert_eq!(one.id, host.index_file(&bench.path("alias/a"), None, None).await.unwrap().id);
    assert!(lines(&boxed).await.contains(" path=/workspace/a "));
    boxed.close().await.unwrap();
    bench.write("real/a", "changed while away");
    let resumed = Engine::open(options).await.unwrap();
    assert_eq!(bench.latest(&one.id).await.unwrap().content(), Some("changed while away"));
    assert!(lines(&resumed).await.contains(" path=/workspace/a "));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_mapping_that_fits_the_canonical_path_is_shown() {
    let bench = Bench::new(Memory);
    bench.write("a", "x");
    let boxed = Engine::open(sandbox(&bench, "s")).await.unwrap();
    boxed.index_file("/workspace/a", None, None).await.unwrap();
    let options = Options { mounts: vec![mount("/other", "/somewhere/else")], ..sandbox(&bench, "s2") };
    let elsewhere = Engine::open(options).await.unwrap();
    elsewhere.restore(boxed.session_id(), boxed.point().await.unwrap(), None).await.unwrap();
    assert!(lines(&elsewhere).await.contains(&format!(" path={} ", bench.path("a"))));
}

#[rstest]
#[case::relative_cwd(|o: Options| Options { cwd: "work".into(), ..o })]
#[case::relative_home(|o: Options| Options { home: Some("home".into()), ..o })]
#[case::relative_mount(|o: Options| Options { mounts: vec![mount("workspace", "/a")], ..o })]
#[case::relative_canonical(|o: Options| Options { mounts: vec![mount("/workspace", "a")], ..o })]
#[case::empty_filesystem(|o: Options| Options { filesystem_id: Some(String::new()), ..o })]
#[case::two_of_one_prefix(|o: Options| Options { mounts: vec![mount("/w", "/a"), mount("/w/", "/b")], ..o })]
#[tokio::test(flavor = "multi_thread")]
async fn options_that_contradict_themselves_are_refused(#[case] wrong: impl Fn(Options) -> Options) {
    let bench = Bench::new(Memory);
    let Err(error) = Engine::open(wrong(bench.options("s"))).await else { panic!("it was opened") };
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert_eq!(bench.latest_tx().await, 0, "no session was started");
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_of_a_machine_is_the_hash_of_its_id_or_a_kept_random_one() {
    let bench = Bench::new(Sqlite);
    bench.write("a", "x");
    let with = |session: &str, file: String| Options {
        filesystem_id: None,
        machine_id_file: file,
        ..bench.options(session)
    };
    let namespace = async |options: Options| {
        let engine = Engine::open(options).await.unwrap();
        let id = engine.index_file("a", None, None).await.unwrap().id;
        source_of(&bench, &id).await.0
    };
    let id = bench.write("machine-id", "0123456789abcdef0123456789abcdef\n");
    let expected = context_model::hash::Digest::of(b"0123456789abcdef0123456789abcdef").to_string();
    assert_eq!(namespace(with("one", id.clone())).await, expected);
    assert_eq!(namespace(with("two", id.clone())).await, expected);

    // The owner of the unmapped paths counts: a mount beside the client's own files changes nothing.
    let beside = Options {
        mounts: vec![mount("/other", "/o")],
        watch_unmapped: Some(true),
        ..with("seven", id.clone())
    };
    assert_eq!(namespace(beside).await, expected);
    let inside = Options { watch_unmapped: Some(false), ..with("eight", id) };
    let engine = Engine::open(inside).await.unwrap();
    let found = engine.index_file("a", Some(b"inside".to_vec()), None).await.unwrap().id;
    assert_ne!(source_of(&bench, &found).await.0, expected);
    assert!(engine.index_file("a", None, None).await.is_err(), "it is not read on the host");

    let random = namespace(with("three", bench.path("missing"))).await;
    assert_eq!(random.len(), 64);
    for (session, text) in [("four", ""), ("five", "\n"), ("six", "uninitialized\n")] {
        let file = bench.write("odd-machine-id", text);
        assert_eq!(namespace(with(session, file)).await, random, "kept in the store");
    }
}

#[cfg(unix)]
#[rstest]
#[case::agent("C:/work", "/work")]
#[case::canonical("/work", "C:/work")]
#[case::relative("work", "/work")]
#[tokio::test(flavor = "multi_thread")]
async fn relative_prefix_is_refused(#[case] agent: &str, #[case] canonical: &str) {
    let bench = Bench::new(Memory);
    let options = Options { mounts: vec![mount(agent, canonical)], ..bench.options("s") };
    let error = Engine::open(options).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn filesystems_can_be_told_apart_by_device() {
    use std::os::unix::fs::MetadataExt as _;
    let device = |path: &str| std::fs::metadata(path).map(|m| m.dev()).ok();
    let (root, other) = ("/", "/dev/shm");
    if device(other).is_none() || device(other) == device(root) {
        not_run(&format!("no second file system is at {other}"));
        return;
    }
    let bench = Bench::new(Memory);
    let place = tempfile::tempdir_in(other).unwrap();
    let path = place.path().join("a").into_os_string().into_string().unwrap();
    std::fs::write(&path, "1").unwrap();
    let plain = bench.open("plain").await;
    let id = plain.index_file(&path, None, None).await.unwrap().id;
    assert_eq!(source_of(&bench, &id).await.0, FILESYSTEM);

    let options = Options { detect_devices: true, ..bench.options("detecting") };
    let engine = Engine::open(options.clone()).await.unwrap();
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    let (namespace, _) = source_of(&bench, &id).await;
    assert_ne!(namespace, FILESYSTEM);
    engine.close().await.unwrap();
    std::fs::write(&path, "2").unwrap();
    Engine::open(options).await.unwrap();
    assert_eq!(bench.latest(&id).await.unwrap().content(), Some("2"), "it is found again on resume");

    // A mount mapping wins over the device.
    let mapped = Options {
        mounts: vec![mount("/data", place.path().to_str().unwrap())],
        detect_devices: true,
        ..bench.options("mapped")
    };
    let mapped = Engine::open(mapped).await.unwrap();
    let id = mapped.index_file("/data/a", None, None).await.unwrap().id;
    assert_eq!(source_of(&bench, &id).await.0, FILESYSTEM);
}

#[cfg(windows)]
#[tokio::test(flavor = "multi_thread")]
async fn sandbox_name_with_windows_separators_leads_nowhere() {
    let bench = Bench::new(Memory);
    bench.write("a", "inside");
    let secret = bench.outside().join("secret");
    std::fs::write(&secret, "of the host").unwrap();
    let boxed = Engine::open(sandbox(&bench, "boxed")).await.unwrap();
    let (verbatim, plain) = (secret.to_str().unwrap().to_owned(), bench.path("../secret"));
    for path in [verbatim, plain, r"..\secret".to_owned(), r"sub\..\..\secret".to_owned()] {
        let message = refused(&bench, &boxed, ErrorCode::Io, boxed.index_file(&path, None, None)).await;
        assert!(message.contains("can't be reached"), "{path}: {message}");
    }
    assert_eq!(boxed.index_file("a", None, None).await.unwrap().action, Action::Created);
}

/// A session that continues on another machine: its files there are others, and those of the first one are out of reach.
#[tokio::test(flavor = "multi_thread")]
async fn files_with_one_path_on_two_machines_are_told_apart() {
    let bench = Bench::new(Sqlite);
    let path = bench.write("a.txt", "zebra here");
    let at = |machine: &str| Options { filesystem_id: Some(machine.into()), ..bench.options("s") };
    let here = Engine::open(at("here")).await.unwrap();
    let first = here.index_file(&path, None, None).await.unwrap().id;
    assert_eq!(here.orphaned().await.unwrap(), []);
    let line = format!("id={first} type=file path={path} file_type=txt char_count=10");
    assert!(lines(&here).await.ends_with(&line), "{}", lines(&here).await);
    here.close().await.unwrap();

    bench.write("a.txt", "zebra there");
    let there = Engine::open(at("there")).await.unwrap();
    let second = there.index_file(&path, None, None).await.unwrap().id;
    assert_ne!(first, second);
    assert_eq!(bench.contents(&first).await, [Some("zebra here".to_owned())]);
    let shown = lines(&there).await;
    assert!(shown.contains(&format!("{line} state=orphaned\n")), "{shown}");
    assert!(
        shown.contains(&format!("id={second} ")) && shown.matches("state=orphaned").count() == 1,
        "{shown}"
    );
    assert_eq!(there.orphaned().await.unwrap(), std::slice::from_ref(&first));
    let hits = there.search(&search("zebra", Some("s"))).await.unwrap();
    let marked =
        |id: &ObjectId| hits.iter().find(|hit| hit.id == *id).unwrap().shown.contains(" state=orphaned ");
    assert_eq!([marked(&first), marked(&second)], [true, false]);
    there.close().await.unwrap();

    // Back where it began, it is the other way around.
    let here = Engine::open(at("here")).await.unwrap();
    assert_eq!(here.orphaned().await.unwrap(), std::slice::from_ref(&second));
    // Inside a sandbox only the agent sees its files: the client can't reach them, and they are the agent's own.
    let boxed = Engine::open(sandbox(&bench, "boxed")).await.unwrap();
    let inside = boxed.index_file("/etc/hosts", Some(b"own".to_vec()), None).await.unwrap().id;
    assert_eq!(boxed.orphaned().await.unwrap(), [inside]);
    assert!(!lines(&boxed).await.contains("state=orphaned"));
}
