//! The child process: this test executable, started again with its orders in the environment.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use context_model::time::TxId;
use context_store::{AsOf, OwnedStore, Store, Write};
use context_store_sqlite::{Durability, SqliteStore};

use super::{file, runtime, secrets, step, steps};

const PATH: &str = "CONTEXT_STORE_WORKER_PATH";
const NAME: &str = "CONTEXT_STORE_WORKER_NAME";
const COUNT: &str = "CONTEXT_STORE_WORKER_COUNT";

/// A worker's messages on its standard output, one line each.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// The n-th transaction was acknowledged.
    Ack(usize),
    /// A call failed with this code.
    Failed(String),
    /// The longest that one transaction and one read took, in milliseconds.
    Longest(u128),
    /// All was done.
    End,
}

/// The names of workers that acknowledge a transaction once it is committed, and once it is settled as well. Others
/// have each commit synced.
pub const SOON: &str = "soon";
pub const SETTLED: &str = "settled";

/// The name of a worker that forgets all secrets.
pub const FORGET: &str = "forget";

/// A started worker.
pub struct Worker {
    pub child: Child,
    lines: BufReader<ChildStdout>,
}

/// The command of a worker that writes this many transactions.
pub fn command(path: &Path, name: &str, count: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    orders(&mut command, path, name, count);
    command
}

/// The same below another program, for instance strace.
pub fn below(program: &str, arguments: &[&str], path: &Path, name: &str, count: usize) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).arg(std::env::current_exe().unwrap());
    orders(&mut command, path, name, count);
    command
}

fn orders(command: &mut Command, path: &Path, name: &str, count: usize) {
    command
        .args(["--exact", "worker::body", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PATH, path)
        .env(NAME, name)
        .env(COUNT, count.to_string());
}

impl Worker {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next message; `None` after the worker's end.
    pub fn next(&mut self) -> Option<Said> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap_or(0) == 0 || !line.ends_with('\n') {
                return None;
            }
            // The test harness writes its own words into the same stream.
            let Some((_, said)) = line.trim_end().split_once("worker: ") else { continue };
            return match said.split_once(' ') {
                Some(("ack", n)) => Some(Said::Ack(n.parse().unwrap())),
                Some(("failed", code)) => Some(Said::Failed(code.to_owned())),
                Some(("longest", millis)) => Some(Said::Longest(millis.parse().unwrap())),
                _ => Some(Said::End),
            };
        }
    }

    /// Everything that it says until its end.
    pub fn finish(mut self) -> Vec<Said> {
        let mut all = Vec::new();
        while let Some(said) = self.next() {
            all.push(said);
        }
        self.child.wait().unwrap();
        all
    }

    /// Stops it where it is, with all of its threads.
    #[cfg(unix)]
    pub fn stop(&self) {
        use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).unwrap();
        let status = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        assert!(status.is_some_and(|(_, status)| status.stopped()), "{status:?}");
    }

    /// Ends it as a crash does, and gives its earlier messages.
    pub fn kill(mut self) -> Vec<Said> {
        self.child.kill().unwrap();
        self.finish()
    }
}

impl Drop for Worker {
    /// A test that fails leaves no process behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The newest acknowledged step among the lines.
pub fn acknowledged(said: &[Said]) -> usize {
    said.iter().map(|s| if let Said::Ack(n) = s { *n } else { 0 }).max().unwrap_or(0)
}

/// The longest that a step took, in milliseconds.
pub fn longest(said: &[Said]) -> u128 {
    said.iter().map(|s| if let Said::Longest(millis) = s { *millis } else { 0 }).max().unwrap_or(0)
}

pub fn failures(said: &[Said]) -> Vec<&str> {
    said.iter().filter_map(|s| if let Said::Failed(code) = s { Some(code.as_str()) } else { None }).collect()
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that has gone away can't be told anything.
    let _ = out.write_all(format!("worker: {what}\n").as_bytes()).and_then(|()| out.flush());
}

#[test]
#[ignore = "the body of the child processes, started by the other tests"]
fn body() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let name = std::env::var(NAME).unwrap();
    let count: usize = std::env::var(COUNT).unwrap().parse().unwrap();
    runtime().block_on(async {
        let store = match SqliteStore::open(path, Durability::Power) {
            Ok(store) => store,
            Err(error) => return say(&format!("failed {}", error.code())),
        };
        if name == FORGET {
            match store.erase(secrets::all(), "live keys").await {
                Ok(_) => say("ack 1"),
                Err(error) => say(&format!("failed {}", error.code())),
            }
            return say(if store.close().await.is_ok() { "end" } else { "failed CLOSED" });
        }
        let mut n = steps(&store, &name).await[0];
        let last = n + count;
        let mut seen = TxId(0);
        let mut failures = 0;
        let mut longest = Duration::ZERO;
        while n < last && failures < 20 {
            let start = Instant::now();
            let outcome = once(&store, &name, n + 1, &mut seen).await;
            longest = longest.max(start.elapsed());
            match outcome {
                Ok(()) => {
                    n += 1;
                    say(&format!("ack {n}"));
                }
                Err(error) => {
                    failures += 1;
                    say(&format!("failed {}", error.code()));
                }
            }
        }
        say(&format!("longest {}", longest.as_millis()));
        match store.close().await {
            Ok(()) => say("end"),
            Err(error) => say(&format!("failed {}", error.code())),
        }
    });
}

/// A separate step, one version of the object that all workers share, and reads that never go back.
async fn once(store: &SqliteStore, name: &str, n: usize, seen: &mut TxId) -> context_store::Result<()> {
    let shared = file("shared", "x", &format!("{name} {n}"));
    let id = shared.id().clone();
    let mut transaction = step(name, n);
    transaction.writes.push(Write::put(shared));
    let receipt = match name {
        SOON | SETTLED => store.transact_deferred(transaction).await?,
        _ => store.transact(transaction).await?,
    };
    if name == SETTLED {
        store.settle().await?;
    }
    let read = store.get(&id, AsOf::default()).await?.unwrap();
    assert!(read.tx_id >= receipt.tx_id, "a read does not see the write before it");
    assert!(read.tx_id >= *seen, "a read went back in time");
    *seen = read.tx_id;
    Ok(())
}
