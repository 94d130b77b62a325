//! The state that the parts of the store share: the nodes, the facts about the database, and reads that wait for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use context_model::time::TxId;

use super::cache::Cache;
use super::erasures::Erasures;
use super::http::{Format, NodeAnswer, NodeRequest, Nodes};
use super::wire::{NO_TRANSACTION, Tx, xtdb_number};
use context_store::{AsOf, KnownAt, Result};

/// Prefix of the IDs of writers' marks; see the module's documentation.
pub(super) const WRITERS: &str = "writer:";

/// A client of one database, shared by all parts of the store.
pub(super) struct XtdbClient {
    pub(super) nodes: Nodes,
    pub(super) cache: Mutex<Cache>,
    /// The newest transaction that this client wrote or saw. Every read waits for it.
    pub(super) known: AtomicU64,
    pub(super) closed: AtomicBool,
    /// The erasures of the store's owner, as far as this client knows them; `None` before they were asked for.
    pub(super) erasures: Mutex<Option<Arc<Erasures>>>,
    pub(super) local: Mutex<BTreeMap<String, String>>,
}

impl XtdbClient {
    pub(super) fn cache<T>(&self, use_it: impl FnOnce(&mut Cache) -> T) -> T {
        use_it(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads, after waiting for everything that this client wrote or saw.
    pub(super) fn read(&self, endpoint: &str, accept: Format) -> NodeRequest {
        self.after_known(NodeRequest::get(endpoint, accept))
    }

    pub(super) fn after_known(&self, request: NodeRequest) -> NodeRequest {
        match xtdb_number(TxId(self.known.load(Ordering::Acquire))) {
            Some(tx) => request.with("await-tx-id", tx).with("await-tx-timeout", self.await_millis()),
            None => request,
        }
    }

    /// As of the newest transaction that this client wrote or saw.
    pub(super) fn as_known(&self) -> AsOf {
        let known = self.known.load(Ordering::Acquire);
        AsOf { valid_time: None, known: (known > 0).then_some(KnownAt::Tx(TxId(known))) }
    }

    /// Time that a node may wait for a transaction, in milliseconds. Less than the request's own limit, so that the node
    /// answers before the request times out.
    pub(super) fn await_millis(&self) -> u128 {
        (self.nodes.timeout() * 4 / 5).as_millis().max(1)
    }

    /// The newest transaction that the node has indexed, and at least the newest that this client knows.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` also for an older one: then something on the way answers from its memory.
    pub(super) async fn latest(&self) -> Result<Option<Tx>> {
        let known = self.known.load(Ordering::Acquire);
        let request = self.read("latest-completed-tx", Format::Edn);
        let Some((tx, answer)) = self.tx_of(&request).await? else { return Ok(None) };
        if tx.id.0 < known {
            return Err(answer.strange("an older transaction than one that it has shown before"));
        }
        // Another node may take over before the next request, and must not answer from an earlier state.
        self.known.fetch_max(tx.id.0, Ordering::AcqRel);
        Ok(Some(tx))
    }

    /// The same without waiting, so that it shows if the node has everything that this client knows.
    pub(super) async fn newest_tx(&self) -> Result<Option<Tx>> {
        let request = NodeRequest::get("latest-completed-tx", Format::Edn);
        Ok(self.tx_of(&request).await?.map(|(tx, _)| tx))
    }

    async fn tx_of(&self, request: &NodeRequest) -> Result<Option<(Tx, NodeAnswer)>> {
        let answer = self.nodes.send(request).await?;
        if answer.says(NO_TRANSACTION)? {
            return Ok(None);
        }
        let tx = Tx::from_edn(&answer.edn()?).ok_or_else(|| answer.strange("no transaction in it"))?;
        Ok(Some((tx, answer)))
    }
}
