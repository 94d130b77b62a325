//! Removes sessions from the store, together with what only they have encountered. Objects written within the last day
//! stay, because an open session may be about to add them to its index. Erased texts keep their marks, so that they stay
//! erased.

use std::collections::{BTreeSet, HashMap, HashSet};

use context_model::id::{ObjectId, SessionId};
use context_model::object::ObjectType;
use context_model::time::Timestamp;
use rusqlite::Connection;
use serde_json::Value;

use super::columns::blob;
use super::error::Result;
use super::form::ERASED;
use super::{erase, pack, read};
use context_store::sessions::{Limits, Pruned};
use context_store::{AsOf, StoreError};

/// Milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Everything written less than this many milliseconds ago stays.
const YOUNG: i64 = DAY;

/// About how many bytes a version's row takes besides its payload.
const ROW_BYTES: u64 = 120;

/// The position of everything that stays.
const STAYS: usize = usize::MAX;

/// The name of the limits in the table `local`.
pub(super) const LIMITS: &str = "limits";

/// Prefix of the names in the table `local` that say when a session was opened.
const OPENED: &str = "note:opened:";

/// The sessions to remove.
pub(super) struct Which {
    /// Only these; any session if `None`.
    pub among: Option<HashSet<SessionId>>,
    /// Those that were neither written nor opened since this time.
    pub before: Option<Timestamp>,
    /// As many of the oldest ones as necessary to use no more bytes than this.
    pub max_bytes: Option<u64>,
}

/// The sessions that are removed, and the figures of the removal.
pub(super) struct Left {
    pub sessions: Vec<SessionId>,
    pub pruned: Pruned,
}

/// For each object, with which of the sessions it is removed, counted from 0: the last one that has encountered it.
pub(super) struct Weighed {
    objects: HashMap<i64, usize>,
    contents: HashMap<i64, usize>,
    /// Bytes of the file that removing each of the sessions frees.
    freed: Vec<u64>,
    /// Bytes of the file that are in use.
    used: u64,
}

/// Chooses the sessions to remove, the oldest first.
pub(super) fn choose(connection: &Connection, which: &Which, now: Timestamp) -> Result<(Left, Weighed)> {
    let is_among = |id: &SessionId| which.among.as_ref().is_none_or(|among| among.contains(id));
    let oldest: Vec<_> = ages(connection)?
        .into_iter()
        .filter(|(id, last)| is_among(id) && last.millis() <= now.millis() - YOUNG)
        .collect();
    let order: Vec<SessionId> = oldest.iter().map(|(id, _)| id.clone()).collect();
    let weighed = weigh(connection, &order, now)?;
    let is_old = |last: &Timestamp| which.before.is_some_and(|before| *last < before);
    let mut count = oldest.iter().take_while(|(_, last)| is_old(last)).count();
    if let Some(most) = which.max_bytes {
        let mut used = weighed.used;
        let enough = weighed.freed.iter().take_while(|freed| {
            let is_more = used > most;
            used = used.saturating_sub(**freed);
            is_more
        });
        count = count.max(enough.count());
    }
    let pruned = Pruned {
        objects: weighed.objects.values().filter(|place| **place < count).count() as u64,
        freed_bytes: weighed.freed.iter().take(count).sum(),
        used_bytes: weighed.used,
        ..Pruned::default()
    };
    Ok((Left { sessions: order.into_iter().take(count).collect(), pruned }, weighed))
}

/// The limits that were set.
pub(super) fn limits(connection: &Connection) -> Result<Limits> {
    let json = read::local(connection, LIMITS)?;
    let unreadable =
        |_| StoreError::Corrupt("the limits of the store can't be read; set them again".into()).into();
    json.map_or(Ok(Limits::default()), |json| serde_json::from_str(&json).map_err(unreadable))
}

/// The oldest session, if the limits that were set are exceeded.
pub(super) fn exceeding(connection: &Connection, now: Timestamp) -> Result<Option<Which>> {
    let limits = limits(connection)?;
    if limits == Limits::default() {
        return Ok(None);
    }
    let Some((oldest, last)) = ages(connection)?.into_iter().next() else { return Ok(None) };
    let age = (now.millis() - last.millis()) / DAY;
    let is_old = limits.max_days.is_some_and(|days| age > i64::from(days));
    let is_large = limits.max_bytes.map_or(Ok(false), |most| used(connection).map(|used| used > most))?;
    let which = Which {
        among: Some(HashSet::from([oldest])),
        before: Some(Timestamp::from_millis(i64::MAX)),
        max_bytes: None,
    };
    Ok((age >= 1 && (is_old || is_large)).then_some(which))
}

/// Bytes of the file that are in use.
fn used(connection: &Connection) -> Result<u64> {
    let pages = |name: &str| -> Result<u64> {
        Ok(connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0))?.unsigned_abs())
    };
    Ok((pages("page_count")? - pages("freelist_count")?) * pages("page_size")?)
}

/// When each session was last written or opened, the oldest first.
fn ages(connection: &Connection) -> Result<Vec<(SessionId, Timestamp)>> {
    let mut find = connection.prepare(
        "SELECT substr(o.object_id, 9), max(
           coalesce((SELECT max(t.tx_time) FROM versions v JOIN txs t USING (tx_id) WHERE v.object = o.object), 0),
           coalesce((SELECT max(t.tx_time) FROM objects c JOIN versions v ON v.object = c.object JOIN txs t USING (tx_id)
                      WHERE c.object_id = 'chat:' || substr(o.object_id, 9)), 0),
           coalesce((SELECT cast(l.value AS INTEGER) FROM local l WHERE l.name = ?1 || substr(o.object_id, 9)), 0)
         ) AS last FROM objects o WHERE o.type = ?2 AND o.object_id LIKE 'session:%' ORDER BY last, o.object",
    )?;
    let rows = find.query_map([OPENED, ObjectType::Session.as_str()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let named = rows.into_iter().filter_map(|(id, last)| Some((SessionId::new(id).ok()?, last)));
    Ok(named.map(|(id, last)| (id, Timestamp::from_millis(last))).collect())
}

/// Goes through the whole store: what would be removed if these sessions were removed one after the other.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown session, `STORE_CORRUPT`.
fn weigh(connection: &Connection, order: &[SessionId], now: Timestamp) -> Result<Weighed> {
    let objects = leaving(connection, order, now)?;
    let mut contents = HashMap::new();
    let mut freed = vec![0; order.len()];
    let mut all = 0;
    let mut find = connection.prepare(
        "SELECT object, content, packed, length(body) + coalesce(length(patch), 0) + coalesce(length(packed), 0)
         FROM versions",
    )?;
    let mut rows = find.query([])?;
    while let Some(sql) = rows.next()? {
        let position = objects.get(&sql.get(0)?).copied().unwrap_or(STAYS);
        let texts = blob(sql, 2)?.and_then(pack::texts_of);
        for content in texts.into_iter().flatten().chain(sql.get::<_, Option<i64>>(1)?) {
            let last = contents.entry(content).or_insert(position);
            *last = position.max(*last);
        }
        let bytes = sql.get::<_, i64>(3)?.unsigned_abs() + ROW_BYTES;
        all += bytes;
        if let Some(freed) = freed.get_mut(position) {
            *freed += bytes;
        }
    }
    let mut find = connection.prepare("SELECT content, codec, octet_length(text) FROM contents")?;
    let mut rows = find.query([])?;
    while let Some(sql) = rows.next()? {
        let (content, bytes) = (sql.get(0)?, sql.get::<_, i64>(2)?.unsigned_abs());
        all += bytes;
        if sql.get::<_, i64>(1)? == ERASED {
            contents.remove(&content);
        } else if let Some(freed) = contents.get(&content).and_then(|position| freed.get_mut(*position)) {
            *freed += bytes;
        }
    }
    contents.retain(|_, position| *position != STAYS);
    let used = used(connection)?;
    // The bytes of the index and of page headers are divided among all.
    let scale = |bytes: &u64| u64::try_from(u128::from(*bytes) * u128::from(used) / u128::from(all.max(1)));
    let freed = freed.iter().map(|bytes| scale(bytes).unwrap_or(used)).collect();
    Ok(Weighed { objects, contents, freed, used })
}

/// Removes the first of the weighed sessions from the store, within the current transaction. The connection must not check
/// foreign keys, and the search index must be up to date.
pub(super) fn prune(connection: &Connection, weighed: &Weighed, count: usize) -> Result<()> {
    let mut stay = connection.prepare(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name IN ('objects_stay', 'versions_stay', 'contents_stay')",
    )?;
    let triggers = stay.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let triggers = triggers.collect::<rusqlite::Result<Vec<_>>>()?;
    for (name, _) in &triggers {
        connection.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    let objects: BTreeSet<i64> = first(&weighed.objects, count);
    let contents: BTreeSet<i64> = first(&weighed.contents, count);
    for object in &objects {
        connection.prepare_cached("DELETE FROM versions WHERE object = ?")?.execute([object])?;
        connection.prepare_cached("DELETE FROM objects WHERE object = ?")?.execute([object])?;
    }
    // Texts that stay but are stored as differences from one of these are first stored whole.
    for content in &contents {
        erase::detach(connection, *content, &contents)?;
    }
    for content in &contents {
        connection.prepare_cached("DELETE FROM occurrences WHERE content = ?")?.execute([content])?;
        connection.prepare_cached("DELETE FROM contents WHERE content = ?")?.execute([content])?;
    }
    forget_occurrences(connection, &objects)?;
    // A freed number may be used again, and the new text must then be indexed.
    connection
        .execute("UPDATE indexed SET seq = min(seq, (SELECT coalesce(max(seq), 0) FROM versions))", [])?;
    for (_, sql) in &triggers {
        connection.execute_batch(sql)?;
    }
    connection.execute(
        "DELETE FROM local WHERE name LIKE ?1 || '%' AND NOT EXISTS
           (SELECT 1 FROM objects WHERE object_id = 'session:' || substr(name, length(?1) + 1))",
        [OPENED],
    )?;
    Ok(())
}

/// The occurrences of the texts that stay.
fn forget_occurrences(connection: &Connection, objects: &BTreeSet<i64>) -> Result<()> {
    connection.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS leaving (object INTEGER PRIMARY KEY); DELETE FROM leaving",
    )?;
    let mut insert = connection.prepare("INSERT INTO leaving VALUES (?)")?;
    for object in objects {
        insert.execute([object])?;
    }
    connection.execute("DELETE FROM occurrences WHERE object IN (SELECT object FROM leaving)", [])?;
    connection.execute_batch("DELETE FROM leaving")?;
    Ok(())
}

fn first(positions: &HashMap<i64, usize>, count: usize) -> BTreeSet<i64> {
    positions.iter().filter(|(_, position)| **position < count).map(|(number, _)| *number).collect()
}

/// The objects that are removed with these sessions.
fn leaving(connection: &Connection, order: &[SessionId], now: Timestamp) -> Result<HashMap<i64, usize>> {
    let young = young(connection, now)?;
    let number = |id: &ObjectId| erase::number_of(connection, id);
    let mut places = HashMap::new();
    let mut positions: HashMap<ObjectId, usize> = HashMap::new();
    for (place, session) in order.iter().enumerate() {
        let its = [ObjectId::session(session), ObjectId::chat(session), ObjectId::system_prompt(session)];
        let unknown = || StoreError::Invalid(format!("the store has no session {session}"));
        let this = number(&its[0])?.ok_or_else(unknown)?;
        let chat = number(&its[1])?;
        if young.contains(&this) || chat.is_some_and(|chat| young.contains(&chat)) {
            continue;
        }
        places.insert(its[0].clone(), place);
        positions.extend(its.map(|id| (id, place)));
    }
    let mut find = connection.prepare("SELECT object_id FROM objects WHERE type = ?")?;
    let all = find.query_map([ObjectType::Session.as_str()], |row| row.get::<_, String>(0))?;
    for id in all.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().map(ObjectId::new) {
        let place = places.get(&id).copied().unwrap_or(STAYS);
        let Some(version) = read::get(connection, &id, AsOf::default())? else { continue };
        let index = version.document.field("session_index").and_then(Value::as_array);
        for id in index.into_iter().flatten().filter_map(Value::as_str) {
            let last = positions.entry(ObjectId::new(id)).or_insert(place);
            *last = place.max(*last);
        }
    }
    let mut objects = HashMap::new();
    for (id, place) in positions.into_iter().filter(|(_, place)| *place != STAYS) {
        if let Some(object) = number(&id)?.filter(|object| !young.contains(object)) {
            objects.insert(object, place);
        }
    }
    Ok(objects)
}

/// The objects that were written recently.
fn young(connection: &Connection, now: Timestamp) -> Result<HashSet<i64>> {
    let mut find = connection
        .prepare("SELECT v.object, t.tx_time FROM versions v JOIN txs t USING (tx_id) ORDER BY v.seq DESC")?;
    let mut rows = find.query([])?;
    let mut young = HashSet::new();
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(1)? <= now.millis() - YOUNG {
            break;
        }
        young.insert(row.get(0)?);
    }
    Ok(young)
}
