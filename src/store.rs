//! Opening the store that the options name.

use std::sync::Arc;

use context_store::Store;
use context_store::memory::MemoryStore;
use context_store::sqlite::{Durability, SqliteStore};

use crate::error::Coded;
use crate::types::StoreOptions;

/// Opens a store. `None` is the ephemeral one: the place of the embedded store is the TypeScript entry's choice.
pub async fn open(options: Option<StoreOptions>) -> Result<Arc<dyn Store>, Coded> {
    match options {
        None | Some(StoreOptions::Memory {}) => Ok(MemoryStore::new()),
        Some(StoreOptions::Sqlite { path, durability }) => {
            let durability = match durability.as_deref() {
                None | Some("power") => Durability::Power,
                Some("process") => Durability::Process,
                Some(_) => return Err(Coded::invalid("durability is 'power' or 'process'")),
            };
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(path, durability));
            match opened.await {
                Ok(store) => Ok(store?),
                Err(error) => Err(context_store::StoreError::Unavailable(error.to_string()).into()),
            }
        }
    }
}
