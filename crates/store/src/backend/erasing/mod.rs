//! The meaning of erasing, for every backend: the objects and texts that are erased, and the document that remains.

mod fragments;
mod gone;
mod position;

use std::collections::{BTreeSet, HashSet};

use context_model::id::{ObjectId, SessionId};
use context_model::object::ObjectType;
use context_model::source::Source;
use context_model::time::Timestamp;
pub use fragments::Needles;
pub use gone::{CHANGE, Gone, Rest};
pub use position::stripped;
pub use position::{Position, each_said, each_said_in_patch};
use serde_json::Value;

use crate::{AsOf, Erase, Erased, Filter, Result, Store, StoreError};

/// The mark of a version whose text was erased before it was written.
pub fn again(at: Timestamp) -> Erased {
    Erased { at, why: "its text was erased before".into() }
}

/// The error of a call about an object that the store does not have.
pub fn no_object(id: &ObjectId) -> StoreError {
    StoreError::Invalid(format!("the store has no object {id}"))
}

/// The error of a call about a file that the store does not have.
pub fn no_file(path: &str) -> StoreError {
    StoreError::Invalid(format!("the store has no file {path}"))
}

/// The error of a call about a session that the store does not have.
pub fn no_session(session: &SessionId) -> StoreError {
    StoreError::Invalid(format!("the store has no session {session}"))
}

/// The objects that the owner has named.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown object, path or session; errors of the store.
pub async fn objects(store: &dyn Store, wanted: &[Erase]) -> Result<BTreeSet<ObjectId>> {
    let mut objects = BTreeSet::new();
    for one in wanted {
        match one {
            Erase::Text(_) => {}
            Erase::Object(id) => {
                if store.outlines(std::slice::from_ref(id)).await?.iter().all(Option::is_none) {
                    return Err(no_object(id));
                }
                objects.insert(id.clone());
            }
            Erase::Path(path) => {
                let found = at_path(store, path).await?;
                if found.is_empty() {
                    return Err(no_file(path));
                }
                objects.extend(found);
            }
            Erase::Session(session) => objects.extend(objects_of_session(store, session).await?),
        }
    }
    Ok(objects)
}

async fn at_path(store: &dyn Store, path: &str) -> Result<Vec<ObjectId>> {
    let files = Filter { path_prefix: Some(path.to_owned()), ..Filter::default() };
    let ids = store.query(&files).await?;
    let outlines = store.outlines(&ids).await?;
    let is_there =
        |source: &Option<Source>| matches!(source, Some(Source::Filesystem(file)) if file.path == path);
    Ok(outlines.into_iter().flatten().filter(|one| is_there(&one.source)).map(|one| one.id).collect())
}

/// The objects of a session that no other session has encountered and that the store has.
async fn objects_of_session(store: &dyn Store, session: &SessionId) -> Result<Vec<ObjectId>> {
    let this = ObjectId::session(session);
    let mut mine = index_of(store, &this).await?.ok_or_else(|| no_session(session))?;
    let sessions = Filter { object_type: Some(ObjectType::Session), ..Filter::default() };
    for other in store.query(&sessions).await?.into_iter().filter(|other| *other != this) {
        for id in index_of(store, &other).await?.into_iter().flatten() {
            mine.remove(&id);
        }
    }
    mine.extend([this, ObjectId::chat(session), ObjectId::system_prompt(session)]);
    let ids: Vec<ObjectId> = mine.into_iter().collect();
    let known = store.outlines(&ids).await?;
    Ok(known.into_iter().flatten().map(|outline| outline.id).collect())
}

/// The objects that a session has encountered; `None` if there is no such session.
pub async fn index_of(store: &dyn Store, session: &ObjectId) -> Result<Option<HashSet<ObjectId>>> {
    let Some(version) = store.get(session, AsOf::default()).await? else { return Ok(None) };
    let index = version.document.field("session_index").and_then(Value::as_array);
    Ok(Some(index.into_iter().flatten().filter_map(Value::as_str).map(ObjectId::new).collect()))
}

/// Replaces the erased text in a payload.
pub const MARK: &str = "[erased]";
