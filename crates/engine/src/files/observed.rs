//! The result of a look at a file, and the files that a tool call read, wrote or named. The engine finds them, so that this
//! works in every harness.

use crate::session::Session;
use crate::session::blocking::blocking;
use crate::session::client::Client;
use crate::session::commit::Work;
use crate::session::error::Result;
use crate::session::paths::Disk;
use context_evidence::{Evidence, whole_read, whole_write};
use context_model::id::ObjectId;
use context_model::object::Status;
use context_tools::{Candidate, Certainty};
use serde_json::{Map, Value};

pub(crate) use super::look::{ObservedFile, file_id};

use super::index::{FileEntry, FileReader, ReadFor, prepare};
use super::reading::FileState;

/// The files that a tool call shows, as found on disk.
#[derive(Default)]
pub(crate) struct Observed {
    /// The files, and how each enters the session.
    pub files: Vec<(ObservedFile, FileEntry)>,
    /// The evidence in the call's result, as far as it is known.
    pub evidence: Option<Evidence>,
    /// The outcome of the call's output.
    pub outcome: Option<String>,
    /// The call was made long ago: the disk no longer has the content that it left.
    pub is_late: bool,
}

impl FileReader {
    /// Looks at the files that a tool call concerns. Files that can't be looked at are left out: an observation is a by-product
    /// and never makes a tool call fail.
    pub(crate) async fn observe(
        &self,
        tool: &str,
        args: &Map<String, Value>,
        output: &str,
        status: Status,
    ) -> Result<Observed> {
        let found = context_tools::observe(tool, args, output, status == Status::Ok);
        if found.is_empty() {
            return Ok(Observed::default());
        }
        // A shell command is not the agent's own read or write: its files are looked at, but not activated.
        let own = !tool.eq_ignore_ascii_case("bash");
        let (read, written) = if own {
            (FileEntry::Read, FileEntry::Written)
        } else {
            (FileEntry::Touched, FileEntry::Touched)
        };
        let touched =
            [(found.reads, read), (found.writes, written), (found.discovered, FileEntry::Discovered)];
        // A file that a command shows would count as read; see `Inner::shown_by_shell`.
        let is_shown = context_tools::shown_by_shell(tool, args).is_some();
        let file_reader = self.clone();
        let mut files = blocking(tool, move || {
            let candidates =
                touched.into_iter().flat_map(|(list, entry)| list.into_iter().map(move |c| (c, entry)));
            candidates
                .filter_map(|(candidate, entry)| file_reader.read_candidate(&candidate, entry, is_shown))
                .collect::<Vec<_>>()
        })
        .await?;
        for (seen, entry) in files.iter_mut().filter(|(seen, _)| seen.place.disk == Disk::Inside) {
            let text = match entry {
                FileEntry::Read => whole_read(args, output),
                FileEntry::Written => whole_write(args),
                _ => None,
            };
            match text.map(|text| text.as_bytes().to_vec()) {
                Some(bytes) => {
                    let limit = self.client.options.max_text_bytes;
                    seen.state = blocking(tool, move || FileState::from_bytes(bytes, limit)).await?;
                }
                None => *entry = FileEntry::Discovered,
            }
        }
        Ok(Observed { files, ..Observed::default() })
    }

    /// Looks at one candidate; `None` unless the client sees a regular file there, or the file is inside a sandbox.
    fn read_candidate(
        &self,
        candidate: &Candidate,
        entry: FileEntry,
        is_shown: bool,
    ) -> Option<(ObservedFile, FileEntry)> {
        let paths = &self.client.paths;
        let raw = candidate.path.strip_prefix('@').unwrap_or(&candidate.path);
        let place = match &candidate.base {
            Some(base) => paths.resolve_from(base, raw),
            None => paths.resolve(raw),
        }
        .ok()?;
        let Disk::At(path) = &place.disk else {
            // Files in a sandbox can't be looked at, so the tool's word is enough to know the path.
            let certain = candidate.kind == Certainty::Named && place.disk == Disk::Inside;
            return certain.then(|| (ObservedFile::discovered(place), entry));
        };
        if entry == FileEntry::Discovered {
            let is_file = std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file());
            return is_file.then(|| (ObservedFile::discovered(place), entry));
        }
        let need = if entry == FileEntry::Touched && !is_shown { ReadFor::Change } else { ReadFor::Text };
        let seen = self.read_now(place, need);
        if seen.state.is_file() {
            return Some((seen, entry));
        }
        // A command may have removed it. That matters only for known files, and is decided there. A file that was read or
        // written may be gone by the time the call is recorded; the model knows it anyway.
        let is_known = matches!(entry, FileEntry::Read | FileEntry::Written);
        let entry = if is_known { FileEntry::Gone } else { FileEntry::Tracked };
        seen.state.is_gone().then_some((seen, entry))
    }
}

impl Observed {
    /// Adds the observed files to a transaction in the making, as [`prepare`] does. Returns the objects of the files.
    pub(crate) fn add(&self, client: &Client, session: &Session, work: &mut Work) -> Vec<ObjectId> {
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
