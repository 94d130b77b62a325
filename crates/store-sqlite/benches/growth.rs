//! The growth of calls with their arguments: `cargo bench -p context-store --bench growth [PART]`.
//!
//! Every line is one point of a curve, beside the smallest point of the same curve.

#![expect(clippy::unwrap_used, reason = "a program that prints its figures")]

use std::sync::Arc;
use std::time::Instant;

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::session::Sets;
use context_model::source::FilesystemSource;
use context_model::time::TxId;
use context_store::{Search, Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::figure::{Figure, asked, median};

#[path = "../../../benches/figure.rs"]
mod figure;

type Part = fn(&Runtime);

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let parts: [(&str, Part); 3] = [("search", search), ("history", history), ("transact", transact)];
    for (name, run) in parts {
        if asked(name) {
            run(&runtime);
        }
    }
}

/// Prints a curve: its points are sizes and milliseconds.
fn curve(what: &str, unit: &str, points: &[(usize, f64)]) {
    let (least, first) = points[0];
    for (size, ms) in points {
        Figure::new("curve", &format!("{what}, {size} {unit}:"), *ms, "ms")
            .beside(&format!("{least} {unit}"), first)
            .note(format!("{:.1} times as many", *size as f64 / least as f64))
            .print();
    }
}

fn file(path: &str, text: String) -> Document {
    let source = FilesystemSource { filesystem_id: "f".into(), path: path.into() };
    let hash = Digest::of(text.as_bytes());
    Document::file(source, Some(text), Some(hash))
}

fn put(runtime: &Runtime, store: &dyn Store, writes: Vec<Write>) {
    runtime.block_on(store.transact(Transaction { writes, expected: Vec::new() })).unwrap();
}

fn open(place: &tempfile::TempDir) -> Arc<SqliteStore> {
    SqliteStore::open(place.path().join("store.db"), Durability::Process).unwrap()
}

/// The lines of a log of a server.
fn log(file: usize, lines: usize) -> Vec<String> {
    let line = |n: usize| {
        let id = (file * 7_919 + n) * 2_654_435_761 % 4_294_967_296;
        let (minute, second, milli) = (n / 60 % 60, n % 60, (n * 37 + file) % 1_000);
        format!(
            "2026-01-31T12:{minute:02}:{second:02}.{milli:03}Z INFO server.http request_id={id:08x} \
             GET /api/v1/items/{n} status=200 took={}ms user=user{} \"Mozilla/5.0 (X11; Linux x86_64)\"",
            n % 250,
            n % 40,
        )
    };
    (0..lines).map(line).collect()
}

/// Passages pasted into a search over 5 MB of logs.
fn search(runtime: &Runtime) {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place);
    for n in 0..34 {
        put(runtime, &*store, vec![Write::put(file(&format!("/{n}.log"), log(n, 1_000).join("\n")))]);
    }
    runtime.block_on(store.flush()).unwrap();
    let lines = log(17, 1_000);
    let points = [1, 5, 10, 20, 40, 80, 400].map(|count| {
        let text = lines[300..300 + count].join("\n");
        let query = Search { text, limit: 20, object_type: None, within: None };
        let times = (0..9).map(|_| {
            let start = Instant::now();
            let hits = runtime.block_on(store.search(&query)).unwrap();
            assert!(!hits.is_empty());
            start.elapsed()
        });
        (count, median(times.collect()))
    });
    curve("search of a passage in 5 MB of logs", "lines", &points);
}

/// The history of a chat, whole and in parts.
fn history(runtime: &Runtime) {
    const PART: usize = 50;
    let session = SessionId::new("s").unwrap();
    let id = ObjectId::chat(&session);
    let (mut whole, mut parts, mut largest) = (Vec::new(), Vec::new(), Vec::new());
    for turns in [100, 200, 400, 800] {
        let place = tempfile::tempdir().unwrap();
        let store = open(&place);
        put(runtime, &*store, vec![Write::put(Document::chat(&session))]);
        for n in 1..=turns {
            let mut patch = Patch::new();
            patch.append(
                &["turns"],
                json!({ "user": "a question ".repeat(20), "assistant": ["an answer ".repeat(80)] }),
            );
            patch.set(&["turn_count"], json!(n));
            put(runtime, &*store, vec![Write::patch(id.clone(), patch)]);
        }
        let start = Instant::now();
        let length = runtime.block_on(store.history(&id)).unwrap().len();
        whole.push((turns, start.elapsed().as_secs_f64() * 1e3));
        let start = Instant::now();
        let (mut after, mut count, mut most, mut pages) = (TxId(0), 0, 0, 0);
        loop {
            let page = runtime.block_on(store.history_page(&id, after, PART)).unwrap();
            let Some(last) = page.last() else { break };
            (after, count, pages) = (last.tx_id, count + page.len(), pages + 1);
            most = most.max(page.iter().map(|v| v.document.field("turns").unwrap().to_string().len()).sum());
        }
        assert_eq!(count, length);
        parts.push((turns, start.elapsed().as_secs_f64() * 1e3 / f64::from(pages)));
        largest.push((turns, most as f64 / 1e6));
    }
    curve("history of a chat, whole", "turns", &whole);
    curve("a page of it (50 versions, 8 MB at most)", "turns", &parts);
    curve("the largest page, in MB and not", "turns", &largest);
}

/// One transaction that makes many files known and adds them to a session.
fn transact(runtime: &Runtime) {
    let points = [1_000, 10_000, 100_000].map(|count| {
        let place = tempfile::tempdir().unwrap();
        let store = open(&place);
        let session = SessionId::new("s").unwrap();
        put(runtime, &*store, vec![Write::put(Sets::default().document(&session))]);
        let source = |n: usize| FilesystemSource { filesystem_id: "f".into(), path: format!("/src/{n}.rs") };
        let mut patch = Patch::new();
        let mut writes: Vec<Write> = (0..count)
            .map(|n| {
                let document = Document::file(source(n), None, None);
                ["session_index", "metadata_pool"]
                    .iter()
                    .for_each(|list| patch.append(&[list], json!(document.id())));
                Write::put(document)
            })
            .collect();
        writes.push(Write::patch(ObjectId::session(&session), patch));
        let start = Instant::now();
        put(runtime, &*store, writes);
        (count, start.elapsed().as_secs_f64() * 1e3)
    });
    curve("a transaction of discovered files", "files", &points);
}
