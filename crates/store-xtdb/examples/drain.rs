//! The speed at which a backlog is sent: `cargo run --release -p context-store-xtdb --example drain -- URL [VERSIONS…]`.
//!
//! For each number a journal is filled while no node listens, half of it with turns of one chat and half with files, and
//! then sent to the node, as if by a process that begins anew. It ends by itself.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints its figures")]

use std::time::Instant;

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::source::FilesystemSource;
use context_store::{Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions};
use serde_json::json;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("the node's URL");
    let mut counts: Vec<usize> = arguments.map(|count| count.parse().expect("a number")).collect();
    if counts.is_empty() {
        counts = vec![500, 1_000, 2_000, 4_000];
    }
    for count in counts {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal.db");
        fill(&path, count).await;
        std::fs::write(place.path().join("journal.db.progress"), r#"{"sent":0,"seen":0}"#).unwrap();
        let mut options = QueueOptions::new(path, XtdbOptions::new([url.clone()]));
        options.close_timeout_ms = 3_600_000;
        let start = Instant::now();
        let store = QueuedStore::open(options).await.unwrap();
        store.flush().await.unwrap();
        let took = start.elapsed().as_secs_f64();
        println!("{count} versions in {took:.1} s: {:.0} a second", count as f64 / took);
        store.close().await.unwrap();
    }
}

async fn fill(path: &std::path::Path, count: usize) {
    let store = SqliteStore::open(path, Durability::Process).unwrap();
    let unique = format!("{}-{count}", std::process::id());
    let session = SessionId::new(unique.clone()).unwrap();
    let put = |writes| store.transact(Transaction { writes, expected: Vec::new() });
    put(vec![Write::put(Document::chat(&session))]).await.unwrap();
    for n in 1..=count / 2 {
        let mut patch = Patch::new();
        patch.append(&["turns"], json!({ "user": format!("question {n}") }));
        patch.set(&["turn_count"], json!(n));
        let text = format!("text {n}");
        let source = FilesystemSource { filesystem_id: unique.clone(), path: format!("/{}", n % 100) };
        let file = Document::file(source, Some(text.clone()), Some(Digest::of(text.as_bytes())));
        put(vec![Write::put(file)]).await.unwrap();
        put(vec![Write::patch(ObjectId::chat(&session), patch)]).await.unwrap();
    }
    store.close().await.unwrap();
}
