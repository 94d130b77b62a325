//! The world outside the clients: the files, which change by themselves, and the store behind all of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use context_engine::{DEFAULT_NAMED_TEXT_BYTES, Options};
use context_model::id::SessionId;
use context_store::memory::MemoryStore;
use context_store::{Store, StoreError};
use context_store_sqlite::{Durability, SqliteStore};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions};

use crate::knowledge::Knowledge;
use crate::node::{Node, Port};
use crate::place::{Shape, remove};
use crate::steps::{Backend, Change, Schedule};
use crate::violation::{Kind, Outcome, violation};
use crate::wire::Wire;

/// The namespace of the files.
pub const FILESYSTEM: &str = "belief";

/// A text, or none where the file does not exist.
pub type Content = Option<Arc<str>>;

pub struct World {
    root: PathBuf,
    backend: Backend,
    /// A connection to the store that never fails, for looking at what is there; on XTDB the first machine's.
    pub store: Arc<dyn Store>,
    machines: Vec<Machine>,
    node: Arc<Node>,
    pub files: Vec<File>,
    /// The number of texts made so far, which keeps each of them different.
    made: usize,
    named_text_bytes: u64,
    /// Harnesses make edits without asking first.
    pub unguarded: bool,
}

/// A machine with a separate journal.
struct Machine {
    store: Arc<QueuedStore>,
    port: Port,
}

pub struct File {
    pub name: String,
    pub path: String,
    pub shape: Shape,
    /// The contents on the disk, one after the other; the last is there now.
    pub past: Vec<Content>,
}

impl World {
    /// A new world in a directory, which is emptied before.
    pub async fn new(root: &Path, schedule: &Schedule) -> Self {
        for name in ["work", "store"] {
            let directory = root.join(name);
            if directory.exists() {
                std::fs::remove_dir_all(&directory).unwrap();
            }
            std::fs::create_dir(&directory).unwrap();
        }
        let node = Arc::<Node>::default();
        let mut machines = Vec::new();
        let count = if schedule.backend == Backend::Xtdb { 2 } else { 0 };
        for number in 0..count {
            machines.push(Machine::new(&root.join(format!("store/journal{number}.db")), &node).await);
        }
        let store: Arc<dyn Store> = match machines.first() {
            Some(machine) => Arc::<QueuedStore>::clone(&machine.store) as Arc<dyn Store>,
            None => opened(schedule.backend, root),
        };
        let mut world = Self {
            root: root.to_owned(),
            backend: schedule.backend,
            store,
            machines,
            node,
            files: Vec::new(),
            made: 0,
            unguarded: schedule.unguarded,
            // In half of the worlds, two of four files are larger than what is stored of a file that was only named.
            named_text_bytes: if schedule.seed & 8 == 0 { DEFAULT_NAMED_TEXT_BYTES } else { 1_000 },
        };
        for number in 0..schedule.files {
            let shape = Shape::of(number, schedule.seed, schedule.links);
            let name = shape.name(number);
            let path = world.directory().join(&name).to_str().unwrap().to_owned();
            world.files.push(File { name, path, shape, past: Vec::new() });
            let lines = [12, 40, 3, 60][(number + schedule.seed as usize) % 4];
            let text = world.text(number, lines);
            world.place(number, text);
        }
        world
    }

    pub fn directory(&self) -> PathBuf {
        self.root.join("work")
    }

    /// A connection to the store, as another process would have its own, on one of the machines.
    pub fn connection(&self, machine: usize) -> Arc<dyn Store> {
        match self.backend {
            Backend::Memory => Arc::clone(&self.store),
            Backend::Sqlite => opened(self.backend, &self.root),
            Backend::Xtdb => Arc::<QueuedStore>::clone(&self.machines[machine % self.machines.len()].store)
                as Arc<dyn Store>,
        }
    }

    /// Returns the port between a machine and the database, if there is one.
    pub fn port(&self, machine: usize) -> Option<&Port> {
        self.machines.get(machine % self.machines.len().max(1)).map(|machine| &machine.port)
    }

    /// Waits until the database has what a machine has written. The node is there.
    pub async fn sent(&self, machine: usize) -> Outcome {
        let Some(Machine { store, .. }) = self.machines.get(machine % self.machines.len().max(1)) else {
            return Ok(());
        };
        let mut last = Ok(());
        for _ in 0..10 {
            last = store.flush().await;
            if last.is_ok() {
                return Ok(());
            }
        }
        violation(Kind::Lost, format!("what a machine has queued is not sent: {last:?}"))
    }

    /// Returns what the database has of a file; `None` where it has nothing.
    pub fn shared(&self, file: usize) -> Option<Content> {
        let document = self.node.latest(self.id(file).as_str())?;
        Some(document["content"].as_str().map(Into::into))
    }

    pub fn is_shared(&self) -> bool {
        self.backend == Backend::Xtdb
    }

    pub fn options(&self, session: &str, store: Arc<dyn Store>, wire: &Arc<Wire>) -> Options {
        let options = Options {
            filesystem_id: Some(FILESYSTEM.into()),
            watch: false,
            named_text_bytes: self.named_text_bytes,
            ..Options::new(SessionId::new(session).unwrap(), self.directory().to_str().unwrap(), store)
        };
        tracked(options, wire)
    }

    /// A text that no file has had before.
    pub fn text(&mut self, file: usize, lines: usize) -> String {
        self.made += 1;
        let made = self.made;
        (1..=lines).map(|line| format!("file {file} text {made} line {line} lorem ipsum dolor\n")).collect()
    }

    /// A line that no file has had before, without its end.
    pub fn line(&mut self, file: usize) -> String {
        self.made += 1;
        format!("file {file} line {} of its own", self.made)
    }

    pub fn number(&self, file: usize) -> usize {
        file % self.files.len()
    }

    /// Returns what is on the disk now.
    pub fn now(&self, file: usize) -> Content {
        self.files[file].past.last().cloned().flatten()
    }

    /// Writes a file, or removes it. `false` where it is so already.
    pub fn put(&mut self, file: usize, text: Option<String>) -> bool {
        let new: Content = text.map(Into::into);
        if self.files[file].past.last() == Some(&new) {
            return false;
        }
        let path = PathBuf::from(&self.files[file].path);
        match &new {
            Some(text) => {
                self.clear(&path);
                std::fs::write(&path, text.as_bytes()).unwrap();
            }
            None => remove(&path),
        }
        self.files[file].past.push(new);
        true
    }

    /// Returns the texts that a file had and that have the parts in sight: once the process that read them has ended, it is
    /// undetermined which of these it was, and what the result of an edit has reported.
    pub fn alike(&self, file: usize, knowledge: &Knowledge, recovered: bool) -> Vec<Arc<str>> {
        let past = self.files[file].past.iter().filter(|_| recovered).flatten();
        let alike = past.filter(|text| knowledge.fragments.iter().any(|part| part.is_as_in(Some(text))));
        alike.chain(knowledge.untold.iter().filter(|_| recovered)).cloned().collect()
    }

    /// True if the model knows a text that was never stored.
    pub async fn was_lost(&self, file: usize, known: &Content) -> bool {
        let Some(known) = known else { return false };
        !self.stored(file).await.contains(known)
    }

    /// The stored texts that one which was never stored is taken for once its message is read again: those that it begins
    /// with, and those that begin with it.
    pub async fn taken_for(&self, file: usize, known: &Content) -> Vec<Arc<str>> {
        let Some(known) = known else { return Vec::new() };
        let mut stored = self.stored(file).await;
        if stored.contains(known) {
            return Vec::new();
        }
        stored.retain(|text| known.starts_with(&**text) || text.starts_with(&**known));
        stored
    }

    /// The texts of all versions of a file.
    pub async fn stored(&self, file: usize) -> Vec<Arc<str>> {
        let mut texts = Vec::new();
        for id in self.ids(file) {
            let versions = self.store.history(&id).await.unwrap();
            texts.extend(versions.iter().filter_map(|version| version.document.content().map(Into::into)));
        }
        texts
    }

    /// A file changes by itself. `false` where nothing changed.
    pub fn change(&mut self, file: usize, change: Change) -> bool {
        let now = self.now(file).map(|text| text.to_string());
        let text = match (change, now) {
            (Change::Whole(lines), _) => Some(self.text(file, lines)),
            (Change::Empty, _) => Some(String::new()),
            (Change::Delete, _) => None,
            (Change::Old(back), _) => {
                let past = &self.files[file].past;
                past.get(past.len().saturating_sub(back + 1)).cloned().flatten().map(|text| text.to_string())
            }
            // A file that is gone returns.
            (Change::Line(_) | Change::Append | Change::Cut(_), None) => Some(self.text(file, 5)),
            (Change::Append, Some(text)) => Some(text + &self.line(file) + "\n"),
            (Change::Line(line), Some(text)) => {
                let new = self.line(file);
                Some(with_line(&text, line, Some(&new)))
            }
            (Change::Cut(line), Some(text)) => Some(with_line(&text, line, None)),
        };
        self.put(file, text)
    }
}

impl Machine {
    async fn new(journal: &Path, node: &Arc<Node>) -> Self {
        let port = Port::open(Arc::clone(node)).await;
        // No fault makes a port hang, so that only a busy machine could use up these times: then a session that is not in
        // contact with the database hears nothing from it, as it should.
        let xtdb = XtdbOptions { timeout_ms: 60_000, attempts: 2, ..XtdbOptions::new([port.url.clone()]) };
        let options = QueueOptions {
            durability: Durability::Process,
            read_timeout_ms: 60_000,
            close_timeout_ms: 1_000,
            ..QueueOptions::new(journal, xtdb)
        };
        // On a busy machine even a node of this process may answer too late.
        let store = loop {
            match QueuedStore::open(options.clone()).await {
                Err(StoreError::Unavailable(_)) => {}
                opened => break opened.unwrap(),
            }
        };
        Self { store, port }
    }
}

/// With a tracker that does what the schedule says, and a version for each look.
fn tracked(options: Options, wire: &Arc<Wire>) -> Options {
    let wire = Arc::clone(wire);
    Options { watch: true, tracker: Some(Arc::new(move |sink| Ok(wire.start(sink)))), pace: 0, ..options }
}

/// A text in which a line is another one, or missing.
pub fn with_line(text: &str, line: usize, new: Option<&str>) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.is_empty() {
        return new.map(|new| format!("{new}\n")).unwrap_or_default();
    }
    let place = line % lines.len();
    let ended = new.map(|new| format!("{new}\n"));
    match &ended {
        Some(new) => lines[place] = new,
        None => drop(lines.remove(place)),
    }
    lines.concat()
}

fn opened(backend: Backend, root: &Path) -> Arc<dyn Store> {
    match backend {
        Backend::Memory => MemoryStore::new(),
        Backend::Sqlite => SqliteStore::open(root.join("store/context.db"), Durability::Process).unwrap(),
        Backend::Xtdb => unreachable!("it has machines"),
    }
}
