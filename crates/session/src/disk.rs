//! From a canonical path to the one that the operating system is given, and back.

use camino::{Utf8Path, Utf8PathBuf};
use context_model::path;

/// The path, absolute and normalised; `None` where it is not absolute. On Windows a POSIX path is one of a sandbox.
#[must_use]
pub fn absolute(path: &str) -> Option<String> {
    if cfg!(windows) || path.starts_with('/') { path::absolute(path) } else { None }
}

/// Where the client finds a canonical path. On Windows it is a verbatim path (`\\?\`): it has no longest length, and in it
/// `CON` or `file.` is a name like others, which is what [`std::fs::canonicalize`] and the watcher give, too.
#[must_use]
pub fn to_disk(path: &str) -> Utf8PathBuf {
    if cfg!(windows) {
        let path = path.replace('/', r"\");
        return match path.strip_prefix(r"\\") {
            Some(share) => format!(r"\\?\UNC\{share}").into(),
            None => format!(r"\\?\{path}").into(),
        };
    }
    path.into()
}

/// The canonical path of one on disk.
#[must_use]
pub fn of_disk(path: &Utf8Path) -> String {
    match cfg!(windows) {
        true => path::absolute(path.as_str()).unwrap_or_else(|| path.as_str().to_owned()),
        false => path.as_str().to_owned(),
    }
}
