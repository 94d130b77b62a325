//! Full-text search. A search first makes the writer bring the index up to date. Text that can't be indexed now, because
//! the disk is full or another process holds the lock, is indexed in memory for this search only.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use context_model::id::ObjectId;
use context_model::time::TxId;
use rusqlite::{Connection, OptionalExtension, params};

use super::columns::text;
use super::error::Result;
use super::form::{self, StoredText};
use super::pool::Limit;
use super::ranked;
use context_store::backend::words::{self, Phrase};
use context_store::{Hit, Search, StoreError};

/// The longest time that a search may look for its words.
pub(super) const SEARCH_TIME: Duration = Duration::from_secs(10);

/// An index that may lack something: the reason, and the most bytes of such texts that are indexed in memory for one search.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    pub reason: StoreError,
    pub most: usize,
}

/// For a store that can complete its index next time.
pub(super) const MOST_REST: usize = 32 << 20;

/// For a view, which never can.
pub(super) const MOST_VIEWED: usize = 256 << 20;

/// Texts with a word of a long query that are counted at most.
const MOST_COUNTED: i64 = 1_000;

/// Marks the first match in a text: a sequence that no text has at a match by accident.
const MARK: &str = "\u{1}\u{2}";

/// Longer texts are not searched for a match that differs by an accent; such a hit names their first line.
const MAX_MARKED: usize = 256 << 10;

/// The query.
struct SearchedWords<'a> {
    /// Its words as phrases of FTS5.
    phrases: Vec<String>,
    /// The same as words.
    parts: Vec<Phrase>,
    kind: Option<&'a str>,
    /// The objects that may be hit.
    among: Option<&'a HashSet<ObjectId>>,
    /// The same as a JSON list.
    within: Option<String>,
    limit: i64,
}

/// A version that matches.
struct Hitting {
    content: i64,
    object: String,
    tx_id: i64,
    seq: i64,
    rank: f64,
}

/// Searches. `behind` says why the index may lack something.
///
/// # Errors
/// `STORE_UNAVAILABLE` at the time limit; `behind` if the index lacks too much; `STORE_CORRUPT` if the index is damaged.
pub(super) fn search(
    connection: &Connection,
    query: &Search,
    behind: Option<&Behind>,
    limit: &Limit,
) -> Result<Vec<Hit>> {
    let moment = connection.unchecked_transaction()?;
    let parts = words::wanted(&query.text, |word| texts_with(&moment, word))?;
    if parts.is_empty() || query.limit == 0 {
        return Ok(Vec::new());
    }
    let wanted = SearchedWords {
        phrases: parts.iter().map(|part| quoted(&part.text)).collect(),
        parts,
        kind: query.object_type.map(|t| t.as_str()),
        among: query.within.as_ref(),
        within: query.within.as_ref().map(|ids| serde_json::json!(ids).to_string()),
        limit: i64::try_from(query.limit).unwrap_or(i64::MAX),
    };
    let mut found = indexed(&moment, &wanted, limit)?;
    if let Some(behind) = behind {
        add_rest(&moment, &wanted, &mut found, behind, limit)?;
    }
    let mut hits = Vec::with_capacity(found.len());
    for found in found {
        limit.check()?;
        let (id, tx_id) = (ObjectId::new(found.object), TxId(found.tx_id.unsigned_abs()));
        let score = 0.0 - found.rank;
        hits.push(match readable(place(&moment, found.content, &wanted))? {
            Some((line, snippet)) => Hit { id, tx_id, line, snippet, score },
            None => Hit::damaged(id, tx_id, score),
        });
    }
    Ok(hits)
}

/// The result of a read; `None` if it is damaged.
fn readable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(trouble) if trouble.is_damage() => Ok(None),
        read => read.map(Some),
    }
}

/// Number of indexed texts that have a word, counted up to [`MOST_COUNTED`]; unknown if none has it.
fn texts_with(connection: &Connection, word: &str) -> Result<Option<u64>> {
    let rows = ranked::rows_up_to(connection, &quoted(word), MOST_COUNTED)?;
    Ok(Some(rows.unsigned_abs()).filter(|rows| *rows > 0))
}

/// A phrase of FTS5, so that any text is a valid query.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Returns the texts that the index finds, best first.
///
/// Its rows are parts of texts; those of one root belong together. The texts of roots that have all phrases are checked, the
/// best first, until there are enough hits.
fn indexed(connection: &Connection, wanted: &SearchedWords<'_>, limit: &Limit) -> Result<Vec<Hitting>> {
    let mut found = Vec::new();
    let among = match &wanted.within {
        Some(ids) => Some(roots_of(connection, ids)?),
        None => None,
    };
    ranked::each_root(connection, &wanted.phrases, among.as_ref(), limit, |root, rank| {
        found.extend(hitting(connection, root, rank, wanted)?);
        Ok((found.len() as i64) < wanted.limit)
    })?;
    found.sort_by(|a, b| a.rank.total_cmp(&b.rank).then(b.seq.cmp(&a.seq)));
    found.truncate(usize::try_from(wanted.limit).unwrap_or(usize::MAX));
    Ok(found)
}

/// The roots of all texts that these objects have had, so that a search in one session takes no time for the others.
fn roots_of(connection: &Connection, ids: &str) -> Result<HashSet<i64>> {
    let mut find = connection.prepare_cached(
        "SELECT DISTINCT c.root FROM json_each(?) w CROSS JOIN objects o ON o.object_id = w.value
         CROSS JOIN versions v ON v.object = o.object CROSS JOIN contents c ON c.content = v.content
         WHERE c.root IS NOT NULL",
    )?;
    let roots = find.query_map([ids], |row| row.get(0))?;
    Ok(roots.collect::<rusqlite::Result<_>>()?)
}

/// The objects whose texts of this root have all phrases.
fn hitting(
    connection: &Connection,
    root: i64,
    rank: f64,
    wanted: &SearchedWords<'_>,
) -> Result<Vec<Hitting>> {
    let mut find = connection.prepare_cached("SELECT content FROM contents WHERE root = ? AND place > 0")?;
    let others = find.query_map([root], |row| row.get::<_, i64>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    if others.is_empty() {
        return occurrences(connection, root, rank, wanted);
    }
    // Reading a text takes longer than asking whose it is.
    let mut found = Vec::new();
    let memory = Memory::new()?;
    let mut having: HashSet<i64> = HashSet::new();
    for content in std::iter::once(root).chain(others) {
        let whose = occurrences(connection, content, rank, wanted)?;
        if whose.is_empty() {
            continue;
        }
        match readable(form::text_of(connection, content))? {
            Some(StoredText::Text(text)) => memory.add(content, &text)?,
            // One of these texts has the words, and this may be it.
            None => drop(having.insert(content)),
            Some(StoredText::Erased) => continue,
        }
        found.extend(whose);
    }
    if found.is_empty() {
        return Ok(found);
    }
    having.extend(memory.ranks(wanted)?.into_iter().map(|(content, _)| content));
    found.retain(|hitting| having.contains(&hitting.content));
    Ok(found)
}

/// The objects that have a text and may be hit, each with its newest version.
fn occurrences(
    connection: &Connection,
    content: i64,
    rank: f64,
    wanted: &SearchedWords<'_>,
) -> Result<Vec<Hitting>> {
    let mut find = connection.prepare_cached(
        "SELECT o.object_id, v.tx_id, v.seq
         FROM occurrences x JOIN objects o ON o.object = x.object JOIN versions v ON v.seq = x.seq
         WHERE x.content = ?1 AND (?2 IS NULL OR o.type = ?2)",
    )?;
    let mut rows = find.query(params![content, wanted.kind])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let object = ObjectId::new(text(row, 0)?);
        if wanted.among.is_some_and(|among| !among.contains(&object)) {
            continue;
        }
        let object = object.as_str().to_owned();
        found.push(Hitting { content, object, tx_id: row.get(1)?, seq: row.get(2)?, rank });
    }
    Ok(found)
}

/// Adds the versions that the index lacks: those after its last one.
fn add_rest(
    connection: &Connection,
    wanted: &SearchedWords<'_>,
    found: &mut Vec<Hitting>,
    behind: &Behind,
    limit: &Limit,
) -> Result<()> {
    let rest = rest(connection, wanted)?;
    if rest.is_empty() {
        return Ok(());
    }
    let (memory, mut bytes) = (Memory::new()?, 0);
    let mut damaged = Vec::new();
    for content in rest.keys() {
        limit.check()?;
        match readable(form::text_of(connection, *content))? {
            Some(StoredText::Text(text)) => {
                bytes += text.len();
                if bytes > behind.most {
                    return Err(behind.reason.clone().into());
                }
                memory.add(*content, &text)?;
            }
            // After all that are known to have the words.
            None => damaged.push((*content, 0.0)),
            Some(StoredText::Erased) => {}
        }
    }
    let mut best: HashMap<(i64, String), Hitting> =
        found.drain(..).map(|found| ((found.content, found.object.clone()), found)).collect();
    for (content, rank) in memory.ranks(wanted)?.into_iter().chain(damaged) {
        for (object, tx_id, seq) in rest.get(&content).into_iter().flatten() {
            let newer = Hitting { content, object: object.clone(), tx_id: *tx_id, seq: *seq, rank };
            best.insert((content, object.clone()), newer);
        }
    }
    found.extend(best.into_values());
    found.sort_by(|a, b| a.rank.total_cmp(&b.rank).then(b.seq.cmp(&a.seq)));
    found.truncate(usize::try_from(wanted.limit).unwrap_or(usize::MAX));
    Ok(())
}

/// The versions that the index lacks, by their content: object, transaction and row, the newest of each object.
type RemainingTexts = BTreeMap<i64, Vec<(String, i64, i64)>>;

fn rest(connection: &Connection, wanted: &SearchedWords<'_>) -> Result<RemainingTexts> {
    let mut find = connection.prepare_cached(
        "SELECT v.content, o.object_id, v.tx_id, max(v.seq) FROM versions v JOIN objects o USING (object)
         WHERE v.seq > (SELECT seq FROM indexed) AND v.content IS NOT NULL AND (?1 IS NULL OR o.type = ?1)
               AND (?2 IS NULL OR o.object_id IN (SELECT value FROM json_each(?2)))
         GROUP BY v.content, v.object",
    )?;
    let mut rows = find.query(params![wanted.kind, wanted.within])?;
    let mut rest = RemainingTexts::new();
    while let Some(row) = rows.next()? {
        let version = (text(row, 1)?.to_owned(), row.get(2)?, row.get(3)?);
        rest.entry(row.get(0)?).or_default().push(version);
    }
    Ok(rest)
}

/// A few texts, indexed in memory for one search.
struct Memory(Connection);

impl Memory {
    fn new() -> Result<Self> {
        let memory = Connection::open_in_memory()?;
        memory.execute_batch(
            "CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = \"unicode61 tokenchars '_'\"); BEGIN",
        )?;
        Ok(Self(memory))
    }

    fn add(&self, content: i64, text: &str) -> Result<()> {
        let mut add = self.0.prepare_cached("INSERT INTO texts (rowid, text) VALUES (?, ?)")?;
        add.execute(params![content, text])?;
        Ok(())
    }

    /// The texts that have all phrases, with their ranks, best first.
    fn ranks(&self, wanted: &SearchedWords<'_>) -> Result<Vec<(i64, f64)>> {
        let mut find =
            self.0.prepare("SELECT rowid, bm25(texts) FROM texts WHERE texts MATCH ? ORDER BY 2, 1 DESC")?;
        let rows = find.query_map([wanted.phrases.join(" ")], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

/// The first line of a content that has one of the phrases.
fn place(connection: &Connection, content: i64, wanted: &SearchedWords<'_>) -> Result<(usize, String)> {
    let StoredText::Text(plain) = form::text_of(connection, content)? else { return Ok((1, String::new())) };
    let at = match words::first(&plain, &wanted.parts) {
        Some(at) => at,
        // The index also treats letters as equal if they differ only by an accent.
        None if plain.len() <= MAX_MARKED => marked(&wanted.phrases, &plain)?,
        None => 0,
    };
    Ok(words::line_at(&plain, at))
}

/// Place where the index sees the first match. The time grows with the text's length times the number of matches.
fn marked(phrases: &[String], plain: &str) -> Result<usize> {
    let memory = Memory::new()?;
    memory.add(1, plain)?;
    let mut find = memory.0.prepare("SELECT highlight(texts, 0, ?1, '') FROM texts WHERE texts MATCH ?2")?;
    let found = find.query_row(params![MARK, phrases.join(" OR ")], |row| row.get::<_, String>(0));
    let Some(marked) = found.optional()? else { return Ok(0) };
    let at = marked.bytes().zip(plain.bytes()).take_while(|(a, b)| a == b).count().min(plain.len());
    Ok(plain.floor_char_boundary(at))
}
