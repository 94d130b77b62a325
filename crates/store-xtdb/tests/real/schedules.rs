//! The random schedules of several machines (`tests/memory/schedules.rs`) on real nodes, each with its own data: a database that
//! goes back is stopped, gets the files of its backup, and starts again. Takes half a minute for each schedule.
//!
//! `CONTEXT_LONG=1` runs 100 schedules, `CONTEXT_SEED=n` the one of this seed, `CONTEXT_SCHEDULES=a..b` those from a to b; otherwise
//! one of each kind.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::ask::{ask, client, passed_on};
use crate::node::{Behind, Port};
use crate::rig::{Kind, Node, say, start_script};
use crate::world::{Database, failure};

/// A node with its data and their backup.
struct Real {
    node: Node,
    data: tempfile::TempDir,
    backup: Option<tempfile::TempDir>,
    /// The objects that its owner removed, and removes again from a backup.
    removed: Mutex<Vec<String>>,
    client: reqwest::Client,
}

impl Real {
    fn start(script: &Path) -> Self {
        let data = tempfile::tempdir().unwrap();
        let node = Node::start_in(script, Kind::RocksDb, data.path());
        Self { node, data, backup: None, removed: Mutex::default(), client: client() }
    }
}

impl Database for Real {
    async fn port(&self) -> Port {
        let (url, client) = (self.node.url(), self.client.clone());
        let behind: Behind =
            Arc::new(move |question| Box::pin(passed_on(client.clone(), url.clone(), question)));
        Port::before(behind).await
    }

    async fn evict(&self, ids: &[&str]) {
        self.removed.lock().unwrap().extend(ids.iter().map(|id| (*id).to_owned()));
        let operations: Vec<_> = ids.iter().map(|id| json!(["evict", id])).collect();
        let url = format!("{}/_xtdb/submit-tx", self.node.url());
        let body = json!({ "tx-ops": operations }).to_string();
        let headers = [("content-type", "application/json"), ("accept", "application/json")];
        let (status, text) = ask(&url, &headers, Some(body)).await;
        assert_eq!(status, 202, "{text}");
        let id = &serde_json::from_str::<serde_json::Value>(&text).unwrap()["txId"];
        let url = format!("{}/_xtdb/await-tx?tx-id={id}", self.node.url());
        assert_eq!(ask(&url, &[("accept", "application/json")], None).await.0, 200);
    }

    async fn has(&self, id: &str) -> bool {
        let url = format!("{}/_xtdb/entity?eid={id}", self.node.url());
        let (status, text) = ask(&url, &[("accept", "application/json")], None).await;
        assert!([200, 404].contains(&status), "{status} {text}");
        status == 200
    }

    async fn rewind(&mut self, _: usize) {
        let backup = self.backup.take().unwrap();
        self.node.kill();
        std::fs::remove_dir_all(self.data.path()).unwrap();
        copy_tree(backup.path(), self.data.path());
        self.node.restart();
        let removed = std::mem::take(&mut *self.removed.lock().unwrap());
        if !removed.is_empty() {
            self.evict(&removed.iter().map(String::as_str).collect::<Vec<_>>()).await;
        }
    }

    async fn back_up(&mut self) {
        if self.backup.is_some() {
            return;
        }
        let backup = tempfile::tempdir().unwrap();
        self.node.kill();
        copy_tree(self.data.path(), backup.path());
        self.node.restart();
        self.backup = Some(backup);
    }

    fn lag_ms(&self) -> u64 {
        3_000
    }
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_machines_and_a_real_database_each_write_is_there_once() {
    let Some(script) = start_script("schedules", include_str!("schedules.rs")) else { return };
    let set = |name: &str| std::env::var(name).ok();
    let number = |text: &str| text.parse::<u64>().ok();
    let seeds = match (set("CONTEXT_SEED").as_deref().and_then(number), set("CONTEXT_SCHEDULES")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(range)) => {
            let (start, end) = range.split_once("..").unwrap();
            number(start).unwrap()..number(end).unwrap()
        }
        (None, None) if set("CONTEXT_LONG").is_some() => 0..100,
        (None, None) => 0..2,
    };
    let mut failures = Vec::new();
    for seed in seeds {
        say(&format!("schedule {seed}"));
        failures.extend(failure(seed, Real::start(&script)).await);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
