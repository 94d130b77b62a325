//! One session of one client: opening, and what every use case shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use context_model::hash::Digest;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::session::Sets;
use context_model::time::TxId;
use context_store::{AsOf, Store, StoreError, Transaction, Write};
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

use crate::error::{EngineError, Result};
use crate::group::Waiting;
use crate::options::Options;
use crate::paths::Paths;
use crate::resume::Stamps;
use crate::state::{Chat, State};
use crate::tracking::Tracking;
use crate::view::View;

/// A client's hold on one session: it indexes, tracks, records, activates, assembles and projects.
///
/// All methods may be called from many tasks at once; they act one after the other. Dropping the engine ends
/// its trackers, and nothing that was acknowledged is lost by it.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub options: Options,
    pub paths: Paths,
    pub session_object: ObjectId,
    pub chat_id: ObjectId,
    pub prompt_id: ObjectId,
    pub state: Mutex<State>,
    /// What is recorded with the next write.
    waiting: std::sync::Mutex<Vec<Waiting>>,
    pub tracking: Arc<Tracking>,
    /// The newest transaction that this client has made or heard of.
    newest: AtomicU64,
    /// None until the files are compared with the disk for the first time.
    pub stamps: std::sync::Mutex<Option<Arc<Stamps>>>,
}

/// The four sets of a session, as lists of IDs in the order in which they entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSets {
    /// Every content object encountered.
    pub session_index: Vec<ObjectId>,
    /// Visible as metadata.
    pub metadata_pool: Vec<ObjectId>,
    /// With content loaded.
    pub active_set: Vec<ObjectId>,
    /// Exempt from auto-collapse.
    pub pinned_set: Vec<ObjectId>,
}

impl Engine {
    /// Starts a session, or resumes and reconciles it where the store knows it (SSOT 3.6, 5.7).
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for options that contradict themselves; what the store reports.
    pub async fn open(options: Options) -> Result<Self> {
        options.store.pull().await?;
        let shares = options.watch_unmapped.unwrap_or(options.mounts.is_empty());
        let paths = Paths::new(
            &options.cwd,
            options.home.clone(),
            namespace(&options, shares).await?,
            &options.mounts,
            shares,
            options.detect_devices,
        )?
        .without(options.store.files());
        let session = &options.session_id;
        let inner = Arc::new(Inner {
            session_object: ObjectId::session(session),
            chat_id: ObjectId::chat(session),
            prompt_id: ObjectId::system_prompt(session),
            paths,
            state: Mutex::new(State::default()),
            waiting: std::sync::Mutex::default(),
            tracking: Arc::new(Tracking::new(options.watch)),
            newest: AtomicU64::new(0),
            stamps: std::sync::Mutex::default(),
            options,
        });
        inner.load_or_start().await?;
        inner.tracking.start(&inner);
        let engine = Self { inner };
        engine.inner.reconcile(None).await?;
        if let Some(prompt) = engine.inner.options.system_prompt.clone() {
            engine.set_system_prompt(&prompt).await?;
        }
        Ok(engine)
    }

    /// The session's ID.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        &self.inner.options.session_id
    }

    /// The session's sets as they are now.
    ///
    /// # Errors
    /// `CLOSED`.
    pub async fn session_sets(&self) -> Result<SessionSets> {
        let state = self.inner.lock().await?;
        let list = |set: &indexmap::IndexSet<ObjectId>| set.iter().cloned().collect();
        Ok(SessionSets {
            session_index: list(state.sets.index()),
            metadata_pool: list(state.sets.pool()),
            active_set: list(state.sets.active()),
            pinned_set: list(state.sets.pinned()),
        })
    }

    /// Waits until what was written to disk before the call has been seen by the trackers and indexed, and
    /// until the store has nothing left to do.
    ///
    /// # Errors
    /// `CLOSED`; what the store reports.
    pub async fn flush(&self) -> Result<()> {
        drop(self.inner.lock().await?);
        self.inner.tracking.flush().await;
        Ok(self.inner.options.store.flush().await?)
    }

    /// Waits until everything that [`Engine::receive`] and [`Engine::advance`] have recorded survives a loss of power,
    /// as all else does when it is acknowledged.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn settle(&self) -> Result<()> {
        Ok(self.inner.store().settle().await?)
    }

    /// Ends the trackers; the instance can still be asked (SSOT 3.6, paused).
    ///
    /// # Errors
    /// `CLOSED`; what the store reports.
    pub async fn pause(&self) -> Result<()> {
        drop(self.inner.lock().await?);
        self.inner.tracking.close().await;
        Ok(self.inner.options.store.flush().await?)
    }

    /// Ends the trackers. All state is in the store already, so a paused session is one that nobody has open
    /// (SSOT 3.6). Idempotent; later calls fail with `CLOSED`. The store stays open: its owner closes it,
    /// which is what waits for the store.
    ///
    /// # Errors
    /// What [`Engine::settle`] reports; the trackers end in any case.
    pub async fn close(&self) -> Result<()> {
        {
            let mut state = self.inner.state.lock().await;
            if state.closed {
                return Ok(());
            }
            state.closed = true;
        }
        self.inner.tracking.close().await;
        self.settle().await
    }
}

impl Inner {
    /// The state, unless the instance is closed.
    pub async fn lock(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock().await;
        state.open()?;
        state.soon = false;
        Ok(state)
    }

    /// Refuses a closed instance without waiting for what others do; where they are at it, the next lock tells.
    pub fn check_open(&self) -> Result<()> {
        self.state.try_lock().map_or(Ok(()), |state| state.open())
    }

    /// The jobs that wait; held for a moment only.
    pub fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The newest transaction that this client has made or heard of. Who looks at a file asks before: a version that is
    /// newer than this may be newer than what was seen.
    pub fn newest(&self) -> TxId {
        TxId(self.newest.load(Ordering::Acquire))
    }

    /// Takes note of a transaction that this client has made or heard of.
    pub fn heard_of(&self, tx: TxId) {
        self.newest.fetch_max(tx.0, Ordering::AcqRel);
    }

    pub fn store(&self) -> &dyn Store {
        &*self.options.store
    }

    async fn load_or_start(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        // Before the rest, so that what another client writes meanwhile counts as news.
        state.seen = self.store().latest_tx().await?;
        self.heard_of(state.seen);
        if !self.load(&mut state).await? {
            let session = &self.options.session_id;
            let documents = [
                Document::chat(session),
                Document::system_prompt(session, ""),
                Sets::default().document(session),
            ];
            let transaction = Transaction {
                writes: documents.into_iter().map(Write::put).collect(),
                expected: vec![(self.session_object.clone(), None)],
            };
            match self.store().transact(transaction).await {
                Ok(receipt) => {
                    state.session_tx = Some(receipt.tx_id);
                    state.chat_tx = Some(receipt.tx_id);
                    state.point = receipt.tx_id;
                    state.saw_own(receipt.tx_id);
                }
                // Another process started the same session at the same moment.
                Err(StoreError::Conflict(_)) => {
                    self.load(&mut state).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Restores sets, catalog and the shape of the chat. `false` where the store does not know the session.
    pub async fn load(&self, state: &mut State) -> Result<bool> {
        let Some(session) = self.store().get(&self.session_object, AsOf::default()).await? else {
            return Ok(false);
        };
        state.view = View::default();
        state.sets = Sets::from_document(&session.document)
            .map_err(|e| StoreError::Corrupt(format!("{}: {e}", self.session_object)))?;
        state.session_tx = Some(session.tx_id);
        state.point = session.tx_id.max(state.point);

        let ids: Vec<ObjectId> = state.sets.index().iter().cloned().collect();
        let (first, second) = ids.split_at(ids.len() / 2);
        // Two at once, as a store has several threads that read.
        let (first, second) = tokio::try_join!(self.store().outlines(first), self.store().outlines(second))?;
        for outline in first.into_iter().chain(second).flatten() {
            state.learn_outline(outline);
        }
        state.catalog.forget_displays();
        let displays = session.document.field("display_paths").and_then(Value::as_object);
        state.has_displays = displays.is_some();
        for (id, path) in displays.into_iter().flatten() {
            state.catalog.set_display(&ObjectId::new(id.as_str()), path.as_str().unwrap_or_default());
        }
        if let Some(chat) = self.store().get(&self.chat_id, AsOf::default()).await? {
            let turns = chat.document.field("turns").and_then(Value::as_array).map_or(0, Vec::len);
            state.chat = Chat { turns };
            state.chat_tx = Some(chat.tx_id);
            state.point = chat.tx_id.max(state.point);
            state.note_chat(&chat.document);
        }
        Ok(true)
    }

    /// After a conflict: somebody else has the same session open and wrote first. Their sets are taken over.
    pub async fn reload(&self, state: &mut State) -> Result<()> {
        if self.load(state).await? {
            Ok(())
        } else {
            Err(EngineError::Store(StoreError::Corrupt(format!("{} is gone", self.session_object))))
        }
    }
}

/// The namespace of unmapped paths: what the caller says, else the machine's own identity, else (in a sandbox,
/// or on a machine without one) a random one that is kept.
async fn namespace(options: &Options, shares_unmapped: bool) -> Result<String> {
    Ok(match &options.filesystem_id {
        Some(id) if id.is_empty() => return Err(EngineError::Invalid("filesystemId can't be empty".into())),
        Some(id) => id.clone(),
        None if shares_unmapped => match machine_identity(&options.machine_id_file) {
            Some(id) => id,
            None => options.store.local_value("machine", &random_id()?).await?,
        },
        None => {
            let name = format!("sandbox:{}", options.session_id);
            options.store.local_value(&name, &random_id()?).await?
        }
    })
}

/// SHA-256 of the machine's ID (SSOT 5.4); `None` where it has none, as in some containers and on macOS.
fn machine_identity(file: &str) -> Option<String> {
    let id = std::fs::read_to_string(file).ok()?;
    let id = id.trim();
    (!id.is_empty() && id != "uninitialized").then(|| Digest::of(id.as_bytes()).to_string())
}

fn random_id() -> Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)
        .map_err(|e| EngineError::Io { path: "the system's random source".into(), reason: e.to_string() })?;
    Ok(Digest::of(&bytes).to_string())
}
