//! A receiver that does what a client does with events: it reads the paths that a hint names, and nothing else. When its
//! copy equals the disk, the tracker has missed nothing.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
#[cfg(unix)]
use std::os::unix::fs::symlink;
#[cfg(unix)]
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use context_watch::{Event, NotifyTracker, Tracked, Tracker, TrackerOptions};
use tempfile::TempDir;

/// For what must happen, on however loaded a machine. Reaching it fails the test.
pub const GENEROUS: Duration = Duration::from_secs(120);

/// Content of a path, as far as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Bytes(Vec<u8>),
    NotAFile,
    Missing,
    Unreadable,
}

pub fn read(path: &Utf8Path) -> Content {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Content::NotAFile,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Content::Unreadable,
        Err(_) => Content::Missing,
        Ok(_) => match fs::read(path) {
            Ok(bytes) => Content::Bytes(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Content::Unreadable,
            Err(_) => Content::Missing,
        },
    }
}

/// Events that the receiver has seen so far.
#[derive(Debug, Default)]
pub struct Seen {
    pub contents: BTreeMap<Utf8PathBuf, Content>,
    pub hints: usize,
    pub hinted: BTreeSet<Utf8PathBuf>,
    pub rescans: usize,
    pub moves: Vec<(Utf8PathBuf, Utf8PathBuf)>,
    pub warnings: Vec<String>,
}

#[derive(Default)]
pub struct Mirror {
    seen: Mutex<Seen>,
    news: Condvar,
}

impl Mirror {
    pub fn take(&self, event: Event) {
        let mut seen = self.seen.lock().unwrap();
        match event {
            Event::Changed(paths) => {
                assert!(paths.is_sorted_by(|one, next| one < next), "unique and sorted");
                seen.hints += 1;
                for path in paths {
                    let content = read(&path);
                    seen.hinted.insert(path.clone());
                    // An untracked path may still be hinted at; a client ignores it.
                    if let Some(known) = seen.contents.get_mut(&path) {
                        *known = content;
                    }
                }
            }
            Event::Rescan => {
                seen.rescans += 1;
                seen.contents.iter_mut().for_each(|(path, content)| *content = read(path));
            }
            Event::Moved { from, to } => seen.moves.push((from, to)),
            Event::Warning(text) => seen.warnings.push(text),
            Event::Flush(acknowledge) => acknowledge.done(),
            other => panic!("unknown event {other:?}"),
        }
        self.news.notify_all();
    }

    pub fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap())
    }

    /// Waits until `holds`, looking again after each event.
    pub fn until(&self, what: &str, mut holds: impl FnMut(&Seen) -> bool) {
        let end = Instant::now() + GENEROUS;
        let mut seen = self.seen.lock().unwrap();
        while !holds(&seen) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "still waiting for {what}: {:?} {:?}", seen.warnings, seen.hinted);
            seen = self.news.wait_timeout(seen, left).unwrap().0;
        }
    }
}

/// A tracker on its own directory, and its mirror.
pub struct Scene {
    pub mirror: Arc<Mirror>,
    pub tracker: NotifyTracker,
    root: Utf8PathBuf,
    _directory: TempDir,
}

impl Scene {
    pub fn new() -> Self {
        Self::with(TrackerOptions::default())
    }

    /// `marker_directory` is set here.
    pub fn with(options: TrackerOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        let root = base.join("tree");
        fs::create_dir(&root).unwrap();
        let mirror = Arc::new(Mirror::default());
        let sink = Arc::clone(&mirror);
        let options = TrackerOptions { marker_directory: Some(base.join("own/markers")), ..options };
        let tracker = NotifyTracker::start(options, move |event| sink.take(event)).unwrap();
        Self { mirror, tracker, root, _directory: directory }
    }

    pub fn path(&self, relative: &str) -> Utf8PathBuf {
        // A canonical path of Windows is a verbatim one, in which a slash is not a separator.
        let relative = relative.replace('/', std::path::MAIN_SEPARATOR_STR);
        match relative.strip_prefix("..") {
            Some(beside) => Utf8PathBuf::from(format!("{}{beside}", self.root.parent().unwrap())),
            None if relative == "." => self.root.clone(),
            None => self.root.join(relative),
        }
    }

    /// Tracks, then reads, as a client does.
    pub fn track(&self, relative: &str) -> Tracked {
        let path = self.path(relative);
        let tracked = self.tracker.track(&path).unwrap();
        self.mirror.seen(|seen| seen.contents.insert(path.clone(), read(&path)));
        tracked
    }

    pub fn untrack(&self, relative: &str) {
        let path = self.path(relative);
        self.tracker.untrack(&path);
        self.mirror.seen(|seen| seen.contents.remove(&path));
    }

    /// Writes a file, and its directories if they are missing.
    pub fn write(&self, relative: &str, text: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs commands, separated by semicolons, on paths relative to the root.
    pub fn run(&self, commands: &str) {
        for command in commands.split(';') {
            let words: Vec<_> = command.split_whitespace().collect();
            match words[..] {
                ["write", path, text] => self.write(path, text),
                ["fill", path, size] => self.write(path, vec![b'x'; size.parse().unwrap()]),
                ["append", path, text] => {
                    let mut file = File::options().append(true).open(self.path(path)).unwrap();
                    file.write_all(text.as_bytes()).unwrap();
                }
                ["truncate", path] => {
                    File::options().write(true).open(self.path(path)).unwrap().set_len(0).unwrap();
                }
                ["save", path, text] => {
                    let temporary = format!("{path}.tmp");
                    self.write(&temporary, text);
                    fs::rename(self.path(&temporary), self.path(path)).unwrap();
                }
                ["mv", from, to] => fs::rename(self.path(from), self.path(to)).unwrap(),
                ["rm", path] => fs::remove_file(self.path(path)).unwrap(),
                ["rmtree", path] => fs::remove_dir_all(self.path(path)).unwrap(),
                ["mkdir", path] => fs::create_dir(self.path(path)).unwrap(),
                #[cfg(unix)]
                ["symlink", target, path] => symlink(self.path(target), self.path(path)).unwrap(),
                ["hardlink", target, path] => fs::hard_link(self.path(target), self.path(path)).unwrap(),
                #[cfg(unix)]
                ["fifo", path] => {
                    assert!(Command::new("mkfifo").arg(self.path(path)).status().unwrap().success());
                }
                _ => panic!("unknown command {command:?}"),
            }
        }
    }

    pub fn flush(&self) {
        let answer = self.tracker.flush().wait_timeout(GENEROUS).expect("the flush is answered");
        answer.expect("the tracker is open");
    }

    /// After a flush the mirror equals the disk, without having looked at what no event named.
    pub fn assert_equal_after_flush(&self) {
        self.flush();
        self.mirror.seen(|seen| {
            for (path, content) in &seen.contents {
                assert!(
                    *content == read(path),
                    "{path}: mirror {}, disk {}",
                    brief(content),
                    brief(&read(path))
                );
            }
        });
    }

    /// Without a flush the mirror becomes equal to the disk.
    pub fn until_equal(&self) {
        let equal = |seen: &Seen| seen.contents.iter().all(|(path, content)| *content == read(path));
        self.mirror.until("the mirror to equal the disk", equal);
    }

    pub fn rescans(&self) -> usize {
        self.mirror.seen(|seen| seen.rescans)
    }
}

fn brief(content: &Content) -> String {
    match content {
        Content::Bytes(bytes) => {
            format!("{} bytes {:?}", bytes.len(), String::from_utf8_lossy(&bytes[..bytes.len().min(20)]))
        }
        other => format!("{other:?}"),
    }
}
