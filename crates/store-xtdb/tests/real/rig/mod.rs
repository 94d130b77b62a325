//! Real XTDB nodes for the tests: started on loopback, ended when dropped.

#![allow(dead_code)] // each test file uses its part

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub mod objects;
pub mod postgres;
pub mod proxy;

/// The longest wait of a test for an event.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The places where a node keeps its data.
#[derive(Clone, Debug)]
pub enum Kind {
    Memory,
    RocksDb,
    /// The log and the documents in a PostgreSQL on this port, in this database, as this user.
    Postgres(u16, String, String),
}

/// A running node.
pub struct Node {
    script: PathBuf,
    child: Child,
    port: u16,
    kind: Kind,
    data: PathBuf,
    /// The folder where the process unpacks its libraries; not on the disk of the data, which a test may fill.
    temporary: tempfile::TempDir,
    directory: Option<tempfile::TempDir>,
}

/// The script that starts a node, if this run is to use one: it takes minutes. That is the one that
/// `CONTEXT_XTDB_START` names, or with `CONTEXT_REQUIRE_XTDB=1` the one beside the checkout. Otherwise one line says how many
/// tests of this file are not run; where they are required, that is a failure.
pub fn start_script(file: &str, source: &str) -> Option<PathBuf> {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_required = std::env::var_os("CONTEXT_REQUIRE_XTDB").is_some_and(|value| value == "1");
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/xtdb/start");
    let named = std::env::var_os("CONTEXT_XTDB_START").map(PathBuf::from);
    let script = named.or_else(|| is_required.then(beside));
    let has_java =
        || Command::new("java").arg("-version").stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    let missing = match script.filter(|script| script.is_file()) {
        Some(script) if has_java() => return Some(script),
        Some(_) => "Java is missing",
        None => "CONTEXT_XTDB_START names no script that starts a node",
    };
    let count = source.matches("#[tokio::test").count() + source.matches("#[test]").count();
    assert!(!is_required, "{file}: {count} tests need XTDB, and {missing}");
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(file.to_owned()) {
        let line = format!("{file}: {count} tests against a real XTDB were not run: {missing}\n");
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
    None
}

/// Says in one line that a test was not run, past the test harness's capture.
pub fn not_run(what: &str, why: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{what}: not run: {why}\n").as_bytes());
}

/// A port of the loopback interface that is free now, and stays so while a node starts or is down: it lies below those of
/// outgoing connections, and these tests make thousands of them.
pub fn free_port() -> u16 {
    let mut seed = [0; 2];
    loop {
        std::fs::File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut seed)).expect("random bytes");
        let port = FIRST_PORT + u16::from_ne_bytes(seed) % (first_ephemeral() - FIRST_PORT);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The lowest port that the tests listen on.
const FIRST_PORT: u16 = 12_000;

/// The lowest port of outgoing connections; Linux' default where it can't be read.
fn first_ephemeral() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|n| n.parse().ok());
    first.filter(|first| *first > FIRST_PORT + 1_000).unwrap_or(32_768)
}

impl Node {
    /// Starts a node with separate data.
    pub fn start(script: &Path, kind: Kind) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut node = Self::start_in(script, kind, directory.path());
        node.directory = Some(directory);
        node
    }

    /// Starts a node whose data lie in this directory.
    pub fn start_in(script: &Path, kind: Kind, data: &Path) -> Self {
        let temporary = tempfile::tempdir().expect("a directory");
        let (child, port) = spawn_anywhere(script, data, &kind, temporary.path());
        let (script, data) = (script.to_owned(), data.to_owned());
        Self { script, child, port, kind, data, temporary, directory: None }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends the process as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again on the same port and data.
    pub fn restart(&mut self) {
        self.kill();
        self.child = (1..=STARTS)
            .find_map(|n| {
                started(n, spawn(&self.script, self.port, &self.data, &self.kind, self.temporary.path()))
            })
            .expect("a node");
    }

    /// Stops the process where it is, or lets it continue.
    pub fn freeze(&self, is_frozen: bool) {
        let signal = if is_frozen { "-STOP" } else { "-CONT" };
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|s| s.success()), "the node can't be signalled");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Number of times that a node is started before a test fails.
const STARTS: u32 = 3;

/// Starts a node on a free port; if it ends before it answers, once more on another port.
fn spawn_anywhere(script: &Path, data: &Path, kind: &Kind, temporary: &Path) -> (Child, u16) {
    let start = |n| {
        let port = free_port();
        started(n, spawn(script, port, data, kind, temporary)).map(|child| (child, port))
    };
    (1..=STARTS).find_map(start).expect("a node")
}

/// Says why a start failed, past the harness's capture, so that the reader of a slow run sees it. The last failure is the
/// test's.
fn started(n: u32, result: Result<Child, String>) -> Option<Child> {
    match result {
        Ok(child) => Some(child),
        Err(log) if n < STARTS => {
            let text = format!("a node ended at its start, and is started again:\n{log}\n");
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
            None
        }
        Err(log) => panic!("the node ended at each of {STARTS} starts:\n{log}"),
    }
}

fn spawn(script: &Path, port: u16, data: &Path, kind: &Kind, temporary: &Path) -> Result<Child, String> {
    let mut command = Command::new(script);
    command.arg(port.to_string()).arg(data);
    match kind {
        Kind::Memory => {
            command.arg("memory");
        }
        Kind::RocksDb => {
            command.arg("rocksdb");
        }
        Kind::Postgres(port, database, user) => {
            command.args(["postgres", &port.to_string(), database, user]);
        }
    }
    // RocksDB's library unpacks itself into the temporary folder, always under the same name: two nodes that start
    // at the same moment would find it half written.
    let options =
        format!("-Xms64m -Xmx512m -XX:TieredStopAtLevel=1 -Djava.io.tmpdir={}", temporary.display());
    command.env("XTDB_JVM_OPTS", options);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the script runs");
    let stderr = child.stderr.take().expect("a pipe");
    let (say, heard) = channel();
    std::thread::spawn(move || {
        let mut log = Vec::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line.contains("answers on port") {
                let _ = say.send(None);
            }
            log.push(line);
        }
        let _ = say.send(Some(log.join("\n")));
    });
    match heard.recv_timeout(Duration::from_secs(400)) {
        Ok(None) => Ok(child),
        Ok(Some(log)) => Err(format!("port {port}, {:?}\n{log}", child.wait())),
        Err(_) => {
            let _ = child.kill();
            panic!("the node does not answer");
        }
    }
}

/// Prints the current step, for the output of a failing test.
#[expect(clippy::print_stderr, reason = "the harness shows it for a failing test only")]
pub fn say(line: &str) {
    eprintln!("{line}");
}
