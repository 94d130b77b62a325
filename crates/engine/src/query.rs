//! Looking at objects and their histories, with an open session.

use std::collections::HashSet;

use crate::session::Session;
use crate::session::catalog::Meta;
use crate::session::error::{EngineError, Result};
use context_evidence::unified;
use context_lines::{HitLine, HitObject};
use context_model::id::{ObjectId, SessionId};
use context_model::object::{Document, ObjectType};
use context_model::session::Sets;
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use context_store::{AsOf, Filter, Hit, Outline, Search, Version};
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
        let is_orphaned = match &latest.source {
            Some(Source::Filesystem(file)) => self.client.paths.is_foreign(file),
            _ => false,
        };
        let object = match (&path, &tool) {
            (Some(path), _) => HitObject::File { path: path.into(), is_orphaned },
            (None, Some(tool)) => HitObject::Toolcall(tool.into()),
            (None, None) => HitObject::Other(latest.object_type.as_str().into()),
        };
        let shown = HitLine {
            id: handle.as_deref().unwrap_or(id.as_str()).into(),
            tx: (!is_latest).then_some(tx_id.0),
            object,
            line,
            snippet: snippet.as_str().into(),
        }
        .to_string();
        let object_type = latest.object_type;
        Found { id, handle, object_type, path, tool, tx_id, is_latest, line, snippet, score, shown }
    }
}
