//! A view of a store that can be shared: reads go to it, and writes nowhere.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};

use crate::{
    AsOf, Damage, Entry, Erased, Filter, Hit, Outline, Receipt, Result, Search, Store, StoreError,
    Transaction, Version,
};

/// A view of an open store of which reading changes nothing.
pub struct ReadOnly {
    store: Arc<dyn Store>,
    is_closed: AtomicBool,
}

impl ReadOnly {
    /// A view of this store. Closing it leaves the store open.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, is_closed: AtomicBool::default() }
    }

    fn store(&self) -> Result<&dyn Store> {
        if self.is_closed.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(&*self.store) }
    }

    fn refused<T>(&self) -> Result<T> {
        self.store()?;
        Err(StoreError::read_only())
    }
}

macro_rules! forward {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for ReadOnly {
            async fn transact_marked(&self, _: Transaction, _: Vec<Option<Erased>>) -> Result<Receipt> {
                self.refused()
            }

            $(async fn $name(&self, $($arg: $type),*) -> Result<$answer> {
                self.store()?.$name($($arg),*).await
            })*

            async fn local_value(&self, _name: &str, _default: &str) -> Result<String> {
                self.refused()
            }

            async fn set_note(&self, _name: &str, _text: &str) -> Result<()> {
                self.refused()
            }

            fn read_only(self: Arc<Self>) -> Result<Arc<dyn Store>> {
                self.store()?;
                Ok(Arc::new(Self::new(Arc::clone(&self.store))))
            }

            fn files(&self) -> Vec<PathBuf> {
                self.store.files()
            }

            async fn flush(&self) -> Result<()> {
                self.store().map(|_| ())
            }

            async fn close(&self) -> Result<()> {
                self.is_closed.store(true, Ordering::Release);
                Ok(())
            }
        }
    };
}

forward! {
    get(id: &ObjectId, at: AsOf) -> Option<Version>;
    get_many(ids: &[ObjectId], at: AsOf) -> Vec<Option<Version>>;
    outlines(ids: &[ObjectId]) -> Vec<Option<Outline>>;
    version(id: &ObjectId, tx: TxId) -> Option<Version>;
    history(id: &ObjectId) -> Vec<Version>;
    history_page(id: &ObjectId, after: TxId, most: usize) -> Vec<Version>;
    history_part(id: &ObjectId, after: Option<(Timestamp, TxId)>, most: usize) -> Vec<Version>;
    history_as_changes(id: &ObjectId) -> Option<Vec<Entry>>;
    journal(id: &ObjectId) -> Vec<Entry>;
    query(filter: &Filter) -> Vec<ObjectId>;
    latest_tx() -> TxId;
    changes_since(tx: TxId) -> BTreeMap<ObjectId, TxId>;
    search(query: &Search) -> Vec<Hit>;
    note(name: &str) -> Option<String>;
    verify() -> Vec<Damage>;
}
