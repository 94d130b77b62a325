//! Reading versions through one connection.

use std::sync::LazyLock;

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::object::Document;
use context_model::patch::{self, Patch};
use context_model::time::{Timestamp, TxId};
use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::error::Result;
use super::form::{self, StoredText};
use super::row::{LENGTH, Row, TextColumn, content, select};
use context_store::{AsOf, Change, Entry, Erased, Filter, KnownAt, Outline, StoreError, Version};

/// The order in which the first row is the version that is valid.
const NEWEST_FIRST: &str = "ORDER BY v.valid_from DESC, v.tx_id DESC, v.seq DESC LIMIT 1";

static AT_VALID_TIME: LazyLock<[String; 2]> = LazyLock::new(|| {
    let rest = format!("WHERE o.object_id = ? AND v.valid_from <= ? {NEWEST_FIRST}");
    [TextColumn::Left, TextColumn::Fetched].map(|text| select(text, &rest))
});
static AT_PLACE: LazyLock<[String; 2]> =
    LazyLock::new(|| [TextColumn::Left, TextColumn::Fetched].map(|text| select(text, "WHERE v.seq = ?")));
static CHAIN: LazyLock<String> = LazyLock::new(|| {
    let rest =
        "WHERE v.object = (SELECT object FROM objects WHERE object_id = ?) AND v.valid_from BETWEEN ? AND ?
           AND v.base = ? AND v.seq <= ?
         ORDER BY v.valid_from, v.tx_id, v.seq";
    select(TextColumn::Left, rest)
});
static LATEST_TX: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT v.tx_id, v.valid_from FROM versions v JOIN objects o USING (object) WHERE o.object_id = ? {NEWEST_FIRST}"
    )
});

/// The version of an object at a point of the two times.
pub(super) fn get(connection: &Connection, id: &ObjectId, at: AsOf) -> Result<Option<Version>> {
    at_point(connection, id, at, TextColumn::Fetched, |row, sql| version(connection, row, sql))
}

/// The result of a read that must be fast.
pub(super) enum Quick {
    /// The version; `None` if there is none.
    Done(Option<Box<Version>>),
    /// A version that takes longer: a long text, or a long chain of patches.
    Long,
}

/// As [`get`], but only if it takes microseconds.
pub(super) fn get_quick(connection: &Connection, id: &ObjectId, at: AsOf) -> Result<Quick> {
    const BYTES: i64 = 64 << 10;
    const PATCHES: i64 = 16;
    let found = at_point(connection, id, at, TextColumn::Fetched, |row, sql| {
        let bytes =
            sql.get::<_, Option<i64>>(LENGTH)?.unwrap_or(0) + i64::try_from(row.body.len()).unwrap_or(BYTES);
        if bytes >= BYTES || row.depth.is_some_and(|depth| depth > PATCHES) {
            return Ok(None);
        }
        version(connection, row, sql).map(Some)
    })?;
    Ok(match found {
        None => Quick::Done(None),
        Some(Some(version)) => Quick::Done(Some(Box::new(version))),
        Some(None) => Quick::Long,
    })
}

/// The latest versions of objects without their contents, all from one moment.
pub(super) fn outlines(connection: &Connection, ids: &[ObjectId]) -> Result<Vec<Option<Outline>>> {
    let moment = connection.unchecked_transaction()?;
    ids.iter().map(|id| outline(&moment, id)).collect()
}

/// A value of the `local` table.
pub(super) fn local(connection: &Connection, name: &str) -> Result<Option<String>> {
    let mut find = connection.prepare_cached("SELECT value FROM local WHERE name = ?")?;
    Ok(find.query_row([name], |row| row.get(0)).optional()?)
}

/// An object's latest version without its content.
fn outline(connection: &Connection, id: &ObjectId) -> Result<Option<Outline>> {
    at_point(connection, id, AsOf::default(), TextColumn::Left, |row, _| {
        let mut payload = row.fields(connection)?;
        payload.remove("content");
        let has_text = match row.content.filter(|_| row.erased.is_some()) {
            Some(content) => form::text_of(connection, content)? != StoredText::Erased,
            None => row.text_hash.is_some(),
        };
        if let Some(hash) = row.digest(row.content_hash)? {
            payload.insert("content_hash".into(), hash.to_string().into());
        }
        Ok(Outline {
            id: row.id(),
            object_type: row.object_type()?,
            source: row.source()?,
            payload,
            is_null: !has_text,
            tx_id: row.tx(),
            valid_time: row.times().1,
        })
    })
}

/// All versions of an object, oldest first.
pub(super) fn history(connection: &Connection, id: &ObjectId) -> Result<Vec<Version>> {
    let mut versions: Vec<Version> = Vec::new();
    let mut places = std::collections::HashMap::new();
    each(connection, id, |row, text| {
        // A patch changes the version that was the latest at the time: the last of its chain.
        let (document, before) = match (row.base, row.patch(connection)?) {
            (Some(base), Some(patch)) => {
                let before = places.get(&base).map(|place: &usize| &versions[*place]);
                let before = before.ok_or_else(|| row.damaged())?;
                (patch::apply(before.document.clone(), [&patch])?, before.erased.clone())
            }
            _ => (row.document(connection, text)?, None),
        };
        let erased = row.erased()?.or(before);
        places.insert(row.base.unwrap_or(row.seq), versions.len());
        let (tx_time, valid_time) = row.times();
        versions.push(Version { document, tx_id: row.tx(), tx_time, valid_time, erased });
        Ok(())
    })?;
    Ok(versions)
}

/// The versions of an object as they were written, oldest first.
pub(super) fn journal(connection: &Connection, id: &ObjectId) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    // The chain of the version before, and its place in it.
    let mut last = None;
    each(connection, id, |row, text| {
        let place = (row.base.unwrap_or(row.seq), row.depth.unwrap_or(0));
        let before = last.replace(place);
        let follows = before.is_some_and(|(chain, depth)| (chain, depth + 1) == place);
        let (change, erased) = match (row.base, row.patch(connection)?) {
            (Some(_), Some(patch)) if follows => (Change::Patch(patch), row.erased()?),
            // A version of another chain, which arrived later, lies between it and its base.
            (Some(base), Some(_)) => {
                let (document, erased) = materialise(connection, base, &row)?;
                (Change::Document(document), erased)
            }
            _ => (Change::Document(row.document(connection, text)?), row.erased()?),
        };
        let (tx_time, valid_time) = row.times();
        entries.push(Entry { change, tx_id: row.tx(), tx_time, valid_time, erased });
        Ok(())
    })?;
    Ok(entries)
}

/// True if an object has versions that are stored as patches.
pub(super) fn is_growing(connection: &Connection, id: &ObjectId) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM versions v JOIN objects o USING (object)
               WHERE o.object_id = ? AND v.base IS NOT NULL)";
    Ok(connection.prepare_cached(sql)?.query_row([id.as_str()], |row| row.get(0))?)
}

/// The objects whose latest version matches.
pub(super) fn query(connection: &Connection, filter: &Filter) -> Result<Vec<ObjectId>> {
    let sql = "SELECT o.object_id FROM objects o
         WHERE (:type IS NULL OR o.type = :type)
           AND (:filesystem IS NULL OR (o.source ->> '$.type' = 'filesystem' AND o.filesystem_id = :filesystem))
           AND (:prefix IS NULL OR (o.source ->> '$.type' = 'filesystem' AND (o.path = :prefix
                OR substr(o.path, 1, length(:prefix) + 1) = :prefix || '/')))
           AND (:since IS NULL OR :since <= (SELECT t.tx_time FROM versions v JOIN txs t USING (tx_id)
                WHERE v.object = o.object ORDER BY v.valid_from DESC, v.tx_id DESC, v.seq DESC LIMIT 1))
         ORDER BY o.object";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(
        named_params! {
            ":type": filter.object_type.map(|t| t.as_str()),
            ":filesystem": filter.filesystem_id,
            ":prefix": filter.path_prefix.as_deref().map(|p| p.strip_suffix('/').unwrap_or(p)),
            ":since": filter.since.map(Timestamp::millis),
        },
        |row| row.get::<_, String>(0),
    )?;
    rows.map(|id| Ok(ObjectId::new(id?))).collect()
}

/// The transaction of an object's latest version.
pub(super) fn latest_tx_of(connection: &Connection, id: &ObjectId) -> Result<Option<TxId>> {
    Ok(latest_place(connection, id)?.map(|(tx, _)| TxId(tx.unsigned_abs())))
}

/// The transaction and the valid time of an object's latest version.
pub(super) fn latest_place(connection: &Connection, id: &ObjectId) -> Result<Option<(i64, Timestamp)>> {
    let mut find = connection.prepare_cached(&LATEST_TX)?;
    let place = find.query_row([id.as_str()], |row| Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?))));
    Ok(place.optional()?)
}

/// The content hash and source hash of the version at a point of the two times.
pub(super) fn hashes(
    connection: &Connection,
    id: &ObjectId,
    at: AsOf,
) -> Result<Option<(Digest, Option<Digest>)>> {
    let stored = at_point(connection, id, at, TextColumn::Left, |row, _| {
        Ok((row.digest(row.content_hash)?, row.digest(row.source_hash)?))
    })?;
    match stored {
        None => Ok(None),
        Some((Some(content), source)) => Ok(Some((content, source))),
        // A patch has no content hash, so the document must be assembled.
        Some((None, source)) => Ok(get(connection, id, at)?.map(|v| (v.document.content_hash(), source))),
    }
}

/// Finds the row at a point of the two times and reads it.
pub(super) fn at_point<T>(
    connection: &Connection,
    id: &ObjectId,
    at: AsOf,
    text: TextColumn,
    then: impl FnOnce(Row<'_>, &rusqlite::Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let valid = at.valid_time.map_or(i64::MAX, Timestamp::millis);
    if let Some(known) = at.known {
        let Some(seq) = locate(connection, id, valid, known)? else { return Ok(None) };
        return at_place(connection, id, seq, text, then);
    }
    let mut statement = connection.prepare_cached(&AT_VALID_TIME[text as usize])?;
    one(connection, id, statement.query(params![id.as_str(), valid])?, then)
}

/// Reads the row at a place in the history.
pub(super) fn at_place<T>(
    connection: &Connection,
    id: &ObjectId,
    seq: i64,
    text: TextColumn,
    then: impl FnOnce(Row<'_>, &rusqlite::Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let mut statement = connection.prepare_cached(&AT_PLACE[text as usize])?;
    one(connection, id, statement.query([seq])?, then)
}

/// Reads the first of these rows, which must be one of this object.
fn one<T>(
    connection: &Connection,
    id: &ObjectId,
    mut rows: rusqlite::Rows<'_>,
    then: impl FnOnce(Row<'_>, &rusqlite::Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let Some(sql) = rows.next()? else { return Ok(None) };
    let row = Row::read(connection, sql)?;
    if row.object_id != id.as_str() {
        return Err(row.damaged());
    }
    then(row, sql).map(Some)
}

/// The version at a point of the two times, with a bound on the store's knowledge.
///
/// Most versions are valid from their transaction on. So those after the bound are at the end of the index, beyond the
/// bound's time, and are never visited. The few that were dated ahead have an index of their own.
fn locate(connection: &Connection, id: &ObjectId, valid: i64, known: KnownAt) -> Result<Option<i64>> {
    let Some((tx, time)) = resolve(connection, known)? else { return Ok(None) };
    let find = |index: &str, ahead: &str, valid: i64| {
        let sql = format!(
            "SELECT v.valid_from, v.tx_id, v.seq FROM versions v INDEXED BY {index}
             WHERE v.object = (SELECT object FROM objects WHERE object_id = ?) {ahead}
               AND v.valid_from <= ? AND v.tx_id <= ? {NEWEST_FIRST}"
        );
        connection
            .prepare_cached(&sql)?
            .query_row(params![id.as_str(), valid, tx], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            })
            .optional()
    };
    let usual = find("versions_by_object", "", valid.min(time))?;
    let ahead = find("versions_ahead", "AND v.ahead = 1", valid)?;
    Ok(usual.max(ahead).map(|(_, _, seq)| seq))
}

/// The newest transaction within a bound, and its time.
fn resolve(connection: &Connection, known: KnownAt) -> Result<Option<(i64, i64)>> {
    let last = |tx: i64| -> Result<Option<(i64, i64)>> {
        let sql = "SELECT tx_id, tx_time FROM txs WHERE tx_id <= ? ORDER BY tx_id DESC LIMIT 1";
        let found = connection.prepare_cached(sql)?.query_row([tx], |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(found.optional()?)
    };
    match known {
        KnownAt::Tx(tx) => last(i64::try_from(tx.0).unwrap_or(i64::MAX)),
        KnownAt::Time(time) => {
            // Times increase with the numbers, so a binary search needs no index of times.
            let (mut low, mut high) = (0, last(i64::MAX)?.map_or(0, |(tx, _)| tx));
            while low < high {
                let middle = low + (high - low + 1) / 2;
                match last(middle)? {
                    Some((tx, t)) if t > time.millis() => high = tx.min(middle) - 1,
                    _ => low = middle,
                }
            }
            last(low)
        }
    }
}

/// Calls back with each row of an object and its text, oldest first.
fn each(
    connection: &Connection,
    id: &ObjectId,
    mut then: impl FnMut(Row<'_>, Option<StoredText>) -> Result<()>,
) -> Result<()> {
    // The row numbers are sorted and not the rows, which may be large.
    let sql = "SELECT v.seq FROM versions v JOIN objects o USING (object) WHERE o.object_id = ?
         ORDER BY v.valid_from, v.tx_id, v.seq";
    let mut places = connection.prepare_cached(sql)?;
    let places: Vec<i64> =
        places.query_map([id.as_str()], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut statement = connection.prepare_cached(&AT_PLACE[TextColumn::Fetched as usize])?;
    for place in places {
        let mut rows = statement.query([place])?;
        let missing = || StoreError::Corrupt(format!("a version of object {:?} is missing", id.as_str()));
        let sql = rows.next()?.ok_or_else(missing)?;
        let row = Row::read(connection, sql)?;
        if row.object_id != id.as_str() {
            return Err(row.damaged());
        }
        then(row, content(connection, sql)?)?;
    }
    Ok(())
}

/// The version of a row that was fetched with its text.
pub(super) fn version(connection: &Connection, row: Row<'_>, sql: &rusqlite::Row<'_>) -> Result<Version> {
    let (document, erased) = match row.base {
        None => (row.document(connection, content(connection, sql)?)?, row.erased()?),
        Some(base) => materialise(connection, base, &row)?,
    };
    let (tx_time, valid_time) = row.times();
    Ok(Version { document, tx_id: row.tx(), tx_time, valid_time, erased })
}

/// Assembles a patched document from the base and the patches of its chain up to this one. Text erased in one of them is
/// erased in the result.
fn materialise(connection: &Connection, base: i64, last: &Row<'_>) -> Result<(Document, Option<Erased>)> {
    let mut statement = connection.prepare_cached(&AT_PLACE[TextColumn::Fetched as usize])?;
    let mut rows = statement.query([base])?;
    let first = rows.next()?.ok_or_else(|| last.damaged())?;
    let row = Row::read(connection, first)?;
    let document = row.document(connection, content(connection, first)?)?;
    let (patches, erased) = chain(connection, base, row.valid_from, last)?;
    Ok((patch::apply(document, &patches)?, erased.or(row.erased()?)))
}

/// The patches of a chain up to that of this row, and the chain's newest mark of erased text.
fn chain(
    connection: &Connection,
    base: i64,
    from: i64,
    last: &Row<'_>,
) -> Result<(Vec<Patch>, Option<Erased>)> {
    let mut statement = connection.prepare_cached(&CHAIN)?;
    let mut rows = statement.query(params![last.object_id, from, last.valid_from, base, last.seq])?;
    let (mut patches, mut erased) = (Vec::new(), None);
    while let Some(sql) = rows.next()? {
        let row = Row::read(connection, sql)?;
        patches.push(row.patch(connection)?.ok_or_else(|| row.damaged())?);
        erased = row.erased()?.or(erased);
        if row.depth != i64::try_from(patches.len()).ok() {
            return Err(row.damaged());
        }
    }
    if last.depth == i64::try_from(patches.len()).ok() { Ok((patches, erased)) } else { Err(last.damaged()) }
}
