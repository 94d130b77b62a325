//! A store that works, waits or fails as the schedule says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use context_engine::Engine;
use context_model::id::ObjectId;
use context_model::time::TxId;
use context_store::{
    AsOf, Damage, Entry, Filter, Hit, Outline, Receipt, Result, Search, Store, StoreError, Transaction,
    Version,
};

use crate::steps::Fault;

/// A store whose calls go to another one, unless the schedule has something against it.
pub struct Faulty {
    inner: Arc<dyn Store>,
    fault: Mutex<Option<Fault>>,
    /// Who looks at the disk before the next write.
    beside: Mutex<Vec<Engine>>,
    /// Writes that were asked for with a sync of the disk, and without.
    synced: AtomicUsize,
    unsynced: AtomicUsize,
}

/// What a call does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
}

impl Faulty {
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            fault: Mutex::default(),
            beside: Mutex::default(),
            synced: AtomicUsize::new(0),
            unsynced: AtomicUsize::new(0),
        })
    }

    pub fn arm(&self, fault: Fault) {
        *self.fault.lock().unwrap() = Some(fault);
    }

    /// Lets these look at the disk right before the next write.
    pub fn let_first(&self, others: Vec<Engine>) {
        *self.beside.lock().unwrap() = others;
    }

    pub fn calm(&self) {
        self.let_first(Vec::new());
        *self.fault.lock().unwrap() = None;
    }

    /// Returns whether a call may fail now.
    pub fn is_faulty(&self) -> bool {
        self.fault.lock().unwrap().is_some_and(|fault| !matches!(fault, Fault::Slow | Fault::Beside))
    }

    /// How many writes were asked for with a sync of the disk, and how many without.
    pub fn writes(&self) -> (usize, usize) {
        (self.synced.load(Ordering::Relaxed), self.unsynced.load(Ordering::Relaxed))
    }

    /// Returns what stands behind it, which always works.
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.inner
    }

    async fn before(&self, kind: Kind) -> Result<()> {
        if kind == Kind::Write {
            let others = std::mem::take(&mut *self.beside.lock().unwrap());
            for other in others {
                // What goes wrong with them is shown by what they say later.
                let _seen = other.reconcile().await;
            }
        }
        let fault = *self.fault.lock().unwrap();
        let unavailable = || Err(StoreError::Unavailable("the schedule says so".into()));
        match fault {
            Some(Fault::Away) => unavailable(),
            Some(Fault::Locked) if kind == Kind::Write => unavailable(),
            Some(Fault::Full) if kind == Kind::Write => Err(StoreError::Full("the schedule says so".into())),
            Some(Fault::Once(0)) => {
                self.calm();
                unavailable()
            }
            Some(Fault::Once(left)) => {
                self.arm(Fault::Once(left - 1));
                Ok(())
            }
            Some(Fault::Slow) => {
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// After a write that was made.
    fn after<T>(&self, made: T) -> Result<T> {
        let mut fault = self.fault.lock().unwrap();
        if *fault == Some(Fault::After) {
            *fault = None;
            return Err(StoreError::Unavailable("the answer was lost, the schedule says".into()));
        }
        Ok(made)
    }
}

#[async_trait]
impl Store for Faulty {
    async fn transact(&self, transaction: Transaction) -> Result<Receipt> {
        self.synced.fetch_add(1, Ordering::Relaxed);
        self.before(Kind::Write).await?;
        self.after(self.inner.transact(transaction).await?)
    }

    async fn transact_soon(&self, transaction: Transaction) -> Result<Receipt> {
        self.unsynced.fetch_add(1, Ordering::Relaxed);
        self.before(Kind::Write).await?;
        self.after(self.inner.transact_soon(transaction).await?)
    }

    async fn settle(&self) -> Result<()> {
        self.before(Kind::Write).await?;
        self.inner.settle().await
    }

    async fn get(&self, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
        self.before(Kind::Read).await?;
        self.inner.get(id, at).await
    }

    async fn get_many(&self, ids: &[ObjectId], at: AsOf) -> Result<Vec<Option<Version>>> {
        self.before(Kind::Read).await?;
        self.inner.get_many(ids, at).await
    }

    async fn outlines(&self, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>> {
        self.before(Kind::Read).await?;
        self.inner.outlines(ids).await
    }

    async fn history(&self, id: &ObjectId) -> Result<Vec<Version>> {
        self.before(Kind::Read).await?;
        self.inner.history(id).await
    }

    async fn journal(&self, id: &ObjectId) -> Result<Vec<Entry>> {
        self.before(Kind::Read).await?;
        self.inner.journal(id).await
    }

    async fn query(&self, filter: &Filter) -> Result<Vec<ObjectId>> {
        self.before(Kind::Read).await?;
        self.inner.query(filter).await
    }

    async fn latest_tx(&self) -> Result<TxId> {
        self.before(Kind::Read).await?;
        self.inner.latest_tx().await
    }

    async fn pull(&self) -> Result<()> {
        self.before(Kind::Read).await?;
        self.inner.pull().await
    }

    async fn changes_since(&self, tx: TxId) -> Result<BTreeMap<ObjectId, TxId>> {
        self.before(Kind::Read).await?;
        self.inner.changes_since(tx).await
    }

    async fn search(&self, query: &Search) -> Result<Vec<Hit>> {
        self.before(Kind::Read).await?;
        self.inner.search(query).await
    }

    async fn local_value(&self, name: &str, default: &str) -> Result<String> {
        self.before(Kind::Write).await?;
        self.inner.local_value(name, default).await
    }

    async fn note(&self, name: &str) -> Result<Option<String>> {
        self.before(Kind::Read).await?;
        self.inner.note(name).await
    }

    async fn set_note(&self, name: &str, text: &str) -> Result<()> {
        self.before(Kind::Write).await?;
        self.inner.set_note(name, text).await
    }

    fn files(&self) -> Vec<PathBuf> {
        self.inner.files()
    }

    async fn verify(&self) -> Result<Vec<Damage>> {
        self.inner.verify().await
    }

    async fn flush(&self) -> Result<()> {
        self.before(Kind::Read).await?;
        self.inner.flush().await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
