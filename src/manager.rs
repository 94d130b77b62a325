//! The class `ContextManager`.

use std::sync::OnceLock;

use context_engine::Query;
use napi::Result;
use napi::bindgen_prelude::{Either, Env, Function, PromiseRaw};
use napi_derive::napi;
use tracing::Instrument as _;

use crate::callback;
use crate::convert::{self, list};
use crate::history;
use crate::json;
use crate::life::Life;
use crate::open::{self, Open};
use crate::types as js;

/// The native half of the class `ContextManager` in lib/session/manager.ts, which documents the methods.
#[napi]
pub struct ContextManager {
    session_id: OnceLock<String>,
    pub(crate) life: Life<Open>,
}

#[napi]
impl ContextManager {
    #[napi(constructor)]
    #[allow(clippy::new_without_default, reason = "only JavaScript makes instances")]
    pub fn new() -> Self {
        Self { session_id: OnceLock::new(), life: Life::new() }
    }

    #[napi]
    pub fn start<'e>(
        &self,
        env: &'e Env,
        options: js::OpenOptions,
        file: Option<String>,
    ) -> Result<PromiseRaw<'e, ()>> {
        let span = open::span(self.session_id.get_or_init(|| options.session_id.clone()));
        self.life.begin(env, open::start(options, file).instrument(span))
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
        self.life.call(env, |open| async move {
            Ok(open.engine.index_file(&path, content, call_id.as_deref()).await?.into())
        })
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
        self.life.call(env, |open| async move {
            Ok(open.engine.index_written(&path, content, call_id.as_deref()).await?.into())
        })
    }

    #[napi]
    pub fn index_files<'e>(
        &self,
        env: &'e Env,
        paths: Vec<String>,
    ) -> Result<PromiseRaw<'e, js::IndexedFiles>> {
        self.life.call(env, |open| async move { Ok(open.engine.index_files(paths).await?.into()) })
    }

    #[napi]
    pub fn index_file_deletion<'e>(
        &self,
        env: &'e Env,
        path: String,
    ) -> Result<PromiseRaw<'e, js::IndexResult>> {
        self.life.call(env, |open| async move { Ok(open.engine.index_deletion(&path).await?.into()) })
    }

    #[napi]
    pub fn discover<'e>(
        &self,
        env: &'e Env,
        paths: Vec<String>,
    ) -> Result<PromiseRaw<'e, Vec<js::IndexResult>>> {
        self.life.call(env, |open| async move { Ok(list(open.engine.discover(&paths).await?)) })
    }

    #[napi]
    pub fn record_toolcall<'e>(&self, env: &'e Env, call: js::Toolcall) -> Result<PromiseRaw<'e, String>> {
        self.life.call(env, |open| async move {
            Ok(open.engine.record_toolcall(convert::toolcall(call)?).await?.to_string())
        })
    }

    #[napi(ts_args_type = "message: object", ts_return_type = "Promise<{ turnCount: number }>")]
    pub fn append_turn<'e>(&self, env: &'e Env, message: String) -> Result<PromiseRaw<'e, js::TurnCount>> {
        self.life.call(env, |open| async move {
            let count = open.engine.append_turn(json::value(message)?).await?;
            Ok(js::TurnCount { turn_count: convert::count(count) })
        })
    }

    #[napi]
    pub fn set_system_prompt<'e>(&self, env: &'e Env, text: String) -> Result<PromiseRaw<'e, ()>> {
        self.life.call(env, |open| async move { Ok(open.engine.set_system_prompt(&text).await?) })
    }

    #[napi]
    pub fn activate<'e>(
        &self,
        env: &'e Env,
        id: String,
        part: Option<js::Part>,
    ) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.life.call(env, |open| async move {
            convert::set_change(open.engine.activate(&id, convert::part(part)?).await?)
        })
    }

    #[napi]
    pub fn deactivate<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.life.call(env, |open| async move { convert::set_change(open.engine.deactivate(&id).await?) })
    }

    #[napi]
    pub fn pin<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.life.call(env, |open| async move { convert::set_change(open.engine.pin(&id).await?) })
    }

    #[napi]
    pub fn unpin<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.life.call(env, |open| async move { convert::set_change(open.engine.unpin(&id).await?) })
    }

    #[napi]
    pub fn promote<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.life.call(env, |open| async move { convert::set_change(open.engine.promote(&id).await?) })
    }

    #[napi]
    pub fn demote<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, js::SetChange>> {
        self.life.call(env, |open| async move { convert::set_change(open.engine.demote(&id).await?) })
    }

    #[napi]
    pub fn session_sets<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::SessionSets>> {
        self.life.call(env, |open| async move { Ok(open.engine.session_sets().await?.into()) })
    }

    #[napi]
    pub fn orphaned<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<String>>> {
        self.life.call(env, |open| async move { Ok(convert::texts(&open.engine.orphaned().await?)) })
    }

    #[napi]
    pub fn assemble<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::Assembled>> {
        self.life.call(env, |open| async move { convert::assembled(&open.engine.assemble().await?) })
    }

    #[napi(ts_return_type = "Promise<ObjectDocument | null>")]
    pub fn get<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, Option<String>>> {
        self.life
            .call(env, |open| async move { open.engine.get(&id).await?.as_ref().map(json::text).transpose() })
    }

    #[napi(ts_return_type = "Promise<ObjectDocument | null>")]
    pub fn get_as_of<'e>(
        &self,
        env: &'e Env,
        id: String,
        at: Either<String, js::AsOf>,
    ) -> Result<PromiseRaw<'e, Option<String>>> {
        self.life.call(env, |open| async move {
            open.engine.get_as_of(&id, convert::as_of(at)?).await?.as_ref().map(json::text).transpose()
        })
    }

    #[napi(ts_return_type = "Promise<Version[]>")]
    pub fn history<'e>(
        &self,
        env: &'e Env,
        id: String,
        part: Option<js::HistoryPart>,
    ) -> Result<PromiseRaw<'e, Vec<String>>> {
        self.life.call(env, |open| async move {
            let (after, most) = convert::history_part(part)?;
            history::of(open.store(), &open.engine.object(&id)?, after, most).await
        })
    }

    #[napi]
    pub fn diff<'e>(
        &self,
        env: &'e Env,
        id: String,
        from_tx: f64,
        to_tx: f64,
    ) -> Result<PromiseRaw<'e, String>> {
        self.life.call(env, move |open| async move {
            let (from, to) = (convert::tx(from_tx)?, convert::tx(to_tx)?);
            Ok(open.engine.diff(&id, from, to).await?)
        })
    }

    #[napi(ts_return_type = "Promise<ObjectDocument[]>")]
    pub fn query<'e>(&self, env: &'e Env, filter: js::QueryFilter) -> Result<PromiseRaw<'e, String>> {
        self.life.call(env, |open| async move {
            let query = Query {
                object_type: convert::object_type(filter.r#type)?,
                session_id: filter.session_id,
                path_prefix: filter.path_prefix,
                since: filter.since.map(|t| t.parse()).transpose()?,
            };
            json::text(&open.engine.query(&query).await?)
        })
    }

    #[napi]
    pub fn search<'e>(
        &self,
        env: &'e Env,
        text: String,
        options: Option<js::SearchOptions>,
    ) -> Result<PromiseRaw<'e, Vec<js::SearchHit>>> {
        self.life.call(env, |open| async move {
            let wanted = convert::wanted(text, options)?;
            Ok(list(open.engine.search(&wanted).await?))
        })
    }

    #[napi]
    pub fn stats<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::Stats>> {
        self.life.call(env, |open| async move { Ok(open.engine.stats().await?.into()) })
    }

    #[napi]
    pub fn store_state<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::StoreState>> {
        self.life.call(env, |open| async move { Ok(open.opened.state()) })
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
        let open = self.life.current().map_err(|error| error.into_napi(env))?;
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
        let open = self.life.current().map_err(|error| error.into_napi(env))?;
        callback::subscribe(env, open.engine, listener, true)
    }

    #[napi]
    pub fn reconcile<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<js::IndexResult>>> {
        self.life.call(env, |open| async move { Ok(list(open.engine.reconcile().await?)) })
    }

    #[napi]
    pub fn flush<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, ()>> {
        self.life.call(env, |open| async move { Ok(open.engine.flush().await?) })
    }

    #[napi]
    pub fn pause<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, ()>> {
        self.life.call(env, |open| async move { Ok(open.engine.pause().await?) })
    }

    #[napi]
    pub fn close<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Option<js::StoreState>>> {
        self.life.end(env, |open| async move {
            let ended = open.engine.close().await;
            open.opened.store.close().await?;
            ended?;
            Ok(open.opened.state())
        })
    }
}
