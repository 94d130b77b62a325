//! The objects that the tests write to a store and read from it.

use std::path::Path;
use std::sync::Arc;

use context_model::object::Document;
#[allow(unused_imports)] // each test file uses its part
pub use context_store::conformance::given::{file, file_in, put, write};
use context_store::{AsOf, Store};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions};

use super::Node;

/// A machine's store in front of a node, with its journal in this folder. Its time limits suit a busy machine.
pub async fn queued(place: &Path, node: &Node) -> Arc<QueuedStore> {
    QueuedStore::open(options(place, &[node.url()])).await.unwrap()
}

/// The options for that.
pub fn options(place: &Path, urls: &[String]) -> QueueOptions {
    QueueOptions {
        read_timeout_ms: 3_000,
        pull_wait_ms: 3_000,
        ..QueueOptions::new(
            place.join("journal.db"),
            XtdbOptions { timeout_ms: 3_000, ..XtdbOptions::new(urls.to_vec()) },
        )
    }
}

/// The text of a file's latest version.
pub async fn latest(store: &dyn Store, path: &str) -> Option<String> {
    latest_of(store, &file(path, "")).await
}

/// The same of a file of another namespace.
pub async fn latest_of(store: &dyn Store, file: &Document) -> Option<String> {
    let version = store.get(file.id(), AsOf::default()).await.unwrap();
    version.map(|v| v.document.content().unwrap_or("(null)").to_owned())
}

/// The texts of a file's versions.
pub async fn texts(store: &dyn Store, path: &str) -> Vec<String> {
    let history = store.history(file(path, "").id()).await.unwrap();
    history.iter().map(|v| v.document.content().unwrap_or("(null)").to_owned()).collect()
}
