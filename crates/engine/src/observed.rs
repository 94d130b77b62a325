//! Files that a tool call read, wrote or named (SSOT 5.6): found by the engine, so that every harness gets it.

use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::object::Status;
use context_model::observe::{self, Candidate, Kind};
use context_model::time::TxId;

use crate::blocking::blocking;
use crate::engine::Inner;
use crate::error::Result;
use crate::files::{self, FileState};
use crate::ingest::Entry;
use crate::paths::{Disk, Paths};
use crate::record::ToolcallInput;
use crate::seen::Seen;
use crate::state::{State, Work};
use crate::tracking::Tracking;

/// What a tool call shows of files, looked at on disk.
#[derive(Default)]
pub(crate) struct Observed {
    pub files: Vec<(Seen, Entry)>,
}

impl Inner {
    /// Looks at the files that a tool call concerns. What can't be looked at is left out: an observation is a
    /// by-product and never makes a tool call fail.
    pub async fn observe(&self, input: &ToolcallInput) -> Result<Observed> {
        let ok = input.status == Status::Ok;
        let found = observe::observe(&input.tool, &input.args, &input.content, ok);
        if found.is_empty() {
            return Ok(Observed::default());
        }
        // A shell command is not the agent's own read or write: it is looked at, and activates nothing.
        let own = !input.tool.eq_ignore_ascii_case("bash");
        let (read, written) =
            if own { (Entry::Read, Entry::Written) } else { (Entry::Touched, Entry::Touched) };
        let touched = [(found.reads, read), (found.writes, written), (found.discovered, Entry::Discovered)];
        let look = Look {
            paths: self.paths.clone(),
            tracking: Arc::clone(&self.tracking),
            limit: self.options.max_text_bytes,
            since: self.newest(),
        };
        let files = blocking(&input.tool, move || {
            let candidates =
                touched.into_iter().flat_map(|(list, entry)| list.into_iter().map(move |c| (c, entry)));
            candidates.filter_map(|(candidate, entry)| look.at(&candidate, entry)).collect::<Vec<_>>()
        })
        .await?;
        Ok(Observed { files })
    }

    /// Adds what was observed to a transaction in the making, as [`Inner::prepare`] does. Returns the objects of the
    /// files.
    pub fn add_observed(&self, state: &mut State, observed: &Observed, work: &mut Work) -> Vec<ObjectId> {
        let mut ids = Vec::with_capacity(observed.files.len());
        for (seen, entry) in &observed.files {
            let result = self.prepare(state, seen, *entry, work);
            let exists = state.catalog.get(&result.id).is_some()
                || work.documents.iter().any(|document| *document.id() == result.id);
            if exists && !ids.contains(&result.id) {
                ids.push(result.id);
            }
        }
        ids
    }
}

impl State {
    /// The model knows what it has written itself.
    pub fn know_written(&mut self, observed: &Observed) {
        for (seen, entry) in &observed.files {
            if *entry == Entry::Written
                && let Some(hash) = self.hash_of(&seen.id)
            {
                self.know(&seen.id, hash);
            }
        }
    }
}

/// What looking at files takes.
struct Look {
    paths: Paths,
    tracking: Arc<Tracking>,
    limit: u64,
    /// The newest transaction that the client knew before.
    since: TxId,
}

impl Look {
    /// Looks at one candidate; `None` where there is no regular file that the client can see.
    fn at(&self, candidate: &Candidate, entry: Entry) -> Option<(Seen, Entry)> {
        let raw = candidate.path.strip_prefix('@').unwrap_or(&candidate.path);
        let place = match &candidate.base {
            Some(base) => self.paths.resolve_from(base, raw),
            None => self.paths.resolve(raw),
        }
        .ok()?;
        let Disk::At(path) = &place.disk else {
            // Nothing of a sandbox can be looked at; a tool's own word for it is enough to know the path.
            let certain = candidate.kind == Kind::Named && place.disk == Disk::Inside;
            return certain.then(|| (Seen::discovered(place), Entry::Discovered));
        };
        if entry == Entry::Discovered {
            let is_file = std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file());
            return is_file.then(|| (Seen::discovered(place), entry));
        }
        self.tracking.track(path, &place.source);
        match files::read(path, self.limit) {
            state if state.is_file() => Some((Seen::of(place, state, Some(self.since))?, entry)),
            // A command may have removed it: that matters where the file is known, and is decided there.
            FileState::Gone if entry != Entry::Read => {
                Some((Seen::of(place, FileState::Gone, Some(self.since))?, Entry::Tracked))
            }
            _ => None,
        }
    }
}
