//! The store's figures, each beside its limit or peer in the same run: `cargo bench -p context-store`.
//!
//! Every line names the figure, the peer, their ratio, and the ratios that count as good and as stretch.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints its figures")]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, Toolcall};
use context_model::patch::Patch;
use context_model::source::FilesystemSource;
use context_model::time::{Timestamp, TxId};
use context_store::{AsOf, KnownAt, Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};
use serde_json::{Map, json};
use tokio::runtime::Runtime;

use crate::figure::{Figure, Words, asked, median, rounds};

#[path = "../../../benches/figure.rs"]
mod figure;
#[path = "store/together.rs"]
mod together;

type Part = fn(&Runtime);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // As the addon has it.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    if let Some(at) = arguments.iter().position(|a| a == "--worker") {
        return together::worker(
            &runtime,
            Path::new(&arguments[at + 1]),
            &arguments[at + 2],
            &arguments[at + 3],
        );
    }
    let parts: [(&str, Part); 6] = [
        ("G3", durable_put),
        ("G4", one_turn),
        ("G5", as_of),
        ("G6", together::processes),
        ("G15", disk),
        ("turns", chat_turns),
    ];
    for (name, run) in parts {
        if asked(name) {
            run(&runtime);
        }
    }
}

fn file(path: &str, text: String) -> Document {
    let source = FilesystemSource { filesystem_id: "0123456789abcdef".repeat(4), path: path.into() };
    let hash = Digest::of(text.as_bytes());
    Document::file(source, Some(text), Some(hash))
}

fn put(runtime: &Runtime, store: &SqliteStore, writes: Vec<Write>) {
    runtime.block_on(store.transact(Transaction { writes, expected: Vec::new() })).unwrap();
}

fn open(place: &tempfile::TempDir) -> Arc<SqliteStore> {
    SqliteStore::open(place.path().join("store.db"), Durability::Power).unwrap()
}

fn durable_put(runtime: &Runtime) {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place);
    let mut words = Words(1);
    let mut log = File::create(place.path().join("log")).unwrap();
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for n in 0..600 {
        let document = file(&format!("/src/{}.rs", n % 50), words.text(2048));
        let bytes = words.text(4096).into_bytes();
        let start = Instant::now();
        log.write_all(&bytes).unwrap();
        log.sync_all().unwrap();
        peer.push(start.elapsed());
        let start = Instant::now();
        put(runtime, &store, vec![Write::put(document)]);
        ours.push(start.elapsed());
    }
    // The first ones make the objects and warm the caches.
    let (ours, peer) = (median(ours.split_off(100)), median(peer.split_off(100)));
    Figure::new("G3", "acknowledged durable put of 2 KB", ours, "ms")
        .beside("append 4 KB + fsync", peer)
        .bounds(1.6, 1.3)
        .print();
    runtime.block_on(store.close()).unwrap();
}

fn one_turn(runtime: &Runtime) {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place);
    let mut words = Words(2);
    let (mut single, mut grouped) = (Vec::new(), Vec::new());
    for _ in 0..rounds(10) {
        let mut documents =
            || (0..100).map(|n| Write::put(file(&format!("/{n}"), words.text(2048)))).collect::<Vec<_>>();
        let (one_by_one, together) = (documents(), documents());
        let start = Instant::now();
        for write in one_by_one {
            put(runtime, &store, vec![write]);
        }
        single.push(start.elapsed());
        let start = Instant::now();
        put(runtime, &store, together);
        grouped.push(start.elapsed());
    }
    let (single, grouped) = (median(single), median(grouped));
    Figure::new("G4", "100 versions in one turn", grouped, "ms")
        .beside("100 single puts", single)
        .bounds(0.1, 1.0 / 15.0)
        .print();
    runtime.block_on(store.close()).unwrap();
}

/// Reads of objects with 10 and with 10,000 versions, each version by its own transaction.
fn as_of(runtime: &Runtime) {
    let place = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(place.path().join("store.db"), Durability::Process).unwrap();
    let bare = rusqlite::Connection::open(place.path().join("bare.db")).unwrap();
    bare.execute_batch(
        "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
         CREATE TABLE versions (tx INTEGER PRIMARY KEY, id TEXT, valid INTEGER, body TEXT);
         CREATE INDEX versions_by_id ON versions (id, valid)",
    )
    .unwrap();
    let mut words = Words(3);
    let paths: Vec<(String, usize)> = (0..50).map(|n| (format!("/short/{n}"), 10)).collect();
    let mut objects = Vec::new();
    for (path, versions) in paths.into_iter().chain([("/long".to_owned(), 10_000)]) {
        let mut points = Vec::new();
        for _ in 0..versions {
            let document = file(&path, words.text(2048));
            let body = serde_json::to_string(&document).unwrap();
            let transaction = Transaction { writes: vec![Write::put(document)], expected: Vec::new() };
            let receipt = runtime.block_on(store.transact(transaction)).unwrap();
            points.push((receipt.tx_id, receipt.tx_time));
            bare.prepare_cached("INSERT INTO versions (id, valid, body) VALUES (?, ?, ?)")
                .unwrap()
                .execute(rusqlite::params![
                    file(&path, String::new()).id().as_str(),
                    receipt.tx_time.millis(),
                    body
                ])
                .unwrap();
        }
        objects.push((file(&path, String::new()).id().clone(), points));
    }
    runtime.block_on(store.flush()).unwrap();
    let (long, long_points) = objects.pop().unwrap();
    let read = |id: &ObjectId, at: AsOf| {
        let start = Instant::now();
        black_box(runtime.block_on(store.get(id, at)).unwrap().unwrap());
        start.elapsed()
    };
    let plain = |id: &ObjectId, valid: i64, check: bool| {
        let start = Instant::now();
        let mut statement = bare
            .prepare_cached(
                "SELECT body FROM versions WHERE id = ? AND valid <= ? ORDER BY valid DESC LIMIT 1",
            )
            .unwrap();
        let body: String =
            statement.query_row(rusqlite::params![id.as_str(), valid], |row| row.get(0)).unwrap();
        if check {
            let document: Document = serde_json::from_str(&body).unwrap();
            black_box(document);
        } else {
            black_box(body);
        }
        start.elapsed()
    };
    let valid = |time: Timestamp| AsOf { valid_time: Some(time), known: None };
    let known = |tx: TxId| AsOf { valid_time: None, known: Some(KnownAt::Tx(tx)) };
    let mut times: [Vec<Duration>; 6] = Default::default();
    for n in 0..4_000 {
        let (short, points) = &objects[n % objects.len()];
        let (tx, time) = points[words.next(points.len())];
        let (long_tx, long_time) = long_points[words.next(long_points.len())];
        times[0].push(read(short, valid(time)));
        times[1].push(read(&long, valid(long_time)));
        times[2].push(read(short, known(tx)));
        times[3].push(read(&long, known(long_tx)));
        times[4].push(plain(short, time.millis(), false));
        times[5].push(plain(short, time.millis(), true));
    }
    let [short, long, short_tx, long_tx, bare, checked] = times.map(median);
    let none = f64::INFINITY;
    for (what, ours, peer, beside, good, stretch) in [
        ("as of a valid time, 10,000 versions", long, "10 versions", short, 1.5, 1.1),
        ("as of a transaction, 10,000 versions", long_tx, "10 versions", short_tx, 1.5, 1.1),
        ("as of a valid time, verified", short, "bare rusqlite, text only", bare, none, 1.5),
        ("as of a valid time, verified", short, "bare rusqlite, parsed and hashed", checked, none, 1.5),
    ] {
        let note = String::new();
        Figure::new("G5", what, ours, "ms").beside(peer, beside).bounds(good, stretch).note(note).print();
    }
    runtime.block_on(store.close()).unwrap();
}

/// One turn of a session as agents have it: a question, an answer, three tool calls, a file now and then.
fn turn(words: &mut Words, session: &SessionId, n: usize) -> (Vec<Write>, usize) {
    let mut writes = Vec::new();
    let mut distinct = 0;
    let calls: Vec<String> = (0..3).map(|c| format!("toolu_{n:06}_{c}_abcdefghijkl")).collect();
    let (mut chat, mut sets) = (Patch::new(), Patch::new());
    for id in &calls {
        let size = [300, 1_500, 4_000, 9_000][words.next(4)];
        let content = words.text(size);
        let command = words.text(60);
        distinct += content.len() + command.len() + id.len();
        writes.push(Write::put(Document::toolcall(
            ObjectId::new(id.clone()),
            &ObjectId::chat(session),
            Toolcall::new(
                id.clone(),
                "bash",
                Map::from_iter([("command".to_owned(), json!(command))]),
                content,
            ),
        )));
        chat.append(&["toolcall_refs"], json!(id));
        for name in ["session_index", "metadata_pool", "active_set"] {
            sets.append(&[name], json!(id));
        }
        if n > 3 {
            sets.remove(&["active_set"], 0);
        }
    }
    if n.is_multiple_of(2) {
        let text = words.text(6_000);
        distinct += text.len();
        writes.push(Write::put(file(&format!("/home/someone/project/src/module_{}.rs", n % 40), text)));
    }
    let value = json!({ "user": words.text(150), "assistant": words.text(900), "toolcall_ids": calls });
    distinct += value.to_string().len();
    chat.append(&["turns"], value);
    chat.set(&["turn_count"], json!(n));
    writes.push(Write::patch(ObjectId::chat(session), chat));
    writes.push(Write::patch(ObjectId::session(session), sets));
    (writes, distinct)
}

fn begin(session: &SessionId) -> Vec<Write> {
    let sets = context_model::session::Sets::default().document(session);
    vec![Write::put(Document::chat(session)), Write::put(sets)]
}

fn disk(runtime: &Runtime) {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place);
    let session = SessionId::new("0199c5a2-1111-7222-8333-944455556666").unwrap();
    let mut words = Words(5);
    put(runtime, &store, begin(&session));
    let mut distinct = 0;
    for n in 1..=2_000 {
        let (writes, bytes) = turn(&mut words, &session, n);
        put(runtime, &store, writes);
        distinct += bytes;
    }
    runtime.block_on(store.flush()).unwrap();
    runtime.block_on(store.close()).unwrap();
    let path = place.path().join("store.db");
    let size = fs::metadata(&path).unwrap().len() as f64;
    let bare = rusqlite::Connection::open(&path).unwrap();
    let mut statement =
        bare.prepare("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 4").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, f64>(1)?))).unwrap();
    let tables: Vec<String> =
        rows.map(|row| row.unwrap()).map(|(name, bytes)| format!("{name} {:.1}", bytes / 1e6)).collect();
    Figure::new("G15", "disk of a 2,000-turn session", size / 1e6, "MB")
        .beside("its distinct bytes", distinct as f64 / 1e6)
        .bounds(2.0, 1.2)
        .note(tables.join(", "))
        .print();
}

fn chat_turns(runtime: &Runtime) {
    let place = tempfile::tempdir().unwrap();
    // Without the sync, whose time has nothing to do with the length of the chat and varies more than it.
    let store = SqliteStore::open(place.path().join("store.db"), Durability::Process).unwrap();
    let session = SessionId::new("s").unwrap();
    let mut words = Words(6);
    put(runtime, &store, begin(&session));
    let path = place.path().join("store.db");
    let mut done = 0;
    let mut first = None;
    let mut append = |done: &mut usize| {
        *done += 1;
        let mut chat = Patch::new();
        chat.append(
            &["turns"],
            json!({ "user": words.text(150), "assistant": words.text(900), "toolcall_ids": [] }),
        );
        chat.set(&["turn_count"], json!(*done));
        let start = Instant::now();
        // As the engine does it: the turn, and a change inside of it.
        chat.append(&["turns", &(*done - 1).to_string(), "toolcall_ids"], json!("call"));
        put(runtime, &store, vec![Write::patch(ObjectId::chat(&session), chat)]);
        start.elapsed()
    };
    for turns in [100, 1_000, 10_000] {
        while done < turns - 100 {
            append(&mut done);
        }
        runtime.block_on(store.flush()).unwrap();
        let before = fs::metadata(&path).unwrap().len();
        let time = median((0..rounds(100)).map(|_| append(&mut done)).collect());
        runtime.block_on(store.flush()).unwrap();
        let bytes = (fs::metadata(&path).unwrap().len() - before) / 100;
        let start = Instant::now();
        let chat = runtime.block_on(store.get(&ObjectId::chat(&session), AsOf::default())).unwrap().unwrap();
        let read = start.elapsed();
        let whole = serde_json::to_string(&chat.document).unwrap().len();
        let first = *first.get_or_insert(time);
        if turns > 100 {
            Figure::new(
                "turns",
                &format!("a chat turn of 1.1 KB at {turns} turns, without the sync"),
                time,
                "ms",
            )
            .beside("at 100", first)
            .bounds(1.5, 1.1)
            .note(format!(
                "{bytes} bytes on disk; the document has {:.1} MB and is read in {read:.0?}",
                whole as f64 / 1e6
            ))
            .print();
        }
    }
    runtime.block_on(store.close()).unwrap();
}
