//! Looking at objects and their histories, with an open session or without one.

use std::collections::HashSet;

use crate::session::Session;
use crate::session::catalog::Meta;
use crate::session::error::{EngineError, Result};
use context_evidence::unified;
use context_lines::{escape, orphaned};
use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType};
use context_model::path;
use context_model::session::Sets;
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use context_store::{AsOf, Filter, Hit, Outline, Search, Store, Version, transfer};
use serde_json::Value;
use tracing::instrument;

use crate::engine::{Engine, Inner};

/// The maximum number of hits of one search.
const MOST_HITS: usize = 1_000;

/// The objects that a query selects; fields that are `None` do not restrict it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Only objects of this type.
    pub object_type: Option<ObjectType>,
    /// Only objects of this session: its infrastructure and what its index holds.
    pub session_id: Option<String>,
    /// Only files below this path, as the agent writes it.
    pub path_prefix: Option<String>,
    /// Only objects that changed at this time or later.
    pub since: Option<Timestamp>,
}

/// A full-text search; fields that are `None` do not restrict it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Words to find; all of them must occur in one content.
    pub text: String,
    /// At most this many hits, and at most 1,000.
    pub limit: usize,
    /// Only objects of this type.
    pub object_type: Option<ObjectType>,
    /// Only objects in the index of this session.
    pub session_id: Option<String>,
}

/// A place where a search found its words.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The object.
    pub id: ObjectId,
    /// The object's short name in this session, if the session has encountered it.
    pub handle: Option<String>,
    /// The object's type.
    pub object_type: ObjectType,
    /// A file's path as the agent sees it.
    pub path: Option<String>,
    /// The tool of a tool call.
    pub tool: Option<String>,
    /// The newest version with this content.
    pub tx_id: TxId,
    /// True if that is the object's latest version.
    pub is_latest: bool,
    /// The first line that matches, counted from 1.
    pub line: usize,
    /// The text of that line, shortened around the match.
    pub snippet: String,
    /// Higher is better; comparable within one answer only.
    pub score: f64,
    /// The whole hit as a line for the model, beginning with the name to activate it by.
    pub shown: String,
}

/// Figures of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Estimated tokens of the next request, or of the canonical view if nothing was projected yet.
    pub context_tokens: u64,
    /// Estimated tokens of the active set's contents.
    pub active_tokens: u64,
    /// Content objects in the session index.
    pub objects: usize,
    /// Rolls of the session that are in effect.
    pub rolls: usize,
}

impl Engine {
    /// Figures of the session, estimated as characters / 4.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn stats(&self) -> Result<Stats> {
        let view = self.assemble().await?;
        let state = self.inner.lock().await?;
        let shown = state.request.segments.tokens();
        let estimate = |text: &str| context_model::tokens::estimate(text) as u64;
        Ok(Stats {
            context_tokens: if shown > 0 { shown } else { estimate(view.text()) },
            active_tokens: view.blocks().map(|block| estimate(block.content)).sum(),
            objects: state.session.sets.index().len(),
            rolls: state.request.rolled.receipts().len(),
        })
    }

    /// The session's newest own transaction: the point that [`Engine::restore`] can return to.
    pub async fn point(&self) -> Result<TxId> {
        Ok(self.inner.lock().await?.session.point)
    }

    /// The valid times of the session's document and of its chat. They identify that point in any store.
    pub async fn point_times(&self) -> Result<[Timestamp; 2]> {
        self.inner.check_open()?;
        self.inner.times().await
    }

    /// The files of the session's index that this client can't reach now, in the order in which they entered: on another machine,
    /// inside a sandbox, or on a drive that was not mounted at the last look. Their latest version is the last known state.
    pub async fn orphaned(&self) -> Result<Vec<ObjectId>> {
        let state = self.inner.lock().await?;
        let session = &state.session;
        let is_orphaned = |id: &&ObjectId| {
            let source = session.catalog.get(id).and_then(Meta::file);
            source.is_some_and(|source| {
                self.inner.tracking.is_orphaned(id) || self.inner.client.paths.is_out_of_reach(source)
            })
        };
        Ok(session.sets.index().iter().filter(is_orphaned).cloned().collect())
    }

    /// The latest version of an object, by full ID or handle; `None` if there is none.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn get(&self, name: &str) -> Result<Option<Document>> {
        self.get_as_of(name, AsOf::default()).await
    }

    /// The version of an object at a point in valid and transaction time; `None` if there was none.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn get_as_of(&self, name: &str, at: AsOf) -> Result<Option<Document>> {
        let id = self.object(name)?;
        Ok(self.inner.store().get(&id, at).await?.map(|version| version.document))
    }

    /// All versions of an object, oldest first: by valid time, then by transaction; none for an unknown object.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn history(&self, name: &str) -> Result<Vec<Version>> {
        let id = self.object(name)?;
        Ok(self.inner.store().history(&id).await?)
    }

    /// Returns the difference between two versions' contents as a unified diff; empty if they are equal. It is whole, at any
    /// length, though not the shortest one where very many lines have changed (a line before it says so): only the text for a
    /// model has a limit ([`Engine::guard_edit`]), and other callers apply their own.
    ///
    /// A version is named by its transaction. If one transaction wrote several versions of an object, which the
    /// engine and imports never do, its number means the newest one.
    ///
    /// # Errors
    /// `UNKNOWN_OBJECT` if one of the transactions wrote no version of the object; `INVALID_ARGUMENT` if only the hash of one is stored;
    /// what the store reports.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn diff(&self, name: &str, from: TxId, to: TxId) -> Result<String> {
        let id = self.object(name)?;
        let mut texts = Vec::with_capacity(2);
        for tx in [from, to] {
            let version = self.inner.store().version(&id, tx).await?;
            let version = version.ok_or_else(|| EngineError::Unknown(format!("{name}@{tx}")))?;
            let document = version.document;
            if document.content().is_none() && document.source_hash().is_some() {
                let reason = format!("only the hash of {name}@{tx} is stored, so it can't be compared");
                return Err(EngineError::Invalid(reason));
            }
            texts.push(document.content().unwrap_or_default().to_owned());
        }
        Ok(unified(&texts[0], &texts[1], &format!("{name}@{from}"), &format!("{name}@{to}")))
    }

    /// The matching objects, in the order in which they were first written.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn query(&self, query: &Query) -> Result<Vec<Document>> {
        self.inner.check_open()?;
        let mut filter = Filter { object_type: query.object_type, since: query.since, ..Filter::default() };
        if let Some(prefix) = &query.path_prefix {
            let place = self.inner.client.paths.resolve(prefix)?;
            filter.filesystem_id = Some(place.source.filesystem_id);
            filter.path_prefix = Some(place.source.path);
        }
        let mut ids = self.inner.store().query(&filter).await?;
        if let Some(session) = &query.session_id {
            let members = self.members(session).await?;
            ids.retain(|id| members.contains(id));
        }
        let versions = self.inner.store().get_many(&ids, AsOf::default()).await?;
        Ok(versions.into_iter().flatten().map(|version| version.document).collect())
    }

    /// Full-text search over the contents of all versions, best match first; at most 1,000 hits.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a text without a word and for an impossible session ID; errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn search(&self, wanted: &Wanted) -> Result<Vec<Found>> {
        let own = {
            let state = self.inner.lock().await?;
            let is_own = wanted.session_id.as_deref() == Some(self.session_id().as_str());
            is_own.then(|| state.session.sets.index().iter().cloned().collect())
        };
        if !wanted.text.chars().any(char::is_alphanumeric) {
            return Err(EngineError::Invalid("a search must name at least one word".into()));
        }
        let within = match &wanted.session_id {
            Some(_) if own.is_some() => own,
            Some(session) => Some(self.index_of(&SessionId::new(session)?).await?),
            None => None,
        };
        let search = Search {
            text: wanted.text.clone(),
            limit: wanted.limit.min(MOST_HITS),
            object_type: wanted.object_type,
            within,
        };
        let hits = self.inner.store().search(&search).await?;
        let ids: Vec<ObjectId> = hits.iter().map(|hit| hit.id.clone()).collect();
        let outlines = self.inner.store().outlines(&ids).await?;
        let state = self.inner.lock().await?;
        let found = hits.into_iter().zip(outlines);
        Ok(found
            .filter_map(|(hit, outline)| Some(self.inner.describe(&state.session, hit, &outline?)))
            .collect())
    }

    /// The object that a full ID or a handle names. Never waits for other use of the session.
    ///
    /// # Errors
    /// `CLOSED`.
    pub fn object(&self, name: &str) -> Result<ObjectId> {
        self.inner.check_open()?;
        Ok(self.inner.names.find(name).unwrap_or_else(|| ObjectId::new(name)))
    }

    async fn members(&self, session: &str) -> Result<HashSet<ObjectId>> {
        let session = SessionId::new(session)?;
        let mut members = self.index_of(&session).await?;
        members.extend([
            ObjectId::session(&session),
            ObjectId::chat(&session),
            ObjectId::system_prompt(&session),
        ]);
        Ok(members)
    }

    /// The index of any session of the store; empty for an unknown one.
    async fn index_of(&self, session: &SessionId) -> Result<HashSet<ObjectId>> {
        let version = self.inner.store().get(&ObjectId::session(session), AsOf::default()).await?;
        let Some(version) = version else { return Ok(HashSet::new()) };
        Ok(Sets::from_document(&version.document)?.index().iter().cloned().collect())
    }
}

impl Inner {
    /// The valid times of the latest versions of the session's document and of its chat.
    pub(crate) async fn times(&self) -> Result<[Timestamp; 2]> {
        let ids = [self.client.session_object.clone(), self.client.chat_id.clone()];
        match &self.store().outlines(&ids).await?[..] {
            [Some(session), Some(chat)] => Ok([session.valid_time, chat.valid_time]),
            _ => Err(EngineError::Unknown(ids[0].to_string())),
        }
    }

    /// A hit with what is known about its object.
    fn describe(&self, session: &Session, hit: Hit, latest: &Outline) -> Found {
        let Hit { id, tx_id, line, snippet, score } = hit;
        let is_latest = latest.tx_id == tx_id;
        let handle = session.sets.index().contains(&id).then(|| session.handle(&id));
        let path = match &latest.source {
            Some(Source::Filesystem(file)) => Some(
                session.catalog.display(&id).map_or_else(|| self.client.paths.display(file), str::to_owned),
            ),
            Some(Source::Other(binding)) => Some(Value::Object(binding.clone()).to_string()),
            None => None,
        };
        let tool = latest.payload.get("tool").and_then(Value::as_str).map(str::to_owned);
        let name = handle.as_deref().unwrap_or(id.as_str());
        let version = if is_latest { String::new() } else { format!("@{tx_id}") };
        let is_foreign = match &latest.source {
            Some(Source::Filesystem(file)) => self.client.paths.is_foreign(file),
            _ => false,
        };
        let what = match (&path, &tool) {
            (Some(path), _) if is_foreign => orphaned(&format!("path={}", escape::short_text(path))),
            (Some(path), _) => format!("path={}", escape::short_text(path)),
            (None, Some(tool)) => format!("tool={}", escape::short_word(tool)),
            (None, None) => format!("type={}", latest.object_type.as_str()),
        };
        let shown = format!(
            "id={}{version} {what} line={line}: {}",
            escape::short_word(name),
            escape::line(&snippet)
        );
        let object_type = latest.object_type;
        Found { id, handle, object_type, path, tool, tx_id, is_latest, line, snippet, score, shown }
    }
}

/// At most as many objects whose IDs begin with a name.
const PREFIXED_MAX: usize = 20;
/// The fewest hexadecimal digits of a short name that are accepted, as in git.
const SHORT_NAME_MIN: usize = 4;

/// Returns the IDs of the objects that a name may denote: the object with this ID; else the files with this canonical path;
/// else up to 20 objects whose IDs, or whose short names as models and people see them (`673a446c`), begin so.
pub async fn find_objects(store: &dyn Store, name: &str) -> Result<Vec<ObjectId>> {
    let exact = ObjectId::new(name);
    if store.outlines(std::slice::from_ref(&exact)).await?.iter().any(Option::is_some) {
        return Ok(vec![exact]);
    }
    if let Some(path) = stored_path(name) {
        let filter = Filter {
            object_type: Some(ObjectType::File),
            path_prefix: Some(path.clone()),
            ..Filter::default()
        };
        let ids = store.query(&filter).await?;
        let outlines = store.outlines(&ids).await?.into_iter().flatten();
        return Ok(outlines
            .filter(|outline| source_path(outline) == Some(&path))
            .map(|outline| outline.id)
            .collect());
    }
    let mut ids = store.query(&Filter::default()).await?;
    ids.retain(|id| !name.is_empty() && (id.as_str().starts_with(name) || is_short_name(name, id)));
    ids.truncate(PREFIXED_MAX);
    Ok(ids)
}

/// Searches the contents of a store, or of one of its sessions, best match first. Each hit comes with its object's outline.
///
/// # Errors
/// `UNKNOWN_OBJECT` for a session that the store does not have, and those of the store.
pub async fn search_store(store: &dyn Store, wanted: Wanted) -> Result<Vec<(Hit, Option<Outline>)>> {
    let Wanted { text, limit, object_type, session_id } = wanted;
    let within = match session_id {
        None => None,
        Some(session) => Some(session_objects(store, &SessionId::new(session)?).await?.into_iter().collect()),
    };
    let hits = store.search(&Search { text, limit, object_type, within }).await?;
    let ids: Vec<ObjectId> = hits.iter().map(|hit| hit.id.clone()).collect();
    let outlines = store.outlines(&ids).await?;
    Ok(hits.into_iter().zip(outlines).collect())
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
