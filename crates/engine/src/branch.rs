//! Moving to another point of a session, and comparing its files with the disk.
//!
//! A move goes as a message does (`messages.rs`): what it needs is read, the chat of the point is decided without waiting, and it
//! is committed and applied at once. The comparison of files that follows is another flow, as after opening: it may read
//! thousands of files, so it does not hold the state, and what it finds is recorded as any other look at files. If it fails, the
//! session has moved, and moving there again does no harm.

use std::collections::HashSet;

use crate::files::index::{FileEntry, IndexResult};
use crate::files::reconcile::{compare_all, stored_files};
use crate::session::Session;
use crate::session::client::Fsync;
use crate::session::commit::Work;
use crate::session::error::{EngineError, Result};
use crate::session::paths::Place;
use crate::session::refresh;
use context_model::chat::{Chat, RollEntry, adopt, beginning_of, begun};
use context_model::id::{ObjectId, SessionId};
use context_model::index::Action;
use context_model::object::Document;
use context_model::session::Sets;
use context_model::time::{Timestamp, TxId};
use context_projection::request::rolls::Rolled;
use context_store::{AsOf, KnownAt, StoreError, Version};
use serde_json::Value;
use tracing::instrument;

use crate::engine::{Engine, Inner, State};

impl Engine {
    /// Compares every file of the session with the disk, and indexes what has changed: for clients that do
    /// not watch. A file is read only if its size, times or inode number differ from what an earlier comparison saw.
    ///
    /// Returns the results for the files with a new version.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn reconcile(&self) -> Result<Vec<IndexResult>> {
        Ok(self.inner.reconcile(None).await?.indexed)
    }

    /// Restores the metadata pool, the active and pinned sets and the chat as they were after a transaction of this
    /// session, or of the session that it was forked from. The index becomes the union of both. Transaction 0 comes
    /// before all others: nothing has been encountered or said yet.
    ///
    /// Transaction numbers are a store's own, and valid times move with a session. `times`, as returned by
    /// [`Engine::point_times`], verify that the transaction is the right one, and find the point in a store that the
    /// session was moved to.
    ///
    /// # Errors
    /// `UNKNOWN_OBJECT` if the session did not exist at that point; errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn restore(&self, session: &SessionId, tx: TxId, times: Option<[Timestamp; 2]>) -> Result<()> {
        self.move_to(session, tx, times, false).await
    }

    /// The same for a transaction of this session and a harness that has removed messages from its conversation's end. The
    /// effects of rolls on the messages that stay remain, also if the rolls came later than the transaction: the provider has
    /// the messages in its cache as they were last sent, and the model's reasoning may be bound to that form.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn go_back(&self, tx: TxId) -> Result<()> {
        self.move_to(self.inner.client.session_id(), tx, None, true).await
    }

    /// The same for a point of which the store has no version, because it is before the beginning of a fork. The chat keeps its first `messages` messages of users and the model; the pool and the active and pinned sets stay as they are.
    ///
    /// # Errors
    /// Errors of the store.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn keep_beginning(&self, messages: usize) -> Result<()> {
        let inner = &self.inner;
        let mut state = inner.lock().await?;
        let Some(now) = inner.recorded(&inner.client.chat_id, AsOf::default()).await? else { return Ok(()) };
        let before = beginning_of(&now.document, messages)?;
        let rolls = rolls_of(Chat::of(&before), &now.document, &state.request.rolled);
        let chat = adopt(inner.client.session_id(), &before, &[&now.document], &rolls)?;
        inner.continue_with(&mut state, &chat, |_, _| ()).await
    }

    async fn move_to(
        &self,
        session: &SessionId,
        tx: TxId,
        times: Option<[Timestamp; 2]>,
        keeps_rolls: bool,
    ) -> Result<()> {
        let inner = &self.inner;
        let mut state = inner.lock().await?;
        let own = inner.client.session_id();
        let (point, chat) = if tx == TxId(0) {
            (Sets::default().document(own), begun(own)?)
        } else {
            let (point, chat) = inner.point_of(session, tx, times).await?;
            // The conversation may continue with messages that are newer than the point.
            let newer = [ObjectId::chat(own), ObjectId::chat(session)];
            let newer = self.inner.store().get_many(&newer, AsOf::default()).await?;
            let newer: Vec<&Document> = newer.iter().flatten().map(|version| &version.document).collect();
            let rolls = match newer.first().filter(|_| keeps_rolls) {
                Some(later) => rolls_of(Chat::of(&chat.document), later, &state.request.rolled),
                None => Vec::new(),
            };
            (point.document, adopt(own, &chat.document, &newer, &rolls)?)
        };
        let sets = Sets::from_document(&point).map_err(|e| StoreError::Corrupt(e.to_string()))?;
        let new: HashSet<ObjectId> = sets.index().difference(state.session.sets.index()).cloned().collect();
        refresh::learn(&inner.client, &mut state.session, new.iter().cloned()).await?;
        let displays = point.field("display_paths").and_then(Value::as_object);
        let restore = |session: &Session, work: &mut Work| {
            // The answer to the last write may be lost: then the stored sets differ from those in memory.
            work.expected.insert(inner.client.session_object.clone(), session.session_tx);
            session.sets.restore(&sets, &mut work.change);
            for (id, path) in displays.into_iter().flatten() {
                let id = ObjectId::new(id.as_str());
                if session.catalog.display(&id).is_none() {
                    work.show_as(session, &id, path.as_str().unwrap_or_default());
                }
            }
        };
        inner.continue_with(&mut state, &chat, restore).await?;
        drop(state);
        inner.reconcile(Some(&new)).await?;
        Ok(())
    }
}

/// The rolls since a chat had this form that are in effect on what it has.
fn rolls_of(before: Chat<'_>, later: &Document, rolled: &Rolled) -> Vec<RollEntry> {
    before.rolls_before(Chat::of(later), &Rolled::of(before).towards(rolled))
}

/// The result of comparing files with the disk.
#[derive(Default)]
pub(crate) struct Reconciled {
    /// The results for the files with a new version.
    pub indexed: Vec<IndexResult>,
    /// Files about which nothing is known.
    pub unreachable: Vec<Place>,
}

impl Inner {
    /// Replaces the session's chat, and leaves the branch that it had; `also` adds to the transaction.
    async fn continue_with(
        &self,
        state: &mut State,
        chat: &Document,
        also: impl Fn(&Session, &mut Work) + Send + Sync,
    ) -> Result<()> {
        let replace = |session: &Session, work: &mut Work| {
            work.documents.push(chat.clone());
            work.turns = Some(Chat::of(chat).len());
            also(session, work);
            Ok(())
        };
        self.commit(state, Fsync::Now, replace).await?;
        state.session.read_chat(chat);
        self.read_chat(state, Some(chat));
        state.leave_branch();
        Ok(())
    }

    /// Compares every file of the index (or only those in `only`) that the client can reach with its stored version,
    /// in one transaction, and attaches trackers along the way. Files that can't be reached keep their last version.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn reconcile(&self, only: Option<&HashSet<ObjectId>>) -> Result<Reconciled> {
        let file_reader = self.file_reader();
        let files = {
            let state = self.lock().await?;
            stored_files(&file_reader, &state.session, only, |id| state.known.get(id).is_some())
        };
        let compared = compare_all(&file_reader, &self.stamps, files).await?;
        if !compared.lost.is_empty() {
            self.lock().await?.session.lost.extend(compared.lost);
        }
        let mut indexed = Vec::new();
        if !compared.changed.is_empty() {
            indexed = self.index(compared.changed, FileEntry::Tracked).await?;
            indexed.retain(|result| result.action != Action::Unchanged);
        }
        Ok(Reconciled { indexed, unreachable: compared.unreachable })
    }

    /// The session's document and its chat at a point.
    async fn point_of(
        &self,
        session: &SessionId,
        tx: TxId,
        times: Option<[Timestamp; 2]>,
    ) -> Result<(Version, Version)> {
        let ids = [ObjectId::session(session), ObjectId::chat(session)];
        // A transaction later than the newest belongs to another store, for instance one that was removed.
        if tx <= self.store().latest_tx().await? {
            let at = AsOf { known: Some(KnownAt::Tx(tx)), valid_time: None };
            let mut found = self.store().get_many(&ids, at).await?.into_iter().flatten();
            if let (Some(point), Some(chat)) = (found.next(), found.next())
                && times.is_none_or(|times| times == [point.valid_time, chat.valid_time])
            {
                return Ok((point, chat));
            }
        }
        if let Some(times) = times {
            let mut found = Vec::new();
            for (id, time) in ids.iter().zip(times) {
                let at = AsOf { known: None, valid_time: Some(time) };
                found.extend(self.store().get(id, at).await?.filter(|version| version.valid_time == time));
            }
            if let Ok([point, chat]) = <[Version; 2]>::try_from(found) {
                return Ok((point, chat));
            }
        }
        Err(EngineError::Unknown(format!("{}@{tx}", ids[0])))
    }
}
