//! Reconciling a resumed session with its sources (SSOT 3.6), and moving to another point of it.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::index::Action;
use context_model::object::Document;
use context_model::session::Sets;
use context_model::source::FilesystemSource;
use context_model::time::{Timestamp, TxId};
use context_store::{AsOf, Known, Outline, StoreError, Version};
use serde_json::Value;

use crate::catalog::Meta;
use crate::engine::{Engine, Inner};
use crate::error::{EngineError, Result};
use crate::files::{self, FileState, Stamp};
use crate::ingest::{Entry, IndexResult};
use crate::paths::{Disk, Paths, Place};
use crate::rolls::Rolled;
use crate::seen::{Seen, file_id};
use crate::state::{Chat, Work};

/// How many threads read files while a session is reconciled. More than there are cores, because most of the
/// time goes into waiting for a cold disk.
const READERS: usize = 8;

impl Engine {
    /// Compares every file of the session with the disk, and indexes what has changed (SSOT 3.6): for clients that do
    /// not watch. A file is only read where its size, times or inode number differ from what an earlier comparison saw.
    ///
    /// Returns what was written.
    ///
    /// # Errors
    /// `CLOSED`; what the store reports.
    pub async fn reconcile(&self) -> Result<Vec<IndexResult>> {
        Ok(self.inner.reconcile(None).await?.indexed)
    }

    /// Takes over metadata pool, active and pinned sets and the chat as they were after a transaction of this
    /// session, or of the session that it was forked from. The index becomes the union of both. Transaction 0
    /// is before any other: nothing has been encountered, and nothing said.
    ///
    /// Transaction numbers are a store's own, and valid times move with a session. `times`, as
    /// [`Engine::point_times`] gave them, tell whether the transaction is the one that is meant, and find the
    /// point in a store that the session was moved to.
    ///
    /// # Errors
    /// `UNKNOWN_OBJECT` where the session did not exist at that point; what the store reports.
    pub async fn restore(&self, session: &SessionId, tx: TxId, times: Option<[Timestamp; 2]>) -> Result<()> {
        let inner = &self.inner;
        let mut state = inner.lock().await?;
        let own = &inner.options.session_id;
        let (point, chat) = if tx == TxId(0) {
            (Sets::default().document(own), Document::chat(own))
        } else {
            let (point, chat) = inner.point_of(session, tx, times).await?;
            (point.document, own_chat(own, &chat.document)?)
        };
        let sets = Sets::from_document(&point).map_err(|e| StoreError::Corrupt(e.to_string()))?;
        let new: HashSet<ObjectId> = sets.index().difference(state.sets.index()).cloned().collect();
        inner.learn(&mut state, new.iter().cloned()).await?;
        let displays = point.field("display_paths").and_then(Value::as_object);
        let turns = chat.field("turns").and_then(Value::as_array).map_or(0, Vec::len);
        for attempt in 0.. {
            let mut work = Work { documents: vec![chat.clone()], ..Work::default() };
            state.sets.restore(&sets, &mut work.change);
            for (id, path) in displays.into_iter().flatten() {
                let id = ObjectId::new(id.as_str());
                if state.catalog.display(&id).is_none() {
                    work.show_as(&state, &id, path.as_str().unwrap_or_default());
                }
            }
            work.chat_after = Some(Chat { turns });
            match inner.save(&mut state, work).await {
                Ok(_) => break,
                Err(error) => inner.retry(&mut state, attempt, error).await?,
            }
        }
        state.note_chat(&chat);
        drop(state);
        inner.reconcile(Some(&new)).await?;
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
    /// The session's document and its chat at a point.
    async fn point_of(
        &self,
        session: &SessionId,
        tx: TxId,
        times: Option<[Timestamp; 2]>,
    ) -> Result<(Version, Version)> {
        let ids = [ObjectId::session(session), ObjectId::chat(session)];
        let mut places = Vec::new();
        // A later transaction than the newest is one of another store, for instance of one that was removed.
        if tx <= self.store().latest_tx().await? {
            places.push(AsOf { known: Some(Known::Tx(tx)), valid_time: None });
        }
        let newest = times.and_then(|times| times.into_iter().max());
        places.extend(newest.map(|time| AsOf { known: None, valid_time: Some(time) }));
        for at in places {
            let mut found = self.store().get_many(&ids, at).await?.into_iter().flatten();
            if let (Some(point), Some(chat)) = (found.next(), found.next())
                && times.is_none_or(|times| times == [point.valid_time, chat.valid_time])
            {
                return Ok((point, chat));
            }
        }
        Err(EngineError::Unknown(format!("{}@{tx}", ids[0])))
    }

    /// Compares every file of the index (or those of them that are in `only`) that the client can reach with
    /// what is stored, in one transaction; attaches trackers on the way. What can't be reached keeps its last
    /// version.
    pub async fn reconcile(&self, only: Option<&HashSet<ObjectId>>) -> Result<Reconciled> {
        let mut known: Vec<Stored> = {
            let state = self.lock().await?;
            let ids = state.sets.index().iter().filter(|id| only.is_none_or(|only| only.contains(*id)));
            ids.filter_map(|id| Stored::of(state.catalog.get(id)?)).collect()
        };
        let mut found = Reconciled::default();
        if known.is_empty() {
            return Ok(found);
        }
        for stored in known.iter_mut().filter(|stored| stored.is_blank()) {
            stored.only_discovered = !self.was_more(stored).await?;
        }
        let stamps = self.stamps().await?;
        let since = self.newest();
        let (paths, limit) = (self.paths.clone(), self.options.max_text_bytes);
        let shares = known.len().div_ceil(READERS).max(16);
        let mut readers = Vec::new();
        for share in known.chunks(shares) {
            let share = share.to_vec();
            let paths = paths.clone();
            let (tracking, stamps) = (Arc::clone(&self.tracking), Arc::clone(&stamps));
            readers.push(tokio::task::spawn_blocking(move || {
                let compared = share.into_iter().map(|stored| {
                    let disk = paths.locate(&stored.source);
                    if let Disk::At(path) = &disk {
                        tracking.track(path, &stored.source);
                    }
                    compare(&paths, disk, stored, (&stamps, since), limit)
                });
                compared.collect::<Vec<_>>()
            }));
        }
        let mut changed = Vec::new();
        let mut fresh = Vec::new();
        for reader in readers {
            for compared in reader.await.map_err(|e| StoreError::Unavailable(e.to_string()))? {
                match compared {
                    Compared::Changed(seen) => changed.push(seen),
                    Compared::Read(id, hash, stamp) => fresh.push((id, (hash, stamp))),
                    Compared::Unreachable(place) => found.unreachable.push(place),
                    Compared::Same => {}
                }
            }
        }
        self.note_stamps(&stamps, fresh).await?;
        if !changed.is_empty() {
            found.indexed = self.index(changed, Entry::Tracked).await?;
            found.indexed.retain(|result| result.action != Action::Unchanged);
        }
        Ok(found)
    }

    /// Whether an object without content and hash had one in an earlier version: it was deleted, and not only
    /// discovered.
    async fn was_more(&self, stored: &Stored) -> Result<bool> {
        let before = AsOf { known: Some(Known::Tx(TxId(stored.tx.0.saturating_sub(1)))), valid_time: None };
        Ok(self.store().get(&file_id(&stored.source), before).await?.is_some())
    }
}

/// What a comparison of files with the disk brought to light.
#[derive(Default)]
pub(crate) struct Reconciled {
    /// What was written.
    pub indexed: Vec<IndexResult>,
    /// Files of which nothing can be said, because their directory is missing or can't be read.
    pub unreachable: Vec<Place>,
}

/// What is stored of a file, as far as a comparison needs it.
#[derive(Clone)]
struct Stored {
    source: FilesystemSource,
    hash: Option<Digest>,
    is_null: bool,
    tx: TxId,
    /// It has never been read.
    only_discovered: bool,
}

impl Stored {
    fn of(meta: &Meta) -> Option<Self> {
        let current = meta.current()?;
        let source = meta.file()?.clone();
        let (hash, is_null) = (current.source_hash, current.is_null);
        Some(Self { source, hash, is_null, tx: meta.tx, only_discovered: false })
    }

    /// Whether it is only discovered, or deleted, or too large.
    fn is_blank(&self) -> bool {
        self.is_null && self.hash.is_none()
    }
}

/// Files by their object: the hash of their bytes, and the stamp that they had then.
pub(crate) type Stamps = HashMap<ObjectId, (Digest, Stamp)>;

/// What a comparison of a file with what is stored has shown.
enum Compared {
    /// It is not as it is stored.
    Changed(Seen),
    /// It is as it is stored; it had to be read for that, and need not be the next time.
    Read(ObjectId, Digest, Stamp),
    /// Nothing can be said.
    Unreachable(Place),
    /// It is as it is stored.
    Same,
}

impl Inner {
    /// The stamps that earlier comparisons of this session's files have left.
    async fn stamps(&self) -> Result<Arc<Stamps>> {
        if let Some(known) = &*self.stamps.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(known));
        }
        let note = self.store().note(&self.stamps_name()).await?.unwrap_or_default();
        let line = |line: &str| {
            let (id, rest) = line.split_once(' ')?;
            let (hash, stamp) = rest.split_once(' ')?;
            Some((ObjectId::new(id), (hash.parse().ok()?, stamp.parse().ok()?)))
        };
        let stamps = Arc::new(note.lines().filter_map(line).collect::<Stamps>());
        self.keep_stamps(&stamps);
        Ok(stamps)
    }

    fn keep_stamps(&self, stamps: &Arc<Stamps>) {
        *self.stamps.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(stamps));
    }

    async fn note_stamps(&self, known: &Stamps, fresh: Vec<(ObjectId, (Digest, Stamp))>) -> Result<()> {
        if fresh.is_empty() {
            return Ok(());
        }
        let mut all = known.clone();
        all.extend(fresh);
        let mut text = String::with_capacity(all.len() * 220);
        for (id, (hash, stamp)) in &all {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{id} {hash} {stamp}");
        }
        self.keep_stamps(&Arc::new(all));
        match self.store().set_note(&self.stamps_name(), &text).await {
            // The files are read once more at the next resume, which is no reason to refuse the session.
            Err(StoreError::Full(_)) => Ok(()),
            other => Ok(other?),
        }
    }

    fn stamps_name(&self) -> String {
        format!("stamps:{}", self.session_object)
    }
}

/// What has changed at a place, if anything. A path that was only discovered stays so until it is read.
fn compare(
    paths: &Paths,
    disk: Disk,
    stored: Stored,
    (stamps, since): (&Stamps, TxId),
    limit: u64,
) -> Compared {
    let Disk::At(path) = &disk else { return Compared::Same };
    if stored.only_discovered {
        return Compared::Same;
    }
    let id = file_id(&stored.source);
    let stamp = Stamp::of(path);
    if let (Some((hash, before)), Some(now)) = (stamps.get(&id), &stamp)
        && stored.hash == Some(*hash)
        && before == now
    {
        return Compared::Same;
    }
    let state = files::read(path, limit);
    if state == FileState::Unreachable {
        let place = Place { agent_path: paths.display(&stored.source), source: stored.source, disk };
        return Compared::Unreachable(place);
    }
    let same = match &state {
        FileState::Text(text) => stored.hash == Some(text.hash()),
        FileState::NoText { hash, .. } => stored.hash == Some(*hash),
        FileState::Gone | FileState::Oversized { .. } => stored.is_blank(),
        FileState::Unreachable | FileState::Unreadable { .. } => true,
    };
    if same {
        let settled =
            stamp.filter(|stamp| stamp.is_settled(SystemTime::now()) && Stamp::of(path) == Some(*stamp));
        return match (stored.hash, settled) {
            (Some(hash), Some(stamp)) if state.is_file() => Compared::Read(id, hash, stamp),
            _ => Compared::Same,
        };
    }
    let place = Place { agent_path: paths.display(&stored.source), source: stored.source, disk };
    Seen::of(place, state, Some(since)).map_or(Compared::Same, |seen| Compared::Changed(seen.made()))
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
    pub fn learn_outline(&mut self, outline: Outline) {
        let id = outline.id.clone();
        if let Some(meta) = Meta::of_outline(outline) {
            self.catalog.put(&id, meta);
        }
    }
}
