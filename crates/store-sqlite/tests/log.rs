//! The length of the log, whatever the pace.

#![expect(clippy::print_stderr, reason = "a test reports its figures")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use context_model::hash::Digest;
use context_model::object::Document;
use context_model::source::FilesystemSource;
use context_store::{AsOf, Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};

/// Texts that can't be compressed, so that the log grows by their length.
fn text(n: u64) -> String {
    (0..400).map(|line| format!("{}\n", Digest::of(format!("{n} {line}").as_bytes()))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn log_of_a_busy_writer_stays_short() {
    if std::env::var_os("CONTEXT_SOAK").is_none() {
        eprintln!("not run: it writes for a minute beside six readers, with CONTEXT_SOAK=1");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let store = SqliteStore::open(&path, Durability::Power).unwrap();
    let file = |n: u64| {
        let source = FilesystemSource { filesystem_id: "f".into(), path: format!("/{}", n % 7) };
        let text = text(n);
        Document::file(source, Some(text.clone()), Some(Digest::of(text.as_bytes())))
    };
    store.transact(Transaction { writes: vec![Write::put(file(0))], expected: Vec::new() }).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..6)
        .map(|n| {
            let (store, is_over, id) = (Arc::clone(&store), Arc::clone(&is_over), file(0).id().clone());
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    if n % 2 == 0 {
                        store.get(&id, AsOf::default()).await.unwrap();
                    } else {
                        store.history(&id).await.unwrap();
                    }
                }
            })
        })
        .collect();
    let log = place.path().join("store.db-wal");
    let (mut longest, mut times) = (0, Vec::new());
    for n in 1..=2_000 {
        let start = Instant::now();
        let transaction = Transaction { writes: vec![Write::put(file(n))], expected: Vec::new() };
        store.transact_deferred(transaction).await.unwrap();
        times.push(start.elapsed());
        longest = longest.max(std::fs::metadata(&log).unwrap().len());
    }
    is_over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
    let total: Duration = times.iter().sum();
    eprintln!(
        "the longest log: {} MB; 2,000 writes: {:.1} s, p50 {:.2}, p99 {:.2}, p99.9 {:.2}, longest {:.2} ms",
        longest >> 20,
        total.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    // It is restarted at 16 MB, and again 4 MB later if that was in vain.
    assert!(longest <= 32 << 20, "{} MB", longest >> 20);
    store.close().await.unwrap();
}
