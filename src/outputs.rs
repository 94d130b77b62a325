//! The native half of `pi-context-manager/storage`: conversions around `context-outputs`, and nothing else.
//!
//! These classes are used by `lib/storage.ts` and are no part of the package's public interface.

// In a test build napi-rs registers no functions, so that nothing refers to them.
#![cfg_attr(test, allow(dead_code))]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use context_outputs::{Durability, OutputError, name, relevance};
use napi::Error;
use napi::bindgen_prelude::{Env, PromiseRaw, ToNapiValue, Uint32Array};
use napi_derive::napi;
use tokio::sync::Semaphore;

use crate::error::{Coded, promise};

/// Saves of one directory that run at once. More of them wait: the device flushes a handful at a time, and
/// each takes a thread.
const SAVES_AT_ONCE: usize = 8;

/// The result for one requested file: its text, or why there is none.
#[napi(object)]
pub struct OutputText {
    /// The file's text (for metadata: a JSON object of the fields without the result).
    pub text: Option<String>,
    /// Why there is no text, as a clause that follows the file's name.
    pub reason: Option<String>,
}

/// One directory of output files; nothing is read or created before the first call.
#[napi]
pub struct OutputDirectory {
    inner: Arc<context_outputs::OutputDirectory>,
    saves: Arc<Semaphore>,
}

#[napi]
impl OutputDirectory {
    /// `path` is absolute. If `durable` is true, a finished save survives a power failure and not only the end of the
    /// process.
    #[napi(constructor)]
    pub fn new(path: String, durable: bool) -> Self {
        let durability = if durable { Durability::Power } else { Durability::Process };
        let inner = Arc::new(context_outputs::OutputDirectory::new(PathBuf::from(path), durability));
        Self { inner, saves: Arc::new(Semaphore::new(SAVES_AT_ONCE)) }
    }

    /// Writes a new file and resolves with its name. `args` is JSON text; `timestamp` is in milliseconds.
    /// Rejects with `INVALID_ARGUMENT`, `STORE_FULL` or `IO`.
    #[napi]
    pub fn save<'env>(
        &self,
        env: &'env Env,
        tool: String,
        args: String,
        text: String,
        timestamp: f64,
        counter: f64,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let saves = Arc::clone(&self.saves);
        self.blocking(env, Some(saves), move |directory| {
            let hash = name::args_hash(&args)?;
            let next =
                || name::file_name(&tool, &hash, whole(timestamp), whole(counter), &name::random_suffix());
            directory.save(&text, next)
        })
    }

    /// Reads whole files by name, in the given order.
    #[napi]
    pub fn load<'env>(
        &self,
        env: &'env Env,
        names: Vec<String>,
    ) -> napi::Result<PromiseRaw<'env, Vec<OutputText>>> {
        self.blocking(env, None, move |directory| Ok(outcomes(directory.load(&names))))
    }

    /// Reads the metadata of files by name, in the given order.
    #[napi]
    pub fn metadata<'env>(
        &self,
        env: &'env Env,
        names: Vec<String>,
    ) -> napi::Result<PromiseRaw<'env, Vec<OutputText>>> {
        self.blocking(env, None, move |directory| Ok(outcomes(directory.metadata(&names))))
    }

    /// The names of all output files, oldest first. Rejects with `IO`.
    #[napi]
    pub fn names<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Vec<String>>> {
        self.blocking(env, None, |directory| directory.names())
    }

    /// Removes all output files and leftovers. Resolves with their number. Rejects with `IO`.
    #[napi]
    pub fn clear<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, u32>> {
        self.blocking(env, None, |directory| directory.clear().map(count))
    }

    /// Removes some files by name, and resolves with the number of those that existed. Rejects with `IO`.
    #[napi]
    pub fn remove<'env>(&self, env: &'env Env, names: Vec<String>) -> napi::Result<PromiseRaw<'env, u32>> {
        self.blocking(env, None, move |directory| directory.remove(&names).map(count))
    }

    /// The same, synchronously, for a process that is about to exit. Throws `IO`.
    #[napi(catch_unwind)]
    pub fn remove_now(&self, names: Vec<String>) -> napi::Result<u32, String> {
        self.inner.remove(&names).map(count).map_err(|e| Error::new(e.code().to_owned(), e.to_string()))
    }

    /// Runs blocking work off the event loop, and rejects with an error that has the work's `code`.
    fn blocking<'env, T: Send + ToNapiValue + 'static>(
        &self,
        env: &'env Env,
        limit: Option<Arc<Semaphore>>,
        work: impl FnOnce(&context_outputs::OutputDirectory) -> Result<T, OutputError> + Send + 'static,
    ) -> napi::Result<PromiseRaw<'env, T>> {
        let directory = Arc::clone(&self.inner);
        let future = async move {
            // The semaphore is never closed.
            let _place = match &limit {
                Some(limit) => limit.acquire().await.ok(),
                None => None,
            };
            match tokio::task::spawn_blocking(move || work(&directory)).await {
                Ok(done) => Ok(done?),
                Err(ended) => Err(Coded::failed(format!("the work ended: {ended}"))),
            }
        };
        promise(env, future, |done| done)
    }
}

/// Ranks the descriptions added to it by the keyword rule.
#[napi]
#[derive(Default)]
pub struct RelevanceIndex {
    inner: context_outputs::RelevanceIndex,
}

#[napi]
impl RelevanceIndex {
    /// An empty index.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a description and returns its place.
    #[napi(catch_unwind)]
    pub fn add(&mut self, description: String) -> u32 {
        count(self.inner.add(&description))
    }

    /// Positions in `places` of the matches, best first; null if nothing matches.
    #[napi(catch_unwind)]
    pub fn rank(&self, query: String, places: Uint32Array) -> Option<Uint32Array> {
        self.inner.rank(&query, &places).map(Uint32Array::from)
    }

    /// Forgets all descriptions; places start at 0 again.
    #[napi(catch_unwind)]
    pub fn clear(&mut self) {
        self.inner.clear();
    }
}

/// Ranks descriptions that are in no index by the keyword rule, block by block.
#[napi]
pub struct RelevanceRanking {
    inner: relevance::Ranking,
}

#[napi]
impl RelevanceRanking {
    /// An empty ranking.
    #[napi(constructor)]
    pub fn new(query: String) -> Self {
        Self { inner: relevance::Ranking::new(&query) }
    }

    /// Adds descriptions, joined to one text; `lengths` has the length of each.
    #[napi(catch_unwind)]
    pub fn add(&mut self, joined: String, lengths: Uint32Array) {
        self.inner.add(joined, &lengths);
    }

    /// Positions of the matches, best first, counted over all blocks; null if nothing matches.
    #[napi(catch_unwind)]
    pub fn order(&self) -> Option<Uint32Array> {
        self.inner.order().map(Uint32Array::from)
    }
}

/// A cache of texts by name with a limit in bytes; the least recently used text leaves first.
#[napi]
pub struct OutputCache {
    inner: Mutex<context_outputs::OutputCache>,
}

#[napi]
impl OutputCache {
    /// At most `capacity` bytes of texts that are shorter than `threshold` bytes.
    #[napi(constructor)]
    pub fn new(capacity: f64, threshold: f64) -> Self {
        let size = |n: f64| usize::try_from(whole(n)).unwrap_or(usize::MAX);
        Self { inner: Mutex::new(context_outputs::OutputCache::new(size(capacity), size(threshold))) }
    }

    /// Stores a text. Returns whether it fits.
    #[napi(catch_unwind)]
    pub fn put(&self, name: String, text: String) -> bool {
        self.cache().put(&name, &text)
    }

    /// The text of a name, or null.
    #[napi(catch_unwind)]
    pub fn get(&self, name: String) -> Option<String> {
        self.cache().get(&name).map(str::to_owned)
    }

    /// Drops one text.
    #[napi(catch_unwind)]
    pub fn remove(&self, name: String) {
        self.cache().remove(&name);
    }

    /// Drops all texts.
    #[napi(catch_unwind)]
    pub fn clear(&self) {
        self.cache().clear();
    }

    /// Bytes of all names and texts.
    #[napi(getter, catch_unwind)]
    pub fn bytes(&self) -> f64 {
        self.cache().bytes() as f64
    }

    fn cache(&self) -> MutexGuard<'_, context_outputs::OutputCache> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fresh file name for an output. `args` is JSON text. Throws `INVALID_ARGUMENT`.
#[napi(catch_unwind)]
pub fn output_file_name(
    tool: String,
    args: String,
    timestamp: f64,
    counter: f64,
) -> napi::Result<String, String> {
    let hash = name::args_hash(&args).map_err(|e| Error::new(e.code().to_owned(), e.to_string()))?;
    Ok(name::file_name(&tool, &hash, whole(timestamp), whole(counter), &name::random_suffix()))
}

/// The name of an output's file until it is complete.
#[napi(catch_unwind)]
pub fn output_temporary_name(file_name: String) -> String {
    name::temporary(&file_name)
}

/// Those of some file names that are outputs, oldest first; with `temporary`, the leftovers instead.
#[napi(catch_unwind)]
pub fn output_names(names: Vec<String>, temporary: bool) -> Vec<String> {
    let ours = |name: &String| if temporary { name::is_temporary(name) } else { name::order(name).is_some() };
    let mut names: Vec<String> = names.into_iter().filter(ours).collect();
    names.sort_by(|a, b| name::order(a).cmp(&name::order(b)));
    names
}

/// The first 12 hexadecimal digits of a query's SHA-256.
#[napi(catch_unwind)]
pub fn output_query_hash(query: String) -> String {
    name::query_hash(&query)
}

fn outcomes(outcomes: Vec<Result<String, String>>) -> Vec<OutputText> {
    let convert = |outcome| match outcome {
        Ok(text) => OutputText { text: Some(text), reason: None },
        Err(reason) => OutputText { text: None, reason: Some(reason) },
    };
    outcomes.into_iter().map(convert).collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A JavaScript number that is meant to be a whole one, not negative. (The cast saturates; NaN is 0.)
fn whole(number: f64) -> u64 {
    number as u64
}
