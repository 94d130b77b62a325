//! Unused sessions leave the store with the objects that only they have; everything else is unchanged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::time::Timestamp;
use context_store::conformance::given::file;
use context_store::sessions::{self, Limits, Prune};
use context_store::{AsOf, Filter, OwnedStore, Search, Store, Transaction, Version, Write};
use context_store_sqlite::{Durability, SqliteStore};
use serde_json::json;

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// 2026-01-01.
const BEGIN: i64 = 1_767_225_600_000;

/// A store whose clock the test moves by days.
struct World {
    place: tempfile::TempDir,
    now: Arc<AtomicI64>,
    store: Arc<SqliteStore>,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let now = Arc::new(AtomicI64::new(BEGIN));
        let store = opened(&place.path().join("store.db"), &now);
        Self { place, now, store }
    }

    fn path(&self) -> std::path::PathBuf {
        self.place.path().join("store.db")
    }

    fn pass(&self, days: i64) {
        self.now.fetch_add(days * DAY, Ordering::Relaxed);
    }

    fn ago(&self, days: i64) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::Relaxed) - days * DAY)
    }

    async fn write(&self, writes: Vec<Write>) {
        self.store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
    }

    /// A session with a prompt, a turn, its own file in many versions and the file that all have.
    async fn session(&self, name: &str, folder: &str) {
        let session = SessionId::new(name).unwrap();
        let own = file(&format!("{folder}/{name}.rs"), "");
        let shared = file("/shared.rs", "");
        let index = json!([own.id().as_str(), shared.id().as_str()]);
        let mut sets = Patch::new();
        sets.set(&["session_index"], index);
        let mut turn = Patch::new();
        turn.append(&["turns"], json!({ "user": format!("do {name}"), "toolcall_ids": [] }));
        turn.set(&["turn_count"], json!(1));
        let prompt = format!("Be brief.\n<cwd>\n{folder}\n</cwd>");
        self.write(vec![
            Write::put(Document::chat(&session)),
            Write::put(Document::system_prompt(&session, &prompt)),
            Write::put(context_model::session::Sets::default().document(&session)),
            Write::patch(ObjectId::session(&session), sets),
            Write::patch(ObjectId::chat(&session), turn),
        ])
        .await;
        for edit in 0..20 {
            let text: String = (0..200)
                .map(|n| format!("let {name}_{n} = {};\n", if n == edit { edit } else { 0 }))
                .collect();
            self.write(vec![Write::put(file(&format!("{folder}/{name}.rs"), &text))]).await;
        }
        self.write(vec![Write::put(file("/shared.rs", &format!("fn shared() {{ {name}() }}\n")))]).await;
    }

    async fn names(&self) -> Vec<String> {
        let all = sessions::summaries(&*self.store).await.unwrap();
        all.into_iter().rev().map(|summary| summary.id.to_string()).collect()
    }

    async fn found(&self, word: &str) -> usize {
        let query = Search { text: word.into(), limit: 100, object_type: None, within: None };
        self.store.search(&query).await.unwrap().len()
    }

    async fn all(&self) -> Vec<(ObjectId, Vec<Version>)> {
        let mut all = Vec::new();
        for id in self.store.query(&Filter::default()).await.unwrap() {
            all.push((id.clone(), self.store.history(&id).await.unwrap()));
        }
        all
    }
}

fn opened(path: &Path, now: &Arc<AtomicI64>) -> Arc<SqliteStore> {
    let now = Arc::clone(now);
    let clock = Arc::new(move || Timestamp::from_millis(now.load(Ordering::Relaxed)));
    SqliteStore::open_with(path, Durability::Process, clock).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn old_sessions_leave_and_the_rest_is_as_it_was() {
    let world = World::new();
    for name in ["alpha", "beta", "gamma"] {
        world.session(name, "/home/me/p").await;
        world.pass(50);
    }
    let before = world.all().await;
    let length = || std::fs::metadata(world.path()).unwrap().len();
    world.store.flush().await.unwrap();
    let old = Prune { before: Some(world.ago(90)), ..Prune::default() };
    let would = world.store.prune(Prune { is_dry_run: true, ..old.clone() }).await.unwrap();
    assert_eq!(would.sessions.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), ["alpha", "beta"]);
    assert_eq!(would.sessions[0].folder.as_deref(), Some("/home/me/p"));
    assert_eq!(would.sessions[0].first_prompt.as_deref(), Some("do alpha"));
    assert!(world.all().await == before && would.freed_bytes > 0 && would.freed_bytes < would.used_bytes);

    let long = length();
    let left = world.store.prune(old.clone()).await.unwrap();
    assert_eq!((left.sessions, left.objects, left.is_shorter), (would.sessions, would.objects, true));
    assert!(length() < long);
    assert_eq!(world.names().await, ["gamma"]);
    // The remaining objects have not changed: the files that others also have keep all their versions.
    let now = world.all().await;
    let stayed: Vec<_> =
        before.iter().filter(|(id, _)| now.iter().any(|(other, _)| other == id)).cloned().collect();
    assert!(now == stayed);
    assert_eq!(world.store.history(file("/shared.rs", "").id()).await.unwrap().len(), 3);
    assert_eq!((world.found("alpha_7").await, world.found("gamma_7").await), (0, 20));
    assert_eq!(world.store.verify().await.unwrap(), []);
    let gone = world.store.get(file("/home/me/p/alpha.rs", "").id(), AsOf::default()).await.unwrap();
    assert_eq!(gone, None);
    assert_eq!(world.store.prune(old).await.unwrap().sessions, []);

    // It may come back, and is found again.
    world.session("alpha", "/home/me/p").await;
    assert_eq!((world.found("alpha_7").await, world.names().await.len()), (20, 2));
    assert_eq!(world.store.verify().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_leave_as_the_size_takes_and_only_of_the_project() {
    let world = World::new();
    for (name, folder) in [("alpha", "/home/me/p"), ("beta", "/home/me/pq"), ("gamma", "/home/me/p/in")] {
        world.session(name, folder).await;
        world.pass(10);
    }
    let of_project = Prune { project: Some("/home/me/p".into()), is_dry_run: true, ..Prune::default() };
    let would = world.store.prune(of_project.clone()).await.unwrap();
    assert_eq!(would.sessions.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), ["alpha", "gamma"]);
    let small = Prune { max_bytes: Some(would.used_bytes - 1), is_dry_run: false, ..of_project };
    let left = world.store.prune(small).await.unwrap();
    assert_eq!(left.sessions.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), ["alpha"]);
    assert_eq!(world.names().await, ["beta", "gamma"]);
    let nothing = world.store.prune(Prune::default()).await.unwrap_err();
    assert!(nothing.to_string().contains("by age, by size or by project"), "{nothing}");
}

/// Three sessions without a prompt: of the folder, from another one with files of this folder, and one of an earlier version, of
/// which only the files are known.
#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_folder_counts_and_the_files_only_without_one() {
    let world = World::new();
    for (name, folder, read) in [
        ("there", Some("/home/me/p"), "/home/me/q/read.rs"),
        ("elsewhere", Some("/home/me/q"), "/home/me/p/read.rs"),
        ("earlier", None, "/home/me/p/in/old.rs"),
        ("empty", Some("/home/me/p/in"), ""),
    ] {
        let session = SessionId::new(name).unwrap();
        let document = context_model::session::begun(&session, folder).unwrap();
        let own = file(read, "text");
        let mut sets = Patch::new();
        sets.set(&["session_index"], json!([own.id().as_str()]));
        let mut writes = vec![Write::put(Document::chat(&session)), Write::put(document)];
        if !read.is_empty() {
            writes.extend([Write::put(own), Write::patch(ObjectId::session(&session), sets)]);
        }
        world.write(writes).await;
        world.pass(2);
    }
    let of_project = Prune { project: Some("/home/me/p/".into()), ..Prune::default() };
    let left = world.store.prune(of_project).await.unwrap();
    let folders: Vec<_> = left.sessions.iter().map(|s| (s.id.as_str(), s.folder.as_deref())).collect();
    assert_eq!(
        folders,
        [("there", Some("/home/me/p")), ("earlier", Some("/home/me/p/in")), ("empty", Some("/home/me/p/in"))]
    );
    assert_eq!(world.names().await, ["elsewhere"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_written_or_opened_within_the_last_day_stays() {
    let world = World::new();
    world.session("alpha", "/p").await;
    world.session("beta", "/p").await;
    world.pass(100);
    world.store.set_note("opened:alpha", &world.ago(0).millis().to_string()).await.unwrap();
    world.session("gamma", "/p").await;
    let all = Prune { max_bytes: Some(0), ..Prune::default() };
    let left = world.store.prune(all.clone()).await.unwrap();
    assert_eq!(left.sessions.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), ["beta"]);
    world.pass(2);
    world.store.prune(all).await.unwrap();
    assert_eq!(world.names().await, [""; 0]);
    assert_eq!(world.store.note("opened:alpha").await.unwrap(), None);
    assert_eq!(world.store.verify().await.unwrap(), []);
    world.session("delta", "/p").await;
    assert_eq!((world.found("delta_7").await, world.names().await.len()), (20, 1));
}

/// Texts that are kept as what differs from one that leaves are kept whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_difference_outlives_its_base() {
    let world = World::new();
    let text =
        |n: usize| -> String { (0..200).map(|line| format!("let v_{line} = {};\n", line * n)).collect() };
    let (first, second) = (text(1), format!("{}let new = 1;\n", text(1)));
    // The first text is only in a version of the old session's file; the second one is also in a file that stays.
    world.session("alpha", "/p").await;
    world.write(vec![Write::put(file("/p/alpha.rs", &first))]).await;
    world.write(vec![Write::put(file("/p/alpha.rs", &second))]).await;
    world.store.flush().await.unwrap();
    world.write(vec![Write::put(file("/stays.rs", &second))]).await;
    world.pass(100);
    world.store.prune(Prune { before: Some(world.ago(1)), ..Prune::default() }).await.unwrap();
    let stays = world.store.get(file("/stays.rs", "").id(), AsOf::default()).await.unwrap().unwrap();
    assert_eq!(stays.document.content(), Some(&*second));
    assert_eq!((world.found("new").await, world.found("alpha_7").await), (1, 0));
    assert_eq!(world.store.verify().await.unwrap(), []);
}

/// The limits are kept without being asked, by a store that has nothing else to do.
#[tokio::test(flavor = "multi_thread")]
async fn limits_are_kept_when_the_store_is_idle() {
    let world = World::new();
    assert_eq!(world.store.limits().await.unwrap(), Limits::default());
    for name in ["alpha", "beta", "gamma"] {
        world.session(name, "/p").await;
        world.pass(50);
    }
    let limits = Limits { max_bytes: None, max_days: Some(70) };
    world.store.set_limits(limits).await.unwrap();
    assert_eq!(world.store.limits().await.unwrap(), limits);
    world.store.close().await.unwrap();
    let store = opened(&world.path(), &world.now);
    store
        .transact(Transaction { writes: vec![Write::put(file("/x", "wake"))], expected: Vec::new() })
        .await
        .unwrap();
    let begin = std::time::Instant::now();
    loop {
        let left = sessions::summaries(&*store).await.unwrap();
        if left.len() == 1 {
            assert_eq!(left[0].id.as_str(), "gamma");
            break;
        }
        assert!(begin.elapsed().as_secs() < 60, "{left:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(store.verify().await.unwrap(), []);
    store.close().await.unwrap();
}

/// Writes the store that the tests of the commands use: `CONTEXT_WRITE_FIXTURE=FILE`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a file for other tests"]
async fn fixture() {
    let Some(to) = std::env::var_os("CONTEXT_WRITE_FIXTURE") else { return };
    let world = World::new();
    for (name, folder) in [("alpha", "/home/me/p"), ("beta", "/home/me/q")] {
        world.session(name, folder).await;
        world.pass(30);
    }
    world.store.flush().await.unwrap();
    world.store.backup(to).await.unwrap();
    world.store.close().await.unwrap();
}
