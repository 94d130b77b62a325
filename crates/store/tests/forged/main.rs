//! Exports made to deceive or to exhaust: their checksum fits, and their content does not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "tests report their figures")]

mod any;

use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, Toolcall};
use context_model::session::{Sets, SetsChange};
use context_model::time::{Timestamp, TxId};
use context_store::conformance::given::file;
use context_store::memory::MemoryStore;
use context_store::transfer::{TransferError, all_objects, export, import};
use context_store::{AsOf, Filter, Search, Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

fn call(id: &str) -> Document {
    let call = Toolcall {
        file_refs: vec![file("/a", "").id().clone()],
        ..Toolcall::new(id, "bash", Map::from_iter([("command".to_owned(), json!("ls"))]), "a\nb")
    };
    Document::toolcall(ObjectId::new(id), &ObjectId::chat(&session()), call)
}

fn sets() -> Sets {
    let (mut sets, mut change) = (Sets::default(), SetsChange::default());
    sets.activate(file("/a", "").id(), &mut change);
    sets.pin(call("call_1").id(), &mut change);
    sets.apply(change);
    sets
}

/// A line of an export.
fn line(object: &str, position: usize, form: &str, value: Value) -> Value {
    let time = "2026-01-31T12:00:00.000Z";
    let mut line =
        json!({ "object": object, "position": position, "tx_id": 1, "tx_time": time, "valid_time": time });
    line[form] = value;
    line
}

fn whole(position: usize, document: &Document) -> Value {
    line(document.id().as_str(), position, "document", Value::Object(document.to_json()))
}

/// A document whose hashes fit its content, whatever that is.
fn altered(document: &Document, change: impl FnOnce(&mut Map<String, Value>)) -> Document {
    let (id, kind, source, mut payload) = document.clone().into_parts();
    change(&mut payload);
    Document::new(id, kind, source, payload).unwrap()
}

fn renamed(document: &Document, id: &str) -> Document {
    let (_, kind, source, payload) = document.clone().into_parts();
    Document::new(ObjectId::new(id), kind, source, payload).unwrap()
}

/// The lines as an export whose checksum and counts fit.
fn sealed(lines: &[Value]) -> Vec<u8> {
    let mut text = json!({ "format": "pi-context-manager/history", "version": 1 }).to_string() + "\n";
    lines.iter().for_each(|line| text += &format!("{line}\n"));
    let objects = lines.iter().filter(|line| line["position"] == 0).count();
    let tail = json!({ "sha256": Digest::of(text.as_bytes()), "objects": objects, "versions": lines.len() });
    (text + &tail.to_string() + "\n").into_bytes()
}

/// Imports into an empty store; a refusal has written nothing.
async fn imported(bytes: &[u8]) -> Result<std::sync::Arc<MemoryStore>, TransferError> {
    let store = MemoryStore::new();
    match import(&mut Cursor::new(bytes), &*store).await {
        Ok(_) => Ok(store),
        Err(error) => {
            assert_eq!(store.latest_tx().await.unwrap(), TxId(0), "{error}");
            Err(error)
        }
    }
}

fn chat_and(patches: &[Value]) -> Vec<Value> {
    let chat = Document::chat(&session());
    let mut lines = vec![whole(0, &chat)];
    let patch = |(n, patch): (usize, &Value)| line("chat:s", n + 1, "patch", patch.clone());
    lines.extend(patches.iter().enumerate().map(patch));
    lines
}

fn session_and(patches: &[Value]) -> Vec<Value> {
    let mut lines = vec![whole(0, &sets().document(&session()))];
    let patch = |(n, patch): (usize, &Value)| line("session:s", n + 1, "patch", patch.clone());
    lines.extend(patches.iter().enumerate().map(patch));
    lines
}

fn turn() -> Value {
    json!([{ "op": "add", "path": "/turns/-", "value": { "user": "x", "assistant": [] } },
           { "op": "replace", "path": "/turn_count", "value": 1 }])
}

#[rstest]
#[case::everything(vec![
    whole(0, &file("/a", "1")), whole(1, &file("/a", "2")), whole(0, &call("call_1")),
    whole(0, &Document::system_prompt(&session(), "p")),
])]
#[case::a_chat(chat_and(&[turn(), json!([{ "op": "add", "path": "/turns/0/assistant/-", "value": { "role": "a" } },
    { "op": "add", "path": "/toolcall_refs/-", "value": "call_1" }])]))]
#[case::a_session(session_and(&[
    json!([{ "op": "add", "path": "/session_index/-", "value": "x" }, { "op": "add", "path": "/metadata_pool/-", "value": "x" },
           { "op": "add", "path": "/active_set/-", "value": "x" }]),
    json!([{ "op": "remove", "path": "/active_set/0" }, { "op": "add", "path": "/pinned_set", "value": ["x"] }]),
]))]
#[tokio::test]
async fn imports_lines_that_the_model_allows(#[case] lines: Vec<Value>) {
    assert!(imported(&sealed(&lines)).await.is_ok());
}

#[rstest]
#[case::a_patch_that_copies(chat_and(&[turn(), json!([{ "op": "copy", "from": "/turns", "path": "/turns/0/assistant/-" }])]))]
#[case::a_patch_that_moves(chat_and(&[turn(), json!([{ "op": "move", "from": "/turns", "path": "/turns/0/x" }])]))]
#[case::a_patch_of_all(chat_and(&[json!([{ "op": "replace", "path": "", "value": {} }])]))]
#[case::a_patch_that_does_not_fit(chat_and(&[json!([{ "op": "remove", "path": "/turns/7" }])]))]
#[case::a_patch_of_a_hash(chat_and(&[json!([{ "op": "add", "path": "/content_hash", "value": "0" }])]))]
#[case::a_patch_of_the_envelope(chat_and(&[json!([{ "op": "add", "path": "/type", "value": "file" }])]))]
#[case::turns_that_are_no_list(chat_and(&[json!([{ "op": "replace", "path": "/turns", "value": 1 }])]))]
#[case::a_turn_that_is_none(chat_and(&[json!([{ "op": "add", "path": "/turns/-", "value": 1 }])]))]
#[case::a_turn_that_is_replaced(chat_and(&[turn(), json!([{ "op": "replace", "path": "/turns/0", "value": [] }])]))]
#[case::a_count_below_zero(chat_and(&[json!([{ "op": "replace", "path": "/turn_count", "value": -1 }])]))]
#[case::a_chat_of_another_session(chat_and(&[json!([{ "op": "replace", "path": "/session_ref", "value": "session:t" }])]))]
#[case::a_file_that_is_patched(vec![whole(0, &file("/a", "1")),
    line(file("/a", "").id().as_str(), 1, "patch", json!([{ "op": "replace", "path": "/content", "value": "2" }]))])]
#[case::a_patch_first(vec![line("chat:s", 0, "patch", json!([]))])]
#[case::infrastructure_that_is_active(session_and(&[json!([
    { "op": "add", "path": "/session_index/-", "value": "chat:s" }, { "op": "add", "path": "/metadata_pool/-", "value": "chat:s" },
    { "op": "add", "path": "/active_set/-", "value": "chat:s" }])]))]
#[case::active_and_not_in_the_pool(session_and(&[json!([{ "op": "add", "path": "/active_set/-", "value": "call_1" }])]))]
#[case::taken_out_of_the_pool_and_active(session_and(&[json!([{ "op": "remove", "path": "/metadata_pool/0" }])]))]
#[case::an_id_twice(session_and(&[json!([{ "op": "add", "path": "/session_index/-", "value": "call_1" }])]))]
#[case::a_set_of_numbers(session_and(&[json!([{ "op": "replace", "path": "/pinned_set", "value": [1] }])]))]
#[case::a_set_that_is_gone(session_and(&[json!([{ "op": "remove", "path": "/pinned_set" }])]))]
#[case::a_set_of_lists(session_and(&[json!([{ "op": "add", "path": "/pinned_set/0/x", "value": 1 }])]))]
#[case::another_chat(session_and(&[json!([{ "op": "replace", "path": "/chat_ref", "value": "chat:t" }])]))]
#[case::infrastructure_in_a_whole_session(vec![whole(0, &altered(&sets().document(&session()), |payload| {
    payload["session_index"].as_array_mut().unwrap().push(json!("chat:s"));
}))])]
#[case::a_file_with_another_content(vec![whole(0, &altered(&file("/a", "1"), |payload| {
    payload.insert("content".into(), json!("2"));
}))])]
#[case::a_file_without_its_hash(vec![whole(0, &altered(&file("/a", "1"), |payload| {
    payload.insert("source_hash".into(), Value::Null);
}))])]
#[case::a_file_of_another_length(vec![whole(0, &altered(&file("/a", "1"), |payload| {
    payload.insert("char_count".into(), json!(9));
}))])]
#[case::a_tool_call_twice(vec![whole(0, &call("c")), whole(1, &altered(&call("c"), |payload| {
    payload.insert("content".into(), json!("other"));
}))])]
#[case::an_object_twice(vec![whole(0, &call("c")), whole(0, &call("d")), whole(0, &call("c"))])]
#[case::a_tool_call_with_the_id_of_a_chat(vec![whole(0, &renamed(&call("c"), "chat:s"))])]
#[case::a_tool_call_with_the_id_of_a_file(vec![whole(0, &renamed(&call("c"), &"0a".repeat(32)))])]
#[case::a_tool_call_without_arguments(vec![whole(0, &altered(&call("c"), |payload| { payload.remove("args"); }))])]
#[case::a_chat_with_the_id_of_a_tool_call(vec![whole(0, &renamed(&Document::chat(&session()), "call_1"))])]
#[case::a_prompt_without_text(vec![whole(0, &altered(&Document::system_prompt(&session(), "p"), |payload| {
    payload.insert("content".into(), json!(7));
}))])]
#[case::another_type(vec![whole(0, &Document::chat(&session())), whole(1, &renamed(&Document::system_prompt(&session(), "p"), "chat:s"))])]
#[tokio::test]
async fn refuses_lines_outside_the_model_and_writes_nothing(#[case] lines: Vec<Value>) {
    let error = imported(&sealed(&lines)).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
    assert!(error.to_string().starts_with(&format!("line {} ", lines.len() + 1)), "{error}");
}

/// Levels upon levels, each patch going a little deeper than the one before.
#[tokio::test]
async fn a_document_has_so_many_levels_at_most() {
    let mut deep = json!({});
    for _ in 0..80 {
        deep = json!({ "a": deep });
    }
    let inner = "/a".repeat(80);
    let add = |path: String| json!([{ "op": "add", "path": path, "value": deep.clone() }]);
    let mut lines = chat_and(&[turn(), add("/turns/0/a".into())]);
    assert!(imported(&sealed(&lines)).await.is_ok());
    lines.push(line("chat:s", 3, "patch", add(format!("/turns/0/a{inner}/b"))));
    let error = imported(&sealed(&lines)).await.err().unwrap();
    assert!(error.to_string().contains("levels deep"), "{error}");
    // A hundred thousand levels in one line end no process either.
    let text = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let bytes = String::from_utf8(sealed(&chat_and(&[])))
        .unwrap()
        .replace("\"turns\":[]", &format!("\"turns\":{text}"));
    assert!(imported(bytes.as_bytes()).await.is_err());
}

/// Removing the first of many elements again and again takes the square of their number.
#[tokio::test]
async fn patches_take_a_bounded_time() {
    let many = vec![json!({}); 100_000];
    let mut operations = vec![json!({ "op": "replace", "path": "/turns", "value": many })];
    operations.extend((0..100_000).map(|_| json!({ "op": "remove", "path": "/turns/0" })));
    let start = Instant::now();
    let error = imported(&sealed(&chat_and(&[Value::Array(operations)]))).await.err().unwrap();
    assert!(error.to_string().contains("too long"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// A long session is checked and compared in a time that follows its length.
#[tokio::test]
async fn a_long_history_is_imported_in_proportion() {
    let store = MemoryStore::new();
    let put = |writes| store.transact(Transaction { writes, expected: Vec::new() });
    put(vec![Write::put(Document::chat(&session()))]).await.unwrap();
    for n in 1..=4_000 {
        let patch = json!([{ "op": "add", "path": "/turns/-", "value": { "user": "a question ".repeat(20), "n": n } },
                           { "op": "replace", "path": "/turn_count", "value": n }]);
        let patch = serde_json::from_value(patch).unwrap();
        put(vec![Write::patch(ObjectId::chat(&session()), patch)]).await.unwrap();
    }
    let mut bytes = Vec::new();
    export(&*store, &all_objects(&*store).await.unwrap(), &mut bytes).await.unwrap();
    let start = Instant::now();
    assert_eq!(import(&mut Cursor::new(&bytes), &*store).await.unwrap().written, 0);
    // It took minutes: each version was put together and hashed as a whole.
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

/// A contradiction to the store's versions is found before the first write.
#[tokio::test]
async fn a_conflict_at_the_end_changes_nothing() {
    let store = MemoryStore::new();
    let writes = vec![Write::put(Document::system_prompt(&session(), "mine"))];
    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
    let mut lines: Vec<Value> = (0..300).map(|n| whole(0, &call(&format!("call_{n}")))).collect();
    lines.push(whole(0, &Document::system_prompt(&session(), "theirs")));
    let error = import(&mut Cursor::new(sealed(&lines)), &*store).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    assert_eq!(store.latest_tx().await.unwrap(), TxId(1));
}

/// A file that never ends a line.
struct Endless;

impl Read for Endless {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        bytes.fill(b'x');
        Ok(bytes.len())
    }
}

impl Seek for Endless {
    fn seek(&mut self, _: SeekFrom) -> std::io::Result<u64> {
        Ok(0)
    }
}

#[tokio::test]
async fn a_line_without_end_is_refused() {
    let error =
        import(&mut BufReader::with_capacity(1 << 20, Endless), &*MemoryStore::new()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert!(error.to_string().contains("line 1 of the export file: the line is too long"), "{error}");
}

/// A time that no clock shows is moved to one that can be written.
#[tokio::test]
async fn times_beyond_all_measure_are_kept_readable() {
    let mut far = whole(0, &call("c"));
    far["valid_time"] = json!("-001000-01-01T00:00:00Z");
    let store = imported(&sealed(&[far])).await.unwrap();
    let version = store.get(&ObjectId::new("c"), AsOf::default()).await.unwrap().unwrap();
    assert!(version.valid_time <= Timestamp::from_millis(0));
    assert!(version.valid_time.to_string().parse::<Timestamp>().is_ok());
}
