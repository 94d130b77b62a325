//! Looking at many files at once: some threads read and hash while another thread writes.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::session::error::{EngineError, Result};
use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::source::FilesystemSource;
use context_store::StoreError;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::index::{FileReader, ReadFor, refusal};
use super::look::{ObservedFile, file_id};

/// The number of threads that read.
const READERS: usize = 4;

/// A thread passes on the files that it has read after this many.
const FILES: usize = 512;

/// It also does so after this many bytes of text, because all of it is held in memory until it is written.
const BYTES: usize = 4 << 20;

/// Threads that read a list of files.
pub(crate) struct Readers {
    portions: mpsc::Receiver<Portion>,
    running: JoinSet<()>,
}

impl Readers {
    /// Starts reading. `known` has the hashes of known files' bytes; only changed ones will make a version.
    pub(crate) fn start(
        file_reader: FileReader,
        paths: Arc<[String]>,
        known: HashMap<ObjectId, Digest>,
    ) -> Self {
        let (sender, portions) = mpsc::channel(2);
        let count = READERS.min(paths.len());
        let reader = Arc::new(ParallelReader {
            file_reader,
            paths,
            next: AtomicUsize::new(0),
            known,
            taken: Mutex::default(),
        });
        let mut running = JoinSet::new();
        for _ in 0..count {
            let (reader, sender) = (Arc::clone(&reader), sender.clone());
            running.spawn_blocking(move || reader.work(&sender));
        }
        Self { portions, running }
    }

    /// The next portion read by any thread; `None` once everything is read.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` if a thread has died.
    pub(crate) async fn next(&mut self) -> Result<Option<Portion>> {
        if let Some(portion) = self.portions.recv().await {
            return Ok(Some(portion));
        }
        while let Some(ended) = self.running.join_next().await {
            ended.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        }
        Ok(None)
    }
}

/// The files that one thread has looked at, each with its path's place in the list.
#[derive(Default)]
pub(crate) struct Portion {
    /// Files that were read.
    pub seen: Vec<(usize, ObservedFile)>,
    /// Files that the list names more than once; each is read once.
    pub again: Vec<(usize, ObjectId)>,
    /// Files that can't be indexed, and why.
    pub refused: Vec<(usize, EngineError)>,
    bytes: usize,
}

/// Reads files on several threads; each takes the next file that no other thread has taken.
struct ParallelReader {
    file_reader: FileReader,
    paths: Arc<[String]>,
    next: AtomicUsize,
    /// The files that the session knows. Of these, only changed ones make a version.
    known: HashMap<ObjectId, Digest>,
    /// The files that were taken already.
    taken: Mutex<HashSet<FilesystemSource>>,
}

/// A path that was looked at.
enum Looked {
    Now(Box<ObservedFile>),
    /// Another one led to the same file.
    Before(ObjectId),
}

impl ParallelReader {
    fn work(&self, portions: &mpsc::Sender<Portion>) {
        let mut portion = Portion::default();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = self.paths.get(number) else { break };
            match self.read(path) {
                Ok(Looked::Now(seen)) => {
                    portion.bytes += seen.state.text().map_or(0, str::len);
                    portion.seen.push((number, *seen));
                }
                Ok(Looked::Before(id)) => portion.again.push((number, id)),
                Err(error) => portion.refused.push((number, error)),
            }
            let count = portion.seen.len() + portion.again.len() + portion.refused.len();
            if (count >= FILES || portion.bytes >= BYTES)
                && portions.blocking_send(mem::take(&mut portion)).is_err()
            {
                // A write failed, or the caller no longer waits.
                return;
            }
        }
        let _ = portions.blocking_send(portion);
    }

    fn read(&self, path: &str) -> Result<Looked> {
        let place = self.file_reader.client.paths.resolve(path)?;
        if !self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(place.source.clone()) {
            return Ok(Looked::Before(file_id(&place.source)));
        }
        let seen = self.file_reader.read_now(place, ReadFor::Text);
        if !seen.state.is_file() {
            return Err(refusal(path, &seen.state));
        }
        let hash = seen.state.hash();
        let is_known = hash.is_some() && self.known.get(&seen.id) == hash.as_ref();
        Ok(Looked::Now(Box::new(if is_known { seen } else { seen.made() })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::reading::FileState;
    use crate::files::tracking::Tracking;
    use crate::session::options::Options;

    async fn reader(directory: &str, paths: Vec<String>, known: HashMap<ObjectId, Digest>) -> ParallelReader {
        let below = |options| Options { cwd: directory.into(), ..options };
        let client = Arc::new(crate::files::tests::client_with(below).await);
        let file_reader = FileReader { client, tracking: Arc::new(Tracking::new(false, 0)) };
        ParallelReader {
            file_reader,
            paths: paths.into(),
            next: AtomicUsize::new(0),
            known,
            taken: Mutex::default(),
        }
    }

    /// Returns the sizes of one thread's portions: the files, their names and the refusals in each.
    async fn portions(reader: ParallelReader) -> Vec<[usize; 3]> {
        let (sender, mut portions) = mpsc::channel(100);
        tokio::task::spawn_blocking(move || reader.work(&sender)).await.unwrap();
        let mut sizes = Vec::new();
        while let Some(portion) = portions.recv().await {
            sizes.push([portion.seen.len(), portion.again.len(), portion.refused.len()]);
        }
        sizes
    }

    #[tokio::test]
    async fn reader_passes_files_on_in_portions_of_limited_count_and_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_str().unwrap().to_owned();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        for name in ["a", "b", "c"] {
            std::fs::write(path(name), "x".repeat(BYTES / 2)).unwrap();
        }
        let all = ["a", "b", "c"].map(path).to_vec();
        assert_eq!(portions(reader(&root, all, HashMap::new()).await).await, [[2, 0, 0], [1, 0, 0]]);
        // One that is there, again and again, and others that are not.
        let mut many = vec![path("a"); FILES];
        many.extend((0..FILES - 1).map(|n| path(&format!("missing {n}"))));
        let sizes = portions(reader(&root, many, HashMap::new()).await).await;
        assert_eq!(sizes, [[1, FILES - 1, 0], [0, 0, FILES - 1]]);
    }

    #[tokio::test]
    async fn only_what_may_have_changed_is_made_a_version_on_the_readers_thread() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_str().unwrap().to_owned();
        let path = format!("{root}/a");
        std::fs::write(&path, "text").unwrap();
        let look = |reader: ParallelReader| match reader.read(&path).unwrap() {
            Looked::Now(seen) => *seen,
            Looked::Before(id) => panic!("{id} was looked at before"),
        };
        let is_made = |reader| matches!(look(reader).state, FileState::Made { .. });
        let id = look(reader(&root, Vec::new(), HashMap::new()).await).id;
        for (known, expected) in [("text", false), ("other", true)] {
            let known = HashMap::from([(id.clone(), Digest::of(known.as_bytes()))]);
            assert_eq!(is_made(reader(&root, Vec::new(), known).await), expected);
        }
        assert!(is_made(reader(&root, Vec::new(), HashMap::new()).await));
    }
}
