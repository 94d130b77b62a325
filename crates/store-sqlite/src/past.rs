//! The forms of versions that patches change.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::{Timestamp, TxId};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::error::Result;
use super::read;
use super::row::{Row, TextColumn};
use context_store::backend::shape::PayloadShape;
use context_store::{AsOf, StoreError};

/// The facts that a patch needs about the version that it changes.
pub(super) struct LatestForm {
    pub seq: i64,
    pub shape: PayloadShape,
    pub base: i64,
    pub depth: i64,
    pub content: Option<(i64, Digest)>,
    pub valid_time: Timestamp,
}

/// The form of an object's latest version.
pub(super) fn latest_form(connection: &Connection, id: &ObjectId) -> Result<Option<LatestForm>> {
    read::at_point(connection, id, AsOf::default(), TextColumn::Left, |row, _| {
        LatestForm::of(connection, &row)
    })
}

/// The form of the version at a place in the history.
pub(super) fn form_at(connection: &Connection, id: &ObjectId, seq: i64) -> Result<Option<LatestForm>> {
    read::at_place(connection, id, seq, TextColumn::Left, |row, _| LatestForm::of(connection, &row))
}

impl LatestForm {
    fn of(connection: &Connection, row: &Row<'_>) -> Result<Self> {
        let mut shape = PayloadShape::of(&row.fields(connection)?);
        if let Some(nested) = row.nested.as_deref() {
            shape.nested = serde_json::from_str(nested).map_err(|_| row.damaged())?;
        }
        shape.has_text = row.text_hash.is_some();
        let key = row.digest(row.text_hash)?;
        Ok(Self {
            seq: row.seq,
            shape,
            base: row.base.unwrap_or(row.seq),
            depth: row.depth.unwrap_or(0),
            content: row.content.zip(key),
            valid_time: row.times().1,
        })
    }
}

/// The form of the version that a transaction wrote, if a patch of it can follow.
///
/// # Errors
/// `CONFLICT` if there is no such version, or if it is not the last of its chain.
pub(super) fn form_of(connection: &Connection, id: &ObjectId, tx: TxId) -> Result<LatestForm> {
    let conflict = || StoreError::Conflict(id.clone());
    let sql = "SELECT v.seq FROM versions v JOIN objects o USING (object)
               WHERE o.object_id = ? AND v.tx_id = ? ORDER BY v.valid_from DESC, v.seq DESC LIMIT 1";
    let tx = i64::try_from(tx.0).unwrap_or(i64::MAX);
    let seq = connection.prepare_cached(sql)?.query_row(params![id.as_str(), tx], |row| row.get(0));
    let seq: i64 = seq.optional()?.ok_or_else(conflict)?;
    let form = form_at(connection, id, seq)?.ok_or_else(conflict)?;
    let sql = "SELECT EXISTS (SELECT 1 FROM versions v JOIN objects o USING (object)
               WHERE o.object_id = ? AND v.base = ? AND v.seq > ?)";
    let is_followed: bool =
        connection.prepare_cached(sql)?.query_row(params![id.as_str(), form.base, seq], |row| row.get(0))?;
    if is_followed { Err(conflict().into()) } else { Ok(form) }
}
