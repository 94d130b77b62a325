//! Files that a tool call read, wrote or named (SSOT 5.6): found by the engine, so that every harness gets it.

use std::sync::Arc;

use context_model::id::ObjectId;
use context_model::index::Observation;
use context_model::object::Status;
use context_model::observe::{self, Candidate, Kind};

use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::files::{self, FileState};
use crate::ingest::{Entry, Seen, file_id};
use crate::paths::{Disk, Paths};
use crate::record::ToolcallInput;
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
        let (paths, tracking, limit) =
            (self.paths.clone(), Arc::clone(&self.tracking), self.options.max_text_bytes);
        let files = tokio::task::spawn_blocking(move || {
            let candidates =
                touched.into_iter().flat_map(|(list, entry)| list.into_iter().map(move |c| (c, entry)));
            candidates
                .filter_map(|(candidate, entry)| look(&paths, &tracking, &candidate, entry, limit))
                .collect::<Vec<_>>()
        })
        .await
        .map_err(|e| EngineError::Io { path: input.tool.clone(), reason: e.to_string() })?;
        Ok(Observed { files })
    }

    /// Adds what was observed to a transaction in the making. Returns the objects of the files.
    pub async fn add_observed(
        &self,
        state: &mut State,
        observed: &Observed,
        work: &mut Work,
    ) -> Result<Vec<ObjectId>> {
        if !observed.files.is_empty() {
            self.refresh(state).await?;
        }
        self.learn(state, observed.files.iter().map(|(seen, _)| file_id(&seen.place.source))).await?;
        let mut ids = Vec::with_capacity(observed.files.len());
        for (seen, entry) in &observed.files {
            let result = self.prepare_one(state, seen, *entry, work);
            let exists = state.catalog.get(&result.id).is_some()
                || work.documents.iter().any(|document| *document.id() == result.id);
            if exists && !ids.contains(&result.id) {
                ids.push(result.id);
            }
        }
        Ok(ids)
    }
}

impl State {
    /// The model knows what it has written itself.
    pub fn know_written(&mut self, observed: &Observed) {
        for (seen, entry) in &observed.files {
            let id = file_id(&seen.place.source);
            if *entry == Entry::Written
                && let Some(hash) = self.hash_of(&id)
            {
                self.know(&id, hash);
            }
        }
    }
}

/// Looks at one candidate; `None` where there is no regular file that the client can see.
fn look(
    paths: &Paths,
    tracking: &Tracking,
    candidate: &Candidate,
    entry: Entry,
    limit: u64,
) -> Option<(Seen, Entry)> {
    let raw = candidate.path.strip_prefix('@').unwrap_or(&candidate.path);
    let place = match &candidate.base {
        Some(base) => paths.resolve_from(base, raw),
        None => paths.resolve(raw),
    }
    .ok()?;
    let Disk::At(path) = &place.disk else {
        // Nothing of a sandbox can be looked at; a tool's own word for it is enough to know the path.
        let certain = candidate.kind == Kind::Named && place.disk == Disk::Inside;
        let seen = Seen { place, observation: Observation::Discovered, reason: None };
        return certain.then_some((seen, Entry::Discovered));
    };
    if entry == Entry::Discovered {
        let is_file = std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file());
        let seen = Seen { place, observation: Observation::Discovered, reason: None };
        return is_file.then_some((seen, entry));
    }
    tracking.track(path, &place.source);
    match files::read(path, limit) {
        state if state.is_file() => {
            let reason = state.reason().map(str::to_owned);
            Some((Seen { place, observation: state.observation()?, reason }, entry))
        }
        // A command may have removed it: that matters where the file is known, and is decided there.
        FileState::Gone if entry != Entry::Read => {
            let reason = Some("was deleted".to_owned());
            Some((Seen { place, observation: Observation::Deleted, reason }, Entry::Tracked))
        }
        _ => None,
    }
}
