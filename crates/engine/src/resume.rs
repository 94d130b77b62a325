//! Reconciling a resumed session with its sources (SSOT 3.6), and moving to another point of it.

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::session::Sets;
use context_model::source::FilesystemSource;
use context_model::time::TxId;
use context_store::{AsOf, Known, StoreError};
use serde_json::Value;

use crate::catalog::Meta;
use crate::engine::{Engine, Inner};
use crate::error::Result;
use crate::files::{self, FileState};
use crate::ingest::{Entry, Seen};
use crate::paths::{Disk, Place};
use crate::rolls::Rolled;
use crate::state::{Chat, Work};

/// How many threads read files while a session is reconciled. More than there are cores, because most of the
/// time goes into waiting for a cold disk.
const READERS: usize = 8;

impl Engine {
    /// Takes over metadata pool, active and pinned sets and the chat as they were after a transaction of this
    /// session, or of the session that it was forked from. The index becomes the union of both.
    ///
    /// # Errors
    /// `UNKNOWN_OBJECT` where the session did not exist at that point; what the store reports.
    pub async fn restore(&self, session: &SessionId, tx: TxId) -> Result<()> {
        let inner = &self.inner;
        let mut state = inner.lock().await?;
        let at = AsOf { known: Some(Known::Tx(tx)), valid_time: None };
        let ids = [ObjectId::session(session), ObjectId::chat(session)];
        if tx > inner.store().latest_tx().await? {
            // The point is of another store, for instance of one that was removed since.
            return Err(crate::error::EngineError::Unknown(format!("{}@{tx}", ids[0])));
        }
        let mut found = inner.store().get_many(&ids, at).await?.into_iter();
        let (Some(Some(point)), Some(Some(chat))) = (found.next(), found.next()) else {
            return Err(crate::error::EngineError::Unknown(format!("{}@{tx}", ids[0])));
        };
        let sets = Sets::from_document(&point.document).map_err(|e| StoreError::Corrupt(e.to_string()))?;
        inner.learn(&mut state, sets.index().iter().cloned()).await?;

        let chat = own_chat(&self.inner.options.session_id, &chat.document)?;
        let turns = chat.field("turns").and_then(Value::as_array).map_or(0, Vec::len);
        for attempt in 0.. {
            let mut work = Work { documents: vec![chat.clone()], ..Work::default() };
            state.sets.restore(&sets, &mut work.change);
            work.chat_after = Some(Chat { turns });
            match inner.save(&mut state, work).await {
                Ok(_) => break,
                Err(error) => inner.retry(&mut state, attempt, error).await?,
            }
        }
        state.note_chat(&chat);
        Ok(())
    }
}

/// A chat document of another session as one of this session: a fork continues the conversation as its own.
fn own_chat(session: &SessionId, chat: &Document) -> Result<Document> {
    let (_, kind, source, mut payload) = chat.clone().into_parts();
    let own = ObjectId::session(session);
    payload.insert("session_ref".into(), own.as_str().into());
    Ok(Document::new(ObjectId::chat(session), kind, source, payload)?)
}

impl Inner {
    /// Compares every file of the index that the client can reach with what is stored, in one transaction;
    /// attaches trackers on the way. What can't be reached keeps its last version.
    pub async fn reconcile(&self) -> Result<()> {
        let known: Vec<(FilesystemSource, Option<Digest>, bool)> = {
            let state = self.lock().await?;
            let metas = state.sets.index().iter().filter_map(|id| state.catalog.get(id));
            metas
                .filter_map(|meta| {
                    let current = meta.current()?;
                    Some((meta.file()?.clone(), current.source_hash, current.is_null))
                })
                .collect()
        };
        if known.is_empty() {
            return Ok(());
        }
        let (paths, limit) = (self.paths.clone(), self.options.max_text_bytes);
        let shares = known.len().div_ceil(READERS).max(16);
        let mut readers = Vec::new();
        for share in known.chunks(shares) {
            let share = share.to_vec();
            let paths = paths.clone();
            let place_of = move |source: FilesystemSource| {
                let disk = paths.locate(&source);
                Place { agent_path: paths.display(&source), source, disk }
            };
            let places: Vec<_> = tokio::task::spawn_blocking(move || {
                share
                    .into_iter()
                    .map(|(source, hash, null)| (place_of(source), hash, null))
                    .collect::<Vec<_>>()
            })
            .await
            .map_err(|e| StoreError::Unavailable(e.to_string()))?;
            for (place, ..) in &places {
                if let Disk::At(path) = &place.disk {
                    self.tracking.track(path, &place.source);
                }
            }
            readers.push(tokio::task::spawn_blocking(move || {
                places
                    .into_iter()
                    .filter_map(|(place, hash, null)| compare(place, hash, null, limit))
                    .collect::<Vec<_>>()
            }));
        }
        let mut changed = Vec::new();
        for reader in readers {
            changed.extend(reader.await.map_err(|e| StoreError::Unavailable(e.to_string()))?);
        }
        if !changed.is_empty() {
            self.index(changed, Entry::Tracked).await?;
        }
        Ok(())
    }
}

/// What has changed at a place, if anything. A path that was only discovered stays so until it is read.
fn compare(place: Place, stored: Option<Digest>, is_null: bool, limit: u64) -> Option<Seen> {
    let Disk::At(path) = &place.disk else { return None };
    let only_discovered = is_null && stored.is_none();
    let state = files::read(path, limit);
    let same = match &state {
        FileState::Text { hash, .. } | FileState::NoText { hash, .. } => stored == Some(*hash),
        FileState::Gone => only_discovered,
        FileState::Unreachable | FileState::Unreadable { .. } => true,
    };
    if same || only_discovered {
        return None;
    }
    let reason = state.reason().map(str::to_owned);
    state.observation().map(|observation| Seen { place, observation, reason })
}

impl crate::state::State {
    /// Reads from the chat in which turn each tool call was made or last activated, and what was rolled.
    pub fn note_chat(&mut self, chat: &Document) {
        self.stays.clear();
        let turns = chat.field("turns").and_then(Value::as_array);
        self.rolled = Rolled::of_turns(turns.into_iter().flatten());
        let turns = chat.field("turns").and_then(Value::as_array);
        for (number, turn) in turns.into_iter().flatten().enumerate() {
            for name in ["toolcall_ids", "activated_ids"] {
                let ids = turn.get(name).and_then(Value::as_array);
                for id in ids.into_iter().flatten().filter_map(Value::as_str) {
                    self.stays.insert(ObjectId::new(id), number);
                }
            }
        }
    }

    /// Takes metadata of objects that another client wrote into the catalog.
    pub fn learn_outline(&mut self, outline: &context_store::Outline) {
        if let Some(meta) = Meta::of_outline(outline) {
            self.catalog.put(&outline.id, meta);
        }
    }
}
