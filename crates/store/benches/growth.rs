//! How calls grow with what they are asked for: `cargo bench -p context-store --bench growth [PART]`.
//!
//! Every line is one point of a curve, beside the smallest point of the same curve.

#![expect(clippy::unwrap_used, reason = "a program that prints its figures")]

use std::sync::Arc;
use std::time::Instant;

use context_model::hash::Digest;
use context_model::object::Document;
use context_model::source::FilesystemSource;
use context_store::sqlite::{Durability, SqliteStore};
use context_store::{Search, Store, Transaction, Write};
use tokio::runtime::Runtime;

use crate::figure::{Figure, asked, median};

#[path = "../../../benches/figure.rs"]
mod figure;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let parts: [(&str, fn(&Runtime)); 1] = [("search", search)];
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
        Figure {
            name: "curve",
            what: &format!("{what}, {size} {unit}:"),
            ours: *ms,
            peer: &format!("{least} {unit}"),
            beside: first,
            unit: "ms",
            good: f64::INFINITY,
            stretch: f64::INFINITY,
            note: format!("{:.1} times as many", *size as f64 / least as f64),
        }
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
