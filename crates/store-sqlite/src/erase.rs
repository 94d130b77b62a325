//! Erasing for the owner of a store: texts, and the payloads that contain them. Envelopes, hashes and times stay.
//!
//! Erasing takes two steps. The first is one transaction: after it, no read, search or export returns the erased text. The
//! second rewrites the whole file and empties the log, because freed pages keep their old bytes. If the process ends in
//! between, the first step is done; the next call always repeats the second.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use context_model::id::{ObjectId, SessionId};
use context_model::object::ObjectType;
use context_model::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::columns::{blob, optional};
use super::error::Result;
use super::forgotten;
use super::form::{self, StoredText};
use super::index::{indexable, row_of};
use super::local::set_local;
use super::pack;
use super::read;
use super::row::{self, Row, select};
use context_store::backend::erasing::{self, Needles, stripped};
use context_store::{AsOf, Erase, Erased, ErasedCount, StoreError};

/// Erases within the current transaction. The search index must be up to date.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown object, path or session and for a text that is too short; nothing is then
/// erased.
pub(super) fn erase(connection: &Connection, wanted: &[Erase], mark: &Erased) -> Result<ErasedCount> {
    let mark = mark_json(mark)?;
    let needles = Needles::new(wanted)?;
    let objects = objects(connection, wanted)?;
    let mut contents = with_needles(connection, &needles)?;
    let mut whole = BTreeSet::new();
    for object in &objects {
        let mut find =
            connection.prepare_cached("SELECT seq, content, packed FROM versions WHERE object = ?")?;
        let mut rows = find.query([object])?;
        while let Some(sql) = rows.next()? {
            whole.insert(sql.get::<_, i64>(0)?);
            contents.extend(sql.get::<_, Option<i64>>(1)?);
            contents.extend(blob(sql, 2)?.and_then(pack::texts_of).into_iter().flatten());
        }
    }
    contents.retain(|content| is_to_go(connection, *content).unwrap_or(true));
    let touched = touched(connection, &contents, &needles)?;
    forgotten::remember(connection, &whole, &touched, &contents, &needles)?;
    for content in &contents {
        take_out(connection, *content, &contents)?;
    }
    let mut versions = 0;
    for seq in whole.union(&touched) {
        let going = whole.contains(seq).then_some(&contents);
        versions += u64::from(rewrite(connection, *seq, going, &needles, &mark)?);
    }
    Ok(ErasedCount { texts: contents.len() as u64, versions })
}

/// The name in the table `local` of the count of texts and versions that were erased since the file was last rewritten.
const UNFINISHED: &str = "erased";

/// Adds to the count of erasures since the file was last rewritten. Returns all of it.
pub(super) fn note_unfinished(connection: &Connection, count: ErasedCount) -> Result<ErasedCount> {
    let noted = read::local(connection, UNFINISHED)?.unwrap_or_default();
    let (texts, versions) = noted.split_once(' ').unwrap_or_default();
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    let all = ErasedCount { texts: count.texts + number(texts), versions: count.versions + number(versions) };
    set_local(connection, UNFINISHED, &format!("{} {}", all.texts, all.versions))?;
    Ok(all)
}

/// The file was rewritten.
pub(super) fn finished(connection: &Connection) -> Result<()> {
    connection.execute("DELETE FROM local WHERE name = ?", [UNFINISHED])?;
    Ok(())
}

/// The mark of a version whose text was erased before it was written.
pub(super) fn again(at: Timestamp) -> Result<String> {
    mark_json(&erasing::again(at))
}

/// A mark as it stands in its column.
pub(super) fn mark_json(mark: &Erased) -> Result<String> {
    serde_json::to_string(mark).map_err(|_| StoreError::Invalid("the reason is not a text".into()).into())
}

/// The numbers of the named objects.
fn objects(connection: &Connection, wanted: &[Erase]) -> Result<BTreeSet<i64>> {
    let mut objects = BTreeSet::new();
    for one in wanted {
        match one {
            Erase::Text(_) => {}
            Erase::Object(id) => {
                objects.insert(number_of(connection, id)?.ok_or_else(|| erasing::no_object(id))?);
            }
            Erase::Path(path) => {
                let mut find = connection.prepare_cached("SELECT object FROM objects WHERE path = ?")?;
                let found = find.query_map([path], |row| row.get::<_, i64>(0))?;
                let found = found.collect::<rusqlite::Result<Vec<_>>>()?;
                if found.is_empty() {
                    return Err(erasing::no_file(path).into());
                }
                objects.extend(found);
            }
            Erase::Session(session) => objects.extend(objects_of_session(connection, session)?),
        }
    }
    Ok(objects)
}

pub(super) fn number_of(connection: &Connection, id: &ObjectId) -> Result<Option<i64>> {
    let mut find = connection.prepare_cached("SELECT object FROM objects WHERE object_id = ?")?;
    Ok(find.query_row([id.as_str()], |row| row.get(0)).optional()?)
}

/// The objects of a session that no other session has encountered.
fn objects_of_session(connection: &Connection, session: &SessionId) -> Result<BTreeSet<i64>> {
    let index = |id: &ObjectId| -> Result<Option<HashSet<String>>> {
        let Some(version) = read::get(connection, id, AsOf::default())? else { return Ok(None) };
        let index = version.document.field("session_index").and_then(Value::as_array).cloned();
        let ids = index.into_iter().flatten().filter_map(|id| id.as_str().map(str::to_owned));
        Ok(Some(ids.collect()))
    };
    let this = ObjectId::session(session);
    let mut mine = index(&this)?.ok_or_else(|| erasing::no_session(session))?;
    let mut find = connection.prepare("SELECT object_id FROM objects WHERE type = ? AND object_id <> ?")?;
    let others =
        find.query_map([ObjectType::Session.as_str(), this.as_str()], |row| row.get::<_, String>(0))?;
    for other in others.collect::<rusqlite::Result<Vec<_>>>()? {
        for id in index(&ObjectId::new(other))?.into_iter().flatten() {
            mine.remove(&id);
        }
    }
    let its_own = [this, ObjectId::chat(session), ObjectId::system_prompt(session)];
    let ids = mine.into_iter().map(ObjectId::new).chain(its_own);
    ids.filter_map(|id| number_of(connection, &id).transpose()).collect()
}

/// The texts that contain one of these.
fn with_needles(connection: &Connection, needles: &Needles) -> Result<BTreeSet<i64>> {
    let mut found = BTreeSet::new();
    if needles.is_empty() {
        return Ok(found);
    }
    let mut all = connection.prepare("SELECT content FROM contents")?;
    let all = all.query_map([], |row| row.get::<_, i64>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    for content in all {
        if let StoredText::Text(text) = form::text_of(connection, content)?
            && needles.is_in(&text)
        {
            found.insert(content);
        }
    }
    Ok(found)
}

/// The empty text occurs everywhere and reveals nothing; erased texts are already gone.
fn is_to_go(connection: &Connection, content: i64) -> Result<bool> {
    let sql = "SELECT codec <> 3 AND octet_length(text) > 0 FROM contents WHERE content = ?";
    Ok(connection.prepare_cached(sql)?.query_row([content], |row| row.get(0))?)
}

/// The versions that have one of these texts, or a needle in their payload.
fn touched(connection: &Connection, contents: &BTreeSet<i64>, needles: &Needles) -> Result<BTreeSet<i64>> {
    let mut touched = BTreeSet::new();
    let mut find = connection.prepare("SELECT seq, content, packed, body, patch FROM versions")?;
    let mut rows = find.query([])?;
    let is_in = |json: Option<&str>| json.is_some_and(|json| needles.is_in_json(json));
    while let Some(sql) = rows.next()? {
        let content = sql.get::<_, Option<i64>>(1)?;
        let packed = blob(sql, 2)?;
        let refers = content.is_some_and(|content| contents.contains(&content))
            || packed.and_then(pack::texts_of).into_iter().flatten().any(|text| contents.contains(&text));
        let holds = !needles.is_empty()
            && match packed.and_then(pack::Unpacked::new) {
                Some(unpacked) => is_in(Some(unpacked.parts().body)) || is_in(unpacked.parts().patch),
                None => is_in(optional(sql, 3)?) || is_in(optional(sql, 4)?),
            };
        if refers || holds {
            touched.insert(sql.get(0)?);
        }
    }
    Ok(touched)
}

/// Removes a text from the contents and the search index.
fn take_out(connection: &Connection, content: i64, going: &BTreeSet<i64>) -> Result<()> {
    detach(connection, content, going)?;
    let sql = "UPDATE contents SET codec = ?, text = x'' WHERE content = ?";
    connection.prepare_cached(sql)?.execute([form::ERASED, content])?;
    Ok(())
}

/// Removes a text from the search index. Texts stored as differences from it, or indexed together with it, are kept
/// and indexed again.
pub(super) fn detach(connection: &Connection, content: i64, going: &BTreeSet<i64>) -> Result<()> {
    let mut find = connection.prepare_cached("SELECT root, place FROM contents WHERE content = ?")?;
    let placed: (Option<i64>, Option<i64>) =
        find.query_row([content], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if let (Some(root), Some(place)) = placed {
        let mut find = connection.prepare_cached(
            "SELECT content, place FROM contents WHERE root = ? AND place > 0 AND content <> ?",
        )?;
        let others =
            find.query_map([root, content], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
        let others = others.collect::<rusqlite::Result<BTreeMap<_, _>>>()?;
        let base = match form::text_of(connection, root)? {
            StoredText::Text(base) => base,
            StoredText::Erased => String::new(),
        };
        let mut anew = BTreeMap::new();
        // Texts that are also being erased are handled separately.
        for (other, its_place) in others.into_iter().filter(|(other, _)| !going.contains(other)) {
            let StoredText::Text(text) = form::text_of(connection, other)? else { continue };
            unindex(connection, row_of(root, its_place))?;
            if place == 0 {
                stand_alone(connection, other, &text)?;
                anew.insert(row_of(other, 0), text);
            } else {
                let known: HashSet<&str> = base.lines().collect();
                let lines: Vec<&str> = text.lines().filter(|line| !known.contains(line)).collect();
                anew.insert(row_of(root, its_place), lines.join("\n"));
            }
        }
        unindex(connection, row_of(root, place))?;
        for (row, text) in anew {
            let mut insert =
                connection.prepare_cached("INSERT INTO contents_fts (rowid, text) VALUES (?, ?)")?;
            insert.execute(params![row, indexable(&text, None)])?;
        }
    }
    Ok(())
}

fn unindex(connection: &Connection, row: i64) -> Result<()> {
    connection.prepare_cached("DELETE FROM contents_fts WHERE rowid = ?")?.execute([row])?;
    Ok(())
}

/// Stores a text as a whole that was stored as a difference from another one.
fn stand_alone(connection: &Connection, content: i64, text: &str) -> Result<()> {
    if let Some(bytes) = form::compressed(text.as_bytes()) {
        return form::reform(connection, content, text, (form::COMPRESSED, &bytes), (content, 0), None);
    }
    let sql = "UPDATE contents SET codec = ?, text = ?, root = content, place = 0 WHERE content = ?";
    connection.prepare_cached(sql)?.execute(params![form::PLAIN, text, content])?;
    Ok(())
}

/// Marks a version and erases from its payload the needles; or all messages and arguments, if its object is erased as a
/// whole together with these texts. True if the version changed.
fn rewrite(
    connection: &Connection,
    seq: i64,
    whole: Option<&BTreeSet<i64>>,
    needles: &Needles,
    mark: &str,
) -> Result<bool> {
    let mut find = connection.prepare_cached(&select(row::TextColumn::Left, "WHERE v.seq = ?"))?;
    let mut rows = find.query([seq])?;
    let Some(sql) = rows.next()? else { return Ok(false) };
    let mut row = Row::read(connection, sql)?;
    let edited = |json: &str| -> Result<String> {
        if whole.is_some() {
            return stripped(json).ok_or_else(|| row.damaged());
        }
        Ok(needles.taken_out_of(json))
    };
    let body = edited(&row.body)?;
    let patch = row.patch.as_deref().map(edited).transpose()?;
    // A version that was erased in part before still has the rest.
    if let Some(going) = whole
        && row.erased.is_some()
        && (&*body, patch.as_deref()) == (&*row.body, row.patch.as_deref())
        && row.content.is_none_or(|content| !going.contains(&content))
    {
        return Ok(false);
    }
    (row.body, row.patch) = (body.into(), patch.map(Into::into));
    if whole.is_some() {
        row.texts = Vec::new();
    }
    row.erased = Some(mark.into());
    let (of_body, of_patch) = row.digests(connection)?;
    let hash = row.hash(&of_body, of_patch.as_ref());
    let (packed, body) = row.packed()?;
    let (patch, nested) = (row.patch.as_deref(), row.nested.as_deref());
    let sql = "UPDATE versions SET body = ?, patch = ?, nested = ?, packed = ?, erased = ?, row_hash = ? WHERE seq = ?";
    connection.prepare_cached(sql)?.execute(params![
        body,
        patch.filter(|_| packed.is_none()),
        nested.filter(|_| packed.is_none()),
        packed,
        mark,
        hash.as_bytes(),
        seq
    ])?;
    Ok(true)
}
