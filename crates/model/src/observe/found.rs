//! The parts of an observation, and how they are collected.

use std::collections::HashMap;

/// A path that a tool call names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Candidate {
    /// The path as the agent or the tool wrote it: absolute, relative, or with a leading `~`.
    pub path: String,
    /// The directory that a relative path is relative to, as the agent wrote it and itself relative to the
    /// working directory; `None` is the working directory.
    pub base: Option<String>,
    /// How certain it is that this is a path.
    pub kind: Kind,
}

/// How certain it is that a candidate is the path of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A tool's path argument, or a line of a listing.
    Named,
    /// A word that looks like a path. It only counts if the file exists.
    Guessed,
}

/// The files that a tool call touched. Each path is in only one list: `writes`, otherwise `reads`, otherwise `discovered`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// Files whose text the output shows, in full or in part.
    pub reads: Vec<Candidate>,
    /// Files that the call may have created, changed, moved or deleted.
    pub writes: Vec<Candidate>,
    /// Files whose name the model has now seen.
    pub discovered: Vec<Candidate>,
}

impl Observation {
    /// Returns whether nothing was observed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many candidates there are.
    pub fn len(&self) -> usize {
        self.reads.len() + self.writes.len() + self.discovered.len()
    }
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touch {
    Discovered,
    Read,
    Write,
}

/// Candidates in the order in which they were found, each once, with the strongest action on it.
pub(super) struct Found {
    limit: usize,
    order: Vec<(Candidate, Touch)>,
    places: HashMap<(String, Option<String>), usize>,
}

impl Found {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, order: Vec::new(), places: HashMap::new() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.order.len() >= self.limit
    }

    pub(super) fn add(&mut self, touch: Touch, candidate: Option<Candidate>) {
        let Some(candidate) = candidate else { return };
        let key = (candidate.path.clone(), candidate.base.clone());
        if let Some(place) = self.places.get(&key) {
            let (known, strongest) = &mut self.order[*place];
            *strongest = touch.max(*strongest);
            known.kind = candidate.kind.min(known.kind);
        } else if !self.is_full() {
            self.places.insert(key, self.order.len());
            self.order.push((candidate, touch));
        }
    }

    pub(super) fn finish(self) -> Observation {
        let mut observation = Observation::default();
        for (candidate, touch) in self.order {
            match touch {
                Touch::Read => observation.reads.push(candidate),
                Touch::Write => observation.writes.push(candidate),
                Touch::Discovered => observation.discovered.push(candidate),
            }
        }
        observation
    }
}
