//! A store of an older schema is brought into its new form while it is used: killed at any moment it goes on, and nothing
//! is lost.

use std::collections::BTreeMap;
use std::path::Path;

use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, Status, Toolcall};
use context_store::{Filter, Search, Store, Version};
use context_store_sqlite::{Durability, SqliteStore};
use serde_json::json;

use super::older_schema::Older;
use super::worker::{self, OLDER, Said, Worker};
use super::{chat, file, not_run, runtime, sized, works};

/// Lines that differ, so that compressing them takes something.
fn source(path: usize, edits: usize) -> String {
    let line = |n: usize| {
        let edited =
            (1..=edits).rev().find(|edit| (n * 31 + edit * 17 + path).is_multiple_of(97)).unwrap_or(0);
        format!("    let value_{n} = compute_{}({}, {edited});\n", n * path % 13, n * 2_654_435_761 % 100_003)
    };
    (0..200).map(line).collect()
}

/// Files with many versions, calls with long arguments, and a chat.
fn write(path: &Path) {
    let mut older = Older::new(path);
    older.put(&chat("s"));
    for n in 0..160 {
        older.put(&file("w", &format!("{}", n % 10), &source(n % 10, n / 10)));
        if n % 4 == 0 {
            let text = source(n, 3);
            let args = json!({ "path": format!("/w/{n}"), "content": text });
            let call = Toolcall {
                content: format!("written {n}"),
                tool: "write".into(),
                args: args.as_object().unwrap().clone(),
                args_display: None,
                status: Status::Ok,
                chat_ref: ObjectId::chat(&SessionId::new("s").unwrap()),
                file_refs: Vec::new(),
                parent: None,
            };
            older.put(&Document::toolcall(ObjectId::new(format!("call_{n}")), call));
            older.turn("s", &format!("question {n} {}", &text[..400]));
        }
    }
    older.finish();
}

/// Everything that a store holds.
async fn all(store: &SqliteStore) -> BTreeMap<ObjectId, Vec<Version>> {
    let mut all = BTreeMap::new();
    for id in store.query(&Filter::default()).await.unwrap() {
        all.insert(id.clone(), store.history(&id).await.unwrap());
    }
    all
}

fn opened<T>(path: &Path, look: impl AsyncFnOnce(&SqliteStore) -> T) -> T {
    runtime().block_on(async {
        let store = SqliteStore::open(path, Durability::Power).unwrap();
        let seen = look(&store).await;
        store.close().await.unwrap();
        seen
    })
}

/// How many texts and payloads are still in their old form.
fn old_forms(path: &Path) -> (i64, i64) {
    let store = rusqlite::Connection::open(path).unwrap();
    let count = |sql| store.query_row(sql, [], |row| row.get(0)).unwrap();
    (
        count(
            "SELECT count(*) FROM contents WHERE root IS NULL AND content IN (SELECT content FROM versions)",
        ),
        count(
            "SELECT count(*) FROM versions WHERE packed IS NULL AND length(body) + coalesce(length(patch), 0) > 200",
        ),
    )
}

#[test]
fn an_older_store_is_brought_into_its_new_form_and_killed_on_the_way() {
    if !works("strace", &["-qq", "-e", "trace=none", "true"]) {
        return not_run("an older store, killed on the way", "strace does not work here");
    }
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original.db");
    write(&original);
    let bytes = std::fs::metadata(&original).unwrap().len();
    let path = place.path().join("store.db");
    std::fs::copy(&original, &path).unwrap();
    // What the file said before anything of it had its new form.
    let truth = opened(&path, async |store| all(store).await);
    assert_eq!(truth.len(), 10 + 40 + 1);
    let mut kills = 0;
    for (call, step) in [("pwrite64", sized(300, 60, 5)), ("fdatasync", sized(6, 1, 1)), ("ftruncate", 1)] {
        for n in (1..).step_by(step) {
            std::fs::copy(&original, &path).unwrap();
            for beside in ["-wal", "-shm"] {
                let _ = std::fs::remove_file(place.path().join(format!("store.db{beside}")));
            }
            let inject = format!("inject={call}:signal=KILL:when={n}");
            let trace = format!("trace={call}");
            let arguments = ["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
            let said = Worker::start(worker::below("strace", &arguments, &path, OLDER, 1)).finish();
            let is_done = said.last() == Some(&Said::End);
            kills += usize::from(!is_done);
            opened(&path, async |store| {
                assert!(all(store).await == truth, "{call} {n}: something was lost");
                store.flush().await.unwrap();
                assert!(all(store).await == truth, "{call} {n}: something was lost when it went on");
                assert_eq!(store.verify().await.unwrap(), []);
                let query =
                    Search { text: "value_199".into(), limit: 1_000, object_type: None, within: None };
                assert_eq!(store.search(&query).await.unwrap().len(), 160, "{call} {n}");
            });
            assert_eq!(old_forms(&path), (0, 0), "{call} {n}");
            if is_done {
                break;
            }
        }
    }
    let store = rusqlite::Connection::open(&path).unwrap();
    store.execute_batch("VACUUM").unwrap();
    drop(store);
    let now = std::fs::metadata(&path).unwrap().len();
    eprintln!("an older store: {kills} kills, none lost; {bytes} bytes before, {now} after");
    assert!(kills >= 4 && now * 3 < bytes, "{kills} kills, {now} of {bytes} bytes");
}
