//! A store in which something happens in the middle of what an engine does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::time::TxId;
use context_store::{
    AsOf, Damage, Filter, Hit, Outline, Receipt, Search, Store, StoreError, Transaction, Version,
};
use tokio::sync::Notify;

/// A store in which something happens at one call, counted from the moment it is armed.
pub struct Stepped {
    inner: Arc<dyn Store>,
    /// Calls until it happens; negative: it does not.
    left: AtomicI64,
    incident: Incident,
    /// How many writes have conflicted.
    conflicts: AtomicUsize,
}

/// What happens at that call.
pub enum Incident {
    /// It fails as on a full disk.
    Full,
    /// Another client writes this before it.
    Write(Transaction),
    /// A file gets this text before it, and another client stores that.
    Change(PathBuf, String, Transaction),
    /// Each write from then on conflicts with one to this object.
    Conflicts(ObjectId),
    /// A write begins, and goes on when it is told to.
    Held { begun: Arc<Notify>, go: Arc<Notify> },
}

impl Stepped {
    pub fn new(inner: Arc<dyn Store>, incident: Incident) -> Arc<Self> {
        Arc::new(Self { inner, left: AtomicI64::new(-1), incident, conflicts: AtomicUsize::new(0) })
    }

    pub fn arm(&self, calls: i64) {
        self.left.store(calls, Ordering::SeqCst);
    }

    /// Returns whether what was armed has happened; takes it back where it has not.
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
impl Store for Stepped {
    async fn transact(&self, transaction: Transaction) -> context_store::Result<Receipt> {
        self.happen().await?;
        self.inner.transact(transaction).await
    }

    async fn get(&self, id: &ObjectId, at: AsOf) -> context_store::Result<Option<Version>> {
        self.step().await?;
        self.inner.get(id, at).await
    }

    async fn get_many(&self, ids: &[ObjectId], at: AsOf) -> context_store::Result<Vec<Option<Version>>> {
        self.step().await?;
        self.inner.get_many(ids, at).await
    }

    async fn outlines(&self, ids: &[ObjectId]) -> context_store::Result<Vec<Option<Outline>>> {
        self.step().await?;
        self.inner.outlines(ids).await
    }

    async fn history(&self, id: &ObjectId) -> context_store::Result<Vec<Version>> {
        self.step().await?;
        self.inner.history(id).await
    }

    async fn query(&self, filter: &Filter) -> context_store::Result<Vec<ObjectId>> {
        self.step().await?;
        self.inner.query(filter).await
    }

    async fn latest_tx(&self) -> context_store::Result<TxId> {
        self.step().await?;
        self.inner.latest_tx().await
    }

    async fn changes_since(&self, tx: TxId) -> context_store::Result<BTreeMap<ObjectId, TxId>> {
        self.step().await?;
        self.inner.changes_since(tx).await
    }

    async fn search(&self, query: &Search) -> context_store::Result<Vec<Hit>> {
        self.step().await?;
        self.inner.search(query).await
    }

    async fn local_value(&self, name: &str, default: &str) -> context_store::Result<String> {
        self.step().await?;
        self.inner.local_value(name, default).await
    }

    async fn verify(&self) -> context_store::Result<Vec<Damage>> {
        self.inner.verify().await
    }

    async fn flush(&self) -> context_store::Result<()> {
        self.inner.flush().await
    }

    async fn close(&self) -> context_store::Result<()> {
        self.inner.close().await
    }
}
