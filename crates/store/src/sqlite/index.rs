//! The full-text index. It follows the history: the writer brings it forward when it has nothing else to do, and before
//! a search.

use rusqlite::Connection;

use crate::Result;

/// At most so many bytes of text and so many versions per transaction, so that a write waits only briefly.
const PORTION_BYTES: i64 = 512 << 10;
const PORTION_VERSIONS: i64 = 500;

/// Takes the next contents and versions into the index; returns whether more may be waiting.
pub(super) fn portion(connection: &Connection) -> Result<bool> {
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
