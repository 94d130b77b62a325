//! The class `Store`, second part: moving histories between stores, checking a store, and removing from it.

use std::path::Path;

use context_engine::{session_objects, stored_path};
use context_model::id::{ObjectId, SessionId};
use context_model::time::Timestamp;
use context_secrets as secrets;
use context_store::sessions::{Limits, Prune};
use context_store::transfer::{self, Summary, Target};
use context_store::{Damage, Erase};
use napi::Result;
use napi::bindgen_prelude::{Env, PromiseRaw};
use napi_derive::napi;

use crate::convert::{self, list};
use crate::error::{Coded, Outcome, promise};
use crate::manager::ContextManager;
use crate::store::Store;
use crate::types as js;

#[napi]
impl ContextManager {
    #[napi]
    pub fn export_session<'e>(
        &self,
        env: &'e Env,
        path: String,
    ) -> Result<PromiseRaw<'e, js::TransferSummary>> {
        self.life.call(env, |open| async move {
            let ids = transfer::session_objects(open.store(), open.engine.session_id()).await?;
            export_to(open.store(), &ids, Path::new(&path)).await
        })
    }
}

#[napi]
impl Store {
    #[napi]
    pub fn export<'e>(
        &self,
        env: &'e Env,
        path: String,
        session_id: Option<String>,
    ) -> Result<PromiseRaw<'e, js::TransferSummary>> {
        self.life.call(env, |opened| async move {
            let store = &*opened.store;
            let ids = match session_id {
                None => transfer::all_objects(store).await?,
                Some(session) => session_objects(store, &SessionId::new(session)?).await?,
            };
            export_to(store, &ids, Path::new(&path)).await
        })
    }

    #[napi]
    pub fn import<'e>(&self, env: &'e Env, path: String) -> Result<PromiseRaw<'e, js::TransferSummary>> {
        self.life.call(env, |opened| async move {
            let store = opened.writable()?;
            let mut file = transfer::open(Path::new(&path))?;
            Ok(transfer::import(&mut file, store).await?.into())
        })
    }

    #[napi]
    pub fn verify<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<js::Damage>>> {
        self.life.call(env, |opened| async move { Ok(list(opened.store.verify().await?)) })
    }

    #[napi]
    pub fn forget<'e>(
        &self,
        env: &'e Env,
        wanted: Vec<js::Forgetting>,
        why: String,
        options: Option<js::ForgetOptions>,
    ) -> Result<PromiseRaw<'e, js::Forgotten>> {
        self.life.call(env, move |opened| async move {
            let owned = opened.owned()?;
            let (all_secrets, wanted): (Vec<_>, Vec<_>) =
                wanted.into_iter().partition(|one| one.secrets == Some(true));
            let mut wanted = wanted.into_iter().map(erase).collect::<Outcome<Vec<_>>>()?;
            if !all_secrets.is_empty() {
                let found = secrets::in_store(&*opened.store).await?;
                wanted.extend(found.values.into_iter().map(Erase::Text));
            }
            let count = match options.and_then(|options| options.dry_run) {
                Some(true) => opened.file()?.would_erase(wanted).await?,
                _ => owned.erase(wanted, &why).await?,
            };
            Ok(js::Forgotten { texts: count.texts as f64, versions: count.versions as f64 })
        })
    }

    #[napi]
    pub fn prune<'e>(&self, env: &'e Env, options: js::PruneOptions) -> Result<PromiseRaw<'e, js::Pruned>> {
        self.life.call(env, move |opened| async move {
            let before = options.older_than_days.map(before).transpose()?;
            let max_bytes = options.max_bytes.map(|bytes| convert::whole(bytes, "maxBytes")).transpose()?;
            let wanted = Prune {
                before,
                max_bytes: max_bytes.map(|bytes| bytes as u64),
                project: options.project.map(|path| stored_path(&path).unwrap_or(path)),
                is_dry_run: options.dry_run.unwrap_or(false),
            };
            let pruned = opened.owned()?.prune(wanted).await?;
            Ok(js::Pruned {
                sessions: list(pruned.sessions),
                objects: pruned.objects as f64,
                freed_bytes: pruned.freed_bytes as f64,
                used_bytes: pruned.used_bytes as f64,
                is_shorter: pruned.is_shorter,
            })
        })
    }

    #[napi]
    pub fn limits<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::StoreLimits>> {
        self.life.call(env, |opened| async move { Ok(opened.limits().await?.into()) })
    }

    #[napi]
    pub fn set_limits<'e>(&self, env: &'e Env, limits: js::StoreLimits) -> Result<PromiseRaw<'e, ()>> {
        self.life.call(env, move |opened| async move {
            let max_bytes = limits.max_bytes.map(|bytes| convert::whole(bytes, "maxBytes")).transpose()?;
            let max_days = limits.max_days.map(|days| convert::whole(days, "maxDays")).transpose()?;
            let max_days = max_days.map(|days| u32::try_from(days).unwrap_or(u32::MAX));
            let limits = Limits { max_bytes: max_bytes.map(|bytes| bytes as u64), max_days };
            Ok(opened.file()?.set_limits(limits).await?)
        })
    }
}

/// Reads an export whole. Rejects with `INVALID_ARGUMENT` if it can't be imported, and `IO`.
#[napi]
#[allow(dead_code, reason = "only JavaScript calls it")]
pub(crate) fn check_export(env: &Env, path: String) -> Result<PromiseRaw<'_, ()>> {
    promise(env, async move {
        transfer::check(&mut transfer::open(Path::new(&path))?)?;
        Ok(())
    })
}

impl From<Limits> for js::StoreLimits {
    fn from(limits: Limits) -> Self {
        Self {
            max_bytes: limits.max_bytes.map(|bytes| bytes as f64),
            max_days: limits.max_days.map(f64::from),
        }
    }
}

/// The time this many days ago.
fn before(days: f64) -> Outcome<Timestamp> {
    let millis = convert::whole(days, "olderThanDays")?.saturating_mul(24 * 60 * 60 * 1_000);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    Ok(Timestamp::from_millis(now.saturating_sub(i64::try_from(millis).unwrap_or(i64::MAX))))
}

fn erase(wanted: js::Forgetting) -> Outcome<Erase> {
    match (wanted.id, wanted.path, wanted.text, wanted.session_id) {
        (Some(id), None, None, None) => Ok(Erase::Object(ObjectId::new(id))),
        (None, Some(path), None, None) => Ok(Erase::Path(path)),
        (None, None, Some(text), None) => Ok(Erase::Text(text)),
        (None, None, None, Some(session)) => Ok(Erase::Session(SessionId::new(session)?)),
        _ => Err(Coded::invalid("name one of id, path, text, sessionId and secrets")),
    }
}

/// Writes next to the target and renames, so that an incomplete export never replaces a complete one.
async fn export_to(
    store: &dyn context_store::Store,
    ids: &[ObjectId],
    path: &Path,
) -> Outcome<js::TransferSummary> {
    let mut target = Target::create(path, &store.files())?;
    let summary = transfer::export(store, ids, &mut target).await?;
    target.finish()?;
    Ok(summary.into())
}

impl From<Summary> for js::TransferSummary {
    fn from(summary: Summary) -> Self {
        Self {
            objects: summary.objects as f64,
            versions: summary.versions as f64,
            written: summary.written as f64,
        }
    }
}

impl From<Damage> for js::Damage {
    fn from(damage: Damage) -> Self {
        Self {
            id: damage.id.map(|id| id.to_string()),
            tx_id: damage.tx_id.map(convert::number),
            what: damage.what,
        }
    }
}
