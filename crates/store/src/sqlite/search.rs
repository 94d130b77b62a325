//! Full-text search. A search first has the writer bring the index up to date. What the index can't take in now, because
//! the disk is full or another process holds the lock, is indexed in memory for this one search.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use context_model::id::ObjectId;
use context_model::time::TxId;
use rusqlite::{Connection, OptionalExtension, params};

use super::limit::Limit;
use super::row::text;
use crate::words::{self, Part};
use crate::{Hit, Result, Search, StoreError};

/// So long a search may look for its words.
pub(super) const SEARCH_TIME: Duration = Duration::from_secs(10);

/// The most bytes of text that are indexed in memory for one search.
const MOST_REST: i64 = 32 << 20;

/// Marks the first match in a text; a sequence that no text has at the place of a match by accident.
const MARK: &str = "\u{1}\u{2}";

/// Longer texts are not searched for a match that differs by an accent; such a hit names their first line.
const MAX_MARKED: usize = 256 << 10;

/// What is looked for.
struct Wanted<'a> {
    /// Each a phrase of FTS5: quoted, so that any text is a valid query.
    phrases: Vec<String>,
    /// The same in words.
    parts: Vec<Part>,
    kind: Option<&'a str>,
    /// The IDs that may be hit, as a JSON list.
    within: Option<String>,
    limit: i64,
}

/// A version that matches.
struct Found {
    content: i64,
    object: String,
    tx_id: i64,
    seq: i64,
    rank: f64,
}

/// Searches. `behind` says why the index may lack something.
///
/// # Errors
/// `STORE_UNAVAILABLE` at the limit of time, and `behind` where the index lacks too much; `STORE_CORRUPT`.
pub(super) fn search(
    connection: &Connection,
    query: &Search,
    behind: Option<&StoreError>,
    limit: &Limit,
) -> Result<Vec<Hit>> {
    let moment = connection.unchecked_transaction()?;
    let parts = words::wanted(&query.text, |word| texts_with(&moment, word))?;
    if parts.is_empty() || query.limit == 0 {
        return Ok(Vec::new());
    }
    let wanted = Wanted {
        phrases: parts.iter().map(|part| format!("\"{}\"", part.text.replace('"', "\"\""))).collect(),
        parts,
        kind: query.object_type.map(|t| t.as_str()),
        within: query.within.as_ref().map(|ids| serde_json::json!(ids).to_string()),
        limit: i64::try_from(query.limit).unwrap_or(i64::MAX),
    };
    let mut found = indexed(&moment, &wanted)?;
    if let Some(reason) = behind {
        add_rest(&moment, &wanted, &mut found, reason, limit)?;
    }
    let mut hits = Vec::with_capacity(found.len());
    for found in found {
        limit.check()?;
        let (line, snippet) = place(&moment, found.content, &wanted)?;
        hits.push(Hit {
            id: ObjectId::new(found.object),
            tx_id: TxId(found.tx_id.unsigned_abs()),
            line,
            snippet,
            score: -found.rank,
        });
    }
    Ok(hits)
}

/// Prepares a connection for [`search`].
pub(super) fn prepare(connection: &Connection) -> Result<()> {
    let words = "CREATE VIRTUAL TABLE temp.contents_words USING fts5vocab (main, contents_fts, row)";
    Ok(connection.execute_batch(words)?)
}

/// In how many of the indexed contents a word is; unknown where none has it in just this form.
fn texts_with(connection: &Connection, word: &str) -> Result<Option<u64>> {
    let mut find = connection.prepare_cached("SELECT doc FROM temp.contents_words WHERE term = ?")?;
    Ok(find.query_row([word], |row| row.get::<_, i64>(0)).optional()?.map(i64::unsigned_abs))
}

/// What the index finds, best first.
fn indexed(connection: &Connection, wanted: &Wanted<'_>) -> Result<Vec<Found>> {
    let mut find = connection.prepare_cached(
        "SELECT f.rowid, o.object_id, v.tx_id, v.seq, bm25(contents_fts)
         FROM contents_fts f JOIN occurrences x ON x.content = f.rowid
              JOIN objects o ON o.object = x.object JOIN versions v ON v.seq = x.seq
         WHERE contents_fts MATCH ?1 AND (?2 IS NULL OR o.type = ?2)
               AND (?4 IS NULL OR o.object_id IN (SELECT value FROM json_each(?4)))
         ORDER BY 5, v.seq DESC LIMIT ?3",
    )?;
    let mut rows = find.query(params![wanted.phrases.join(" "), wanted.kind, wanted.limit, wanted.within])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Found {
            content: row.get(0)?,
            object: text(row, 1)?.to_owned(),
            tx_id: row.get(2)?,
            seq: row.get(3)?,
            rank: row.get(4)?,
        });
    }
    Ok(found)
}

/// Adds what the index lacks: versions of indexed contents, and contents that are not indexed.
fn add_rest(
    connection: &Connection,
    wanted: &Wanted<'_>,
    found: &mut Vec<Found>,
    reason: &StoreError,
    limit: &Limit,
) -> Result<()> {
    let rest = rest(connection, wanted)?;
    if rest.is_empty() {
        return Ok(());
    }
    let mut ranks = ranks_of_known(connection, wanted, rest.keys())?;
    ranks.extend(ranks_of_new(connection, wanted, reason, limit)?);
    let mut best: HashMap<(i64, String), Found> =
        found.drain(..).map(|found| ((found.content, found.object.clone()), found)).collect();
    for (content, rank) in ranks {
        for (object, tx_id, seq) in rest.get(&content).into_iter().flatten() {
            let newer = Found { content, object: object.clone(), tx_id: *tx_id, seq: *seq, rank };
            best.insert((content, object.clone()), newer);
        }
    }
    found.extend(best.into_values());
    found.sort_by(|a, b| a.rank.total_cmp(&b.rank).then(b.seq.cmp(&a.seq)));
    found.truncate(usize::try_from(wanted.limit).unwrap_or(usize::MAX));
    Ok(())
}

/// The versions that the index lacks, by their content: object, transaction and place, the newest of each object.
type Rest = BTreeMap<i64, Vec<(String, i64, i64)>>;

fn rest(connection: &Connection, wanted: &Wanted<'_>) -> Result<Rest> {
    let mut find = connection.prepare_cached(
        "SELECT v.content, o.object_id, v.tx_id, max(v.seq) FROM versions v JOIN objects o USING (object)
         WHERE v.seq > (SELECT seq FROM indexed) AND v.content IS NOT NULL AND (?1 IS NULL OR o.type = ?1)
               AND (?2 IS NULL OR o.object_id IN (SELECT value FROM json_each(?2)))
         GROUP BY v.content, v.object",
    )?;
    let mut rows = find.query(params![wanted.kind, wanted.within])?;
    let mut rest = Rest::new();
    while let Some(row) = rows.next()? {
        let version = (text(row, 1)?.to_owned(), row.get(2)?, row.get(3)?);
        rest.entry(row.get(0)?).or_default().push(version);
    }
    Ok(rest)
}

/// Those of these contents that the index has and that match.
fn ranks_of_known<'a>(
    connection: &Connection,
    wanted: &Wanted<'_>,
    contents: impl Iterator<Item = &'a i64>,
) -> Result<Vec<(i64, f64)>> {
    let contents = serde_json::json!(contents.collect::<Vec<_>>()).to_string();
    let mut find = connection.prepare_cached(
        "SELECT rowid, bm25(contents_fts) FROM contents_fts
         WHERE contents_fts MATCH ?1 AND rowid IN (SELECT value FROM json_each(?2))",
    )?;
    let rows = find.query_map([wanted.phrases.join(" "), contents], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The contents that the index lacks and that match.
fn ranks_of_new(
    connection: &Connection,
    wanted: &Wanted<'_>,
    reason: &StoreError,
    limit: &Limit,
) -> Result<Vec<(i64, f64)>> {
    const NEW: &str = "WHERE content > (SELECT content FROM indexed)";
    let bytes = format!("SELECT coalesce(sum(octet_length(text)), 0) FROM contents {NEW}");
    if connection.prepare_cached(&bytes)?.query_row([], |row| row.get::<_, i64>(0))? > MOST_REST {
        return Err(reason.clone());
    }
    let memory = Connection::open_in_memory()?;
    memory.execute_batch(
        "CREATE VIRTUAL TABLE rest USING fts5 (text, tokenize = \"unicode61 tokenchars '_'\")",
    )?;
    let mut contents = connection.prepare_cached(&format!("SELECT content, text FROM contents {NEW}"))?;
    let mut rows = contents.query([])?;
    let mut add = memory.prepare("INSERT INTO rest (rowid, text) VALUES (?, ?)")?;
    while let Some(row) = rows.next()? {
        limit.check()?;
        add.execute(params![row.get::<_, i64>(0)?, text(row, 1)?])?;
    }
    let mut find = memory.prepare("SELECT rowid, bm25(rest) FROM rest WHERE rest MATCH ?")?;
    let rows = find.query_map([wanted.phrases.join(" ")], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The first line of a content that has one of the phrases.
fn place(connection: &Connection, content: i64, wanted: &Wanted<'_>) -> Result<(usize, String)> {
    let missing = || StoreError::Corrupt("the search index does not fit the contents".into());
    let mut find = connection.prepare_cached("SELECT text FROM contents WHERE content = ?")?;
    let mut rows = find.query([content])?;
    let row = rows.next()?.ok_or_else(missing)?;
    let plain = text(row, 0)?;
    let at = match words::first(plain, &wanted.parts) {
        Some(at) => at,
        // The index also takes letters for equal that differ by an accent alone.
        None if plain.len() <= MAX_MARKED => marked(connection, content, &wanted.phrases, plain)?,
        None => 0,
    };
    Ok(words::line_at(plain, at))
}

/// Where the index sees the first match. The cost is that of the text's length times the number of matches.
fn marked(connection: &Connection, content: i64, phrases: &[String], plain: &str) -> Result<usize> {
    let mut find = connection.prepare_cached(
        "SELECT highlight(contents_fts, 0, ?1, '') FROM contents_fts f
         WHERE contents_fts MATCH ?2 AND f.rowid = ?3",
    )?;
    let found = find.query_row(params![MARK, phrases.join(" OR "), content], |row| row.get::<_, String>(0));
    // A content that the index lacks has no place in it.
    let Some(marked) = found.optional()? else { return Ok(0) };
    let at = marked.bytes().zip(plain.bytes()).take_while(|(a, b)| a == b).count().min(plain.len());
    Ok(plain.floor_char_boundary(at))
}
