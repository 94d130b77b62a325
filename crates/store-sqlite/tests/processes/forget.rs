//! A text to forget is gone after the call was killed at any moment and repeated; and if the call can't do it, a sentence
//! says so and nothing is lost.

use std::path::Path;

use context_model::error::ErrorCode;
use context_store::{Erase, OwnedStore, Store};
use context_store_sqlite::{Durability, SqliteStore};

use super::faults::Small;
use super::secrets::{SECRETS, all, in_files, plant, readable};
use super::worker::{self, FORGET, Said, Worker, failures};
use super::{not_run, runtime, sized, works};

fn fill(path: &Path) {
    runtime().block_on(async {
        let store = SqliteStore::open(path, Durability::Process).unwrap();
        plant(&store).await;
        store.close().await.unwrap();
    });
}

#[test]
#[ignore = "lasts 20 seconds: `npm run test:full`"]
fn a_killed_forget_is_completed_by_the_next_one() {
    if !works("strace", &["-qq", "-e", "trace=none", "true"]) {
        return not_run("forget, killed on the way", "strace does not work here");
    }
    let original = tempfile::tempdir().unwrap();
    fill(&original.path().join("store.db"));
    let (mut kills, mut halfway) = (0, 0);
    for (call, step) in
        [("pwrite64", sized(400, 100, 20)), ("fdatasync", sized(2, 1, 1)), ("ftruncate", 1), ("unlink", 1)]
    {
        for n in (1..).step_by(step) {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("store.db");
            for file in std::fs::read_dir(original.path()).unwrap() {
                let file = file.unwrap();
                std::fs::copy(file.path(), place.path().join(file.file_name())).unwrap();
            }
            let inject = format!("inject={call}:signal=KILL:when={n}");
            let trace = format!("trace={call}");
            let arguments = ["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
            let said = Worker::start(worker::below("strace", &arguments, &path, FORGET, 1)).finish();
            let is_done = said.last() == Some(&Said::End);
            kills += usize::from(!is_done);
            runtime().block_on(async {
                let store = SqliteStore::open(&path, Durability::Power).unwrap();
                // For a reader all of it is gone, or nothing.
                let before = readable(&store).await;
                assert!(before == 0 || before >= SECRETS, "{call} {n}: {before}");
                halfway += usize::from(!is_done && before == 0);
                store.erase(all(), "again").await.unwrap();
                assert_eq!((in_files(place.path()), readable(&store).await), (0, 0), "{call} {n}");
                assert_eq!(store.verify().await.unwrap(), []);
                store.close().await.unwrap();
            });
            assert_eq!(in_files(place.path()), 0, "{call} {n}");
            if is_done {
                break;
            }
        }
    }
    eprintln!(
        "forget: {kills} kills, {halfway} of them after the texts were gone for readers; 0 of {SECRETS} left"
    );
    assert!(kills >= 4 && halfway >= 1, "{kills} kills, {halfway} halfway");
}

#[test]
#[ignore = "lasts 30 seconds: `npm run test:full`"]
fn a_reader_of_an_older_state_is_told_of() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    fill(&path);
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM versions").unwrap();
    runtime().block_on(async {
        // Another process that has the store open and rests stops nothing.
        let other = SqliteStore::open(&path, Durability::Power).unwrap();
        other.latest_tx().await.unwrap();
        let store = SqliteStore::open(&path, Durability::Power).unwrap();
        let error = store.erase(all(), "keys").await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable);
        assert!(error.to_string().contains("another process is reading an older state"), "{error}");
        assert!(
            error.to_string().contains("was named can't be read any more, but its bytes stay"),
            "{error}"
        );
        assert_eq!(readable(&store).await, 0);
        reader.execute_batch("COMMIT").unwrap();
        // The repeated call says what both have done together.
        assert_eq!(store.erase(all(), "keys").await.unwrap().versions, 1_000);
        assert_eq!((in_files(place.path()), readable(&other).await), (0, 0));
        assert_eq!(store.erase(all(), "keys").await.unwrap().versions, 0);
        store.close().await.unwrap();
        other.close().await.unwrap();
    });
}

/// With any free space, all of it is erased, or nothing is and the error says so.
#[test]
fn without_room_nothing_is_erased_and_the_room_is_named() {
    let original = tempfile::tempdir().unwrap();
    let original = original.path().join("store.db");
    fill(&original);
    let length = std::fs::metadata(&original).unwrap().len();
    let (mut refused, mut done) = (0, 0);
    for halves in 1..=8 {
        let Some(small) = Small::mount("32m") else {
            return not_run("forget without room", "a tmpfs can't be mounted here");
        };
        let path = small.path().join("store.db");
        std::fs::copy(&original, &path).unwrap();
        let disk = rustix::fs::statvfs(small.path()).unwrap();
        let ballast = disk.f_bavail * disk.f_frsize - halves * length / 2;
        std::fs::write(small.path().join("ballast"), vec![0; usize::try_from(ballast).unwrap()]).unwrap();
        runtime().block_on(async {
            let store = SqliteStore::open(&path, Durability::Power).unwrap();
            let before = readable(&store).await;
            if let Err(error) = store.erase(all(), "keys").await {
                refused += 1;
                assert_eq!(error.code(), ErrorCode::StoreFull);
                let said = error.to_string();
                assert!(said.contains("MB of free space, and only"), "{halves}: {said}");
                assert!(said.ends_with("Nothing was changed"), "{halves}: {said}");
                assert_eq!(readable(&store).await, before, "{halves}: {said}");
                small.free("ballast");
                store.erase(all(), "keys").await.unwrap();
            } else {
                done += 1;
            }
            assert_eq!((in_files(small.path()), readable(&store).await), (0, 0), "{halves}");
            assert_eq!(store.verify().await.unwrap(), []);
            store.close().await.unwrap();
        });
    }
    assert!(refused >= 4 && done >= 1, "{refused} refused, {done} done");
}

/// SQLite writes the second file to the temporary folder.
#[test]
fn without_room_for_temporary_files_nothing_is_erased() {
    let Some(small) = Small::mount("1m") else {
        return not_run("forget without room for temporary files", "a tmpfs can't be mounted here");
    };
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    fill(&path);
    let temporary = format!("TMPDIR={}", small.path().display());
    let said = Worker::start(worker::below("env", &[&temporary], &path, FORGET, 1)).finish();
    assert_eq!(failures(&said), ["STORE_FULL"]);
    runtime().block_on(async {
        let store = SqliteStore::open(&path, Durability::Power).unwrap();
        assert!(readable(&store).await >= SECRETS);
        store.close().await.unwrap();
    });
    let said = Worker::start(worker::command(&path, FORGET, 1)).finish();
    assert_eq!((said.last(), in_files(place.path())), (Some(&Said::End), 0));
}

#[test]
fn reports_a_read_only_disk() {
    let Some(small) = Small::mount("64m") else {
        return not_run("forget on a read-only disk", "a tmpfs can't be mounted here");
    };
    let path = small.path().join("store.db");
    fill(&path);
    let remount = |how: &str| works("mount", &["-o", how, small.path().to_str().unwrap()]);
    assert!(remount("remount,ro"));
    let refused = runtime().block_on(async {
        let store = SqliteStore::open(&path, Durability::Power)?;
        store.erase(vec![Erase::Path("/versions".into())], "keys").await
    });
    assert!(remount("remount,rw"));
    let error = refused.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.to_string().contains("read-only"), "{error}");
    runtime().block_on(async {
        let store = SqliteStore::open(&path, Durability::Power).unwrap();
        assert!(readable(&store).await >= SECRETS);
        store.close().await.unwrap();
    });
}
