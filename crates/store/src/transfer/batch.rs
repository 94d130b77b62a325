//! The writes that an import makes at once.

use std::collections::HashSet;

use context_model::id::ObjectId;

use super::Result;
use crate::{Erased, Store, Transaction, Write as StoreWrite};

/// The most writes that an import puts into one transaction.
const WRITES_A_TRANSACTION: usize = 64;

/// The most bytes of lines that an import puts into one transaction. A longer line gets its own transaction.
const BYTES_A_TRANSACTION: usize = 1 << 20;

/// A write of an import.
pub(super) struct ImportWrite {
    pub id: ObjectId,
    pub write: StoreWrite,
    /// The mark of a version whose owner has erased something of it.
    pub mark: Option<Erased>,
    /// The bytes of its line.
    pub bytes: usize,
}

/// True if a write repeats the document of the one before it. A store does not write what holds already at that time, so
/// that the last of such versions has to be written first.
pub(super) fn repeated(run: &[ImportWrite], write: &StoreWrite) -> bool {
    match (run.last().map(|last| &last.write), write) {
        (Some(StoreWrite::Put { document: before, .. }), StoreWrite::Put { document, .. }) => {
            before == document
        }
        _ => false,
    }
}

/// Writes that wait for their transaction. At most one version of each object, so that a transaction number identifies
/// one version, as it did in the store that the file comes from.
#[derive(Default)]
pub(super) struct ImportBatch {
    writes: Vec<StoreWrite>,
    marks: Vec<Option<Erased>>,
    bytes: usize,
    objects: HashSet<ObjectId>,
}

impl ImportBatch {
    /// Takes over writes, the last one first, and flushes where the limits ask for it.
    pub(super) async fn take(&mut self, run: &mut Vec<ImportWrite>, store: &dyn Store) -> Result<u64> {
        let mut written = 0;
        while let Some(ImportWrite { id, write, mark, bytes }) = run.pop() {
            if self.is_full(bytes) || self.objects.contains(&id) {
                written += self.flush(store).await?;
            }
            self.objects.insert(id);
            self.writes.push(write);
            self.marks.push(mark);
            self.bytes += bytes;
        }
        Ok(written)
    }

    fn is_full(&self, more: usize) -> bool {
        self.writes.len() >= WRITES_A_TRANSACTION
            || (self.bytes > 0 && self.bytes + more > BYTES_A_TRANSACTION)
    }

    pub(super) async fn flush(&mut self, store: &dyn Store) -> Result<u64> {
        self.bytes = 0;
        self.objects.clear();
        if self.writes.is_empty() {
            return Ok(0);
        }
        let (writes, marks) = (std::mem::take(&mut self.writes), std::mem::take(&mut self.marks));
        let transaction = Transaction { writes, expected: Vec::new() };
        let receipt = store.transact_marked(transaction, marks).await?;
        Ok(receipt.written.iter().filter(|written| **written).count() as u64)
    }
}
