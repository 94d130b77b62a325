//! Names and searches in a whole store, without a session of it open.

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::ObjectType;
use context_model::path;
use context_model::source::Source;
use context_model::time::Timestamp;
use context_store::{Filter, Hit, Outline, Search, Store, StoreError, transfer};

use crate::query::Wanted;
use crate::session::client::machine_namespace;
use crate::session::error::{EngineError, Result};
use crate::session::namespaces::Namespaces;

/// At most as many objects whose IDs begin with a name.
const PREFIXED_MAX: usize = 20;
/// The fewest hexadecimal digits of a short name that are accepted, as in git.
const SHORT_NAME_MIN: usize = 4;

/// Returns the IDs of the objects that a name may denote: the object with this ID; else the files with this canonical path;
/// else up to 20 objects whose IDs, or whose short names as models and people see them (`673a446c`), begin so. With a session,
/// only of its objects.
///
/// # Errors
/// `UNKNOWN_OBJECT` for a session that the store does not have, and those of the store.
pub async fn find_objects(
    store: &dyn Store,
    name: &str,
    session: Option<&SessionId>,
) -> Result<Vec<ObjectId>> {
    let among = match session {
        Some(session) => Some(session_objects(store, session).await?),
        None => None,
    };
    let exact = ObjectId::new(name);
    if among.as_ref().is_none_or(|among| among.contains(&exact))
        && store.outlines(std::slice::from_ref(&exact)).await?.iter().any(Option::is_some)
    {
        return Ok(vec![exact]);
    }
    if let Some(path) = stored_path(name) {
        let filter = Filter {
            object_type: Some(ObjectType::File),
            path_prefix: Some(path.clone()),
            ..Filter::default()
        };
        let mut ids = store.query(&filter).await?;
        ids.retain(|id| among.as_ref().is_none_or(|among| among.contains(id)));
        let outlines = store.outlines(&ids).await?.into_iter().flatten();
        return Ok(outlines
            .filter(|outline| source_path(outline) == Some(&path))
            .map(|outline| outline.id)
            .collect());
    }
    let mut ids = match among {
        Some(among) => among,
        None => store.query(&Filter::default()).await?,
    };
    ids.retain(|id| !name.is_empty() && (id.as_str().starts_with(name) || is_short_name(name, id)));
    ids.truncate(PREFIXED_MAX);
    Ok(ids)
}

/// A hit of a search in a whole store.
#[derive(Clone, Debug)]
pub struct FoundInStore {
    /// The hit.
    pub hit: Hit,
    /// The latest version of its object, without the content; `None` if it was erased since.
    pub outline: Option<Outline>,
    /// When the version of the hit holds from; `None` if it was erased since, or is damaged.
    pub time: Option<Timestamp>,
    /// True for a file that is not on this machine's disks. False where the machine has no ID and the store keeps none.
    pub is_orphaned: bool,
}

/// Searches the contents of a store, or of one of its sessions, best match first. `machine_id_file` holds this machine's ID,
/// normally [`context_platform::MACHINE_ID_FILE`].
///
/// # Errors
/// `UNKNOWN_OBJECT` for a session that the store does not have, and those of the store.
pub async fn search_store(
    store: &dyn Store,
    wanted: Wanted,
    machine_id_file: &str,
) -> Result<Vec<FoundInStore>> {
    let Wanted { text, limit, object_type, session_id } = wanted;
    let within = match session_id {
        None => None,
        Some(session) => Some(session_objects(store, &SessionId::new(session)?).await?.into_iter().collect()),
    };
    let hits = store.search(&Search { text, limit, object_type, within }).await?;
    let ids: Vec<ObjectId> = hits.iter().map(|hit| hit.id.clone()).collect();
    let outlines = store.outlines(&ids).await?;
    // A store that is only read can't keep a new one.
    let own = machine_namespace(store, machine_id_file).await.ok().map(|own| Namespaces::new(own, true));
    let is_orphaned = |outline: &Outline| match (&own, &outline.source) {
        (Some(own), Some(Source::Filesystem(source))) => !own.has(source),
        _ => false,
    };
    let mut found = Vec::with_capacity(hits.len());
    for (hit, outline) in hits.into_iter().zip(outlines) {
        let time = match store.version(&hit.id, hit.tx_id).await {
            Ok(version) => version.map(|version| version.valid_time),
            // The hit says so.
            Err(StoreError::Corrupt(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let is_orphaned = outline.as_ref().is_some_and(is_orphaned);
        found.push(FoundInStore { hit, outline, time, is_orphaned });
    }
    Ok(found)
}

/// The objects of a session: its infrastructure and what it has encountered.
///
/// # Errors
/// `UNKNOWN_OBJECT` for a session that the store does not have, and those of the store.
pub async fn session_objects(store: &dyn Store, session: &SessionId) -> Result<Vec<ObjectId>> {
    let ids = transfer::session_objects(store, session).await?;
    if ids.is_empty() { Err(EngineError::Unknown(ObjectId::session(session).to_string())) } else { Ok(ids) }
}

/// Short names are the first digits of the ID's hash.
fn is_short_name(name: &str, id: &ObjectId) -> bool {
    name.len() >= SHORT_NAME_MIN
        && name.bytes().all(|b| b.is_ascii_hexdigit())
        && Digest::of(id.as_str().as_bytes()).to_string().starts_with(&name.to_ascii_lowercase())
}

/// Returns an absolute path as a store has it: a POSIX path as it is, a Windows path with slashes and its drive letter in upper
/// case. `None` for a text that is not an absolute path.
#[must_use]
pub fn stored_path(text: &str) -> Option<String> {
    if text.starts_with('/') { Some(text.to_owned()) } else { path::absolute(text) }
}

/// The canonical path of a file's outline.
#[must_use]
pub fn source_path(outline: &Outline) -> Option<&String> {
    match outline.source.as_ref()? {
        Source::Filesystem(source) => Some(&source.path),
        Source::Other(_) => None,
    }
}
