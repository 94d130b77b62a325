//! The class `Store`: reading a store without opening a session.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use context_engine::{find_objects, search_store, source_path};
use context_model::id::ObjectId;
use context_secrets::{self as secrets, Place};
use context_store::sessions::{self, SessionSummary};
use context_store::{AsOf, Hit, Known, Outline};
use napi::Result;
use napi::bindgen_prelude::{Env, PromiseRaw, ToNapiValue};
use napi_derive::napi;

use crate::convert;
use crate::error::{Coded, Outcome, promise};
use crate::history;
use crate::json;
use crate::opened::{self, Opened};
use crate::types as js;

/// The native half of the class `Store` in lib/store.ts, which documents the methods.
#[napi]
pub struct Store {
    opened: Arc<Mutex<Option<Opened>>>,
}

#[napi]
impl Store {
    /// An instance that is not open yet.
    #[napi(constructor)]
    #[allow(clippy::new_without_default, reason = "only JavaScript makes instances")]
    pub fn new() -> Self {
        Self { opened: Arc::default() }
    }

    /// Opens the store.
    #[napi]
    pub fn start<'e>(&self, env: &'e Env, options: js::StoreOptions) -> Result<PromiseRaw<'e, ()>> {
        let opened = Arc::clone(&self.opened);
        let work = async move {
            let store = opened::open(Some(options)).await?;
            *opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
            Ok(())
        };
        promise(env, work, |()| ())
    }

    #[napi]
    pub fn close<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, ()>> {
        let opened = self.opened().take();
        let work = async move {
            match opened {
                Some(opened) => Ok(opened.store.close().await?),
                None => Ok(()),
            }
        };
        promise(env, work, |()| ())
    }

    #[napi]
    pub fn state<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::StoreState>> {
        self.call(env, |opened| async move { Ok(opened.state()) }, |state| state)
    }

    #[napi]
    pub fn sessions<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<js::SessionSummary>>> {
        let work = |opened: Opened| async move { Ok(sessions::summaries(&*opened.store).await?) };
        self.call(env, work, |all: Vec<SessionSummary>| all.into_iter().map(summary).collect())
    }

    #[napi]
    pub fn search<'e>(
        &self,
        env: &'e Env,
        text: String,
        options: Option<js::SearchOptions>,
    ) -> Result<PromiseRaw<'e, Vec<js::StoreHit>>> {
        let work = |opened: Opened| async move {
            let store = &*opened.store;
            let hits = search_store(store, convert::wanted(text, options)?).await?;
            let ids: Vec<ObjectId> = hits.iter().map(|(hit, _)| hit.id.clone()).collect();
            let sessions = sessions::of_objects(store, &ids).await?;
            let mut found = Vec::with_capacity(hits.len());
            for (one, outline) in hits {
                let at = AsOf { valid_time: None, known: Some(Known::Tx(one.tx_id)) };
                let time = store.get(&one.id, at).await?.map(|version| version.valid_time.to_string());
                let session = sessions.get(&one.id).map(AsRef::as_ref);
                found.push(js::StoreHit { time, ..hit(one, outline, session)? });
            }
            Ok(found)
        };
        self.call(env, work, |hits| hits)
    }

    #[napi]
    pub fn session_of<'e>(
        &self,
        env: &'e Env,
        id: String,
    ) -> Result<PromiseRaw<'e, Option<js::SessionSummary>>> {
        let work = |opened: Opened| async move {
            let id = ObjectId::new(id);
            let found = sessions::of_objects(&*opened.store, std::slice::from_ref(&id)).await?;
            Ok(found.get(&id).map(|one| summary(one.as_ref().clone())))
        };
        self.call(env, work, |found| found)
    }

    #[napi]
    pub fn find<'e>(&self, env: &'e Env, name: String) -> Result<PromiseRaw<'e, Vec<String>>> {
        let work = |opened: Opened| async move { Ok(find_objects(&*opened.store, &name).await?) };
        self.call(env, work, |ids| ids.iter().map(ToString::to_string).collect())
    }

    #[napi(ts_return_type = "Promise<Version[]>")]
    pub fn history<'e>(
        &self,
        env: &'e Env,
        id: String,
        part: Option<js::HistoryPart>,
    ) -> Result<PromiseRaw<'e, Vec<String>>> {
        let work = |opened: Opened| async move {
            let (after, most) = convert::history_part(part)?;
            history::of(&*opened.store, &ObjectId::new(id), after, most).await
        };
        self.call(env, work, |pages| pages)
    }

    #[napi(ts_return_type = "Promise<Version | null>")]
    pub fn get<'e>(
        &self,
        env: &'e Env,
        id: String,
        tx_id: Option<f64>,
    ) -> Result<PromiseRaw<'e, Option<String>>> {
        let work = move |opened: Opened| async move {
            let tx = tx_id.map(convert::tx).transpose()?;
            // As of a transaction that is still to come, the store would give the latest version.
            if let Some(tx) = tx
                && tx > opened.store.latest_tx().await?
            {
                return Ok(None);
            }
            let known = tx.map(Known::Tx);
            let found = opened.store.get(&ObjectId::new(id), AsOf { valid_time: None, known }).await?;
            found.map(|version| json::version(&version)).transpose()
        };
        self.call(env, work, |found| found)
    }

    #[napi]
    pub fn find_secrets<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<js::SecretPlace>>> {
        let work = |opened: Opened| async move {
            let found = secrets::in_store(&*opened.store).await?;
            let ids: Vec<ObjectId> = found.places.iter().map(|place| place.id.clone()).collect();
            let outlines = opened.store.outlines(&ids).await?;
            let hidden = |name: String| without(name, &found.values);
            Ok(found.places.into_iter().zip(outlines).map(|place| named(place, &hidden)).collect::<Vec<_>>())
        };
        self.call(env, work, |places| places)
    }
}

impl Store {
    /// Runs a call on the open store. Fails with `CLOSED` inside the promise, never by throwing.
    pub(crate) fn call<'e, T, U, F>(
        &self,
        env: &'e Env,
        work: impl FnOnce(Opened) -> F + Send + 'static,
        convert: impl FnOnce(T) -> U + Send + 'static,
    ) -> Result<PromiseRaw<'e, U>>
    where
        F: Future<Output = Outcome<T>> + Send + 'static,
        T: Send + 'static,
        U: ToNapiValue + 'static,
    {
        let opened = self.opened().clone().ok_or_else(Coded::closed_store);
        promise(env, async move { work(opened?).await }, convert)
    }

    fn opened(&self) -> MutexGuard<'_, Option<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text as `redact` stores it, with a mark such as `[redacted: github-pat]` in place of each secret; null if it has none.
///
/// Never rejects.
#[napi]
#[allow(dead_code, reason = "only JavaScript calls it")]
pub fn redacted_text(env: &Env, text: String) -> Result<PromiseRaw<'_, Option<String>>> {
    let work = async move { Ok(secrets::redacted(&text, None).map(|(text, _)| text)) };
    promise(env, work, |text| text)
}

/// A session's summary in JavaScript's shape.
pub fn summary(summary: SessionSummary) -> js::SessionSummary {
    js::SessionSummary {
        id: summary.id.to_string(),
        turns: summary.turns as f64,
        objects: summary.objects as f64,
        last_written: summary.last_written.to_string(),
        folder: summary.folder,
        first_prompt: summary.first_prompt,
    }
}

/// What stands in place of a secret in a name.
const HIDDEN: &str = "[secret]";

/// A name that may contain a secret itself, such as a path, without it.
fn without(name: String, values: &HashSet<String>) -> String {
    let mut held: Vec<&str> =
        values.iter().map(String::as_str).filter(|value| name.contains(value)).collect();
    held.sort_unstable_by_key(|value| Reverse(value.len()));
    let name = held.into_iter().fold(name, |name, value| name.replace(value, HIDDEN));
    secrets::redacted(&name, None).map_or(name, |(name, _)| name)
}

fn named((place, outline): (Place, Option<Outline>), hidden: &dyn Fn(String) -> String) -> js::SecretPlace {
    let tool = outline.as_ref().and_then(|outline| outline.payload.get("tool")?.as_str().map(str::to_owned));
    js::SecretPlace {
        id: hidden(place.id.to_string()),
        path: outline.as_ref().and_then(source_path).cloned().map(hidden),
        tool: tool.map(hidden),
        tx_id: convert::number(place.tx_id),
        line: place.line.map(convert::count),
        rule: place.rule.to_owned(),
        count: convert::count(place.count),
    }
}

fn hit(hit: Hit, outline: Option<Outline>, session: Option<&SessionSummary>) -> Outcome<js::StoreHit> {
    let field = |name: &str| outline.as_ref()?.payload.get(name);
    Ok(js::StoreHit {
        id: hit.id.to_string(),
        r#type: outline.as_ref().map_or("", |outline| outline.object_type.as_str()).to_owned(),
        path: outline.as_ref().and_then(source_path).cloned(),
        tool: field("tool").and_then(|tool| tool.as_str()).map(str::to_owned),
        args: field("args").map(json::text).transpose()?,
        tx_id: convert::number(hit.tx_id),
        is_latest: outline.as_ref().is_some_and(|outline| outline.tx_id == hit.tx_id),
        line: convert::count(hit.line),
        snippet: hit.snippet,
        session: session.map(|session| session.id.to_string()),
        folder: session.and_then(|session| session.folder.clone()),
        time: None,
    })
}
