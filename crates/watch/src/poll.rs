//! Checking tracked files one by one, for directories that can't be watched.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};

/// The last known state of the tracked files in polled directories.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    directories: HashMap<Utf8PathBuf, HashMap<Box<str>, Sight>>,
}

/// The state of a file that is visible without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Found(PollStamp),
    Missing,
    Unreachable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PollStamp {
    numbers: [u64; 3],
    times: [i128; 2],
    /// Written so shortly before it was looked at that a later write may leave the same times: such a stamp
    /// proves nothing, as for git's index.
    fresh: bool,
}

/// Covers the coarsest clock of a file system in use (FAT, two seconds).
const CLOCK: Duration = Duration::from_secs(2);

impl Polls {
    pub(crate) fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }

    /// Starts to poll a directory with these tracked files, unless it is polled already.
    pub(crate) fn start(&mut self, directory: &Utf8Path, tracked: &[Utf8PathBuf]) {
        if !self.directories.contains_key(directory) {
            let seen =
                tracked.iter().filter_map(|path| Some((path.file_name()?.into(), look(path)))).collect();
            self.directories.insert(directory.to_owned(), seen);
        }
    }

    pub(crate) fn stop(&mut self, directory: &Utf8Path) {
        self.directories.remove(directory);
    }

    /// A file of a directory became tracked.
    pub(crate) fn add(&mut self, path: &Utf8Path) {
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Some(seen) = self.directories.get_mut(parent)
        {
            seen.insert(name.into(), look(path));
        }
    }

    /// A file of a directory is no longer tracked.
    pub(crate) fn remove(&mut self, path: &Utf8Path) {
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Some(seen) = self.directories.get_mut(parent)
        {
            seen.remove(name);
        }
    }

    /// Looks at a directory's files again and returns those that may have changed.
    pub(crate) fn changed(&mut self, directory: &Utf8Path) -> Vec<Utf8PathBuf> {
        let Some(seen) = self.directories.get_mut(directory) else { return Vec::new() };
        let mut changed = Vec::new();
        for (name, before) in seen {
            let path = directory.join(&**name);
            let now = look(&path);
            if now != *before || matches!(before, Sight::Found(stamp) if stamp.fresh) {
                changed.push(path);
            }
            *before = now;
        }
        changed
    }
}

fn look(path: &Utf8Path) -> Sight {
    // Read the clock first: anything written after the look must not seem older than it.
    let now = SystemTime::now();
    match std::fs::metadata(path) {
        Ok(metadata) => Sight::Found(stamp(&metadata, now)),
        Err(error) if error.kind() == ErrorKind::NotFound => Sight::Missing,
        Err(_) => Sight::Unreachable,
    }
}

fn stamp(metadata: &std::fs::Metadata, now: SystemTime) -> PollStamp {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_nanos() as i128);
    let (numbers, times) = parts(metadata);
    let fresh = times.iter().any(|time| (now - time).unsigned_abs() <= CLOCK.as_nanos());
    PollStamp { numbers, times, fresh }
}

#[cfg(unix)]
fn parts(metadata: &std::fs::Metadata) -> ([u64; 3], [i128; 2]) {
    use std::os::unix::fs::MetadataExt;
    let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    (
        [metadata.dev(), metadata.ino(), metadata.size()],
        [
            nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        ],
    )
}

#[cfg(not(unix))]
fn parts(metadata: &std::fs::Metadata) -> ([u64; 3], [i128; 2]) {
    let nanoseconds = |time: std::io::Result<SystemTime>| {
        time.ok()
            .and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok())
            .map_or(0, |age| age.as_nanos() as i128)
    };
    ([0, 0, metadata.len()], [nanoseconds(metadata.modified()), nanoseconds(metadata.created())])
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// Times far from now, so that the stamp proves something.
    fn write_old(path: &Utf8Path, text: &str, age: u64) {
        fs::write(path, text).unwrap();
        let time = SystemTime::now() - Duration::from_secs(age);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn sees_a_file_change_appear_and_go() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        let (written, made, gone) = (root.join("written"), root.join("made"), root.join("gone"));
        write_old(&written, "1", 1000);
        write_old(&gone, "1", 1000);
        let mut polls = Polls::default();
        polls.start(root, &[written.clone(), made.clone(), gone.clone()]);
        write_old(&written, "2", 2000);
        write_old(&made, "1", 1000);
        fs::remove_file(&gone).unwrap();
        let mut changed = polls.changed(root);
        changed.sort();
        assert_eq!(changed, [gone, made, written]);
    }

    #[test]
    fn a_stamp_proves_something_only_when_it_is_old() {
        let old = PollStamp { numbers: [0; 3], times: [0; 2], fresh: false };
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        let path = root.join("f");
        fs::write(&path, "1").unwrap();
        let metadata = fs::metadata(&path).unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        assert!(!stamp(&metadata, later).fresh && !old.fresh);
        assert!(stamp(&metadata, SystemTime::now()).fresh);
        let mut polls = Polls::default();
        polls.start(root, std::slice::from_ref(&path));
        assert_eq!(polls.changed(root), [path], "written just before: reported rather than trusted");
    }
}
