//! The class `ContextManager`.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use context_engine::{Engine, Options, Query};
use context_model::id::SessionId;
use context_model::mounts::MountMapping;
use context_store::Store;
use napi::Result;
use napi::bindgen_prelude::{Either, Env, Function, PromiseRaw};
use napi_derive::napi;
use tracing::{Instrument as _, Span};

use crate::callback;
use crate::convert;
use crate::error::{Coded, Outcome, promise};
use crate::history;
use crate::json;
use crate::opened::{self, Opened};
use crate::types as js;

/// What an open instance holds.
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

/// An instance's life. JavaScript makes the instance and then opens it, so that it can be one of a class of its own.
#[derive(Clone)]
pub(crate) enum Life {
    /// Made and not yet open.
    New,
    Open(Open),
    Closed,
}

/// The native half of the class `ContextManager` in lib/manager.ts, which documents the methods.
#[napi]
pub struct ContextManager {
    session_id: OnceLock<String>,
    life: Arc<Mutex<Life>>,
}

#[napi]
impl ContextManager {
    #[napi(constructor)]
    #[allow(clippy::new_without_default, reason = "only JavaScript makes instances")]
    pub fn new() -> Self {
        Self { session_id: OnceLock::new(), life: Arc::new(Mutex::new(Life::New)) }
    }

    #[napi]
    pub fn start<'e>(
        &self,
        env: &'e Env,
        options: js::OpenOptions,
        file: Option<String>,
    ) -> Result<PromiseRaw<'e, ()>> {
        let life = Arc::clone(&self.life);
        self.session_id.get_or_init(|| options.session_id.clone());
        let span = self.span();
        let work = async move {
            let open = start(options, file).await?;
            *life.lock().unwrap_or_else(PoisonError::into_inner) = Life::Open(open);
            Ok(())
        };
        promise(env, work.instrument(span), |()| ())
    }

    /// The ID of the session; empty before `start`.
    #[napi(getter)]
    pub fn session_id(&self) -> String {
        self.session_id.get().cloned().unwrap_or_default()
    }

    #[napi]
    pub fn index_file<'e>(
        &self,
        env: &'e Env,
        path: String,
        content: Option<js::Content>,
        call_id: Option<String>,
    ) -> Result<PromiseRaw<'e, js::IndexResult>> {
        let content = content.map(convert::bytes);
        self.call(
            env,
            |open| async move { Ok(open.engine.index_file(&path, content, call_id.as_deref()).await?) },
            convert::index_result,
        )
    }

    #[napi]
    pub fn index_written<'e>(
        &self,
        env: &'e Env,
        path: String,
        content: Option<js::Content>,
        call_id: Option<String>,
    ) -> Result<PromiseRaw<'e, js::IndexResult>> {
        let content = content.map(convert::bytes);
        self.call(
            env,
            |open| async move { Ok(open.engine.index_written(&path, content, call_id.as_deref()).await?) },
            convert::index_result,
        )
    }

    #[napi]
    pub fn index_files<'e>(
        &self,
        env: &'e Env,
        paths: Vec<String>,
    ) -> Result<PromiseRaw<'e, js::IndexedFiles>> {
        self.call(
            env,
            |open| async move { Ok(open.engine.index_files(paths).await?) },
            convert::indexed_files,
        )
    }

    #[napi]
    pub fn index_file_deletion<'e>(
        &self,
        env: &'e Env,
        path: String,
    ) -> Result<PromiseRaw<'e, js::IndexResult>> {
        self.call(
            env,
            |open| async move { Ok(open.engine.index_deletion(&path).await?) },
            convert::index_result,
        )
    }

    #[napi]
    pub fn discover<'e>(
        &self,
        env: &'e Env,
        paths: Vec<String>,
    ) -> Result<PromiseRaw<'e, Vec<js::IndexResult>>> {
        let work = |open: Open| async move { Ok(open.engine.discover(&paths).await?) };
        self.call(env, work, |results| results.into_iter().map(convert::index_result).collect())
    }

    #[napi]
    pub fn record_toolcall<'e>(&self, env: &'e Env, call: js::Toolcall) -> Result<PromiseRaw<'e, String>> {
        let work =
            |open: Open| async move { Ok(open.engine.record_toolcall(convert::toolcall(call)?).await?) };
        self.call(env, work, |id| id.to_string())
    }

    #[napi(ts_args_type = "message: object", ts_return_type = "Promise<{ turnCount: number }>")]
    pub fn append_turn<'e>(&self, env: &'e Env, message: String) -> Result<PromiseRaw<'e, js::TurnCount>> {
        let work = |open: Open| async move { Ok(open.engine.append_turn(json::value(message)?).await?) };
        self.call(env, work, |count| js::TurnCount { turn_count: convert::count(count) })
    }

    #[napi]
    pub fn set_system_prompt<'e>(&self, env: &'e Env, text: String) -> Result<PromiseRaw<'e, ()>> {
        self.call(env, |open| async move { Ok(open.engine.set_system_prompt(&text).await?) }, |()| ())
    }

    #[napi]
    pub fn activate<'e>(
        &self,
        env: &'e Env,
        id: String,
        part: Option<js::Part>,
    ) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.activate(&id, convert::part(part)?).await?) })
    }

    #[napi]
    pub fn deactivate<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.deactivate(&id).await?) })
    }

    #[napi]
    pub fn pin<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.pin(&id).await?) })
    }

    #[napi]
    pub fn unpin<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.unpin(&id).await?) })
    }

    #[napi]
    pub fn promote<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.promote(&id).await?) })
    }

    #[napi]
    pub fn demote<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.change(env, |open| async move { Ok(open.engine.demote(&id).await?) })
    }

    #[napi]
    pub fn session_sets<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::SessionSets>> {
        self.call(env, |open| async move { Ok(open.engine.session_sets().await?) }, convert::session_sets)
    }

    #[napi]
    pub fn assemble<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::Assembled>> {
        // Copied here and not where JavaScript waits.
        let work = |open: Open| async move { convert::assembled(&open.engine.assemble().await?) };
        self.call(env, work, |view| view)
    }

    #[napi(ts_return_type = "Promise<ObjectDocument | null>")]
    pub fn get<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, Option<String>>> {
        let work =
            |open: Open| async move { open.engine.get(&id).await?.as_ref().map(json::text).transpose() };
        self.call(env, work, |found| found)
    }

    #[napi(ts_return_type = "Promise<ObjectDocument | null>")]
    pub fn get_as_of<'e>(
        &self,
        env: &'e Env,
        id: String,
        at: Either<String, js::AsOf>,
    ) -> Result<PromiseRaw<'e, Option<String>>> {
        let work = |open: Open| async move {
            open.engine.get_as_of(&id, convert::as_of(at)?).await?.as_ref().map(json::text).transpose()
        };
        self.call(env, work, |found| found)
    }

    #[napi(ts_return_type = "Promise<Version[]>")]
    pub fn history<'e>(
        &self,
        env: &'e Env,
        id: String,
        part: Option<js::HistoryPart>,
    ) -> Result<PromiseRaw<'e, Vec<String>>> {
        let work = |open: Open| async move {
            let (after, most) = convert::history_part(part)?;
            history::of(open.store(), &open.engine.object(&id)?, after, most).await
        };
        self.call(env, work, |pages| pages)
    }

    #[napi]
    pub fn diff<'e>(
        &self,
        env: &'e Env,
        id: String,
        from_tx: f64,
        to_tx: f64,
    ) -> Result<PromiseRaw<'e, String>> {
        let work = move |open: Open| async move {
            let (from, to) = (convert::tx(from_tx)?, convert::tx(to_tx)?);
            Ok(open.engine.diff(&id, from, to).await?)
        };
        self.call(env, work, |text| text)
    }

    #[napi(ts_return_type = "Promise<ObjectDocument[]>")]
    pub fn query<'e>(&self, env: &'e Env, filter: js::QueryFilter) -> Result<PromiseRaw<'e, String>> {
        let work = |open: Open| async move {
            let query = Query {
                object_type: convert::object_type(filter.r#type)?,
                session_id: filter.session_id,
                path_prefix: filter.path_prefix,
                since: filter.since.map(|t| t.parse()).transpose()?,
            };
            json::text(&open.engine.query(&query).await?)
        };
        self.call(env, work, |documents| documents)
    }

    #[napi]
    pub fn search<'e>(
        &self,
        env: &'e Env,
        text: String,
        options: Option<js::SearchOptions>,
    ) -> Result<PromiseRaw<'e, Vec<js::SearchHit>>> {
        let work = |open: Open| async move {
            let wanted = convert::wanted(text, options)?;
            Ok(open.engine.search(&wanted).await?)
        };
        self.call(env, work, |hits| hits.into_iter().map(convert::hit).collect())
    }

    #[napi]
    pub fn stats<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::Stats>> {
        self.call(env, |open| async move { Ok(open.engine.stats().await?) }, convert::stats)
    }

    #[napi]
    pub fn store_state<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::StoreState>> {
        self.call(env, |open| async move { Ok(open.opened.state()) }, |state| state)
    }

    #[napi(
        ts_args_type = "listener: (event: WatchEvent) => void",
        ts_return_type = "() => void",
        catch_unwind
    )]
    pub fn watch<'e>(
        &self,
        env: &'e Env,
        listener: Function<'e, js::WatchEvent, ()>,
    ) -> Result<Function<'e, (), ()>> {
        let open = self.current().map_err(|error| error.into_napi(env))?;
        callback::subscribe(env, open.engine, listener, false)
    }

    #[napi(
        ts_args_type = "listener: (event: WatchEvent) => void",
        ts_return_type = "() => void",
        catch_unwind
    )]
    pub fn watch_touches<'e>(
        &self,
        env: &'e Env,
        listener: Function<'e, js::WatchEvent, ()>,
    ) -> Result<Function<'e, (), ()>> {
        let open = self.current().map_err(|error| error.into_napi(env))?;
        callback::subscribe(env, open.engine, listener, true)
    }

    #[napi]
    pub fn reconcile<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<js::IndexResult>>> {
        let work = |open: Open| async move { Ok(open.engine.reconcile().await?) };
        self.call(env, work, |results| results.into_iter().map(convert::index_result).collect())
    }

    #[napi]
    pub fn flush<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, ()>> {
        self.call(env, |open| async move { Ok(open.engine.flush().await?) }, |()| ())
    }

    #[napi]
    pub fn pause<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, ()>> {
        self.call(env, |open| async move { Ok(open.engine.pause().await?) }, |()| ())
    }

    #[napi]
    pub fn close<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, ()>> {
        let life = std::mem::replace(&mut *self.life(), Life::Closed);
        let work = async move {
            let Life::Open(open) = life else { return Ok(()) };
            let ended = open.engine.close().await;
            open.opened.store.close().await?;
            Ok(ended?)
        };
        promise(env, work.instrument(self.span()), |()| ())
    }
}

impl ContextManager {
    /// Runs an engine's call. Fails with `CLOSED` inside the promise, never by throwing.
    pub(crate) fn call<'e, T, U, F>(
        &self,
        env: &'e Env,
        work: impl FnOnce(Open) -> F + Send + 'static,
        convert: impl FnOnce(T) -> U + Send + 'static,
    ) -> Result<PromiseRaw<'e, U>>
    where
        F: Future<Output = Outcome<T>> + Send + 'static,
        T: Send + 'static,
        U: napi::bindgen_prelude::ToNapiValue + 'static,
    {
        let open = self.current();
        promise(env, async move { work(open?).await }.instrument(self.span()), convert)
    }

    /// A call that changes the session's sets.
    fn change<'e, F>(
        &self,
        env: &'e Env,
        work: impl FnOnce(Open) -> F + Send + 'static,
    ) -> Result<PromiseRaw<'e, js::SetChange>>
    where
        F: Future<Output = Outcome<context_engine::SetChange>> + Send + 'static,
    {
        self.call(env, |open| async move { convert::set_change(work(open).await?) }, |change| change)
    }

    /// Returns what the log files a call's steps under.
    pub(crate) fn span(&self) -> Span {
        tracing::debug_span!(target: "context", "session", id = self.session_id.get())
    }

    pub(crate) fn current(&self) -> Outcome<Open> {
        match &*self.life() {
            Life::Open(open) => Ok(open.clone()),
            Life::New | Life::Closed => Err(Coded::closed()),
        }
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the store and the session; with the file of an export, after importing it.
pub(crate) async fn start(options: js::OpenOptions, import: Option<String>) -> Outcome<Open> {
    let session = SessionId::new(&options.session_id)?;
    let opened = opened::open(options.store.clone()).await?;
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
) -> Outcome<Engine> {
    let window = convert::window(options.window)?;
    let stays = convert::stays(options.stay)?;
    let mounts = options.mounts.unwrap_or_default().into_iter().map(|m| MountMapping {
        agent_prefix: m.agent_prefix,
        canonical_prefix: m.canonical_prefix,
        filesystem_id: m.filesystem_id,
    });
    let options = Options {
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
        ..Options::new(session, options.cwd, Arc::clone(store))
    };
    Ok(match import {
        Some(path) => Engine::import(Path::new(&path), options).await?,
        None => Engine::open(options).await?,
    })
}
