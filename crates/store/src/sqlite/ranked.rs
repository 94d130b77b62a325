//! Which texts the index finds, in which order. Rows of the index are parts of texts; those of one root belong together.
//!
//! A rank costs a lookup for each row, and so do the rows of a word that most texts have. So words with few rows are
//! looked up and ranked first; others then only exclude texts. If all words have many rows, the newest texts are ranked.

use std::collections::HashSet;

use rusqlite::{Connection, Rows, params};

use super::index::{FAMILY, root_of, row_of};
use super::limit::Limit;
use crate::Result;

/// With more rows than this, a phrase is common: it is ranked only if all are.
const COMMON: i64 = 4_000;

/// Up to this many texts are looked up one by one among the rows of a common phrase.
const FEW: usize = 100;

/// How many texts are ranked at most if all phrases are common.
const RANKED: usize = 2_000;

/// A root with its rank; a lower rank is better, and 0 is none.
type Ranked = (i64, f64);

/// The roots, of those in `among`, whose rows contain all phrases, best first, and of equal ones the newest. A root's rank is the sum of its best
/// rows for the phrases that are ranked.
///
/// # Errors
/// `STORE_UNAVAILABLE` at the time limit, `STORE_CORRUPT`.
pub(super) fn roots(
    connection: &Connection,
    phrases: &[String],
    among: Option<&HashSet<i64>>,
    limit: &Limit,
) -> Result<Vec<Ranked>> {
    let mut order = Vec::with_capacity(phrases.len());
    for phrase in phrases {
        order.push((rows_up_to(connection, phrase, COMMON + 1)?, phrase));
    }
    order.sort_by_key(|(rows, _)| *rows);
    let Some((rows, phrase)) = order.first() else { return Ok(Vec::new()) };
    let mut all = of_phrase(connection, phrase, *rows <= COMMON)?;
    all.retain(|(root, _)| among.is_none_or(|among| among.contains(root)));
    for (rows, phrase) in &order[1..] {
        limit.check()?;
        if all.is_empty() {
            break;
        }
        all = if *rows > COMMON && all.len() <= FEW {
            having(connection, phrase, all)?
        } else {
            both(all, &of_phrase(connection, phrase, *rows <= COMMON)?)
        };
    }
    if *rows > COMMON {
        for phrase in phrases {
            limit.check()?;
            rank_newest(connection, phrase, &mut all)?;
        }
    }
    all.sort_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    Ok(all)
}

/// How many rows a phrase has, counted up to a bound.
fn rows_up_to(connection: &Connection, phrase: &str, most: i64) -> Result<i64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM contents_fts WHERE contents_fts MATCH ? LIMIT ?)";
    Ok(connection.prepare_cached(sql)?.query_row(params![phrase, most], |row| row.get(0))?)
}

/// The roots that have a phrase, by their numbers.
fn of_phrase(connection: &Connection, phrase: &str, is_ranked: bool) -> Result<Vec<Ranked>> {
    let sql = if is_ranked {
        "SELECT rowid, bm25(contents_fts) FROM contents_fts WHERE contents_fts MATCH ?"
    } else {
        "SELECT rowid, 0.0 FROM contents_fts WHERE contents_fts MATCH ?"
    };
    best_rows(connection.prepare_cached(sql)?.query([phrase])?)
}

/// The roots of rows with their ranks. Rows come in the order of their numbers, and so do the roots.
fn best_rows(mut rows: Rows<'_>) -> Result<Vec<Ranked>> {
    let mut roots: Vec<Ranked> = Vec::new();
    while let Some(row) = rows.next()? {
        let (root, rank) = (root_of(row.get(0)?), row.get::<_, f64>(1)?);
        match roots.last_mut() {
            Some((last, best)) if *last == root => *best = best.min(rank),
            _ => roots.push((root, rank)),
        }
    }
    Ok(roots)
}

/// Those of a few roots that have a phrase, too.
fn having(connection: &Connection, phrase: &str, roots: Vec<Ranked>) -> Result<Vec<Ranked>> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM contents_fts WHERE contents_fts MATCH ? AND rowid BETWEEN ? AND ?)";
    let mut find = connection.prepare_cached(sql)?;
    let mut left = Vec::with_capacity(roots.len());
    for (root, rank) in roots {
        let (first, last) = (row_of(root, 0), row_of(root, FAMILY - 1));
        if find.query_row(params![phrase, first, last], |row| row.get(0))? {
            left.push((root, rank));
        }
    }
    Ok(left)
}

/// Adds a phrase's ranks to those of the newest roots.
fn rank_newest(connection: &Connection, phrase: &str, roots: &mut [Ranked]) -> Result<()> {
    let from = roots.len().saturating_sub(RANKED);
    let newest = &mut roots[from..];
    let Some((oldest, _)) = newest.first().copied() else { return Ok(()) };
    let wanted: HashSet<i64> = newest.iter().map(|(root, _)| *root).collect();
    let list = serde_json::json!(wanted).to_string();
    let mut find = connection.prepare_cached(
        "SELECT rowid, bm25(contents_fts) FROM contents_fts
         WHERE contents_fts MATCH ?1 AND rowid >= ?2 AND rowid / ?3 IN (SELECT value FROM json_each(?4))",
    )?;
    let ranks = best_rows(find.query(params![phrase, row_of(oldest, 0), FAMILY, list])?)?;
    let mut ranks = ranks.into_iter().peekable();
    for (root, sum) in newest {
        if let Some((_, rank)) = ranks.next_if(|(ranked, _)| ranked == root) {
            *sum += rank;
        }
    }
    Ok(())
}

/// The common elements of two lists sorted by number, with the sums of their ranks.
fn both(mut left: Vec<Ranked>, right: &[Ranked]) -> Vec<Ranked> {
    let mut at = 0;
    left.retain_mut(|(root, rank)| {
        while right.get(at).is_some_and(|(other, _)| other < root) {
            at += 1;
        }
        let is_same = right.get(at).filter(|(other, _)| other == root);
        is_same.map(|(_, other)| *rank += other).is_some()
    });
    left
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// An index of this many texts, each one root: "all" is in every one, "half" in every second one and "n17" in one.
    fn index(texts: i64) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "CREATE VIRTUAL TABLE contents_fts USING fts5 (
                   text, content = '', contentless_delete = 1, tokenize = \"unicode61 tokenchars '_'\"); BEGIN",
            )
            .unwrap();
        for n in 1..=texts {
            // A root and the new lines of one difference from it.
            for (place, text) in [(0, format!("all n{n}")), (3, "half ".repeat(usize::from(n % 2 == 0)))] {
                let sql = "INSERT INTO contents_fts (rowid, text) VALUES (?, ?)";
                connection.execute(sql, params![row_of(n, place), text]).unwrap();
            }
        }
        connection.execute_batch("COMMIT").unwrap();
        connection
    }

    fn found(connection: &Connection, phrases: &[&str]) -> Vec<i64> {
        let phrases: Vec<String> = phrases.iter().map(|phrase| format!("\"{phrase}\"")).collect();
        let limit = Limit::new(Arc::default());
        roots(connection, &phrases, None, &limit).unwrap().into_iter().map(|(root, _)| root).collect()
    }

    #[test]
    fn common_and_rare_words_find_the_same_texts_as_counting_does() {
        let many = 2 * COMMON + 10;
        let connection = index(many);
        assert_eq!(found(&connection, &["n17"]), [17]);
        assert_eq!(found(&connection, &["all", "n17"]), [17]);
        assert_eq!(found(&connection, &["n18", "half", "all"]), [18]);
        assert!(found(&connection, &["half", "n17"]).is_empty());
        assert!(found(&connection, &["n17", "n18"]).is_empty());
        assert!(found(&connection, &["all", "nothing"]).is_empty());
        assert_eq!(found(&connection, &["all"]).len(), many.unsigned_abs() as usize);
        let mut both = found(&connection, &["all", "half"]);
        assert_eq!(both[0], many, "the newest of equal ones");
        both.sort_unstable();
        assert_eq!(both, (1..=many).filter(|n| n % 2 == 0).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_not_asked_for_is_left_out_before_anything_is_ranked() {
        let connection = index(COMMON + 10);
        let (among, limit) = (HashSet::from([3, 7, 99_999]), Limit::new(Arc::default()));
        for phrases in [&["\"all\""][..], &["\"all\"", "\"n7\""]] {
            let phrases: Vec<String> = phrases.iter().map(|phrase| (*phrase).to_owned()).collect();
            let mut found = roots(&connection, &phrases, Some(&among), &limit).unwrap();
            found.retain(|(root, _)| *root != 7);
            assert_eq!(found.len(), 2 - phrases.len());
        }
    }

    #[test]
    fn of_many_texts_with_a_word_the_newest_are_ranked() {
        let connection = index(COMMON + 10);
        let sql = "INSERT INTO contents_fts (rowid, text) VALUES (?, 'all all all')";
        for root in [COMMON + 11, COMMON + 500] {
            connection.execute(sql, [row_of(root, 0)]).unwrap();
        }
        connection.execute(sql, [row_of(COMMON + 501, 0)]).unwrap();
        connection
            .execute("INSERT INTO contents_fts (rowid, text) VALUES (?, 'all')", [row_of(COMMON + 502, 0)])
            .unwrap();
        let found = found(&connection, &["all"]);
        assert_eq!(found[..3], [COMMON + 501, COMMON + 500, COMMON + 11], "the word three times");
        assert_eq!(found.last(), Some(&1), "those that were not ranked follow, the newest first");
    }
}
