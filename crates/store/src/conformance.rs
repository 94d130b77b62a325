//! What every backend must do: one list of checks, for the tests of each of them.
//!
//! A check gets a store that may hold other objects already (a shared server), so it uses IDs of its own and
//! compares transactions with each other, never with fixed numbers. It panics where the store is wrong.

#![expect(clippy::unwrap_used, reason = "a check fails by panicking")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType, Status, Toolcall};
use context_model::patch::{self, Patch};
use context_model::source::{FilesystemSource, Source};
use context_model::time::{Timestamp, TxId};
use serde_json::{Map, Value, json};

use crate::{AsOf, Change, Filter, Known, Receipt, Search, Store, Transaction, Write};

mod reading;
mod writing;

/// A running check.
pub type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One check of the suite.
#[derive(Clone, Copy)]
pub struct Check {
    /// What the check shows, as a sentence in snake case.
    pub name: &'static str,
    /// Runs it against a store.
    pub run: fn(Arc<dyn Store>) -> Running,
}

macro_rules! checks {
    ($($module:ident :: $name:ident),* $(,)?) => {
        &[$(Check { name: stringify!($name), run: |store| Box::pin($module::$name(store)) }),*]
    };
}

/// All checks.
pub const CHECKS: &[Check] = checks![
    writing::a_document_comes_back_as_it_was_written,
    writing::every_kind_of_document_comes_back,
    writing::equal_content_is_written_once,
    writing::a_then_b_then_a_makes_three_versions,
    writing::a_changed_source_hash_makes_a_version,
    writing::transactions_rise_strictly,
    writing::ten_writes_in_one_moment_make_ten_versions,
    writing::a_transaction_is_applied_whole_or_not_at_all,
    writing::an_expectation_that_does_not_hold_is_a_conflict,
    writing::an_expected_absence_holds_once,
    writing::an_envelope_never_changes,
    writing::the_same_object_twice_in_one_transaction_keeps_the_order,
    writing::an_empty_transaction_writes_nothing,
    writing::concurrent_writers_lose_nothing,
    writing::patches_give_the_whole_document,
    writing::patches_may_follow_a_write_in_the_same_transaction,
    writing::patches_that_do_not_fit_are_refused,
    writing::a_patch_of_an_unknown_object_is_refused,
    writing::a_whole_write_after_patches_is_compared_with_the_result,
    writing::deep_patches_are_checked,
    writing::a_deletion_is_a_version,
    writing::what_is_written_soon_is_there_at_once,
    reading::an_unknown_object_is_none,
    reading::as_of_a_transaction,
    reading::as_of_a_valid_time,
    reading::a_back_dated_version_does_not_become_the_latest,
    reading::equal_content_is_compared_at_its_valid_time,
    reading::patched_documents_are_read_as_of_any_point,
    reading::a_patch_holds_from_its_valid_time_on,
    reading::many_objects_come_in_the_order_asked_for,
    reading::outlines_have_no_content,
    reading::outlines_of_patched_documents_have_the_scalar_fields,
    reading::the_journal_has_what_was_written,
    reading::queries_filter_by_type_and_source,
    reading::changes_since_a_transaction,
    reading::a_write_is_readable_at_once,
    reading::a_search_finds_words_with_their_line,
    reading::any_text_is_a_valid_search,
    reading::local_values_keep_the_first_default,
    reading::an_intact_store_has_no_damage,
    reading::a_closed_store_says_so,
];

/// Runs all checks, each against a store that the factory makes, and reports the name of each before it runs.
pub async fn run_all<F: Future<Output = Arc<dyn Store>>>(
    mut factory: impl FnMut() -> F,
    mut report: impl FnMut(&'static str),
) {
    for check in CHECKS {
        report(check.name);
        let store = factory().await;
        (check.run)(Arc::clone(&store)).await;
        store.close().await.unwrap();
    }
}

/// A name that no other check in this process or another one uses.
fn unique(name: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{}-{}-{next}", std::process::id(), start.as_nanos())
}

fn session() -> SessionId {
    SessionId::new(unique("s")).unwrap()
}

fn prompt(session: &SessionId, text: &str) -> Document {
    Document::system_prompt(session, text)
}

fn file(filesystem: &str, path: &str, text: Option<&str>) -> Document {
    Document::file(
        FilesystemSource { filesystem_id: filesystem.into(), path: path.into() },
        text.map(str::to_owned),
        text.map(|text| Digest::of(text.as_bytes())),
    )
}

fn toolcall(id: &str, session: &SessionId, content: &str) -> Document {
    Document::toolcall(
        ObjectId::new(id),
        Toolcall {
            tool: "bash".into(),
            args: Map::from_iter([("command".to_owned(), json!("ls"))]),
            args_display: None,
            content: content.into(),
            status: Status::Ok,
            chat_ref: ObjectId::chat(session),
            file_refs: Vec::new(),
            parent: None,
        },
    )
}

/// The patch that appends the n-th turn to a chat.
fn turn(n: usize) -> Patch {
    let mut patch = Patch::new();
    patch.append(&["turns"], json!({ "user": format!("question {n}"), "toolcall_ids": [] }));
    patch.append(&["toolcall_refs"], json!(format!("call_{n}")));
    patch.set(&["turn_count"], json!(n));
    patch
}

async fn put(store: &Arc<dyn Store>, document: Document) -> Receipt {
    write(store, vec![Write::put(document)]).await
}

async fn put_at(store: &Arc<dyn Store>, document: Document, millis: i64) -> Receipt {
    write(store, vec![Write::Put { document, valid_time: Some(Timestamp::from_millis(millis)) }]).await
}

async fn write(store: &Arc<dyn Store>, writes: Vec<Write>) -> Receipt {
    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap()
}

/// Writes something else until a transaction has a later time than this one.
async fn later(store: &Arc<dyn Store>, than: Timestamp) {
    let session = session();
    for n in 0.. {
        if put(store, prompt(&session, &n.to_string())).await.tx_time > than {
            return;
        }
    }
}

async fn refused(store: &Arc<dyn Store>, writes: Vec<Write>) -> ErrorCode {
    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap_err().code()
}

async fn latest(store: &Arc<dyn Store>, id: &ObjectId) -> Option<Document> {
    store.get(id, AsOf::default()).await.unwrap().map(|version| version.document)
}

async fn contents(store: &Arc<dyn Store>, id: &ObjectId) -> Vec<Option<String>> {
    let history = store.history(id).await.unwrap();
    history.iter().map(|version| version.document.content().map(str::to_owned)).collect()
}

fn valid(millis: i64) -> AsOf {
    AsOf { valid_time: Some(Timestamp::from_millis(millis)), known: None }
}

fn known(tx: TxId) -> AsOf {
    AsOf { valid_time: None, known: Some(Known::Tx(tx)) }
}
