//! One directory of output files: each is whole or absent, and no other file is touched.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::durable::{SharedFlush, create_directory};
use crate::error::OutputError;
use crate::metadata;
use crate::name;

/// How often a save looks for a free name, or starts again because another process cleared the directory.
const SAVE_ATTEMPTS: usize = 16;
/// How many threads read files, if there are enough files.
const READERS: usize = 4;
/// Files below which further threads cost more than they save.
const FILES_PER_READER: usize = 32;

/// What a finished save survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power failure: file and directory are flushed to the device.
    Power,
    /// The end of the process, however it ends. Nothing is flushed.
    Process,
}

/// The output files of one directory. Several instances and processes may share a directory.
#[derive(Debug)]
pub struct OutputDirectory {
    path: PathBuf,
    durability: Durability,
    flush: SharedFlush,
}

impl OutputDirectory {
    /// Names a directory; nothing is read or created before the first save.
    #[must_use]
    pub fn new(path: PathBuf, durability: Durability) -> Self {
        Self { path, durability, flush: SharedFlush::default() }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a new file, readable by the owner only, and returns its name.
    ///
    /// The text goes to a temporary file that is created exclusively, is flushed and then takes its name, and the
    /// directory is flushed: readers of the directory see the complete file or none. `next_name` gives a name for
    /// each attempt; names that exist, or that another process is writing, are skipped: the owner of the temporary
    /// file owns the name, so that two processes never take the same one.
    ///
    /// # Errors
    /// `STORE_FULL`, or `IO` for whatever else the operating system refuses; no file is left behind then.
    pub fn save(&self, text: &str, mut next_name: impl FnMut() -> String) -> Result<String, OutputError> {
        for _ in 0..SAVE_ATTEMPTS {
            let name = next_name();
            let (target, temporary) = (self.path.join(&name), self.path.join(name::temporary(&name)));
            let file = match create_new(&temporary) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    create_directory(&self.path, self.durability == Durability::Power)
                        .map_err(|e| OutputError::io("create the directory", &self.path, e))?;
                    continue;
                }
                Err(e) => return Err(OutputError::io("create a file in", &self.path, e)),
            };
            let moved = self.fill(file, text).and_then(|()| {
                let taken = target.symlink_metadata().is_ok();
                if taken { Ok(false) } else { fs::rename(&temporary, &target).map(|()| true) }
            });
            match moved {
                Ok(true) => {
                    self.flush_entries().inspect_err(|_| discard(&target))?;
                    return Ok(name);
                }
                Ok(false) => discard(&temporary),
                // Another process cleared the directory, this file in it: start again.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => {
                    discard(&temporary);
                    return Err(OutputError::io("write", &target, e));
                }
            }
        }
        let reason = io::Error::new(io::ErrorKind::AlreadyExists, "no free name was found");
        Err(OutputError::io("create a file in", &self.path, reason))
    }

    /// Reads whole files by name, in the given order. An unreadable file gives a message that says why.
    #[must_use]
    pub fn load(&self, names: &[String]) -> Vec<Result<String, String>> {
        self.read_each(names, |mut file, length| {
            let mut bytes = Vec::with_capacity(length);
            file.read_to_end(&mut bytes).map_err(|e| e.to_string())?;
            String::from_utf8(bytes).map_err(|_| String::from("it is not UTF-8"))
        })
    }

    /// Reads the metadata of files by name, each as a JSON object, in the given order.
    #[must_use]
    pub fn metadata(&self, names: &[String]) -> Vec<Result<String, String>> {
        self.read_each(names, |file, _| metadata::read(BufReader::with_capacity(4096, file)))
    }

    /// The names of all output files, oldest first. A directory that does not exist has none.
    ///
    /// # Errors
    /// `IO` if the directory can't be read.
    pub fn names(&self) -> Result<Vec<String>, OutputError> {
        let mut names = self.entries(|name| name::order(name).is_some())?;
        names.sort_by(|a, b| name::order(a).cmp(&name::order(b)));
        Ok(names)
    }

    /// Removes the output files and what interrupted saves have left, whichever process wrote them, and
    /// returns how many files were removed. Other files, links, subdirectories and the directory itself stay.
    ///
    /// # Errors
    /// `IO` where a file can't be removed; the others are removed first.
    pub fn clear(&self) -> Result<usize, OutputError> {
        let names = self.entries(|name| name::order(name).is_some() || name::is_temporary(name))?;
        self.remove(&names)
    }

    /// Removes some output files by name, passing over those that do not exist and names that are not of ours.
    ///
    /// # Errors
    /// `IO` where a file can't be removed; the others are removed first.
    pub fn remove(&self, names: &[String]) -> Result<usize, OutputError> {
        let (mut removed, mut failed) = (0, None);
        for name in names.iter().filter(|n| name::order(n).is_some() || name::is_temporary(n)) {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Ok(()) => removed += 1,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => failed = Some(OutputError::io("remove", &path, e)),
            }
        }
        if removed > 0 {
            self.flush_entries()?;
        }
        failed.map_or(Ok(removed), Err)
    }

    fn fill(&self, mut file: File, text: &str) -> io::Result<()> {
        file.write_all(text.as_bytes())?;
        if self.durability == Durability::Power { file.sync_all() } else { Ok(()) }
    }

    fn flush_entries(&self) -> Result<(), OutputError> {
        if self.durability == Durability::Process {
            return Ok(());
        }
        match self.flush.run(|| context_platform::sync_directory(&self.path)) {
            // Another process removed the directory with all that was in it.
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(OutputError::io("flush", &self.path, e)),
            _ => Ok(()),
        }
    }

    /// Names of the regular files that `keep` accepts.
    fn entries(&self, keep: impl Fn(&str) -> bool) -> Result<Vec<String>, OutputError> {
        let error = |e| OutputError::io("list", &self.path, e);
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(error(e)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(error)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if keep(&name) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn read_each(&self, names: &[String], read: impl Fn(File, usize) -> Outcome + Sync) -> Vec<Outcome> {
        let one = |name: &String| {
            if name::order(name).is_none() {
                return Err(String::from("it is no output file's name"));
            }
            let path = self.path.join(name);
            // A pipe would block the open, and a link may lead anywhere.
            let kind = path.symlink_metadata().map_err(|e| e.to_string())?;
            if !kind.is_file() {
                return Err(String::from("it is no regular file"));
            }
            let file = File::open(&path).map_err(|e| e.to_string())?;
            read(file, usize::try_from(kind.len()).unwrap_or_default())
        };
        let readers = (names.len() / FILES_PER_READER).clamp(1, READERS);
        if readers == 1 {
            return names.iter().map(one).collect();
        }
        std::thread::scope(|scope| {
            let part = names.len().div_ceil(readers);
            let parts: Vec<_> = names
                .chunks(part)
                .map(|part| scope.spawn(move || part.iter().map(one).collect::<Vec<_>>()))
                .collect();
            let panicked = |_| unreachable!("reading a file returns what goes wrong");
            parts.into_iter().flat_map(|part| part.join().unwrap_or_else(panicked)).collect()
        })
    }
}

type Outcome = Result<String, String>;

fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Removes a file of which nobody has heard yet. If even that is refused, the error already on its way to the
/// caller says why, and [`OutputDirectory::clear`] removes the file later.
fn discard(path: &Path) {
    drop(fs::remove_file(path));
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
