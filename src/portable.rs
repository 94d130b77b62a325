//! Moving histories between stores, and checking a store as a whole.
#![cfg_attr(test, allow(dead_code, reason = "a test build does not register functions with Node"))]

use std::path::Path;
use std::sync::Arc;

use context_model::id::{ObjectId, SessionId};
use context_model::time::Timestamp;
use context_secrets as secrets;
use context_store::sessions::{Limits, Prune, Pruned};
use context_store::transfer::{self, Summary, Target};
use context_store::{Damage, Erase, ErasedCount, Store, StoreError};
use context_store_sqlite::{Durability, SqliteStore};
use napi::bindgen_prelude::{Env, PromiseRaw};
use napi_derive::napi;

use crate::convert;
use crate::error::{Coded, promise};
use crate::look;
use crate::manager::{ContextManager, Open};
use crate::store;
use crate::types as js;

#[napi]
impl ContextManager {
    /// Writes this session, with the whole history of everything it has encountered, as JSON Lines, readable only by
    /// the owner. An existing file is replaced once the new one is complete.
    ///
    /// Rejects with `IO`, and with the errors of the store.
    #[napi]
    pub fn export_session<'env>(
        &self,
        env: &'env Env,
        path: String,
    ) -> napi::Result<PromiseRaw<'env, js::TransferSummary>> {
        let session = self.session_id();
        let work = |open: Open| async move {
            let session = SessionId::new(session)?;
            let ids = transfer::session_objects(open.store(), &session).await?;
            export_to(open.store(), &ids, Path::new(&path)).await
        };
        self.call(env, work, summary)
    }
}

/// Writes the histories of a store, or of one of its sessions, as JSON Lines.
///
/// Rejects with `UNKNOWN_OBJECT` if the store does not have the session, `IO`, and with the errors of the store.
#[napi]
pub fn export_store(
    env: &Env,
    store: js::StoreOptions,
    path: String,
    session_id: Option<String>,
) -> napi::Result<PromiseRaw<'_, js::TransferSummary>> {
    let work = async move {
        let store = store::open(Some(store)).await?.store;
        let exported = async {
            let ids = match session_id {
                None => transfer::all_objects(&*store).await?,
                Some(session) => {
                    let session = SessionId::new(session)?;
                    let ids = transfer::session_objects(&*store, &session).await?;
                    if ids.is_empty() {
                        return Err(Coded::unknown(&ObjectId::session(&session)));
                    }
                    ids
                }
            };
            export_to(&*store, &ids, Path::new(&path)).await
        };
        let exported = exported.await;
        store.close().await?;
        exported
    };
    promise(env, work, summary)
}

/// Writes those versions of an export that a store does not have yet, with the same IDs, hashes, order and valid
/// times. An interrupted import can be repeated.
///
/// Rejects with `INVALID_ARGUMENT` if the file is damaged, incomplete or not an export (nothing was written),
/// `CONFLICT` if the store has an object with the same ID and a different history, `IO`, and with the errors of the
/// store.
#[napi]
pub fn import_store(
    env: &Env,
    store: js::StoreOptions,
    path: String,
) -> napi::Result<PromiseRaw<'_, js::TransferSummary>> {
    let work = async move {
        let mut file = transfer::open(Path::new(&path))?;
        // Before the store is made: a file that can't be imported leaves no empty one behind.
        transfer::check(&mut file)?;
        let store = store::open(Some(store)).await?.store;
        let imported = transfer::import(&mut file, &*store).await;
        store.close().await?;
        Ok(imported?)
    };
    promise(env, work, summary)
}

/// Reads a whole store and lists each version that does not match its stored hash. An empty list means an intact
/// store.
#[napi]
pub fn verify_store(env: &Env, store: js::StoreOptions) -> napi::Result<PromiseRaw<'_, Vec<js::Damage>>> {
    let work = async move {
        let store = store::open(Some(store)).await?.store;
        let found = store.verify().await;
        store.close().await?;
        Ok(found?)
    };
    promise(env, work, |found: Vec<Damage>| found.into_iter().map(damage).collect())
}

/// Erases texts from a store for good: from all versions, the search index, the log and the free pages of a file; from XTDB
/// with `evict`, and from the journal in front of it. Envelopes, hashes and times stay. The versions say when and why, and
/// the same text is never stored again. A file is rewritten, which needs free space of twice its size. An interrupted call
/// is completed by repeating it.
///
/// Rejects with `INVALID_ARGUMENT` for an unknown object, path or session and for a text that is too short; with
/// `STORE_FULL` if there is not enough free space (nothing was erased then); and with the errors of the store.
#[napi]
pub fn forget_store(
    env: &Env,
    store: js::StoreOptions,
    wanted: Vec<js::Forgetting>,
    why: String,
) -> napi::Result<PromiseRaw<'_, js::Forgotten>> {
    let work = async move {
        let (all_secrets, wanted): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|one| one.secrets == Some(true));
        let mut wanted = wanted.into_iter().map(erase).collect::<Result<Vec<_>, Coded>>()?;
        let store = store::open(Some(store)).await?.owned();
        store::used(store, |store| async move {
            if !all_secrets.is_empty() {
                wanted.extend(secrets::in_store(&*store).await?.values.into_iter().map(Erase::Text));
            }
            Ok(store.erase(wanted, &why).await?)
        })
        .await
    };
    promise(env, work, |count: ErasedCount| js::Forgotten {
        texts: count.texts as f64,
        versions: count.versions as f64,
    })
}

/// Removes sessions from a store, together with what only they have encountered. They can be imported again. Sessions written
/// or opened within the last day stay.
///
/// Rejects with `INVALID_ARGUMENT` if neither an age, a size nor a project is given, and with the errors of the store.
#[napi]
pub fn prune_store(
    env: &Env,
    store: js::StoreOptions,
    options: js::PruneOptions,
) -> napi::Result<PromiseRaw<'_, js::Pruned>> {
    let work = async move {
        let before = options.older_than_days.map(before).transpose()?;
        let max_bytes = options.max_bytes.map(|bytes| convert::whole(bytes, "maxBytes")).transpose()?;
        let wanted = Prune {
            before,
            max_bytes: max_bytes.map(|bytes| bytes as u64),
            project: options.project.map(|path| convert::stored_path(&path).unwrap_or(path)),
            is_dry_run: options.dry_run.unwrap_or(false),
        };
        let store = store::open(Some(store)).await?.owned();
        store::used(store, |store| async move { Ok(store.prune(wanted).await?) }).await
    };
    promise(env, work, |pruned: Pruned| js::Pruned {
        sessions: pruned.sessions.into_iter().map(look::summary).collect(),
        objects: pruned.objects as f64,
        freed_bytes: pruned.freed_bytes as f64,
        used_bytes: pruned.used_bytes as f64,
        is_shorter: pruned.is_shorter,
    })
}

/// Returns the limits of a database file; sets them first if they are given. Without limits, nothing is removed
/// automatically.
///
/// Rejects with `INVALID_ARGUMENT` for a store that is not a file, and with the errors of the store.
#[napi]
pub fn store_limits(
    env: &Env,
    store: js::StoreOptions,
    limits: Option<js::StoreLimits>,
) -> napi::Result<PromiseRaw<'_, js::StoreLimits>> {
    let work = async move {
        let limits = limits.map(|limits| -> Result<Limits, Coded> {
            let max_bytes = limits.max_bytes.map(|bytes| convert::whole(bytes, "maxBytes")).transpose()?;
            let max_days = limits.max_days.map(|days| convert::whole(days, "maxDays")).transpose()?;
            let max_days = max_days.map(|days| u32::try_from(days).unwrap_or(u32::MAX));
            Ok(Limits { max_bytes: max_bytes.map(|bytes| bytes as u64), max_days })
        });
        let limits = limits.transpose()?;
        in_file(store, |store| async move {
            if let Some(limits) = limits {
                store.set_limits(limits).await?;
            }
            Ok(store.limits().await?)
        })
        .await
    };
    promise(env, work, |limits: Limits| js::StoreLimits {
        max_bytes: limits.max_bytes.map(|bytes| bytes as f64),
        max_days: limits.max_days.map(f64::from),
    })
}

/// The time this many days ago.
fn before(days: f64) -> Result<Timestamp, Coded> {
    let millis = convert::whole(days, "olderThanDays")?.saturating_mul(24 * 60 * 60 * 1_000);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    Ok(Timestamp::from_millis(now.saturating_sub(i64::try_from(millis).unwrap_or(i64::MAX))))
}

/// Opens a database file for a task that only this kind of store supports.
async fn in_file<T, W>(
    options: js::StoreOptions,
    work: impl FnOnce(Arc<SqliteStore>) -> W + Send,
) -> Result<T, Coded>
where
    W: Future<Output = Result<T, Coded>> + Send,
    T: Send,
{
    let js::StoreOptions::Sqlite { path, .. } = options else {
        let what = "only a database file keeps to limits by itself; on XTDB, run `prune` when you want it";
        return Err(Coded::invalid(what));
    };
    let open = move || SqliteStore::open(path, Durability::Power);
    let store = tokio::task::spawn_blocking(open)
        .await
        .map_err(|error| StoreError::Unavailable(error.to_string()))??;
    store::used(store, work).await
}

fn erase(wanted: js::Forgetting) -> Result<Erase, Coded> {
    match (wanted.id, wanted.path, wanted.text, wanted.session_id) {
        (Some(id), None, None, None) => Ok(Erase::Object(ObjectId::new(id))),
        (None, Some(path), None, None) => Ok(Erase::Path(path)),
        (None, None, Some(text), None) => Ok(Erase::Text(text)),
        (None, None, None, Some(session)) => Ok(Erase::Session(SessionId::new(session)?)),
        _ => Err(Coded::invalid("name one of id, path, text, sessionId and secrets")),
    }
}

/// Writes next to the target and renames, so that an incomplete export never replaces a complete one.
async fn export_to(store: &dyn Store, ids: &[ObjectId], path: &Path) -> Result<Summary, Coded> {
    let mut target = Target::create(path)?;
    let summary = transfer::export(store, ids, &mut target).await?;
    target.finish()?;
    Ok(summary)
}

fn summary(summary: Summary) -> js::TransferSummary {
    js::TransferSummary {
        objects: summary.objects as f64,
        versions: summary.versions as f64,
        written: summary.written as f64,
    }
}

fn damage(damage: Damage) -> js::Damage {
    js::Damage {
        id: damage.id.map(|id| id.to_string()),
        tx_id: damage.tx_id.map(convert::number),
        what: damage.what,
    }
}
