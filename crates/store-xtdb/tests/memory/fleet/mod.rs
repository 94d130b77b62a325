//! Several machines on one database.

#![allow(dead_code)] // each test file uses its part

pub mod gate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use context_model::object::Document;
use context_store::clock::{self, Clock};
use context_store::conformance::given::{file_in, put};
use context_store::{AsOf, Filter, Store, Version};
use context_store_sqlite::Durability;
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};

use crate::node::{Node, Port, Way};

/// One machine: a folder with a journal, a port to the node, and a clock.
pub struct Machine {
    pub place: tempfile::TempDir,
    pub port: Port,
    pub store: Arc<QueuedStore>,
    pub clock: Clock,
    pub lag_ms: u64,
}

/// For a node that has read all of its log at any time.
pub const LAG_MS: u64 = 20;

impl Machine {
    pub async fn start(node: &Arc<Node>) -> Self {
        Self::in_place(node, tempfile::tempdir().unwrap()).await
    }

    pub async fn in_place(node: &Arc<Node>, place: tempfile::TempDir) -> Self {
        Self::with_clock(node, place, clock::system()).await
    }

    pub async fn with_clock(node: &Arc<Node>, place: tempfile::TempDir, clock: Clock) -> Self {
        Self::behind(Port::open(Arc::clone(node)).await, place, clock, LAG_MS).await
    }

    /// `lag_ms`: the time that the node behind the port may need to read its log.
    pub async fn behind(port: Port, place: tempfile::TempDir, clock: Clock, lag_ms: u64) -> Self {
        let store = open_with(place.path(), &port.url, &clock, lag_ms).await;
        Self { place, port, store, clock, lag_ms }
    }

    /// Ends the process and starts another one.
    pub async fn restart(&mut self) {
        self.store.close().await.unwrap();
        self.start_again().await;
    }

    /// Starts a process after the last one has ended.
    pub async fn start_again(&mut self) {
        self.store = open_with(self.place.path(), &self.port.url, &self.clock, self.lag_ms).await;
    }

    /// A copy of the machine's folder, as it is now.
    pub fn copied(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_files(self.place.path(), copy.path());
        copy
    }

    pub async fn put(&self, path: &str, text: &str) {
        put(&*self.store, file(path, text)).await;
    }

    /// Writes this many separate files, without the network.
    pub async fn put_offline(&self, name: &str, count: usize) {
        self.port.set(Way::Away);
        for n in 0..count {
            self.put(&format!("/{name}/{n}"), name).await;
        }
        self.port.set(Way::Open);
    }

    /// The text of a file, after a check for others' writes.
    pub async fn pulled(&self, path: &str) -> Option<String> {
        self.store.pull().await.unwrap();
        text(&*self.store, path).await
    }

    /// Waits until the machine has noticed that the node answers.
    pub async fn reconnects(&self) {
        let noticed = async {
            while !self.store.state().is_connected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, noticed).await.expect("it never reconnects");
    }

    /// Waits until another machine's text has come.
    pub async fn hears(&self, path: &str, wanted: &str) {
        let heard = async {
            while self.pulled(path).await.as_deref() != Some(wanted) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, heard)
            .await
            .unwrap_or_else(|_| panic!("{path} never becomes {wanted}"));
    }
}

/// The longest wait of a test for an event.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Copies a folder, perhaps while its machine runs: a file that is replaced meanwhile is left out, as by any program that copies.
pub fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        match std::fs::copy(&path, to.join(path.file_name().unwrap())) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}"),
        }
    }
}

pub fn options(place: &Path, url: &str) -> QueueOptions {
    QueueOptions {
        read_timeout_ms: 10_000,
        pull_wait_ms: 10_000,
        close_timeout_ms: 60_000,
        lag_ms: LAG_MS,
        durability: Durability::Process,
        ..QueueOptions::new(place.join("journal.db"), XtdbOptions { attempts: 4, ..XtdbOptions::new([url]) })
    }
}

pub async fn open(place: &Path, url: &str) -> Arc<QueuedStore> {
    QueuedStore::open(options(place, url)).await.unwrap()
}

pub async fn open_with(place: &Path, url: &str, clock: &Clock, lag_ms: u64) -> Arc<QueuedStore> {
    let options = QueueOptions { lag_ms, ..options(place, url) };
    QueuedStore::open_with(options, Arc::clone(clock)).await.unwrap()
}

pub fn file(path: &str, text: &str) -> Document {
    file_in("disk", path, Some(text))
}

pub async fn text(store: &dyn Store, path: &str) -> Option<String> {
    let version = store.get(file(path, "").id(), AsOf::default()).await.unwrap()?;
    version.document.content().map(str::to_owned)
}

pub async fn direct(port: &Port) -> Arc<XtdbStore> {
    XtdbStore::connect(XtdbOptions::new([port.url.clone()])).await.unwrap()
}

/// The versions of the files that the database has, by path and text, and how often each is there.
pub async fn there(node: &Arc<Node>) -> BTreeMap<(String, String), usize> {
    there_by(&Port::open(Arc::clone(node)).await).await
}

/// The same, asked through a port.
pub async fn there_by(port: &Port) -> BTreeMap<(String, String), usize> {
    let store = direct(port).await;
    let mut all = BTreeMap::new();
    for id in store.query(&Filter::default()).await.unwrap() {
        for Version { document, .. } in store.history(&id).await.unwrap() {
            let path = match document.source() {
                Some(context_model::source::Source::Filesystem(file)) => file.path.clone(),
                _ => id.to_string(),
            };
            *all.entry((path, document.content().unwrap_or_default().to_owned())).or_default() += 1;
        }
    }
    all
}

pub fn assert_once(there: &BTreeMap<(String, String), usize>, path: &str, text: &str) {
    assert_eq!(there.get(&(path.to_owned(), text.to_owned())), Some(&1), "{path} with {text}");
}
