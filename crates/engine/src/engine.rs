//! One session of one client, and its use cases.

use std::sync::Arc;
use std::time::Duration;

use crate::files::index::FileReader;
use crate::files::recorded;
use crate::files::stamps::StampNote;
use crate::files::tracking::Tracking;
use crate::session::catalog::Names;
use crate::session::client::{Client, Fsync};
use crate::session::commit::{self, Intent, Transacted, Work};
use crate::session::error::Result;
use crate::session::refresh;
use crate::session::{Session, SessionChange};
use context_evidence::{Known, Records, UnclaimedWrites};
use context_model::chat::Chat;
use context_model::id::{ObjectId, SessionId};
use context_model::object::Document;
use context_model::time::TxId;
use context_projection::request::Request;
use context_projection::request::rolls::Rolled;
use context_projection::request::segments::Segments;
use context_store::{AsOf, Store, Version};
use tokio::sync::{Mutex, MutexGuard};
use tracing::instrument;

use crate::handed::{Handed, Pending};
use crate::job::{Queue, UnstoredRead};
use crate::namesakes::Namesakes;
use crate::recalled::Recalled;
use crate::unsent::Unsent;
use crate::view::Assembled;
use crate::view::sections::View;

/// The time for which `assemble` waits for calls that work with the state.
const ASSEMBLE_PATIENCE: Duration = Duration::from_millis(100);

/// One client's access to one session: it indexes, tracks, records, activates, assembles and projects.
///
/// All methods may be called from many tasks at once; they run one after the other. Dropping the engine ends its
/// trackers and loses nothing that was acknowledged.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub client: Arc<Client>,
    pub tracking: Arc<Tracking>,
    pub stamps: StampNote,
    /// The jobs that the next write will record.
    pub queue: Queue,
    /// The records of statements in results and notices, and what tools have passed in that has not yet come as a result. A call
    /// finds its evidence there before it gets the state.
    records: std::sync::Mutex<Records>,
    /// The findings about results that are read again and again. They spare reads, and decide nothing.
    recalled: std::sync::Mutex<Recalled>,
    /// The names to look up the session's objects by, even while the state is locked.
    pub names: Arc<Names>,
    state: Mutex<State>,
}

/// The state that changes while a session is open, layer by layer.
#[derive(Default)]
pub(crate) struct State {
    pub session: Session,
    /// The model's knowledge of files.
    pub known: Known,
    /// The content of the model's request.
    pub request: Request,
    /// The last assembled view, as far as it is still valid.
    pub view: View,
    /// The hand-over that has not led to a plan yet.
    pub handed: Handed,
    /// Text that the harness has put into the past and that was not sent yet.
    pub unsent: Unsent,
    /// The recorded calls that share a call ID, for the results of the transcript that is being read.
    pub namesakes: Namesakes,
    /// The edits and notices that no plan has carried yet.
    pub pending: Pending,
    /// UTF-16 units of the differences that edits were answered with since the last message.
    pub compared: usize,
    /// Reads of files that are not stored yet.
    pub unread: Vec<Arc<UnstoredRead>>,
    /// Writes of tools that have not yet come as a result, oldest first. What the model knows about them is already
    /// noted.
    pub written: UnclaimedWrites,
    /// The session has returned to an earlier point, and the visible messages have not been read again yet.
    pub came_back: bool,
    /// The next message begins another conversation: none of those in the record is visible.
    pub is_anew: bool,
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
    /// The session's ID.
    pub fn session_id(&self) -> &SessionId {
        self.inner.client.session_id()
    }

    /// The session's sets as they are now.
    pub async fn session_sets(&self) -> Result<SessionSets> {
        let state = self.inner.lock().await?;
        let sets = &state.session.sets;
        let list = |set: &indexmap::IndexSet<ObjectId>| set.iter().cloned().collect();
        Ok(SessionSets {
            session_index: list(sets.index()),
            metadata_pool: list(sets.pool()),
            active_set: list(sets.active()),
            pinned_set: list(sets.pinned()),
        })
    }

    /// Renders the session's state as the specification says, for conformance, audit, export, and models without a prefix
    /// cache. Costs a copy of the view: only what has changed since the last call is read and rendered.
    ///
    /// If another call holds the state for long, as a write does that waits for another process's lock, this renders what is
    /// in the store: the state before that call.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn assemble(&self) -> Result<Assembled> {
        let inner = &self.inner;
        let Ok(state) = tokio::time::timeout(ASSEMBLE_PATIENCE, inner.lock()).await else {
            return inner.assembled_from_store().await;
        };
        let mut state = state?;
        inner.refresh_at_turn(&mut state).await?;
        let State { session, view, .. } = &mut *state;
        view.complete(&inner.client, session).await?;
        Ok(view.assembled())
    }

    /// Waits until the trackers have seen and indexed everything written to disk before the call.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn look(&self) -> Result<()> {
        drop(self.inner.lock().await?);
        self.inner.tracking.flush().await;
        self.inner.read_pending(true).await
    }

    /// The same, and waits until the store has nothing left to do: no text to index, nothing to send.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn flush(&self) -> Result<()> {
        self.look().await?;
        Ok(self.inner.store().flush().await?)
    }

    /// Waits until everything that [`Engine::receive`] and [`Engine::advance`] have recorded survives a power loss,
    /// as everything else does once it is acknowledged.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn settle(&self) -> Result<()> {
        Ok(self.inner.store().settle().await?)
    }

    /// Ends the trackers; the instance still answers queries (the session is paused).
    ///
    /// # Errors
    /// `CLOSED`; errors of the store. The trackers end in any case.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn pause(&self) -> Result<()> {
        drop(self.inner.lock().await?);
        let caught_up = self.inner.read_pending(true).await;
        self.inner.tracking.close().await;
        caught_up?;
        Ok(self.inner.store().flush().await?)
    }

    /// Ends the trackers. All state is already in the store, so a paused session is one that no client has open. Idempotent;
    /// later calls fail with `CLOSED`. The store stays open: its owner closes it, which waits for the store.
    ///
    /// # Errors
    /// Errors of [`Engine::settle`], and the one that prevented a changed file from being stored; the trackers end in
    /// any case.
    #[instrument(level = "debug", skip_all, err(level = "debug"))]
    pub async fn close(&self) -> Result<()> {
        if self.inner.state.lock().await.session.closed {
            return Ok(());
        }
        let caught_up = self.inner.read_pending(true).await;
        {
            let mut state = self.inner.state.lock().await;
            if state.session.closed {
                return Ok(());
            }
            state.session.closed = true;
        }
        self.inner.tracking.close().await;
        self.settle().await?;
        caught_up
    }
}

impl Inner {
    /// Begins without knowledge of the session, and without tracked files.
    pub(crate) fn new(client: Client) -> Self {
        let state = State::default();
        Self {
            tracking: Arc::new(Tracking::new(client.options.watch, client.options.pace)),
            client: Arc::new(client),
            stamps: StampNote::default(),
            queue: Queue::default(),
            records: std::sync::Mutex::default(),
            recalled: std::sync::Mutex::default(),
            names: state.session.catalog.names(),
            state: Mutex::new(state),
        }
    }

    /// The state, unless the instance is closed.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn lock(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock().await;
        state.session.open()?;
        Ok(state)
    }

    /// Refuses a closed instance without waiting for other calls; if one holds the state, the next lock finds out.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.state.try_lock().map_or(Ok(()), |state| state.session.open())
    }

    /// The view as a client renders it that has just opened the session.
    async fn assembled_from_store(&self) -> Result<Assembled> {
        let (mut session, mut view) = (Session::default(), View::default());
        session.seen = self.store().latest_tx().await?;
        refresh::load(&self.client, &mut session).await?;
        view.complete(&self.client, &session).await?;
        Ok(view.assembled())
    }

    /// Returns the records of statements to the model, and the entries of tools whose results have not come yet. Hold the lock
    /// only briefly.
    pub(crate) fn records(&self) -> std::sync::MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns what was found out about results. Hold the lock only briefly.
    pub(crate) fn recalled(&self) -> std::sync::MutexGuard<'_, Recalled> {
        self.recalled.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.client.store()
    }

    /// Returns a version with the secrets that were removed from it; see [`recorded::version`].
    pub(crate) async fn recorded(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        recorded::version(&self.client, id, at).await
    }

    /// Returns the version that a transaction wrote, with the secrets that were removed from it.
    pub(crate) async fn recorded_by(&self, id: &ObjectId, tx: TxId) -> Result<Option<Version>> {
        recorded::written_by(&self.client, id, tx).await
    }

    /// Returns the reader of files.
    pub(crate) fn file_reader(&self) -> FileReader {
        FileReader { client: Arc::clone(&self.client), tracking: Arc::clone(&self.tracking) }
    }

    /// Changes the session by one transaction; see [`commit::commit`]. All layers apply it.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn commit<T: Send>(
        &self,
        state: &mut State,
        fsync: Fsync,
        decide: impl FnMut(&Session, &mut Work) -> Result<T> + Send,
    ) -> Result<T> {
        let outcome = commit::commit(&self.client, &mut state.session, fsync, decide).await;
        self.apply(state);
        outcome
    }

    /// The same for an intent that asks first; see [`commit::transact`].
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn transact<I: Intent>(
        &self,
        state: &mut State,
        fsync: Fsync,
        intent: &mut I,
    ) -> Result<Transacted<I>> {
        let outcome = commit::transact(&self.client, &mut state.session, fsync, intent).await;
        self.apply(state);
        outcome
    }

    /// Takes in what other clients wrote since the last time. Costs one cheap query if they wrote nothing.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn refresh(&self, state: &mut State) -> Result<()> {
        let outcome = refresh::refresh(&self.client, &mut state.session).await;
        self.apply(state);
        outcome
    }

    /// The same, at a turn: this also fetches what other machines wrote.
    #[instrument(level = "debug", skip_all)]
    pub(crate) async fn refresh_at_turn(&self, state: &mut State) -> Result<()> {
        let outcome = refresh::refresh_at_turn(&self.client, &mut state.session).await;
        self.apply(state);
        outcome
    }

    /// Has all layers apply the session's own changes and those that it learned of. Here a listener hears that a file which the
    /// session knows has another version: from any client, and however this one came to know it, it enters the catalog once.
    /// Elsewhere it hears of anything but a change of a known file: the first version that an event has led to
    /// (`announce_first`), a file out of reach (`orphaned`), and a path that leads to another file now (`follow_path`).
    pub(crate) fn apply(&self, state: &mut State) {
        for change in std::mem::take(&mut state.session.changes) {
            match change {
                SessionChange::Wrote(written) => {
                    state.view.follow(&written, &self.client);
                    Self::follow(&mut state.request.segments, &written, &state.session);
                }
                SessionChange::Version { file, is_change } => {
                    if is_change {
                        self.announce(&state.session, &file);
                    }
                    state.known.changed(file);
                }
                SessionChange::Foreign(changes) => {
                    state.view.foreign(&changes, &self.client, &state.session);
                }
                SessionChange::Loaded(chat) => {
                    state.view = View::default();
                    self.read_chat(state, chat.as_deref());
                }
            }
        }
    }
}

impl Inner {
    /// Judges those parts of the request again that a transaction of the session concerns.
    fn follow(segments: &mut Segments, written: &crate::session::SessionWrite, session: &Session) {
        if written.starts_turn {
            segments.start_turn(session);
        }
        for id in &written.touched {
            segments.touch(id, session);
        }
        for id in &written.renewed {
            segments.renew(id, session);
        }
    }

    /// Reads from the chat which results and notices the model has seen.
    pub(crate) fn read_chat(&self, state: &mut State, document: Option<&Document>) {
        self.recalled().forget_texts();
        let chat = document.map(Chat::of).unwrap_or_default();
        state.request.rolled = Rolled::of(chat);
        state.request.made = chat.turns().map(|turn| turn.answers().count() as u64).sum();
        self.records().archive.read(document);
    }
}

impl State {
    /// Forgets the unfinished work of the branch that the session leaves.
    pub(crate) fn leave_branch(&mut self) {
        self.handed = Handed::default();
        self.pending = Pending::default();
        self.came_back = true;
        self.request.received.clear();
        self.request.gated.clear();
    }
}
