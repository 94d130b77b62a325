//! The texts that the index finds, and their order. Rows of the index are parts of texts; those of one root belong
//! together.
//!
//! Ranks, and all rows of a word that most texts have, take time in proportion to the store. So only words with few rows
//! are ranked, and texts that also contain the remaining words are kept. If all words have many rows, the newest texts come
//! first, and no more of them are read than the search needs.

use std::collections::HashSet;

use rusqlite::{Connection, Rows, params};

use super::error::Result;
use super::index::{FAMILY, root_of, row_of};
use super::pool::Limit;

/// With more rows than this, a phrase is common.
const COMMON: i64 = 4_000;

/// Up to this many texts are looked up one by one among the rows of a common phrase.
const FEW: usize = 500;

/// A root with its rank; a lower rank is better, and 0 is none.
type Ranked = (i64, f64);

/// Visits the roots, of those in `among`, whose rows contain all phrases: best first, and of equal ones the newest. A root's
/// rank is the sum of its best rows for the phrases that are not common. Ends when `visit` returns false.
///
/// # Errors
/// `STORE_UNAVAILABLE` at the time limit, `STORE_CORRUPT`, and those of `visit`.
pub(super) fn each_root(
    connection: &Connection,
    phrases: &[String],
    among: Option<&HashSet<i64>>,
    limit: &Limit,
    mut visit: impl FnMut(i64, f64) -> Result<bool>,
) -> Result<()> {
    let mut counted = Vec::with_capacity(phrases.len());
    for phrase in phrases {
        counted.push((rows_up_to(connection, phrase, COMMON + 1)?, phrase.as_str()));
    }
    counted.sort_by_key(|(rows, _)| *rows);
    let rare = counted.partition_point(|(rows, _)| *rows <= COMMON);
    let (rare, common): (Vec<&str>, Vec<&str>) =
        (counted[..rare].iter().map(|c| c.1).collect(), counted[rare..].iter().map(|c| c.1).collect());
    let candidates = match (rare.is_empty(), among) {
        (false, _) => best(connection, &rare, among, limit)?,
        (true, Some(among)) if among.len() <= FEW => {
            let mut roots: Vec<Ranked> = among.iter().map(|root| (*root, 0.0)).collect();
            roots.sort_by_key(|(root, _)| std::cmp::Reverse(*root));
            roots
        }
        (true, _) => return each_newest(connection, &common, among, limit, visit),
    };
    for (root, rank) in candidates {
        limit.check()?;
        if has_all(connection, &common, root)? && !visit(root, rank)? {
            break;
        }
    }
    Ok(())
}

/// Number of rows of a phrase, counted up to a bound.
pub(super) fn rows_up_to(connection: &Connection, phrase: &str, most: i64) -> Result<i64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM contents_fts WHERE contents_fts MATCH ? LIMIT ?)";
    Ok(connection.prepare_cached(sql)?.query_row(params![phrase, most], |row| row.get(0))?)
}

/// The roots that have all of these phrases, best first.
fn best(
    connection: &Connection,
    phrases: &[&str],
    among: Option<&HashSet<i64>>,
    limit: &Limit,
) -> Result<Vec<Ranked>> {
    let sql = "SELECT rowid, bm25(contents_fts) FROM contents_fts WHERE contents_fts MATCH ?";
    let mut find = connection.prepare_cached(sql)?;
    let mut all: Option<Vec<Ranked>> = None;
    for phrase in phrases {
        limit.check()?;
        let mut roots = best_rows(find.query([phrase])?)?;
        roots.retain(|(root, _)| among.is_none_or(|among| among.contains(root)));
        all = Some(match all {
            Some(all) => both(all, &roots),
            None => roots,
        });
    }
    let mut all = all.unwrap_or_default();
    all.sort_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    Ok(all)
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

/// True if the rows of a root contain all phrases.
fn has_all(connection: &Connection, phrases: &[&str], root: i64) -> Result<bool> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM contents_fts WHERE contents_fts MATCH ? AND rowid BETWEEN ? AND ?)";
    let mut find = connection.prepare_cached(sql)?;
    let (first, last) = (row_of(root, 0), row_of(root, FAMILY - 1));
    for phrase in phrases {
        if !find.query_row(params![phrase, first, last], |row| row.get::<_, bool>(0))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Visits the roots that have all of these phrases, the newest first, and reads no more rows than it needs.
fn each_newest(
    connection: &Connection,
    phrases: &[&str],
    among: Option<&HashSet<i64>>,
    limit: &Limit,
    mut visit: impl FnMut(i64, f64) -> Result<bool>,
) -> Result<()> {
    let sql = "SELECT rowid FROM contents_fts WHERE contents_fts MATCH ? ORDER BY rowid DESC";
    let mut finds =
        phrases.iter().map(|_| connection.prepare_cached(sql)).collect::<rusqlite::Result<Vec<_>>>()?;
    let mut streams = Vec::with_capacity(phrases.len());
    for (find, phrase) in finds.iter_mut().zip(phrases) {
        streams.push((find.query([phrase])?, i64::MAX));
    }
    let mut wanted = i64::MAX - 1;
    loop {
        limit.check()?;
        let mut is_everywhere = true;
        for (rows, root) in &mut streams {
            while *root > wanted {
                let Some(row) = rows.next()? else { return Ok(()) };
                *root = root_of(row.get(0)?);
            }
            is_everywhere &= *root == wanted;
            wanted = *root;
        }
        if is_everywhere {
            if among.is_none_or(|among| among.contains(&wanted)) && !visit(wanted, 0.0)? {
                return Ok(());
            }
            wanted -= 1;
        }
    }
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
    use std::sync::atomic::{AtomicU64, Ordering};

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

    fn found_among(connection: &Connection, phrases: &[&str], among: Option<&HashSet<i64>>) -> Vec<i64> {
        let phrases: Vec<String> = phrases.iter().map(|phrase| format!("\"{phrase}\"")).collect();
        let limit = Limit::new(Arc::default());
        let mut found = Vec::new();
        each_root(connection, &phrases, among, &limit, |root, _| {
            found.push(root);
            Ok(true)
        })
        .unwrap();
        found
    }

    fn found(connection: &Connection, phrases: &[&str]) -> Vec<i64> {
        found_among(connection, phrases, None)
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
    fn leaves_out_rows_outside_the_selection() {
        let connection = index(COMMON + 1_500);
        let few = HashSet::from([3, 7, 99_999]);
        assert_eq!(found_among(&connection, &["all"], Some(&few)), [7, 3]);
        assert_eq!(found_among(&connection, &["all", "n7"], Some(&few)), [7]);
        assert!(found_among(&connection, &["all", "half"], Some(&few)).is_empty());
        let more: HashSet<i64> = (1..=FEW as i64 + 1).collect();
        assert_eq!(
            found_among(&connection, &["all"], Some(&more)),
            (1..=FEW as i64 + 1).rev().collect::<Vec<_>>()
        );
    }

    #[test]
    fn reads_only_the_newest_of_many_texts_with_a_word() {
        let phrases = ["\"all\"".to_owned(), "\"half\"".to_owned()];
        let limit = Limit::new(Arc::default());
        let steps = [2 * COMMON + 10, 4 * COMMON].map(|texts| {
            let mut connection = index(texts);
            let steps = Arc::new(AtomicU64::new(0));
            let counter = Arc::clone(&steps);
            let count = move || {
                counter.fetch_add(1, Ordering::Relaxed);
                false
            };
            connection.progress_handler(1, Some(count)).unwrap();
            let mut found = Vec::new();
            each_root(&connection, &phrases, None, &limit, |root, rank| {
                found.push((root, rank));
                Ok(found.len() < 3)
            })
            .unwrap();
            assert_eq!(found, [(texts, 0.0), (texts - 2, 0.0), (texts - 4, 0.0)]);
            steps.load(Ordering::Relaxed)
        });
        assert_eq!(steps[0], steps[1], "steps of SQLite at half and at the whole number of texts");
    }
}
