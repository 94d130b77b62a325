//! Operations for the owner of the store only.

use std::sync::Arc;

use async_trait::async_trait;
use context_model::time::Timestamp;

use super::XtdbStore;
use context_store::backend::erasing::{self, Needles};
use context_store::backend::pruning::{self, Leaving};
use context_store::sessions::{Prune, Pruned};
use context_store::{Erase, Erased, ErasedCount, OwnedStore, Result, clock};

#[async_trait]
impl OwnedStore for XtdbStore {
    /// Reads the whole log twice. Objects that lose some text are evicted, and their rest is put back in new transactions:
    /// valid times stay, transaction times do not. Other clients' writes wait meanwhile.
    async fn erase(&self, wanted: Vec<Erase>, why: &str) -> Result<ErasedCount> {
        let inner = Arc::clone(self.open()?);
        let needles = Needles::new(&wanted)?;
        let objects = erasing::objects(self, &wanted).await?;
        let mark = Erased { at: clock::system()(), why: why.to_owned() };
        let mut writer = self.writer.lock().await;
        inner.erase(&mut writer, &objects, &needles, &mark).await
    }

    /// Sizes are those of the documents in JSON.
    async fn prune(&self, wanted: Prune) -> Result<Pruned> {
        self.prune_at(wanted, clock::system()()).await
    }
}

impl XtdbStore {
    /// As [`OwnedStore::prune`], at this time.
    pub async fn prune_at(&self, wanted: Prune, now: Timestamp) -> Result<Pruned> {
        let inner = Arc::clone(self.open()?);
        let weights = inner.weights().await?;
        let Leaving { objects, pruned } = pruning::choose(self, &wanted, &weights, now).await?;
        if wanted.is_dry_run || objects.is_empty() {
            return Ok(pruned);
        }
        let mut writer = self.writer.lock().await;
        inner.evict(&mut writer, &objects).await?;
        Ok(Pruned { is_shorter: true, ..pruned })
    }
}
