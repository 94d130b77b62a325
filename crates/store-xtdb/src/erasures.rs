//! The erasures of the store's owner, as all clients of the database know them.
//!
//! A small document, the notice, has the number of the last record and, while a client erases, a name for that erasure.
//! Every transaction of every client has a `match` for the notice that the client knows. So a client that was away, or that
//! still has versions in its queue, is refused, reads the records that it lacks, and sends no erased text. The records have
//! hashes only, and the replacement of each text that was erased in part.
//!
//! Architecture invariant: every transaction of the erasing client replaces the notice. A notice that stays unchanged for
//! as long as a request may take shows that this client has ended; then any other client completes its work (see `erase`).

use std::collections::BTreeMap;
use std::time::Instant;

use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use context_store::StoreError;
use context_store::backend::erasing::Gone;

/// The ID of the notice.
pub(super) const ERASURES: &str = "context:erasures";

/// The field of a record's document with its contents, as a JSON text.
pub(super) const RECORD: &str = "context/erasure";

/// The texts and objects that one call erased.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The texts.
    pub gone: Gone,
    /// The objects that were erased as a whole, each with the time of that.
    pub objects: BTreeMap<ObjectId, Timestamp>,
}

/// All records, and the notice that goes with them.
#[derive(Clone, Debug)]
pub(crate) struct Erasures {
    pub(super) notice: Option<Value>,
    pub(super) all: Record,
    /// When this client saw the notice first.
    pub(super) seen: Instant,
}

impl Erasures {
    pub(crate) fn none() -> Self {
        Self { notice: None, all: Record::default(), seen: Instant::now() }
    }

    /// The notice's document.
    pub(crate) fn value(&self) -> Option<&Value> {
        self.notice.as_ref()
    }

    /// Returns all erased texts and objects.
    pub(crate) fn all(&self) -> &Record {
        &self.all
    }

    /// The version without the erased texts; `None` if it has none of them.
    pub(crate) fn taken_out_of(
        &self,
        document: &Document,
        valid_time: Option<Timestamp>,
    ) -> Option<Document> {
        let until = self.all.objects.get(document.id());
        let whole = until.is_some_and(|until| valid_time.is_some_and(|time| time <= *until));
        self.all.gone.taken_out_of(document, whole)
    }

    /// The number of the last record.
    pub(crate) fn number(&self) -> u64 {
        self.notice.as_ref().and_then(|notice| notice["number"].as_u64()).unwrap_or(0)
    }

    /// The next notice: with this number of the last record, for a client that erases.
    pub(crate) fn next(&self, number: u64, erasing: Option<&str>) -> Value {
        let step = self.notice.as_ref().and_then(|notice| notice["step"].as_u64()).unwrap_or(0) + 1;
        json!({ "xt/id": ERASURES, "number": number, "step": step, "erasing": erasing })
    }

    /// The name of the client that erases.
    pub(crate) fn erasing(&self) -> Option<&str> {
        self.notice.as_ref()?["erasing"].as_str()
    }
}

pub(super) fn record_document(number: u64, record: &Record) -> Value {
    json!({ "xt/id": record_id(number), RECORD: serde_json::to_string(record).unwrap_or_default() })
}

pub(super) fn record_id(number: u64) -> String {
    format!("erasure:{number}")
}

/// The error of a client that was too slow, so that another one completed its work.
pub(super) fn overtaken() -> StoreError {
    let what = "another client has completed what this one began to erase; repeat the command";
    StoreError::Unavailable(what.into())
}
