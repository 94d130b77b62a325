//! Trackers: after any change of a file on disk, the last version equals it.

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use context_engine::{Engine, FileEvent, FileEventKind, Options};
use context_model::id::ObjectId;
use context_model::index::Action;
use context_store::Store;
use context_store::around::{Around, StoreCall};
use rstest::rstest;

use crate::bench::Backend::{Memory, Sqlite};
use crate::bench::{Backend, Bench, watching};

/// A session that tracks one file.
async fn tracked(text: &str) -> (Bench, Engine, String, ObjectId) {
    let (bench, engine) = watching(Sqlite).await;
    let path = bench.write("dir/file", text);
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    (bench, engine, path, id)
}

pub fn events(engine: &Engine) -> Arc<Mutex<Vec<FileEvent>>> {
    let events: Arc<Mutex<Vec<FileEvent>>> = Arc::default();
    let sink = Arc::clone(&events);
    engine.subscribe(move |event| sink.lock().unwrap().push(event.clone()));
    events
}

fn has_heard_of_a_deletion(events: &Mutex<Vec<FileEvent>>, id: &ObjectId) -> bool {
    let deleted = FileEventKind::Indexed(Action::Deleted);
    events.lock().unwrap().iter().any(|event| event.kind == deleted && event.id.as_ref() == Some(id))
}

pub async fn content(bench: &Bench, id: &ObjectId) -> Option<String> {
    bench.latest(id).await.unwrap().content().map(str::to_owned)
}

#[rstest]
#[case(1 << 20)]
#[case(10 << 20)]
#[tokio::test(flavor = "multi_thread")]
async fn large_file_overwritten_in_place_is_read_whole(#[case] size: usize) {
    let (bench, engine, path, id) = tracked("small").await;
    for letter in ["a", "b"] {
        let text = letter.repeat(size);
        fs::write(&path, &text).unwrap();
        engine.flush().await.unwrap();
        assert!(content(&bench, &id).await == Some(text), "the last version is the whole file");
    }
}

/// A store that always has something left to do, as one whose database can't be reached.
struct Busy(Arc<dyn Store>);

#[async_trait]
impl Around for Busy {
    fn inner(&self) -> &dyn Store {
        &*self.0
    }

    async fn before(&self, call: StoreCall) -> context_store::Result<()> {
        if call == StoreCall::Flush { std::future::pending().await } else { Ok(()) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn look_waits_for_the_disk_and_not_for_the_store() {
    let bench = Bench::new(Memory);
    let store: Arc<dyn Store> = Arc::new(Busy(Arc::clone(&bench.store)));
    let engine = Engine::open(Options { store, watch: true, ..bench.options("s") }).await.unwrap();
    let path = bench.write("file", "0");
    let id = engine.index_file(&path, None, None).await.unwrap().id;
    for n in 1..=20 {
        fs::write(&path, n.to_string()).unwrap();
        engine.look().await.unwrap();
        assert_eq!(content(&bench, &id).await, Some(n.to_string()));
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn touched_file_with_the_same_bytes_makes_no_version() {
    let (bench, engine, path, id) = tracked("same").await;
    let events = events(&engine);
    for _ in 0..3 {
        fs::write(&path, "same").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::File::open(&path).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
        engine.flush().await.unwrap();
    }
    // A write in place may be seen while the file is empty, but never stays so.
    assert_eq!(content(&bench, &id).await.as_deref(), Some("same"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let versions = bench.versions(&id).await.len();
    engine.flush().await.unwrap();
    assert_eq!(bench.versions(&id).await.len(), versions);
    assert!(events.lock().unwrap().iter().all(|e| e.kind != FileEventKind::Indexed(Action::Unchanged)));
}

#[tokio::test(flavor = "multi_thread")]
async fn save_by_temporary_file_and_rename_makes_one_version() {
    let (bench, engine, path, id) = tracked("0").await;
    for n in 1..=10 {
        let beside = format!("{path}.tmp");
        fs::write(&beside, n.to_string()).unwrap();
        fs::rename(&beside, &path).unwrap();
        engine.flush().await.unwrap();
        assert_eq!(content(&bench, &id).await, Some(n.to_string()));
    }
    assert_eq!(bench.versions(&id).await.len(), 11);
    assert_eq!(engine.session_sets().await.unwrap().session_index, [id], "temporary files are ignored");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_and_created_again_at_once_and_later() {
    let (bench, engine, path, id) = tracked("0").await;
    let events = events(&engine);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "1").unwrap();
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &id).await.as_deref(), Some("1"));

    fs::remove_file(&path).unwrap();
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &id).await, None);
    assert!(has_heard_of_a_deletion(&events, &id));
    fs::write(&path, "1").unwrap();
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &id).await.as_deref(), Some("1"), "with equal content as before");

    fs::remove_dir_all(bench.root().join("dir")).unwrap();
    engine.flush().await.unwrap();
    bench.write("dir/file", "2");
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &id).await.as_deref(), Some("2"), "its directory came and went");
}

#[tokio::test(flavor = "multi_thread")]
async fn directory_moved_away_and_back_is_tracked_again() {
    let (bench, engine, _, id) = tracked("1").await;
    let events = events(&engine);
    fs::rename(bench.root().join("dir"), bench.root().join("away")).unwrap();
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &id).await, None, "the file is gone");
    assert!(has_heard_of_a_deletion(&events, &id));
    bench.write("away/file", "2");
    fs::rename(bench.root().join("away"), bench.root().join("dir")).unwrap();
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &id).await.as_deref(), Some("2"), "resumed");
}

/// In a store that is not in a file, each flush compares all files, but reads only those that were read before.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn new_name_of_a_file_is_only_discovered(#[values(Memory, Sqlite)] backend: Backend) {
    let (bench, engine) = watching(backend).await;
    let path = bench.write("file", "text");
    engine.index_file(&path, None, None).await.unwrap();
    fs::rename(&path, bench.path("renamed")).unwrap();
    let deadline = std::time::Instant::now() + crate::bench::GENEROUS;
    while engine.session_sets().await.unwrap().metadata_pool.len() < 2 {
        assert!(std::time::Instant::now() < deadline, "the new name is not discovered");
        engine.flush().await.unwrap();
    }
    engine.flush().await.unwrap();
    let mut sets = engine.session_sets().await.unwrap();
    let discovered = sets.metadata_pool.remove(1);
    assert_eq!((sets.metadata_pool, bench.contents(&discovered).await), (sets.active_set, vec![None]));
    // A change of it is an event like any other.
    fs::write(bench.path("renamed"), "more").unwrap();
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &discovered).await.as_deref(), Some("more"));
}

#[tokio::test(flavor = "multi_thread")]
async fn discovered_file_is_read_when_it_appears() {
    let (bench, engine) = watching(Sqlite).await;
    let paths = [bench.path("later"), bench.path("new/dir/later")];
    let found = engine.discover(&paths).await.unwrap();
    for (path, found) in paths.iter().zip(&found) {
        fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        fs::write(path, "here").unwrap();
        engine.flush().await.unwrap();
        assert_eq!(content(&bench, &found.id).await.as_deref(), Some("here"));
    }
    let sets = engine.session_sets().await.unwrap();
    assert!(sets.active_set.is_empty(), "a tracker changes no set");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_file_is_not_recorded() {
    let (bench, engine) = watching(Sqlite).await;
    let path = bench.path("missing");
    assert!(engine.index_file(&path, None, None).await.is_err());
    let tx = bench.latest_tx().await;
    fs::write(&path, "now it is here").unwrap();
    fs::write(bench.path("neighbour"), "x").unwrap();
    engine.flush().await.unwrap();
    assert_eq!(bench.latest_tx().await, tx);
}

/// As a checkout of another branch does; the tracker's own tests have a real one.
#[tokio::test(flavor = "multi_thread")]
async fn thousand_files_may_change_at_once() {
    let (bench, engine) = watching(Sqlite).await;
    let write = |text: &str| {
        (0..1_000).map(|n| bench.write(&format!("d{}/f{n}", n % 20), format!("{text} {n}"))).collect()
    };
    let files = engine.index_files(write("zero")).await.unwrap().results;
    for text in ["one", "two"] {
        let _: Vec<String> = write(text);
        engine.flush().await.unwrap();
        for (n, file) in files.iter().enumerate() {
            assert_eq!(content(&bench, &file.id).await, Some(format!("{text} {n}")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_store_are_known_and_never_read_or_tracked() {
    let (bench, engine) = watching(Sqlite).await;
    let store = bench.outside().join("store");
    let name = |end: &str| store.join(format!("context.db{end}")).into_os_string().into_string().unwrap();
    let own = ["", "-wal", "-shm", "-journal"].map(name);
    let found = engine.discover(&own).await.unwrap();
    for path in &own {
        assert!(engine.index_file(path, None, None).await.is_err(), "{path}");
    }
    for id in found.iter().map(|f| f.id.as_str()) {
        assert!(!engine.activate(id, None).await.unwrap().ok);
    }
    let file = store.join("beside").into_os_string().into_string().unwrap();
    fs::write(&file, "1").unwrap();
    let id = engine.index_file(&file, None, None).await.unwrap().id;
    // A change beside the store makes one version, and writing that makes no other.
    for n in 2..6 {
        let tx = bench.latest_tx().await;
        let beside = store.join("tmp");
        fs::write(&beside, n.to_string()).unwrap();
        fs::rename(&beside, &file).unwrap();
        for _ in 0..3 {
            engine.flush().await.unwrap();
        }
        assert_eq!(bench.latest_tx().await, tx + 1);
    }
    assert_eq!(bench.versions(&id).await.len(), 5);
    engine.close().await.unwrap();
    bench.watching("s").await;
    for found in &found {
        assert_eq!(bench.versions(&found.id).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mounted_files_are_tracked_at_their_canonical_path_and_shown_at_the_agents() {
    let bench = Bench::new(Sqlite);
    bench.write("a", "1");
    let workspace = bench.mounted("");
    let options = Options {
        cwd: "/workspace".into(),
        mounts: vec![workspace],
        filesystem_id: None,
        watch: true,
        ..bench.options("s")
    };
    let engine = Engine::open(options).await.unwrap();
    let events = events(&engine);
    let id = engine.index_file("a", None, None).await.unwrap().id;
    // A path inside the sandbox has the same name as one on the host, and nothing to do with it.
    let twin = bench.outside().join("twin").into_os_string().into_string().unwrap();
    let inside = engine.index_file(&twin, Some(b"inside".to_vec()), None).await.unwrap().id;
    fs::write(&twin, "on the host").unwrap();
    bench.write("a", "2");
    engine.flush().await.unwrap();
    assert_eq!(content(&bench, &id).await.as_deref(), Some("2"));
    assert_eq!(content(&bench, &inside).await.as_deref(), Some("inside"));
    fs::rename(bench.path("a"), bench.path("b")).unwrap();
    engine.flush().await.unwrap();
    // A rename is a hint of the operating system's, which a flush need not wait for.
    let deadline = std::time::Instant::now() + crate::bench::GENEROUS;
    while !events.lock().unwrap().iter().any(|e| e.path == "/workspace/b") {
        assert!(std::time::Instant::now() < deadline, "the new name is not discovered");
        tokio::task::yield_now().await;
    }
    let seen: Vec<_> = events.lock().unwrap().iter().map(|e| (e.path.clone(), e.kind)).collect();
    let indexed = |path: &str, action| (path.to_owned(), FileEventKind::Indexed(action));
    assert!(seen.contains(&indexed("/workspace/a", Action::Updated)), "{seen:?}");
    assert!(seen.contains(&indexed("/workspace/a", Action::Deleted)), "{seen:?}");
    assert!(seen.contains(&indexed("/workspace/b", Action::Created)), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_engine_ends_its_trackers() {
    let (bench, engine, path, id) = tracked("1").await;
    let events = events(&engine);
    drop(engine);
    // The listener was dropped with the tracker, or will be when its thread has ended.
    let deadline = std::time::Instant::now() + crate::bench::GENEROUS;
    while Arc::strong_count(&events) > 1 {
        assert!(std::time::Instant::now() < deadline, "the tracker is still there");
        std::thread::yield_now();
    }
    fs::write(&path, "2").unwrap();
    bench.watching("s").await;
    assert_eq!(content(&bench, &id).await.as_deref(), Some("2"));
}

/// A flush is confirmed by an event in a directory beside the store.
#[tokio::test(flavor = "multi_thread")]
async fn flush_uses_a_separate_directory() {
    let (bench, engine, path, _) = tracked("0").await;
    fs::write(&path, "1").unwrap();
    engine.flush().await.unwrap();
    assert!(bench.outside().join("store/watch").is_dir());
}
