//! A store around another one, for tests: something happens before a call, or after a write.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use context_model::id::ObjectId;
use context_model::time::TxId;

use crate::{
    AsOf, Damage, Entry, Erased, Filter, Hit, Outline, ReadOnly, Receipt, Result, Search, Store, Transaction,
    Version,
};

/// A call of a store, by the method of [`Store`]; all that read objects or their names are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the methods are documented")]
pub enum StoreCall {
    Transact,
    TransactSoon,
    Settle,
    Flush,
    Read,
    Pull,
    LocalValue,
    Note,
    SetNote,
}

/// A store whose calls go to another one.
#[async_trait]
pub trait Around: Send + Sync + 'static {
    /// The store that answers.
    fn inner(&self) -> &dyn Store;

    /// Runs before a call, which fails with its error.
    async fn before(&self, call: StoreCall) -> Result<()>;

    /// Runs after a transaction was written.
    fn after(&self, receipt: Receipt) -> Result<Receipt> {
        Ok(receipt)
    }
}

macro_rules! forward {
    ($($call:ident: $name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl<T: Around> Store for T {
            async fn transact_marked(
                &self,
                transaction: Transaction,
                marks: Vec<Option<Erased>>,
            ) -> Result<Receipt> {
                self.before(StoreCall::Transact).await?;
                self.after(self.inner().transact_marked(transaction, marks).await?)
            }

            async fn transact_deferred(&self, transaction: Transaction) -> Result<Receipt> {
                self.before(StoreCall::TransactSoon).await?;
                self.after(self.inner().transact_deferred(transaction).await?)
            }

            $(async fn $name(&self, $($arg: $type),*) -> Result<$answer> {
                self.before(StoreCall::$call).await?;
                self.inner().$name($($arg),*).await
            })*

            fn read_only(self: Arc<Self>) -> Result<Arc<dyn Store>> {
                Ok(Arc::new(ReadOnly::new(self)))
            }

            fn files(&self) -> Vec<PathBuf> {
                self.inner().files()
            }

            async fn verify(&self) -> Result<Vec<Damage>> {
                self.inner().verify().await
            }

            async fn close(&self) -> Result<()> {
                self.inner().close().await
            }
        }
    };
}

forward! {
    Settle: settle() -> ();
    Flush: flush() -> ();
    Read: get(id: &ObjectId, at: AsOf) -> Option<Version>;
    Read: get_many(ids: &[ObjectId], at: AsOf) -> Vec<Option<Version>>;
    Read: outlines(ids: &[ObjectId]) -> Vec<Option<Outline>>;
    Read: history(id: &ObjectId) -> Vec<Version>;
    Read: journal(id: &ObjectId) -> Vec<Entry>;
    Read: query(filter: &Filter) -> Vec<ObjectId>;
    Read: latest_tx() -> TxId;
    Read: changes_since(tx: TxId) -> BTreeMap<ObjectId, TxId>;
    Read: search(query: &Search) -> Vec<Hit>;
    Note: note(name: &str) -> Option<String>;
    Pull: pull() -> ();
    LocalValue: local_value(name: &str, default: &str) -> String;
    SetNote: set_note(name: &str, text: &str) -> ();
}
