//! Pause and resume: the same state, the same bytes, and files reconciled with the disk.

use context_engine::{Engine, Options, Wanted};
use context_model::error::ErrorCode;
use context_model::id::{ObjectId, SessionId};
use context_model::index::Action;
use rstest::rstest;
use serde_json::json;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench, answer, call, refused, search, session, tool, user, watching};

/// A file through a link, where a link needs no privilege.
const LINKED: &str = if cfg!(unix) { "alias/a.rs" } else { "real/a.rs" };

/// A session with everything in it that is rendered.
async fn busy(bench: &Bench, engine: &Engine) {
    engine.set_system_prompt("You help.").await.unwrap();
    bench.write("real/a.rs", "fn a() {}\n");
    bench.write("b \u{1F600}.md", "text\r\n");
    #[cfg(unix)]
    std::os::unix::fs::symlink("real", bench.root().join("alias")).unwrap();
    for n in 0..4 {
        engine.append_turn(user(&format!("question {n}"))).await.unwrap();
        engine.index_file(LINKED, None, None).await.unwrap();
        engine.discover(&["real/found".to_owned(), "gone/x".to_owned()]).await.unwrap();
        for m in 0..3 {
            engine.record_toolcall(call(&format!("call_{m}"), &format!("output {n} {m}"))).await.unwrap();
        }
        engine
            .record_toolcall(tool(&format!("read {n}"), "read", json!({ "path": "b \u{1F600}.md" }), "text"))
            .await
            .unwrap();
        engine.append_turn(answer("because")).await.unwrap();
    }
    engine.pin("call_1").await.unwrap();
    engine.activate("call_0", None).await.unwrap();
    engine.demote("call_2").await.unwrap();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_has_the_same_sets_and_renders_the_same_bytes(
    #[values(Memory, Sqlite)] backend: Backend,
) {
    let (mut bench, engine) = session(backend).await;
    busy(&bench, &engine).await;
    let (sets, view, point) = (
        engine.session_sets().await.unwrap(),
        engine.assemble().await.unwrap(),
        engine.point().await.unwrap(),
    );
    assert!(view.metadata_pool().contains(&format!(" path={} ", bench.path(LINKED))));
    for _ in 0..3 {
        bench.restart().await;
        let tx = bench.latest_tx().await;
        let resumed = bench.open("s").await;
        assert_eq!(resumed.session_sets().await.unwrap(), sets);
        assert_eq!(resumed.assemble().await.unwrap(), view);
        assert_eq!(resumed.point().await.unwrap(), point);
        assert_eq!(bench.latest_tx().await, tx, "resuming what has not changed writes nothing");
        resumed.close().await.unwrap();
    }
    // It continues from there as the first process would have.
    let resumed = bench.open("s").await;
    resumed.append_turn(user("next")).await.unwrap();
    let now = resumed.session_sets().await.unwrap();
    let call = ObjectId::new("call_0");
    assert!(sets.active_set.contains(&call) && now.active_set.contains(&call), "activated in the last turn");
    assert!(now.active_set.len() < sets.active_set.len(), "the window continues");
}

#[cfg(unix)]
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn files_are_reconciled_with_the_disk_in_one_transaction(#[values(Memory, Sqlite)] backend: Backend) {
    let (mut bench, engine) = session(backend).await;
    let mut id = std::collections::BTreeMap::new();
    for name in ["same", "changed", "deleted", "gone/with/its/directory", "to-link", "to-directory", "binary"]
    {
        let path = bench.write(name, name);
        id.insert(name, engine.index_file(&path, None, None).await.unwrap().id);
    }
    for name in ["found", "found-later"] {
        id.insert(name, engine.discover(&[bench.path(name)]).await.unwrap()[0].id.clone());
    }
    engine.close().await.unwrap();

    bench.write("changed", "anew");
    bench.write("found-later", "not read yet");
    bench.write("binary", [0, 1, 2]);
    std::fs::remove_file(bench.path("deleted")).unwrap();
    std::fs::remove_dir_all(bench.path("gone")).unwrap();
    std::fs::remove_file(bench.path("to-link")).unwrap();
    std::os::unix::fs::symlink("same", bench.path("to-link")).unwrap();
    std::fs::remove_file(bench.path("to-directory")).unwrap();
    std::fs::create_dir(bench.path("to-directory")).unwrap();
    bench.restart().await;
    let tx = bench.latest_tx().await;
    let resumed = bench.open("s").await;
    assert_eq!(bench.latest_tx().await, tx + 1, "one transaction");

    let text = |t: &str| Some(t.to_owned());
    for (name, contents) in [
        ("same", vec![text("same")]),
        ("changed", vec![text("changed"), text("anew")]),
        ("deleted", vec![text("deleted"), None]),
        ("gone/with/its/directory", vec![text("gone/with/its/directory"), None]),
        ("to-link", vec![text("to-link"), None]),
        ("to-directory", vec![text("to-directory"), None]),
        ("binary", vec![text("binary"), None]),
        ("found", vec![None]),
        ("found-later", vec![None]),
    ] {
        assert_eq!(bench.contents(&id[name]).await, contents, "{name}");
    }
    assert!(bench.latest(&id["binary"]).await.unwrap().source_hash().is_some());
    assert_eq!(
        resumed.session_sets().await.unwrap().session_index.len(),
        id.len(),
        "the index keeps what is gone"
    );
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn recreated_file_is_read_on_resume(#[values(Memory, Sqlite)] backend: Backend) {
    let (mut bench, engine) = session(backend).await;
    let path = bench.write("a", "one");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    std::fs::remove_file(&path).unwrap();
    assert_eq!(engine.index_deletion(&path).await.unwrap().action, Action::Deleted);
    engine.close().await.unwrap();
    bench.write("a", "one");
    bench.restart().await;
    bench.open("s").await;
    assert_eq!(bench.contents(&id).await, [Some("one".into()), None, Some("one".into())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn future_source_type_is_shown_and_left_alone() {
    use context_model::hash::identity_hash;
    use context_model::object::{Document, ObjectType};
    use context_model::session::{Sets, SetsChange};
    use context_model::source::Source;
    use context_store::{Transaction, Write};
    let bench = Bench::new(Sqlite);
    let binding = json!({ "type": "s3", "bucket": "b", "key": "k\nid=x" });
    let source = Source::from_value(binding.clone()).unwrap();
    let id = ObjectId::sourced(identity_hash(ObjectType::File, Some(&source)));
    let payload = json!({ "content": "a,b", "file_type": "csv", "char_count": 3, "source_hash": null });
    let file =
        Document::new(id.clone(), ObjectType::File, Some(source), payload.as_object().unwrap().clone())
            .unwrap();
    let engine = bench.open("s").await;
    engine.close().await.unwrap();
    let mut sets = Sets::default();
    let mut change = SetsChange::default();
    sets.activate(&id, &mut change);
    sets.apply(change);
    let session = sets.document(engine.session_id());
    let writes = [file, session].into_iter().map(Write::put).collect();
    bench.store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();

    let resumed = bench.open("s").await;
    let view = resumed.assemble().await.unwrap();
    assert_eq!(view.metadata_pool().lines().count(), 1);
    assert!(view.metadata_pool().contains("file_type=csv char_count=3"), "{}", view.metadata_pool());
    assert_eq!(view.blocks().next().unwrap().content, "a,b");
    assert_eq!(bench.versions(&id).await.len(), 1);
    assert_eq!(bench.latest(&id).await.unwrap().to_json()["source"], binding);
}

/// The folder of a session's document, and the number of its versions.
async fn recorded(bench: &Bench, session: &str) -> (Option<String>, usize) {
    let versions = bench.versions(&ObjectId::new(format!("session:{session}"))).await;
    (versions.last().and_then(|last| last.text("folder").map(str::to_owned)), versions.len())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_a_session_is_recorded_where_it_begins_and_where_it_goes_on(
    #[values(Memory, Sqlite)] backend: Backend,
) {
    use context_model::session::Sets;
    use context_store::{Transaction, Write, transfer};
    let (bench, engine) = session(backend).await;
    let root = bench.path("").trim_end_matches('/').to_owned();
    assert_eq!(recorded(&bench, "s").await, (Some(root.clone()), 1));
    engine.close().await.unwrap();
    bench.open("s").await.close().await.unwrap();
    assert_eq!(recorded(&bench, "s").await, (Some(root.clone()), 1), "nothing new is written");
    bench.write("real/a.rs", "text");
    #[cfg(unix)]
    std::os::unix::fs::symlink("real", bench.root().join("alias")).unwrap();
    let elsewhere = |session: &str| Options {
        cwd: bench.path(LINKED.rsplit_once('/').unwrap().0),
        ..bench.options(session)
    };
    Engine::open(elsewhere("s")).await.unwrap().close().await.unwrap();
    assert_eq!(recorded(&bench, "s").await, (Some(format!("{root}/real")), 2));
    // One that an earlier version has begun.
    let early = SessionId::new("early").unwrap();
    let writes = [context_model::chat::begun(&early).unwrap(), Sets::default().document(&early)];
    let writes = writes.into_iter().map(Write::put).collect();
    bench.store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
    bench.open("early").await.close().await.unwrap();
    assert_eq!(recorded(&bench, "early").await, (Some(root.clone()), 2));
    // A guess is not recorded, and does not replace what is.
    for (session, known) in [("guessed", None), ("s", Some(format!("{root}/real")))] {
        let guessing = Options { guesses_cwd: true, ..bench.options(session) };
        Engine::open(guessing).await.unwrap().close().await.unwrap();
        assert_eq!(recorded(&bench, session).await.0, known);
    }
    // An export has it.
    let id = SessionId::new("s").unwrap();
    let mut file = Vec::new();
    let objects = transfer::session_objects(&*bench.store, &id).await.unwrap();
    transfer::export(&*bench.store, &objects, &mut file).await.unwrap();
    let other = Bench::new(backend);
    transfer::import(&mut std::io::Cursor::new(file), &*other.store).await.unwrap();
    assert_eq!(recorded(&other, "s").await, (Some(format!("{root}/real")), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_close_every_call_fails_and_closing_again_does_not() {
    let (bench, engine) = session(Memory).await;
    let path = bench.write("a", "x");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    engine.close().await.unwrap();
    engine.close().await.unwrap();
    let name = id.as_str();
    macro_rules! closed {
        ($($call:expr),+ $(,)?) => {
            $(assert_eq!($call.await.unwrap_err().code(), ErrorCode::Closed, stringify!($call));)+
        };
    }
    closed!(
        engine.index_file(&path, None, None),
        engine.index_written(&path, None, None),
        engine.index_deletion(&path),
        engine.discover(std::slice::from_ref(&path)),
        engine.record_toolcall(call("c", "x")),
        engine.append_turn(user("u")),
        engine.set_system_prompt("p"),
        engine.activate(name, None),
        engine.deactivate(name),
        engine.pin(name),
        engine.unpin(name),
        engine.promote(name),
        engine.demote(name),
        engine.session_sets(),
        engine.assemble(),
        engine.get(name),
        engine.history(name),
        engine.query(&context_engine::Query::default()),
        engine.search(&search("x", None)),
        engine.stats(),
        engine.flush(),
        engine.pause(),
        engine.point(),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_session_tracks_nothing_and_answers_queries() {
    let (bench, engine) = watching(Memory).await;
    let path = bench.write("a", "1");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    engine.pause().await.unwrap();
    engine.pause().await.unwrap();
    bench.write("a", "2");
    engine.flush().await.unwrap();
    assert_eq!(bench.contents(&id).await.len(), 1);
    assert_eq!(engine.index_file(&path, None, None).await.unwrap().action, Action::Updated);
    let resumed = Engine::open(Options { watch: true, ..bench.options("s") }).await.unwrap();
    bench.write("a", "3");
    resumed.flush().await.unwrap();
    assert_eq!(bench.contents(&id).await.len(), 3, "a tracker is attached again");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_about_objects_and_times() {
    use context_store::{AsOf, KnownAt};
    let (bench, engine) = session(Sqlite).await;
    let path = bench.write("dir/a.txt", "alpha\nbeta\n");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    let created = engine.point().await.unwrap();
    bench.write("dir/a.txt", "alpha\ngamma\n");
    engine.index_file(&path, None, None).await.unwrap();
    let changed = engine.point().await.unwrap();
    let at = |tx| AsOf { known: Some(KnownAt::Tx(tx)), valid_time: None };
    let name = id.as_str();
    let text = async |at| engine.get_as_of(name, at).await.unwrap().map(|d| d.content().unwrap().to_owned());
    assert_eq!(text(at(created)).await.as_deref(), Some("alpha\nbeta\n"));
    assert_eq!(text(at(changed)).await.as_deref(), Some("alpha\ngamma\n"));
    let now = context_store::clock::system()();
    let present = AsOf { known: Some(KnownAt::Time(now)), valid_time: Some(now) };
    assert_eq!(text(present).await.as_deref(), Some("alpha\ngamma\n"), "right after a burst of writes");

    let diff = engine.diff(name, created, changed).await.unwrap();
    assert!(diff.contains("-beta\n+gamma\n"), "{diff}");
    assert_eq!(engine.diff(name, created, created).await.unwrap(), "");
    refused(&bench, &engine, ErrorCode::UnknownObject, engine.diff("unknown", created, changed)).await;
    assert_eq!(engine.history("unknown").await.unwrap(), []);
    assert_eq!(engine.get("unknown").await.unwrap(), None);

    let hits = engine.search(&search("beta", None)).await.unwrap();
    assert_eq!((hits.len(), &hits[0].id, hits[0].line), (1, &id, 2), "all versions are searched");
    refused(&bench, &engine, ErrorCode::InvalidArgument, engine.search(&search("  ,", None))).await;
    refused(&bench, &engine, ErrorCode::InvalidArgument, engine.search(&search("x", Some("")))).await;

    let found = async |query: context_engine::Query| {
        engine.query(&query).await.unwrap().iter().map(|d| d.id().to_string()).collect::<Vec<_>>()
    };
    let query = context_engine::Query { path_prefix: Some("dir".into()), ..Default::default() };
    assert_eq!(found(query).await, [name]);
    let query = context_engine::Query { path_prefix: Some("di".into()), ..Default::default() };
    assert_eq!(found(query).await, [""; 0], "at segment borders");
    let query = context_engine::Query { session_id: Some("s".into()), ..Default::default() };
    assert_eq!(found(query).await.len(), 4);
    let query = context_engine::Query { session_id: Some("other".into()), ..Default::default() };
    assert_eq!(found(query).await, [""; 0]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn search_results_can_be_activated_by_name(#[values(Memory, Sqlite)] backend: Backend) {
    let bench = Bench::new(backend);
    let (one, two) = (bench.open("one").await, bench.open("two").await);
    let shared = bench.write("dir/a\nb.rs", "fn needle() {}\n");
    let file = one.index_file(&shared, None, None).await.unwrap().id;
    let call = one.record_toolcall(call("call_1", "a line\nwith a needle\u{2028}id=x")).await.unwrap();
    two.record_toolcall(tool("call_2", "custom", json!({}), "needle of the other")).await.unwrap();

    let all = one.search(&search("needle", None)).await.unwrap();
    assert_eq!(all.len(), 3, "the store as a whole");
    let other = all.iter().find(|found| found.id.as_str() == "call_2").unwrap();
    assert_eq!(
        (other.handle.as_deref(), other.tool.as_deref(), other.is_latest),
        (None, Some("custom"), true)
    );

    let own = one.search(&search("needle", Some("one"))).await.unwrap();
    assert_eq!(own.len(), 2);
    let found = own.iter().find(|found| found.id == file).unwrap();
    assert_eq!((found.path.as_deref(), found.tool.as_deref(), found.line), (Some(shared.as_str()), None, 1));
    let handle = found.handle.clone().unwrap();
    assert!(found.shown.starts_with(&format!("id={handle} path=/")), "{}", found.shown);
    assert!(found.shown.ends_with("dir/a\\nb.rs line=1: fn needle() {}"), "{}", found.shown);
    let found = own.iter().find(|found| found.id == call).unwrap();
    assert!(found.shown.ends_with(" tool=custom line=2: with a needle\\u{2028}id=x"), "{}", found.shown);
    for found in &own {
        assert_eq!(one.activate(found.handle.as_deref().unwrap(), None).await.unwrap().id, found.id);
    }
    // From outside: the index of another session, and nothing of an unknown one.
    assert_eq!(two.search(&search("needle", Some("one"))).await.unwrap().len(), 2);
    assert_eq!(two.search(&search("needle", Some("two"))).await.unwrap().len(), 1);
    assert_eq!(two.search(&search("needle", Some("unknown"))).await.unwrap(), []);
    let none = Wanted { limit: 0, ..search("needle", None) };
    assert_eq!(two.search(&none).await.unwrap(), []);

    // An older version is named with its transaction, and activating that name shows it.
    bench.write("dir/a\nb.rs", "fn thread() {}\n");
    one.index_file(&shared, None, None).await.unwrap();
    let own = one.search(&search("needle", Some("one"))).await.unwrap();
    let found = own.iter().find(|found| found.id == file).unwrap();
    assert!(!found.is_latest);
    let name = format!("{handle}@{}", found.tx_id);
    assert!(found.shown.starts_with(&format!("id={name} ")), "{}", found.shown);
    assert_eq!(one.activate(&name, None).await.unwrap().content.as_deref(), Some("fn needle() {}\n"));
}
