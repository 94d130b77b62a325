//! Files that a tool call read, wrote or named: the engine finds them by itself.

use context_engine::{Engine, Options, SessionSets};
use context_model::id::ObjectId;
use context_model::object::{Status, Toolcall};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Backend, Bench, check, session, tool};

/// The agent's paths below its directory that stand in a set, and the tool call's references.
async fn named(bench: &Bench, ids: &[ObjectId]) -> Vec<String> {
    let mut names = Vec::new();
    for id in ids {
        let document = bench.latest(id).await.unwrap();
        let Some(source) = document.source().and_then(|s| s.as_filesystem()) else { continue };
        let below = format!("{}/", bench.root().display());
        names.push(source.path.strip_prefix(&below).unwrap_or(&source.path).to_owned());
    }
    names.sort();
    names
}

fn tree(bench: &Bench) {
    for name in ["a.ts", "b.ts", "src/c.ts", "src/d e.ts", "out.log"] {
        bench.write(name, format!("content of {name}\n"));
    }
    std::fs::create_dir(bench.root().join("empty")).unwrap();
}

async fn with_tree(backend: Backend) -> (Bench, Engine) {
    let (bench, engine) = session(backend).await;
    tree(&bench);
    (bench, engine)
}

struct Effect {
    pool: Vec<String>,
    active: Vec<String>,
    references: Vec<String>,
    sets: SessionSets,
}

async fn record(bench: &Bench, engine: &Engine, name: &str, args: Value, output: &str) -> Effect {
    let id = engine.record_toolcall(tool("call", name, args, output)).await.unwrap();
    let sets = engine.session_sets().await.unwrap();
    check(&sets);
    let document = bench.latest(&id).await.unwrap();
    let references = document.field("file_refs").and_then(Value::as_array).cloned().unwrap_or_default();
    let references: Vec<ObjectId> = references.iter().map(|id| ObjectId::new(id.as_str().unwrap())).collect();
    Effect {
        pool: named(bench, &sets.metadata_pool).await,
        active: named(bench, &sets.active_set).await,
        references: named(bench, &references).await,
        sets,
    }
}

#[rstest]
#[case::read("read", json!({ "path": "a.ts" }), "content of a.ts\n", &["a.ts"], &["a.ts"])]
#[case::part("read", json!({ "path": "a.ts", "offset": 1, "limit": 1 }), "content", &["a.ts"], &["a.ts"])]
#[case::at("read", json!({ "path": "@a.ts" }), "", &["a.ts"], &["a.ts"])]
#[case::other_harness("Read", json!({ "file_path": "a.ts" }), "", &["a.ts"], &["a.ts"])]
#[case::write("write", json!({ "path": "a.ts", "content": "x" }), "ok", &["a.ts"], &[])]
#[case::edit("edit", json!({ "path": "src/c.ts" }), "ok", &["src/c.ts"], &[])]
#[case::ls("ls", json!({ "path": "." }), "a.ts\nb.ts\nempty/\nout.log\nsrc/", &["a.ts", "b.ts", "out.log"], &[])]
#[case::ls_below("ls", json!({ "path": "src" }), "c.ts\nd e.ts", &["src/c.ts", "src/d e.ts"], &[])]
#[case::find("find", json!({ "pattern": "*.ts" }), "a.ts\nsrc/c.ts", &["a.ts", "src/c.ts"], &[])]
#[case::grep("grep", json!({ "pattern": "content" }), "a.ts:1: content of a.ts\nsrc/c.ts:1: content", &["a.ts", "src/c.ts"], &[])]
#[case::bash("bash", json!({ "command": "cat a.ts && wc -l ./src/c.ts" }), "", &["a.ts", "src/c.ts"], &[])]
#[case::not_there("ls", json!({}), "a.ts\nnowhere.ts", &["a.ts"], &[])]
#[case::directory("read", json!({ "path": "src" }), "EISDIR", &[], &[])]
#[case::flags_and_urls("bash", json!({ "command": "curl -o /dev/null https://example.com/a.ts; chmod 644 empty; ls -la" }), "200", &[], &[])]
#[case::another_tool("custom", json!({ "path": "a.ts" }), "a.ts", &[], &[])]
#[tokio::test(flavor = "multi_thread")]
async fn tool_output_updates_its_files(
    #[case] name: &str,
    #[case] args: Value,
    #[case] output: &str,
    #[case] pool: &[&str],
    #[case] active: &[&str],
) {
    let (bench, engine) = with_tree(Backend::Sqlite).await;
    let effect = record(&bench, &engine, name, args, output).await;
    assert_eq!(effect.pool, pool);
    assert_eq!(effect.active, active);
    assert_eq!(effect.references, pool);
    assert!(effect.sets.active_set.contains(&ObjectId::new("call")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_read_never_becomes_the_files_content() {
    let bench = Bench::new(Backend::Memory);
    let engine = bench.open("s").await;
    bench.write("a", "1\n2\n3\n");
    let args = json!({ "path": "a", "offset": 2, "limit": 1 });
    let effect = record(&bench, &engine, "read", args, "2\n\n[1 more line in file]").await;
    let file = effect.sets.active_set.iter().find(|id| id.as_str() != "call").unwrap();
    assert_eq!(bench.latest(file).await.unwrap().content(), Some("1\n2\n3\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_does_not_read_and_a_write_makes_a_version() {
    let (bench, engine) = with_tree(Backend::Memory).await;
    let effect = record(&bench, &engine, "ls", json!({}), "a.ts\nb.ts").await;
    for id in effect.sets.metadata_pool.iter().filter(|id| id.as_str() != "call") {
        assert_eq!(bench.contents(id).await, [None]);
    }
    bench.write("a.ts", "written");
    let write = json!({ "path": "a.ts", "content": "written" });
    engine.record_toolcall(tool("write", "write", write, "ok")).await.unwrap();
    let id = engine.index_file("a.ts", None, None).await.unwrap().id;
    assert_eq!(bench.contents(&id).await, [None, Some("written".into())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn command_removing_a_known_file_makes_a_deletion_only_for_it() {
    let (bench, engine) = with_tree(Backend::Memory).await;
    let id = engine.index_file("a.ts", None, None).await.unwrap().id;
    std::fs::remove_file(bench.path("a.ts")).unwrap();
    std::fs::remove_file(bench.path("b.ts")).unwrap();
    let effect = record(&bench, &engine, "bash", json!({ "command": "rm a.ts b.ts" }), "").await;
    assert_eq!(bench.latest(&id).await.unwrap().content(), None);
    assert_eq!(effect.references, ["a.ts"]);
    assert!(effect.sets.session_index.contains(&id), "what is gone stays in the index");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_tool_shows_nothing_and_is_recorded_anyway() {
    let (_bench, engine) = with_tree(Backend::Memory).await;
    let call = tool("call", "read", json!({ "path": "a.ts" }), "no such file");
    let input = Toolcall { status: Status::Fail, ..call };
    engine.record_toolcall(input).await.unwrap();
    assert_eq!(engine.session_sets().await.unwrap().session_index, [ObjectId::new("call")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_sandbox_mounted_files_are_read_and_others_are_known_from_outputs() {
    let bench = Bench::new(Backend::Memory);
    tree(&bench);
    let workspace = bench.mounted("");
    let options = Options {
        cwd: "/workspace".into(),
        filesystem_id: None,
        mounts: vec![workspace],
        ..bench.options("s")
    };
    let engine = Engine::open(options).await.unwrap();
    record(&bench, &engine, "read", json!({ "path": "a.ts" }), "content of a.ts\n").await;
    let inside = json!({ "path": "/etc/hostname" });
    engine.record_toolcall(tool("inside", "read", inside, "sandbox\n")).await.unwrap();
    let guess = json!({ "command": "cat /etc/hostname /etc/passwd" });
    engine.record_toolcall(tool("guess", "bash", guess, "")).await.unwrap();
    let view = engine.assemble().await.unwrap();
    let pool = view.metadata_pool();
    assert!(pool.contains(" path=/workspace/a.ts file_type=ts char_count=16"), "{pool}");
    assert!(pool.contains(" path=/etc/hostname file_type=text char_count=8"), "{pool}");
    assert!(!pool.contains("passwd"), "a guess of a shell's words is not enough");
    assert!(!view.text().contains("root:"));
}

/// The model knows the files that it has read or written, also if they are gone by the time the call is recorded. A file that a
/// command removed concerns only the sessions that know it.
#[rstest]
#[case::read("read", json!({ "path": "a.ts" }), true)]
#[case::written("write", json!({ "path": "a.ts", "content": "content of a.ts\n" }), true)]
#[case::removed("bash", json!({ "command": "rm a.ts" }), false)]
#[tokio::test(flavor = "multi_thread")]
async fn file_gone_before_its_call_is_recorded_may_be_encountered(
    #[case] name: &str,
    #[case] args: Value,
    #[case] is_encountered: bool,
) {
    let (bench, engine) = with_tree(Backend::Memory).await;
    let path = bench.path("a.ts");
    let id = bench.open("another").await.index_file(&path, None, None).await.unwrap().id;
    std::fs::remove_file(path).unwrap();
    let effect = record(&bench, &engine, name, args, "content of a.ts\n").await;
    assert_eq!(effect.sets.session_index.contains(&id), is_encountered);
    assert!(effect.pool.is_empty() && effect.active.is_empty());
}
