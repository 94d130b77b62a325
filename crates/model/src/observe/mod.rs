//! Which files a tool call touched, read out of its arguments and its output.
//!
//! The rules name candidates and never look at a disk: the caller resolves each against the agent's working
//! directory and its mounts, and drops what is no file there. So a rule here may name a path that does not
//! exist, but should miss none that the model has clearly seen, and its answer is bounded whatever the input.

mod bash;
mod listing;
mod looks;
mod output;
mod shell;

pub(crate) use listing::match_path;
use serde_json::{Map, Value};

/// At most so many paths are taken from the output of `ls`, `find` or `grep` (Pi lists up to 1,000).
pub const MAX_LISTED: usize = 1_000;

/// At most so many paths are taken from one `bash` call, its command first.
pub const MAX_FROM_BASH: usize = 50;

/// A path that a tool call names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Candidate {
    /// The path as the agent or the tool wrote it: absolute, relative, or with a leading `~`.
    pub path: String,
    /// The directory that a relative path is relative to, as the agent wrote it and itself relative to the
    /// working directory; `None` is the working directory.
    pub base: Option<String>,
    /// How sure it is that this is a path.
    pub kind: Kind,
}

/// How sure it is that a candidate is the path of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A tool's path argument, or a line of a listing.
    Named,
    /// A word that looks like a path. Only an existing file makes it one.
    Guessed,
}

/// The files that a tool call touched. A path stands in one list only: `writes`, else `reads`, else
/// `discovered`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// Files whose text (or a part of it) the output shows.
    pub reads: Vec<Candidate>,
    /// Files that the call may have created, changed, moved or deleted.
    pub writes: Vec<Candidate>,
    /// Files whose name the model has now seen.
    pub discovered: Vec<Candidate>,
}

impl Observation {
    /// Whether nothing was observed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many candidates there are.
    pub fn len(&self) -> usize {
        self.reads.len() + self.writes.len() + self.discovered.len()
    }
}

/// What a tool call with these arguments and this output touched. `ok` is false where the tool failed.
///
/// Tools are known by the names that Pi gives them, in any case; a tool with another name touches nothing.
/// A path argument is `path`, or one of the names that other harnesses use (`file_path`, `filePath`).
pub fn observe(tool: &str, args: &Map<String, Value>, output: &str, ok: bool) -> Observation {
    let named = || path_argument(args).map(|path| Candidate { path, base: None, kind: Kind::Named });
    let mut found = Found::new(MAX_LISTED);
    match tool.to_ascii_lowercase().as_str() {
        "read" if ok => found.add(Touch::Read, named()),
        "write" | "edit" if ok => found.add(Touch::Write, named()),
        "ls" if ok => listing::ls(&mut found, path_argument(args), output),
        "find" | "glob" if ok => listing::find(&mut found, path_argument(args), output),
        "grep" if ok => listing::grep(&mut found, path_argument(args), output),
        // A command that failed has still read and written.
        "bash" => {
            found = Found::new(MAX_FROM_BASH);
            if let Some(Value::String(command)) = args.get("command") {
                bash::bash(&mut found, command, output);
            }
        }
        _ => {}
    }
    found.finish()
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Touch {
    Discovered,
    Read,
    Write,
}

/// Candidates in the order in which they were met, each once, with the strongest thing done to it.
struct Found {
    limit: usize,
    order: Vec<(Candidate, Touch)>,
    places: std::collections::HashMap<(String, Option<String>), usize>,
}

impl Found {
    fn new(limit: usize) -> Self {
        Self { limit, order: Vec::new(), places: std::collections::HashMap::new() }
    }

    fn is_full(&self) -> bool {
        self.order.len() >= self.limit
    }

    fn add(&mut self, touch: Touch, candidate: Option<Candidate>) {
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

    fn finish(self) -> Observation {
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

/// The path argument of a file tool, without the `@` that Pi allows in front of it.
fn path_argument(args: &Map<String, Value>) -> Option<String> {
    let path = ["path", "file_path", "filePath"].iter().find_map(|name| args.get(*name)?.as_str())?;
    let path = path.strip_prefix('@').unwrap_or(path);
    (looks::can_be_path(path) && !looks::is_object(path)).then(|| path.to_owned())
}
