//! Secrets in all places of a store, and where they are found.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, Toolcall};
use context_model::patch::Patch;
pub use context_store::conformance::given::{file, write};
use context_store::{Erase, Search, Store, Write, transfer};
use context_store_sqlite::{Durability, SqliteStore};
use serde_json::json;

pub const SECRETS: usize = 1_000;

/// A secret that can't be compressed, so that it stands in the file as it is or not at all.
pub fn secret(n: usize) -> String {
    let digest = Digest::of(format!("secret {n}").as_bytes()).to_string();
    format!("sk-{}", &digest[..32])
}

/// All of them, to be forgotten.
pub fn all() -> Vec<Erase> {
    (0..SECRETS).map(|n| Erase::Text(secret(n))).collect()
}

pub fn call(id: &str, command: &str, output: &str) -> Document {
    let args = json!({ "command": command });
    let call = Toolcall {
        args_display: Some(command.into()),
        ..Toolcall::new(id, "bash", args.as_object().unwrap().clone(), output)
    };
    Document::toolcall(ObjectId::new(id), &ObjectId::chat(&SessionId::new("s").unwrap()), call)
}

pub fn open(path: &Path) -> Arc<SqliteStore> {
    SqliteStore::open(path, Durability::Process).unwrap()
}

/// Secrets in all places: short and long texts, versions of a file, arguments, a chat, and a text of 300 lines.
pub async fn plant(store: &SqliteStore) {
    let chat = Document::chat(&SessionId::new("s").unwrap());
    write(store, vec![Write::put(chat.clone())]).await;
    let lines: String = (0..300).map(|n| format!("let value_{n} = {};\n", n * 7_919 % 1_000)).collect();
    for n in 0..SECRETS {
        let secret = secret(n);
        let writes = match n % 5 {
            0 => vec![Write::put(file(&format!("/short/{n}"), &format!("key = {secret}\n")))],
            1 => vec![Write::put(file("/versions", &format!("{lines}key_{n} = {secret}\n")))],
            2 => vec![Write::put(call(&format!("c{n}"), &format!("export KEY='{secret}' \"x\""), "done"))],
            3 => {
                let long = format!("{secret} {}", "said at length ".repeat(40));
                let mut turn = Patch::new();
                turn.append(&["turns"], json!({ "user": long, "answer": secret, "toolcall_ids": [] }));
                vec![Write::patch(chat.id().clone(), turn)]
            }
            _ => vec![Write::put(call(&format!("c{n}"), "env", &format!("{lines}{secret}")))],
        };
        write(store, writes).await;
    }
    store.flush().await.unwrap();
}

/// Number of the secrets in these bytes. The index may have the beginning of a word only once for several words, so their
/// ends are looked for.
pub fn secrets_in(bytes: &[u8]) -> usize {
    let ends: Vec<String> = (0..SECRETS).map(|n| secret(n)[15..].to_owned()).collect();
    let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(ends).unwrap();
    let found: HashSet<_> = finder.find_overlapping_iter(bytes).map(|found| found.pattern()).collect();
    found.len()
}

/// Number of the secrets in the files of a store.
pub fn in_files(place: &Path) -> usize {
    let paths = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = paths.filter(|path| path.is_file()).collect();
    files.iter().map(|path| secrets_in(&std::fs::read(path).unwrap())).sum()
}

/// Number of the secrets that a reader finds: in all versions, and by searching.
pub async fn readable(store: &SqliteStore) -> usize {
    let ids = transfer::all_objects(store).await.unwrap();
    let mut export = Vec::new();
    transfer::export(store, &ids, &mut export).await.unwrap();
    let mut found = secrets_in(&export);
    for n in (0..SECRETS).step_by(50) {
        let query = Search { text: secret(n), limit: 3, object_type: None, within: None };
        found += store.search(&query).await.unwrap().len();
    }
    found
}
