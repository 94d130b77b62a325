//! At which model call each segment becomes stale. A call's cost follows what becomes stale at it, never the history.

use std::collections::{BTreeSet, HashMap};

use super::segment::Form;

/// The model call from which a segment is stale, counted from the first visible one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// While the provider has the request cached.
    pub warm: u64,
    /// On a dead cache; never later.
    pub dead: u64,
}

/// What decides when a segment leaves.
pub(crate) enum Departure {
    /// It stays, and so does its answer.
    Held,
    /// It has no shorter form of its own.
    Last,
    /// It takes each of these forms once that is due.
    Ages(Vec<(Form, Due)>),
}

/// The segments that become stale by age, in the order of the calls at which they do.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    due: HashMap<usize, Due>,
    warm: BTreeSet<(u64, usize)>,
    dead: BTreeSet<(u64, usize)>,
}

impl Schedule {
    /// Sets when the segment at a place becomes stale; `None`: never by age.
    pub fn set(&mut self, place: usize, due: Option<Due>) {
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

    /// The segments that are stale at this call, whatever the provider has cached.
    pub fn due(&self, call: u64) -> Vec<usize> {
        until(&self.warm, call)
    }

    /// The segments that are stale at this call if the cache is dead.
    pub fn due_on_a_dead_cache(&self, call: u64) -> Vec<usize> {
        until(&self.dead, call)
    }
}

fn until(queue: &BTreeSet<(u64, usize)>, call: u64) -> Vec<usize> {
    queue.iter().take_while(|(at, _)| *at <= call).map(|(_, place)| *place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_finds_what_is_due_and_nothing_else() {
        let mut schedule = Schedule::default();
        schedule.set(0, Some(Due { warm: 9, dead: 4 }));
        schedule.set(1, Some(Due { warm: 5, dead: 2 }));
        schedule.set(2, Some(Due { warm: 5, dead: 5 }));
        assert!(schedule.due(4).is_empty());
        assert_eq!(schedule.due_on_a_dead_cache(4), [1, 0]);
        assert_eq!(schedule.due(5), [1, 2]);
        schedule.set(1, Some(Due { warm: 20, dead: 10 }));
        schedule.set(2, None);
        schedule.set(2, None);
        assert_eq!((schedule.due(9), schedule.due_on_a_dead_cache(9)), (vec![0], vec![0]));
    }
}
