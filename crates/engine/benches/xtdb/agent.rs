//! A session that takes turns, and others that write elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use context_engine::{Call, Engine, IncomingMessage, Options};
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, Toolcall};
use context_model::patch::Patch;
use context_model::session::Sets;
use context_model::source::FilesystemSource;
use context_projection::Prices;
use context_store::{Store, Transaction, Write};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};
use serde_json::{Map, json};

use crate::figure::Words;

/// The number of files that a session works on.
const FILES: usize = 20;

/// A session on a separate machine: with its own journal and its own namespace of files.
pub struct Agent {
    name: String,
    work: PathBuf,
    store: Arc<QueuedStore>,
    engine: Engine,
    words: Words,
    turns: usize,
}

impl Agent {
    pub async fn open(root: &Path, number: usize, url: &str) -> Self {
        let name = format!("agent-{number}");
        let (work, journal) = (root.join(&name).join("work"), root.join(&name).join("journal.db"));
        fs::create_dir_all(&work).unwrap();
        let options = QueueOptions {
            close_timeout_ms: 60_000,
            ..QueueOptions::new(journal, XtdbOptions { timeout_ms: 30_000, ..XtdbOptions::new([url]) })
        };
        let store = QueuedStore::open(options).await.unwrap();
        let shared = Arc::clone(&store) as Arc<dyn Store>;
        let session = SessionId::new(name.as_str()).unwrap();
        let options = Options::new(session, work.to_str().unwrap(), shared);
        let options = Options { watch: false, filesystem_id: Some(machine(number)), ..options };
        let engine = Engine::open(options).await.unwrap();
        Self { name, work, store, engine, words: Words(number as u64), turns: 0 }
    }

    /// One turn: the model has called a tool that read a file, or, in every second turn, wrote one. About 2 kB of output,
    /// files of 4 kB, and every tenth turn begins with a prompt.
    pub async fn turn(&mut self) {
        let n = self.turns;
        self.turns += 1;
        let path = self.work.join(format!("{}.rs", (n / 2) % FILES));
        if n.is_multiple_of(2) {
            fs::write(&path, self.words.text(4_000)).unwrap();
        }
        let bytes = fs::read(&path).unwrap();
        let (path, call_id) = (path.to_str().unwrap(), format!("{}-call-{n}", self.name));
        self.engine.index_file(path, Some(bytes), Some(&call_id)).await.unwrap();
        let (tool, output) = ("bash", self.words.text(2_000));
        let args = Map::from_iter([("command".to_owned(), json!(format!("make part-{n}")))]);
        let born = self.engine.receive(Toolcall::new(call_id.clone(), tool, args.clone(), output.clone()));
        let header = born.await.unwrap().header.unwrap_or_default();
        let text = format!("{header}\n{output}");
        let now = 1_700_000_000_000 + n as i64 * 2_000;
        let begins = n.is_multiple_of(10);
        let prompt = begins
            .then(|| json!({ "role": "user", "content": format!("continue with {n}"), "timestamp": now }));
        let answer = json!({
            "role": "assistant", "timestamp": now, "stopReason": "toolUse", "model": "m",
            "content": [
                { "type": "text", "text": self.words.text(120) },
                { "type": "toolCall", "id": call_id, "name": tool, "arguments": args },
            ],
        });
        let result = json!({
            "role": "toolResult", "toolCallId": call_id, "toolName": tool, "isError": false, "timestamp": now,
            "content": [{ "type": "text", "text": text }],
        });
        let messages = prompt.into_iter().chain([answer, result]).enumerate();
        let incoming = messages
            .map(|(place, message)| IncomingMessage { key: format!("{n}-{place}"), message })
            .collect();
        let call = Call {
            model: "m".into(),
            prices: Prices::new(0.1, 1.25),
            cache_ttl_ms: 300_000,
            now_ms: now,
            system_tokens: 1_000,
            at_user_turn: begins,
            rolls: true,
            shortens: true,
            ..Call::default()
        };
        self.engine.advance(incoming, &call).await.unwrap();
        self.engine.settle().await.unwrap();
    }

    /// Waits until the database has everything.
    pub async fn flush(&self) {
        self.store.flush().await.unwrap();
    }

    pub async fn close(self) {
        self.engine.close().await.unwrap();
        self.store.close().await.unwrap();
    }
}

/// The namespace of a machine's files.
fn machine(number: usize) -> String {
    format!("machine-{number}")
}

/// Sessions of other machines, each of which writes a turn now and then, without what a process does besides.
pub struct Others {
    stores: Vec<Arc<XtdbStore>>,
    words: Words,
    /// The number of turns that they have taken.
    pub made: usize,
}

/// The number, among a hundred of their turns, that are in the namespace of the first agent's files.
const HERE: usize = 5;

impl Others {
    pub async fn connect(url: &str) -> Self {
        let mut stores = Vec::new();
        for _ in 0..8 {
            stores.push(
                XtdbStore::connect(XtdbOptions { timeout_ms: 30_000, ..XtdbOptions::new([url]) })
                    .await
                    .unwrap(),
            );
        }
        Self { stores, words: Words(7), made: 0 }
    }

    /// So many turns of different sessions, 95 of 100 on other machines.
    pub async fn write(&mut self, count: usize) {
        let mut shares: Vec<Vec<Vec<Write>>> = vec![Vec::new(); self.stores.len()];
        for _ in 0..count {
            let made = self.made;
            self.made += 1;
            // The same store always, so that a session has one writer.
            let share = made % self.stores.len();
            shares[share].push(turn_of(made, share, &mut self.words));
        }
        let writing = self.stores.iter().zip(shares).map(|(store, share)| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                for writes in share {
                    store.transact(Transaction { writes, expected: Vec::new() }).await.unwrap();
                }
            })
        });
        for one in writing.collect::<Vec<_>>() {
            one.await.unwrap();
        }
    }
}

/// A turn of another session: a tool call, a file, the chat and the session.
fn turn_of(made: usize, share: usize, words: &mut Words) -> Vec<Write> {
    let session = SessionId::new(format!("other-{share}-{}", made / 2_000)).unwrap();
    let (chat, wrapper) = (ObjectId::chat(&session), ObjectId::session(&session));
    let call = ObjectId::new(format!("other-call-{made}"));
    let toolcall = Toolcall::new(
        call.as_str(),
        "bash",
        Map::from_iter([("command".to_owned(), json!("make test"))]),
        words.text(2_000),
    );
    let filesystem_id = if made % 100 < HERE { machine(0) } else { machine(made % 900 + 100) };
    let path = format!("/src/{}.rs", made % 1_000);
    let content = words.text(4_000);
    let hash = Digest::of(content.as_bytes());
    let file = Document::file(FilesystemSource { filesystem_id, path }, Some(content), Some(hash));
    let mut writes = vec![Write::put(Document::toolcall(call.clone(), &chat, toolcall)), Write::put(file)];
    if made % 2_000 == share {
        writes.push(Write::put(Document::chat(&session)));
        writes.push(Write::put(Sets::default().document(&session)));
    } else {
        let mut of_chat = Patch::new();
        of_chat.append(&["turns"], json!({ "user": "next.", "assistant": "done", "toolcall_ids": [call] }));
        of_chat.set(&["turn_count"], json!(made));
        let mut of_session = Patch::new();
        of_session.append(&["session_index"], json!(call));
        writes.push(Write::patch(chat, of_chat));
        writes.push(Write::patch(wrapper, of_session));
    }
    writes
}
