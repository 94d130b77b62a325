//! Running a prepared transaction inside a write transaction of SQLite.

use std::borrow::Cow;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::error::Result;
use super::form::NewText;
use super::pack::Skeleton;
use super::prepare::{PatchWrite, Prepared, PreparedWrite, PutWrite, body_of};
use super::read;
use super::row::{Row, TextColumn};
use super::{brought, erase, index, past};
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
    pub(crate) fn read(connection: &Connection) -> Result<Self> {
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
    let is_after_latest = work.is_after_latest;
    let mut transaction =
        Open { connection, heads, tx_id: newest.tx_id + 1, tx_time, is_after_latest, begun: false };
    let mut written = Vec::with_capacity(work.writes.len());
    for write in &work.writes {
        let masked = if gone.is_empty() { None } else { write.masked(gone)? };
        written.push(match masked.as_ref().unwrap_or(write) {
            PreparedWrite::Put(put) => transaction.put(put)?,
            PreparedWrite::Patch(patch) => transaction.patch(patch)?,
        });
    }
    if transaction.begun {
        if work.is_brought {
            brought::note(connection, transaction.tx_id)?;
        }
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
    is_after_latest: bool,
    begun: bool,
}

/// The stored envelope of an object, as far as it is known.
struct StoredObject {
    object: i64,
    object_type: String,
    source: Option<String>,
}

impl Open<'_> {
    fn put(&mut self, put: &PutWrite) -> Result<bool> {
        let stored = self.known(&put.id)?;
        let wanted = if stored.is_some() { self.dated(&put.id, put.valid_time)? } else { put.valid_time };
        let valid_time = wanted.unwrap_or(self.tx_time);
        let known = match stored {
            Some(known) => {
                if known.object_type != put.object_type.as_str() || known.source != put.source {
                    return Err(envelope_differs(&put.id).into());
                }
                let at = AsOf { valid_time: Some(valid_time), known: None };
                let stored = read::hashes(self.connection, &put.id, at)?;
                if stored == Some((put.content_hash, put.source_hash)) {
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
        let is_erased = put.is_masked || stored.is_some_and(|(_, is_erased)| is_erased);
        let mut row = self.next_row(&put.id, &known, valid_time, &put.body, None, is_erased)?;
        row.content = stored.map(|(content, _)| content);
        row.text_hash = put.text.as_ref().map(|text| text.key.as_bytes().as_slice());
        row.content_hash = Some(put.content_hash.as_bytes());
        row.source_hash = put.source_hash.as_ref().map(|hash| hash.as_bytes().as_slice());
        if let Some(mark) = &put.erased {
            row.erased = Some(Cow::Borrowed(mark));
        }
        self.insert(known.object, &row, &put.body.digest, None)?;
        Ok(true)
    }

    fn patch(&mut self, write: &PatchWrite) -> Result<bool> {
        let known = self.known(&write.id)?.ok_or_else(|| unknown(&write.id))?;
        let latest = match write.of {
            Some(tx) => past::form_of(self.connection, &write.id, tx)?,
            None => past::latest_form(self.connection, &write.id)?.ok_or_else(|| unknown(&write.id))?,
        };
        // Elsewhere, a patch has the time of the version that it changes, if that is later.
        let wanted =
            if self.is_after_latest { self.dated(&write.id, write.valid_time)? } else { write.valid_time };
        let valid_time = patch_time(wanted, self.tx_time, latest.valid_time)?;
        let mut shape = latest.shape;
        let mut head = match write.of {
            Some(_) => None,
            None => self.heads.take(&write.id, latest.seq.unsigned_abs()),
        };
        let fit = shape.apply(&write.operations)?;
        if fit == PatchFit::Deep && head.is_none() {
            let text = TextColumn::Fetched;
            let before = read::at_place(self.connection, &write.id, latest.seq, text, |row, sql| {
                read::version(self.connection, row, sql)
            })?;
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
        let (body, source_hash) = body_of(shape.scalars)?;
        let is_erased = is_erased || write.is_masked;
        let patch = &write.skeleton;
        let mut row = self.next_row(&write.id, &known, valid_time, &body, Some(patch), is_erased)?;
        row.content = content.map(|(content, _)| content);
        row.text_hash = content.as_ref().map(|(_, key)| key.as_bytes().as_slice());
        row.source_hash = source_hash.as_ref().map(|hash| hash.as_bytes().as_slice());
        row.base = Some(latest.base);
        row.depth = Some(latest.depth + 1);
        row.nested = Some(Cow::Owned(nested.to_string()));
        self.insert(known.object, &row, &body.digest, Some(&patch.digest))?;
        let seq = row.seq;
        if let Some(payload) = head.filter(|_| write.of.is_none()) {
            self.heads.keep(&write.id, seq.unsigned_abs(), payload);
        }
        Ok(true)
    }

    /// The valid time of a write: the one that it names, or that of a version that is dated ahead of this transaction; in a journal the
    /// next one after it. `None`: the transaction's own.
    fn dated(&self, id: &ObjectId, wanted: Option<Timestamp>) -> Result<Option<Timestamp>> {
        if wanted.is_some() {
            return Ok(wanted);
        }
        let latest = read::latest_place(self.connection, id)?.filter(|(_, time)| *time >= self.tx_time);
        Ok(latest.map(|(tx_id, time)| {
            let is_next = self.is_after_latest && tx_id != self.tx_id;
            Timestamp::from_millis(time.millis() + i64::from(is_next))
        }))
    }

    fn known(&self, id: &ObjectId) -> Result<Option<StoredObject>> {
        let mut find =
            self.connection.prepare_cached("SELECT object, type, source FROM objects WHERE object_id = ?")?;
        let known = find.query_row([id.as_str()], |row| {
            Ok(StoredObject { object: row.get(0)?, object_type: row.get(1)?, source: row.get(2)? })
        });
        Ok(known.optional()?)
    }

    /// The row of the next version: its number, its times, and its payload, whose long strings are stored. Whole documents and
    /// patches then set the columns of their own. `is_erased`: something in it was erased before it was written.
    fn next_row<'a>(
        &mut self,
        id: &'a ObjectId,
        known: &'a StoredObject,
        valid_time: Timestamp,
        body: &'a Skeleton,
        patch: Option<&'a Skeleton>,
        is_erased: bool,
    ) -> Result<Row<'a>> {
        if !self.begun {
            self.connection
                .prepare_cached("INSERT INTO txs (tx_id, tx_time) VALUES (?, ?)")?
                .execute(params![self.tx_id, self.tx_time.millis()])?;
            self.begun = true;
        }
        let seq = self
            .connection
            .prepare_cached("SELECT coalesce(max(seq), 0) + 1 FROM versions")?
            .query_row([], |row| row.get(0))?;
        let texts = body.texts.iter().chain(patch.into_iter().flat_map(|patch| &patch.texts));
        let texts = texts.map(|text| index::stored(self.connection, text)).collect::<Result<Vec<_>>>()?;
        let is_erased = is_erased || texts.iter().any(|(_, is_erased)| *is_erased);
        let erased = is_erased.then(|| erase::again(self.tx_time)).transpose()?;
        Ok(Row {
            seq,
            tx_id: self.tx_id,
            tx_time: self.tx_time.millis(),
            valid_from: valid_time.millis(),
            object_id: id.as_str(),
            object_type: &known.object_type,
            source: known.source.as_deref(),
            body: Cow::Borrowed(&body.json),
            content: None,
            text_hash: None,
            content_hash: None,
            source_hash: None,
            base: None,
            depth: None,
            patch: patch.map(|patch| Cow::Borrowed(&*patch.json)),
            nested: None,
            texts: texts.into_iter().map(|(content, _)| content).collect(),
            erased: erased.map(Cow::Owned),
        })
    }

    /// Writes a row. The digests are those of its body and patch.
    fn insert(&self, object: i64, row: &Row<'_>, body: &Digest, patch: Option<&Digest>) -> Result<()> {
        let row_hash = row.hash(body, patch);
        let (packed, body) = row.packed()?;
        let in_columns = packed.is_none();
        let sql = "INSERT INTO versions (seq, tx_id, object, valid_from, ahead, body, content, content_hash, \
                   source_hash, base, depth, patch, nested, row_hash, text_hash, packed, erased) \
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        self.connection.prepare_cached(sql)?.execute(params![
            row.seq,
            row.tx_id,
            object,
            row.valid_from,
            row.valid_from > row.tx_time,
            body,
            row.content,
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
        Ok(())
    }
}
