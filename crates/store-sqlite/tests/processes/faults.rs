//! Disks that are full or fail, places that can't be written, and processes without file descriptors.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use super::worker::{self, SETTLED, Said, Worker, acknowledged, failures};
use super::{check, file, not_run, runtime, sized, step, steps, works};
use context_model::error::ErrorCode;
use context_model::hash::Digest;
use context_store::{Store, Transaction, Write};
use context_store_sqlite::{Durability, SqliteStore};

/// A separate small file system, as long as the value lives.
pub struct Small(tempfile::TempDir);

impl Small {
    pub fn mount(size: &str) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=700");
        let path = place.path().to_str()?.to_owned();
        works("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", &path]).then(|| Self(place))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Frees the space of a file. A removed one would keep it while a child of another test has the file open.
    pub fn free(&self, name: &str) {
        fs::write(self.0.path().join(name), []).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: a child of another test has this one's files open between its fork and its exec.
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

#[test]
fn a_full_disk() {
    let Some(small) = Small::mount("4m") else {
        return not_run("a full disk", "a tmpfs can't be mounted here");
    };
    let path = small.0.path().join("store.db");
    let ballast = small.0.path().join("ballast");
    fs::write(&ballast, vec![0; 1 << 20]).unwrap();
    let written = runtime().block_on(async {
        let store = SqliteStore::open(&path, Durability::Power).unwrap();
        let mut written = 0;
        let error = loop {
            match store.transact(step("w", written + 1)).await {
                Ok(_) => written += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), ErrorCode::StoreFull);
        assert!(written > 20, "{written}");
        // Everything acknowledged can be read while the disk is full, and small writes don't do harm.
        assert_eq!(steps(&store, "w").await, [written; 3]);
        for _ in 0..3 {
            let again = store.transact(step("w", written + 1)).await;
            written += usize::from(again.is_ok());
        }
        assert_eq!(steps(&store, "w").await, [written; 3]);

        small.free("ballast");
        for _ in 0..5 {
            store.transact(step("w", written + 1)).await.unwrap();
            written += 1;
        }
        store.close().await.unwrap();
        written
    });
    assert_eq!(check(&path, "w", written), written);
}

/// One transaction that is too large does not take those along that wait beside it.
#[test]
fn a_transaction_larger_than_the_disk_fails_alone() {
    let Some(small) = Small::mount("8m") else {
        return not_run("a transaction that is too large", "a tmpfs can't be mounted here");
    };
    let path = small.0.path().join("store.db");
    runtime().block_on(async {
        let store = SqliteStore::open(&path, Durability::Power).unwrap();
        store.transact(step("w", 1)).await.unwrap();
        // Hashes can't be compressed to less than a half.
        let noise: String =
            (0..(20 << 20) / 64).map(|n: u32| Digest::of(&n.to_le_bytes()).to_string()).collect();
        let large =
            Transaction { writes: vec![Write::put(file("w", "large", &noise))], expected: Vec::new() };
        let both = tokio::join!(store.transact(large), store.transact(step("w", 2)));
        assert_eq!(both.0.unwrap_err().code(), ErrorCode::StoreFull);
        both.1.unwrap();
        store.close().await.unwrap();
    });
    assert_eq!(check(&path, "w", 2), 2);
}

/// The n-th sync or write of the process fails once; later ones work.
#[test]
fn reports_each_io_error_and_loses_nothing() {
    if !works("strace", &["-qq", "-e", "trace=none", "true"]) {
        return not_run("calls that fail with an I/O error", "strace does not work here");
    }
    let mut seen = 0;
    for (call, errno) in [("fsync", "EIO"), ("fdatasync", "EIO"), ("pwrite64", "EIO"), ("pwrite64", "ENOSPC")]
    {
        for n in (1..=50).step_by(sized(9, 3, 1)) {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("store.db");
            let inject = format!("inject={call}:error={errno}:when={n}");
            let trace = format!("trace={call}");
            let arguments = ["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
            let name = if n % 2 == 0 { SETTLED } else { "w" };
            let said = Worker::start(worker::below("strace", &arguments, &path, name, 8)).finish();
            let codes = failures(&said);
            seen += codes.len();
            assert!(said.last().is_some(), "the process died: {call} {n}");
            for code in codes {
                assert!(["STORE_UNAVAILABLE", "STORE_FULL"].contains(&code), "{call} {n}: {code}");
            }
            check(&path, name, acknowledged(&said));
        }
    }
    eprintln!("calls that fail with an I/O error: {seen} reported, none lost");
    assert!(seen > 0);
}

#[test]
fn a_process_without_file_descriptors() {
    let place = tempfile::tempdir().unwrap();
    let mut succeeded = false;
    for limit in 4..24 {
        let path = place.path().join(format!("{limit}.db"));
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let said = Worker::start(worker::below("sh", &["-c", &script, "sh"], &path, "w", 2)).finish();
        for code in failures(&said) {
            assert_eq!(code, "STORE_UNAVAILABLE");
        }
        succeeded |= said.last() == Some(&Said::End);
        if path.exists() {
            check(&path, "w", acknowledged(&said));
        }
    }
    assert!(succeeded);
}

/// As a user whom permissions bind.
fn as_nobody(path: &Path) -> Option<Vec<Said>> {
    let mut command = worker::command(path, "w", 1);
    if works("test", &["-w", "/"]) {
        command.uid(65534).gid(65534);
    }
    let exe = std::env::current_exe().unwrap();
    let reachable =
        exe.ancestors().skip(1).all(|d| fs::metadata(d).is_ok_and(|m| m.permissions().mode() & 1 == 1));
    reachable.then(|| Worker::start(command).finish())
}

#[test]
fn reports_places_without_write_permission() {
    let place = tempfile::tempdir().unwrap();
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let directory = place.path().join("d");
    fs::create_dir(&directory).unwrap();
    let path = directory.join("store.db");
    runtime().block_on(async {
        let store = SqliteStore::open(&path, Durability::Power).unwrap();
        store.transact(step("w", 1)).await.unwrap();
        store.close().await.unwrap();
    });
    let before = fs::read(&path).unwrap();
    mode(place.path(), 0o755);
    let unavailable = Some(vec![Said::Failed("STORE_UNAVAILABLE".into())]);
    for (file_mode, directory_mode) in [(0o600, 0o755), (0o444, 0o755), (0o444, 0o777), (0o000, 0o755)] {
        mode(&path, file_mode);
        mode(&directory, directory_mode);
        let Some(said) = as_nobody(&path) else {
            return not_run(
                "places that can't be written",
                "the executable can't be reached by the user nobody",
            );
        };
        assert_eq!(Some(said), unavailable, "{file_mode:o} in {directory_mode:o}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }
    mode(&directory, 0o555);
    assert_eq!(as_nobody(&directory.join("new.db")), unavailable);
    assert_eq!(as_nobody(&directory.join("deeper/new.db")), unavailable);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

/// Two stores on one file in one process share it as two processes do.
#[test]
fn the_same_file_twice_in_one_process() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    runtime().block_on(async {
        let one = SqliteStore::open(&path, Durability::Power).unwrap();
        let two = SqliteStore::open(&path, Durability::Power).unwrap();
        let write = async |store: Arc<SqliteStore>, name: &str| {
            for n in 1..=30 {
                store.transact(step(name, n)).await.unwrap();
            }
        };
        tokio::join!(write(Arc::clone(&one), "a"), write(Arc::clone(&two), "b"));
        one.close().await.unwrap();
        assert_eq!(steps(&two, "a").await, [30; 3]);
        two.transact(step("b", 31)).await.unwrap();
        two.close().await.unwrap();
    });
    check(&path, "a", 30);
    check(&path, "b", 31);
}
