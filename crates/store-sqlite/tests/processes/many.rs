//! Several processes on one file, one of them killed now and then.

use super::worker::{self, Said, Worker, acknowledged, failures, longest};
use super::{check, file, runtime, sized};
use context_store::Store;
use context_store_sqlite::{Durability, SqliteStore};

fn together(processes: usize, count: usize, kills: usize) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    // They also race for making the file.
    let workers: Vec<Worker> =
        (0..processes).map(|n| Worker::start(worker::command(&path, &format!("w{n}"), count))).collect();
    let mut victim = 0;
    for run in 0..kills {
        let mut worker = Worker::start(worker::command(&path, "victim", 1_000_000));
        for _ in 0..1 + run % 5 {
            let said = worker.next();
            assert!(matches!(said, Some(Said::Ack(_))), "{said:?}");
        }
        victim = acknowledged(&worker.kill()).max(victim);
    }
    let mut wait = 0;
    for worker in workers {
        let said = worker.finish();
        assert_eq!(failures(&said), [] as [&str; 0]);
        assert_eq!(said.last(), Some(&Said::End));
        assert_eq!(acknowledged(&said), count);
        wait = wait.max(longest(&said));
    }
    for n in 0..processes {
        assert_eq!(check(&path, &format!("w{n}"), count), count);
    }
    let victim = check(&path, "victim", victim);
    runtime().block_on(async {
        let store = SqliteStore::open(&path, Durability::Power).unwrap();
        let shared = store.journal(file("shared", "x", "").id()).await.unwrap();
        assert_eq!(shared.len(), processes * count + victim, "each write of the shared object is a version");
        assert!(shared.windows(2).all(|pair| pair[0].tx_id < pair[1].tx_id));
        store.close().await.unwrap();
    });
    eprintln!(
        "{processes} processes, {count} transactions each, {kills} kills: no error, none lost, the longest wait \
         {wait} ms"
    );
}

#[test]
fn two_processes() {
    together(2, sized(150, 1_000, 10_000), sized(3, 20, 50));
}

#[test]
fn four_processes() {
    together(4, sized(80, 500, 10_000), sized(3, 20, 50));
}
