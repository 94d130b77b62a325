//! Files that a tool call read, wrote or named. The engine finds them, so that this works in every
//! harness.

use context_knowledge::evidence::Evidence;
use context_model::id::ObjectId;
use context_model::object::Status;
use context_model::observe::{self, Candidate, Kind};
use context_session::Session;
use context_session::blocking::blocking;
use context_session::client::Client;
use context_session::commit::Work;
use context_session::error::Result;
use context_session::paths::Disk;
use serde_json::{Map, Value};

use super::index::{Entry, FileReader, Need, prepare};
use super::seen::Seen;

/// The files that a tool call shows, as found on disk.
#[derive(Default)]
pub struct Observed {
    /// The files, and how each enters the session.
    pub files: Vec<(Seen, Entry)>,
    /// What the call's result shows, as far as that is known.
    pub evidence: Option<Evidence>,
    /// What the call's output came to.
    pub outcome: Option<String>,
    /// The call was made long ago: what is on disk now is not what it has left.
    pub is_late: bool,
}

impl FileReader {
    /// Looks at the files that a tool call concerns. What can't be looked at is left out: an observation is a
    /// by-product and never makes a tool call fail.
    pub async fn observe(
        &self,
        tool: &str,
        args: &Map<String, Value>,
        output: &str,
        status: Status,
    ) -> Result<Observed> {
        let found = observe::observe(tool, args, output, status == Status::Ok);
        if found.is_empty() {
            return Ok(Observed::default());
        }
        // A shell command is not the agent's own read or write: its files are looked at, but not activated.
        let own = !tool.eq_ignore_ascii_case("bash");
        let (read, written) =
            if own { (Entry::Read, Entry::Written) } else { (Entry::Touched, Entry::Touched) };
        let touched = [(found.reads, read), (found.writes, written), (found.discovered, Entry::Discovered)];
        // What a command shows as a read would counts as read; see `Inner::shown_by_shell`.
        let is_shown = observe::shown_by_shell(tool, args).is_some();
        let file_reader = self.clone();
        let files = blocking(tool, move || {
            let candidates =
                touched.into_iter().flat_map(|(list, entry)| list.into_iter().map(move |c| (c, entry)));
            candidates
                .filter_map(|(candidate, entry)| file_reader.look_at(&candidate, entry, is_shown))
                .collect::<Vec<_>>()
        })
        .await?;
        Ok(Observed { files, ..Observed::default() })
    }

    /// Looks at one candidate; `None` where there is no regular file that the client can see.
    fn look_at(&self, candidate: &Candidate, entry: Entry, is_shown: bool) -> Option<(Seen, Entry)> {
        let paths = &self.client.paths;
        let raw = candidate.path.strip_prefix('@').unwrap_or(&candidate.path);
        let place = match &candidate.base {
            Some(base) => paths.resolve_from(base, raw),
            None => paths.resolve(raw),
        }
        .ok()?;
        let Disk::At(path) = &place.disk else {
            // Files in a sandbox can't be looked at, so the tool's word is enough to know the path.
            let certain = candidate.kind == Kind::Named && place.disk == Disk::Inside;
            return certain.then(|| (Seen::discovered(place), Entry::Discovered));
        };
        if entry == Entry::Discovered {
            let is_file = std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file());
            return is_file.then(|| (Seen::discovered(place), entry));
        }
        let need = if entry == Entry::Touched && !is_shown { Need::Change } else { Need::Text };
        let (state, since) = self.look_now(&place, need);
        match state {
            state if state.is_file() => Some((Seen::of(place, state, since).ok()?, entry)),
            // A command may have removed it. That matters only for known files, and is decided there. What was read or written
            // may be gone by the time the call is recorded; the model knows it all the same.
            state if state.is_gone() => {
                let is_known = matches!(entry, Entry::Read | Entry::Written);
                let entry = if is_known { Entry::Gone } else { Entry::Tracked };
                Some((Seen::of(place, state, since).ok()?, entry))
            }
            _ => None,
        }
    }
}

impl Observed {
    /// Adds what was observed to a transaction in the making, as [`prepare`] does. Returns the objects of the files.
    pub fn add(&self, client: &Client, session: &mut Session, work: &mut Work) -> Vec<ObjectId> {
        let mut ids = Vec::with_capacity(self.files.len());
        for (seen, entry) in &self.files {
            let result = prepare(client, session, seen, *entry, work);
            let exists = session.catalog.get(&result.id).is_some() || work.documents.has(&result.id);
            if exists && !ids.contains(&result.id) {
                ids.push(result.id);
            }
        }
        ids
    }
}
