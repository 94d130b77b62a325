//! A directory of the agent's, a store beside it, and engines on both.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use context_engine::{Engine, Options, SessionSets, Wanted};
use context_model::error::ErrorCode;
use context_model::id::{ObjectId, SessionId};
use context_model::mounts::MountMapping;
use context_model::object::{Document, Toolcall};
use context_store::memory::MemoryStore;
use context_store::{AsOf, Store};
use context_store_sqlite::{Durability, SqliteStore};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The namespace of the files in tests, so that IDs do not depend on the machine.
pub const FILESYSTEM: &str = "test-filesystem";

/// The limit for events that must happen, even on a loaded machine. Reaching it fails the test.
pub const GENEROUS: Duration = Duration::from_secs(120);

/// The store that a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Memory,
    Sqlite,
}

pub struct Bench {
    directory: TempDir,
    backend: Backend,
    pub store: Arc<dyn Store>,
}

impl Bench {
    pub fn new(backend: Backend) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        let store = open(backend, directory.path());
        Self { directory, backend, store }
    }

    /// Another connection to the same store, as another process would have it.
    pub fn second_store(&self) -> Arc<dyn Store> {
        match self.backend {
            Backend::Memory => Arc::clone(&self.store),
            Backend::Sqlite => open(self.backend, self.directory.path()),
        }
    }

    /// Ends the store and opens it again, as a new process would. What is in memory stays as it is.
    pub async fn restart(&mut self) {
        if self.backend == Backend::Sqlite {
            self.store.close().await.unwrap();
            self.store = open(self.backend, self.directory.path());
        }
    }

    /// The directory above the agent's, with no symbolic link in it.
    pub fn outside(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    /// The agent's directory, with no symbolic link in it.
    pub fn root(&self) -> PathBuf {
        self.outside().join("work")
    }

    /// The file of the SQLite store.
    pub fn database(&self) -> PathBuf {
        database(self.directory.path())
    }

    pub fn path(&self, name: &str) -> String {
        let path = self.root().join(name).into_os_string().into_string().unwrap();
        // As the agent is shown it: on Windows the canonical path is a verbatim one.
        if cfg!(windows) { context_model::path::absolute(&path).unwrap() } else { path }
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Never empty in between, which a tracker may see: it would be another version of the file.
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).unwrap();
        file.write_all(bytes.as_ref()).unwrap();
        file.set_len(bytes.as_ref().len() as u64).unwrap();
        self.path(name)
    }

    /// A mount of a folder at `/workspace`.
    pub fn mounted(&self, name: &str) -> MountMapping {
        MountMapping {
            agent_prefix: "/workspace".into(),
            canonical_prefix: self.path(name),
            filesystem_id: FILESYSTEM.into(),
        }
    }

    pub fn options(&self, session: &str) -> Options {
        Options {
            filesystem_id: Some(FILESYSTEM.into()),
            watch: false,
            ..Options::new(SessionId::new(session).unwrap(), self.path(""), Arc::clone(&self.store))
        }
    }

    pub async fn open(&self, session: &str) -> Engine {
        Engine::open(self.options(session)).await.unwrap()
    }

    pub async fn watching(&self, session: &str) -> Engine {
        Engine::open(Options { watch: true, ..self.options(session) }).await.unwrap()
    }

    pub async fn latest_tx(&self) -> u64 {
        self.store.latest_tx().await.unwrap().0
    }

    pub async fn versions(&self, id: &ObjectId) -> Vec<Document> {
        self.store.history(id).await.unwrap().into_iter().map(|version| version.document).collect()
    }

    /// The contents of all versions, oldest first.
    pub async fn contents(&self, id: &ObjectId) -> Vec<Option<String>> {
        self.versions(id).await.iter().map(|d| d.content().map(str::to_owned)).collect()
    }

    pub async fn latest(&self, id: &ObjectId) -> Option<Document> {
        self.store.get(id, AsOf::default()).await.unwrap().map(|version| version.document)
    }
}

/// A bench, and a session on it.
pub async fn session(backend: Backend) -> (Bench, Engine) {
    let bench = Bench::new(backend);
    let engine = bench.open("s").await;
    (bench, engine)
}

/// A bench, and a session on it that watches its files.
pub async fn watching(backend: Backend) -> (Bench, Engine) {
    let bench = Bench::new(backend);
    let engine = bench.watching("s").await;
    (bench, engine)
}

fn open(backend: Backend, directory: &Path) -> Arc<dyn Store> {
    match backend {
        Backend::Memory => MemoryStore::new(),
        Backend::Sqlite => SqliteStore::open(database(directory), Durability::Process).unwrap(),
    }
}

fn database(directory: &Path) -> PathBuf {
    directory.join("store/context.db")
}

/// A tool call of a tool that the engine does not look into.
pub fn call(id: &str, content: &str) -> Toolcall {
    Toolcall::new(id, "custom", serde_json::Map::new(), content)
}

pub fn tool(id: &str, tool: &str, args: Value, content: &str) -> Toolcall {
    Toolcall { tool: tool.into(), args: args.as_object().unwrap().clone(), ..call(id, content) }
}

pub fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub fn answer(text: &str) -> Value {
    json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] })
}

/// A search for words, in one session or in the whole store.
pub fn search(text: &str, session: Option<&str>) -> Wanted {
    Wanted { text: text.into(), limit: 10, object_type: None, session_id: session.map(str::to_owned) }
}

/// Says that a test could not be run on this machine.
pub fn not_run(why: &str) {
    say(&format!("not run: {why}"));
}

/// Says something past the capture of a test's output.
pub fn say(what: &str) {
    std::io::stderr().write_all(format!("{what}\n").as_bytes()).unwrap();
}

/// An error with this code, and nothing written or changed by the attempt.
pub async fn refused<T: std::fmt::Debug>(
    bench: &Bench,
    engine: &Engine,
    code: ErrorCode,
    attempt: impl Future<Output = context_engine::Result<T>>,
) -> String {
    let before = (bench.latest_tx().await, engine.session_sets().await.unwrap());
    let error = attempt.await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert_eq!((bench.latest_tx().await, engine.session_sets().await.unwrap()), before);
    error.to_string()
}

pub fn ids<const N: usize>(names: [&str; N]) -> Vec<ObjectId> {
    names.into_iter().map(ObjectId::new).collect()
}

/// The invariants of the specification, and that no infrastructure object is in any set.
pub fn check(sets: &SessionSets) {
    let within = |inner: &[ObjectId], outer: &[ObjectId]| inner.iter().all(|id| outer.contains(id));
    assert!(within(&sets.active_set, &sets.metadata_pool));
    assert!(within(&sets.metadata_pool, &sets.session_index));
    assert!(within(&sets.pinned_set, &sets.session_index));
    for id in &sets.session_index {
        assert!(!["chat:", "system_prompt:", "session:"].iter().any(|p| id.as_str().starts_with(p)), "{id}");
    }
}
