//! Looking into a store without opening a session.
#![cfg_attr(test, allow(dead_code, reason = "a test build does not register functions with Node"))]

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::ObjectType;
use context_model::source::Source;
use context_secrets::{self as secrets, Place};
use context_store::sessions::{self, SessionSummary};
use context_store::transfer;
use context_store::{AsOf, Filter, Hit, Known, Outline, Search, Store};
use napi::bindgen_prelude::{Env, PromiseRaw};
use napi_derive::napi;

use crate::convert;
use crate::error::{Coded, promise};
use crate::json::{History, Json};
use crate::store;
use crate::types as js;

/// As many versions are read at once.
const PAGE: usize = 256;

/// The sessions of a store, the one that was written last first.
///
/// Rejects with the errors of the store.
#[napi]
pub fn list_sessions(
    env: &Env,
    store: js::StoreOptions,
) -> napi::Result<PromiseRaw<'_, Vec<js::SessionSummary>>> {
    let work = with(store, |store| async move { Ok(sessions::summaries(&*store).await?) });
    promise(env, work, |all: Vec<SessionSummary>| all.into_iter().map(summary).collect())
}

/// Full-text search over all sessions of a store, best match first.
///
/// Rejects with the errors of the store.
#[napi]
pub fn search_store(
    env: &Env,
    store: js::StoreOptions,
    text: String,
    options: Option<js::SearchOptions>,
) -> napi::Result<PromiseRaw<'_, Vec<js::StoreHit>>> {
    let work = async move {
        let wanted = convert::wanted(text, options)?;
        with(store, |store| async move {
            let within = match wanted.session_id {
                None => None,
                Some(session) => {
                    let session = SessionId::new(session)?;
                    let ids = transfer::session_objects(&*store, &session).await?;
                    if ids.is_empty() {
                        return Err(Coded::unknown(&ObjectId::session(&session)));
                    }
                    Some(ids.into_iter().collect())
                }
            };
            let (text, limit, object_type) = (wanted.text, wanted.limit, wanted.object_type);
            let hits = store.search(&Search { text, limit, object_type, within }).await?;
            let ids: Vec<ObjectId> = hits.iter().map(|hit| hit.id.clone()).collect();
            hits.into_iter().zip(store.outlines(&ids).await?).map(hit).collect::<Result<Vec<_>, Coded>>()
        })
        .await
    };
    promise(env, work, |hits| hits)
}

/// The IDs of the objects that a name may stand for: the object with this ID; else the files with this canonical path;
/// else the objects whose IDs, or whose short names as models and people see them (`673a446c`), begin so. At most 20.
///
/// Rejects with the errors of the store.
#[napi]
pub fn find_objects(
    env: &Env,
    store: js::StoreOptions,
    name: String,
) -> napi::Result<PromiseRaw<'_, Vec<String>>> {
    let work = with(store, |store| async move {
        let exact = ObjectId::new(name.clone());
        if store.outlines(std::slice::from_ref(&exact)).await?.iter().any(Option::is_some) {
            return Ok(vec![exact]);
        }
        if let Some(path) = convert::stored_path(&name) {
            let filter = Filter {
                object_type: Some(ObjectType::File),
                path_prefix: Some(path.clone()),
                ..Filter::default()
            };
            let ids = store.query(&filter).await?;
            let outlines = store.outlines(&ids).await?.into_iter().flatten();
            return Ok(outlines
                .filter(|outline| path_of(outline).as_deref() == Some(&path))
                .map(|outline| outline.id)
                .collect());
        }
        let mut ids = store.query(&Filter::default()).await?;
        ids.retain(|id| !name.is_empty() && (id.as_str().starts_with(&name) || is_short_name(&name, id)));
        ids.truncate(20);
        Ok(ids)
    });
    promise(env, work, |ids: Vec<ObjectId>| ids.iter().map(ToString::to_string).collect())
}

/// The fewest hexadecimal digits of a short name that are accepted, as in git.
const SHORTEST_NAME: usize = 4;

/// Short names are the first digits of the ID's hash.
fn is_short_name(name: &str, id: &ObjectId) -> bool {
    name.len() >= SHORTEST_NAME
        && name.bytes().all(|b| b.is_ascii_hexdigit())
        && Digest::of(id.as_str().as_bytes()).to_string().starts_with(&name.to_ascii_lowercase())
}

/// The versions of an object, oldest first, or a part of them; empty for an unknown object.
///
/// Rejects with the errors of the store.
#[napi(ts_return_type = "Promise<Version[]>")]
pub fn object_history(
    env: &Env,
    store: js::StoreOptions,
    id: String,
    part: Option<js::HistoryPart>,
) -> napi::Result<PromiseRaw<'_, History>> {
    let work = async move {
        let (mut after, mut left) = convert::history_part(part)?;
        with(store, |store| async move {
            let (id, mut history) = (ObjectId::new(id), History::default());
            while left > 0 {
                let page = store.history_page(&id, after, left.min(PAGE)).await?;
                let Some(last) = page.last() else { break };
                (after, left) = (last.tx_id, left.saturating_sub(page.len()));
                history.add(page)?;
            }
            Ok(history)
        })
        .await
    };
    promise(env, work, |history| history)
}

/// The version of an object that holds now, or held after a transaction; `null` if there is none.
///
/// Rejects with the errors of the store.
#[napi(ts_return_type = "Promise<Version | null>")]
pub fn read_object(
    env: &Env,
    store: js::StoreOptions,
    id: String,
    tx_id: Option<f64>,
) -> napi::Result<PromiseRaw<'_, Option<Json>>> {
    let work = async move {
        let known = tx_id.map(convert::tx).transpose()?.map(Known::Tx);
        with(store, |store| async move {
            let found = store.get(&ObjectId::new(id), AsOf { valid_time: None, known }).await?;
            found.map(|version| Json::version(&version)).transpose()
        })
        .await
    };
    promise(env, work, |found| found)
}

/// Looks for secrets of known shapes in all versions of a store, with the rules of gitleaks. It names the places, never the
/// secrets: in a name that contains one, `[secret]` or a mark such as `[redacted: github-pat]` stands in its place.
///
/// Rejects with the errors of the store.
#[napi]
pub fn find_secrets(
    env: &Env,
    store: js::StoreOptions,
) -> napi::Result<PromiseRaw<'_, Vec<js::SecretPlace>>> {
    let work = with(store, |store| async move {
        let found = secrets::in_store(&*store).await?;
        let ids: Vec<ObjectId> = found.places.iter().map(|place| place.id.clone()).collect();
        let outlines = store.outlines(&ids).await?;
        let hidden = |name: String| without(name, &found.values);
        Ok(found.places.into_iter().zip(outlines).map(|place| named(place, &hidden)).collect::<Vec<_>>())
    });
    promise(env, work, |places| places)
}

/// The text as `redact` stores it, with a mark such as `[redacted: github-pat]` in place of each secret; null if it has none.
///
/// Never rejects.
#[napi]
pub fn redacted_text(env: &Env, text: String) -> napi::Result<PromiseRaw<'_, Option<String>>> {
    let work = async move { Ok(secrets::redacted(&text, None).map(|(text, _)| text)) };
    promise(env, work, |text| text)
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
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let tool = outline.as_ref().and_then(|outline| outline.payload.get("tool")?.as_str().map(str::to_owned));
    js::SecretPlace {
        id: hidden(place.id.to_string()),
        path: outline.as_ref().and_then(path_of).map(hidden),
        tool: tool.map(hidden),
        tx_id: convert::number(place.tx_id),
        line: place.line.map(count),
        rule: place.rule.to_owned(),
        count: count(place.count),
    }
}

/// Opens a store for one piece of work.
async fn with<T, W>(
    options: js::StoreOptions,
    work: impl FnOnce(Arc<dyn Store>) -> W + Send,
) -> Result<T, Coded>
where
    W: Future<Output = Result<T, Coded>> + Send,
    T: Send,
{
    store::used(store::open(Some(options)).await?.store, work).await
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

fn hit((hit, outline): (Hit, Option<Outline>)) -> Result<js::StoreHit, Coded> {
    let field = |name: &str| outline.as_ref()?.payload.get(name);
    Ok(js::StoreHit {
        id: hit.id.to_string(),
        r#type: outline.as_ref().map_or("", |outline| outline.object_type.as_str()).to_owned(),
        path: outline.as_ref().and_then(path_of),
        tool: field("tool").and_then(|tool| tool.as_str()).map(str::to_owned),
        args: field("args").map(Json::of).transpose()?,
        tx_id: convert::number(hit.tx_id),
        is_latest: outline.as_ref().is_some_and(|outline| outline.tx_id == hit.tx_id),
        line: u32::try_from(hit.line).unwrap_or(u32::MAX),
        snippet: hit.snippet,
    })
}

fn path_of(outline: &Outline) -> Option<String> {
    match outline.source.as_ref()? {
        Source::Filesystem(source) => Some(source.path.clone()),
        Source::Other(_) => None,
    }
}
