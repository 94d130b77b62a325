//! The files that a tool call touched, found in its arguments and its output.
//!
//! The rules name candidates and never access a disk. The caller resolves each against the agent's working directory and its
//! mounts, and drops those that are not files. So a rule may name a path that does not exist, but it should find every path that
//! the model has clearly seen. The number of candidates is limited for any input.

mod bash;
mod effect;
mod looks;
mod output;
mod shell;
mod shown;

use std::collections::HashMap;

pub(crate) use bash::programs;
pub use effect::has_effect;
pub(crate) use looks::looks_like_file;
pub(crate) use output::{entries, match_path};
use serde_json::{Map, Value};
pub(crate) use shown::shown_by_command;
pub use shown::{Shown, shown_by_shell};

use crate::arguments::PATH_ARGUMENTS;

/// The maximum number of paths that are taken from the output of `ls`, `find` or `grep` (Pi lists up to 1,000).
pub const MAX_LISTED: usize = 1_000;

/// The maximum number of paths that are taken from one `bash` call, starting with its command.
pub const MAX_FROM_BASH: usize = 50;

/// The files that a tool call with these arguments and this output touched. `ok` is false if the tool failed.
///
/// Tools are recognized by Pi's names, ignoring case; a tool with any other name touches nothing. A path argument is
/// `path`, or one of the names that other harnesses use (`file_path`, `filePath`).
pub fn observe(tool: &str, args: &Map<String, Value>, output: &str, ok: bool) -> TouchedFiles {
    let named = || path_argument(args).map(|path| Candidate { path, base: None, kind: Certainty::Named });
    let mut found = Candidates::new(MAX_LISTED);
    match tool.to_ascii_lowercase().as_str() {
        "read" if ok => found.add(TouchKind::Read, named()),
        "write" | "edit" if ok => found.add(TouchKind::Write, named()),
        "ls" if ok => output::ls(&mut found, path_argument(args), output),
        "find" | "glob" if ok => output::find(&mut found, path_argument(args), output),
        "grep" if ok => output::grep(&mut found, path_argument(args), output),
        // A command that failed has still read and written.
        "bash" => {
            found = Candidates::new(MAX_FROM_BASH);
            if let Some(Value::String(command)) = args.get("command") {
                bash::bash(&mut found, command, output);
            }
        }
        _ => {}
    }
    found.finish()
}

/// The path argument of a file tool, without the leading `@` that Pi allows.
fn path_argument(args: &Map<String, Value>) -> Option<String> {
    let path = PATH_ARGUMENTS.iter().find_map(|name| args.get(*name)?.as_str())?;
    let path = path.strip_prefix('@').unwrap_or(path);
    (looks::can_be_path(path) && !looks::is_object(path)).then(|| path.to_owned())
}

/// A path that a tool call names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Candidate {
    /// The path as the agent or the tool wrote it: absolute, relative, or with a leading `~`.
    pub path: String,
    /// The directory that a relative path is relative to, as the agent wrote it and itself relative to the
    /// working directory; `None` is the working directory.
    pub base: Option<String>,
    /// The certainty that this is a path.
    pub kind: Certainty,
}

/// The certainty that a candidate is the path of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Certainty {
    /// A tool's path argument, or a line of a listing.
    Named,
    /// A word that looks like a path. It only counts if the file exists.
    Guessed,
}

/// The files that a tool call touched. Each path is in only one list: `writes`, otherwise `reads`, otherwise `discovered`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TouchedFiles {
    /// Files whose text the output shows, in full or in part.
    pub reads: Vec<Candidate>,
    /// Files that the call may have created, changed, moved or deleted.
    pub writes: Vec<Candidate>,
    /// Files whose name the model has now seen.
    pub discovered: Vec<Candidate>,
}

impl TouchedFiles {
    /// True if nothing was observed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of candidates.
    pub fn len(&self) -> usize {
        self.reads.len() + self.writes.len() + self.discovered.len()
    }
}

/// The kind of action on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TouchKind {
    Discovered,
    Read,
    Write,
}

/// Candidates in the order in which they were found, each once, with the strongest action on it.
pub(super) struct Candidates {
    limit: usize,
    order: Vec<(Candidate, TouchKind)>,
    places: HashMap<(String, Option<String>), usize>,
}

impl Candidates {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, order: Vec::new(), places: HashMap::new() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.order.len() >= self.limit
    }

    pub(super) fn add(&mut self, touch: TouchKind, candidate: Option<Candidate>) {
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

    pub(super) fn finish(self) -> TouchedFiles {
        let mut observation = TouchedFiles::default();
        for (candidate, touch) in self.order {
            match touch {
                TouchKind::Read => observation.reads.push(candidate),
                TouchKind::Write => observation.writes.push(candidate),
                TouchKind::Discovered => observation.discovered.push(candidate),
            }
        }
        observation
    }
}
