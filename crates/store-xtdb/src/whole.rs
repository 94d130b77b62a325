//! The whole transaction log, checked to be whole.
//!
//! The log does not say how long it is, and its numbers have gaps. But each transaction of this library replaces its writer's mark
//! and has a `match` for the one before. So what the log lacks shows in the marks: they do not continue, or they do not
//! end with those that a query finds. What other programs wrote has no marks.

use std::collections::HashMap;

use context_model::id::ObjectId;
use context_model::time::TxId;
use serde_json::Value;

use super::inner::{WRITERS, XtdbClient};
use super::wire::id_hash;
use context_store::{AsOf, KnownAt, Result};

/// The number of the newest mark of each writer, by the ID of the mark.
type Newest = HashMap<ObjectId, Option<u64>>;

impl XtdbClient {
    /// Reads all transactions with their documents, row by row.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` also if the answer lacks one of them: then it was cut, is an old one, or one to another question.
    pub(super) async fn each_tx_of_all(&self, mut row: impl FnMut(TxId, &Value)) -> Result<()> {
        let newest = self.latest().await?.map_or(TxId(0), |tx| tx.id);
        let (mut marks, mut then) = (Newest::new(), Newest::new());
        self.each_tx(TxId(0), true, |tx, value| {
            for (id, before, number) in replaced(value) {
                if before.is_some_and(|before| marks.get(&id).copied().flatten() != before) {
                    return Err(self.nodes.foreign("its whole log"));
                }
                if tx <= newest {
                    then.insert(id.clone(), number);
                }
                marks.insert(id, number);
            }
            row(tx, value);
            Ok(true)
        })
        .await?;
        if newest > TxId(0) && then != self.marks_at(newest).await? {
            return Err(self.nodes.foreign("its whole log"));
        }
        Ok(())
    }

    /// The marks of all writers after a transaction.
    async fn marks_at(&self, tx: TxId) -> Result<Newest> {
        let at = AsOf { valid_time: None, known: Some(KnownAt::Tx(tx)) };
        let values = vec!["0".to_owned()];
        let (_, rows) = self.rows(("e n", "least", "[e :number n] [(<= least n)]"), values, at).await?;
        let mark = |row: &Value| Some((ObjectId::new(writer(&row[0])?), row[1].as_u64()));
        Ok(rows.iter().filter_map(mark).collect())
    }
}

/// The marks that a transaction replaced: each ID, the number of the mark before (`Some(None)` for a writer's first one), and the
/// new number. The number before is missing if the transaction has no `match` for the mark.
fn replaced(row: &Value) -> impl Iterator<Item = (ObjectId, Option<Option<u64>>, Option<u64>)> {
    let ops = || row["txOps"].as_array().into_iter().flatten();
    ops().filter(|op| op[0] == "put").filter_map(move |op| {
        let id = writer(&op[1]["xt/id"])?;
        let hash = id_hash(id);
        let before = ops().find(|op| op[0] == "match" && (op[1] == *hash || op[2]["xt/id"] == *id));
        Some((ObjectId::new(id), before.map(|op| op[2]["number"].as_u64()), op[1]["number"].as_u64()))
    })
}

/// The ID, if it is that of a writer's mark.
fn writer(id: &Value) -> Option<&str> {
    id.as_str().filter(|id| id.starts_with(WRITERS))
}
