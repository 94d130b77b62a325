//! Which files a tool call touched, read out of its arguments and its output.
//!
//! The rules name candidates and never access a disk. The caller resolves each against the agent's working directory and its
//! mounts, and drops those that are not files. So a rule may name a path that does not exist, but it should miss none that
//! the model has clearly seen. The number of candidates is limited for any input.

mod bash;
mod found;
mod looks;
mod output;
mod shell;

pub(crate) use bash::programs;
pub use bash::{Shown, shown_by_shell};
pub use found::{Candidate, Kind, Observation};
use found::{Found, Touch};
pub(crate) use looks::looks_like_file;
pub(crate) use output::{entries, match_path};
use serde_json::{Map, Value};

/// How many paths are taken from the output of `ls`, `find` or `grep` at most (Pi lists up to 1,000).
pub const MAX_LISTED: usize = 1_000;

/// How many paths are taken from one `bash` call at most, starting with its command.
pub const MAX_FROM_BASH: usize = 50;

/// The files that a tool call with these arguments and this output touched. `ok` is false if the tool failed.
///
/// Tools are recognized by Pi's names, ignoring case; a tool with any other name touches nothing. A path argument is
/// `path`, or one of the names that other harnesses use (`file_path`, `filePath`).
pub fn observe(tool: &str, args: &Map<String, Value>, output: &str, ok: bool) -> Observation {
    let named = || path_argument(args).map(|path| Candidate { path, base: None, kind: Kind::Named });
    let mut found = Found::new(MAX_LISTED);
    match tool.to_ascii_lowercase().as_str() {
        "read" if ok => found.add(Touch::Read, named()),
        "write" | "edit" if ok => found.add(Touch::Write, named()),
        "ls" if ok => output::ls(&mut found, path_argument(args), output),
        "find" | "glob" if ok => output::find(&mut found, path_argument(args), output),
        "grep" if ok => output::grep(&mut found, path_argument(args), output),
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

/// The path argument of a file tool, without the leading `@` that Pi allows.
fn path_argument(args: &Map<String, Value>) -> Option<String> {
    let path = ["path", "file_path", "filePath", "filepath", "absolute_path", "target_file"]
        .iter()
        .find_map(|name| args.get(*name)?.as_str())?;
    let path = path.strip_prefix('@').unwrap_or(path);
    (looks::can_be_path(path) && !looks::is_object(path)).then(|| path.to_owned())
}
