//! Full-text search. The index follows the history: the writer brings it forward when it has nothing else to
//! do, and every search first waits until it is complete.

use rusqlite::{Connection, OptionalExtension, params};

use super::row::text;
use crate::{Hit, Result, Search, StoreError, words};
use context_model::id::ObjectId;
use context_model::time::TxId;

/// At most so many bytes of text and so many versions per transaction, so that a write waits only briefly.
const PORTION_BYTES: i64 = 512 << 10;
const PORTION_VERSIONS: i64 = 500;

/// Marks the first match in a text; a sequence that no text has at the place of a match by accident.
const MARK: &str = "\u{1}\u{2}";

/// Longer texts are not searched for a match that differs by an accent; such a hit names their first line.
const MAX_MARKED: usize = 256 << 10;

/// Takes the next contents and versions into the index; returns whether more may be waiting.
pub(super) fn index_portion(connection: &Connection) -> Result<bool> {
    let (content, seq): (i64, i64) = connection
        .prepare_cached("SELECT content, seq FROM indexed")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut last = content;
    let mut bytes = 0;
    {
        let mut waiting = connection.prepare_cached(
            "SELECT content, octet_length(text) FROM contents WHERE content > ? ORDER BY content",
        )?;
        let mut rows = waiting.query([content])?;
        while bytes < PORTION_BYTES && last - content < PORTION_VERSIONS {
            let Some(row) = rows.next()? else { break };
            last = row.get(0)?;
            bytes += row.get::<_, i64>(1)?;
        }
    }
    if last > content {
        connection
            .prepare_cached(
                "INSERT INTO contents_fts (rowid, text)
                 SELECT content, text FROM contents WHERE content > ? AND content <= ?",
            )?
            .execute([content, last])?;
    }
    let newest: i64 = connection
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM versions")?
        .query_row([], |row| row.get(0))?;
    let until = newest.min(seq + PORTION_VERSIONS);
    if until > seq {
        connection
            .prepare_cached(
                "INSERT INTO occurrences (content, object, seq)
                 SELECT content, object, seq FROM versions WHERE seq > ? AND seq <= ? AND content IS NOT NULL
                 ORDER BY seq
                 ON CONFLICT DO UPDATE SET seq = excluded.seq",
            )?
            .execute([seq, until])?;
    }
    if last > content || until > seq {
        connection.prepare_cached("UPDATE indexed SET content = ?, seq = ?")?.execute([last, until])?;
    }
    Ok(bytes >= PORTION_BYTES || last - content >= PORTION_VERSIONS || until < newest)
}

/// Searches; the index must be complete.
pub(super) fn search(connection: &Connection, query: &Search) -> Result<Vec<Hit>> {
    let wanted = words::wanted(&query.text);
    if wanted.is_empty() || query.limit == 0 {
        return Ok(Vec::new());
    }
    // Quoted parts are phrases and never operators: any text is a valid query.
    let phrases: Vec<String> =
        wanted.iter().map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect();
    let words: Vec<Vec<String>> =
        wanted.iter().map(|part| words::tokens(part).map(|(_, word)| word).collect()).collect();
    let mut find = connection.prepare_cached(
        "SELECT f.rowid, o.object_id, v.tx_id, bm25(contents_fts)
         FROM contents_fts f JOIN occurrences x ON x.content = f.rowid
              JOIN objects o ON o.object = x.object JOIN versions v ON v.seq = x.seq
         WHERE contents_fts MATCH ?1 AND (?2 IS NULL OR o.type = ?2)
               AND (?4 IS NULL OR o.object_id IN (SELECT value FROM json_each(?4)))
         ORDER BY 4, v.seq DESC LIMIT ?3",
    )?;
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let kind = query.object_type.map(|t| t.as_str());
    let within = query.within.as_ref().map(|ids| serde_json::json!(ids).to_string());
    let mut rows = find.query(params![phrases.join(" "), kind, limit, within])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        let (line, snippet) = place(connection, row.get(0)?, &words, &phrases)?;
        hits.push(Hit {
            id: ObjectId::new(text(row, 1)?),
            tx_id: TxId(row.get::<_, i64>(2)?.unsigned_abs()),
            line,
            snippet,
            score: -row.get::<_, f64>(3)?,
        });
    }
    Ok(hits)
}

/// The first line of a content that has one of the phrases.
fn place(
    connection: &Connection,
    content: i64,
    words: &[Vec<String>],
    phrases: &[String],
) -> Result<(usize, String)> {
    let missing = || StoreError::Corrupt("the search index does not fit the contents".into());
    let mut find = connection.prepare_cached("SELECT text FROM contents WHERE content = ?")?;
    let mut rows = find.query([content])?;
    let row = rows.next()?.ok_or_else(missing)?;
    let plain = text(row, 0)?;
    let at = match words::first(plain, words) {
        Some(at) => at,
        // The index also takes letters for equal that differ by an accent alone.
        None if plain.len() <= MAX_MARKED => marked(connection, content, phrases, plain)?,
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
    let found = found.optional()?;
    let marked =
        found.ok_or_else(|| StoreError::Corrupt("the search index does not fit the contents".into()))?;
    let at = marked.bytes().zip(plain.bytes()).take_while(|(a, b)| a == b).count().min(plain.len());
    Ok(plain.floor_char_boundary(at))
}
