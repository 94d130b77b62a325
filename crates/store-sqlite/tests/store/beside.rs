//! The requests of a store's owner end although another process writes as fast as it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use context_store::{Erase, OwnedStore, Store, Write};

use crate::secrets::{file, in_files, open, plant, secret, write};
use context_store_sqlite::SqliteStore;

/// Writes texts that are long enough for a portion of the search index, one after the other.
async fn write_on(store: Arc<SqliteStore>, ended: Arc<AtomicBool>, written: Arc<AtomicUsize>) {
    let rest = "words of a text that is long\n".repeat(20_000);
    while !ended.load(Ordering::Relaxed) {
        let n = written.fetch_add(1, Ordering::Relaxed);
        write(&*store, vec![Write::put(file(&format!("/{n}"), &format!("{n}\n{rest}")))]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "lasts 12 seconds: `npm run test:full`"]
async fn forgetting_ends_beside_a_writer_at_full_speed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let store = open(&path);
    plant(&store).await;
    let (ended, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let others = [open(&path), open(&path), open(&path)];
    let writers =
        others.clone().map(|other| tokio::spawn(write_on(other, Arc::clone(&ended), Arc::clone(&written))));
    while written.load(Ordering::Relaxed) < 5 {
        tokio::task::yield_now().await;
    }
    let calls = async {
        store.flush().await.unwrap();
        for n in 0..8 {
            store.erase(vec![Erase::Text(secret(n))], "a key").await.unwrap();
        }
    };
    let is_done = tokio::time::timeout(Duration::from_secs(120), calls).await.is_ok();
    let beside = written.load(Ordering::Relaxed);
    ended.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(is_done, "{beside} texts were written meanwhile");
    assert!(in_files(place.path()) < crate::secrets::SECRETS);
    for other in others {
        other.close().await.unwrap();
    }
    store.close().await.unwrap();
}
