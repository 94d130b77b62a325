//! The text that is planted in a store before something is erased, and the places where tests look for it.

use crate::rig::Node;
use crate::rig::objects::write;
use crate::secrets::{call, file};
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::patch::Patch;
use context_model::time::Timestamp;
use context_store::{Filter, Store, Version, Write};
use serde_json::json;
use std::path::Path;

pub const SECRET: &str = "sk-0123456789abcdef0123456789";

/// Number of unrelated files.
pub const KEPT: usize = 20;

pub fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub fn turn(n: usize, said: &str) -> Patch {
    let mut patch = Patch::new();
    patch.append(&["turns"], json!({ "user": said, "toolcall_ids": [] }));
    patch.set(&["turn_count"], json!(n));
    patch
}

/// Long enough that most versions of the chat are stored as changes.
pub fn question(n: usize) -> String {
    format!("question {n}, {}", "said at length ".repeat(40))
}

/// A version that is written with this valid time.
pub fn at(document: Document, millis: i64) -> Write {
    Write::Put { document, valid_time: Some(Timestamp::from_millis(millis)) }
}

/// A database with the secret in files, arguments, an output, and a chat whose versions are mostly changes of others; with
/// two versions of one millisecond, and one that is dated back.
pub async fn plant(store: &dyn Store) {
    let chat = ObjectId::chat(&session("s"));
    write(store, vec![Write::put(Document::chat(&session("s")))]).await;
    for n in 1..=30 {
        let said = if n == 12 { format!("the key is {SECRET}, use it") } else { question(n) };
        write(store, vec![Write::patch(chat.clone(), turn(n, &said))]).await;
    }
    for (text, millis) in [
        ("one", 1_000),
        (&*format!("two {SECRET}"), 2_000),
        ("three", 2_000),
        ("four", 4_000),
        ("back", 500),
        (&*format!("five {SECRET}"), 5_000),
    ] {
        write(store, vec![at(file("/versions", text), millis)]).await;
    }
    write(store, vec![Write::put(file("/copy", &format!("two {SECRET}")))]).await;
    write(store, vec![Write::put(call("c1", &format!("curl -H '{SECRET}'"), "ok, done"))]).await;
    write(store, vec![Write::put(call("c2", "env", &format!("KEY={SECRET}\n")))]).await;
    let kept = (0..KEPT).map(|n| Write::put(file(&format!("/kept/{n}"), &format!("nothing to hide {n}"))));
    write(store, kept.collect()).await;
}

pub async fn all(store: &dyn Store) -> Vec<(ObjectId, Vec<Version>)> {
    let mut all = Vec::new();
    for id in store.query(&Filter::default()).await.unwrap() {
        all.push((id.clone(), store.history(&id).await.unwrap()));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// A version without its transaction, and whether something in it was erased.
pub type Shape = (Document, Timestamp, bool);

/// The versions without their places in XTDB, which are new ones.
pub fn shapes(all: &[(ObjectId, Vec<Version>)]) -> Vec<(ObjectId, Vec<Shape>)> {
    let shape = |v: &Version| (v.document.clone(), v.valid_time, v.erased.is_some());
    all.iter().map(|(id, versions)| (id.clone(), versions.iter().map(shape).collect())).collect()
}

/// Returns a node's answer to a request.
pub async fn asked(node: &Node, path: &str) -> String {
    crate::ask::ask(&format!("{}/_xtdb/{path}", node.url()), &[("accept", "application/json")], None).await.1
}

/// Number of times that a text occurs in the node's raw answers: the whole log with its documents, all documents that a
/// query finds, and the history of each object.
pub async fn in_answers(node: &Node, ids: &[ObjectId], text: &str) -> usize {
    let mut answers = asked(node, "tx-log?with-ops%3F=true").await;
    assert!(answers.contains("txOps"), "{answers}");
    answers += &asked(node, "query?query-edn=%7B%3Afind%20%5B%28pull%20e%20%5B%2A%5D%29%5D%20%3Awhere%20%5B%5Be%20%3Axt%2Fid%5D%5D%7D").await;
    for id in ids {
        let id: String = id.as_str().bytes().map(|byte| format!("%{byte:02X}")).collect();
        let history = "history=true&sort-order=asc&with-docs=true&with-corrections=true";
        answers += &asked(node, &format!("entity?eid={id}&{history}")).await;
        answers += &asked(node, &format!("entity?eid={id}")).await;
    }
    answers.matches(text).count()
}

/// In how many files below a folder a text stands.
pub fn in_files(place: &Path, text: &str) -> usize {
    let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => in_files(&path, text),
            false => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                usize::from(bytes.windows(text.len()).any(|window| window == text.as_bytes()))
            }
        })
        .sum()
}

pub fn documents_left(log: &str) -> usize {
    ["context/erasing", "context/part"].iter().map(|name| log.matches(name).count()).sum()
}
