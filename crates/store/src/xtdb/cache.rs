//! What this client remembers: the latest versions it read or wrote, and the names behind XTDB's ID hashes.
//!
//! Architecture invariant: a cached latest version is a guess. Every transaction that is built on one carries
//! a `match` of it, and a read asks the node for the version's place before it takes the document from here.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::time::TxId;

use super::wire::{Place, Tx};
use crate::Version;

/// The most documents' bytes that are remembered.
const MOST_BYTES: usize = 64 << 20;

/// The most names of ID hashes that are remembered.
const MOST_NAMES: usize = 200_000;

/// An object's first transaction, and its place among the writes of it where that was needed.
pub(crate) type First = (TxId, Option<usize>);

/// A latest version as this client knows it.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub version: Arc<Version>,
    /// The length of its JSON text, in bytes; 0 where it was not measured.
    pub bytes: usize,
}

/// The client's memory.
#[derive(Default)]
pub(crate) struct Cache {
    heads: HashMap<ObjectId, Head>,
    order: VecDeque<ObjectId>,
    bytes: usize,
    names: HashMap<String, Option<ObjectId>>,
    firsts: HashMap<ObjectId, First>,
    own: BTreeSet<TxId>,
    /// The hash of this writer's own ID, once it was seen.
    pub own_hash: Option<String>,
    /// Everything up to this transaction was taken into account.
    pub seen: TxId,
}

impl Cache {
    pub fn new(seen: TxId) -> Self {
        Self { seen, ..Self::default() }
    }

    pub fn head(&self, id: &ObjectId) -> Option<Head> {
        self.heads.get(id).cloned()
    }

    /// The remembered document of exactly this version.
    pub fn at(&self, id: &ObjectId, place: Place) -> Option<Arc<Version>> {
        let version = &self.heads.get(id)?.version;
        let same = version.tx_id == place.tx.id && version.valid_time == place.valid_time;
        same.then(|| Arc::clone(version))
    }

    pub fn keep(&mut self, version: Arc<Version>, bytes: usize) {
        let id = version.document.id().clone();
        self.forget(&id);
        self.bytes += bytes;
        self.order.push_back(id.clone());
        self.heads.insert(id, Head { version, bytes });
        while self.bytes > MOST_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(head) = self.heads.remove(&oldest) {
                self.bytes -= head.bytes;
            }
        }
    }

    pub fn forget(&mut self, id: &ObjectId) {
        if let Some(head) = self.heads.remove(id) {
            self.bytes -= head.bytes;
            self.order.retain(|other| other != id);
        }
    }

    /// Forgets all documents, where it is not known which ones changed.
    pub fn forget_all(&mut self) {
        self.heads.clear();
        self.order.clear();
        self.bytes = 0;
    }

    /// The object behind an ID hash: `None` where that is not known yet, `Some(None)` for what is no object.
    pub fn name(&self, hash: &str) -> Option<Option<ObjectId>> {
        self.names.get(hash).cloned()
    }

    pub fn learn(&mut self, hash: String, id: Option<ObjectId>) {
        if self.names.len() >= MOST_NAMES {
            self.names.clear();
        }
        self.names.insert(hash, id);
    }

    /// An object's first transaction and its place in it, which never change.
    pub fn first(&self, id: &ObjectId) -> Option<First> {
        self.firsts.get(id).copied()
    }

    pub fn learn_first(&mut self, id: ObjectId, first: First) {
        if self.firsts.len() >= MOST_NAMES {
            self.firsts.clear();
        }
        self.firsts.insert(id, first);
    }

    /// Notes a transaction of this client, so that it is not taken for someone else's.
    pub fn wrote(&mut self, tx: Tx) {
        self.own.insert(tx.id);
    }

    pub fn is_own(&self, tx: TxId) -> bool {
        self.own.contains(&tx)
    }

    /// Notes that everything up to this transaction was taken into account.
    pub fn saw(&mut self, tx: TxId) {
        if tx > self.seen {
            self.seen = tx;
            self.own = self.own.split_off(&TxId(tx.0 + 1));
        }
    }
}
