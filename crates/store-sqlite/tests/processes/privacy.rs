//! Only the owner can read a store, whatever the process's umask is, from the first byte on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::worker::{self, Said, Worker};
use super::{not_run, works};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_are_for_their_owner_alone() {
    for umask in ["0000", "0022", "0077", "0777"] {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("data/pi");
        let path = directory.join("store.db");
        let script = format!("umask {umask}; exec \"$@\"");
        let mut worker = Worker::start(worker::below("sh", &["-c", &script, "sh"], &path, "w", 1_000_000));
        for _ in 0..3 {
            assert!(matches!(worker.next(), Some(Said::Ack(_))));
        }
        // The store is still open for writing, so the log and its index also exist.
        assert_eq!(mode(&directory), 0o700, "umask {umask}");
        let mut names = Vec::new();
        for entry in fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(mode(&entry.path()), 0o600, "{:?} under umask {umask}", entry.file_name());
            names.push(entry.file_name());
        }
        assert_eq!(names.len(), 3, "{names:?}");
        worker.kill();
    }
}

/// The mode is part of the call that creates the file: others cannot open it at any moment.
#[test]
fn no_file_is_ever_made_readable_for_others() {
    if !works("strace", &["-qq", "-e", "trace=none", "true"]) {
        return not_run("no file is ever made readable for others", "strace does not work here");
    }
    let place = tempfile::tempdir().unwrap();
    let (path, log) = (place.path().join("new/store.db"), place.path().join("log"));
    let arguments =
        ["-f", "-qq", "-o", log.to_str().unwrap(), "-e", "trace=openat,mkdir,chmod,fchmod,fchmodat"];
    let said = Worker::start(worker::below("strace", &arguments, &path, "w", 3)).finish();
    assert_eq!(said.last(), Some(&Said::End));
    let log = fs::read_to_string(log).unwrap();
    let ours = place.path().join("new");
    let made: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(ours.to_str().unwrap()))
        .filter(|line| line.contains("O_CREAT") || line.contains("mkdir") || line.contains("chmod"))
        .collect();
    assert!(made.len() >= 4, "{made:?}");
    for line in made {
        assert!(line.contains("0600") || line.contains("0700"), "{line}");
    }
}
