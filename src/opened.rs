//! Opening the store that the options name, and reporting its state.

use std::sync::Arc;

use context_store::memory::MemoryStore;
use context_store::{OwnedStore, Store, StoreError};
use context_store_sqlite::{Durability, SqliteStore};
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
}

/// Opens a store. `None` is the ephemeral one: the place of the embedded store is the TypeScript entry's choice.
pub(crate) async fn open(options: Option<StoreOptions>) -> Result<Opened, Coded> {
    Ok(match options {
        None | Some(StoreOptions::Memory {}) => {
            let store = MemoryStore::new();
            Opened { store: Arc::clone(&store) as Arc<dyn Store>, about: About::Memory(store) }
        }
        Some(StoreOptions::Sqlite { path, durability, .. }) => {
            let durability = match durability.as_deref() {
                None | Some("power") => Durability::Power,
                Some("process") => Durability::Process,
                Some(_) => return Err(Coded::invalid("durability is 'power' or 'process'")),
            };
            let store = tokio::task::spawn_blocking(move || SqliteStore::open_shared(path, durability))
                .await
                .map_err(|error| StoreError::Unavailable(error.to_string()))??;
            Opened { store: Arc::clone(&store) as Arc<dyn Store>, about: About::Sqlite(store) }
        }
        Some(StoreOptions::Xtdb { url, urls, timeout_ms, journal }) => {
            let mut xtdb = XtdbOptions::new(std::iter::once(url).chain(urls.unwrap_or_default()));
            if let Some(timeout) = timeout_ms {
                xtdb.timeout_ms = u64::from(timeout);
            }
            match journal {
                Some(journal) => {
                    let queue = QueuedStore::open(QueueOptions::new(journal, xtdb)).await?;
                    Opened { store: Arc::clone(&queue) as Arc<dyn Store>, about: About::Queue(queue) }
                }
                None => {
                    let store = XtdbStore::connect(xtdb).await?;
                    Opened { store: Arc::clone(&store) as Arc<dyn Store>, about: About::Xtdb(store) }
                }
            }
        }
    })
}

impl Held for Opened {
    fn closed() -> Coded {
        Coded::closed_store()
    }
}

impl Opened {
    /// The same store with what only its owner may do.
    pub(crate) fn owned(&self) -> Arc<dyn OwnedStore> {
        match &self.about {
            About::Memory(store) => Arc::clone(store) as _,
            About::Sqlite(store) => Arc::clone(store) as _,
            About::Xtdb(store) => Arc::clone(store) as _,
            About::Queue(store) => Arc::clone(store) as _,
        }
    }

    /// The store as a database file.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a store of another kind.
    pub(crate) fn file(&self) -> Result<&SqliteStore, Coded> {
        match &self.about {
            About::Sqlite(store) => Ok(store),
            _ => Err(Coded::invalid(
                "only a database file keeps to limits by itself; on XTDB, run `prune` when you want it",
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
            About::Sqlite(_) => plain("sqlite"),
            About::Xtdb(store) => StoreState { url: Some(store.current_url().to_owned()), ..plain("xtdb") },
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
