//! What the tests write to a store and read from it.

use std::path::Path;
use std::sync::Arc;

use context_model::hash::Digest;
use context_model::object::Document;
use context_model::source::FilesystemSource;
use context_store::{AsOf, Store, Transaction, Write};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions};

use super::Node;

/// A machine's store in front of a node, with its journal in this folder. Its time limits suit a busy machine.
pub async fn queued(place: &Path, node: &Node) -> Arc<QueuedStore> {
    QueuedStore::open(options(place, &[node.url()])).await.unwrap()
}

/// How that is set up.
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

pub fn file(path: &str, text: &str) -> Document {
    file_in("fs", path, text)
}

/// A file of another namespace.
pub fn file_in(filesystem: &str, path: &str, text: &str) -> Document {
    let source = FilesystemSource { filesystem_id: filesystem.into(), path: path.into() };
    Document::file(source, Some(text.into()), Some(Digest::of(text.as_bytes())))
}

pub async fn put(store: &dyn Store, document: Document) {
    write(store, vec![Write::put(document)]).await;
}

pub async fn write(store: &dyn Store, writes: Vec<Write>) {
    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
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
