//! Looking at objects and their histories (SSOT 2.1, 1.4).

use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::time::{Timestamp, TxId};
use context_store::{AsOf, Filter, Hit, Known, Search, Version};
use similar::TextDiff;

use crate::engine::Engine;
use crate::error::{EngineError, Result};

/// Which objects a query wants; fields that are `None` do not restrict.
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

/// Figures of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Estimated tokens of the next request; of the canonical view where nothing was projected yet.
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
    ///
    /// # Errors
    /// What the store reports.
    pub async fn stats(&self) -> Result<Stats> {
        let view = self.assemble().await?;
        let state = self.inner.lock().await?;
        let shown = state.sight.tokens();
        let estimate = |text: &str| context_model::tokens::estimate(text) as u64;
        Ok(Stats {
            context_tokens: if shown > 0 { shown } else { estimate(&view.text) },
            active_tokens: view.blocks.iter().map(|block| estimate(&block.content)).sum(),
            objects: state.sets.index().len(),
            rolls: state.rolled.count(),
        })
    }

    /// The session's newest own transaction: the point that [`Engine::restore`] leads back to.
    ///
    /// # Errors
    /// `CLOSED`.
    pub async fn point(&self) -> Result<TxId> {
        Ok(self.inner.lock().await?.point)
    }

    /// The latest version of an object, by full ID or handle; `None` where there is none.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn get(&self, name: &str) -> Result<Option<Document>> {
        self.get_as_of(name, AsOf::default()).await
    }

    /// The version of an object at a point of the two times; `None` where there was none.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn get_as_of(&self, name: &str, at: AsOf) -> Result<Option<Document>> {
        let id = self.id_of(name).await?;
        Ok(self.inner.store().get(&id, at).await?.map(|version| version.document))
    }

    /// All versions of an object in the order in which they were written; none for an unknown object.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn history(&self, name: &str) -> Result<Vec<Version>> {
        let id = self.id_of(name).await?;
        Ok(self.inner.store().history(&id).await?)
    }

    /// The difference of two versions' contents as a unified diff; empty where they are equal.
    ///
    /// # Errors
    /// `UNKNOWN_OBJECT` where one of the versions does not exist; what the store reports.
    pub async fn diff(&self, name: &str, from: TxId, to: TxId) -> Result<String> {
        let id = self.id_of(name).await?;
        let mut texts = Vec::with_capacity(2);
        for tx in [from, to] {
            let at = AsOf { known: Some(Known::Tx(tx)), valid_time: None };
            let version = self.inner.store().get(&id, at).await?;
            let version = version.ok_or_else(|| EngineError::Unknown(format!("{name}@{tx}")))?;
            texts.push(version.document.content().unwrap_or_default().to_owned());
        }
        Ok(unified(&texts[0], &texts[1], &format!("{name}@{from}"), &format!("{name}@{to}")))
    }

    /// The objects that fit, in the order in which they were first written.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible path; what the store reports.
    pub async fn query(&self, query: &Query) -> Result<Vec<Document>> {
        drop(self.inner.lock().await?);
        let mut filter = Filter { object_type: query.object_type, since: query.since, ..Filter::default() };
        if let Some(prefix) = &query.path_prefix {
            let place = self.inner.paths.resolve(prefix)?;
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

    /// Full-text search over the contents of all versions, best match first.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a text without a word; what the store reports.
    pub async fn search(
        &self,
        text: &str,
        limit: usize,
        object_type: Option<ObjectType>,
    ) -> Result<Vec<Hit>> {
        drop(self.inner.lock().await?);
        if !text.chars().any(char::is_alphanumeric) {
            return Err(EngineError::Invalid("a search names at least one word".into()));
        }
        let search = Search { text: text.to_owned(), limit: limit.clamp(1, 1000), object_type };
        Ok(self.inner.store().search(&search).await?)
    }

    async fn id_of(&self, name: &str) -> Result<ObjectId> {
        let state = self.inner.lock().await?;
        Ok(state.catalog.find(name).unwrap_or_else(|| ObjectId::new(name)))
    }

    async fn members(&self, session: &str) -> Result<std::collections::HashSet<ObjectId>> {
        let session = context_model::id::SessionId::new(session)?;
        let id = ObjectId::session(&session);
        let mut members: std::collections::HashSet<ObjectId> =
            [id.clone(), ObjectId::chat(&session), ObjectId::system_prompt(&session)].into();
        if let Some(version) = self.inner.store().get(&id, AsOf::default()).await? {
            let sets = context_model::session::Sets::from_document(&version.document)?;
            members.extend(sets.index().iter().cloned());
        }
        Ok(members)
    }
}

/// A unified diff with three lines of context; empty where the texts are equal.
pub(crate) fn unified(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old, new).unified_diff().context_radius(3).header(old_name, new_name).to_string()
}
