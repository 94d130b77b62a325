//! What only the owner of the store may do.

use async_trait::async_trait;
use context_model::time::Timestamp;

use super::{SqliteStore, prune};
use context_store::sessions::{self, Prune, Pruned};
use context_store::{Erase, Erased, ErasedCount, OwnedStore, Result};

#[async_trait]
impl OwnedStore for SqliteStore {
    /// The texts are also erased from the log and the free pages. The whole file is rewritten, which takes time in
    /// proportion to its size, and free space of twice its length.
    async fn erase(&self, wanted: Vec<Erase>, why: &str) -> Result<ErasedCount> {
        let mark = Erased { at: (self.clock)(), why: why.to_owned() };
        self.call(move |writer| writer.erase(&wanted, &mark)).await
    }

    async fn prune(&self, wanted: Prune) -> Result<Pruned> {
        wanted.check()?;
        let summaries = sessions::summaries(self).await?;
        let among = wanted.among(&summaries).map(|summary| summary.id.clone()).collect();
        let Prune { before, max_bytes, is_dry_run, .. } = wanted;
        let before =
            if max_bytes.is_none() { before.or(Some(Timestamp::from_millis(i64::MAX))) } else { before };
        let which = prune::Which { among: Some(among), before, max_bytes };
        let left = self.call(move |writer| writer.prune(&which, is_dry_run, true)).await?;
        let named = |id: &_| summaries.iter().find(|summary| summary.id == *id).cloned();
        Ok(Pruned { sessions: left.sessions.iter().filter_map(named).collect(), ..left.pruned })
    }
}
