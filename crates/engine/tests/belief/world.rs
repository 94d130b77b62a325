//! What is outside of every client: the files, which change by themselves, and the store behind all of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use context_engine::Options;
use context_model::hash::identity_hash;
use context_model::id::{ObjectId, SessionId};
use context_model::object::ObjectType;
use context_model::source::{FilesystemSource, Source};
use context_store::Store;
use context_store::memory::MemoryStore;
use context_store::sqlite::{Durability, SqliteStore};

use crate::steps::{Backend, Change, Schedule};
use crate::wire::Wire;

/// The namespace of the files.
const FILESYSTEM: &str = "belief";

/// A text, or none where the file does not exist.
pub type Content = Option<Arc<str>>;

pub struct World {
    root: PathBuf,
    backend: Backend,
    /// A connection to the store that never fails, for looking at what is there.
    pub store: Arc<dyn Store>,
    pub files: Vec<File>,
    /// How many texts were made, which keeps each of them different.
    made: usize,
}

pub struct File {
    pub name: String,
    pub path: String,
    pub id: ObjectId,
    /// What was on the disk, one after the other; the last is there now.
    pub past: Vec<Content>,
}

impl World {
    /// A new world in a directory, which is emptied before.
    pub fn new(root: &Path, schedule: &Schedule) -> Self {
        for name in ["work", "store"] {
            let directory = root.join(name);
            if directory.exists() {
                std::fs::remove_dir_all(&directory).unwrap();
            }
            std::fs::create_dir(&directory).unwrap();
        }
        let mut world = Self {
            root: root.to_owned(),
            backend: schedule.backend,
            store: opened(schedule.backend, root),
            files: Vec::new(),
            made: 0,
        };
        for number in 0..schedule.files {
            let name = format!("f{number}.txt");
            let path = world.directory().join(&name).to_str().unwrap().to_owned();
            let source = FilesystemSource { filesystem_id: FILESYSTEM.into(), path: path.clone() };
            let id = ObjectId::sourced(identity_hash(ObjectType::File, Some(&Source::Filesystem(source))));
            world.files.push(File { name, path, id, past: Vec::new() });
            let lines = [12, 40, 3, 60][(number + schedule.seed as usize) % 4];
            let text = world.text(number, lines);
            world.put(number, Some(text));
        }
        world
    }

    fn directory(&self) -> PathBuf {
        self.root.join("work")
    }

    /// A connection to the store, as another process would have its own.
    pub fn connection(&self) -> Arc<dyn Store> {
        match self.backend {
            Backend::Memory => Arc::clone(&self.store),
            Backend::Sqlite => opened(self.backend, &self.root),
        }
    }

    pub fn options(&self, session: &str, store: Arc<dyn Store>, wire: &Arc<Wire>) -> Options {
        let options = Options {
            filesystem_id: Some(FILESYSTEM.into()),
            watch: false,
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

    /// What is on the disk now.
    pub fn now(&self, file: usize) -> Content {
        self.files[file].past.last().cloned().flatten()
    }

    /// Writes a file, or removes it. `false` where it is so already.
    pub fn put(&mut self, file: usize, text: Option<String>) -> bool {
        let new: Content = text.map(Into::into);
        let file = &mut self.files[file];
        if file.past.last() == Some(&new) {
            return false;
        }
        match &new {
            Some(text) => std::fs::write(&file.path, text.as_bytes()).unwrap(),
            None if Path::new(&file.path).exists() => std::fs::remove_file(&file.path).unwrap(),
            None => {}
        }
        file.past.push(new);
        true
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
            // A file that is gone comes back.
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

/// With a tracker that does what the schedule says, where the engine takes one.
fn tracked(options: Options, _wire: &Arc<Wire>) -> Options {
    options
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
    }
}
