//! Indexing many files at once (SSOT 5.6): some threads read and hash while another one writes.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::index::Action;
use context_model::source::FilesystemSource;
use context_store::StoreError;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::catalog::Meta;
use crate::engine::{Engine, Inner};
use crate::error::{EngineError, Result};
use crate::ingest::{Entry, IndexResult, refusal};
use crate::seen::{Seen, file_id};

/// How many threads read.
const READERS: usize = 4;

/// A thread hands over what it has read after so many files.
const FILES: usize = 512;

/// And after so many bytes of text: until it is written, all of it is in memory.
const BYTES: usize = 4 << 20;

/// What indexing many files did.
#[derive(Debug, Default)]
pub struct Indexed {
    /// What happened to each file that could be indexed, in the order of their paths.
    pub results: Vec<IndexResult>,
    /// The paths without a readable regular file, and why. In the order of the paths.
    pub refused: Vec<(String, EngineError)>,
}

impl Engine {
    /// Indexes many files, for instance all of a project, so that they can be searched and are known to the model: they
    /// enter the metadata pool, and the active set stays as it is. Each file is read by this client.
    ///
    /// They are written in several transactions. When one of them fails, those before it stay, and a repetition goes on
    /// from there: a file that is stored already writes nothing.
    ///
    /// # Errors
    /// What the store reports. A file's own error is in [`Indexed::refused`]: `INVALID_ARGUMENT` for an impossible path,
    /// `IO` where there is no readable regular file.
    pub async fn index_files(&self, paths: Vec<String>) -> Result<Indexed> {
        let state = self.inner.lock().await?;
        let hashes = state.sets.index().iter().filter_map(|id| {
            let current = state.catalog.get(id).and_then(Meta::current)?;
            Some((id.clone(), current.source_hash?))
        });
        let known: HashMap<_, _> = hashes.collect();
        drop(state);
        let (sender, mut portions) = mpsc::channel(2);
        let inner = Arc::clone(&self.inner);
        let reader =
            Arc::new(Reader { inner, paths, next: AtomicUsize::new(0), known, taken: Mutex::default() });
        let mut running = JoinSet::new();
        for _ in 0..READERS.min(reader.paths.len()) {
            let (reader, sender) = (Arc::clone(&reader), sender.clone());
            running.spawn_blocking(move || reader.work(&sender));
        }
        drop(sender);
        let (mut results, mut refused) = (Vec::with_capacity(reader.paths.len()), Vec::new());
        let mut repeated = Vec::new();
        while let Some(Portion { seen, again, refused: some, .. }) = portions.recv().await {
            refused.extend(some);
            repeated.extend(again);
            let (numbers, seen): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
            if !seen.is_empty() {
                results.extend(numbers.into_iter().zip(self.inner.index(seen, Entry::Touched).await?));
            }
        }
        while let Some(ended) = running.join_next().await {
            ended.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        }
        let indexed: HashSet<ObjectId> = results.iter().map(|(_, result)| result.id.clone()).collect();
        for (number, id) in repeated {
            if indexed.contains(&id) {
                results.push((number, IndexResult { id, action: Action::Unchanged, reason: None }));
            } else {
                let reason = "the file was refused under the name by which it came first".into();
                refused.push((number, EngineError::Io { path: reader.paths[number].clone(), reason }));
            }
        }
        results.sort_unstable_by_key(|(number, _)| *number);
        refused.sort_unstable_by_key(|(number, _)| *number);
        Ok(Indexed {
            results: results.into_iter().map(|(_, result)| result).collect(),
            refused: refused.into_iter().map(|(n, error)| (reader.paths[n].clone(), error)).collect(),
        })
    }
}

/// What one thread has looked at, each with its path's place in the list.
#[derive(Default)]
struct Portion {
    seen: Vec<(usize, Seen)>,
    /// Files that the list names a second time: they are read once.
    again: Vec<(usize, ObjectId)>,
    refused: Vec<(usize, EngineError)>,
    bytes: usize,
}

/// Reads files on several threads, each the next one that nobody has taken.
struct Reader {
    inner: Arc<Inner>,
    paths: Vec<String>,
    next: AtomicUsize,
    /// The files that the session knows. Of these, only changed ones make a version.
    known: HashMap<ObjectId, Digest>,
    /// The files that were taken already.
    taken: Mutex<HashSet<FilesystemSource>>,
}

/// A path that was looked at.
enum Looked {
    Now(Box<Seen>),
    /// Another one led to the same file.
    Before(ObjectId),
}

impl Reader {
    fn work(&self, portions: &mpsc::Sender<Portion>) {
        let mut portion = Portion::default();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = self.paths.get(number) else { break };
            match self.look(path) {
                Ok(Looked::Now(seen)) => {
                    portion.bytes += seen.bytes();
                    portion.seen.push((number, *seen));
                }
                Ok(Looked::Before(id)) => portion.again.push((number, id)),
                Err(error) => portion.refused.push((number, error)),
            }
            let count = portion.seen.len() + portion.again.len() + portion.refused.len();
            if (count >= FILES || portion.bytes >= BYTES)
                && portions.blocking_send(mem::take(&mut portion)).is_err()
            {
                // A write has failed, or nobody waits any more.
                return;
            }
        }
        let _ = portions.blocking_send(portion);
    }

    fn look(&self, path: &str) -> Result<Looked> {
        let place = self.inner.paths.resolve(path)?;
        if !self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(place.source.clone()) {
            return Ok(Looked::Before(file_id(&place.source)));
        }
        let (state, since) = self.inner.look_now(&place);
        if !state.is_file() {
            return Err(refusal(path, &state));
        }
        let Some(seen) = Seen::of(place, state, since) else { unreachable!("a file that was looked at") };
        let hash = seen.observation.source_hash();
        let is_known = hash.is_some() && self.known.get(&seen.id) == hash.as_ref();
        Ok(Looked::Now(Box::new(if is_known { seen } else { seen.made() })))
    }
}
