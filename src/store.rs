//! Opening the store that the options name.

use std::sync::Arc;

use context_store::memory::MemoryStore;
use context_store::sqlite::{Durability, SqliteStore};
use context_store::xtdb::{QueueOptions, QueuedStore, XtdbOptions, XtdbStore};
use context_store::{Store, StoreError};

use crate::error::Coded;
use crate::types::StoreOptions;

/// Opens a store. `None` is the ephemeral one: the place of the embedded store is the TypeScript entry's choice.
pub async fn open(options: Option<StoreOptions>) -> Result<Arc<dyn Store>, Coded> {
    Ok(match options {
        None | Some(StoreOptions::Memory {}) => MemoryStore::new(),
        Some(StoreOptions::Sqlite { path, durability }) => {
            let durability = match durability.as_deref() {
                None | Some("power") => Durability::Power,
                Some("process") => Durability::Process,
                Some(_) => return Err(Coded::invalid("durability is 'power' or 'process'")),
            };
            tokio::task::spawn_blocking(move || SqliteStore::open(path, durability))
                .await
                .map_err(|error| StoreError::Unavailable(error.to_string()))??
        }
        Some(StoreOptions::Xtdb { url, urls, timeout_ms, journal }) => {
            let mut xtdb = XtdbOptions::new(std::iter::once(url).chain(urls.unwrap_or_default()));
            if let Some(timeout) = timeout_ms {
                xtdb.timeout_ms = u64::from(timeout);
            }
            match journal {
                Some(journal) => QueuedStore::open(QueueOptions::new(journal, xtdb)).await?,
                None => XtdbStore::connect(xtdb).await?,
            }
        }
    })
}
