//! A process that is killed loses nothing that it acknowledged and leaves nothing by half.

use super::worker::{self, SOON, Worker, acknowledged};
use super::{check, not_run, sized, works};

/// Kills after a number of acknowledgements that differs from run to run; the kill then falls anywhere into
/// the following transaction. Twenty-five runs share a file, so that each also recovers from the one before.
#[test]
fn killed_at_random() {
    let place = tempfile::tempdir().unwrap();
    let runs = sized(50, 100, 200);
    let (mut done, mut total) = (0, 0);
    for run in 0..runs {
        let path = place.path().join(format!("{}.db", run / 25));
        if run % 25 == 0 {
            total += done;
            done = 0;
        }
        let name = if run / 25 % 2 == 0 { "w" } else { SOON };
        let mut worker = Worker::start(worker::command(&path, name, 10_000));
        // A number that jumps about, so that kills fall at different points of opening and writing.
        for _ in 0..run * 7 % 13 {
            assert!(worker.next().is_some());
        }
        let acks = acknowledged(&worker.kill()).max(done);
        done = check(&path, name, acks);
    }
    eprintln!("killed at random: {runs} kills, {} transactions, none lost", total + done);
    assert!(done > 0);
}

/// Kills on entry to the n-th call of each kind of system call that changes a file.
#[test]
fn killed_at_system_calls() {
    if !works("strace", &["-qq", "-e", "trace=none", "true"]) {
        return not_run("killed at system calls", "strace does not work here");
    }
    const CALLS: [&str; 8] =
        ["pwrite64", "fsync", "fdatasync", "ftruncate", "unlink", "openat", "fchmod", "fallocate"];
    let step = sized(7, 1, 1);
    let mut kills = 0;
    for call in CALLS {
        for n in (1..).step_by(step) {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("store.db");
            let inject = format!("inject={call}:signal=KILL:when={n}");
            let trace = format!("trace={call}");
            let arguments = ["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
            let name = if n % 2 == 0 { "w" } else { SOON };
            let worker = Worker::start(worker::below("strace", &arguments, &path, name, 8));
            let said = worker.finish();
            if said.last() == Some(&worker::Said::End) {
                break;
            }
            kills += 1;
            check(&path, name, acknowledged(&said));
        }
    }
    eprintln!("killed at system calls: {kills} points, none lost");
    assert!(kills >= 10);
}
