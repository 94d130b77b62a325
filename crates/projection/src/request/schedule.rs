//! The calls at which segments become stale by age, and the rule by which a segment leaves.

use std::collections::{BTreeSet, HashMap};

use super::segment::Form;

/// The model call from which a segment is stale, counted from the first visible one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RipeAt {
    /// While the provider has the request cached.
    pub warm: u64,
    /// On a dead cache; never later.
    pub dead: u64,
}

/// The rule that decides when a segment leaves.
pub(crate) enum Departure {
    /// It stays, and so does its answer.
    Held,
    /// It has no shorter form.
    Last,
    /// It takes each of these forms once that is due.
    Ages(Vec<(Form, RipeAt)>),
}

/// The segments that become stale by age, in the order of the calls at which they do.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    due: HashMap<usize, RipeAt>,
    warm: BTreeSet<(u64, usize)>,
    dead: BTreeSet<(u64, usize)>,
}

impl Schedule {
    /// Sets the call at which the segment at a place becomes stale; `None`: never by age.
    pub(super) fn set(&mut self, place: usize, due: Option<RipeAt>) {
        if let Some(before) = self.due.remove(&place) {
            self.warm.remove(&(before.warm, place));
            self.dead.remove(&(before.dead, place));
        }
        if let Some(due) = due {
            self.due.insert(place, due);
            self.warm.insert((due.warm, place));
            self.dead.insert((due.dead, place));
        }
    }

    /// The segments that have a time, in any order.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.due.keys().copied()
    }

    /// The first call at which a segment becomes stale while the provider has the request cached.
    pub(super) fn first(&self) -> Option<u64> {
        self.warm.first().map(|(call, _)| *call)
    }

    /// Returns the segments that are stale at this call, with any state of the provider's cache.
    pub(super) fn due(&self, call: u64) -> Vec<usize> {
        until(&self.warm, call)
    }

    /// The segments that are stale at this call if the cache is dead.
    pub(super) fn due_on_a_dead_cache(&self, call: u64) -> Vec<usize> {
        until(&self.dead, call)
    }
}

fn until(queue: &BTreeSet<(u64, usize)>, call: u64) -> Vec<usize> {
    queue.iter().take_while(|(at, _)| *at <= call).map(|(_, place)| *place).collect()
}
