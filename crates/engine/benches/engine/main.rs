//! The use cases' figures, each beside its limit or peer in the same run: `cargo bench -p context-engine`.

#![expect(clippy::unwrap_used, reason = "a program that prints its figures")]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use context_engine::{Engine, FileEventKind, Options};
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Toolcall;
use context_store::{AsOf, Store};
use context_store_sqlite::{Durability, SqliteStore};
use notify::{RecursiveMode, Watcher as _};
use serde_json::{Map, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::figure::{Figure, Words, asked, median, rounds, timed};

#[path = "../../../../benches/figure.rs"]
mod figure;
mod tree;

/// Threads: as many as the machine has cores that the limits were measured on.
const THREADS: usize = 2;

type Part = fn(&Runtime);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let runtime = runtime.unwrap();
    let parts: [(&str, Part); 7] = [
        ("G2", unchanged),
        ("G7", saved),
        ("G9", assembled),
        ("G12", tree::first_index),
        ("G12 G13", tree::texts),
        ("G14", resumed),
        ("group", at_once),
    ];
    for (names, run) in parts {
        if names.split(' ').any(asked) {
            run(&runtime);
        }
    }
}

/// A directory for the agent's files and one for the store, on a disk and not in memory.
struct Place {
    directory: TempDir,
    store: Arc<SqliteStore>,
}

impl Place {
    fn new(durability: Durability) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("work")).unwrap();
        let store = SqliteStore::open(directory.path().join("store/context.db"), durability).unwrap();
        Self { directory, store }
    }

    fn work(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("work")
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    }

    async fn open(&self, session: &str, watch: bool) -> Engine {
        let store: Arc<dyn Store> = Arc::clone(&self.store) as Arc<dyn Store>;
        let work = self.work().into_os_string().into_string().unwrap();
        let options = Options::new(SessionId::new(session).unwrap(), work, store);
        // The benches change a file more often than its bytes may be taken while no client reads it.
        Engine::open(Options { watch, pace: 0, ..options }).await.unwrap()
    }
}

fn call(id: String, content: String) -> Toolcall {
    let args = Map::from_iter([("pattern".to_owned(), json!("x"))]);
    Toolcall::new(id, "custom", args, content)
}

/// G2: a file that is known and has not changed, beside reading and hashing it.
fn unchanged(runtime: &Runtime) {
    let place = Place::new(Durability::Process);
    let engine = runtime.block_on(place.open("s", false));
    for (size, what) in [(1 << 20, "an unchanged file of 1 MiB"), (64 << 10, "an unchanged file of 64 KiB")] {
        let path = place.file(what, &Words(1).text(size));
        runtime.block_on(engine.index_file(&path, None, None)).unwrap();
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for _ in 0..rounds(200) {
            peer.push(timed(|| black_box(Digest::of(&fs::read(&path).unwrap()))).1);
            ours.push(timed(|| runtime.block_on(engine.index_file(&path, None, None)).unwrap()).1);
        }
        // A small file's time is the way to another thread and back.
        Figure::new("G2", &format!("index {what}"), median(ours), "ms")
            .beside("read + SHA-256 of it", median(peer))
            .bounds(
                if size == 1 << 20 { 1.5 } else { f64::INFINITY },
                if size == 1 << 20 { 1.15 } else { f64::INFINITY },
            )
            .print();
    }
}

/// G7: from a file's save to its new version's acknowledgement, beside its parts.
fn saved(runtime: &Runtime) {
    let place = Place::new(Durability::Power);
    let engine = runtime.block_on(place.open("s", true));
    let path = place.file("tracked.rs", &Words(1).text(10_000));
    runtime.block_on(engine.index_file(&path, None, None)).unwrap();
    let (sender, versions) = mpsc::channel();
    engine.subscribe(move |event| {
        if matches!(event.kind, FileEventKind::Indexed(_)) {
            let _ = sender.send(Instant::now());
        }
    });
    let other = place.directory.path().join("other");
    fs::create_dir(&other).unwrap();
    let (sender, events) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| matches!(event.kind, notify::EventKind::Access(_))) {
            let _ = sender.send(Instant::now());
        }
    })
    .unwrap();
    watcher.watch(&other, RecursiveMode::NonRecursive).unwrap();
    let mut log = File::create(place.directory.path().join("log")).unwrap();
    let mut words = Words(2);
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..rounds(150) {
        let (text, entry) = (words.text(10_000), words.text(4096));
        let theirs = other.join("file");
        fs::write(&theirs, &text).unwrap();
        let start = Instant::now();
        // The close is what both wait for, and it was before the start: what is measured is the way from there.
        let seen = events.recv_timeout(Duration::from_secs(10)).unwrap();
        let event = seen.saturating_duration_since(start);
        while events.try_recv().is_ok() {}
        let (_, read) = timed(|| black_box(Digest::of(&fs::read(&theirs).unwrap())));
        let (_, synced) = timed(|| {
            log.write_all(entry.as_bytes()).unwrap();
            log.sync_all().unwrap();
        });
        peer.push(event + read + synced);

        fs::write(&path, &text).unwrap();
        let start = Instant::now();
        let seen = versions.recv_timeout(Duration::from_secs(10)).unwrap();
        ours.push(seen.saturating_duration_since(start));
        while versions.try_recv().is_ok() {}
    }
    Figure::new("G7", "from a save of 10 KB to its version on disk", median(ours), "ms")
        .beside("event + read + SHA-256 + fsync", median(peer))
        .bounds(2.0, 1.3)
        .print();
}

/// G9: the canonical view of a session of 1 MB, beside copying as many bytes.
fn assembled(runtime: &Runtime) {
    let place = Place::new(Durability::Process);
    let engine = runtime.block_on(place.open("s", false));
    let mut words = Words(3);
    runtime.block_on(async {
        engine.set_system_prompt(&words.text(8_000)).await.unwrap();
        let paths: Vec<String> = (0..950).map(|n| format!("/project/src/module_{n}.rs")).collect();
        engine.discover(&paths).await.unwrap();
        for n in 0..50 {
            let path = format!("/project/src/active_{n}.rs");
            engine.index_file(&path, Some(words.text(8_000).into_bytes()), None).await.unwrap();
        }
        for _ in 0..rounds(200) {
            engine.append_turn(json!({ "role": "user", "content": words.text(600) })).await.unwrap();
            let content = json!([{ "type": "text", "text": words.text(1_800) }]);
            engine.append_turn(json!({ "role": "assistant", "content": content })).await.unwrap();
        }
    });
    let text = runtime.block_on(engine.assemble()).unwrap().text().to_owned();
    let (mut ours, mut peer, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds(100) {
        peer.push(timed(|| black_box(text.clone())).1);
        again.push(timed(|| runtime.block_on(engine.assemble()).unwrap()).1);
        // One new message: what was assembled before is not the answer.
        let message = json!({ "role": "user", "content": words.text(20) });
        runtime.block_on(engine.append_turn(message)).unwrap();
        ours.push(timed(|| runtime.block_on(engine.assemble()).unwrap()).1);
    }
    let (again, beside) = (median(again), median(peer));
    Figure::new(
        "G9",
        &format!("assemble {:.2} MB after a message", text.len() as f64 / 1e6),
        median(ours),
        "ms",
    )
    .beside("a copy of it in memory", beside)
    .bounds(6.0, 1.5)
    .note(format!("where nothing has changed {again:.3} ms"))
    .print();
}

/// G14: a session with 1,000 files is resumed.
fn resumed(runtime: &Runtime) {
    let place = Place::new(Durability::Process);
    let mut words = Words(5);
    let paths: Vec<String> =
        (0..1_000).map(|n| place.file(&format!("d{}/file_{n}.rs", n / 20), &words.text(8_000))).collect();
    let engine = runtime.block_on(place.open("s", true));
    runtime.block_on(tree::index_singly(&engine, &paths));
    let ids: Vec<ObjectId> = runtime.block_on(engine.session_sets()).unwrap().session_index;
    runtime.block_on(engine.close()).unwrap();
    runtime.block_on(place.store.flush()).unwrap();
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..rounds(21) {
        let (_, time) = timed(|| {
            for path in &paths {
                black_box(fs::metadata(path).unwrap());
            }
            for id in &ids {
                black_box(runtime.block_on(place.store.get(id, AsOf::default())).unwrap().unwrap());
            }
        });
        peer.push(time);
        let (engine, time) = timed(|| runtime.block_on(place.open("s", true)));
        ours.push(time);
        runtime.block_on(engine.close()).unwrap();
    }
    let ours = median(ours);
    Figure::new("G14", "resume with 1,000 files, none changed", ours, "ms")
        .beside("1,000 stats + 1,000 reads of the store", median(peer))
        .bounds(2.0, 1.2)
        .print();

    // Everything changed: all of it is read, hashed and written.
    let mut changed = Vec::new();
    for _ in 0..rounds(5) {
        for path in &paths {
            fs::write(path, words.text(8_000)).unwrap();
        }
        let (engine, time) = timed(|| runtime.block_on(place.open("s", true)));
        changed.push(time);
        runtime.block_on(engine.close()).unwrap();
    }
    for (what, ours) in
        [("resume with 1,000 files", ours), ("the same, all of them changed", median(changed))]
    {
        let figure = Figure::new("G14", what, ours, "ms");
        figure.beside("the bound of a second", 1_000.0).bounds(1.0, 0.5).print();
    }
}

/// Twenty results of one answer: recorded at once, and one after the other.
fn at_once(runtime: &Runtime) {
    let place = Place::new(Durability::Power);
    let engine = runtime.block_on(place.open("s", false));
    let mut words = Words(6);
    let (mut together, mut one_by_one) = (Vec::new(), Vec::new());
    for round in 0..rounds(30) {
        let mut calls = |kind: &str| -> Vec<Toolcall> {
            (0..20).map(|n| call(format!("{kind}{round}_{n}"), words.text(2_000))).collect()
        };
        let (first, second) = (calls("a"), calls("b"));
        runtime.block_on(engine.append_turn(json!({ "role": "user", "content": "" }))).unwrap();
        let time = timed(|| {
            runtime.block_on(async {
                for call in first {
                    engine.record_toolcall(call).await.unwrap();
                }
            });
        });
        one_by_one.push(time.1);
        let time = timed(|| {
            runtime.block_on(async {
                let mut running = JoinSet::new();
                for call in second {
                    let engine = engine.clone();
                    running.spawn(async move { drop(engine.record_toolcall(call).await.unwrap()) });
                }
                running.join_all().await;
            });
        });
        together.push(time.1);
    }
    Figure::new("group", "20 results of one answer, recorded at once", median(together), "ms")
        .beside("one after the other", median(one_by_one))
        .bounds(0.33, 0.2)
        .print();
}

#[expect(clippy::print_stderr, reason = "it is not a figure")]
fn not_run(why: &str) {
    eprintln!("not run: {why}");
}
