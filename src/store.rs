//! The class `Store`: reading a store without opening a session.

use std::cmp::Reverse;
use std::collections::HashSet;

use context_engine::{FoundInStore, find_objects, search_store, session_objects, source_path};
use context_model::id::{ObjectId, SessionId};
use context_model::time::{Timestamp, TxId};
use context_platform::MACHINE_ID_FILE;
use context_secrets::{self as secrets, SecretPlace};
use context_store::sessions::{self, SessionSummary};
use context_store::transfer::{self, Extent};
use context_store::{AsOf, Outline};
use napi::Result;
use napi::bindgen_prelude::{Env, PromiseRaw};
use napi_derive::napi;

use crate::convert::{self, list, texts};
use crate::error::{Outcome, promise};
use crate::history;
use crate::json;
use crate::life::Life;
use crate::opened::{self, Opened};
use crate::types as js;

/// The native half of the class `Store` in lib/native/store.ts, which documents the methods.
#[napi]
pub struct Store {
    pub(crate) life: Life<Opened>,
}

#[napi]
impl Store {
    /// An instance that is not open yet.
    #[napi(constructor)]
    #[allow(clippy::new_without_default, reason = "only JavaScript makes instances")]
    pub fn new() -> Self {
        Self { life: Life::new() }
    }

    /// Opens the store.
    #[napi]
    pub fn start<'e>(&self, env: &'e Env, options: js::StoreOptions) -> Result<PromiseRaw<'e, ()>> {
        self.life.begin(env, opened::open(Some(options)))
    }

    #[napi]
    pub fn close<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Option<js::StoreState>>> {
        self.life.end(env, |opened| async move {
            opened.store.close().await?;
            Ok(opened.state())
        })
    }

    #[napi]
    pub fn state<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::StoreState>> {
        self.life.call(env, |opened| async move { Ok(opened.state()) })
    }

    #[napi]
    pub fn sessions<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<js::SessionSummary>>> {
        self.life.call(env, |opened| async move { Ok(list(sessions::summaries(&*opened.store).await?)) })
    }

    #[napi]
    pub fn search<'e>(
        &self,
        env: &'e Env,
        text: String,
        options: Option<js::SearchOptions>,
    ) -> Result<PromiseRaw<'e, Vec<js::StoreHit>>> {
        self.life.call(env, |opened| async move {
            let store = &*opened.store;
            let hits = search_store(store, convert::wanted(text, options)?, MACHINE_ID_FILE).await?;
            let ids: Vec<ObjectId> = hits.iter().map(|found| found.hit.id.clone()).collect();
            let sessions = sessions::of_objects(store, &ids).await?;
            let mut found = Vec::with_capacity(hits.len());
            for one in hits {
                let time = one.time.map(|time| time.to_string());
                let session = sessions.get(&one.hit.id).map(AsRef::as_ref);
                found.push(js::StoreHit { time, ..hit(one, session)? });
            }
            Ok(found)
        })
    }

    #[napi]
    pub fn session_of<'e>(
        &self,
        env: &'e Env,
        id: String,
    ) -> Result<PromiseRaw<'e, Option<js::SessionSummary>>> {
        self.life.call(env, |opened| async move {
            let id = ObjectId::new(id);
            let found = sessions::of_objects(&*opened.store, std::slice::from_ref(&id)).await?;
            Ok(found.get(&id).map(|one| one.as_ref().clone().into()))
        })
    }

    #[napi]
    pub fn find<'e>(
        &self,
        env: &'e Env,
        name: String,
        session_id: Option<String>,
    ) -> Result<PromiseRaw<'e, Vec<String>>> {
        self.life.call(env, |opened| async move {
            let session = session_id.map(SessionId::new).transpose()?;
            Ok(texts(&find_objects(&*opened.store, &name, session.as_ref()).await?))
        })
    }

    #[napi]
    pub fn objects<'e>(
        &self,
        env: &'e Env,
        session_id: Option<String>,
    ) -> Result<PromiseRaw<'e, Vec<js::StoredObject>>> {
        self.life.call(env, |opened| async move {
            let store = &*opened.store;
            let ids = match session_id {
                None => transfer::all_objects(store).await?,
                Some(session) => session_objects(store, &SessionId::new(session)?).await?,
            };
            let outlines = store.outlines(&ids).await?;
            let mut objects = Vec::with_capacity(ids.len());
            for outline in outlines.into_iter().flatten() {
                let extent = transfer::extent(store, &outline.id).await?;
                objects.push(stored(outline, extent)?);
            }
            Ok(objects)
        })
    }

    #[napi(ts_return_type = "Promise<Version[]>")]
    pub fn history<'e>(
        &self,
        env: &'e Env,
        id: String,
        part: Option<js::HistoryPart>,
    ) -> Result<PromiseRaw<'e, Vec<String>>> {
        self.life.call(env, |opened| async move {
            let (after, most) = convert::history_part(part)?;
            history::of(&*opened.store, &ObjectId::new(id), after, most).await
        })
    }

    #[napi(ts_return_type = "Promise<Version | null>")]
    pub fn get<'e>(
        &self,
        env: &'e Env,
        id: String,
        tx_id: Option<f64>,
    ) -> Result<PromiseRaw<'e, Option<String>>> {
        self.life.call(env, move |opened| async move {
            let (id, tx) = (ObjectId::new(id), tx_id.map(convert::tx).transpose()?);
            let found = match tx {
                Some(tx) => opened.store.version(&id, tx).await?,
                None => opened.store.get(&id, AsOf::default()).await?,
            };
            found.map(|version| json::version(&version)).transpose()
        })
    }

    #[napi]
    pub fn find_secrets<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<js::SecretPlace>>> {
        self.life.call(env, |opened| async move {
            let found = secrets::in_store(&*opened.store).await?;
            let ids: Vec<ObjectId> = found.places.iter().map(|place| place.id.clone()).collect();
            let outlines = opened.store.outlines(&ids).await?;
            let hidden = |name: String| without(name, &found.values);
            Ok(found.places.into_iter().zip(outlines).map(|place| named(place, &hidden)).collect::<Vec<_>>())
        })
    }
}

/// The text as `redact` stores it, with a mark such as `[redacted: github-pat]` in place of each secret; null if it has none.
///
/// Never rejects.
#[napi]
#[allow(dead_code, reason = "only JavaScript calls it")]
pub(crate) fn redacted_text(env: &Env, text: String) -> Result<PromiseRaw<'_, Option<String>>> {
    let work = async move { Ok(secrets::redacted(&text, None).map(|(text, _)| text)) };
    promise(env, work)
}

impl From<SessionSummary> for js::SessionSummary {
    fn from(summary: SessionSummary) -> Self {
        Self {
            id: summary.id.to_string(),
            turns: summary.turns as f64,
            objects: summary.objects as f64,
            last_written: summary.last_written.to_string(),
            folder: summary.folder,
            first_prompt: summary.first_prompt,
        }
    }
}

/// The text that stands in place of a secret in a name.
const HIDDEN: &str = "[secret]";

/// A name that may contain a secret itself, such as a path, without it.
fn without(name: String, values: &HashSet<String>) -> String {
    let mut held: Vec<&str> =
        values.iter().map(String::as_str).filter(|value| name.contains(value)).collect();
    held.sort_unstable_by_key(|value| Reverse(value.len()));
    let name = held.into_iter().fold(name, |name, value| name.replace(value, HIDDEN));
    secrets::redacted(&name, None).map_or(name, |(name, _)| name)
}

fn named(
    (place, outline): (SecretPlace, Option<Outline>),
    hidden: &dyn Fn(String) -> String,
) -> js::SecretPlace {
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

fn stored(outline: Outline, extent: Extent) -> Outcome<js::StoredObject> {
    Ok(js::StoredObject {
        id: outline.id.to_string(),
        r#type: outline.object_type.as_str().to_owned(),
        path: source_path(&outline).cloned(),
        tool: outline.payload.get("tool").and_then(|tool| tool.as_str()).map(str::to_owned),
        args: outline.payload.get("args").map(json::text).transpose()?,
        written: extent.written.into_iter().map(mark).collect(),
        bytes: extent.bytes as f64,
    })
}

fn mark((tx, time): (TxId, Timestamp)) -> js::TransactionMark {
    js::TransactionMark { tx_id: convert::number(tx), tx_time: time.to_string() }
}

fn hit(found: FoundInStore, session: Option<&SessionSummary>) -> Outcome<js::StoreHit> {
    let FoundInStore { hit, outline, is_orphaned, .. } = found;
    let field = |name: &str| outline.as_ref()?.payload.get(name);
    Ok(js::StoreHit {
        id: hit.id.to_string(),
        r#type: outline.as_ref().map_or("", |outline| outline.object_type.as_str()).to_owned(),
        path: outline.as_ref().and_then(source_path).cloned(),
        is_orphaned: outline.as_ref().and_then(source_path).map(|_| is_orphaned),
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
