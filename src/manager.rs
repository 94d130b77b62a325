//! The class `ContextManager`.

use std::sync::{Arc, Mutex, PoisonError};

use context_engine::{Engine, Options, Query};
use context_model::id::SessionId;
use context_model::mounts::MountMapping;
use context_store::Store;
use napi::bindgen_prelude::{Either, Env, Function, PromiseRaw};
use napi_derive::napi;

use crate::callback;
use crate::convert;
use crate::error::{Coded, promise};
use crate::import;
use crate::json::{History, Json};
use crate::store::{self, Opened};
use crate::types as js;

/// So many versions of an object are in memory at a time, on their way to JavaScript.
const HISTORY_PAGE: usize = 256;

/// What an open instance holds. `None` in its place means closed.
#[derive(Clone)]
pub(crate) struct Open {
    pub engine: Engine,
    opened: Opened,
}

impl Open {
    /// The store that the session is in.
    pub fn store(&self) -> &dyn Store {
        &*self.opened.store
    }
}

/// One open session: it indexes files, records tool calls and turns, keeps the session's sets, renders the context,
/// and gives access to every version of every object.
///
/// Every method but `watch` and `watchTouches` returns a promise; a rejection is an `Error` with a `code`
/// of `ErrorCode`. After `close()` every method rejects with `CLOSED`.
#[napi]
pub struct ContextManager {
    session_id: String,
    pub(crate) open: Mutex<Option<Open>>,
}

#[napi]
impl ContextManager {
    /// Opens the store and starts the session, or resumes it if the store has it. On a resume, files that have
    /// changed get a new version, and unreachable files keep their last one.
    ///
    /// Rejects with `INVALID_ARGUMENT`, `STORE_UNAVAILABLE`, `STORE_CORRUPT`, `STORE_NEWER` or `STORE_FULL`.
    #[napi(js_name = "open", ts_return_type = "Promise<ContextManager>")]
    pub fn open_session(env: &Env, options: js::OpenOptions) -> napi::Result<PromiseRaw<'_, Self>> {
        Self::opening(env, options, None)
    }

    /// Imports an exported session and opens it. If `sessionId` differs from the file's, the session becomes a copy
    /// with that ID: it shares the objects and then develops independently.
    ///
    /// Rejects with `INVALID_ARGUMENT` if the file is not a complete export of one session (nothing was written),
    /// `CONFLICT` if the store has the session with a different history, `IO`, and like `open`.
    #[napi(ts_return_type = "Promise<ContextManager>")]
    pub fn import_session(
        env: &Env,
        path: String,
        options: js::OpenOptions,
    ) -> napi::Result<PromiseRaw<'_, Self>> {
        Self::opening(env, options, Some(path))
    }

    /// The ID of the open session.
    #[napi(getter)]
    pub fn session_id(&self) -> String {
        self.session_id.clone()
    }

    /// Indexes a file that the agent has read. The file enters the metadata pool and the active set.
    ///
    /// `content` is the whole file as the tool read it; if it is absent, the file is read from disk. Text is hashed
    /// as UTF-8, so pass bytes if you have them. A file that is not text is indexed with null content and a `reason`.
    ///
    /// Rejects with `IO` if there is no readable regular file, and `INVALID_ARGUMENT` for an impossible path.
    #[napi]
    pub fn index_file<'env>(
        &self,
        env: &'env Env,
        path: String,
        content: Option<js::Content>,
    ) -> napi::Result<PromiseRaw<'env, js::IndexResult>> {
        let content = content.map(convert::bytes);
        self.call(
            env,
            |open| async move { Ok(open.engine.index_file(&path, content).await?) },
            convert::index_result,
        )
    }

    /// Indexes a file that the agent has written. The file enters the metadata pool but is not activated.
    ///
    /// Rejects like `indexFile`.
    #[napi]
    pub fn index_written<'env>(
        &self,
        env: &'env Env,
        path: String,
        content: Option<js::Content>,
    ) -> napi::Result<PromiseRaw<'env, js::IndexResult>> {
        let content = content.map(convert::bytes);
        self.call(
            env,
            |open| async move { Ok(open.engine.index_written(&path, content).await?) },
            convert::index_result,
        )
    }

    /// Indexes many files, for instance a whole project, so that the model knows them and they can be searched. They
    /// enter the metadata pool; the active set does not change. Several threads read while another writes.
    ///
    /// Unreadable files are listed in `refused` and don't stop the others. Rejects if the store fails; files written
    /// before that stay, and a repeated call continues from there.
    #[napi]
    pub fn index_files<'env>(
        &self,
        env: &'env Env,
        paths: Vec<String>,
    ) -> napi::Result<PromiseRaw<'env, js::IndexedFiles>> {
        self.call(
            env,
            |open| async move { Ok(open.engine.index_files(paths).await?) },
            convert::indexed_files,
        )
    }

    /// Records that a file has been deleted, as a version with null content. The history stays.
    #[napi]
    pub fn index_file_deletion<'env>(
        &self,
        env: &'env Env,
        path: String,
    ) -> napi::Result<PromiseRaw<'env, js::IndexResult>> {
        self.call(
            env,
            |open| async move { Ok(open.engine.index_deletion(&path).await?) },
            convert::index_result,
        )
    }

    /// Records paths that were only seen (by ls, find or grep) as metadata without content. Never overwrites
    /// anything.
    #[napi]
    pub fn discover<'env>(
        &self,
        env: &'env Env,
        paths: Vec<String>,
    ) -> napi::Result<PromiseRaw<'env, Vec<js::IndexResult>>> {
        let work = |open: Open| async move { Ok(open.engine.discover(&paths).await?) };
        self.call(env, work, |results| results.into_iter().map(convert::index_result).collect())
    }

    /// Records a tool call of the current turn as a `toolcall` object, which is active until it leaves the window.
    /// Files that it read, wrote or named are indexed. Resolves with the object's ID.
    #[napi]
    pub fn record_toolcall<'env>(
        &self,
        env: &'env Env,
        call: js::Toolcall,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let work =
            |open: Open| async move { Ok(open.engine.record_toolcall(convert::toolcall(call)?).await?) };
        self.call(env, work, |id| id.to_string())
    }

    /// Starts a turn with the user's message, or adds the assistant's answer to the current one. A message is `{
    /// role, content, … }` in the shape of pi-ai; other fields of an answer are kept as its metadata.
    #[napi(ts_args_type = "message: object", ts_return_type = "Promise<{ turnCount: number }>")]
    pub fn append_turn<'env>(
        &self,
        env: &'env Env,
        message: Json,
    ) -> napi::Result<PromiseRaw<'env, js::TurnCount>> {
        let work = |open: Open| async move { Ok(open.engine.append_turn(message.value()?).await?) };
        self.call(env, work, |count| js::TurnCount { turn_count: u32::try_from(count).unwrap_or(u32::MAX) })
    }

    /// Records the system prompt. Writes nothing if the text has not changed.
    #[napi]
    pub fn set_system_prompt<'env>(
        &self,
        env: &'env Env,
        text: String,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        self.call(env, |open| async move { Ok(open.engine.set_system_prompt(&text).await?) }, |()| ())
    }

    /// Adds an object to the active set and returns its content. `id` is a full ID, a handle, or either with `@txId`
    /// for an old version, which does not change the sets.
    #[napi]
    pub fn activate<'env>(
        &self,
        env: &'env Env,
        id: String,
        part: Option<js::Part>,
    ) -> napi::Result<PromiseRaw<'env, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.activate(&id, convert::part(part)?).await?) })
    }

    /// Removes an object from the active set; its metadata stays in the pool.
    #[napi]
    pub fn deactivate<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<PromiseRaw<'env, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.deactivate(&id).await?) })
    }

    /// Keeps an object from collapsing automatically.
    #[napi]
    pub fn pin<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.pin(&id).await?) })
    }

    /// Removes a pin.
    #[napi]
    pub fn unpin<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.unpin(&id).await?) })
    }

    /// Adds an object of the session index to the metadata pool.
    #[napi]
    pub fn promote<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.promote(&id).await?) })
    }

    /// Removes an object from the metadata pool and the active set; it stays in the session index.
    #[napi]
    pub fn demote<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.demote(&id).await?) })
    }

    /// The session's four sets.
    #[napi]
    pub fn session_sets<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, js::SessionSets>> {
        self.call(env, |open| async move { Ok(open.engine.session_sets().await?) }, convert::session_sets)
    }

    /// The canonical view: system prompt, metadata pool, chat and active content. The same state gives the same
    /// bytes. The cost grows with the length of the conversation.
    #[napi]
    pub fn assemble<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, js::Assembled>> {
        // Copied here and not where JavaScript waits.
        let work = |open: Open| async move { convert::assembled(&open.engine.assemble().await?) };
        self.call(env, work, |view| view)
    }

    /// The latest version of an object, or null.
    #[napi(ts_return_type = "Promise<ObjectDocument | null>")]
    pub fn get<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, Option<Json>>> {
        let work = |open: Open| async move { open.engine.get(&id).await?.as_ref().map(Json::of).transpose() };
        self.call(env, work, |found| found)
    }

    /// The version of an object at a point in the two times, or null. A string is a valid time.
    #[napi(ts_return_type = "Promise<ObjectDocument | null>")]
    pub fn get_as_of<'env>(
        &self,
        env: &'env Env,
        id: String,
        at: Either<String, js::AsOf>,
    ) -> napi::Result<PromiseRaw<'env, Option<Json>>> {
        let work = |open: Open| async move {
            open.engine.get_as_of(&id, convert::as_of(at)?).await?.as_ref().map(Json::of).transpose()
        };
        self.call(env, work, |found| found)
    }

    /// The versions of an object, oldest first; empty for an unknown object. All of them, or a part: with `limit` and
    /// `after` a long history is read piece by piece, and only what is asked for is held in memory.
    ///
    /// The documents share what they have in common, such as the turns of a chat, so treat them as read-only.
    #[napi(ts_return_type = "Promise<Version[]>")]
    pub fn history<'env>(
        &self,
        env: &'env Env,
        id: String,
        part: Option<js::HistoryPart>,
    ) -> napi::Result<PromiseRaw<'env, History>> {
        let work = |open: Open| async move {
            let (mut after, mut left) = convert::history_part(part)?;
            let mut history = History::default();
            while left > 0 {
                let page = open.engine.history_page(&id, after, left.min(HISTORY_PAGE)).await?;
                let Some(last) = page.last() else { break };
                (after, left) = (last.tx_id, left.saturating_sub(page.len()));
                history.add(page)?;
            }
            Ok(history)
        };
        self.call(env, work, |history| history)
    }

    /// The difference between the contents of two versions as a unified diff; empty if they are equal. `fromTx` and
    /// `toTx` are `txId`s from `history`.
    ///
    /// Rejects with `UNKNOWN_OBJECT` if one of the versions does not exist, and `INVALID_ARGUMENT` if only the hash of one is
    /// stored.
    #[napi]
    pub fn diff<'env>(
        &self,
        env: &'env Env,
        id: String,
        from_tx: f64,
        to_tx: f64,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let work = move |open: Open| async move {
            let (from, to) = (convert::tx(from_tx)?, convert::tx(to_tx)?);
            Ok(open.engine.diff(&id, from, to).await?)
        };
        self.call(env, work, |text| text)
    }

    /// The objects that match a filter, in the order in which they were first written.
    #[napi(ts_return_type = "Promise<ObjectDocument[]>")]
    pub fn query<'env>(
        &self,
        env: &'env Env,
        filter: js::QueryFilter,
    ) -> napi::Result<PromiseRaw<'env, Json>> {
        let work = |open: Open| async move {
            let query = Query {
                object_type: convert::object_type(filter.r#type)?,
                session_id: filter.session_id,
                path_prefix: filter.path_prefix,
                since: filter.since.map(|t| t.parse()).transpose()?,
            };
            Json::of(&open.engine.query(&query).await?)
        };
        self.call(env, work, |documents| documents)
    }

    /// Searches the contents of all versions, best match first.
    #[napi]
    pub fn search<'env>(
        &self,
        env: &'env Env,
        text: String,
        options: Option<js::SearchOptions>,
    ) -> napi::Result<PromiseRaw<'env, Vec<js::SearchHit>>> {
        let work = |open: Open| async move {
            let wanted = convert::wanted(text, options)?;
            Ok(open.engine.search(&wanted).await?)
        };
        self.call(env, work, |hits| hits.into_iter().map(convert::hit).collect())
    }

    /// Statistics of the session.
    #[napi]
    pub fn stats<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, js::Stats>> {
        self.call(env, |open| async move { Ok(open.engine.stats().await?) }, convert::stats)
    }

    /// The state of the session's store: its kind, and for XTDB what is waiting to be sent.
    #[napi]
    pub fn store_state<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, js::StoreState>> {
        self.call(env, |open| async move { Ok(open.opened.state()) }, |state| state)
    }

    /// Calls a listener once for each change of a file of the session, whoever made it. Returns a function that stops it.
    /// Watching does not keep the process alive. Throws `CLOSED`.
    #[napi(
        ts_args_type = "listener: (event: WatchEvent) => void",
        ts_return_type = "() => void",
        catch_unwind
    )]
    pub fn watch<'env>(
        &self,
        env: &'env Env,
        listener: Function<'env, js::WatchEvent, ()>,
    ) -> napi::Result<Function<'env, (), ()>> {
        let open = self.current().map_err(|error| error.into_napi(env))?;
        callback::subscribe(env, open.engine, listener)
    }

    /// Calls a listener as soon as a tracked file is touched, before it is read, for instance to mark it in an
    /// editor. The action is `touched`. If the file has changed, the listeners of `watch` hear of the new version
    /// once it is stored. Returns a function that stops it. Throws `CLOSED`.
    #[napi(
        ts_args_type = "listener: (event: WatchEvent) => void",
        ts_return_type = "() => void",
        catch_unwind
    )]
    pub fn watch_touches<'env>(
        &self,
        env: &'env Env,
        listener: Function<'env, js::WatchEvent, ()>,
    ) -> napi::Result<Function<'env, (), ()>> {
        let open = self.current().map_err(|error| error.into_napi(env))?;
        callback::subscribe_touches(env, open.engine, listener)
    }

    /// Compares every file of the session with the disk and indexes those that have changed, for sessions that don't
    /// watch. Returns what was written. A file is read only if its size, times or inode number have changed since an
    /// earlier comparison.
    #[napi]
    pub fn reconcile<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Vec<js::IndexResult>>> {
        let work = |open: Open| async move { Ok(open.engine.reconcile().await?) };
        self.call(env, work, |results| results.into_iter().map(convert::index_result).collect())
    }

    /// Waits until the trackers have seen and indexed everything written to disk before the call.
    #[napi]
    pub fn flush<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        self.call(env, |open| async move { Ok(open.engine.flush().await?) }, |()| ())
    }

    /// Stops the trackers. The store always has the session's state, so nothing else is needed for a pause; `open`
    /// with the same session ID resumes it, here or elsewhere.
    #[napi]
    pub fn pause<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        self.call(env, |open| async move { Ok(open.engine.pause().await?) }, |()| ())
    }

    /// Pauses the session and closes the store. Closing twice is fine.
    #[napi]
    pub fn close<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = async move {
            let Some(open) = open else { return Ok(()) };
            let ended = open.engine.close().await;
            open.opened.store.close().await?;
            Ok(ended?)
        };
        promise(env, work, |()| ())
    }
}

impl ContextManager {
    fn opening(
        env: &Env,
        options: js::OpenOptions,
        import: Option<String>,
    ) -> napi::Result<PromiseRaw<'_, Self>> {
        let session_id = options.session_id.clone();
        promise(env, start(options, import), move |open| Self { session_id, open: Mutex::new(Some(open)) })
    }

    /// Runs an engine's call. Fails with `CLOSED` inside the promise, never by throwing.
    pub(crate) fn call<'env, T, U, F>(
        &self,
        env: &'env Env,
        work: impl FnOnce(Open) -> F + Send + 'static,
        convert: impl FnOnce(T) -> U + Send + 'static,
    ) -> napi::Result<PromiseRaw<'env, U>>
    where
        F: Future<Output = Result<T, Coded>> + Send + 'static,
        T: Send + 'static,
        U: napi::bindgen_prelude::ToNapiValue + 'static,
    {
        let open = self.current();
        promise(env, async move { work(open?).await }, convert)
    }

    /// A call that changes the session's sets.
    fn change<'env, F>(
        &self,
        env: &'env Env,
        work: impl FnOnce(Open) -> F + Send + 'static,
    ) -> napi::Result<PromiseRaw<'env, js::SetChange>>
    where
        F: Future<Output = Result<context_engine::SetChange, Coded>> + Send + 'static,
    {
        self.call(env, |open| async move { convert::set_change(work(open).await?) }, |change| change)
    }

    pub(crate) fn current(&self) -> Result<Open, Coded> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(Coded::closed)
    }
}

/// Opens the store and the session; with the file of an export, after taking that in.
pub(crate) async fn start(options: js::OpenOptions, import: Option<String>) -> Result<Open, Coded> {
    let session = SessionId::new(&options.session_id)?;
    let opened = store::open(options.store.clone()).await?;
    match open_session(session, options, &opened.store, import).await {
        Ok(engine) => Ok(Open { engine, opened }),
        Err(error) => {
            // The first error is the one to report.
            let _second = opened.store.close().await;
            Err(error)
        }
    }
}

async fn open_session(
    session: SessionId,
    options: js::OpenOptions,
    store: &Arc<dyn Store>,
    import: Option<String>,
) -> Result<Engine, Coded> {
    let window = convert::window(options.window)?;
    let stays = convert::stays(options.stay)?;
    let imported = match import {
        Some(path) => Some(import::session_file(&**store, &path).await?),
        None => None,
    };
    let mounts = options.mounts.unwrap_or_default().into_iter().map(|m| MountMapping {
        agent_prefix: m.agent_prefix,
        canonical_prefix: m.canonical_prefix,
        filesystem_id: m.filesystem_id,
    });
    let engine = Engine::open(Options {
        home: options.home,
        system_prompt: options.system_prompt,
        filesystem_id: options.filesystem_id,
        mounts: mounts.collect(),
        window,
        stays,
        watch: options.watch.unwrap_or(true),
        watch_unmapped: options.watch_unmapped,
        detect_devices: options.detect_devices.unwrap_or(false),
        redact: options.redact.unwrap_or(false),
        ..Options::new(session.clone(), options.cwd, Arc::clone(store))
    })
    .await?;
    if let Some(original) = imported.filter(|original| *original != session) {
        engine.restore(&original, store.latest_tx().await?, None).await?;
    }
    Ok(engine)
}
