//! Running a prepared transaction inside a write transaction of SQLite.

use std::borrow::Cow;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::error::Result;
use super::form::NewText;
use super::pack::{self, RowParts, Skeleton};
use super::prepare::{Body, PatchWrite, Prepared, PreparedWrite, Put};
use super::read;
use super::row::Row;
use super::{erase, index};
use context_store::backend::erasing::Gone;
use context_store::backend::shape::{ContentChange, PatchFit, PayloadShape, touches_content};
use context_store::backend::{self, Heads, envelope_differs, patch_time, unknown};
use context_store::clock::{self, Clock};
use context_store::{AsOf, Receipt, StoreError};

/// The newest transaction as the writer sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    pub tx_id: i64,
    pub tx_time: Option<Timestamp>,
}

impl Newest {
    pub fn read(connection: &Connection) -> Result<Self> {
        let mut statement =
            connection.prepare_cached("SELECT tx_id, tx_time FROM txs ORDER BY tx_id DESC LIMIT 1")?;
        let newest = statement
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?
            .map(|(tx_id, time)| Self { tx_id, tx_time: Some(Timestamp::from_millis(time)) });
        Ok(newest.unwrap_or(Self { tx_id: 0, tx_time: None }))
    }
}

/// Runs a transaction. On an error the caller rolls everything back.
pub(super) fn apply(
    connection: &Connection,
    clock: &Clock,
    newest: &mut Newest,
    heads: &mut Heads,
    work: &Prepared,
    gone: &Gone,
) -> Result<Receipt> {
    for (id, expected) in &work.expected {
        if read::latest_tx_of(connection, id)? != *expected {
            return Err(StoreError::Conflict(id.clone()).into());
        }
    }
    let tx_time = clock::next(clock, newest.tx_time);
    let mut transaction = Open { connection, heads, tx_id: newest.tx_id + 1, tx_time, begun: false };
    let mut written = Vec::with_capacity(work.writes.len());
    for write in &work.writes {
        let masked = if gone.is_empty() { None } else { write.masked(gone)? };
        written.push(match masked.as_ref().unwrap_or(write) {
            PreparedWrite::Put(put) => transaction.put(put)?,
            PreparedWrite::Patch(patch) => transaction.patch(patch)?,
        });
    }
    if transaction.begun {
        *newest = Newest { tx_id: transaction.tx_id, tx_time: Some(tx_time) };
    }
    let tx_time = newest.tx_time.unwrap_or(Timestamp::from_millis(0));
    Ok(Receipt { tx_id: TxId(newest.tx_id.unsigned_abs()), tx_time, written })
}

/// A transaction that gets its number with its first version.
struct Open<'c> {
    connection: &'c Connection,
    heads: &'c mut Heads,
    tx_id: i64,
    tx_time: Timestamp,
    begun: bool,
}

/// The stored envelope of an object, as far as it is known.
struct StoredObject {
    object: i64,
    object_type: String,
    source: Option<String>,
}

/// The columns of a version row besides its object and its times.
struct Columns<'a> {
    body: &'a Body,
    content: Option<(i64, Digest)>,
    /// True if that text was erased, and stays so.
    is_erased: bool,
    /// The mark that the version comes with.
    mark: Option<&'a str>,
    content_hash: Option<Digest>,
    chain: Option<Chain<'a>>,
}

/// The columns that only the row of a patch has.
struct Chain<'a> {
    base: i64,
    depth: i64,
    patch: &'a Skeleton,
    nested: String,
}

impl Open<'_> {
    fn put(&mut self, put: &Put) -> Result<bool> {
        let valid_time = put.valid_time.unwrap_or(self.tx_time);
        let known = match self.known(&put.id)? {
            Some(known) => {
                if known.object_type != put.object_type.as_str() || known.source != put.source {
                    return Err(envelope_differs(&put.id).into());
                }
                let at = AsOf { valid_time: Some(valid_time), known: None };
                let stored = read::hashes(self.connection, &put.id, at)?;
                if stored == Some((put.content_hash, put.body.source_hash)) {
                    return Ok(false);
                }
                known
            }
            None => {
                let mut insert = self
                    .connection
                    .prepare_cached("INSERT INTO objects (object_id, type, source) VALUES (?, ?, ?)")?;
                let object = insert.insert(params![put.id.as_str(), put.object_type.as_str(), put.source])?;
                let (object_type, source) = (put.object_type.as_str().to_owned(), put.source.clone());
                StoredObject { object, object_type, source }
            }
        };
        let store = if put.is_text_gone { index::stored_erased } else { index::stored };
        let stored = put.text.as_ref().map(|text| store(self.connection, text)).transpose()?;
        let content = stored.zip(put.text.as_ref()).map(|((content, _), text)| (content, text.key));
        let is_erased = put.is_masked || stored.is_some_and(|(_, is_erased)| is_erased);
        let content_hash = Some(put.content_hash);
        let mark = put.erased.as_deref();
        let columns = Columns { body: &put.body, content, is_erased, mark, content_hash, chain: None };
        self.insert(&put.id, &known, valid_time, &columns)?;
        Ok(true)
    }

    fn patch(&mut self, write: &PatchWrite) -> Result<bool> {
        let known = self.known(&write.id)?.ok_or_else(|| unknown(&write.id))?;
        let latest = read::latest_form(self.connection, &write.id)?.ok_or_else(|| unknown(&write.id))?;
        let valid_time = patch_time(write.valid_time, self.tx_time, latest.valid_time)?;
        let mut shape = latest.shape;
        let mut head = self.heads.take(&write.id, latest.seq.unsigned_abs());
        let fit = shape.apply(&write.operations)?;
        if fit == PatchFit::Deep && head.is_none() {
            let before = read::get(self.connection, &write.id, AsOf::default())?;
            head = before.map(|version| Value::Object(version.document.into_parts().3));
        }
        if let Some(payload) = &mut head {
            backend::change(payload, &write.operations)?;
        }
        let change = match (fit, &head) {
            (PatchFit::Fits(change), _) => change,
            (PatchFit::Deep, Some(Value::Object(payload))) => {
                shape = PayloadShape::of(payload);
                let text = payload.get("content").and_then(Value::as_str).map(str::to_owned);
                if touches_content(&write.operations) {
                    ContentChange::Set(text)
                } else {
                    ContentChange::Kept
                }
            }
            (PatchFit::Deep, _) => return Err(unknown(&write.id).into()),
        };
        let (content, is_erased) = match change {
            ContentChange::Kept => (latest.content, false),
            ContentChange::Set(None) => (None, false),
            ContentChange::Set(Some(text)) => {
                let text = NewText::new(text);
                let (content, is_erased) = index::stored(self.connection, &text)?;
                (Some((content, text.key)), is_erased)
            }
        };
        let nested = Value::from_iter(shape.nested.iter().map(|(k, v)| (k.clone(), Value::from(*v))));
        let chain = Chain {
            base: latest.base,
            depth: latest.depth + 1,
            patch: &write.skeleton,
            nested: nested.to_string(),
        };
        let body = Body::new(shape.scalars)?;
        let is_erased = is_erased || write.is_masked;
        let columns =
            Columns { body: &body, content, is_erased, mark: None, content_hash: None, chain: Some(chain) };
        let seq = self.insert(&write.id, &known, valid_time, &columns)?;
        if let Some(payload) = head {
            self.heads.keep(&write.id, seq.unsigned_abs(), payload);
        }
        Ok(true)
    }

    fn known(&self, id: &ObjectId) -> Result<Option<StoredObject>> {
        let mut find =
            self.connection.prepare_cached("SELECT object, type, source FROM objects WHERE object_id = ?")?;
        let known = find.query_row([id.as_str()], |row| {
            Ok(StoredObject { object: row.get(0)?, object_type: row.get(1)?, source: row.get(2)? })
        });
        Ok(known.optional()?)
    }

    fn insert(
        &mut self,
        id: &ObjectId,
        known: &StoredObject,
        valid_time: Timestamp,
        columns: &Columns<'_>,
    ) -> Result<i64> {
        if !self.begun {
            self.connection
                .prepare_cached("INSERT INTO txs (tx_id, tx_time) VALUES (?, ?)")?
                .execute(params![self.tx_id, self.tx_time.millis()])?;
            self.begun = true;
        }
        let seq: i64 = self
            .connection
            .prepare_cached("SELECT coalesce(max(seq), 0) + 1 FROM versions")?
            .query_row([], |row| row.get(0))?;
        let chain = columns.chain.as_ref();
        let skeleton = &columns.body.skeleton;
        let texts = skeleton.texts.iter().chain(chain.into_iter().flat_map(|chain| &chain.patch.texts));
        let texts = texts.map(|text| index::stored(self.connection, text)).collect::<Result<Vec<_>>>()?;
        let is_erased = columns.is_erased || texts.iter().any(|(_, is_erased)| *is_erased);
        let erased = is_erased.then(|| erase::again(self.tx_time)).transpose()?;
        let erased = columns.mark.map(str::to_owned).or(erased);
        let row = Row {
            seq,
            tx_id: self.tx_id,
            tx_time: self.tx_time.millis(),
            valid_from: valid_time.millis(),
            object_id: id.as_str(),
            object_type: &known.object_type,
            source: known.source.as_deref(),
            body: Cow::Borrowed(&skeleton.json),
            text_hash: columns.content.as_ref().map(|(_, key)| key.as_bytes().as_slice()),
            content_hash: columns.content_hash.as_ref().map(|h| h.as_bytes().as_slice()),
            source_hash: columns.body.source_hash.as_ref().map(|h| h.as_bytes().as_slice()),
            base: chain.map(|c| c.base),
            depth: chain.map(|c| c.depth),
            patch: chain.map(|c| Cow::Borrowed(&*c.patch.json)),
            nested: chain.map(|c| Cow::Borrowed(&*c.nested)),
            texts: texts.into_iter().map(|(content, _)| content).collect(),
            erased: erased.as_deref(),
        };
        let row_hash = row.hash(&skeleton.digest, chain.map(|c| &c.patch.digest));
        let parts = RowParts { body: &row.body, patch: row.patch.as_deref(), nested: row.nested.as_deref() };
        let packed = pack::pack(parts, &row.texts)?;
        let seen =
            packed.is_some().then(|| if chain.is_some() { "{}".into() } else { pack::seen(&row.body) });
        let sql = "INSERT INTO versions (seq, tx_id, object, valid_from, ahead, body, content, content_hash, \
                   source_hash, base, depth, patch, nested, row_hash, text_hash, packed, erased) \
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let in_columns = packed.is_none();
        self.connection.prepare_cached(sql)?.execute(params![
            row.seq,
            row.tx_id,
            known.object,
            row.valid_from,
            row.valid_from > row.tx_time,
            seen.as_deref().unwrap_or(&row.body),
            columns.content.map(|(content, _)| content),
            row.content_hash,
            row.source_hash,
            row.base,
            row.depth,
            row.patch.as_deref().filter(|_| in_columns),
            row.nested.as_deref().filter(|_| in_columns),
            row_hash.as_bytes(),
            row.text_hash,
            packed,
            row.erased,
        ])?;
        Ok(seq)
    }
}
