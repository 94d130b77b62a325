//! Who writes: the mark that each transaction of a client replaces, so that it takes effect once.

use context_model::id::ObjectId;
use context_model::time::TxId;
use serde_json::Value;

use super::areas::Lister;
use super::http::{Format, NodeRequest};
use super::inner::{WRITERS, XtdbClient};
use super::random::random_name;
use super::read::at_place;
use super::wire::{Tx, is_of, no_entity, xtdb_number};
use context_store::{AsOf, Result};

/// This client's mark in the database: a document that each of its transactions replaces.
pub(crate) struct NodeWriter {
    pub(super) id: ObjectId,
    /// The mark in XTDB, as far as known.
    pub(super) mark: Option<Value>,
    /// True if it is known: not after a submission without an answer.
    pub(super) is_known: bool,
    pub(super) next: u64,
    /// The random name of the sender's run, where a journal sends (see `queue`).
    pub(super) run: Option<String>,
    /// The notice that its next transaction writes, where it erases (see `erasures`).
    pub(super) notice: Option<Value>,
    /// The name that it uses in the notice while it erases.
    pub(super) erasing: Option<String>,
}

impl NodeWriter {
    /// A writer with this name, or with a new one if `None`.
    pub(crate) fn new(name: Option<String>) -> Result<Self> {
        let is_known = name.is_none();
        let name = name.map_or_else(random_name, Ok)?;
        Ok(Self {
            id: ObjectId::new(format!("{WRITERS}{name}")),
            mark: None,
            is_known,
            next: 1,
            run: None,
            notice: None,
            erasing: None,
        })
    }

    /// Has the next marks carry the name of a run.
    pub(crate) fn set_run(&mut self, run: Option<String>) {
        self.run = run;
    }

    /// The number of the mark; `None` before the first one.
    pub(crate) fn number(&self) -> Option<u64> {
        self.mark.as_ref().and_then(|mark| mark["number"].as_u64())
    }

    /// Tells the next transaction's changes from those of others.
    pub(crate) fn lister(&self) -> Lister<'_> {
        Lister { by: &self.id, run: self.run.as_deref(), number: self.next }
    }
}

impl XtdbClient {
    /// This writer's mark as it is now.
    pub(super) async fn mark(&self, writer: &mut NodeWriter) -> Result<Option<Value>> {
        writer.is_known = false;
        self.settle(writer).await?;
        Ok(writer.mark.clone())
    }

    /// Reads the writer's mark after a submission without an answer.
    pub(super) async fn settle(&self, writer: &mut NodeWriter) -> Result<()> {
        if writer.is_known {
            return Ok(());
        }
        writer.mark = self.newest_now(writer.id.as_str()).await?;
        let number = writer.mark.as_ref().and_then(|mark| mark["number"].as_u64()).unwrap_or(0);
        writer.next = writer.next.max(number + 1);
        writer.is_known = true;
        Ok(())
    }

    /// The transaction that wrote this writer's mark, as it is now.
    pub(super) async fn mark_tx(&self, writer: &NodeWriter) -> Result<Option<TxId>> {
        Ok(self.place(&writer.id, AsOf::default()).await?.map(|place| place.tx.id))
    }

    /// This writer's mark after a transaction, which the node is waited for. Unlike XTDB's word on whether a transaction was
    /// committed, it tells which transaction the answer is about.
    pub(super) async fn mark_after(&self, writer: &NodeWriter, tx: Tx) -> Result<Option<Value>> {
        let number = xtdb_number(tx.id).unwrap_or_default();
        let request = NodeRequest::get("entity", Format::Json).with("eid", &writer.id);
        let request = request.with("await-tx-id", number).with("await-tx-timeout", self.await_millis());
        self.mark_of(writer.id.as_str(), at_place(request, None, tx.id)).await
    }

    /// The mark of a writer with this name after a transaction; `None` also if there is no such transaction.
    pub(super) async fn mark_at(&self, name: &str, tx: TxId) -> Result<Option<Value>> {
        let id = format!("{WRITERS}{name}");
        let request = self.read("entity", Format::Json).with("eid", &id);
        self.mark_of(&id, at_place(request, None, tx)).await
    }

    async fn mark_of(&self, id: &str, request: NodeRequest) -> Result<Option<Value>> {
        let answer = self.nodes.send(&request).await?;
        if answer.says(&no_entity(id))? || answer.is_out_of_sync() {
            return Ok(None);
        }
        let value = answer.json()?;
        if is_of(&value, id) { Ok(Some(value)) } else { Err(answer.strange("a document of something else")) }
    }
}
