//! A store that works, waits or fails as the schedule says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use context_engine::Engine;
use context_store::around::{Around, StoreCall};
use context_store::{Receipt, Result, Store, StoreError};

use crate::steps::Fault;

/// A store whose calls go to another one, unless the schedule has something against it.
pub struct Faulty {
    inner: Arc<dyn Store>,
    fault: Mutex<Option<Fault>>,
    /// Clients that look at the disk before the next write.
    beside: Mutex<Vec<Engine>>,
    /// Writes that were asked for with a sync of the disk, and without.
    synced: AtomicUsize,
    unsynced: AtomicUsize,
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

    /// True if a call may fail now.
    pub fn is_faulty(&self) -> bool {
        self.fault.lock().unwrap().is_some_and(|fault| !matches!(fault, Fault::Slow | Fault::Beside))
    }

    /// Returns the number of writes that were requested with a sync of the disk, and of those without.
    pub fn writes(&self) -> (usize, usize) {
        (self.synced.load(Ordering::Relaxed), self.unsynced.load(Ordering::Relaxed))
    }

    /// Returns the store behind it, which always works.
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.inner
    }

    async fn run(&self, writes: bool) -> Result<()> {
        if writes {
            let others = std::mem::take(&mut *self.beside.lock().unwrap());
            for other in others {
                // Their later answers show what fails here.
                let _seen = other.reconcile().await;
            }
        }
        let fault = *self.fault.lock().unwrap();
        let unavailable = || Err(StoreError::Unavailable("the schedule says so".into()));
        match fault {
            Some(Fault::Away) => unavailable(),
            Some(Fault::Locked) if writes => unavailable(),
            Some(Fault::Full) if writes => Err(StoreError::Full("the schedule says so".into())),
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
}

#[async_trait]
impl Around for Faulty {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn before(&self, call: StoreCall) -> Result<()> {
        match call {
            StoreCall::Transact => drop(self.synced.fetch_add(1, Ordering::Relaxed)),
            StoreCall::TransactSoon => drop(self.unsynced.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
        self.run(!matches!(call, StoreCall::Read | StoreCall::Pull | StoreCall::Note | StoreCall::Flush))
            .await
    }

    fn after(&self, receipt: Receipt) -> Result<Receipt> {
        let mut fault = self.fault.lock().unwrap();
        if *fault == Some(Fault::After) {
            *fault = None;
            return Err(StoreError::Unavailable("the answer was lost, the schedule says".into()));
        }
        Ok(receipt)
    }
}
