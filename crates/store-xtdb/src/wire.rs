//! XTDB's wire format: transaction operations and answers.

use context_model::error::ModelError;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::time::{Timestamp, TxId};
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};

use super::connection::MOST_BYTES;
use super::edn::Edn;
use context_store::backend::erasing::CHANGE;
use context_store::{Result, StoreError};

/// A valid time later than every other one, for reads without a limit.
pub(crate) const FOREVER: &str = "9999-12-31T23:59:59.999Z";

/// The longest base document, in bytes, that is sent again just to make sure that no other client has replaced it.
pub(crate) const LONGEST_FENCE: usize = 1 << 20;

/// The field with the patch of a version that is stored as one (see `form`): a JSON text, so that XTDB neither indexes nor
/// changes it.
pub(crate) const PATCH: &str = CHANGE;

/// The field with the mark of a version that the owner erased: a JSON text (see `form`).
pub(crate) const ERASED: &str = "context/erased";

/// The field of a version that was put back after its object's eviction. It differs for each eviction, so that no node
/// takes the document for the one that was evicted.
pub(crate) const KEPT: &str = "context/kept";

/// A transaction's number. XTDB counts from 0, but in this library 0 means an empty store.
pub(crate) fn number(xtdb: u64) -> TxId {
    TxId(xtdb + 1)
}

/// XTDB's number of a transaction. `None` for the empty store. XTDB's numbers are limited to Java's `long`.
pub(crate) fn xtdb_number(tx: TxId) -> Option<u64> {
    tx.0.checked_sub(1).map(|number| number.min(i64::MAX as u64))
}

/// A transaction and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tx {
    pub id: TxId,
    pub time: Timestamp,
}

impl Tx {
    /// From a map with `:xtdb.api/tx-id` and `:xtdb.api/tx-time`.
    pub(crate) fn from_edn(map: &Edn) -> Option<Self> {
        let id = map.get("xtdb.api/tx-id")?.number()?;
        let time = map.get("xtdb.api/tx-time")?.time()?;
        Some(Self { id: number(id), time })
    }
}

/// The coordinates of a version: where it is in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coordinates {
    pub tx: Tx,
    pub valid_time: Timestamp,
    /// Another client's deletion, which has no document. This library deletes nothing.
    pub is_deletion: bool,
    /// The beginning of XTDB's own hash of the document; `None` for what this client has written itself.
    pub document: Option<u64>,
}

impl Coordinates {
    /// From an answer of `entity-tx` or a row of a history.
    pub(crate) fn from_edn(map: &Edn) -> Option<Self> {
        let hash = match map.get("xtdb.api/content-hash") {
            Some(Edn::Tagged(_, hash)) => Some(&**hash),
            hash => hash,
        };
        let hash = if let Some(Edn::Text(hash)) = hash { Some(hash.as_str()) } else { None };
        let is_deletion = hash.is_some_and(|hash| hash.bytes().all(|b| b == b'0'));
        let valid_time = map.get("xtdb.api/valid-time")?.time()?;
        Some(Self { tx: Tx::from_edn(map)?, valid_time, is_deletion, document: hash.and_then(beginning) })
    }

    /// True if a row of a history in JSON is that of this version, as far as it says.
    pub(crate) fn is_of_row(&self, row: &Value) -> bool {
        let hash = row["contentHash"].as_str().and_then(beginning);
        let is_same = self.document.is_none() || hash.is_none() || self.document == hash;
        is_same && row["txId"].as_u64().is_some_and(|tx| number(tx) == self.tx.id)
    }
}

/// XTDB's hash of an ID: the SHA-1 of the text as XTDB freezes it, with its length in bytes before it.
pub(crate) fn id_hash(id: &str) -> String {
    let length = id.len();
    let mut frozen = match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short <= 127 => vec![105, short],
        (_, Ok(middle)) if middle <= 32_767 => [&[16][..], &middle.to_be_bytes()].concat(),
        _ => [&[13][..], &u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()].concat(),
    };
    frozen.extend_from_slice(id.as_bytes());
    Sha1::digest(&frozen).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn beginning(hash: &str) -> Option<u64> {
    u64::from_str_radix(hash.get(..16)?, 16).ok()
}

/// True if a document of XTDB is that of this object, and not the answer of something on the way.
pub(crate) fn is_of(value: &Value, id: &str) -> bool {
    value.get("xt/id").and_then(Value::as_str) == Some(id)
}

/// XTDB's sentence about an empty log.
pub(crate) const NO_TRANSACTION: &str = "No latest-completed-tx found.";

/// XTDB's sentence about a document that it does not have.
pub(crate) fn no_entity(id: &str) -> String {
    format!("{id} entity not found")
}

/// XTDB's sentence about a version that it does not have.
pub(crate) fn no_entity_tx(id: &str) -> String {
    format!("{id} entity-tx not found")
}

/// A document as XTDB returns it, checked against its stored hash.
pub(crate) fn document(value: Value) -> Result<Document> {
    let name = value.get("xt/id").and_then(Value::as_str).unwrap_or("without an ID").to_owned();
    let stored = value.get("content_hash").and_then(Value::as_str).map(str::to_owned);
    let document = Document::from_json(value).map_err(|e: ModelError| {
        StoreError::Corrupt(format!("document {name} is not in this library's shape: {e}"))
    })?;
    if stored.is_some_and(|hash| hash != document.content_hash().to_string()) {
        return Err(StoreError::Corrupt(format!("document {name} does not match its stored hash")));
    }
    Ok(document)
}

/// Refuses documents that XTDB would misunderstand.
pub(crate) fn check(document: &Document) -> Result<()> {
    if document.id().as_str().is_empty() {
        return Err(StoreError::Invalid("an object needs a non-empty ID in XTDB".into()));
    }
    if let Some(name) = document.payload().keys().find(|k| k.starts_with("xt/") || k.starts_with("crux.")) {
        return Err(StoreError::Invalid(format!("XTDB reserves the field name {name}; rename the field")));
    }
    if let Some(name) = [PATCH, ERASED, KEPT].into_iter().find(|name| document.field(name).is_some()) {
        return Err(StoreError::Invalid(format!(
            "the field name {name} is reserved for this library's use of XTDB; rename the field"
        )));
    }
    Ok(())
}

/// The approximate length of a document's JSON text, in bytes.
pub(crate) fn document_length(document: &Document) -> usize {
    document.payload().iter().map(|(name, value)| name.len() + 4 + text_length(value)).sum::<usize>() + 200
}

/// The same for a value.
pub(crate) fn text_length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(text_length).sum::<usize>() + items.len(),
        Value::Object(map) => map.iter().map(|(k, v)| k.len() + 4 + text_length(v)).sum(),
        _ => 8,
    }
}

/// A transaction's operations in JSON.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ops(Vec<String>);

impl Ops {
    /// A condition: the object has this document (or none) at the valid time. Otherwise the transaction has no effect.
    pub(crate) fn matches(&mut self, id: &ObjectId, document: Option<&Value>, at: &str) {
        self.0.push(json!(["match", id, document, at]).to_string());
    }

    /// The document is valid from this time on. Returns the operation's length in bytes.
    pub(crate) fn put(&mut self, document: &Value, from: Option<Timestamp>) -> usize {
        let op = match from {
            Some(time) => json!(["put", document, time]).to_string(),
            None => json!(["put", document]).to_string(),
        };
        let bytes = op.len();
        self.0.push(op);
        bytes
    }

    /// All versions of the object and their documents go.
    pub(crate) fn evict(&mut self, id: &ObjectId) {
        self.0.push(json!(["evict", id]).to_string());
    }

    /// The body of a submission; matches come first, because they see the puts before them.
    pub(crate) fn body(mut self) -> String {
        self.0.sort_by_key(|op| !op.starts_with("[\"match\""));
        format!("{{\"tx-ops\":[{}]}}", self.0.join(","))
    }
}

/// Splits a JSON array that arrives in pieces into its elements, without holding it whole.
pub(crate) struct Rows {
    /// The number of bytes that may still come.
    left: usize,
    pending: Vec<u8>,
    /// True after the beginning of the array.
    has_begun: bool,
    depth: usize,
    in_text: bool,
    escaped: bool,
    scanned: usize,
}

impl Default for Rows {
    fn default() -> Self {
        Self::new(MOST_BYTES)
    }
}

impl Rows {
    /// An array of at most this many bytes.
    pub(crate) fn new(most: usize) -> Self {
        let (pending, has_begun, depth, in_text, escaped, scanned) = (Vec::new(), false, 0, false, false, 0);
        Self { left: most, pending, has_begun, depth, in_text, escaped, scanned }
    }

    /// Takes the next piece and returns the elements that are now complete.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` for anything but an array of arrays and objects, and for one that is too long.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<Vec<Value>> {
        let strange =
            |what: &str| StoreError::Unavailable(format!("XTDB would not answer like this: {what}"));
        self.left = self.left.checked_sub(piece.len()).ok_or_else(|| strange("a list without an end"))?;
        self.pending.extend_from_slice(piece);
        let mut rows = Vec::new();
        let mut start = 0;
        for at in self.scanned..self.pending.len() {
            let byte = self.pending[at];
            if self.in_text {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            if self.depth == 0 && !byte.is_ascii_whitespace() && (self.has_begun || byte != b'[') {
                return Err(strange("not a list of rows"));
            }
            match byte {
                b'"' if self.depth == 1 => return Err(strange("a row that is neither a list nor a map")),
                b'"' => self.in_text = true,
                b'[' | b'{' => {
                    self.has_begun = true;
                    self.depth += 1;
                    if self.depth == 2 {
                        start = at;
                    }
                }
                b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 1 {
                        let row = serde_json::from_slice(&self.pending[start..=at])
                            .map_err(|e| StoreError::Unavailable(format!("XTDB's log is not JSON: {e}")))?;
                        rows.push(row);
                        start = at + 1;
                    }
                }
                b',' | b' ' | b'\n' | b'\r' | b'\t' => {}
                _ if self.depth == 1 => return Err(strange("a row that is neither a list nor a map")),
                _ => {}
            }
        }
        if self.depth < 2 {
            start = self.pending.len();
        }
        self.pending.drain(..start);
        self.scanned = self.pending.len();
        Ok(rows)
    }

    /// True if the array has begun and ended.
    pub(crate) fn is_complete(&self) -> bool {
        self.has_begun && self.depth == 0 && !self.in_text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// In one piece and byte for byte.
    #[rstest]
    #[case("<html><body>[1]</body></html>")]
    #[case(r#"{"error":"login_required"}"#)]
    #[case("0")]
    #[case("")]
    #[case("null")]
    #[case("[1, 2]")]
    #[case(r#"["a"]"#)]
    #[case("[[1]] [[2]]")]
    #[case("[[1]")]
    #[case("[[1]]x")]
    fn an_answer_other_than_a_list_of_rows_is_not_an_empty_list(#[case] text: &str) {
        for size in [1, text.len().max(1)] {
            let mut rows = Rows::default();
            let fed = text.as_bytes().chunks(size).try_for_each(|piece| rows.feed(piece).map(drop));
            assert!(fed.is_err() || !rows.is_complete(), "{text}");
        }
    }

    /// Rows of any length.
    #[rstest]
    #[case::short_rows("[1],")]
    #[case::one_row("[1,2,3,")]
    #[case::blanks("    ")]
    fn a_list_without_an_end_is_refused_within_its_limit(#[case] more: &str) {
        let mut rows = Rows::new(1_000);
        rows.feed(b"[").unwrap();
        let taken = std::iter::repeat_with(|| rows.feed(more.as_bytes())).take_while(Result::is_ok).count();
        assert_eq!(taken, 999 / more.len());
    }

    /// The hashes that XTDB 1.24.3 answers with.
    #[rstest]
    #[case("a", "264fab4226a799162e5476161e1747e74814ba83")]
    #[case(&"x".repeat(127), "8f84c50bf4881e37add2ae6d84ab6142c138bd37")]
    #[case(&"x".repeat(128), "37a632529e5867131ad26557ae38ea4189aaad52")]
    #[case(&"x".repeat(5_000), "da6373afbea43cfecea9ff1864f5e912c551e459")]
    #[case(&"ü".repeat(64), "d08a00754ba0fc72c1278fd192761cace7613359")]
    #[case(&"x".repeat(40_000), "e97744328900946788f322c8ab6045415d37a777")]
    fn an_id_has_the_hash_that_xtdb_gives_it(#[case] id: &str, #[case] hash: &str) {
        assert_eq!(id_hash(id), hash);
    }

    #[test]
    fn matches_stand_before_puts() {
        let mut ops = Ops::default();
        ops.put(&json!({"xt/id": "a"}), None);
        ops.matches(&ObjectId::new("a"), None, FOREVER);
        let body: Value = serde_json::from_str(&ops.body()).unwrap();
        assert_eq!(body["tx-ops"][0], json!(["match", "a", null, FOREVER]));
        assert_eq!(body["tx-ops"][1], json!(["put", {"xt/id": "a"}]));
    }

    proptest! {
        #[test]
        fn rows_do_not_depend_on_the_pieces(
            texts in prop::collection::vec(any::<String>(), 0..6),
            cuts in prop::collection::vec(1_usize..40, 1..20),
        ) {
            let rows: Vec<Value> = texts.iter().map(|t| json!({"txId": 1, "ops": [[t, {"x": [t]}]]})).collect();
            let bytes = serde_json::to_vec(&rows).unwrap();
            let mut splitter = Rows::default();
            let (mut got, mut at, mut cuts) = (Vec::new(), 0, cuts.into_iter().cycle());
            while at < bytes.len() {
                prop_assert!(at == 0 || !splitter.is_complete());
                let end = (at + cuts.next().unwrap()).min(bytes.len());
                got.extend(splitter.feed(&bytes[at..end]).unwrap());
                at = end;
            }
            prop_assert!(splitter.is_complete());
            prop_assert_eq!(got, rows);
        }
    }
}
