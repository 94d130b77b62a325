//! A store with an incident in the middle of the engine's work.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use async_trait::async_trait;
use context_engine::{Engine, Options};
use context_model::id::ObjectId;
use context_store::around::{Around, StoreCall};
use context_store::{Store, StoreError, Transaction};
use tokio::sync::Notify;

use crate::bench::Bench;

/// A store in which something happens at one call, counted from the moment it is armed.
pub struct Stepped {
    inner: Arc<dyn Store>,
    /// Calls until it happens; negative: it does not.
    left: AtomicI64,
    incident: Incident,
    /// The number of writes that have conflicted.
    conflicts: AtomicUsize,
}

/// The incident at that call.
pub enum Incident {
    /// It fails as on a full disk.
    Full,
    /// Another client writes this before it.
    Write(Transaction),
    /// A file gets this text before it, and another client stores that.
    Change(PathBuf, String, Transaction),
    /// Each write from then on conflicts with one to this object.
    Conflicts(ObjectId),
    /// A write begins, and continues once the test lets it.
    Held { begun: Arc<Notify>, go: Arc<Notify> },
}

impl Stepped {
    pub fn new(inner: Arc<dyn Store>, incident: Incident) -> Arc<Self> {
        Arc::new(Self { inner, left: AtomicI64::new(-1), incident, conflicts: AtomicUsize::new(0) })
    }

    pub fn arm(&self, calls: i64) {
        self.left.store(calls, Ordering::SeqCst);
    }

    /// True if the armed incident has happened; disarms it otherwise.
    pub fn disarm(&self) -> bool {
        self.left.swap(-1, Ordering::SeqCst) < 0
    }

    pub fn conflicts(&self) -> usize {
        self.conflicts.load(Ordering::SeqCst)
    }

    async fn step(&self) -> context_store::Result<()> {
        if matches!(self.incident, Incident::Held { .. } | Incident::Conflicts(_)) {
            Ok(())
        } else {
            self.happen().await
        }
    }

    async fn happen(&self) -> context_store::Result<()> {
        if let Incident::Conflicts(id) = &self.incident
            && self.left.load(Ordering::SeqCst) >= 0
        {
            self.conflicts.fetch_add(1, Ordering::SeqCst);
            return Err(StoreError::Conflict(id.clone()));
        }
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n >= 0).then(|| n - 1)) != Ok(0) {
            return Ok(());
        }
        match &self.incident {
            Incident::Conflicts(_) => Ok(()),
            Incident::Held { begun, go } => {
                begun.notify_one();
                go.notified().await;
                Ok(())
            }
            Incident::Full => Err(StoreError::Full("a test".into())),
            Incident::Write(transaction) => self.inner.transact(transaction.clone()).await.map(drop),
            Incident::Change(path, text, transaction) => {
                std::fs::write(path, text).unwrap();
                self.inner.transact(transaction.clone()).await.map(drop)
            }
        }
    }
}

#[async_trait]
impl Around for Stepped {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn before(&self, call: StoreCall) -> context_store::Result<()> {
        match call {
            StoreCall::Transact | StoreCall::TransactSoon => self.happen().await,
            StoreCall::Read | StoreCall::LocalValue => self.step().await,
            _ => Ok(()),
        }
    }
}

/// A session on a store that this happens to.
pub async fn stepped(bench: &Bench, incident: Incident) -> (Arc<Stepped>, Engine) {
    let store = Stepped::new(Arc::clone(&bench.store), incident);
    let options = Options { store: Arc::clone(&store) as Arc<dyn Store>, ..bench.options("s") };
    (store, Engine::open(options).await.unwrap())
}
