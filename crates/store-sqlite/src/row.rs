//! One stored version: its columns, its check, and how it becomes a document again.

use std::borrow::Cow;

use context_model::hash::{Digest, Hasher};
use context_model::id::ObjectId;
use context_model::object::{Document, ObjectType};
use context_model::patch::Patch;
use context_model::source::Source;
use context_model::time::{Timestamp, TxId};
use context_store::{Erased, StoreError};
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Map, Value};

use super::columns::{blob, optional, text};
use super::error::{Result, Trouble};
use super::form::{self, StoredText};
use super::pack::{self, RowParts, Unpacked};

/// The fetched part of a row: with its text or without. The text may be long, and most queries don't need it.
#[derive(Clone, Copy, Debug)]
pub(super) enum TextColumn {
    Left,
    Fetched,
}

/// The index of the text's form in a statement of [`select`]: its codec, its bytes and its root.
pub(super) const TEXT: usize = 18;
pub(super) const LENGTH: usize = 21;
/// The index of the text's number.
const CONTENT: usize = 22;

/// A statement for a [`Row`]; `rest` is everything from `WHERE` on, with `v` for the versions and `o` for their objects.
pub(super) fn select(text: TextColumn, rest: &str) -> String {
    // The table of texts is not read for a row without text, because each of its pages has only a few texts.
    let (text, join) = match text {
        TextColumn::Fetched => ("c.codec, c.text, c.root, c.length", "LEFT JOIN contents c USING (content)"),
        TextColumn::Left => ("NULL, NULL, NULL, NULL", ""),
    };
    format!(
        "SELECT v.seq, v.tx_id, t.tx_time, v.valid_from, o.object_id, o.type, o.source, v.body,
                v.text_hash, v.content_hash, v.source_hash, v.base, v.depth, v.patch, v.nested, v.row_hash, v.packed, v.erased,
                {text}, v.content
         FROM versions v JOIN objects o USING (object) JOIN txs t USING (tx_id) {join} {rest}"
    )
}

/// A row of `versions` with its text and times.
#[derive(Clone, Debug)]
pub(super) struct Row<'a> {
    pub seq: i64,
    pub tx_id: i64,
    pub tx_time: i64,
    pub valid_from: i64,
    pub object_id: &'a str,
    pub object_type: &'a str,
    pub source: Option<&'a str>,
    /// The payload as far as the row has it, with holes in place of long strings, as in the patch.
    pub body: Cow<'a, str>,
    /// The number of its text.
    pub content: Option<i64>,
    pub text_hash: Option<&'a [u8]>,
    pub content_hash: Option<&'a [u8]>,
    pub source_hash: Option<&'a [u8]>,
    pub base: Option<i64>,
    pub depth: Option<i64>,
    pub patch: Option<Cow<'a, str>>,
    pub nested: Option<Cow<'a, str>>,
    /// The texts that belong in the holes, in order.
    pub texts: Vec<i64>,
    /// When and why its owner erased it.
    pub erased: Option<Cow<'a, str>>,
}

impl<'a> Row<'a> {
    /// Reads a row and checks it against its hash.
    ///
    /// # Errors
    /// `STORE_CORRUPT` if the two do not match.
    pub(crate) fn read(connection: &Connection, row: &'a rusqlite::Row<'_>) -> Result<Self> {
        let mut this = Self {
            seq: row.get(0)?,
            tx_id: row.get(1)?,
            tx_time: row.get(2)?,
            valid_from: row.get(3)?,
            object_id: text(row, 4)?,
            object_type: text(row, 5)?,
            source: optional(row, 6)?,
            body: Cow::Borrowed(text(row, 7)?),
            content: row.get(CONTENT)?,
            text_hash: blob(row, 8)?,
            content_hash: blob(row, 9)?,
            source_hash: blob(row, 10)?,
            base: row.get(11)?,
            depth: row.get(12)?,
            patch: optional(row, 13)?.map(Cow::Borrowed),
            nested: optional(row, 14)?.map(Cow::Borrowed),
            texts: Vec::new(),
            erased: optional(row, 17)?.map(Cow::Borrowed),
        };
        if let Some(packed) = blob(row, 16)? {
            let unpacked = Unpacked::new(packed).ok_or_else(|| this.damaged())?;
            let RowParts { body, patch, nested } = unpacked.parts();
            let owned = |part: &str| Cow::Owned(part.to_owned());
            (this.body, this.patch, this.nested) = (owned(body), patch.map(owned), nested.map(owned));
            this.texts = unpacked.texts;
        }
        let stored = blob(row, 15)?;
        let (body, patch) = this.digests(connection)?;
        if stored == Some(this.hash(&body, patch.as_ref()).as_bytes().as_slice()) {
            Ok(this)
        } else {
            Err(this.damaged())
        }
    }

    /// The digests of body and patch, and of the texts that belong in them.
    pub(crate) fn digests(&self, connection: &Connection) -> Result<(Digest, Option<Digest>)> {
        let mut keys = Vec::with_capacity(self.texts.len());
        for content in &self.texts {
            let mut find = connection.prepare_cached("SELECT sha256 FROM contents WHERE content = ?")?;
            let key = find.query_row([content], |row| row.get::<_, Vec<u8>>(0)).optional()?;
            keys.push(key.and_then(|key| Digest::from_bytes(&key)).ok_or_else(|| self.damaged())?);
        }
        let border = pack::holes(&self.body).min(keys.len());
        let body = pack::digest(&self.body, keys.drain(..border));
        Ok((body, self.patch.as_deref().map(|patch| pack::digest(patch, keys))))
    }

    /// The hash over the row. The long columns are passed as digests, so that they are hashed outside of locks.
    pub(crate) fn hash(&self, body: &Digest, patch: Option<&Digest>) -> Digest {
        let mut bytes = Vec::with_capacity(512);
        for number in [Some(self.seq), Some(self.tx_id), Some(self.tx_time), Some(self.valid_from)]
            .into_iter()
            .chain([self.base, self.depth])
        {
            bytes.extend(number.map_or([0xff; 8], i64::to_le_bytes));
        }
        for field in [
            Some(self.object_id.as_bytes()),
            Some(self.object_type.as_bytes()),
            self.source.map(str::as_bytes),
            Some(body.as_bytes()),
            self.text_hash,
            self.content_hash,
            self.source_hash,
            patch.map(|digest| digest.as_bytes().as_slice()),
            self.nested.as_deref().map(str::as_bytes),
        ] {
            let length = field.map_or(u64::MAX, |field| field.len() as u64);
            bytes.extend(length.to_le_bytes());
            bytes.extend(field.unwrap_or_default());
        }
        // Only an erased version has it.
        bytes.extend(self.erased.as_deref().map(str::as_bytes).unwrap_or_default());
        let mut hasher = Hasher::default();
        hasher.update(&bytes);
        hasher.finish()
    }

    /// The packed payload, `None` if it stays in plain columns; and the value of the column `body` then: all of it, or the
    /// part that stays readable beside the packed form.
    pub(crate) fn packed(&self) -> Result<(Option<Vec<u8>>, Cow<'_, str>)> {
        let (patch, nested) = (self.patch.as_deref(), self.nested.as_deref());
        let packed = pack::pack(RowParts { body: &self.body, patch, nested }, &self.texts)?;
        let body = match (&packed, patch) {
            (None, _) => Cow::Borrowed(&*self.body),
            (Some(_), None) => Cow::Owned(pack::seen(&self.body)),
            (Some(_), Some(_)) => Cow::Borrowed("{}"),
        };
        Ok((packed, body))
    }

    /// The document of a whole version, checked against its content hash. An erased one has null content and marks in place
    /// of its long strings; it keeps the hash from before.
    pub(crate) fn document(&self, connection: &Connection, text: Option<StoredText>) -> Result<Document> {
        let (mut payload, is_changed) = self.filled_fields(connection)?;
        let mut is_erased = is_changed || self.erased.is_some();
        match text {
            Some(StoredText::Text(text)) => drop(payload.insert("content".into(), text.into())),
            Some(StoredText::Erased) => {
                is_erased = true;
                payload.insert("content".into(), Value::Null);
            }
            None => {}
        }
        let source = self.source()?;
        let document =
            Document::new(self.id(), self.object_type()?, source, payload).map_err(|_| self.damaged())?;
        if is_erased || self.content_hash == Some(document.content_hash().as_bytes().as_slice()) {
            Ok(document)
        } else {
            Err(self.damaged())
        }
    }

    /// The digest in one of the row's columns.
    pub(crate) fn digest(&self, column: Option<&[u8]>) -> Result<Option<Digest>> {
        column.map(|bytes| Digest::from_bytes(bytes).ok_or_else(|| self.damaged())).transpose()
    }

    /// The payload as far as the row has it: without the content, and of a patch only the scalar fields.
    pub(crate) fn fields(&self, connection: &Connection) -> Result<Map<String, Value>> {
        Ok(self.filled_fields(connection)?.0)
    }

    /// The same, and whether something in it was erased.
    fn filled_fields(&self, connection: &Connection) -> Result<(Map<String, Value>, bool)> {
        let texts = &self.texts[..pack::holes(&self.body).min(self.texts.len())];
        let (body, is_erased) = pack::filled(connection, &self.body, texts)?;
        let mut fields: Map<String, Value> = serde_json::from_str(&body).map_err(|_| self.damaged())?;
        if let Some(hash) = self.digest(self.source_hash)? {
            fields.insert("source_hash".into(), hash.to_string().into());
        }
        Ok((fields, is_erased))
    }

    /// The patch of a version that was written as one.
    pub(crate) fn patch(&self, connection: &Connection) -> Result<Option<Patch>> {
        let Some(patch) = &self.patch else { return Ok(None) };
        let texts = &self.texts[pack::holes(&self.body).min(self.texts.len())..];
        let (patch, _) = pack::filled(connection, patch, texts)?;
        serde_json::from_str(&patch).map(Some).map_err(|_| self.damaged())
    }

    /// When and why the version was erased.
    pub(crate) fn erased(&self) -> Result<Option<Erased>> {
        self.erased.as_deref().map(serde_json::from_str).transpose().map_err(|_| self.damaged())
    }

    pub(crate) fn id(&self) -> ObjectId {
        ObjectId::new(self.object_id)
    }

    pub(crate) fn object_type(&self) -> Result<ObjectType> {
        self.object_type.parse().map_err(|_| self.damaged())
    }

    pub(crate) fn source(&self) -> Result<Option<Source>> {
        let parse = |text| serde_json::from_str(text).map_err(|_| self.damaged());
        self.source.map(parse).transpose()
    }

    pub(crate) fn tx(&self) -> TxId {
        TxId(self.tx_id.unsigned_abs())
    }

    pub(crate) fn times(&self) -> (Timestamp, Timestamp) {
        (Timestamp::from_millis(self.tx_time), Timestamp::from_millis(self.valid_from))
    }

    pub(crate) fn damaged(&self) -> Trouble {
        StoreError::Corrupt(format!("version {} of object {:?} fails its check", self.tx_id, self.object_id))
            .into()
    }
}

/// The text of a row of [`select`].
pub(super) fn content(connection: &Connection, row: &rusqlite::Row<'_>) -> Result<Option<StoredText>> {
    form::text_at(connection, row, TEXT)
}
