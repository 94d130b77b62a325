//! Two texts compared line by line, in a time that grows with their length and no faster.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use similar::udiff::UnifiedHunkHeader;
use similar::{Algorithm, DiffOp, DiffTag, capture_diff, group_diff_ops};

/// The shortest difference is looked for if at most this many lines of both texts lie between their common beginning and end.
const MOST_LINES: usize = 20_000;

/// In a coarse comparison, it is looked for between two lines that occur once if there are at most this many lines.
const MOST_BETWEEN: usize = 400;

/// The lines around a change that a unified diff shows.
const CONTEXT: usize = 3;

/// Two texts and their common lines.
pub(crate) struct Compared<'t> {
    old: Vec<&'t str>,
    new: Vec<&'t str>,
    ops: Vec<DiffOp>,
    /// True if it may be longer than the shortest difference: too many lines have changed to look for that one.
    pub(crate) is_coarse: bool,
}

impl<'t> Compared<'t> {
    /// Compares two texts.
    pub(crate) fn of(old: &'t str, new: &'t str) -> Self {
        let (old, new): (Vec<_>, Vec<_>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let head = common(old.iter().zip(&new));
        let tail = common(old[head..].iter().rev().zip(new[head..].iter().rev()));
        let middle = (head..old.len() - tail, head..new.len() - tail);
        let is_coarse = middle.0.len() + middle.1.len() > MOST_LINES;
        let (old_ids, new_ids) = numbered(&old, &new);
        let ops = if is_coarse {
            let mut coarse = Coarse { old: &old_ids, new: &new_ids, ops: Vec::new() };
            coarse.equal(0, 0, head);
            coarse.compare(middle.0, middle.1);
            coarse.equal(old.len() - tail, new.len() - tail, tail);
            coarse.ops
        } else {
            exact(&old_ids, 0..old.len(), &new_ids, 0..new.len())
        };
        Self { old, new, ops, is_coarse }
    }

    /// Returns a unified diff with three lines of context; empty if the texts are equal.
    pub(crate) fn unified(&self, old_name: &str, new_name: &str) -> String {
        let mut text = String::new();
        for hunk in group_diff_ops(self.ops.clone(), CONTEXT) {
            if text.is_empty() {
                let _ = writeln!(text, "--- {old_name}\n+++ {new_name}");
            }
            let _ = writeln!(text, "{}", UnifiedHunkHeader::new(&hunk));
            for change in hunk.iter().flat_map(|op| op.iter_changes(&self.old, &self.new)) {
                let line = change.value();
                let _ = write!(text, "{}{line}", change.tag());
                if !line.ends_with('\n') {
                    text.push_str("\n\\ No newline at end of file\n");
                }
            }
        }
        text
    }

    /// Returns the number of lines that were added and removed.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let changed = self.ops.iter().filter(|op| op.tag() != DiffTag::Equal);
        changed.fold((0, 0), |(added, removed), op| {
            (added + op.new_range().len(), removed + op.old_range().len())
        })
    }

    /// The lines of the new text that are in the old one, too, counted from 0.
    pub(crate) fn kept(&self) -> impl Iterator<Item = Range<usize>> {
        self.ops.iter().filter(|op| op.tag() == DiffTag::Equal).map(DiffOp::new_range)
    }
}

/// The number of pairs at the beginning whose two sides are equal.
fn common<'l>(pairs: impl Iterator<Item = (&'l &'l str, &'l &'l str)>) -> usize {
    pairs.take_while(|(old, new)| old == new).count()
}

/// The lines of two texts as numbers: equal lines have the same one.
fn numbered(old: &[&str], new: &[&str]) -> (Vec<u32>, Vec<u32>) {
    let mut numbers = HashMap::new();
    let mut number = |line| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(line).or_insert(next)
    };
    let old = old.iter().map(|line| number(*line)).collect();
    (old, new.iter().map(|line| number(*line)).collect())
}

/// The shortest difference between parts of two texts.
fn exact(old: &[u32], old_range: Range<usize>, new: &[u32], new_range: Range<usize>) -> Vec<DiffOp> {
    capture_diff(Algorithm::Myers, old, old_range, new, new_range)
}

/// A comparison around the lines that occur once in each text and stand in the same order in both.
struct Coarse<'n> {
    old: &'n [u32],
    new: &'n [u32],
    ops: Vec<DiffOp>,
}

impl Coarse<'_> {
    fn compare(&mut self, old: Range<usize>, new: Range<usize>) {
        let (mut old_at, mut new_at) = (old.start, new.start);
        for (old_anchor, new_anchor) in in_order(self.once(&old, &new)) {
            // It may be among the equal lines around the one before it.
            if old_anchor < old_at || new_anchor < new_at {
                continue;
            }
            let before = (old_at..old_anchor).rev().zip((new_at..new_anchor).rev());
            let before = before.take_while(|(old, new)| self.old[*old] == self.new[*new]).count();
            let behind = (old_anchor..old.end).zip(new_anchor..new.end);
            let behind = behind.take_while(|(old, new)| self.old[*old] == self.new[*new]).count();
            self.between(old_at..old_anchor - before, new_at..new_anchor - before);
            self.equal(old_anchor - before, new_anchor - before, before + behind);
            (old_at, new_at) = (old_anchor + behind, new_anchor + behind);
        }
        self.between(old_at..old.end, new_at..new.end);
    }

    /// The places of the lines that occur once in each range, in the order of the new text.
    fn once(&self, old: &Range<usize>, new: &Range<usize>) -> Vec<(usize, usize)> {
        // The number of times that a line occurs, and its last place.
        let places = |ids: &[u32], range: &Range<usize>| {
            let mut found = HashMap::<u32, (usize, usize)>::new();
            for at in range.clone() {
                let entry = found.entry(ids[at]).or_default();
                *entry = (entry.0 + 1, at);
            }
            found
        };
        let (in_old, in_new) = (places(self.old, old), places(self.new, new));
        let place = |at: usize| match (in_old.get(&self.new[at]), in_new.get(&self.new[at])) {
            (Some((1, place)), Some((1, _))) => Some((*place, at)),
            _ => None,
        };
        new.clone().filter_map(place).collect()
    }

    fn between(&mut self, old: Range<usize>, new: Range<usize>) {
        if old.len() + new.len() <= MOST_BETWEEN {
            self.ops.extend(exact(self.old, old, self.new, new));
            return;
        }
        let (old_index, old_len, new_index, new_len) = (old.start, old.len(), new.start, new.len());
        self.ops.push(match (old_len, new_len) {
            (0, _) => DiffOp::Insert { old_index, new_index, new_len },
            (_, 0) => DiffOp::Delete { old_index, old_len, new_index },
            _ => DiffOp::Replace { old_index, old_len, new_index, new_len },
        });
    }

    fn equal(&mut self, old_index: usize, new_index: usize, len: usize) {
        // Equal lines in a row are one step: a diff cuts it around its changes.
        match self.ops.last_mut() {
            Some(DiffOp::Equal { len: before, .. }) => *before += len,
            _ if len > 0 => self.ops.push(DiffOp::Equal { old_index, new_index, len }),
            _ => {}
        }
    }
}

/// The longest part of these pairs in which both places grow. The second ones grow already.
fn in_order(pairs: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    // The last pair of the best chain of each length, and the pair before each.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![None; pairs.len()];
    for (at, (old, _)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].0 < *old);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() { ends.push(at) } else { ends[length] = at }
    }
    let mut chain: Vec<_> =
        std::iter::successors(ends.last().copied(), |at| before[*at]).map(|at| pairs[at]).collect();
    chain.reverse();
    chain
}

#[cfg(test)]
#[path = "compared_tests.rs"]
mod tests;
