//! Opening the store that the options name, and reporting its state.

use std::sync::Arc;

use context_model::id::SessionId;
use context_store::memory::MemoryStore;
use context_store::sessions::Limits;
use context_store::{OwnedStore, Store, StoreError, transfer};
use context_store_sqlite::{Durability, SqliteSnapshot, SqliteStore};
use context_store_xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};

use crate::error::Coded;
use crate::life::Held;
use crate::types::{StoreOptions, StoreState};

/// A store, and what can be asked about it beyond its calls.
#[derive(Clone)]
pub(crate) struct Opened {
    pub store: Arc<dyn Store>,
    about: About,
}

#[derive(Clone)]
enum About {
    Memory(Arc<MemoryStore>),
    Sqlite(Arc<SqliteStore>),
    /// A node that every call waits for.
    Xtdb(Arc<XtdbStore>),
    /// One behind a journal.
    Queue(Arc<QueuedStore>),
    /// A file that is only read, and whether it is the journal of a database.
    View(Arc<SqliteSnapshot>, IsJournal),
    /// A node that is only read.
    NodeView(Arc<XtdbStore>),
}

#[derive(Clone, Copy)]
struct IsJournal(bool);

/// Opens a store. `None` is the ephemeral one: the place of the embedded store is the TypeScript entry's choice.
pub(crate) async fn open(options: Option<StoreOptions>) -> Result<Opened, Coded> {
    Ok(match options {
        None | Some(StoreOptions::Memory {}) => {
            let store = MemoryStore::new();
            Opened { store: Arc::clone(&store) as Arc<dyn Store>, about: About::Memory(store) }
        }
        Some(StoreOptions::Sqlite { path, read_only: Some(true), .. }) => {
            viewed(path, IsJournal(false)).await?
        }
        Some(StoreOptions::Sqlite { path, durability, .. }) => {
            let durability = match durability.as_deref() {
                None | Some("power") => Durability::Power,
                Some("process") => Durability::Process,
                Some(_) => return Err(Coded::invalid("durability is 'power' or 'process'")),
            };
            let store = away(move || SqliteStore::open_shared(path, durability)).await?;
            Opened { store: Arc::clone(&store) as Arc<dyn Store>, about: About::Sqlite(store) }
        }
        Some(StoreOptions::Xtdb { journal: Some(journal), read_only: Some(true), .. }) => {
            viewed(journal, IsJournal(true)).await?
        }
        Some(StoreOptions::Xtdb { url, urls, timeout_ms, journal, read_only }) => {
            let mut xtdb = XtdbOptions::new(std::iter::once(url).chain(urls.unwrap_or_default()));
            if let Some(timeout) = timeout_ms {
                xtdb.timeout_ms = u64::from(timeout);
            }
            match journal {
                Some(journal) => {
                    let queue = QueuedStore::open_shared(QueueOptions::new(journal, xtdb)).await?;
                    Opened { store: Arc::clone(&queue) as Arc<dyn Store>, about: About::Queue(queue) }
                }
                None => {
                    let node = XtdbStore::connect(xtdb).await?;
                    match read_only {
                        Some(true) => {
                            Opened { store: Arc::clone(&node).read_only()?, about: About::NodeView(node) }
                        }
                        _ => Opened { store: Arc::clone(&node) as Arc<dyn Store>, about: About::Xtdb(node) },
                    }
                }
            }
        }
    })
}

/// Opens a file for reading only.
async fn viewed(path: String, is_journal: IsJournal) -> Result<Opened, Coded> {
    let file = away(move || SqliteSnapshot::open(path)).await?;
    Ok(Opened { store: Arc::clone(&file) as Arc<dyn Store>, about: About::View(file, is_journal) })
}

/// Opens on a thread that may wait for a disk.
async fn away<T: Send + 'static>(
    open: impl FnOnce() -> context_store::Result<T> + Send + 'static,
) -> Result<T, Coded> {
    let opened = tokio::task::spawn_blocking(open).await;
    Ok(opened.map_err(|error| StoreError::Unavailable(error.to_string()))??)
}

impl Held for Opened {
    fn closed() -> Coded {
        Coded::closed_store()
    }
}

impl Opened {
    /// True if the store is only read.
    pub(crate) fn is_view(&self) -> bool {
        matches!(self.about, About::View(..) | About::NodeView(_))
    }

    /// A store in memory with the history of a session, as it is in this one now; empty for a session that is not in this one.
    pub(crate) async fn session_in_memory(&self, session: &SessionId) -> Result<Self, Coded> {
        let memory = MemoryStore::new();
        let ids = transfer::session_objects(&*self.store, session).await?;
        transfer::copy(&*self.store, &ids, &*memory).await?;
        Ok(Self { store: Arc::clone(&memory) as Arc<dyn Store>, about: About::Memory(memory) })
    }

    /// The same store for what changes it.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` for a store that is only read.
    pub(crate) fn writable(&self) -> Result<&dyn Store, Coded> {
        if self.is_view() { Err(StoreError::read_only().into()) } else { Ok(&*self.store) }
    }

    /// The same store with what only its owner may do.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` for a store that is only read.
    pub(crate) fn owned(&self) -> Result<Arc<dyn OwnedStore>, Coded> {
        Ok(match &self.about {
            About::Memory(store) => Arc::clone(store) as _,
            About::Sqlite(store) => Arc::clone(store) as _,
            About::Xtdb(store) => Arc::clone(store) as _,
            About::Queue(store) => Arc::clone(store) as _,
            About::View(..) | About::NodeView(_) => return Err(StoreError::read_only().into()),
        })
    }

    /// The limits of a database file.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a store of another kind.
    pub(crate) async fn limits(&self) -> Result<Limits, Coded> {
        match &self.about {
            About::View(file, IsJournal(false)) => Ok(file.limits().await?),
            _ => Ok(self.file()?.limits().await?),
        }
    }

    /// The store as a database file that can be changed.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a store of another kind, `STORE_UNAVAILABLE` for one that is only read.
    pub(crate) fn file(&self) -> Result<&SqliteStore, Coded> {
        match &self.about {
            About::Sqlite(store) => Ok(store),
            About::View(_, IsJournal(false)) => Err(StoreError::read_only().into()),
            _ => Err(Coded::invalid(
                "only a database file can do this; a store of another kind has its own means",
            )),
        }
    }

    /// The state of the store.
    pub(crate) fn state(&self) -> StoreState {
        let plain = |kind: &str| StoreState {
            kind: kind.to_owned(),
            url: None,
            connected: None,
            queued: 0.0,
            waiting_since: None,
            sender: None,
            behind: None,
            last_error: None,
            notice: None,
        };
        match &self.about {
            About::Memory(_) => plain("memory"),
            About::Sqlite(_) | About::View(_, IsJournal(false)) => plain("sqlite"),
            About::View(_, IsJournal(true)) => plain("xtdb"),
            About::Xtdb(store) | About::NodeView(store) => {
                StoreState { url: Some(store.current_url().to_owned()), ..plain("xtdb") }
            }
            About::Queue(queue) => {
                let state = queue.state();
                StoreState {
                    url: Some(state.url),
                    connected: Some(state.is_connected),
                    queued: state.queued as f64,
                    waiting_since: state.waiting_since.map(|time| time.to_string()),
                    sender: Some(state.is_sender),
                    behind: Some(state.behind as f64),
                    last_error: state.last_error,
                    notice: state.notice,
                    ..plain("xtdb")
                }
            }
        }
    }
}
