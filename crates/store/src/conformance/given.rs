//! The objects that the checks and the tests of all backends put into a store, and shorthands for their calls.

use std::sync::atomic::{AtomicUsize, Ordering};

use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, Toolcall};
use context_model::patch::Patch;
use context_model::source::FilesystemSource;
use context_model::time::{Timestamp, TxId};
use serde_json::{Map, json};

use crate::{AsOf, KnownAt, Receipt, Store, Transaction, Write};

/// A name that no other check uses, in this process or another one.
pub(super) fn unique(name: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{}-{}-{next}", std::process::id(), start.as_nanos())
}

pub(super) fn session() -> SessionId {
    SessionId::new(unique("s")).unwrap()
}

pub(super) fn prompt(session: &SessionId, text: &str) -> Document {
    Document::system_prompt(session, text)
}

/// A file of a namespace that all tests share.
pub fn file(path: &str, text: &str) -> Document {
    file_in("f", path, Some(text))
}

/// A file of a namespace; without a text if it is gone or was never read.
pub fn file_in(filesystem: &str, path: &str, text: Option<&str>) -> Document {
    Document::file(
        FilesystemSource { filesystem_id: filesystem.into(), path: path.into() },
        text.map(str::to_owned),
        text.map(|text| Digest::of(text.as_bytes())),
    )
}

/// A tool call of a session, with its output.
pub fn toolcall(id: &str, session: &SessionId, content: &str) -> Document {
    Document::toolcall(
        ObjectId::new(id),
        &ObjectId::chat(session),
        Toolcall::new(id, "bash", Map::from_iter([("command".to_owned(), json!("ls"))]), content),
    )
}

/// The patch that appends the n-th turn to a chat.
pub fn turn(n: usize) -> Patch {
    let mut patch = Patch::new();
    patch.append(&["turns"], json!({ "user": format!("question {n}"), "toolcall_ids": [] }));
    patch.append(&["toolcall_refs"], json!(format!("call_{n}")));
    patch.set(&["turn_count"], json!(n));
    patch
}

/// Writes one document.
pub async fn put(store: &dyn Store, document: Document) -> Receipt {
    write(store, vec![Write::put(document)]).await
}

pub(super) async fn put_at(store: &dyn Store, document: Document, millis: i64) -> Receipt {
    write(store, vec![Write::Put { document, valid_time: Some(Timestamp::from_millis(millis)) }]).await
}

/// Writes in one transaction.
pub async fn write(store: &dyn Store, writes: Vec<Write>) -> Receipt {
    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap()
}

/// Writes other objects until a transaction has a later time than this one.
pub(super) async fn later(store: &dyn Store, than: Timestamp) {
    let session = session();
    for n in 0.. {
        if put(store, prompt(&session, &n.to_string())).await.tx_time > than {
            return;
        }
    }
}

pub(super) async fn refused(store: &dyn Store, writes: Vec<Write>) -> ErrorCode {
    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap_err().code()
}

pub(super) async fn latest(store: &dyn Store, id: &ObjectId) -> Option<Document> {
    store.get(id, AsOf::default()).await.unwrap().map(|version| version.document)
}

/// The contents of all versions of an object, the oldest first.
pub async fn contents(store: &dyn Store, id: &ObjectId) -> Vec<Option<String>> {
    let history = store.history(id).await.unwrap();
    history.iter().map(|version| version.document.content().map(str::to_owned)).collect()
}

pub(super) fn valid(millis: i64) -> AsOf {
    AsOf { valid_time: Some(Timestamp::from_millis(millis)), known: None }
}

pub(super) fn known(tx: TxId) -> AsOf {
    AsOf { valid_time: None, known: Some(KnownAt::Tx(tx)) }
}
